"""What windows say of lag at commits and of owners equals what the simulated brokers and
coordinators know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from patience import some
from simulator.score import milliseconds
from simulator.simulation import Laggard, Simulation, recall, run_through_laggard, ticks

Row = dict[str, Any]
Key = tuple[str, str, int, int]  # group, topic, partition, start of the window in ms
WINDOW_MS = 60_000
WINDOW = timedelta(milliseconds=WINDOW_MS)


def windows(job: Laggard) -> dict[Key, Row]:
    return {
        (row["group"], row["topic"], row["partition"], milliseconds(row["window_start"])): row
        for row in job.history["lag_windows"]
    }


def lags_at_commits(simulation: Simulation) -> Iterator[tuple[Key, int, int, int]]:
    """Of each commit read in a window: the key, the true lag at it, by the polls' line, and the
    rise in that gap.
    """
    before: dict[tuple[str, int], int] = {}
    before_ms = 0
    for _, polled, records in ticks(simulation):
        ends = {(row["topic"], row["partition"]): row["log_end_offset"] for row in polled.positions}
        for written in records:
            key, offset = written.record.commit, written.record.committed_offset
            if key is None or offset is None or key[1:] not in before:
                continue
            low, high = before[key[1:]], ends[key[1:]]
            share = (written.timestamp_ms - before_ms) / (polled.at_ms - before_ms)
            truth = simulation.logs[key[1:]].end_at(written.timestamp_ms) - offset
            yield (
                (*key, polled.at_ms // WINDOW_MS * WINDOW_MS),
                truth,
                round(low + share * (high - low)) - offset,
                high - low,
            )
        before, before_ms = ends, polled.at_ms


@pytest.mark.examples
@pytest.mark.parametrize(
    "workload", some(["steady_state", "commit_intervals", "rolling_deploy", "modern_slow", "crash"])
)
def test_the_envelope_is_the_smallest_lag_at_a_commit(workload: str) -> None:
    simulation = recall(workload, 1)
    truths, lines, rises = defaultdict(list), defaultdict(list), defaultdict(list)
    for key, truth, line, rise in lags_at_commits(simulation):
        truths[key].append(truth)
        lines[key].append(line)
        rises[key].append(rise)
    compared = exact = 0
    for key, row in windows(run_through_laggard(simulation)).items():
        if key not in truths:
            assert row["lag_envelope"] is None
            continue
        # of the commits between two ticks only the first and the last are known
        assert max(0, min(lines[key])) <= row["lag_envelope"] <= max(0, *lines[key])
        assert abs(row["lag_envelope"] - max(0, min(truths[key]))) <= max(rises[key])
        exact += row["lag_envelope"] == max(0, min(lines[key]))
        compared += 1
    assert exact > 0.5 * compared > 0


def owners_by_record(simulation: Simulation) -> dict[tuple[int, int], dict[tuple[str, int], str]]:
    """Place of a classic generation's record -> partition -> member id."""
    owners: dict[tuple[int, int], dict[tuple[str, int], str]] = {}
    for each in simulation.truth.generations:
        owners[each.source_partition, each.source_offset] = {
            tuple(place): member
            for member, row in each.members.items()
            for place in row["assigned"]
        }
    return owners


@pytest.mark.examples
@pytest.mark.parametrize(
    "workload", some(["rolling_deploy", "static_restart", "scale_in", "crash"])
)
def test_the_owner_is_who_the_newest_generation_gave_the_partition(workload: str) -> None:
    simulation = recall(workload, 1)
    polls = sorted(each.at_ms for each in simulation.polls)
    held = owners_by_record(simulation)
    rows = windows(run_through_laggard(simulation))
    changes = 0
    for (group, topic, partition, start_ms), row in rows.items():
        last_ms = max(at for at in polls if at < start_ms + WINDOW_MS)
        assert milliseconds(row["sampled_at"]) == last_ms
        generations = [
            each
            for each in simulation.truth.generations
            if each.group == group and each.record_ms <= last_ms
        ]
        newest = max(generations, key=lambda each: (each.record_ms, each.source_offset))
        owner = held[newest.source_partition, newest.source_offset].get((topic, partition))
        assert (row["owner"], row["generation"]) == (
            owner,
            None if owner is None else newest.generation,
        )
        assert (row["slot"] is None) == (owner is None)
        changes += owner != rows.get((group, topic, partition, start_ms - WINDOW_MS), {}).get(
            "owner", owner
        )
    assert changes > 0


def test_slots_are_named_as_rebalances_name_them() -> None:
    job = run_through_laggard(recall("rolling_deploy", 1))
    named = {
        slot
        for row in job.history["generations"]
        for slot in (*(row["joined"] or ()), *(row["replaced"] or ()))
    }
    named |= {row["slot"] for row in job.history["group_members"]}
    found = {row["slot"] for row in job.history["lag_windows"]} - {None}
    assert found
    assert found <= named


@pytest.mark.parametrize(
    "workload",
    [
        "steady_state",
        "rolling_deploy",
        "crash",
        "replay_after_rebalance",
        "modern_slow",
        "retention",
    ],
)
def test_a_group_that_reads_what_it_commits_skips_nothing(workload: str) -> None:
    events = run_through_laggard(recall(workload, 1)).history["group_events"]
    assert [row for row in events if row["kind"] == "offset_skip"] == []


def test_each_group_has_one_row_a_window_whose_states_fill_it() -> None:
    rows = run_through_laggard(recall("crash", 1)).history["group_history"]
    starts = {(row["group"], row["window_start"]): row for row in rows}
    assert len(starts) == len(rows)
    followed = [row for row in rows if (row["group"], row["window_start"] - WINDOW) in starts]
    assert followed
    assert {sum(seconds for _, seconds in row["state_seconds"]) for row in followed} == {60.0}
