"""Records that were not committed within a group's service level: counted once, by the window in
which they matured.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.config.policy import Once, Policies, PolicyRule
from patience import examples
from stream.simulation import ID_A, ID_B, Simulation, commit, end, generation

SLO = 120.0
END = 10_000
STEP = 30  # seconds between ticks
Row = dict[str, Any]


def policies(slo: float = SLO, *maintenance: Once) -> Policies:
    return Policies(
        (PolicyRule("*", values={"slo_time_lag_seconds": slo}, maintenance=maintenance),)
    )


class Probes:
    """A job whose group commits every so many seconds, and whose windows open with a probe."""

    def __init__(self, declared: Policies | None = None, seconds: int = STEP) -> None:
        self.job = Simulation(policies=policies() if declared is None else declared)
        self.committed = 0
        self.seconds = seconds

    def window(
        self,
        committed: int | None,
        *offsets: int | None,
        slo: float = SLO,
        topic_id: str = ID_A,
        commits: bool = True,
    ) -> None:
        """A window that opens with this commit and a probe of each partition."""
        for second in range(0, 60, STEP):
            is_first = second == 0
            at = self.job.now + timedelta(seconds=STEP)
            parts = range(len(offsets))
            ends = [end(END, partition=part, start=0, topic_id=topic_id) for part in parts]
            records = []
            if commits and committed is not None and second % self.seconds == 0:
                records = [
                    commit(committed, partition=part, at=at, topic_id=topic_id) for part in parts
                ]
            probes = [
                {
                    "slo_seconds": slo,
                    "topic": "t",
                    "topic_id": topic_id,
                    "partition": part,
                    "offset": offset,
                }
                for part, offset in enumerate(offsets)
                if is_first and offset is not None
            ]
            self.job.tick(ends, records, probes=probes, seconds=STEP)

    def counted(self, partition: int = 0) -> list[tuple[int | None, int | None]]:
        """(matured, late) of each closed window."""
        rows = [row for row in self.job.history["lag_windows"] if row["partition"] == partition]
        return [(row["matured_records"], row["late_records"]) for row in rows]


def after_rhythm(probes: Probes, *offsets: int | None) -> Probes:
    """Two windows in which the group's commit interval gets known, the second with a probe."""
    probes.job.now -= timedelta(seconds=STEP)
    probes.window(0, *(None for _ in offsets))
    probes.window(0, *offsets)
    return probes


@pytest.mark.parametrize(
    ("committed", "probe", "expected"),
    [
        (100, 100, (0, 0)),  # nothing matured
        (150, 150, (50, 0)),  # all in time
        (120, 150, (50, 30)),
        (90, 150, (50, 50)),  # those before 100 were late before, and are not counted again
        (200, 150, (50, 0)),  # further than it must be
        (90, 100, (0, 0)),
        (90, 80, (0, 0)),  # a record out of order: what has matured stays so
        (100, None, (None, None)),
    ],
)
def test_late_is_what_matured_and_is_not_committed(
    committed: int, probe: int | None, expected: tuple[int | None, int | None]
) -> None:
    probes = after_rhythm(Probes(), 100)
    probes.window(committed, probe)
    probes.window(committed, probe)
    assert probes.counted()[-2:] == [(None, None), expected]  # the first probe has none before it


@pytest.mark.examples
@settings(max_examples=examples(8), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 80)), min_size=2, max_size=4))
def test_every_record_is_counted_once(steps: list[tuple[int, int]]) -> None:
    probes, reached, committed, matured, late = after_rhythm(Probes(), 0), 0, 0, 0, 0
    for ripe, done in steps:
        before, reached, committed = reached, reached + ripe, committed + done
        probes.window(committed, reached)
        matured += len(range(before, reached))
        late += sum(record >= committed for record in range(before, reached))
    probes.window(committed, reached)
    counts = probes.counted()[-len(steps) :]
    assert (sum(count[0] or 0 for count in counts), sum(count[1] or 0 for count in counts)) == (
        matured,
        late,
    )
    assert None not in [value for count in counts for value in count]


def test_partitions_are_distinguished() -> None:
    probes = after_rhythm(Probes(), 0, 100)
    probes.window(50, 60, 150)
    probes.window(50, None, None)
    assert (probes.counted(0)[-1], probes.counted(1)[-1]) == ((60, 10), (50, 50))


def test_without_a_service_level_nothing_is_counted() -> None:
    probes = after_rhythm(Probes(Policies()), 0)
    probes.window(0, 50)
    probes.window(0, 60)
    assert set(probes.counted()) == {(None, None)}


def test_the_probe_of_another_service_level_is_not_taken() -> None:
    probes = after_rhythm(Probes(), 0)
    probes.window(0, 50, slo=300.0)
    probes.window(0, 60)
    assert set(probes.counted()) == {(None, None)}


@pytest.mark.parametrize(("slo", "expected"), [(150.0, (50, 50)), (149.0, (50, None))])
def test_a_service_level_below_the_rhythm_of_commits_counts_no_late_records(
    slo: float, expected: tuple[int, int | None]
) -> None:
    probes = Probes(policies(slo), seconds=60)  # a commit a minute: 2 * 60 + 30
    probes.job.now -= timedelta(seconds=STEP)
    for _ in range(5):
        probes.window(0, 0, slo=slo)
    probes.window(0, 50, slo=slo)
    probes.window(0, 50, slo=slo)
    assert probes.counted()[-1] == expected


def test_a_rhythm_that_is_not_known_yet_counts_no_late_records() -> None:
    probes = Probes(seconds=60)
    probes.job.now -= timedelta(seconds=STEP)
    for offset in (0, 0, 50, 50):  # at the third commit there are two gaps
        probes.window(0, offset)
    assert probes.counted()[-1] == (50, None)


def test_a_partition_without_a_commit_has_no_late_records() -> None:
    probes = Probes()
    probes.job.tick([end(END)], [generation(1, {"m": ("t",)})], seconds=0)
    after_rhythm(probes, 0)
    polled = [end(END, partition=part, start=0) for part in (0, 1)]
    for offset in (20, 50, 50):
        probed = {"slo_seconds": SLO, "topic": "t", "topic_id": ID_A, "offset": offset}
        probes.job.tick(
            polled, seconds=60, probes=[probed | {"partition": part} for part in (0, 1)]
        )
    assert (probes.counted(0)[-1], probes.counted(1)[-1]) == ((30, 30), (30, None))


def test_planned_maintenance_suspends_the_count_and_a_probe_before_it_is_no_base_after_it() -> None:
    begin = datetime(2026, 11, 20, 12, 3, tzinfo=timezone.utc)
    probes = after_rhythm(Probes(policies(SLO, Once(begin, begin + timedelta(minutes=1)))), 0)
    offsets = (10, 20, 30, 40)  # windows that open at 12:02, 12:03, 12:04, 12:05
    for offset in offsets:
        probes.window(0, offset)
    probes.window(0, 50)
    assert probes.counted()[-4:] == [(10, 10), (None, None), (None, None), (10, 10)]


def test_nothing_matures_across_a_hole_or_a_recreated_topic() -> None:
    probes = after_rhythm(Probes(), 0)
    probes.window(0, 10)
    probes.job.now += timedelta(seconds=120)
    probes.window(0, 500)
    probes.window(0, 510)
    probes.window(0, 10, topic_id=ID_B)
    probes.window(0, 20, topic_id=ID_B)
    counts = probes.counted()
    assert counts[-4:-1] == [(10, 10), (None, None), (10, 10)]
    assert (490, 490) not in counts
    assert counts[-1] == (None, None)


def sums(job: Simulation) -> tuple[int, int]:
    (row,) = job.groups["g"]["outcome_counters"]
    return row["matured"], row["late"]


def test_the_group_s_counters_are_the_sums_of_its_windows() -> None:
    probes = after_rhythm(Probes(), 100, 100)
    for committed, *offsets in ((120, 150, 130), (140, 180, 130), (140, 180, 190)):
        probes.window(committed, *offsets)
    probes.window(140)  # the last of them is closed
    closed = [each for partition in (0, 1) for each in probes.counted(partition)]
    known = [each for each in closed if None not in each]
    assert (
        sums(probes.job)
        == tuple(map(sum, zip(*known, strict=True)))
        == (50 + 30 + 30 + 60, 30 + 10 + 30 + 50)
    )


def test_records_of_which_it_is_not_known_who_was_late_have_not_matured_for_the_counters() -> None:
    probes = Probes(seconds=60)
    probes.job.now -= timedelta(seconds=STEP)
    for offset in (0, 0, 50, 50):  # as above
        probes.window(0, offset)
    assert (probes.counted()[-1], sums(probes.job)) == ((50, None), (0, 0))


def test_maintenance_stops_the_counters() -> None:
    now = Simulation().now
    planned = Once(now, now + timedelta(days=1))
    probes = after_rhythm(Probes(policies(SLO, planned)), 100)
    probes.window(0, 150)
    probes.window(0, 150)
    assert sums(probes.job) == (0, 0)
