"""The records of KIP-848 groups, folded as a reader would, tell the simulated epochs, states and
owners.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from laggard.wire.decode import decode
from simulator.simulation import Simulation, recall
from simulator.workloads import WORKLOADS

MODERN = [workload for workload in WORKLOADS if workload.startswith("modern")]
SEEDS = (1, 2)
State = dict[int, dict[str, Any]]  # record type -> member id, or "" -> value


def folded(simulation: Simulation) -> Iterator[tuple[int, State]]:
    """The state after each record of types 3 to 8, with the record's time."""
    state: State = {number: {} for number in range(3, 9)}
    for written in simulation.records:
        found = decode(written.record.key, written.record.value)
        assert found.outcome in ("record", "tombstone")
        if found.record_type in state and found.key is not None:
            member = found.key.get("member_id", "")
            if found.value is None:
                state[found.record_type].pop(member, None)
            else:
                state[found.record_type][member] = found.value
            yield written.timestamp_ms, state


def owners(value: dict[str, Any], *names: str) -> list[tuple[str, int]]:
    topics = [each for name in names for each in value[name]]
    return [(each["topic_id"], place) for each in topics for place in each["partitions"]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workload", MODERN)
def test_no_partition_ever_has_two_owners(workload: str, seed: int) -> None:
    for _, state in folded(recall(workload, seed)):
        held = [
            place
            for value in state[8].values()
            for place in owners(value, "assigned_partitions", "partitions_pending_revocation")
        ]
        assert len(held) == len(set(held))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workload", MODERN)
def test_the_brokers_rule_finds_the_end_of_every_epoch(workload: str, seed: int) -> None:
    """Stable: no epoch without a target, and every member at it in state 0."""
    simulation = recall(workload, seed)
    is_stable_at: dict[int, int] = {}
    for now, state in folded(simulation):
        epoch, target = state[3].get(""), state[6].get("")
        if not epoch or not target or not state[8] or state[5].keys() != state[8].keys():
            continue
        numbers = {value["member_epoch"] for value in state[8].values()}
        is_reached = numbers == {epoch["epoch"]} == {target["assignment_epoch"]}
        if is_reached and all(value["state"] == 0 for value in state[8].values()):
            is_stable_at.setdefault(epoch["epoch"], now)
    epochs = [each for each in simulation.truth.epochs if each.members and not each.is_superseded]
    ended = {each.epoch: each.end_ms for each in epochs if each.end_ms}
    assert is_stable_at == ended


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workload", MODERN)
def test_members_and_assignments_are_those_of_the_truth(workload: str, seed: int) -> None:
    simulation = recall(workload, seed)
    ended = [
        each for each in simulation.truth.epochs if each.kind == "epoch" and not each.is_superseded
    ]
    ends = {each.end_ms: each for each in ended if each.end_ms}
    last = {
        now: {name: len(owners(value, "assigned_partitions")) for name, value in state[8].items()}
        for now, state in folded(simulation)
    }
    for end_ms, epoch in ends.items():
        assert last[end_ms] == {name: len(held) for name, held in epoch.assigned.items()}


def test_brokers_write_the_classic_metadata_of_every_member_as_null() -> None:
    written = next(
        each for each in recall("modern_crash", 1).records if each.record.key[:2] == b"\0\5"
    )
    assert (written.record.value or b"").endswith(b"\1\0\1\0")
