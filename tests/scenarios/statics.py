"""Members with an instance id: away for too long, two of one name, a new name at each start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import EVICTIONS, TURMOIL, Labels, Must, Scenario, only
from simulator.cluster import SECOND
from simulator.producer import steady


def sc20(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.static(4)
    away = cluster.between(60, 110)
    cluster.minute(
        at,
        lambda: cluster.restart(cluster.one_of(*cluster.alive()), round(away * SECOND)),
        "static_restart",
    )
    return Labels(
        at + 18,
        must=(Must("STATIC_EXPIRED", at + away / 60, within=4),),
        never=EVICTIONS | only("STATIC_DUPLICATE", "STATIC_ID_UNSTABLE", "REBALANCE_STORM"),
        primary=only("STATIC_EXPIRED"),
        primary_minutes=(at + away / 60 + 2, at + away / 60 + 5),
    )


def sc21(cluster: ScenarioCluster) -> Labels:
    """Each of the two is started again whenever the other one evicts it."""
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.static(4)
    pair: list[Any] = []

    def turn() -> None:
        for index, member in enumerate(pair):
            if member.is_dead:
                pair[index] = cluster.start(member.config)

    def begin() -> None:
        first = cluster.one_of(*cluster.alive())
        pair.extend([first, cluster.start(replace(first.config, host=f"/10.9.{cluster.place}.9"))])

    cluster.minute(at, begin, "duplicate")
    cluster.every(cluster.between(18, 30), at + 0.3, at + 22, turn)
    return Labels(
        at + 22,
        must=(Must("STATIC_DUPLICATE", at + 2, within=5),),
        may=TURMOIL | only("CRASH_LOOP"),  # who is fenced is started again, every time
        never=only("POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "DEPLOY_LAG_SPIKE"),
        primary=only("STATIC_DUPLICATE"),
    )


def sc22(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.static(4)
    every = cluster.between(150, 200)

    def renew(number: int) -> None:
        member = cluster.alive()[0]
        member.close("restart")
        config = replace(
            member.config,
            instance_id=f"billing-{cluster.draw.randrange(10**6)}",
            host=f"/10.0.0.{50 + number}",
        )
        cluster.clock.after(20 * SECOND, lambda: cluster.start(config))

    for number in range(4):
        cluster.minute(
            at + number * every / 60, lambda number=number: renew(number), "new_instance_id"
        )
    return Labels(
        at + 4 * every / 60 + 12,
        must=(Must("STATIC_ID_UNSTABLE", at + (2 * every + 70) / 60, within=6),),
        may=TURMOIL | only("DEPLOY_LAG_SPIKE"),
        never=only("STATIC_DUPLICATE", "POLL_TIMEOUT_EVICTION", "CAPACITY_SHORTAGE"),
        primary=only("STATIC_ID_UNSTABLE"),
        primary_minutes=(at + (3 * every + 80) / 60, at + 4 * every / 60 + 3),
    )


SCENARIOS = (
    Scenario("SC20", "a static member stays away longer than its session", sc20),
    Scenario("SC21", "two members with one instance id", sc21),
    Scenario("SC22", "a new instance id at each restart", sc22),
)
