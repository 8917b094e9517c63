"""A kill -9 in a batch and a restart, both under traffic, lose nothing, count nothing twice, and
leave named gaps.
"""

import itertools
import json
from pathlib import Path

import pytest

from e2e.conftest import Resumed
from e2e.kit import MAX_AGE, Row
from e2e.oracle import generations
from e2e.test_first_run import check_lag_equals_tool, check_last_commits, check_windows
from laggard.tables.readers import table_uri
from laggard.tables.schema.schemas import TABLES
from laggard.tables.upkeep.maintenance import read_done
from patience import patient

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e]


def ticks(resumed: Resumed) -> list[Row]:
    return sorted(
        (row for row in resumed.batches if row["kind"] != "gap"), key=lambda row: row["batch_id"]
    )


def test_sigterm_ends_the_job_with_code_0_within_20_seconds(resumed: Resumed) -> None:
    for code, seconds in (resumed.stopped, resumed.stopped_again):
        assert code == 0, resumed.place.tail()
        assert seconds < patient(20)


def test_the_batch_that_was_killed_is_made_again_and_its_windows_are_written_once(
    resumed: Resumed,
) -> None:
    before = resumed.killed_after
    [again] = [row for row in ticks(resumed) if row["batch_id"] == before["batch_id"] + 1]
    version = before["table_versions"]["lag_windows"] + 1
    log = resumed.place.tables / "lag_windows" / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    [written_at] = [
        action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action
    ]
    [transaction] = [action["txn"] for action in actions if "txn" in action]

    assert transaction["version"] == again["batch_id"], resumed.place.tail()
    assert written_at < again["started_at"].timestamp()  # by the run that was killed
    assert again["table_versions"]["lag_windows"] == version
    assert again["source_from"] == before["source_to"]


def test_tables_are_maintained_beside_the_ticks(resumed: Resumed) -> None:
    done = read_done(str(resumed.place.tables))
    assert set(done) == set(TABLES), resumed.place.tail()
    entries = Path(table_uri(str(resumed.place.tables), "batches"), "_delta_log").glob("*.json")
    assert any('"compaction"' in entry.read_text() for entry in entries), resumed.place.tail()
    newest = resumed.view.batch["table_versions"]
    assert all(resumed.view.rows(name) is not None for name in newest)


def test_each_batch_starts_where_the_one_before_ended_across_the_restarts(resumed: Resumed) -> None:
    rows = ticks(resumed)
    numbers = [row["batch_id"] for row in rows]
    assert numbers == list(range(len(rows))), resumed.place.tail()

    assert all(
        before["source_to"] == after["source_from"] for before, after in itertools.pairwise(rows)
    )
    for last in (resumed.killed_after, resumed.last_before):
        first_after = rows[last["batch_id"] + 1]
        assert first_after["source_from"] == last["source_to"]
    assert (
        rows[resumed.killed_after["batch_id"] + 1]["checkpoint_id"]
        == resumed.killed_after["checkpoint_id"]
    )


def test_every_visible_record_was_read_once(resumed: Resumed) -> None:
    rows = ticks(resumed)
    read_to = rows[-1]["source_to"]
    visible = [each for each in resumed.dumped if each.offset < read_to[each.partition]]

    assert sum(row["decoded"] for row in rows) == sum(each.data is not None for each in visible), (
        resumed.place.tail()
    )
    assert sum(row["tombstones"] for row in rows) == sum(each.data is None for each in visible)
    assert (
        sum(row["records"] for row in rows)
        == len(visible)
        == sum(rows[-1]["records_total"].values())
    )
    assert rows[-1]["batches_total"] == len(rows)


def test_windows_and_open_accumulators_add_up_to_the_commits_made(resumed: Resumed) -> None:
    assert resumed.traffic.commits > 50

    for number in range(4):
        key = ("counted", "orders", number)
        closed = sum(
            row["commits"]
            for row in resumed.view.windows
            if (row["group"], row["topic"], row["partition"]) == key
        )
        status = resumed.view.partitions[key]
        assert closed + status["window_commits"] == resumed.traffic.commits, resumed.place.tail()
        assert status["committed_offset"] == resumed.traffic.position


def test_windows_are_contiguous_or_a_gap_row_says_why(resumed: Resumed) -> None:
    gaps = [row for row in resumed.batches if row["kind"] == "gap"]

    # a start that takes less than a window leaves no gap
    *after_the_kill, down = sorted(
        (gap for gap in gaps if gap["gap_reason"] == "job_down"), key=lambda gap: gap["gap_from"]
    )
    assert len(after_the_kill) <= 1, resumed.place.tail()
    outages = [
        *((gap, resumed.killed_after) for gap in after_the_kill),
        (down, resumed.last_before),
    ]
    for gap, last in outages:
        # a batch that was cut off is made again with its own poll: observed is what that one saw
        polled = {
            row["polled_at"] for row in resumed.batches if row["batch_id"] <= last["batch_id"] + 1
        }
        assert gap["gap_from"] >= last["polled_at"]
        assert gap["gap_from"] in polled
    check_windows(resumed.view.windows, gaps, resumed.place.tail())


def test_consumed_adds_up_inside_each_unbroken_row_of_windows(resumed: Resumed) -> None:
    rows = sorted(
        (row for row in resumed.view.windows if (row["group"], row["partition"]) == ("counted", 0)),
        key=lambda row: row["window_start"],
    )
    for before, after in itertools.pairwise(rows):
        if before["window_end"] != after["window_start"]:
            assert after["consumed"] is None, after
            assert after["produced"] is None, after
        else:
            assert after["consumed"] == after["committed_offset"] - before["committed_offset"], (
                resumed.place.tail()
            )
            assert after["produced"] == after["log_end_offset"] - before["log_end_offset"]


def test_after_the_restart_the_tables_equal_kafkas_tools_again(resumed: Resumed) -> None:
    check_lag_equals_tool(resumed.view.partitions, resumed.described, resumed.place.tail())
    check_last_commits(
        resumed.view.partitions, resumed.view.read(resumed.dumped), resumed.place.tail()
    )


def test_generations_are_written_once_across_the_restart(resumed: Resumed) -> None:
    rows = [
        (row["source_partition"], row["source_offset"]) for row in resumed.view.rows("generations")
    ]

    reported = generations(resumed.view.read(resumed.dumped))
    assert sorted(rows) == [(each.partition, each.offset) for each in reported]


def test_lag_disappears_from_the_exporter_when_the_job_is_down(resumed: Resumed) -> None:
    late = [samples for age, samples in resumed.scrapes_while_down if age > MAX_AGE + 1]
    assert late

    for samples in late:
        assert not [
            name
            for name in samples
            if name.startswith(("laggard_group_lag", "laggard_partition_lag"))
        ]
        assert not [name for name in samples if name.startswith(("laggard_group",
        "laggard_partition", "laggard_topic"))
                    and name != "laggard_groups"]  # fmt: skip
        assert list(samples["laggard_ready"].values()) == [0.0]
        assert {
            dict(key)["laggard_not_ready"]
            for key, value in samples["laggard_not_ready"].items()
            if value
        } == {"stale"}
        assert list(samples["laggard_batch_id"].values()) == [resumed.last_before["batch_id"]]


def test_a_missing_checkpoint_is_made_again_from_the_tables(resumed: Resumed) -> None:
    before = resumed.last_before
    rows = sorted(
        (row for row in resumed.batches if row["kind"] != "gap"),
        key=lambda row: int(row["batch_id"]),
    )
    after = [row for row in rows if row["batch_id"] > before["batch_id"]]

    assert [row["batch_id"] for row in rows] == list(range(len(rows)))
    assert before["checkpoint_id"] not in {row["checkpoint_id"] for row in after}
    assert len({row["checkpoint_id"] for row in after}) == 1
    assert dict(after[0]["source_from"]) == dict(before["source_to"])


def test_every_closed_window_is_evaluated_once_and_none_is_left_out_across_the_restart(
    resumed: Resumed,
) -> None:
    rows = resumed.place.rows("group_windows")
    newest = max(row["window_start"] for row in resumed.place.rows("finding_state"))
    evaluated = [
        (row["group"], row["topic"], row["window_start"])
        for row in rows
        if row["window_start"] <= newest
    ]
    # cut off by the stop
    assert len({row["window_start"] for row in rows if row["window_start"] > newest}) <= 1
    closed = {
        row["window_start"]
        for row in resumed.place.rows("group_history")
        if row["window_start"] <= newest
    }
    recorded = {
        (row["group"], row["topic"], row["window_start"])
        for row in resumed.place.rows("lag_windows")
        if row["window_start"] in closed
    }

    assert len(evaluated) == len(set(evaluated))
    assert set(evaluated) == recorded
    assert newest > resumed.last_before["polled_at"]
    assert "RULE_FAILED" not in {row["code"] for row in resumed.place.rows("findings")}
    assert "the diagnosis stopped" not in resumed.place.log.read_text(), resumed.place.tail()


def test_the_audit_finds_no_wrong_row_across_a_kill_and_two_restarts(resumed: Resumed) -> None:
    checked = resumed.place.audit()
    assert {code for code, rows in checked.items() if not rows} == {"I9", "I10"}
