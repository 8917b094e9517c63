"""The product as its users run it: a job in a child process, its tables read back, clients that
make known traffic.
"""

import json
import logging
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CommitFailedError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata
from prometheus_client.parser import text_string_to_metric_families

from e2e.oracle import Dumped
from laggard.conf import conf_file
from laggard.tables.published import Batch, newest_batch
from laggard.tables.readers import TableMissing, open_table, read_table
from patience import patient

TICK, WINDOW, MAX_AGE = 2, 10, 20
LISTING_SECONDS = 6 * TICK  # between two looks of the poll for new topics
START_LIMIT, STOP_LIMIT = 150, 20
POLL_MS = 5000
LOG_SETTINGS = f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
QUICK_JVM = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m {LOG_SETTINGS}"
Row = dict[str, Any]


def now() -> datetime:
    return datetime.now(timezone.utc)


def wait_until(
    condition: Callable[[], Any],
    limit: float,
    what: str,
    says: Callable[[], str] = str,
    every: float = 0.2,
) -> Any:
    """The condition's first true value; a failure tells what was missing.

    `limit` is for an idle machine; a busy one gets longer, as a limit is met only by what is
    broken.
    """
    limit = patient(limit)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(every)
    pytest.fail(f"not within {limit:.0f} s: {what}\n{says()}", pytrace=False)


@dataclass
class Place:
    """A job's own folder: configuration, tables, checkpoint, and one log for all its runs."""

    folder: Path
    bootstrap_servers: str
    cluster: Mapping[str, Any] = field(default_factory=dict)
    more: str = ""  # sections

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        lines = [
            "[cluster]",
            f"bootstrap_servers = {json.dumps(self.bootstrap_servers.split(','))}",
            *(f'{name} = "{value}"' for name, value in self.cluster.items()),
            "[job]",
            f'tables = "{self.tables}"',
            f'checkpoint = "{self.checkpoint}"',
            'master = "local[2]"',
            f"tick_seconds = {TICK}",
            f"window_seconds = {WINDOW}",
            "[job.spark]",
            # the job lives for a minute: half of its processor time would go into compiling
            f'"spark.driver.extraJavaOptions" = "{QUICK_JVM}"',
            "[exporter]",
            f"max_age_seconds = {MAX_AGE}",
            "[logging]",
            'format = "text"',
            self.more,
        ]
        self.config.write_text("\n".join(lines) + "\n")

    @property
    def config(self) -> Path:
        return self.folder / "laggard.toml"

    @property
    def tables(self) -> Path:
        return self.folder / "tables of é #1?+%"  # a folder may have any name

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint of é #1?+%"

    @property
    def log(self) -> Path:
        return self.folder / "job.log"

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- {self.log} ---", *lines[-60:]])

    def spawn(self, *command: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command or (sys.executable, "-m", "laggard", "run", "--config", str(self.config)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            )

    def exit_of(self, *command: str, limit: float = START_LIMIT) -> tuple[int, str, float]:
        """Exit code, output and seconds of a run that is expected to end by itself."""
        start, before = time.monotonic(), self.log.stat().st_size if self.log.exists() else 0
        process = self.spawn(*command)
        try:
            code = process.wait(patient(limit))
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {limit:.0f} s\n{self.tail()}", pytrace=False)
        finally:
            process.kill()
            process.wait()
        return (
            code,
            self.log.read_bytes()[before:].decode(errors="replace"),
            time.monotonic() - start,
        )

    def newest(self) -> Batch | None:
        try:
            return newest_batch(str(self.tables))
        except TableMissing:
            return None

    def rows(self, name: str) -> list[Row]:
        """All rows of a table as it is now."""
        return list(
            open_table(str(self.tables), name)
            .to_pyarrow_table()
            .to_pylist(maps_as_pydicts="strict")
        )

    def audit(self, *words: str) -> dict[str, int]:
        """`laggard audit` must find no wrong row; gives how many rows were checked of each
        invariant.
        """
        command = (
            sys.executable,
            "-m",
            "laggard",
            "audit",
            "--json",
            "--config",
            str(self.config),
            *words,
        )
        code, output, _ = self.exit_of(*command)
        assert code == 0, output
        found = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        return {each["code"]: each["checked"] for each in found["data"]["invariants"]}

    def view(self, batch: Batch | None = None) -> "View":
        found = batch or self.newest()
        assert found is not None, self.tail()
        return View(str(self.tables), dict(found.values))


class Run:
    """One life of the job's process."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.process = place.spawn()

    def wait_for(
        self, condition: Callable[[Batch], Any], what: str, limit: float = START_LIMIT
    ) -> Batch:
        """The first published batch that fulfils the condition; the job must live meanwhile."""

        def found() -> Batch | None:
            code = self.process.poll()
            if code is not None:
                pytest.fail(
                    f"the job ended with {code} before: {what}\n{self.place.tail()}", pytrace=False
                )
            batch = self.place.newest()
            return batch if batch is not None and condition(batch) else None

        batch: Batch = wait_until(found, limit, what, self.place.tail)
        return batch

    def tick_after(self, moment: datetime, limit: float = START_LIMIT) -> Batch:
        """A tick whose poll is later: it knows all commits that were acknowledged before the
        moment.
        """
        return self.wait_for(
            lambda batch: batch.kind == "tick" and batch.polled_at > moment,
            f"tick after {moment}",
            limit,
        )

    def stop(self) -> tuple[int | None, float]:
        """SIGTERM; gives the exit code (None: still running after the limit) and the seconds it
        took.
        """
        start = time.monotonic()
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patient(STOP_LIMIT))
        code = self.process.poll()
        self.kill()
        return code, time.monotonic() - start

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def kill_in_a_batch(self, limit: float = START_LIMIT) -> Row:
        """SIGKILL after a batch appended its windows and before its `batches` row; the newest row,
        where it began.

        The process is stopped first and killed once the tables are seen to be in that state: a busy
        machine may let the batch end between look and signal, and then the next one is tried.
        """
        end = time.monotonic() + patient(limit)
        while time.monotonic() < end:
            batch = self.wait_for(lambda found: found.kind == "tick", "a tick")
            version = batch.values["table_versions"]["lag_windows"] + 1
            written = self.place.tables / "lag_windows" / "_delta_log" / f"{version:020d}.json"
            wait_until(
                written.exists, limit, "a batch that closes windows", self.place.tail, every=0.001
            )
            self.process.send_signal(signal.SIGSTOP)
            wait_until(
                self._is_stopped, limit, "the process is stopped", self.place.tail, every=0.001
            )
            newest = self.place.newest()
            if newest is not None and newest.values["table_versions"]["lag_windows"] < version:
                self.kill()
                return dict(newest.values)
            self.process.send_signal(signal.SIGCONT)
        pytest.fail(
            f"no batch was met between its windows and its row\n{self.place.tail()}", pytrace=False
        )

    def _is_stopped(self) -> bool:
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/stat")
        return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)


@dataclass
class View:
    """The tables as one `batches` row published them."""

    root: str
    batch: Row

    def rows(self, name: str) -> list[Row]:
        return list(read_table(self.root, name, self.batch["table_versions"][name]).to_pylist())

    def read(self, dumped: Iterable[Dumped]) -> list[Dumped]:
        """Those that the job had read by then: a dump takes seconds, in which a member may lose its
        session.
        """
        return [each for each in dumped if each.offset < self.batch["source_to"][each.partition]]

    @cached_property
    def partitions(self) -> dict[tuple[str, str, int], Row]:
        return unique(self.rows("partition_status"), "group", "topic", "partition")

    @cached_property
    def groups(self) -> dict[str, Row]:
        return {row["group"]: row for row in self.rows("group_status")}

    @cached_property
    def windows(self) -> list[Row]:
        return self.rows("lag_windows")


def unique(rows: Iterable[Row], *names: str) -> dict[Any, Row]:
    """Rows by key; a key that is there twice fails."""
    found: dict[Any, Row] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        assert key not in found, f"two rows for {key}: {found[key]} and {row}"
        found[key] = row
    return found


class Exporter:
    """laggard export on a port of its own."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.log = place.folder / "exporter.log"
        command = (
            sys.executable,
            "-m",
            "laggard",
            "export",
            "--config",
            str(place.config),
            "--listen",
            "127.0.0.1:0",
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place.folder
            )
        found = wait_until(
            lambda: re.search(r"http://\S+/metrics", self.log.read_text()),
            30,
            "the exporter's address",
            self.log.read_text,
        )
        self.url: str = found.group()

    def scrape(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Samples by metric name and sorted labels."""
        with urllib.request.urlopen(self.url, timeout=60) as answer:  # noqa: S310 - our own address
            text = answer.read().decode()
        samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = tuple(
                    sorted(
                        (name, value) for name, value in sample.labels.items() if name != "cluster"
                    )
                )
                samples.setdefault(sample.name, {})[key] = sample.value
        return samples

    def scrape_when_ready(
        self, batch_id: int = 0
    ) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """The first scrape that serves data, of this batch or a later one."""

        def ready() -> dict[str, dict[tuple[tuple[str, str], ...], float]] | None:
            samples = self.scrape()
            is_ready = list(samples["laggard_ready"].values()) == [1.0]
            return (
                samples
                if is_ready and max(samples["laggard_batch_id"].values()) >= batch_id
                else None
            )

        found: dict[str, dict[tuple[tuple[str, str], ...], float]] = wait_until(
            ready, 60, "laggard_ready 1", lambda: f"{self.log.read_text()}\n{self.place.tail()}"
        )
        return found

    def kill(self) -> None:
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()


def at(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, partition)


def offsets(positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {place: OffsetAndMetadata(offset, "", -1) for place, offset in positions.items()}


def produce(servers: str, numbers: Mapping[TopicPartition, int]) -> None:
    """So many records to each partition."""
    producer = KafkaProducer(bootstrap_servers=servers)
    for place, number in numbers.items():
        for _ in range(number):
            producer.send(place.topic, b"x", partition=place.partition)
    producer.flush(30)
    producer.close()


def commit_simply(servers: str, group: str, positions: Mapping[TopicPartition, int]) -> None:
    """Commits of somebody who never joins the group."""
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)
    consumer.assign(list(positions))
    consumer.commit(offsets(positions))
    consumer.close(autocommit=False)


def commit_with_retention(
    servers: str, group: str, positions: Mapping[TopicPartition, int], seconds: float
) -> None:
    """A commit that expires, as clients before 2.1 asked for it (OffsetCommit version 2), to a
    broker without peers.
    """

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    body = (
        text(group)
        + struct.pack(">i", -1)
        + text("")
        + struct.pack(">qi", round(seconds * 1000), len(positions))
    )
    for place, offset in positions.items():
        body += text(place.topic) + struct.pack(">iiq", 1, place.partition, offset) + text("")
    request = struct.pack(">hhi", 8, 2, 1) + text("tests") + body
    host, port = servers.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb")
        (size,) = struct.unpack(">i", answer.read(4))
        errors = answer.read(size)[-2:]  # of the last partition
    assert struct.unpack(">h", errors) == (0,)


def commit_in_transaction(
    servers: str, group: str, positions: Mapping[TopicPartition, int], *, abort: bool
) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=f"for-{group}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction(offsets(positions), group)
    if abort:
        producer.abort_transaction()
    else:
        producer.commit_transaction()
    producer.close()


class Members:
    """Consumers that join groups and stay there."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.living: list[KafkaConsumer] = []
        # pytest shows it where a join fails
        logging.getLogger("kafka.coordinator").setLevel(logging.INFO)

    def join(self, group: str, topic: str, *names: str, **options: Any) -> list[KafkaConsumer]:
        """As many members as names; returns when all have partitions."""
        consumers: list[KafkaConsumer] = []
        begun = 0.0

        def begin() -> None:
            nonlocal begun
            begun = time.monotonic()
            while consumers:
                self.leave(consumers.pop())
            for name in names:
                consumers.append(
                    KafkaConsumer(
                        topic,
                        bootstrap_servers=self.servers,
                        group_id=group,
                        client_id=name,
                        enable_auto_commit=False,
                        auto_offset_reset="earliest",
                        max_poll_records=5,
                        # nobody polls while a fixture waits for the job; a slow machine must not
                        # cost a membership
                        **{"max_poll_interval_ms": 3_600_000, "session_timeout_ms": 60_000}
                        | options,
                    )
                )
                self.living.append(consumers[-1])

        def are_assigned() -> bool:
            if time.monotonic() - begun > START_LIMIT / 2:
                # seen once in hundreds of runs: a client of kafka-python never hears of its
                # partitions
                begin()
            # all at once and each with patience: a rebalance needs every member, and a poll that
            # ends before the coordinator answered asks it again, which a static member and a busy
            # machine may never get out of
            members = [consumer for consumer in self.living if consumer.config["group_id"] == group]
            with ThreadPoolExecutor(len(members)) as pool:
                list(pool.map(lambda consumer: consumer.poll(timeout_ms=POLL_MS), members))
            held = [place for consumer in members for place in consumer.assignment()]
            # one that has not heard of a rebalance still has what another was given, and could not
            # commit
            return all(consumer.assignment() for consumer in consumers) and len(held) == len(
                set(held)
            )

        begin()
        wait_until(are_assigned, START_LIMIT, f"members of {group}")
        for _ in range(3):  # a rebalance that began late must be over
            for consumer in self.living:
                consumer.poll(timeout_ms=100)
        return consumers

    def commit(self, consumer: KafkaConsumer, positions: Mapping[TopicPartition, int]) -> None:
        """Commit; again when a rebalance that began late was in the way."""

        def is_committed() -> bool:
            try:
                consumer.commit(offsets(positions))
            except (CommitFailedError, RebalanceInProgressError):
                for each in self.living:
                    each.poll(timeout_ms=500)
                return False
            return True

        wait_until(is_committed, START_LIMIT, f"a commit of {positions}")

    def leave(self, consumer: KafkaConsumer) -> None:
        self.living.remove(consumer)
        consumer.close(autocommit=False)

    def close(self) -> None:
        for consumer in list(self.living):
            self.leave(consumer)


class Traffic:
    """A group that commits all the time, each commit counted once the broker has
    acknowledged it.
    """

    def __init__(
        self, servers: str, group: str, places: Iterable[TopicPartition], first: int
    ) -> None:
        self.places = list(places)
        self.group, self.position = group, first
        self.commits = 0  # per partition
        self._servers = servers
        self._stop = Event()
        self._thread: Thread | None = None
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._stop.clear()
        self._thread = Thread(target=self._run, name=f"traffic of {self.group}")
        self._thread.start()

    def pause(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)
            self._thread = None
        assert self.failure is None, repr(self.failure)

    def _run(self) -> None:
        consumer = producer = None
        try:
            producer = KafkaProducer(bootstrap_servers=self._servers)
            consumer = KafkaConsumer(
                bootstrap_servers=self._servers, group_id=self.group, enable_auto_commit=False
            )
            consumer.assign(self.places)
            while not self._stop.wait(0.1):
                for place in self.places:
                    producer.send(place.topic, b"x", partition=place.partition)
                consumer.commit(offsets(dict.fromkeys(self.places, self.position + 1)))
                self.position += 1
                self.commits += 1
            producer.flush(30)
        except BaseException as error:  # noqa: BLE001 - reported by `pause`
            self.failure = error
        finally:
            for client in (consumer, producer):
                if client is not None:
                    client.close()
