"""Every scenario does what it says, seen from inside the simulation, without any
code of laggard's.
"""

from __future__ import annotations

from functools import cache

import pytest

from scenarios.catalogue import SCENARIOS
from scenarios.cluster import ScenarioCluster
from scenarios.labels import ALARMS, CODES, VERDICTS
from scenarios.runs import Run, simulate
from simulator.records import TopicPartition


@cache
def run(name: str, seed: int = 3) -> Run:
    return simulate(SCENARIOS[name], seed)


def unprocessed(at: Run, minute: float) -> dict[int, int]:
    """Records of the main topic that the first group had not processed at a minute,
    by partition.
    """
    cluster, now_ms = at.cluster, at.cluster.at_ms(minute)
    logs = cluster.brokers.topics[cluster.main].logs
    place = [(cluster.main, part) for part in range(len(logs))]
    return {
        part: logs[part].end_at(now_ms)
        - (cluster.truth.processed_at(cluster.name(), place[part], now_ms) or 0)
        for part in range(len(logs))
    }


def processed(at: Run, begin: float, end: float) -> float:
    """Records per second that the first group got done between two minutes."""
    cluster = at.cluster
    places = [
        (cluster.main, part) for part in range(len(cluster.brokers.topics[cluster.main].logs))
    ]

    def done(minute: float) -> int:
        return sum(
            cluster.truth.processed_at(cluster.name(), place, cluster.at_ms(minute)) or 0
            for place in places
        )

    return (done(end) - done(begin)) / (60 * (end - begin))


def begins(at: Run) -> float:
    return min(must.minute for must in at.labels.must)


@pytest.mark.parametrize("name", SCENARIOS)
def test_labels_of_a_scenario_do_not_contradict_each_other(name: str) -> None:
    scenario = SCENARIOS[name]
    for seed in range(4):
        labels = scenario.workload(ScenarioCluster(seed))
        must = {each.code for each in labels.must}
        assert must | labels.may | labels.never | labels.primary <= CODES
        assert not must & labels.never
        assert not labels.may & labels.never
        assert labels.primary <= must | labels.may
        assert {verdict for each in labels.expects for verdict in each.verdicts} <= VERDICTS
        times = [each.minute for each in labels.must] + [
            m for each in labels.expects for m in (each.begin, each.end)
        ]
        assert all(5 < minute <= labels.minutes for minute in times)
        assert all(each.begin + 2 < each.end for each in labels.expects)
        if scenario.is_healthy:
            assert not must & ALARMS


@pytest.mark.parametrize("name", ["SC03b", "SC20"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_run(name: str) -> None:
    one, again, other = (
        [
            (each.offset, each.timestamp_ms, each.record)
            for each in simulate(SCENARIOS[name], seed).simulation.records
        ]
        for seed in (5, 5, 6)
    )
    assert one == again
    assert one != other


def test_seeds_vary_the_size_of_a_group() -> None:
    sizes = set()
    for seed in range(12):
        cluster = ScenarioCluster(seed)
        SCENARIOS["SC06"].workload(cluster)
        sizes.add(len(cluster.brokers.topics[cluster.main].logs))
    assert len(sizes) >= 3


def test_in_a_shortage_members_do_all_they_can_and_lag_grows_on_every_partition() -> None:
    at = run("SC01")
    begin, end = begins(at) + 2, at.labels.minutes
    members = at.cluster.alive()
    capacity = sum(member.capacity for member in members)
    assert processed(at, begin, end) == pytest.approx(capacity, rel=0.02)
    before, after = unprocessed(at, begin), unprocessed(at, end)
    assert all(after[part] > before[part] + 1000 for part in after)


@pytest.mark.parametrize("name", ["SC03a", "SC03b", "SC03c"])
def test_hot_partitions_alone_lag(name: str) -> None:
    at = run(name)
    hot = at.labels.must[0].partitions
    left = unprocessed(at, at.labels.minutes)
    assert sum(left[part] for part in hot) > 0.9 * sum(left.values())
    assert min(left[part] for part in hot) > 10 * max(
        left[part] for part in left if part not in hot
    )


@pytest.mark.parametrize("name", ["SC06", "SC07"])
def test_only_partitions_of_the_slow_lag(name: str) -> None:
    at = run(name)
    slow = [member for member in at.cluster.alive() if member.capacity < member.config.capacity]
    left = unprocessed(at, at.labels.minutes)
    own = {part for member in slow for _, part in member.positions}
    assert 0 < len(own) <= len(left) / 2
    assert min(left[part] for part in own) > 5 * max(left[part] for part in left if part not in own)


def test_a_hanging_member_moves_nothing_and_stays_in_the_group() -> None:
    at = run("SC10")
    begin, end = begins(at), at.labels.minutes
    stuck = [part for part, count in unprocessed(at, end).items() if count > 5000]
    places = {(at.cluster.main, part) for part in stuck}
    holders = {member for member in at.cluster.alive() if places & member.positions.keys()}
    assert len(holders) == 1
    assert places == set(holders.pop().positions)
    assert not [
        each for each in at.cluster.truth.rebalances if each.start_ms > at.cluster.at_ms(begin - 1)
    ]


def test_a_paused_partition_commits_the_same_offset_while_its_siblings_move() -> None:
    at = run("SC11")
    (part,) = at.labels.must[0].partitions
    since = at.cluster.at_ms(begins(at) + 1)
    last: dict[TopicPartition, set[int]] = {}
    for each in at.simulation.records:
        if each.timestamp_ms > since and each.record.commit is not None:
            last.setdefault(each.record.commit[1:], set()).add(each.record.committed_offset or 0)
    assert len(last[at.cluster.main, part]) == 1
    assert all(len(offsets) > 20 for place, offsets in last.items() if place[1] != part)


def test_nobody_gets_past_the_poison_pill_and_owners_are_evicted_for_it() -> None:
    at = run("SC12")
    (part,) = at.labels.must[0].partitions
    offset, _ = at.cluster.world.poison[at.cluster.main, part]
    assert at.cluster.coordinator.committed[at.cluster.name(), at.cluster.main, part][0] <= offset
    put_out = [each for each in at.cluster.truth.rebalances if "poll_interval" in each.causes]
    assert len(put_out) >= 4


def test_a_deploy_replaces_every_slot_once() -> None:
    at = run("SC17")
    hosts = [member.config.host for member in at.cluster.members]
    assert len(set(hosts)) == len(hosts)
    assert len(hosts) == 2 * len(at.cluster.alive())
    assert all(
        host.startswith("/10.2.") for host in (member.config.host for member in at.cluster.alive())
    )


def test_static_restarts_make_no_rebalance() -> None:
    at = run("SC18")
    first_join = at.cluster.at_ms(2)
    assert not [each for each in at.cluster.truth.rebalances if each.start_ms > first_join]
    assert len(at.cluster.truth.replacements) == len(at.cluster.alive())


def test_a_slow_broker_slows_its_partitions_for_every_group() -> None:
    at = run("SC08")
    parts = {part for _, part in at.cluster.world.limits}
    left = unprocessed(at, at.labels.minutes)
    assert len(parts) == 4
    assert min(left[part] for part in parts) > 10 * max(
        left[part] for part in left if part not in parts
    )


def test_a_shared_sink_lets_nobody_through_faster_than_it_is() -> None:
    at = run("SC53")
    limit = at.cluster.world.sinks[at.cluster.name()].per_second
    assert processed(at, at.labels.minutes - 20, at.labels.minutes) == pytest.approx(
        limit, rel=0.02
    )


def test_commits_that_fail_stop_while_processing_goes_on() -> None:
    at = run("SC34")
    end = at.labels.minutes
    assert sum(unprocessed(at, end).values()) < 10_000
    since = at.cluster.at_ms(end - 15)
    assert not [
        each for each in at.simulation.records if each.record.commit and each.timestamp_ms > since
    ]


@pytest.mark.parametrize("name", ["SC37", "SC38"])
def test_a_group_goes_on_after_its_offsets_were_reset(name: str) -> None:
    at = run(name)
    begin, end = begins(at), at.labels.minutes
    assert len(at.cluster.alive()) == 4
    assert processed(at, end - 3, end) > 0
    before, after = unprocessed(at, begin - 2), unprocessed(at, begin + 1)
    assert (sum(after.values()) > sum(before.values()) + 100_000) == (name == "SC37")


def committed(at: Run) -> dict[int, int]:
    """Offsets of the first group on the main topic at the end of the run."""
    held = at.cluster.coordinator.committed
    return {
        part: offset for (group, _, part), (offset, _) in held.items() if group == at.cluster.name()
    }


def test_retention_overtakes_what_is_stalled_and_nothing_else() -> None:
    at = run("SC41a")
    brokers, main = at.cluster.brokers, at.cluster.main
    lost = {part for part, offset in committed(at).items() if brokers.start(main, part) > offset}
    named = next(must.partitions for must in at.labels.must if must.code == "DATA_LOST")
    assert 0 < len(lost) < 12
    assert not named or lost == named


def test_readers_of_committed_records_stop_where_the_transaction_began() -> None:
    at = run("SC42")
    opened = at.cluster.brokers.topics[at.cluster.main].opened
    assert {part: committed(at)[part] for part in opened} == opened
    assert all(
        count > 60 * 1000
        for part, count in unprocessed(at, at.labels.minutes).items()
        if part in opened
    )


def test_one_marker_is_left_of_each_idle_log() -> None:
    at = run("LA9")
    assert set(unprocessed(at, at.labels.minutes).values()) == {1}
