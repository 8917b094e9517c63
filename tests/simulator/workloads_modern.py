"""Workloads of KIP-848 groups, and of the way there and back."""

from __future__ import annotations

from simulator.cluster import MINUTE, SECOND, Cluster
from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import steady


def modern_join_leave(cluster: Cluster) -> int:
    """KIP-848: two more, then one less."""
    cluster.topic()
    cluster.group(kind=ModernMember)
    for index in (4, 5):
        cluster.later(80, lambda index=index: cluster.start(cluster.config(index), ModernMember))
    cluster.later(
        140, lambda: cluster.chance.choice(cluster.living()).close("scale_in"), "clean_leave"
    )
    return 5 * MINUTE


def modern_crash(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group(kind=ModernMember)
    cluster.later(80, lambda: cluster.chance.choice(cluster.living()).crash(), "crash")
    return 5 * MINUTE


def modern_slow(cluster: Cluster) -> int:
    """A batch longer than the poll interval, while others wait for what the slow member holds."""
    cluster.topic()
    cluster.group(kind=ModernMember, poll_interval_ms=60_000)
    cluster.later(80, lambda: cluster.members[0].hang(100 * SECOND), "slow_batch")
    cluster.later(
        85, lambda: cluster.start(cluster.config(4, poll_interval_ms=60_000), ModernMember)
    )
    return 6 * MINUTE


def modern_static_restart(cluster: Cluster) -> int:
    cluster.topic()
    cluster.static_group(kind=ModernMember)
    cluster.later(
        90, lambda: cluster.restart(cluster.chance.choice(cluster.living()), 20 * SECOND), "restart"
    )
    cluster.later(
        150,
        lambda: cluster.restart(cluster.chance.choice(cluster.living()), 70 * SECOND),
        "restart",
    )
    return 6 * MINUTE


def modern_partitions_added(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group(kind=ModernMember)
    cluster.later(
        90,
        lambda: cluster.brokers.expand(cluster.topic_name, [steady(100)] * 6),
        "partitions_added",
    )
    return 4 * MINUTE


def modern_upgrade(cluster: Cluster) -> int:
    """Classic members are restarted one by one with the new protocol."""
    cluster.topic()
    cluster.group(3)

    def roll(index: int) -> None:
        member = cluster.members[index]
        member.close("deploy")
        cluster.clock.after(10 * SECOND, lambda: cluster.start(member.config, ModernMember))
        if index < 2:
            cluster.clock.after(45 * SECOND, lambda: roll(index + 1))

    cluster.later(60, lambda: roll(0), "upgrade")
    return 6 * MINUTE


def modern_downgrade(cluster: Cluster) -> int:
    """One member tries the new protocol, and goes again."""
    cluster.topic()
    cluster.group(3)
    cluster.later(60, lambda: cluster.start(cluster.config(4), ModernMember), "upgrade")
    cluster.later(140, lambda: cluster.members[-1].close("scale_in"), "downgrade")
    return 6 * MINUTE


def modern_range(cluster: Cluster) -> int:
    """The broker's range assignor: a scale-out moves more than it must."""
    cluster.coordinator.assignor = "range"
    cluster.topic()
    cluster.group(kind=ModernMember)
    cluster.later(80, lambda: cluster.start(cluster.config(4), ModernMember))
    return 4 * MINUTE


def modern_failover(cluster: Cluster) -> int:
    """The coordinator moves in quiet times, and right after a join."""
    cluster.topic()
    cluster.group(kind=ModernMember)
    part = partition_of(cluster.group_name)
    cluster.later(60, lambda: cluster.coordinator.fail_over(part, 3 * SECOND), "failover")

    def in_the_middle() -> None:
        cluster.start(cluster.config(4), ModernMember)
        cluster.clock.after(
            cluster.chance.randint(0, 3 * SECOND),
            lambda: cluster.coordinator.fail_over(part, 4 * SECOND),
        )

    cluster.later(110, in_the_middle, "failover")
    return 4 * MINUTE


def modern_mixed(cluster: Cluster) -> int:
    """In the middle of an upgrade an old member joins, and one crashes."""
    cluster.topic()
    cluster.group(2, session_ms=20_000)
    cluster.later(60, lambda: cluster.start(cluster.config(2), ModernMember), "upgrade")
    cluster.later(100, lambda: cluster.start(cluster.config(3, session_ms=20_000)))
    cluster.later(150, lambda: cluster.chance.choice(cluster.members[:2]).crash(), "crash")
    return 5 * MINUTE


MODERN = (
    modern_mixed,
    modern_failover,
    modern_range,
    modern_join_leave,
    modern_crash,
    modern_slow,
    modern_static_restart,
    modern_partitions_added,
    modern_upgrade,
    modern_downgrade,
)
