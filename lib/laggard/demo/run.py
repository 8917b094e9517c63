"""The demo: a broker, its load, the job and the exporter as processes of their own, and the view on the tables."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import laggard
from laggard.conf import conf_file
from laggard.demo.broker import Broker
from laggard.demo.node import GUARDED, HOST
from laggard.demo.view import View
from laggard.errors import OK, TEMPORARY, LaggardError
from laggard.exporter.snapshot import Snapshot

PORT = 8917  # the exporter's own default
REDRAW_SECONDS = 2.0
WINDOW_GRACE_SECONDS = 30.0
FIRST_TICK_LIMIT_SECONDS = 180.0
SAY_EVERY_SECONDS = 10.0
STOP_SECONDS = 20.0
EXPORTER_STOP_SECONDS = 5.0
REPORTED_LOG_LINES = 15
TIMINGS = {"tick_seconds": 3, "window_seconds": 15}  # short, so that something is to be seen at once
JOB_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SERVES = re.compile(r"serves (http://\S+)/metrics")
SAMPLES = (
    re.compile(r'laggard_group_lag_records\{.*group="reporting"'),
    re.compile(r'laggard_partition_lag_records\{.*group="fraud".*partition="2"'),
    re.compile(r'laggard_group_generation\{.*group="mailer"'),
)
QUESTIONS = {
    "Which groups are worst now?": (
        'select "group", group_state, members, lag, round(max_time_lag_seconds, 1) as time_lag_seconds'
        " from group_status order by lag desc nulls last limit 5"
    ),
    "Is fraud behind everywhere, or on one partition?": (
        "select topic, partition, count(*) as windows, max(lag_max) as lag_max,"
        " round(avg(arrival_rate), 1) as arrival_rate, round(avg(consume_rate), 1) as consume_rate"
        " from lag_windows where \"group\" = 'fraud' group by topic, partition order by lag_max desc"
    ),
    "Which generations had mailer?": (
        "select generation, kind, member_count, record_timestamp"
        " from generations where \"group\" = 'mailer' order by source_offset desc limit 8"
    ),
}


@dataclass(frozen=True)
class Options:
    """What the user may choose."""

    seconds: int = 0  # 0: until Ctrl-C
    work: Path | None = None  # None: a temporary folder
    keep: bool = False
    listen: str | None = None


@dataclass(frozen=True)
class Answers:
    """How the tables are read: the functions behind `laggard status` and `laggard query`."""

    snapshot: Callable[[str], Snapshot]
    status_lines: Callable[[Snapshot], list[str]]
    query_lines: Callable[[str, str], list[str]]  # tables, SQL


class Child:
    """A process with a log; it never outlives us, whatever ends us."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, lifeline: int, orphaned_folder: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", GUARDED, orphaned_folder, sys.executable, "-m", *arguments],
                stdin=lifeline,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,  # Spark leaves a folder where it runs
                env=child_environment(os.environ),
                start_new_session=True,  # Ctrl-C is for us, who end the children in order
            )

    def printed(self) -> str:
        """Its log up to now."""
        return self.log.read_text(errors="replace")

    def check(self) -> None:
        """Raise if it has ended."""
        code = self._process.poll()
        if code is not None:
            raise LaggardError(f"the demo's {self.name} has ended", cause=f"exit code {code}; {self.last_words()}")

    def last_words(self) -> str:
        """How its log ends."""
        return "\n  ".join([f"{self.log.name} ends with", *self.printed().splitlines()[-REPORTED_LOG_LINES:]])

    def stop(self, limit_seconds: float) -> None:
        """End it in order, or by force after the limit, with all that it started."""
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(limit_seconds)
        # its watcher is in the group, so the number cannot belong to anybody else yet
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Demo:
    """One run, from an empty machine to an empty machine."""

    def __init__(self, options: Options, answers: Answers, view: View, folder: Path) -> None:
        self._options = options
        self._answers = answers
        self._view = view
        self._folder = folder
        self._tables = str(folder / "tables")
        self._stopping = Event()
        self._children: list[Child] = []
        self._url = ""
        self._seen_at = 0.0  # when the first lag was shown

    def stop(self, *_: object) -> None:
        """End soon; may be called from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Start everything, show it, stop it, and tell what was seen."""
        view, folder = self._view, self._folder
        old = self._read()
        is_seen, samples = False, list[str]()
        with ExitStack() as stack:
            view.note(f"starting Kafka; all files in {folder}")
            broker = stack.enter_context(Broker(folder / "kafka", properties={"group.initial.rebalance.delay.ms": "0"}))
            if self._is_temporary:  # data that goes away needs no orderly shutdown
                stack.callback(broker.stop, sig=signal.SIGKILL)
            if not self._stopping.is_set():
                view.note(f"Kafka is up at {broker.bootstrap_servers}")
                self._start_children(stack, broker.bootstrap_servers)
                is_seen = self._watch(old.batch.batch_id if old else None)
                samples = sample_lines(self._url) if is_seen else []
                view.note("stopping")
        view.note("stopped")
        self._tell_end(samples if is_seen else None)

    @property
    def _is_temporary(self) -> bool:
        return self._options.work is None and not self._options.keep

    def _start_children(self, stack: ExitStack, bootstrap: str) -> None:
        config = self._folder / "laggard.toml"
        config.write_text(config_text(self._folder, bootstrap), encoding="utf-8")
        reader, writer = os.pipe()
        stack.callback(os.close, reader)
        stack.callback(os.close, writer)
        orphaned = str(self._folder) if self._is_temporary else ""
        listen = self._options.listen or f"{HOST}:{PORT if is_free(PORT) else 0}"
        for name, arguments, limit_seconds in (  # ended in the opposite order
            ("load", ["laggard.demo.cast", bootstrap], EXPORTER_STOP_SECONDS),
            ("exporter", ["laggard", "export", "--config", str(config), "--listen", listen], EXPORTER_STOP_SECONDS),
            ("job", ["laggard", "run", "--config", str(config)], STOP_SECONDS),
        ):
            child = Child(name, arguments, self._folder, reader, orphaned)
            stack.callback(child.stop, limit_seconds)
            self._children.append(child)
        self._view.note("load, exporter and job are starting; the job starts a JVM for Spark")

    def _watch(self, old_batch: int | None) -> bool:
        """Show the tables until it is time to stop; whether there was anything to show."""
        view, said_at, is_seen = self._view, self._view.seconds, False
        while not self._stopping.wait(REDRAW_SECONDS if is_seen else 0.5):
            for child in self._children:
                child.check()
            snapshot = self._read()
            if snapshot and snapshot.batch.batch_id != old_batch and has_lag(snapshot):
                if not is_seen:
                    self._url = self._served_at()
                    view.note("the first lag is on the screen; Ctrl-C ends the demo")
                    self._seen_at = view.seconds
                is_seen = True
                view.show([*self._answers.status_lines(snapshot), self._footer()])
                if self._is_over(snapshot):
                    break
            elif not is_seen and view.seconds - said_at >= SAY_EVERY_SECONDS:
                view.note("waiting for the first tick of the job")
                said_at = view.seconds
            if not is_seen and view.seconds > FIRST_TICK_LIMIT_SECONDS:
                what = f"the job published nothing within {FIRST_TICK_LIMIT_SECONDS:.0f} s"
                raise LaggardError(what, cause=self._children[-1].last_words(), exit_code=TEMPORARY)
        return is_seen

    def _is_over(self, snapshot: Snapshot) -> bool:
        """Whether the seconds are over; a slow machine gets some more for the first full window."""
        limit = self._options.seconds
        if not limit or self._view.seconds < limit:
            return False
        return bool(snapshot.topics) or self._view.seconds >= self._seen_at + WINDOW_GRACE_SECONDS

    def _read(self) -> Snapshot | None:
        """The newest batch; None while nothing is published, or not all of it."""
        try:
            return self._answers.snapshot(self._tables)
        except LaggardError:
            return None

    def _served_at(self) -> str:
        found = SERVES.search(self._children[1].printed())
        return found[1] if found else ""

    def _footer(self) -> str:
        limit = f" of {self._options.seconds} s" if self._options.seconds else ""
        return f"{self._view.seconds:.0f} s{limit}; metrics: {self._url}/metrics; Ctrl-C ends"

    def _tell_end(self, samples: Sequence[str] | None) -> None:
        """The last state, what was served, and three questions; without samples nothing was ever seen."""
        snapshot = self._read()
        lines = ["", "At the end:", *self._answers.status_lines(snapshot)] if snapshot else []
        if samples is not None:
            lines += ["", f"Metrics were served at {self._url}/metrics, among them:"]
            lines += [f"  {line}" for line in samples]
            for question, sql in QUESTIONS.items():
                lines += ["", question, "  laggard query " + shlex.quote(sql), ""]
                lines += [f"  {line}" for line in self._answers.query_lines(self._tables, sql)]
        are = "were in" if self._is_temporary else "are in"
        removed = "; they are removed now, --keep or --work DIR keeps them" if self._is_temporary else ""
        self._view.tell([*lines, "", f"The tables {are} {self._tables}{removed}"])


def run_demo(options: Options, answers: Answers) -> int:
    """Run the demo until its time is over, SIGTERM or Ctrl-C: all three are its normal end."""
    view = View(sys.stdout)
    with _work_folder(options) as folder:
        demo = Demo(options, answers, view, folder)
        with _signals(demo.stop):
            demo.run()
    return OK


@contextmanager
def _work_folder(options: Options) -> Iterator[Path]:
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
        yield options.work.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="laggard-demo-"))
    try:
        yield folder
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _signals(stop: Callable[..., None]) -> Iterator[None]:
    old = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def config_text(folder: Path, bootstrap: str) -> str:
    """The configuration of job and exporter, as TOML."""
    log_settings = f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
    sections: dict[str, dict[str, Any]] = {
        "cluster": {
            "name": "demo",
            "bootstrap_servers": bootstrap.split(","),
            "metadata_seconds": 5,
            "state_poll_seconds": 3,
        },
        "job": {
            "tables": str(folder / "tables"),
            "checkpoint": str(folder / "checkpoint"),
            "master": "local[2]",
            **TIMINGS,
            # for a JVM that lives a minute: what compilers would win back later, it never sees
            "spark": {
                "spark.driver.extraJavaOptions": " ".join([*JOB_JVM, log_settings]),
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            },
        },
        "exporter": {"refresh_seconds": 2},
        "logging": {"format": "text"},
    }
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in section.items())
        for name, section in sections.items()
    )


def toml_value(value: Any) -> str:
    """The value as TOML: as JSON, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Ours without the user's configuration, which is not meant for the demo, and with this very laggard."""
    kept = {
        name: value
        for name, value in environ.items()
        if name != "LAGGARD_CONFIG" and not (name.startswith("LAGGARD_") and "__" in name)
    }
    library = str(Path(laggard.__file__).absolute().parent.parent)
    return kept | {"PYTHONPATH": os.pathsep.join([library, *filter(None, [environ.get("PYTHONPATH")])])}


def is_free(port: int) -> bool:
    """Whether nobody listens on the port at this moment."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def has_lag(snapshot: Snapshot) -> bool:
    """Whether the batch knows the lag of any group."""
    return any(row["lag_known"] is not None for row in snapshot.groups)


def sample_lines(url: str) -> list[str]:
    """Some lines of a scrape."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    except OSError as error:
        return [f"no answer: {error}"]
    finally:
        connection.close()
    return [line for wanted in SAMPLES if (line := next(filter(wanted.match, lines), ""))]
