"""Workloads in which several things go wrong, or one thing again and again."""

from __future__ import annotations

from dataclasses import replace

from simulator.cluster import MINUTE, SECOND, Cluster
from simulator.offsets_log import partition_of


def failover(cluster: Cluster) -> int:
    """The coordinator moves in quiet times and in the middle of a rebalance."""
    cluster.topic()
    cluster.group()
    part = partition_of(cluster.group_name)
    cluster.later(80, lambda: cluster.coordinator.fail_over(part, 2 * SECOND), "failover")

    def in_the_middle() -> None:
        cluster.start(cluster.config(7))
        cluster.clock.after(
            cluster.chance.randint(0, 3 * SECOND),
            lambda: cluster.coordinator.fail_over(part, 4 * SECOND),
        )

    cluster.later(140, in_the_middle, "failover")
    return 8 * MINUTE


def failover_in_rebalance(cluster: Cluster) -> int:
    """The leader asks for a rebalance that its coordinator does not live to finish; the next one
    starts it again.
    """
    cluster.topic()
    cluster.group()

    def rejoin() -> None:
        _rejoin_leader(cluster)
        lasts_ms = cluster.chance.randint(100, SECOND)
        cluster.clock.after(
            lasts_ms,
            lambda: cluster.coordinator.fail_over(partition_of(cluster.group_name), 4 * SECOND),
        )

    cluster.later(100, rejoin, "failover")
    return 4 * MINUTE


def _rejoin_leader(cluster: Cluster) -> None:
    leader = cluster.coordinator.groups[cluster.group_name].leader
    for member in cluster.living():
        if member.member_id == leader:
            member.rejoin("leader_rejoin")


def two_groups_failover(cluster: Cluster) -> int:
    """Groups of one offsets partition lose their coordinator together, others do not notice."""
    cluster.topic(partitions=4)
    part = partition_of(cluster.group_name)
    names = (cluster.marked(f"twin-{number}") for number in range(10_000))
    twin = next(name for name in names if partition_of(name) == part)
    for name in (cluster.group_name, twin, cluster.marked("elsewhere")):
        for index in range(2):
            config = cluster.config(index, group=name, session_ms=10_000)
            cluster.later(0, lambda config=config: cluster.start(config))
    cluster.later(80, lambda: cluster.coordinator.fail_over(part, 20 * SECOND), "failover")
    return 4 * MINUTE


def straggler(cluster: Cluster) -> int:
    """A member joins while another one is in a long batch: the join phase waits until the slow one
    is evicted.
    """
    cluster.topic()
    cluster.group(poll_interval_ms=60_000)
    cluster.later(80, lambda: cluster.members[1].hang(75 * SECOND), "slow_batch")
    cluster.later(90, lambda: cluster.start(cluster.config(4, poll_interval_ms=60_000)))
    return 6 * MINUTE


def interrupted_sync(cluster: Cluster) -> int:
    """Leaders die between join and sync, so generations pass that no record tells of."""
    cluster.topic()
    cluster.group(session_ms=10_000, poll_interval_ms=20_000)

    def break_syncs(times: int) -> None:
        group = cluster.coordinator.groups[cluster.group_name]
        if times and getattr(group, "state", "") == "CompletingRebalance":
            leader = next(each for each in cluster.living() if each.member_id == group.leader)
            cluster.restart(leader, 2 * SECOND, how="crash", why="crash")
            cluster.clock.after(5 * SECOND, lambda: break_syncs(times - 1))
        elif times:
            cluster.clock.after(1, lambda: break_syncs(times))

    cluster.later(
        80, lambda: cluster.start(cluster.config(4, session_ms=10_000, poll_interval_ms=20_000))
    )
    cluster.later(79, lambda: break_syncs(2), "crash")
    return 6 * MINUTE


def crash_loop(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group(3, session_ms=10_000)
    for at in (60, 105, 150):
        cluster.later(
            at,
            lambda: cluster.restart(cluster.members[-1], 5 * SECOND, how="crash", why="crash_loop"),
            "crash",
        )
    return 6 * MINUTE


def static_expired(cluster: Cluster) -> int:
    """Away for longer than the session."""
    cluster.topic()
    cluster.static_group()
    cluster.later(
        90, lambda: cluster.restart(cluster.chance.choice(cluster.living()), 70 * SECOND), "restart"
    )
    return 6 * MINUTE


def static_duplicate(cluster: Cluster) -> int:
    """A second process with an instance id that is in use: the first one is fenced."""
    cluster.topic()
    cluster.static_group()
    cluster.later(
        90, lambda: cluster.start(replace(cluster.members[0].config, host="/10.0.9.9")), "duplicate"
    )
    return 4 * MINUTE


def rebalance_storm(cluster: Cluster) -> int:
    """The leader joins again every three seconds, for nothing."""
    cluster.topic()
    cluster.group()
    for at in range(60, 180, 3):
        cluster.clock.after(at * SECOND, lambda: _rejoin_leader(cluster))
    return 5 * MINUTE


def scale_oscillation(cluster: Cluster) -> int:
    """3 → 6 → 3 members, again and again."""
    cluster.topic()
    cluster.group(3)

    def grow() -> None:
        for index in (3, 4, 5):
            cluster.start(cluster.config(index))

    def shrink() -> None:
        for member in cluster.living()[3:]:
            member.close("scale_in")

    for at in range(60, 300, 120):
        cluster.later(at, grow, "scale_out")
        cluster.later(at + 60, shrink, "scale_in")
    return 6 * MINUTE


def replay_after_rebalance(cluster: Cluster) -> int:
    """Nobody commits when giving up partitions, so their next owners read some records again."""
    cluster.topic()
    cluster.group(commit_ms=20 * SECOND, commit_on_revoke=False, commit_on_close=False)
    cluster.later(
        90, lambda: cluster.chance.choice(cluster.living()).close("scale_in"), "clean_leave"
    )
    return 4 * MINUTE


FAULTS = (
    rebalance_storm,
    scale_oscillation,
    replay_after_rebalance,
    failover,
    failover_in_rebalance,
    two_groups_failover,
    straggler,
    interrupted_sync,
    crash_loop,
    static_expired,
    static_duplicate,
)
