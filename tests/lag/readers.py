"""Readers near the start of a log that retention shortens, drawn at random, with what each of them
really lost.

A case is one group on one partition: how fast it reads, how often it commits, what deletes records
and when.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from stream.simulation import NOON, Record, Simulation, commit, end

TICK = 10
KINDS = ("overtaken", "overtaken", "near", "catching_up", "deleted_behind", "stopped", "healthy")
LOSES = frozenset({"overtaken", "stopped"})


@dataclass
class Reader:
    """One reader and its log, in steps of a second."""

    kind: str
    arrival: float  # records/s that arrive
    speed: float  # records/s that it can read
    jitter: float  # of the speed, from second to second
    commit_seconds: int
    phase: int
    kept: int  # records that retention leaves
    segment: int
    sweep_seconds: int  # between two deletions
    resets_to: str  # earliest or latest
    begins: int  # second at which it is overloaded, stopped, or comes
    lasts: int
    chance: random.Random
    log_end: int = 0
    log_start: int = 0
    position: int = 0
    committed: int = 0
    lost: int = 0
    left_out: int = 0
    losses: list[int] = field(default_factory=list)  # seconds at which it lost some

    def step(self, second: int) -> int | None:
        """One second; the offset that it commits in it, if it does."""
        is_on = self.begins <= second < self.begins + self.lasts
        factor = self.chance.uniform(1 - self.jitter, 1 + self.jitter)
        self.log_end += round(self._arrival(is_on) * self.chance.uniform(0.9, 1.1))
        if second % self.sweep_seconds == 0:
            self._delete()
        if is_on and self.kind in ("stopped", "catching_up"):
            return None
        if self.position < self.log_start:
            to = self.log_start if self.resets_to == "earliest" else self.log_end
            self.lost += self.log_start - self.position
            # by a reset to the end more than is deleted already
            self.left_out += to - self.position
            self.losses.append(second)
            self.position = to
        self.position = min(self.log_end, self.position + round(self.speed * factor))
        if (second + self.phase) % self.commit_seconds:
            return None
        self.committed = self.position
        return self.committed

    def _arrival(self, is_on: bool) -> float:
        return self.arrival * (4.0 if is_on and self.kind in ("overtaken", "near") else 1.0)

    def _delete(self) -> None:
        if self.kind == "deleted_behind":  # as Kafka Streams does with repartition topics
            self.log_start = max(self.log_start, self.committed)
        elif self.log_end > self.kept:
            self.log_start = max(
                self.log_start, (self.log_end - self.kept) // self.segment * self.segment
            )


def draw(chance: random.Random) -> Reader:
    """Draw a case. An overtaken reader is slower than what arrives for a while; one that is near is
    not.
    """
    kind = chance.choice(KINDS)
    arrival = math.exp(chance.uniform(math.log(20), math.log(500)))
    ratio = {"overtaken": chance.uniform(1.1, 3.5), "near": chance.uniform(4.4, 8)}.get(
        kind, chance.uniform(1.3, 10)
    )
    lasts = chance.randint(300, 900)
    kept_seconds = (
        chance.uniform(20, 90) if kind in ("near", "healthy") else chance.uniform(120, 400)
    )
    if kind == "catching_up":
        # all that came meanwhile is still there, but for how long
        kept_seconds = lasts + chance.uniform(40, 120)
    if kind == "stopped":
        kept_seconds = lasts * chance.uniform(0.3, 0.9)
    kept = round(arrival * kept_seconds)
    return Reader(
        kind,
        arrival,
        arrival * ratio,
        chance.choice((0.0, 0.1, 0.3)),
        chance.choice((1, 5, 5, 5, 10, 30, 60)),
        chance.randrange(60),
        kept,
        max(1, round(kept * chance.choice((0.01, 0.1, 0.3)))),
        chance.choice((30, 60, 300)) if kind != "deleted_behind" else 30,
        chance.choice(("earliest", "earliest", "earliest", "latest")),
        chance.randint(240, 400),
        lasts,
        chance,
    )


@dataclass
class Measured:
    """A case, with what the tables say of it."""

    reader: Reader
    booked: int  # records
    peak: float  # records/s, the largest consume rate of a window
    named: int  # windows that say that records were lost


def measure(seed: int, cases: int = 80, seconds: int = 1500) -> list[Measured]:
    """Run cases side by side, and compare what they lost with what the tables say."""
    job, readers = Simulation(), draw_all(seed, cases)
    for _ in ticks(job, readers, seconds):
        pass
    for reader in readers:  # one that is still stopped has lost what it will not find
        pending = max(0, reader.log_start - reader.position)
        reader.lost, reader.left_out = reader.lost + pending, reader.left_out + pending
    return [
        Measured(reader, *_found(job, f"g{number:03}")) for number, reader in enumerate(readers)
    ]


def draw_all(seed: int, cases: int) -> list[Reader]:
    """Draw so many cases."""
    chance = random.Random(f"readers {seed}")
    return [draw(random.Random(chance.random())) for _ in range(cases)]


def ticks(job: Simulation, readers: Sequence[Reader], seconds: int) -> Iterator[int]:
    """Run the readers side by side, each as a group of its own; yield after each
    tick its second.
    """
    second, made = 0, list[Record]()
    while second < seconds:
        second += 1
        at = NOON + timedelta(seconds=second)
        made.extend(
            commit(offset, group=f"g{number:03}", partition=number, at=at)
            for number, reader in enumerate(readers)
            if (offset := reader.step(second)) is not None
        )
        if second % TICK == 0:
            opens = (NOON + timedelta(seconds=second - TICK)).minute != at.minute
            ends = [
                end(each.log_end, start=each.log_start if opens else None, partition=number)
                for number, each in enumerate(readers)
            ]
            job.tick(ends, made)
            made = []
            yield second


def _found(job: Simulation, group: str) -> tuple[int, float, int]:
    (counters,) = job.groups[group]["topic_counters"]
    windows = [row for row in job.history["lag_windows"] if row["group"] == group]
    rates = [row["consume_rate"] for row in windows if row["consume_rate"] is not None]
    return (
        counters["lost"],
        max(rates, default=0.0),
        sum((row["lost_records"] or 0) > 0 for row in windows),
    )


def report(found: Sequence[Measured]) -> Iterator[str]:
    """Lines of figures: per kind the records lost and booked, the cases that lose and are named,
    and capacity.
    """
    for kind in sorted({each.reader.kind for each in found}):
        some = [each for each in found if each.reader.kind == kind]
        lost, booked = sum(each.reader.lost for each in some), sum(each.booked for each in some)
        certain = sum(min(each.booked, each.reader.lost) for each in some)
        over = sum(max(0, each.booked - each.reader.left_out) for each in some)
        losing = [each for each in some if each.reader.lost]
        named = sum(each.named > 0 for each in losing)
        false = sum(each.booked > 0 for each in some if not each.reader.lost)
        peaks = sorted(each.peak / each.reader.speed for each in some)
        too_fast = sum(peak > 1.1 for peak in peaks)
        yield (
            f"{kind:15} cases {len(some):4} lost {lost:9} booked {booked:9} of the lost "
            f"{certain / max(lost, 1):.3f} too much {over:7} losing {len(losing)} named {named} "
            f"false {false} rate > 1.1 x: {too_fast}, worst {peaks[-1]:.2f}"
        )


if __name__ == "__main__":
    import sys

    for line in report([each for seed in map(int, sys.argv[1:]) for each in measure(seed)]):
        print(line)
