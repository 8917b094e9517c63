"""Workloads drawn at random: any settings, and any event after any other."""

from __future__ import annotations

from typing import Any

from simulator.cluster import MINUTE, SECOND, Cluster
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import steady

EVENTS = (
    "join", "join", "close", "crash", "restart", "move", "crash_and_restart", "freeze", "hang",
    "failover", "expand",
)  # fmt: skip


def events(cluster: Cluster) -> int:
    assignor = cluster.chance.choice(["range", "roundrobin", "sticky", "cooperative-sticky"])
    session_ms = cluster.chance.choice([10, 20, 45]) * SECOND
    return _events(cluster, Member, assignors=(assignor,), session_ms=session_ms)


def modern_events(cluster: Cluster) -> int:
    return _events(cluster, ModernMember)


def _events(cluster: Cluster, kind: type[Member | ModernMember], **settings: Any) -> int:
    """One event a minute or so, in a group of one to six members."""
    chance = cluster.chance
    settings |= {
        "poll_interval_ms": chance.choice([30, 60, 300]) * SECOND,
        "commit_ms": chance.choice([1, 5, 15]) * SECOND,
    }
    cluster.topic(partitions=chance.choice([3, 12, 20]), rate=steady(chance.choice([20, 100])))
    is_static, size = chance.random() < 0.3, chance.choice([1, 3, 6])
    (cluster.static_group if is_static else cluster.group)(size, kind, **settings)
    for number in range(8):
        identity = {"instance_id": f"billing-{size + number}"} if is_static else {}
        newcomer = cluster.config(size + number, **settings, **identity)
        cluster.later(
            60 * (number + 1) + chance.randint(0, 40),
            lambda newcomer=newcomer: _happen(cluster, newcomer, kind),
        )
    return 12 * MINUTE


def _happen(cluster: Cluster, newcomer: Any, kind: type[Member | ModernMember]) -> None:
    chance, living = cluster.chance, cluster.living()
    event = chance.choice(EVENTS) if living else "join"
    cluster.truth.faults.append({"fault": event, "at_ms": cluster.clock.now})
    seconds = chance.randint(1, 60) * SECOND
    member = chance.choice(living) if living else None
    match event:
        case "join":
            cluster.start(newcomer, kind)
        case "close":
            member.close("scale_in")
        case "crash":
            member.crash()
        case "restart" | "move":
            cluster.restart(member, seconds, new_host=event == "move")
        case "crash_and_restart":
            cluster.restart(member, seconds, how="crash", why="crash")
        case "freeze":
            member.freeze(seconds)
        case "hang":
            member.hang(seconds)
        case "failover":
            cluster.coordinator.fail_over(
                partition_of(cluster.group_name), chance.randint(1, 8) * SECOND
            )
        case "expand":
            cluster.brokers.expand(cluster.topic_name, [steady(50)] * 3)


MIXED = (events, modern_events)
