"""Rows of `rebalances` reach their targets on simulated groups, kind of workload by kind of
workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from patience import some
from simulator.compare import compare_rebalances
from simulator.logical import find_logical
from simulator.simulation import Laggard, compacted, recall, simulate, ticks
from simulator.watch import Watched, watch, watch_beside

SEED = 1
KINDS = {
    "planned": (
        "clean_leave",
        "scale_in",
        "cooperative_join",
        "partitions_added",
        "assignor_change",
    ),
    "deploys": ("rolling_deploy", "modern_upgrade"),
    "faults": ("session_expiry", "poll_interval_eviction", "straggler", "interrupted_sync"),
    "static": ("static_expired",),
    "coordinator": (
        "failover_in_rebalance",
        "hanging_transaction",
        "simple_committer",
        "group_deleted",
    ),
    "modern": ("modern_join_leave", "modern_slow", "modern_partitions_added", "modern_downgrade"),
}
TARGETS = {
    "bounds": 1.0,
    "sync": 1.0,
    "moved": 1.0,
    "start": 0.9,
    "cause": 0.98,
    "reason": 0.9,
    "pause": 0.95,
    "rank": 0.95,
}  # share that must be right, of what is reported


@pytest.mark.examples
@pytest.mark.parametrize("kind", some(KINDS))
def test_the_rows_are_right(kind: str) -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for workload in KINDS[kind]:
        found, sentences = compare_rebalances(watch(recall(workload, SEED)))
        counts, wrong = counts + found, wrong + sentences
    assert counts["true"] == counts["row right"] > 0, wrong
    assert counts["missing"] == counts["invented"] == 0, wrong
    for what, share in TARGETS.items():
        reported = counts[f"{what} right"] + counts[f"{what} wrong"]
        assert counts[f"{what} right"] >= share * reported, wrong
    assert counts["cause unknown"] <= 0.1 * counts["true"], wrong
    assert counts["cause wrong"] <= 0.03 * counts["true"], wrong


def test_of_the_short_pauses_of_a_storm_the_greater_part_is_seen() -> None:
    """Thirty rounds of three seconds: each pause is shorter than the commit interval, and ends
    within a batch.
    """
    simulation = recall("rebalance_storm", SEED)
    run = watch(simulation)
    storm = find_logical(simulation.truth)[1]
    (row,) = (row for row in run.history["rebalances"] if list(row["generations"]) == storm.numbers)
    assert len(storm.parts) > 20
    for pause in run.closed[row["rebalance_id"]].pauses:
        seconds = sum((first or 0) - last for last, first in storm.pauses[pause.place]) / 1000
        assert seconds / 2 < (pause.seconds or 0) < seconds + 5


@pytest.mark.full
@pytest.mark.parametrize(
    "workload", ["two_groups_failover", "modern_events", "subscription_change"]
)
def test_a_run_beside_others_is_recorded_as_alone(workload: str) -> None:
    alone, beside = (
        watch(simulate(workload, SEED, mark=f"-{SEED}")),
        watch_beside(workload, [SEED + 1, SEED])[1],
    )
    assert len(alone.history["generations"]) > 2
    for table in ("generations", "group_members", "rebalances", "group_events"):
        rows = [
            [row for row in run.history[table] if row["group"] is not None]
            for run in (alone, beside)
        ]
        assert rows[0] == rows[1]
    assert compare_rebalances(alone) == compare_rebalances(beside)


# the comparison can fail

Rows = list[dict[str, Any]]


def _later(seconds: float, *names: str) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        for name in names:
            rows[1][name] += (
                timedelta(seconds=seconds) if name.startswith(("started", "ended")) else seconds
            )

    return change


def _put(**columns: object) -> Callable[[Rows], None]:
    return lambda rows: rows[1].update(columns)


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        (lambda rows: rows.pop(1), {"missing"}),
        (lambda rows: rows.append(rows[1] | {"generations": [9]}), {"missing", "invented"}),
        (_put(generations=[1, 2]), {"missing", "invented"}),
        (_later(1, "ended_at"), {"missing", "invented"}),
        (_put(cause="leader_rejoin"), {"cause wrong"}),
        (_put(cause="unknown"), {"cause unknown"}),
        (_put(cause_posterior=[("poll_timeout", 0.9), ("crash", 0.1)]), {"reason wrong"}),
        (_put(moved=0), {"moved wrong"}),
        (_later(-1, "started_low", "started_high"), {"bounds wrong"}),
        (_later(-20, "started_est"), {"start wrong"}),
        (_later(0.001, "sync_seconds"), {"sync wrong"}),
        (_later(30, "pause_p95_seconds"), {"rank wrong"}),
    ],
    ids=range(12),
)
def test_the_comparison_sees_a_wrong_row(change: Callable[[Rows], None], noticed: set[str]) -> None:
    run = _watched()
    rows = [dict(row) for row in run.history["rebalances"]]
    change(rows)
    counts, wrong = compare_rebalances(replace(run, history={"rebalances": rows}))
    faults = {
        name
        for name in counts
        if counts[name] and name.endswith(("wrong", "unknown", "missing", "invented"))
    }
    assert faults == noticed
    assert wrong


def test_the_comparison_sees_a_wrong_pause() -> None:
    run = _watched()
    row = run.history["rebalances"][1]
    found = run.closed[row["rebalance_id"]]
    pauses = tuple(
        replace(pause, excess_seconds=pause.excess_seconds + 30) for pause in found.pauses
    )
    closed = {**run.closed, row["rebalance_id"]: replace(found, pauses=pauses)}
    counts, _ = compare_rebalances(replace(run, closed=closed))
    assert counts["pause wrong"] == len(pauses)


@cache
def _watched() -> Watched:
    """A workload with one rebalance after the first, all of it right."""
    run = watch(recall("clean_leave", SEED))
    counts, wrong = compare_rebalances(run)
    assert (counts["true"], wrong) == (2, [])
    return run


# history


def test_of_compacted_history_nothing_is_evaluated() -> None:
    simulation, late = recall("rolling_deploy", SEED), Laggard()
    late.tick(simulation.polls[-1], compacted(simulation.records), is_caught_up=False)
    late.tick(replace(simulation.polls[-1], at_ms=simulation.polls[-1].at_ms + 700_000), [])
    (row,) = late.history["rebalances"]
    assert (row["cause"], row["moved"], row["paused_partitions"], row["joined"]) == (
        "unknown",
        None,
        None,
        None,
    )
    assert "bootstrap" in row["flags"]


def test_what_comes_after_history_is_evaluated() -> None:
    simulation, late = recall("rolling_deploy", SEED), Laggard()
    whole = {row["rebalance_id"]: row for row in watch(simulation).history["rebalances"]}
    for number, polled, records in ticks(simulation):
        late.tick(polled, records, is_caught_up=number > 12)
    rows = late.history["rebalances"]
    flags = ["bootstrap" in row["flags"] for row in rows]
    assert flags == sorted(flags, reverse=True)
    assert 0 < sum(flags) < len(flags)
    for row, is_of_history in zip(rows, flags, strict=True):
        assert row["cause"] == ("unknown" if is_of_history else whole[row["rebalance_id"]]["cause"])
