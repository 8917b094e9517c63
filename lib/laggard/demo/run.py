"""The demo: a broker, its load, the job and the exporter as processes, and the table view.

Each of these is a process of its own.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from laggard.demo.answers import (
    Answers,
    Drill,
    command_of,
    has_answers,
    question_lines,
    sample_lines,
    verb_lines,
)
from laggard.demo.broker import Broker
from laggard.demo.children import Child, is_free, start_children
from laggard.demo.config_text import TIMINGS, config_text
from laggard.demo.flag import Flag
from laggard.demo.scenarios import scenario_of
from laggard.demo.view import View
from laggard.errors import CONFIGURATION, OK, TEMPORARY, LaggardError
from laggard.exporter.snapshot import Snapshot

REDRAW_SECONDS = 2.0
# The first window with lag ends at most two windows after the first tick; one can be lost to the
# slow first ticks.
GRACE_SECONDS = 4.0 * TIMINGS["window_seconds"]
FIRST_TICK_LIMIT_SECONDS = 180.0
SAY_EVERY_SECONDS = 10.0
SERVES = re.compile(r"serves (http://\S+)/metrics")


@dataclass(frozen=True)
class Options:
    """Choices of the user."""

    seconds: int = 0  # 0: until Ctrl-C
    work: Path | None = None  # None: a temporary folder
    keep: bool = False
    listen: str | None = None
    drill: str = ""  # name of a scenario; "": everyday life


class Demo:
    """One run, from an empty machine to an empty machine."""

    def __init__(self, options: Options, answers: Answers, view: View, folder: Path) -> None:
        self._options = options
        self._answers = answers
        self._view = view
        self._folder = folder
        self._tables = str(folder / "tables")
        self._command = command_of(folder)
        self._stopping = Flag()
        self._children: dict[str, Child] = {}
        self._url = ""
        self._seen_at = 0.0  # when the first lag was shown
        self._scenario = scenario_of(options.drill)
        self._drill: Drill | None = None
        if options.drill:
            self._drill = Drill(self._scenario, answers, self._tables, self._give_cue)

    def stop(self, *_: object) -> None:
        """End soon, and say so at once; may be called from a signal handler."""
        if not self._stopping.is_set():
            self._view.note_from_handler("stopping: job, exporter, load, then Kafka")
        self._stopping.set()

    def run(self) -> None:
        """Start everything, show it, stop it, and tell what was seen."""
        view, folder = self._view, self._folder
        old = self._read()
        is_seen, samples = False, list[str]()
        with ExitStack() as stack:
            view.note(f"starting Kafka; all files in {folder}")
            broker = stack.enter_context(
                Broker(folder / "kafka", properties={"group.initial.rebalance.delay.ms": "0"})
            )
            if self._is_temporary:  # data that goes away needs no orderly shutdown
                stack.callback(broker.stop, sig=signal.SIGKILL)
            if not self._stopping.is_set():
                view.note(f"Kafka is up at {broker.bootstrap_servers}")
                if not self._is_temporary:
                    stack.callback(view.note, "job, exporter and load have ended; Kafka is ending")
                self._start_children(stack, broker.bootstrap_servers)
                is_seen = self._watch(old.batch.batch_id if old else None)
                samples = sample_lines(self._url) if is_seen else []
                if not self._stopping.is_set():
                    self.stop()
        view.note("stopped")
        self._tell_end(samples if is_seen else None)

    @property
    def _is_temporary(self) -> bool:
        return self._options.work is None and not self._options.keep

    def _start_children(self, stack: ExitStack, bootstrap: str) -> None:
        (self._folder / "laggard.toml").write_text(
            config_text(self._folder, bootstrap, self._scenario), encoding="utf-8"
        )
        orphaned = self._folder if self._is_temporary else None
        options = self._options
        self._children = start_children(
            stack, self._folder, bootstrap, options.listen, orphaned, options.drill
        )
        self._view.note("load, exporter and job are starting; the job starts a JVM for Spark")

    def _watch(self, old_batch: int | None) -> bool:
        """Show the tables until it is time to stop; whether there was anything to show."""
        said_at, is_seen = self._view.seconds, False
        while not self._stopping.wait(REDRAW_SECONDS if is_seen else 0.5):
            for child in self._children.values():
                child.check()
            snapshot = self._read()
            if snapshot and snapshot.batch.batch_id != old_batch and has_lag(snapshot):
                if not is_seen:
                    self._greet()
                is_seen = True
                self._show(snapshot)
                if self._is_over():
                    break
            elif not is_seen:
                said_at = self._await_first_tick(said_at)
        return is_seen

    def _await_first_tick(self, said_at: float) -> float:
        """Print now and then that the first tick is awaited; raise an error after the limit.

        Return the second of the last such line.
        """
        if self._view.seconds - said_at >= SAY_EVERY_SECONDS:
            self._view.note("waiting for the first tick of the job")
            said_at = self._view.seconds
        if self._view.seconds > FIRST_TICK_LIMIT_SECONDS:
            what = f"the job published nothing within {FIRST_TICK_LIMIT_SECONDS:.0f} s"
            raise LaggardError(what, cause=self._children["job"].last_words(), exit_code=TEMPORARY)
        return said_at

    def _greet(self) -> None:
        """Say where else the first lag can be seen."""
        match = SERVES.search(self._children["exporter"].printed())
        self._url = match[1] if match else ""
        self._view.note(
            f"the first lag is on the screen, and at {self._url}/ui; Ctrl-C ends the demo"
        )
        self._view.note(f"in another terminal: {self._command} status --watch")
        self._seen_at = self._view.seconds

    def _show(self, snapshot: Snapshot) -> None:
        if self._drill and (news := self._drill.watch(self._view.seconds)):
            self._view.note(news)
        drill_lines = self._drill.lines() if self._drill else []
        gone = spent(self._view.seconds, self._options.seconds)
        footer = f"{gone}; page: {self._url}/ui; metrics: {self._url}/metrics; Ctrl-C ends"
        self._view.show([*self._answers.status_lines(snapshot), *drill_lines, footer])

    def _is_over(self) -> bool:
        """Return True if the seconds are over.

        A slow machine gets more time until each closing question has an answer.
        """
        limit = self._options.seconds
        if self._drill and not limit:
            return self._drill.is_over(self._view.seconds)
        if not limit or self._view.seconds < limit:
            return False
        return self._view.seconds >= self._seen_at + GRACE_SECONDS or (
            not self._drill and has_answers(self._answers, self._tables)
        )

    def _read(self) -> Snapshot | None:
        """Return the newest batch; None while nothing is published, or only a part of it."""
        try:
            return self._answers.snapshot(self._tables)
        except LaggardError:
            return None

    def _give_cue(self) -> None:
        self._children["load"].send(signal.SIGUSR1)

    def _tell_end(self, samples: Sequence[str] | None) -> None:
        """Print the last state, the served lines, and three questions.

        `samples` is None if no line was ever seen.
        """
        snapshot = self._read()
        command = "" if self._is_temporary else self._command
        lines = []
        if snapshot:
            lines = ["", "At the end:", *self._answers.status_lines(snapshot)]
        if self._drill and samples is not None:
            lines += self._drill.end_lines(command)
        elif samples is not None and snapshot:
            lines += verb_lines(self._answers, snapshot, command)
            lines += ["", f"Metrics were served at {self._url}/metrics, among them:"]
            lines += [f"  {line}" for line in samples]
            lines += question_lines(self._answers, self._tables, command)
        are = "were in" if self._is_temporary else "are in"
        notice = (
            "; they are removed now: --keep or --work DIR keeps them, and prints commands to ask "
            "them"
        )
        removed = notice if self._is_temporary else ""
        self._view.tell([*lines, "", f"The tables {are} {self._tables}{removed}"])


def run_demo(options: Options, answers_in: Callable[[Path], Answers]) -> int:
    """Run the demo until its time is over, SIGTERM or Ctrl-C: all three are its normal end."""
    check_options(options)
    view = View(sys.stdout)
    with _work_folder(options) as folder:
        demo = Demo(options, answers_in(folder), view, folder)
        with _signals(demo.stop):
            demo.run()
    return OK


def check_options(options: Options) -> None:
    """Refuse a place that cannot be had, before anything is started."""
    if options.listen is not None:
        host, _, port = options.listen.rpartition(":")
        if int(port) and not is_free(int(port), host.strip("[]")):
            what, fix = (
                f"cannot listen on {options.listen}",
                "laggard demo --listen 127.0.0.1:0 takes a free port",
            )
            raise LaggardError(
                what,
                cause="the address is in use or not of this machine",
                fix=fix,
                exit_code=CONFIGURATION,
            )
    if options.work is not None:
        try:
            options.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what, fix = (
                f"cannot keep files in {options.work}",
                "laggard demo --work DIR with a folder that you may write",
            )
            raise LaggardError(what, cause=str(error), fix=fix, exit_code=CONFIGURATION) from error


@contextmanager
def _work_folder(options: Options) -> Iterator[Path]:
    if options.work is not None:
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


def spent(seconds: float, limit: int) -> str:
    """Return the elapsed seconds with their limit; beyond the limit, what is still waited for."""
    gone = round(seconds)
    if not limit:
        return f"{gone} s"
    if gone <= limit:
        return f"{gone} s of {limit} s"
    return f"{gone} s, waiting for answers to show at the end"


def has_lag(snapshot: Snapshot) -> bool:
    """Return True if the batch knows the lag of any group."""
    return any(row["lag_known"] is not None for row in snapshot.groups)
