"""Random lives of a cluster through whole batches on real Delta tables: the audit finds no wrong
row at their end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from audit.test_audit import audited, broken
from laggard.sources.snapshot import OFFSETS_PARTITIONS
from laggard.stream.tick.offsets_topic_events import RebuildError
from patience import some
from stream.simulation import (
    ID_A,
    ID_B,
    RECORDS,
    Record,
    Row,
    commit,
    end,
    generation,
    group_tombstone,
)
from stream.whole_batch import WholeBatches

START = datetime(2026, 11, 20, 23, 57, tzinfo=timezone.utc)  # midnight comes
GROUPS, TOPICS = ("a/b", "g", "ü\u2028", "h"), ("t", "t2", "x-repartition")
SEEDS = [
    0,
    *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 10)),
    *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(10, 24)),
]


class Job(WholeBatches):
    """Batches of records that have the time of their tick; `behind` records of the offsets topic
    are not read yet.
    """

    behind = 0

    def go(
        self, ends: Iterable[Row], records: Iterable[Record] = (), *, seconds: float = 10
    ) -> Row:
        at_ms = round((self.now + timedelta(seconds=seconds)).timestamp() * 1000)
        return self.tick(ends, [(each.key, each.value, at_ms) for each in records], seconds=seconds)

    def cut(self, records: int) -> None:
        """Cut so many records off the end of the offsets topic, as an unclean
        leader election does.
        """
        whole = pa.Table.from_batches(self.source.records, schema=RECORDS)
        self.position -= min(records, self.position)
        self.source.records = whole.slice(0, self.position).to_batches()

    def _snapshot(self, ends: list[Row], *, answers: bool) -> Any:
        found, place = super()._snapshot(ends, answers=answers), self.position + self.behind
        own = {"offsets_partition": 0, "high_watermark": place, "last_stable_offset": place}
        parts = pa.Table.from_pylist([own], schema=OFFSETS_PARTITIONS)
        return replace(found, offsets_partitions=parts) if self.behind else found


@dataclass
class Cluster:
    """Log ends and starts, topic ids and committed offsets, moved on at random."""

    random: Random
    logs: dict[tuple[str, int], list[int]] = field(
        default_factory=lambda: {
            (topic, number): [1000, 0] for topic in TOPICS for number in range(2)
        }
    )
    ids: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TOPICS, ID_A))
    committed: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def ends(self) -> list[Row]:
        random, found = self.random, []
        if random.random() < 0.03:
            topic = random.choice(TOPICS)
            self.ids[topic] = f"{random.getrandbits(62):021d}A"  # each id is new
            self.logs |= {(topic, number): [random.choice((0, 5)), 0] for number in range(2)}
        for (topic, number), log in self.logs.items():
            log[0] += random.choice((0, 1, 50, 1000))
            if random.random() < 0.1:
                log[1] = min(log[0], log[1] + random.choice((10, 2000)))
            place = {"topic": topic, "partition": number, "topic_id": self.ids[topic]}
            if random.random() < 0.05:
                found.append(end(error="LEADER_NOT_AVAILABLE", **place))
            else:
                found.append(end(log[0], start=random.choice((log[1], None)), **place))
        return [] if random.random() < 0.05 else found

    def records(self, number: int, at: datetime) -> list[Record]:
        random, found = self.random, []
        for _ in range(random.randrange(6)):
            group, (topic, partition) = random.choice(GROUPS), random.choice(list(self.logs))
            log_end, key = self.logs[topic, partition][0], (group, topic, partition)
            before = self.committed.get(key, 0)
            offset = random.choice(
                (before, min(log_end, before + 500), max(0, before - 400), log_end + 7, -1, None)
            )
            topic_id = self.ids[topic] if random.random() < 0.2 else None
            found.append(
                commit(
                    offset, group=group, topic=topic, partition=partition, topic_id=topic_id, at=at
                )
            )
            self.committed[key] = 0 if offset is None or offset < 0 else min(offset, log_end)
        if random.random() < 0.2:
            members = {f"m{each}": (random.choice(TOPICS),) for each in range(random.randrange(3))}
            found.append(generation(number + 1, members, group=random.choice(GROUPS)))
        if random.random() < 0.03:
            found.append(group_tombstone(random.choice(GROUPS)))
        return found


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_no_row_is_wrong(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    job = Job(tmp_path, window_seconds=random.choice((20, 30, 60)), now=START)
    cluster = Cluster(random)
    for number in range(60):
        job.behind = 5 if random.random() < 0.04 else 0
        job.ended = [random.choice(GROUPS)] if random.random() < 0.03 else []
        if random.random() < 0.04:
            job.start()
        seconds = random.choice((5, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 25, 70, 200))
        if random.random() < 0.03:
            job.cut(random.randint(1, 4))
        try:
            records = cluster.records(number, job.now + timedelta(seconds=seconds))
            job.go(cluster.ends(), records, seconds=seconds)
        except RebuildError:
            job.start()
    audit = audited(Path(job.root))
    assert broken(audit) == {}, broken(audit)
    assert (
        min(audit.tallies[code].checked for code in ("I1", "I2", "I3", "I4", "I5", "I7", "I8")) > 0
    )


@pytest.mark.examples
@pytest.mark.parametrize("cut", some([1, 2, 5]))
def test_a_history_that_is_read_again_is_neither_written_nor_counted_again(
    cut: int, tmp_path: Path
) -> None:
    job, log_end = Job(tmp_path, now=START), 1000
    for number in range(1, 7):
        log_end += 100
        members = {"a": ("t",)} | ({"b": ("t",)} if number % 2 else {})
        job.go([end(log_end, start=0)], [generation(number, members), commit(900 + number)])
    job.cut(cut)
    with pytest.raises(RebuildError):
        job.go([end(log_end, start=0)])
    job.start()
    job.go([end(log_end, start=0)])
    job.go([end(log_end, start=0)], [generation(7, {"a": ("t",)}), commit(2000)])
    assert sorted(row["generation"] for row in job.rows("generations")) == [1, 2, 3, 4, 5, 6, 7]
    [group] = job.rows("group_status")
    assert (group["generations_total"], group["generation"], group["members"]) == (7, 7, 1)
    assert broken(audited(Path(job.root))) == {}


def test_a_topic_that_is_recreated_is_one_event_each_time(tmp_path: Path) -> None:
    """Also where polls without an answer come between."""
    job = Job(tmp_path, now=START)
    for topic_id in (ID_A, ID_B, ID_A):
        job.go([end(1000, start=0, topic_id=topic_id)], [commit(900)] if job.position == 0 else [])
        for ends in ([], [end(1000, start=0, topic_id=topic_id)], []):
            job.go(ends)
    events = [row for row in job.rows("group_events") if row["kind"] == "topic_recreated"]
    # back to the topic of the commit is none
    assert len(events) == len({row["event_id"] for row in events}) == 1


@pytest.mark.full
def test_windows_that_a_backlog_cost_are_a_gap(tmp_path: Path) -> None:
    job, log_end = Job(tmp_path, window_seconds=60, now=START), 1000
    for number in range(30):
        job.behind = 5 if number == 11 else 0  # the first tick of a window
        log_end += 100
        job.go([end(log_end, start=0)], [commit(log_end - 50)])
    gaps = [row for row in job.rows("batches") if row["kind"] == "gap"]
    assert [(row["gap_reason"], row["gap_from"], row["gap_to"]) for row in gaps] == [
        ("catching_up", START + timedelta(minutes=2), START + timedelta(minutes=3))
    ]
    begins = {row["window_start"] for row in job.rows("lag_windows")}
    assert START + timedelta(minutes=2) not in begins
    assert {START + timedelta(minutes=1), START + timedelta(minutes=3)} <= begins


def test_a_group_that_ended_unseen_is_deleted_in_its_history_too(tmp_path: Path) -> None:
    job = Job(tmp_path, now=START)
    for number in range(6):
        job.ended = ["g"] if number == 3 else []
        job.go([end(1000, start=0)], [commit(900)] if number in (0, 5) else [])
    events = sorted(job.rows("group_events"), key=lambda row: row["event_at"])
    assert [row["kind"] for row in events if row["group"] == "g"] == [
        "group_deleted",
        "group_created",
    ]


@pytest.mark.full
def test_counters_of_topics_that_are_no_more_end(tmp_path: Path) -> None:
    job, ends = Job(tmp_path, now=START), [end(1000, start=0)]
    for number in range(8):
        short = f"job-{number}"
        job.go(
            [*ends, end(100, start=0, topic=short, topic_id=ID_B)],
            [commit(60), commit(50, topic=short)],
        )
        job.go(ends, [commit(None, topic=short)])
    job.go([])  # a poll that shows nothing ends nothing
    [group] = job.rows("group_status")
    assert [each["topic"] for each in group["topic_counters"]] == ["job-7", "t"]
    job.go(ends)
    [group] = job.rows("group_status")
    assert [each["topic"] for each in group["topic_counters"]] == ["t"]
    assert [each["topic"] for each in group["outcome_counters"]] == ["t"]
