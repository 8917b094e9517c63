"""Two jobs on one bucket, each started again as Kubernetes would; whoever writes is suspended at
random moments.

As a program: `python tests/e2e/race.py --seconds 300` prints one line for each suspension and what
was counted. The tables are compared with Kafka's own tools at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]

from kafka.admin import KafkaAdminClient, NewTopic  # noqa: E402

from e2e.bucket import ROOT, BucketPlace  # noqa: E402
from e2e.kit import STOP_LIMIT, Traffic, at, commit_simply, now, produce, wait_until  # noqa: E402
from e2e.oracle import describe_groups, dump_offsets_topic  # noqa: E402
from e2e.test_first_run import check_lag_equals_tool, check_last_commits  # noqa: E402
from laggard import storage  # noqa: E402
from laggard.demo.broker import Broker  # noqa: E402
from laggard.stream.job.jvm import descendants  # noqa: E402
from laggard.tables.schema.schemas import BATCHES, TABLES  # noqa: E402
from patience import patient  # noqa: E402
from s3 import S3Server  # noqa: E402

PARTITIONS = 4
REFUSED, SERVED = 73, 0
RESTART_SECONDS = 1.0
LONGEST_WAIT = 60.0  # for a successor, on an idle machine
PUBLISHED_FIRST = "partition_status"  # each tick commits it before its row of `batches`


class Contender:
    """A job with a checkpoint of its own, started again whenever it has ended."""

    def __init__(self, place: BucketPlace) -> None:
        self.place = place
        self.codes: list[int] = []
        self.process = place.spawn()
        self._is_over = Event()
        self._thread = Thread(target=self._supervise, name=f"supervisor of {place.folder.name}")
        self._thread.start()

    def _supervise(self) -> None:
        while True:
            code = self.process.wait()
            if self._is_over.is_set():
                return
            self.codes.append(code)
            if self._is_over.wait(RESTART_SECONDS):
                return
            self.process = self.place.spawn()

    def end(self) -> int | None:
        """SIGTERM; gives the exit code, None if it did not end in time."""
        self._is_over.set()
        for each in [self.process.pid, *descendants(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)
        self.process.terminate()
        self._thread.join(patient(STOP_LIMIT))
        code = self.process.poll()
        self.process.kill()
        self._thread.join()
        return code


@dataclass
class Outcome:
    """Counts of a race; `problems` is empty if no row was lost or doubled and nobody committed
    after its successor.
    """

    suspensions: Counter[str] = field(default_factory=Counter)
    takeovers: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    batches: int = 0
    epochs: int = 0
    problems: list[str] = field(default_factory=list)


class Race:
    """The two jobs, the traffic that they watch, and the one who suspends them."""

    def __init__(self, folder: Path, broker: Broker, server: S3Server, dice: random.Random) -> None:
        servers = broker.bootstrap_servers
        self._broker, self._dice = broker, dice
        self._tables = server.folder / "buckets" / ROOT.removeprefix("s3://")
        self.traffic = Traffic(
            servers, "counted", [at("orders", number) for number in range(PARTITIONS)], first=1
        )
        self.jobs = [
            Contender(BucketPlace.of(folder / name, servers, server)) for name in ("one", "two")
        ]
        self.outcome = Outcome()
        self._next_row = Path()

    @property
    def place(self) -> BucketPlace:
        return self.jobs[0].place

    def tail(self) -> str:
        return "\n".join(job.place.tail() for job in self.jobs)

    def holder(self) -> Contender | None:
        """The job whose process the lease names."""
        try:
            lease = json.loads(self._file("_laggard/lease.json").read_bytes())
        except (OSError, ValueError):  # none yet
            return None
        number = 0 if lease["is_free"] else int(lease["says"].rpartition(" ")[2])
        return next((job for job in self.jobs if job.process.pid == number), None)

    def newest_batch(self) -> int:
        batch = self.place.newest()
        return -1 if batch is None else batch.batch_id

    def await_ticks(self, number: int) -> None:
        """Wait until so many more batches are published."""
        before = self.newest_batch()
        wait_until(lambda: self.newest_batch() >= before + number, LONGEST_WAIT, "ticks", self.tail)

    def suspend_holder(self, says: Callable[[str], None]) -> None:
        """Stop it, for a moment or until another one writes, and let it go on; then somebody has to
        publish.
        """
        sleeper = wait_until(self.holder, LONGEST_WAIT, "a holder of the lease", self.tail)
        is_long, is_whole = self._dice.random() < 0.75, self._dice.random() < 0.5
        where = self._await_moment()
        process = sleeper.process
        stopped = [process.pid, *(descendants(process.pid) if is_whole else [])]
        begun = time.monotonic()
        _send(stopped, signal.SIGSTOP)
        if where == "publishing" and self._is_published():
            where = "after publishing"
        if is_long:
            wait_until(
                lambda: self.holder() not in (None, sleeper), LONGEST_WAIT, "a successor", self.tail
            )
            if self._dice.random() < 0.7:  # else it returns while the other one starts
                self.await_ticks(self._dice.randint(1, 3))
        else:
            time.sleep(self._dice.uniform(0.2, 4.0))  # the pause itself
        _send(stopped, signal.SIGCONT)
        seconds = time.monotonic() - begun
        if is_long:
            wait_until(
                lambda: sleeper.process is not process, LONGEST_WAIT, "the refusal", self.tail
            )
        self.outcome.suspensions[where] += 1
        self.outcome.takeovers += is_long
        name = sleeper.place.folder.name
        says(
            f"{name}: {where}, {'whole' if is_whole else 'driver'}, {seconds:.1f} s, batch "
            f"{self.newest_batch()}"
        )
        self.await_ticks(1)

    def _await_moment(self) -> str:
        if self._dice.random() < 0.5:
            time.sleep(self._dice.uniform(0.0, 3.0))  # a moment of its own
            return "any moment"
        entry = self._next_entry(PUBLISHED_FIRST)
        self._next_row = self._next_entry(BATCHES.name)
        wait_until(entry.exists, LONGEST_WAIT, "a tick that publishes", self.tail, every=0.001)
        return "publishing"

    def _is_published(self) -> bool:
        return self._next_row.exists()

    def _next_entry(self, table: str) -> Path:
        newest = max(int(path.stem) for path in self._entries(table))
        return self._file(f"{table}/_delta_log/{newest + 1:020d}.json")

    def _entries(self, table: str) -> list[Path]:
        return sorted(self._file(f"{table}/_delta_log").glob("[0-9]*[0-9].json"))

    def _file(self, name: str) -> Path:
        return self._tables / name

    # ---- the end

    def settle(self) -> None:
        """Let traffic end and a last tick be published; then compare everything with the truth."""
        self.traffic.pause()
        moment = now()

        def has_seen_all() -> bool:
            batch = self.place.newest()
            return batch is not None and batch.kind == "tick" and batch.polled_at > moment

        wait_until(has_seen_all, 2 * LONGEST_WAIT, "a tick after the traffic", self.tail)
        described, dumped = describe_groups(self._broker), dump_offsets_topic(self._broker)
        ends = [job.end() for job in self.jobs]
        self.outcome.codes = Counter(code for job in self.jobs for code in job.codes)
        unexpected = set(self.outcome.codes) - {REFUSED} | set(ends) - {SERVED, REFUSED}
        self._expect(not unexpected, f"exit codes {unexpected}")
        self._check_batches(dumped)
        self._check_rows()
        self._check_epochs()
        view = self.place.view()
        for check, truth in (
            (check_lag_equals_tool, described),
            (check_last_commits, view.read(dumped)),
        ):
            try:
                check(view.partitions, truth, "")  # type: ignore[operator]
            except AssertionError as error:
                self.outcome.problems.append(f"{check.__name__}: {error}")

    def _check_batches(self, dumped: list[Any]) -> None:
        found = sorted(
            (row for row in self.place.rows(BATCHES.name) if row["kind"] != "gap"), key=_batch_id
        )
        self.outcome.batches = len(found)
        self._expect(
            [row["batch_id"] for row in found] == list(range(len(found))),
            "a batch is doubled or lost",
        )
        chain = all(
            before["source_to"] == after["source_from"] for before, after in pairwise(found)
        )
        self._expect(chain, "a batch does not begin where the one before it ended")
        read_to = dict(found[-1]["source_to"])
        visible = sum(each.offset < read_to[each.partition] for each in dumped)
        read = sum(row["records"] for row in found)
        self._expect(read == visible, f"{read} records read, {visible} were there")

    def _check_rows(self) -> None:
        for name, table in TABLES.items():
            if table.overwritten or name == BATCHES.name:
                continue
            key = [*table.key, *(["window_start"] if "window_start" in table.names else [])]
            rows = Counter(
                tuple(str(row[column]) for column in key) for row in self.place.rows(name)
            )
            twice = [each for each, number in rows.items() if number > 1]
            self._expect(not twice, f"{name}: doubled {twice[:3]}")
        view = self.place.view()
        for number in range(PARTITIONS):
            key = ("counted", "orders", number)
            rows = [
                row for row in view.windows if (row["group"], row["topic"], row["partition"]) == key
            ]
            counted = sum(row["commits"] for row in rows) + view.partitions[key]["window_commits"]
            made = self.traffic.commits
            self._expect(counted == made, f"{key}: {counted} commits counted, {made} made")

    def _check_epochs(self) -> None:
        """No commit with an epoch follows one with a higher epoch: each was refused before it
        committed.
        """
        epochs: set[int] = set()
        for name in TABLES:
            found = []
            for entry in self._entries(name):
                actions = [json.loads(line) for line in entry.read_text().splitlines()]
                found += [
                    each["txn"]["version"]
                    for each in actions
                    if each.get("txn", {}).get("appId") == "laggard/epoch"
                ]
            self._expect(found == sorted(found), f"{name}: epochs {found}")
            epochs |= set(found)
        self.outcome.epochs = len(epochs)

    def _expect(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            self.outcome.problems.append(otherwise)


def _batch_id(row: dict[str, Any]) -> int:
    return int(row["batch_id"])


def _send(processes: list[int], number: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


@contextmanager
def _ground(folder: Path) -> Iterator[tuple[Broker, S3Server]]:
    before = storage.settings()
    with Broker() as broker, S3Server(folder / "s3") as server:
        storage.use(server.settings)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics([NewTopic("orders", PARTITIONS, 1)])
        admin.close()
        produce(
            broker.bootstrap_servers, {at("orders", number): 10 for number in range(PARTITIONS)}
        )
        commit_simply(
            broker.bootstrap_servers,
            "counted",
            {at("orders", number): 1 for number in range(PARTITIONS)},
        )
        yield broker, server
    storage.use(before)


def run_race(folder: Path, seconds: float, seed: int, says: Callable[[str], None]) -> Outcome:
    """Race for so long, at least until the tables were taken over once."""
    with _ground(folder) as (broker, server):
        race = Race(folder, broker, server, random.Random(seed))
        try:
            race.await_ticks(1)
            race.traffic.start()
            race.await_ticks(1)
            end = time.monotonic() + seconds
            while time.monotonic() < end or not race.outcome.takeovers:
                race.suspend_holder(says)
            race.settle()
        finally:
            with suppress(AssertionError):
                race.traffic.pause()
            for job in race.jobs:
                job.end()
    return race.outcome


def main() -> int:
    """Race, print the outcome; 1 if a row was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_race(
            Path(folder), args.seconds, args.seed, lambda line: print(line, flush=True)
        )
    print(outcome)
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
