"""Workloads of what is meant to happen, and of single failures. Each sets the cluster and gives its
length in ms.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.cluster import MINUTE, SECOND, Cluster
from simulator.producer import steady


def steady_state(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group()
    return 5 * MINUTE


def clean_leave(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group()
    cluster.later(
        120, lambda: cluster.chance.choice(cluster.living()).close("scale_in"), "clean_leave"
    )
    return 5 * MINUTE


def crash(cluster: Cluster) -> int:
    """No word to the coordinator; the session runs out."""
    cluster.topic()
    cluster.group(assignors=(cluster.chance.choice(["range", "roundrobin", "sticky"]),))
    cluster.later(120, lambda: cluster.chance.choice(cluster.living()).crash(), "crash")
    return 6 * MINUTE


def session_expiry(cluster: Cluster) -> int:
    """A long garbage collection: the member is evicted and rejoins as another."""
    cluster.topic()
    cluster.group(session_ms=10_000)
    cluster.later(
        120, lambda: cluster.chance.choice(cluster.living()).freeze(15 * SECOND), "freeze"
    )
    return 5 * MINUTE


def poll_interval_eviction(cluster: Cluster) -> int:
    """One batch takes longer than max.poll.interval.ms: the client leaves, and returns when the
    batch is done.
    """
    cluster.topic()
    cluster.group(poll_interval_ms=60_000)
    cluster.later(
        90, lambda: cluster.chance.choice(cluster.living()).hang(100 * SECOND), "slow_batch"
    )
    return 6 * MINUTE


def rolling_deploy(cluster: Cluster) -> int:
    """One pod after the other, each new one on a new host."""
    cluster.topic()
    cluster.group()
    cluster.later(90, lambda: cluster.roll(15 * SECOND, 40 * SECOND), "deploy")
    return 7 * MINUTE


def static_restart(cluster: Cluster) -> int:
    """Back within the session: no rebalance."""
    cluster.topic()
    cluster.static_group(assignors=(cluster.chance.choice(["range", "cooperative-sticky"]),))
    cluster.later(
        90, lambda: cluster.restart(cluster.chance.choice(cluster.living()), 20 * SECOND), "restart"
    )
    cluster.later(
        150,
        lambda: cluster.restart(cluster.chance.choice(cluster.living()), 10 * SECOND),
        "restart",
    )
    return 5 * MINUTE


def scale_out(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group(assignors=(cluster.chance.choice(["range", "sticky"]),))
    for index in (4, 5):
        cluster.later(
            100,
            lambda index=index: cluster.start(
                replace(cluster.members[0].config, host=f"/10.0.0.{index + 1}")
            ),
        )
    return 5 * MINUTE


def scale_in(cluster: Cluster) -> int:
    """To one member, and then to none."""
    cluster.topic()
    members = cluster.group()
    for index, at in enumerate((80, 110, 140, 200)):
        cluster.later(at, lambda index=index: members[index].close("scale_in"), "scale_in")
    return 5 * MINUTE


def cooperative_join(cluster: Cluster) -> int:
    """4 → 6 with two rounds."""
    cluster.topic()
    cluster.group(assignors=("cooperative-sticky",))
    for index in (4, 5):
        cluster.later(
            100,
            lambda index=index: cluster.start(
                replace(cluster.members[0].config, host=f"/10.0.0.{index + 1}")
            ),
        )
    return 5 * MINUTE


def cooperative_crash(cluster: Cluster) -> int:
    """What the dead one held is given away in one round."""
    cluster.topic()
    cluster.group(assignors=("cooperative-sticky",), session_ms=20_000)
    cluster.later(100, lambda: cluster.chance.choice(cluster.living()).crash(), "crash")
    return 5 * MINUTE


def subscription_change(cluster: Cluster) -> int:
    cluster.topic()
    payments = cluster.marked("payments")
    cluster.topic(payments, 6)
    cluster.group()
    for index in range(4):
        cluster.later(
            90,
            lambda index=index: cluster.members[index].subscribe(cluster.topic_name, payments),
            "subscription_change",
        )
    return 5 * MINUTE


def partitions_added(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group(metadata_ms=40_000)
    cluster.later(
        90,
        lambda: cluster.brokers.expand(cluster.topic_name, [steady(100)] * 6),
        "partitions_added",
    )
    return 5 * MINUTE


def assignor_change(cluster: Cluster) -> int:
    """The two-step way from range to cooperative-sticky, by rolling restarts."""
    cluster.topic()
    cluster.group(3)

    def roll(assignors: tuple[str, ...]) -> None:
        for index, member in enumerate(cluster.living()):
            fresh = replace(member.config, assignors=assignors)
            cluster.clock.after(index * 30 * SECOND, lambda member=member: member.close("deploy"))
            cluster.clock.after(
                index * 30 * SECOND + 10 * SECOND, lambda fresh=fresh: cluster.start(fresh)
            )

    cluster.later(60, lambda: roll(("cooperative-sticky", "range")), "assignor_change")
    cluster.later(180, lambda: roll(("cooperative-sticky",)), "assignor_change")
    return 7 * MINUTE


def rolling_deploy_cooperative(cluster: Cluster) -> int:
    cluster.topic()
    cluster.group(assignors=("cooperative-sticky",))
    cluster.later(90, lambda: cluster.roll(15 * SECOND, 40 * SECOND), "deploy")
    return 7 * MINUTE


PLANNED = (
    steady_state,
    clean_leave,
    crash,
    session_expiry,
    poll_interval_eviction,
    rolling_deploy,
    static_restart,
    scale_out,
    scale_in,
    cooperative_join,
    cooperative_crash,
    subscription_change,
    partitions_added,
    assignor_change,
    rolling_deploy_cooperative,
)
