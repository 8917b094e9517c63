"""What the rules on rebalances say of simulated groups whose records went through the job."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from diagnosis.rebalance_rows import WINDOWS, Life
from laggard.diagnosis.history.frames import GroupFrame
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules import assignment, clients, evictions, identity, rebalances, scaling
from laggard.diagnosis.rules.registry import rules_of
from laggard.diagnosis.signals.group import membership_of
from laggard.diagnosis.signals.identity import absences
from patience import some
from simulator.cluster import GROUP
from simulator.simulation import recall, run_through_laggard

RULES = (
    *rules_of(evictions),
    *rules_of(rebalances),
    *rules_of(assignment),
    *rules_of(clients),
    *rules_of(identity),
    *rules_of(scaling),
)
LIMITS = Parameters()
SEED = 2


@cache
def run(workload: str, seed: int) -> tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]:
    job = run_through_laggard(recall(workload, seed))
    status = next(row for row in job.tables["group_status"].to_pylist() if row["group"] == GROUP)
    rows = {
        name: [row for row in each if row.get("group") == GROUP]
        for name, each in job.history.items()
    }
    return rows, status


def frame_of(workload: str, seed: int) -> GroupFrame:
    """The group at the end of the workload; batches of catching up are none here."""
    rows, status = run(workload, seed)
    end = int(status["sampled_at"].timestamp() * 1000)
    rebalances, generations, members, events = (
        rows[name] for name in ("rebalances", "generations", "group_members", "group_events")
    )
    return GroupFrame(
        cluster="c",
        group=GROUP,
        window_seconds=60,
        windows=end - 60_000 * np.arange(WINDOWS, 0, -1),
        topics=(),
        facts=[None] * (WINDOWS - 1) + [status],
        rebalances=rebalances,
        generations=generations,
        members=members,
        events=events,
    )


def codes_of(workload: str, seed: int) -> set[str]:
    """Codes that hold at the end of the workload."""
    frame = frame_of(workload, seed)
    plain = Life().signals(member_count=frame.fact["members"], state=frame.fact["group_state"])
    signals = replace(plain, frame=frame, membership=membership_of(frame, LIMITS))
    return {each.code for rule in RULES for each in rule.check(signals) if each.state == "holds"}


@pytest.mark.examples
@pytest.mark.parametrize(
    ("workload", "expected", "possible"),
    some(
        [
            ("steady_state", set(), set()),
            ("clean_leave", set(), set()),
            ("crash", set(), set()),
            ("scale_out", set(), set()),
            ("scale_in", set(), set()),
            ("cooperative_join", set(), set()),
            ("static_restart", set(), set()),
            ("partitions_added", set(), set()),
            ("subscription_change", set(), set()),
            ("modern_join_leave", set(), set()),
            ("rolling_deploy", set(), {"NON_STICKY_MOVES"}),
            ("rolling_deploy_cooperative", set(), set()),
            ("crash_loop", {"CRASH_LOOP"}, {"NON_STICKY_MOVES"}),
            ("static_expired", {"STATIC_EXPIRED"}, {"TIMEOUT_TIGHT", "NON_STICKY_MOVES"}),
            ("static_duplicate", set(), set()),
            ("rebalance_storm", {"REBALANCE_STORM"}, set()),
            (
                "scale_oscillation",
                {"SCALE_OSCILLATION"},
                {"PING_PONG", "NON_STICKY_MOVES", "REBALANCE_STORM"},
            ),
            ("straggler", {"REBALANCE_STRAGGLER"}, {"NON_STICKY_MOVES"}),
            (
                "interrupted_sync",
                set(),
                set(),
            ),  # one rebalance of the first two minutes, and it ended
            ("assignor_change", set(), {"NON_STICKY_MOVES"}),
        ]
    ),
)
def test_a_workload_is_reported_by_its_codes(
    workload: str, expected: set[str], possible: set[str]
) -> None:
    found = codes_of(workload, SEED)
    assert expected <= found <= expected | possible


@pytest.mark.parametrize("workload", ["rolling_deploy", "rolling_deploy_cooperative"])
def test_a_rolling_deploy_of_four_is_one_deploy(workload: str) -> None:
    (found,) = membership_of(frame_of(workload, SEED), LIMITS).deploys
    assert (found.slots, found.replaced, found.batches) == (4, 4, 4)


def test_swings_are_scale_events_with_their_sizes() -> None:
    found = membership_of(frame_of("scale_oscillation", SEED), LIMITS).scale_events
    assert [(each.before, each.after) for each in found] == [(3, 6), (6, 3), (3, 6), (6, 3)]


def test_an_expired_absence_is_as_long_as_the_restart_took() -> None:
    (found,) = absences(membership_of(frame_of("static_expired", SEED), LIMITS))
    assert found.seconds == pytest.approx(70, abs=5 + 15 + 3)  # commit interval, tick and join


def test_who_left_with_the_new_protocol_is_a_departure() -> None:
    frame = frame_of("modern_downgrade", SEED)
    (found,) = [change for change in membership_of(frame, LIMITS).changes if change.left]
    assert (len(found.left), found.before, found.after) == (1, 4, 3)
    (record,) = [row for row in frame.generations if row["kind"] == "downgrade"]
    assert found.at == record["record_timestamp"]
