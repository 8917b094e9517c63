"""Offsets that any client may commit: each is a status of its own row, and nothing else changes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.lag.arrays import MAX_LONG
from laggard.lag.positions import COMMIT_TRUNCATED, NEGATIVE_OFFSET
from patience import examples
from stream.simulation import ID_A, ID_B, Record, Row, Simulation, commit, end, generation

ENDS = [end(1000, start=10), end(1000, partition=1, start=0), end(1000, partition=2, start=0)]
ABOVE_DOUBLES = [2**53 + 11, 2**62 + 1, MAX_LONG]
NEGATIVE = [-1, -2, -(2**63)]
COUNTED = ("consumed", "rewinds", "rewound_records", "lost", "produced", "noop_commits")


def counters(job: Simulation) -> Row:
    (topic,) = job.groups["g"]["topic_counters"]
    return {name: topic[name] for name in COUNTED}


def run_ticks(*odd: int | None, ticks: int = 8, members: bool = True) -> Simulation:
    """Partition 0 gets an odd commit per tick; partition 1 reads on, and the others of its group
    and of another too.
    """
    job = Simulation()
    first = [generation(1, {"m": ("t",)})] if members else []
    job.tick(
        ENDS,
        [*first, *(commit(100, partition=number) for number in range(3)), commit(5, group="other")],
    )
    for number in range(max(ticks, len(odd))):
        given: list[Record] = [commit(110 + number, partition=1), commit(6 + number, group="other")]
        if number < len(odd):
            given.append(commit(odd[number]))
        job.tick(ENDS, given)
    return job


def row_of(job: Simulation, partition: int = 0) -> Row:
    return next(row for row in job.rows if row["group"] == "g" and row["partition"] == partition)


@pytest.mark.parametrize("offset", ABOVE_DOUBLES)
def test_an_offset_beyond_the_log_end_is_one_row_that_is_ahead(offset: int) -> None:
    job = run_ticks(offset)
    row = row_of(job)
    assert (row["status"], row["lag"], row["committed_offset"]) == ("committed_ahead", None, offset)
    assert row["ahead_records"] == offset - 1000
    assert [row_of(job, number)["lag"] for number in (1, 2)] == [1000 - 117, 900]
    group = job.groups["g"]
    assert (group["status"], group["lag"], group["lag_known"]) == ("partial", None, 883 + 900)
    assert (job.groups["other"]["status"], job.groups["other"]["lag"]) == ("ok", 987)


@pytest.mark.parametrize("offset", ABOVE_DOUBLES)
def test_records_that_do_not_exist_are_not_counted_as_consumed_or_read_again(offset: int) -> None:
    job = run_ticks(offset, 200, offset, 300, offset, 400, ticks=18)
    read = 900 + 27  # to the log end once, and what partition 1 read
    again = 800 + 700 + 600
    assert counters(job) == {
        "consumed": read + 800 + 700, "rewinds": 3, "rewound_records": again,
        "lost": 0, "produced": 0, "noop_commits": 0,
    }  # fmt: skip
    rewinds = [
        row["records"] for row in job.history["group_events"] if row["kind"] == "offset_rewind"
    ]
    assert rewinds == [800, 700, 600]
    windows = [
        row for row in job.history["lag_windows"] if row["group"] == "g" and row["partition"] == 0
    ]
    assert windows
    assert all(row["consumed"] is None or abs(row["consumed"]) <= 1000 for row in windows)


def test_what_a_window_consumed_is_exact_though_a_commit_is_newer_than_its_poll() -> None:
    job = Simulation()
    for number in range(20):
        job.tick([end(100 + number)], [commit(100 + number + number % 3)])
    windows = job.history["lag_windows"]
    pairs = [
        (before, after) for before, after in pairwise(windows) if after["consumed"] is not None
    ]
    assert pairs
    assert all(
        after["consumed"] == after["committed_offset"] - before["committed_offset"]
        for before, after in pairs
        if not after["rewound_records"]
    )


def test_many_commits_in_one_tick_do_not_overflow_their_sums() -> None:
    job = Simulation()
    job.tick(ENDS, [commit(100), commit(100, partition=1)])
    for _ in range(8):
        job.tick(ENDS, [commit(offset) for offset in (MAX_LONG, 0, MAX_LONG, 1, MAX_LONG, 2)])
    assert row_of(job)["committed_offset"] == 2
    assert all(value >= 0 for value in counters(job).values())
    for row in job.history["lag_windows"]:
        assert row["rewound_records"] >= 0


@pytest.mark.parametrize("offset", NEGATIVE)
@pytest.mark.parametrize("members", [True, False])
def test_a_negative_offset_is_no_commit_and_no_loss(offset: int, members: bool) -> None:
    job = run_ticks(offset, members=members)
    row = row_of(job)
    assert (row["status"], row["error"], row["lag"]) == ("no_commit", NEGATIVE_OFFSET, None)
    assert (row["committed_offset"], row["lost_records"], row["ahead_records"]) == (
        None,
        None,
        None,
    )
    assert row["commit_source_offset"] is not None
    assert (job.groups["g"]["status"], job.groups["g"]["lag"]) == ("ok", 883 + 900)
    assert counters(job)["lost"] == 0
    assert [
        row["from_offset"] for row in job.history["group_events"] if row["kind"] == "offset_deleted"
    ] == [100]
    job.tick(ENDS, [commit(300)])
    assert (row_of(job)["status"], row_of(job)["lag"]) == ("ok", 700)
    assert "offset_rewind" not in job.events()


def test_a_group_whose_only_commit_is_negative_has_a_row() -> None:
    job = Simulation()
    for _ in range(3):
        job.tick(ENDS, [commit(-1)] if job.poll_id == 0 else [])
    assert [(row["status"], row["error"]) for row in job.rows] == [("no_commit", NEGATIVE_OFFSET)]
    job.tick(ENDS, [commit(None)])
    assert job.rows == []


def truncated(*later: Record, end_at: int) -> tuple[Simulation, Row]:
    """Three commits, of which the offsets topic keeps those below a source offset; then later ones
    from there on.
    """
    job = Simulation()
    job.tick(ENDS, [commit(100), commit(110), commit(120)])
    job.tick(ENDS, truncated={0: end_at})
    between = row_of(job)
    job.next_offset = end_at
    job.tick(ENDS, list(later))
    return job, between


def test_after_a_truncation_of_the_offsets_topic_the_next_commit_counts() -> None:
    job, between = truncated(commit(105), end_at=1)
    assert (between["status"], between["error"], between["lag"]) == (
        "stale",
        COMMIT_TRUNCATED,
        None,
    )
    assert between["committed_offset"] == 120  # the last known
    assert (row_of(job)["status"], row_of(job)["committed_offset"], row_of(job)["lag"]) == (
        "ok",
        105,
        895,
    )


def test_a_commit_that_a_truncation_took_stays_unknown_until_the_next_one() -> None:
    job, _ = truncated(end_at=1)
    job.tick(ENDS)
    assert (row_of(job)["status"], row_of(job)["lag"]) == ("stale", None)
    assert job.groups["g"]["status"] == "partial"


def test_a_truncation_above_a_commit_does_not_concern_it() -> None:
    job, between = truncated(end_at=3)
    assert (between["status"], row_of(job)["status"], row_of(job)["lag"]) == ("ok", "ok", 880)


def test_group_records_count_after_a_truncation() -> None:
    job = Simulation()
    job.tick(ENDS, [generation(number, {"m": ("t",)}) for number in (1, 2, 3)])
    job.tick(ENDS, truncated={0: 1})
    job.next_offset = 1
    job.tick(ENDS, [generation(4, {"m": ("t",), "n": ("t",)})])
    assert (job.groups["g"]["generation"], job.groups["g"]["members"]) == (4, 2)


def test_after_a_tombstone_a_commit_belongs_to_the_topic_that_the_poll_shows() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick(
        [end(30, topic_id=ID_B)], [commit(60), commit(None), commit(5), commit(10)], seconds=600
    )
    row = job.row
    assert (row["topic_id"], row["current_topic_id"], row["status"], row["lag"]) == (
        ID_B,
        None,
        "ok",
        20,
    )
    assert "offset_rewind" not in job.events()


def test_a_commit_on_a_partition_without_one_belongs_to_the_topic_that_the_poll_shows() -> None:
    job = Simulation()
    job.tick([end(100)], [generation(1, {"m": ("t",)}), commit(50)])
    job.tick([end(100)], [commit(None)])
    assert (job.row["topic_id"], job.row["status"]) == (ID_A, "no_commit")
    job.tick([end(30, topic_id=ID_B)], [commit(10)])
    assert (job.row["topic_id"], job.row["status"], job.row["lag"]) == (ID_B, "ok", 20)


ANY = (
    st.integers(-(2**63), MAX_LONG)
    | st.sampled_from([*ABOVE_DOUBLES, *NEGATIVE, 0, 999, 1000, 1001])
    | st.none()
)


@pytest.mark.full
@pytest.mark.examples
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(ANY, max_size=4), min_size=1, max_size=8))
def test_whatever_one_group_commits_the_others_rows_are_as_without_it(
    ticks: list[list[int | None]],
) -> None:
    def run(*, with_odd: bool) -> Simulation:
        job = Simulation(window_seconds=20)
        job.tick(
            ENDS, [commit(5, group="other"), *([commit(100, group="odd")] if with_odd else [])]
        )
        for number, odd in enumerate(ticks):
            given = [commit(offset, group="odd") for offset in odd] if with_odd else []
            job.tick(ENDS, [*given, commit(6 + number, group="other")])
        return job

    def others(job: Simulation) -> dict[str, Any]:
        names = {name: rows for name, rows in job.history.items() if rows} | {
            "partition_status": job.rows, "group_status": list(job.groups.values())
        }  # fmt: skip
        place = {"commit_source_offset", "event_id", "source_offset"}  # other records came before
        kept = {}
        for name, rows in names.items():
            own = [row for row in rows if row["group"] == "other"]
            kept[name] = [{key: row[key] for key in row.keys() - place} for row in own]
        return {name: rows for name, rows in kept.items() if rows}

    job = run(with_odd=True)
    assert others(job) == others(run(with_odd=False))
    for row in [row for row in job.rows if row["group"] == "odd"]:
        assert (row["lag"] is not None) == (row["status"] == "ok")
        assert row["committed_offset"] is None or row["committed_offset"] >= 0
    for group in job.groups.values():
        assert all(
            value >= 0
            for each in group["topic_counters"] or ()
            for name, value in each.items()
            if name in COUNTED
        )
