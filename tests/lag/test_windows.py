"""Windows: what was counted, between which two ticks, and never twice."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.lag.tick import Tick
from patience import examples
from stream.simulation import ID_B, NOON, Record, Simulation, commit, end

MINUTE = timedelta(seconds=60)
Row = dict[str, Any]


def windows(job: Simulation) -> list[Row]:
    return sorted(job.history["lag_windows"], key=lambda row: row["window_start"])


def minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


@given(st.integers(0, 4 * 10**12), st.sampled_from([1, 7, 60, 90, 3600]))
def test_a_window_starts_on_a_whole_multiple_of_its_length(now_ms: int, seconds: int) -> None:
    now = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
    start = Tick("c", 1, 1, 1, now, seconds, True, False, False, False).window_start
    assert start.timestamp() % seconds == 0
    assert timedelta() <= now - start < timedelta(seconds=seconds)


# seconds since the tick before, records produced, offset moved by (None: no commit)
STEP = st.tuples(
    st.sampled_from([5, 10, 20, 45, 70, 200]), st.integers(0, 9), st.none() | st.integers(-3, 9)
)
Step = tuple[int, int, int | None]


def naive_windows(ticks: list[Row]) -> list[Row]:
    """The closed windows, from the ticks one by one."""
    starts = sorted({minute(tick["at"]) for tick in ticks} - {minute(ticks[0]["at"])})
    found = []
    for start in starts[:-1]:  # the last one is still open
        inside = [tick for tick in ticks if minute(tick["at"]) == start]
        before = [tick for tick in ticks if tick["at"] < start][-1]
        follows = before["at"] >= start - MINUTE
        rewound = sum(tick["rewound"] for tick in inside)
        last = inside[-1]
        produced = consumed = None
        if follows:
            produced = last["end"] - before["end"]
            consumed = None if rewound else last["committed"] - before["committed"]
        found.append(
            {
                "window_start": start,
                "window_end": start + MINUTE,
                "ticks": len(inside),
                "ok_ticks": len(inside),
                "lag_min": min(tick["lag"] for tick in inside),
                "lag_max": max(tick["lag"] for tick in inside),
                "lag": last["lag"],
                "produced": produced,
                "consumed": consumed,
                "commits": sum(tick["commits"] for tick in inside),
                "noop_commits": sum(tick["noops"] for tick in inside),
                "rewound_records": rewound,
            }
        )
    return found


@pytest.mark.examples
@settings(max_examples=examples(40))
@given(st.lists(STEP, max_size=25))
def test_windows_are_what_a_naive_count_of_the_ticks_gives(steps: list[Step]) -> None:
    job, log_end, committed = Simulation(), 1000, 500
    job.tick([end(log_end)], [commit(committed)])
    ticks = [{"at": job.now, "end": log_end, "committed": committed}]
    for seconds, produced, move in steps:
        log_end += produced
        moved = move or 0
        job.tick(
            [end(log_end)], [] if move is None else [commit(committed + moved)], seconds=seconds
        )
        committed += moved
        ticks.append(
            {
                "at": job.now,
                "end": log_end,
                "committed": committed,
                "lag": log_end - committed,
                "commits": int(move is not None),
                "noops": int(move == 0),
                "rewound": max(0, -moved),
            }
        )
    expected = naive_windows(ticks)
    assert (
        [{name: row[name] for name in expected[0]} for row in windows(job)] == expected
        if expected
        else True
    )
    assert len(windows(job)) == len(expected)


@pytest.mark.full
@pytest.mark.examples
@settings(max_examples=examples(40))
@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 9), st.integers(0, 9)), min_size=5, max_size=25
    )
)
def test_produced_and_consumed_add_up_over_adjacent_windows(
    steps: list[tuple[int, int, int]],
) -> None:
    job, log_end, committed = Simulation(), 1000, 500
    job.tick([end(log_end)], [commit(committed)])
    for seconds, produced, moved in steps:
        log_end, committed = log_end + produced, committed + moved
        job.tick([end(log_end)], [commit(committed)], seconds=seconds)
    rows = windows(job)
    for before, after in pairwise(rows):
        if after["window_start"] - before["window_start"] == MINUTE:
            assert after["log_end_offset"] - after["produced"] == before["log_end_offset"]
            assert after["committed_offset"] - after["consumed"] == before["committed_offset"]
        else:
            assert (after["produced"], after["consumed"]) == (None, None)


# what a tick brings to each of two keys: seconds, live or not, and a commit, a tombstone or nothing
# for each
CHAOS = st.tuples(
    st.sampled_from([5, 20, 45, 70, 130]),
    st.sampled_from([True, True, True, False]),
    st.lists(st.tuples(st.integers(0, 1), st.none() | st.integers(0, 50)), max_size=3),
    st.sampled_from(["answer", "error", "recreated", "nothing"]),
)


@pytest.mark.examples
@settings(max_examples=examples(40))
@given(st.lists(CHAOS, max_size=25))
def test_whatever_happens_a_key_has_one_row_a_window(steps: list[Any]) -> None:
    job = Simulation()
    for seconds, is_live, given_commits, answer in steps:
        records = [commit(offset, partition=part) for part, offset in given_commits]
        offset, error = (None, "TIMEOUT") if answer == "error" else (100, None)
        topic_id = {"topic_id": ID_B} if answer == "recreated" else {}
        ends = [end(offset, partition=part, error=error, **topic_id) for part in (0, 1)]
        job.tick([] if answer == "nothing" else ends, records, seconds=seconds, is_live=is_live)
    rows = windows(job)
    keys = Counter((row["partition"], row["topic_id"], row["window_start"]) for row in rows)
    assert not keys or max(keys.values()) == 1
    assert all(row["window_start"].second == 0 and row["ticks"] >= row["ok_ticks"] for row in rows)
    assert all((row["lag"] is not None) == (row["status"] == "ok") for row in rows)


def test_the_first_window_is_one_that_was_seen_from_its_start() -> None:
    job = Simulation(now=NOON + timedelta(seconds=20))
    for _ in range(10):
        job.tick([end(100)], [commit(50)])
    assert [row["window_start"] for row in windows(job)] == [NOON + MINUTE]


def test_a_key_that_appears_inside_a_window_joins_the_next() -> None:
    job = Simulation()
    records: list[Record] = []
    for number in range(20):
        records = [commit(50, partition=1)] if number == 8 else []
        job.tick([end(100), end(100, partition=1)], [commit(50)] if number == 0 else records)
    started = {
        part: min(row["window_start"] for row in windows(job) if row["partition"] == part)
        for part in (0, 1)
    }
    assert started == {0: NOON + MINUTE, 1: NOON + 2 * MINUTE}


def test_nothing_is_produced_across_a_hole() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(200)], seconds=60)
    job.tick([end(900)], seconds=600)
    job.tick([end(950)], seconds=60)
    assert [(row["produced"], row["arrival_rate"]) for row in windows(job)] == [
        (100, 100 / 60),
        (None, None),
    ]


def test_catching_up_closes_the_window_and_counts_nothing() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(200)], [commit(60)], seconds=60)
    job.tick([end(300)], [commit(70)], is_live=False)
    job.tick([end(400)], [commit(80)])
    (row,) = windows(job)
    assert (row["ticks"], row["commits"], row["log_end_offset"], row["committed_offset"]) == (
        1,
        1,
        200,
        60,
    )
    assert job.row["window_start"] is None


def test_work_done_while_catching_up_is_not_counted_in_the_first_live_window() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    # the commits up to 8900 are not read yet
    job.tick([end(9000)], [commit(60)], seconds=55, is_live=False)
    job.tick([end(9000)], [commit(8900)], seconds=55)  # nothing was consumed after 12:01:05
    job.tick([end(9000)], seconds=60)
    assert windows(job)[0]["consumed"] is None


def test_the_first_live_tick_has_no_consume_rate_made_of_the_backlog() -> None:
    job = Simulation()
    job.tick([end(9000)], [commit(60)], is_live=False)
    job.tick([end(9000)], [commit(8900)])
    assert job.row["consume_rate"] is None


def test_a_carried_log_end_is_no_base() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(100)])
    job.tick([end(None, error="TIMEOUT")], seconds=600, is_live=False)
    job.tick([end(7000)], seconds=60)
    job.tick([end(7000)], seconds=60)
    assert windows(job)[0]["produced"] is None


def test_a_retired_row_gets_the_row_of_its_last_window_and_leaves() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)], [commit(60)], seconds=60)
    job.tick([end(100)], [commit(None)])
    assert [(row["ticks"], row["commits"], row["committed_offset"]) for row in windows(job)] == [
        (1, 1, 60)
    ]
    assert job.rows == []
    assert job.events() == ["offset_deleted", "group_deleted"]


def test_a_key_that_returns_in_its_last_window_does_not_open_it_again() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)], seconds=60)
    job.tick([end(100)], [commit(None)])
    job.tick([end(100)], [commit(70)])
    job.tick([end(100)], seconds=60)
    assert len(windows(job)) == 1


def test_a_rewind_leaves_consumption_unknown_and_says_by_how_much() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)], [commit(80), commit(30)], seconds=60)
    job.tick([end(100)], seconds=60)
    (row,) = windows(job)
    assert (row["consumed"], row["rewound_records"], row["commits"]) == (None, 50, 2)


def test_a_rewind_between_two_ticks_is_counted_and_reported_once() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)], [commit(20)])
    (event,) = job.history["group_events"]
    assert (event["kind"], event["from_offset"], event["to_offset"], event["records"]) == (
        "offset_rewind",
        50,
        20,
        30,
    )
    assert job.row["consume_rate"] is None


def test_reading_the_same_commits_again_changes_nothing() -> None:
    job, again = Simulation(), Simulation()
    records = [commit(50), commit(70), commit(10, partition=1), commit(10, partition=1)]
    for each in (job, again):
        each.tick([end(100), end(100, partition=1)], records)
        each.next_offset = 0
    job.tick([end(100), end(100, partition=1)], seconds=60)
    again.tick([end(100), end(100, partition=1)], records, seconds=60)
    assert again.tables == job.tables


def test_one_row_per_key_though_two_key_versions_name_it() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(40, record_type=0), commit(50, record_type=1)])
    assert [(row["partition"], row["committed_offset"]) for row in job.rows] == [(0, 50)]


def test_a_window_in_which_its_topic_is_recreated_measures_only_the_new_one() -> None:
    job = Simulation()
    for second in range(0, 150, 10):  # up to the first ticks of a window, with a lag of 5
        job.tick(
            [end(1000 + second)], [commit(995 + second, at=NOON + timedelta(seconds=second + 10))]
        )
    for number in range(1, 20):  # more records than the old topic had
        new = end(5000 + 100 * number, topic_id=ID_B)
        job.tick(
            [new],
            [
                commit(
                    4900 + 100 * number,
                    topic_id=ID_B,
                    at=NOON + timedelta(seconds=150 + 10 * number),
                )
            ],
        )
    old, torn, whole = windows(job)[:3]
    assert old["topic_id"] != ID_B
    assert torn["topic_id"] == whole["topic_id"] == ID_B
    assert (torn["produced"], torn["consumed"], torn["arrival_rate"], torn["consume_rate"]) == (
        None,
    ) * 4
    assert (torn["lag_min"], torn["lag_max"], torn["lag_envelope"]) == (100, 100, 100)
    assert (whole["produced"], whole["consumed"]) == (600, 600)
