"""The simulator itself: repeatable, conserving, and true to when a coordinator writes what."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest

from simulator.clock import Clock, Streams
from simulator.cluster import GROUP
from simulator.offsets_log import OffsetsLog, partition_of
from simulator.producer import Arrivals, piecewise, steady
from simulator.records import commit
from simulator.simulation import Simulation, recall, simulate
from simulator.truth import Rebalance
from simulator.workloads import WORKLOADS

BRIEF = sorted(WORKLOADS.keys() - {"commit_intervals"})


def everything(simulation: Simulation) -> list[object]:
    return [
        [
            (each.partition, each.offset, each.timestamp_ms, *each.record[:2], each.is_visible)
            for each in simulation.records
        ],
        simulation.polls,
        simulation.truth.generations,
        simulation.truth.rebalances,
        simulation.truth.epochs,
        simulation.truth.positions,
    ]


def rebalances(workload: str, seed: int = 1) -> list[Rebalance]:
    """Without the one in which the group forms."""
    return [
        each
        for each in recall(workload, seed).truth.rebalances
        if each.before and any(each.before.values())
    ]


# repeatable


@pytest.mark.parametrize(
    "workload", ["rolling_deploy", "transactional", "modern_upgrade", "failover"]
)
def test_the_same_seed_gives_the_same_bytes(workload: str) -> None:
    assert everything(simulate(workload, 7)) == everything(simulate(workload, 7))


@pytest.mark.full
def test_another_process_gives_the_same_bytes() -> None:
    """Sets of strings come in another order there."""
    code = (
        "import hashlib; from simulator.simulation import simulate;"
        "records = [each for workload in ('cooperative_join', 'transactional', 'modern_mixed', "
        "'failover')"
        " for each in simulate(workload, 7).records];"
        "print(hashlib.sha256(repr([(each.offset, each.timestamp_ms, *each.record[:2]) for each "
        "in records]).encode())"
        ".hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": number},
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout
        for number in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


def test_another_seed_gives_other_bytes() -> None:
    assert everything(simulate("steady_state", 1)) != everything(simulate("steady_state", 2))


def test_drawing_from_one_stream_does_not_shift_another() -> None:
    alone, beside = Streams(1), Streams(1)
    beside("other").random()
    assert alone("one").random() == beside("one").random()


def test_arrivals_do_not_depend_on_who_asks_when() -> None:
    asked_once = Arrivals(0, 0, steady(5), Streams(1)("a"))
    asked_often = Arrivals(0, 0, steady(5), Streams(1)("a"))
    for now in range(0, 20_000, 7):
        asked_often.end_at(now)
    assert asked_once.end_at(20_000) == asked_often.end_at(20_000)


def test_a_record_was_produced_when_the_log_end_passed_it() -> None:
    log = Arrivals(0, 0, piecewise((0, 3.0), (5_000, 0.0), (9_000, 40.0)), Streams(3)("a"))
    for offset in range(log.end_at(20_000)):
        produced = log.produced_at(offset)
        assert produced is not None
        assert log.end_at(produced - 1) <= offset < log.end_at(produced)


# conserving


@pytest.mark.parametrize("workload", BRIEF)
def test_nothing_is_committed_that_was_not_there_or_not_processed(workload: str) -> None:
    highest: dict[tuple[str, str, int], int] = {}
    for positions in recall(workload, 1).truth.positions:
        for key, found in positions.items():
            highest[key] = max(highest.get(key, 0), found.processed or 0)
            assert (found.processed or 0) <= found.log_end_offset
            assert (found.committed_offset or 0) <= found.log_end_offset
            # commits of what nobody read
            if workload not in ("simple_committer", "group_deleted", "retention"):
                assert (found.committed_offset or 0) <= highest[key]


@pytest.mark.parametrize("workload", sorted(set(BRIEF) - {"transactional", "hanging_transaction"}))
def test_without_open_transactions_a_reader_knows_what_the_coordinator_knows(workload: str) -> None:
    for positions in recall(workload, 1).truth.positions:
        assert all(found.committed_offset == found.visible_offset for found in positions.values())


def test_an_open_transaction_hides_what_comes_after_it() -> None:
    simulation = recall("hanging_transaction", 1)
    hidden = [
        polled.at_ms
        for polled, positions in zip(simulation.polls, simulation.truth.positions, strict=True)
        if any(found.committed_offset != found.visible_offset for found in positions.values())
    ]
    (fault,) = (
        each["at_ms"] for each in simulation.truth.faults if each["fault"] == "hanging_transaction"
    )
    assert 50_000 < hidden[-1] - fault <= 60_000


def test_an_aborted_commit_is_never_seen() -> None:
    simulation = recall("transactional", 1)
    aborted = [each for each in simulation.records if not each.is_visible]
    assert aborted
    assert all(each.is_transactional for each in aborted)


def test_a_marker_leaves_a_hole_and_moves_the_last_stable_offset() -> None:
    log = OffsetsLog(Clock())
    log.append(3, [commit("g", ("t", 0), 5, 0)], producer_id=1)
    log.append(3, [commit("g", ("t", 1), 6, 0)])
    assert (log.last_stable(3), log.high_watermark(3), log.visible_offsets()) == (0, 2, {})
    log.end_transaction(3, 1, is_committed=False)
    assert (log.last_stable(3), log.high_watermark(3), log.visible_offsets()) == (
        3,
        3,
        {("g", "t", 1): 6},
    )


@pytest.mark.parametrize("workload", BRIEF)
def test_offsets_and_times_rise_in_every_partition(workload: str) -> None:
    records = recall(workload, 1).records
    for part in {each.partition for each in records}:
        own = [each for each in records if each.partition == part]
        assert all(
            one.offset < two.offset and one.timestamp_ms <= two.timestamp_ms
            for one, two in pairwise(own)
        )


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("test-group", 12), ("", 0), ("my-group", 12), ("analytics-cg", 15), ("orders-service", 17),
        ("polygenelubricants", 0), ("ä", 28), ("😀grp", 36),
    ],
)  # fmt: skip
def test_a_group_lies_where_kafka_puts_it(group: str, partition: int) -> None:
    assert partition_of(group) == partition


# what is written when


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize("workload", [name for name in BRIEF if not name.startswith("modern")])
def test_generations_follow_the_protocol(workload: str, seed: int) -> None:
    """The first record says nobody is there, numbers never fall, and only a replacement repeats
    one.
    """
    truth = recall(workload, seed).truth
    for group in {each.group for each in truth.generations}:
        own = [each for each in truth.generations if each.group == group]
        assert own[0].kind == ("sync" if group == "external" else "create")
        for before, now in pairwise(own):
            if now.kind == "tombstone":
                assert not before.members
            elif before.kind == "tombstone":
                assert (now.kind, now.generation) == ("create", 0)
            else:
                assert (now.generation or 0) - (before.generation or 0) >= (
                    now.kind != "replacement"
                )
            assert (now.leader in now.members) is (now.kind in ("sync", "downgrade", "replacement"))
        for each in own:
            given = [place for member in each.members.values() for place in member["assigned"]]
            assert len(given) == len(set(given))


def test_rounds_without_a_sync_leave_a_jump_of_the_generation() -> None:
    own = [each.generation or 0 for each in recall("interrupted_sync", 1).truth.generations]
    assert max(two - one for one, two in pairwise(own)) == 3


def test_an_empty_group_waits_three_seconds_and_longer_while_members_arrive() -> None:
    (first,) = (each for each in recall("steady_state", 1).truth.rebalances)
    assert 6_000 <= (first.end_ms or 0) - first.start_ms < 6_100
    (alone,) = (each for each in recall("simple_committer", 1).truth.rebalances)
    assert 3_000 <= (alone.end_ms or 0) - alone.start_ms < 3_100


def test_an_upgrade_writes_a_tombstone_and_goes_on_with_the_next_epoch() -> None:
    truth = recall("modern_upgrade", 1).truth
    last = truth.generations[-2]
    assert truth.generations[-1].kind == "tombstone"
    assert [each.epoch for each in truth.epochs[:2]] == [
        last.generation,
        (last.generation or 0) + 1,
    ]


def test_a_downgrade_goes_on_with_the_epoch_as_generation() -> None:
    truth = recall("modern_downgrade", 1).truth
    after = next(each for each in truth.generations if each.record_ms > truth.epochs[-1].start_ms)
    assert (after.kind, after.generation) == ("downgrade", truth.epochs[-1].epoch)


# causes, moves and pauses


@pytest.mark.parametrize(
    ("workload", "causes", "reasons"),
    [
        ("clean_leave", ["leave"], ["scale_in"]),
        ("crash", ["session_expiry"], ["crash"]),
        ("session_expiry", ["session_expiry", "join"], ["freeze"]),
        ("poll_interval_eviction", ["poll_interval", "join"], ["slow_batch"]),
        ("rolling_deploy", ["leave", "join"] * 4, ["deploy"] * 4),
        ("static_restart", [], []),
        ("static_expired", ["static_expiry", "join"], ["deploy"]),
        ("static_duplicate", [], []),
        ("scale_oscillation", ["join", "leave"] * 2, ["scale_in"] * 6),
        ("cooperative_join", ["join"], []),
        ("cooperative_crash", ["session_expiry"], ["crash"]),
        ("subscription_change", ["subscription_change"], []),
        ("partitions_added", ["topic_change"], []),
        ("modern_crash", ["join", "session_expiry"], ["crash"]),
        ("modern_slow", ["join", "join", "poll_interval", "join"], ["slow_batch"]),
        ("modern_partitions_added", ["join", "topic_change"], []),
    ],
)
def test_every_rebalance_knows_why(workload: str, causes: list[str], reasons: list[str]) -> None:
    found = rebalances(workload)
    assert [each.cause for each in found] == causes
    assert [why for each in found for _, why in each.left] == reasons


def test_a_storm_has_no_reason_but_its_leader() -> None:
    found = rebalances("rebalance_storm")
    assert len(found) > 20
    assert {(each.cause, each.moved, len(each.joined), len(each.left)) for each in found} == {
        ("leader_rejoin", 0, 0, 0)
    }


def test_another_assignor_is_a_cause_beside_the_restart_that_brings_it() -> None:
    found = [
        each.causes for each in rebalances("assignor_change") if "assignor_change" in each.causes
    ]
    assert found == [["leave", "assignor_change"]]


def test_a_rebalance_that_the_coordinator_did_not_survive_starts_again() -> None:
    (found,) = rebalances("failover")
    assert found.causes == ["join", "coordinator_move"]


def test_a_static_member_that_returns_in_time_is_no_rebalance() -> None:
    truth = recall("static_restart", 2).truth
    assert (len(truth.replacements), len(truth.rebalances)) == (2, 1)


def test_a_cooperative_scale_out_takes_two_rounds_and_stops_only_what_moves() -> None:
    (found,) = rebalances("cooperative_join")
    assert (len(found.generations), found.moved, found.necessary) == (2, 4, 4)
    assert sorted(found.pauses) == found.moved_partitions


def test_an_eager_rebalance_stops_every_partition() -> None:
    (found,) = rebalances("clean_leave")
    assert len(found.pauses) == 12
    for last_before, first_after in found.pauses.values():
        assert first_after is not None
        assert last_before < (found.end_ms or 0) < first_after


def test_the_partitions_of_a_crashed_member_pause_for_its_session() -> None:
    (found,) = rebalances("cooperative_crash")
    (dead,) = (slot for slot, _ in found.left)
    assert found.pauses.keys() == set(found.before[dead])
    assert all(20_000 < (after or 0) - before < 30_000 for before, after in found.pauses.values())


def test_without_a_commit_on_revoke_records_are_processed_again() -> None:
    def steps_back(workload: str) -> int:
        done = recall(workload, 1).truth.processed.values()
        return sum(two[1] < one[1] for positions in done for one, two in pairwise(positions))

    assert steps_back("clean_leave") == 0
    assert steps_back("replay_after_rebalance") > 0


def test_one_rebalance_is_put_on_record_for_members_that_join_and_leave_together() -> None:
    found = next(each for each in rebalances("straggler") if each.left)
    assert (found.causes, len(found.joined), [why for _, why in found.left]) == (
        ["join", "poll_interval"],
        1,
        ["slow_batch"],
    )
    assert found.group == GROUP
