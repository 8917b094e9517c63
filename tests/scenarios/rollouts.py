"""Rolling replacements: once, with too much work, again and again, by records of old brokers, of
Connect's workers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, EVICTIONS, Expect, Labels, Must, Scenario, only
from simulator.cluster import MINUTE, SECOND
from simulator.producer import piecewise, steady

DEPLOYS = 3
DEPLOY_NEVER = frozenset({"REBALANCE_STORM", "CAPACITY_SHORTAGE", *EVICTIONS})


def deploy(cluster: ScenarioCluster, at: float, gap: float, every: float, members: int) -> float:
    """One pod after the other; the minute of the last return."""

    def renew(index: int) -> None:
        member = order[index]
        member.close("deploy")
        host = member.config.host if member.config.instance_id else f"/10.2.{cluster.place}.{index}"
        cluster.clock.after(
            round(gap * SECOND),
            lambda: cluster.start(replace(member.config, host=host), type(member)),
        )

    order: list[Any] = []
    cluster.minute(at, lambda: order.extend(cluster.alive()), "deploy")
    for index in range(members):
        cluster.minute(at + 0.01 + index * every / 60, lambda index=index: renew(index))
    return at + ((members - 1) * every + gap) / 60


def _rolling(cluster: ScenarioCluster, **changes: Any) -> tuple[float, float, int]:
    at, members = cluster.about(HEALTHY), cluster.one_of(6, 8, 8)
    cluster.topic(partitions=24, rate=steady(cluster.between(80, 115)))
    if changes.pop("static", False):
        cluster.static(members, **changes)
    else:
        cluster.group(members, **changes)
    gap = cluster.between(20, 40)
    over = deploy(cluster, at, gap, gap + cluster.between(20, 40), members)
    return at, over, members


def sc17(cluster: ScenarioCluster) -> Labels:
    at, over, _ = _rolling(cluster)
    return Labels(
        over + 12,
        must=(Must("DEPLOY_LAG_SPIKE", over, within=12),),
        never=DEPLOY_NEVER,
        primary=only("DEPLOY_LAG_SPIKE"),
        primary_minutes=(at + 4, over + 12),
    )


def sc18(cluster: ScenarioCluster) -> Labels:
    _, over, _ = _rolling(cluster, static=True)
    return Labels(
        over + 12,
        never=DEPLOY_NEVER | only("STATIC_EXPIRED", "STATIC_DUPLICATE"),
        may=only("DEPLOY_LAG_SPIKE"),
    )


def sc19(cluster: ScenarioCluster) -> Labels:
    _, over, _ = _rolling(cluster, assignors=("cooperative-sticky",))
    return Labels(over + 12, may=only("DEPLOY_LAG_SPIKE"), never=DEPLOY_NEVER)


def sc62(cluster: ScenarioCluster) -> Labels:
    at, members = cluster.about(HEALTHY), 8
    capacity, ratio = cluster.between(500, 700), cluster.between(1.15, 1.35)
    cluster.topic(
        partitions=24,
        rate=piecewise((0, 0.4 * capacity / 3), (round(at * MINUTE), ratio * capacity / 3)),
    )
    cluster.group(members, capacity=capacity)
    gap = cluster.between(30, 45)
    over = deploy(cluster, at, gap, gap + 20, members)
    return Labels(
        over + 25,
        must=(Must("CAPACITY_SHORTAGE", over, within=10),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=EVICTIONS | only("REBALANCE_STORM"),
        primary=only("CAPACITY_SHORTAGE"),
    )


def sc63(cluster: ScenarioCluster) -> Labels:
    """Deploys within the hour; the specification's four days take too long to simulate."""
    members, gap, every = 6, cluster.between(25, 40), cluster.between(60, 80)
    cluster.topic(partitions=24, rate=steady(cluster.between(105, 118)))
    cluster.group(members)
    begins = [HEALTHY + 45.0 * number for number in range(2)]
    for number, at in enumerate(begins):
        order: list[Any] = []
        cluster.minute(at, lambda order=order: order.extend(cluster.alive()), "deploy")
        for index in range(members):
            cluster.minute(
                at + 0.01 + index * every / 60,
                lambda order=order, index=index, number=number: _renew(
                    cluster, order[index], number, index, gap
                ),
            )
    over = begins[1] + ((members - 1) * every + gap) / 60
    return Labels(
        begins[-1] + 25,
        must=(Must("STATIC_NOT_USED", over, within=15),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=DEPLOY_NEVER,
    )


def _renew(cluster: ScenarioCluster, member: Any, number: int, index: int, gap: float) -> None:
    member.close("deploy")
    config = replace(member.config, host=f"/10.{3 + number}.{cluster.place}.{index}")
    cluster.clock.after(round(gap * SECOND), lambda: cluster.start(config))


def sc65(cluster: ScenarioCluster) -> Labels:
    """Records of version 1 know no instance id, and not since when a group has been
    in its state.
    """
    cluster.coordinator.commit_version = cluster.coordinator.group_version = 1
    return sc17(cluster)


def la17(cluster: ScenarioCluster) -> Labels:
    """A Connect worker dies, and its sink tasks return on the others after five
    minutes (KIP-415).
    """
    at, workers = cluster.about(HEALTHY), cluster.one_of(2, 3)
    cluster.topic(rate=steady(cluster.between(40, 70)))
    names = [f"connector-consumer-orders-{number}" for number in range(2 * workers)]
    configs = [cluster.config(number // 2, client_id=name) for number, name in enumerate(names)]
    for config in configs:
        cluster.clock.after(
            cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
        )
    delay = cluster.between(300, 330)

    def die() -> None:
        for member in cluster.alive()[:2]:
            member.crash()
            config = replace(member.config, host=configs[-1].host)
            cluster.clock.after(round(delay * SECOND), lambda config=config: cluster.start(config))

    cluster.minute(at, die, "worker_lost")
    return Labels(
        at + 30, never=only("SCALE_OSCILLATION"), expects=(Expect(at + 18, at + 30, CALM),)
    )


def la25(cluster: ScenarioCluster) -> Labels:
    """Static members are replaced one after the other, three times: nothing more is
    to be gained.
    """
    cluster.topic(partitions=24, rate=steady(cluster.between(85, 110)))
    cluster.static(6)
    for number in range(DEPLOYS):
        deploy(cluster, HEALTHY + 25.0 * number, 20, 30, 6)
    return Labels(
        HEALTHY + 25.0 * DEPLOYS + 10,
        never=DEPLOY_NEVER | only("STATIC_NOT_USED", "STATIC_EXPIRED"),
    )


SCENARIOS = (
    Scenario("SC17", "a rolling deploy", sc17),
    Scenario("SC18", "a rolling deploy of static members", sc18),
    Scenario("SC19", "a rolling deploy, cooperative-sticky", sc19),
    Scenario("SC62", "a rolling deploy and too much work at once", sc62),
    Scenario("SC63", "deploy after deploy without static membership", sc63),
    Scenario("SC65", "a rolling deploy, by records of old brokers", sc65),
    Scenario("LA17", "a Connect worker is lost for five minutes", la17),
    Scenario("LA25", "deploy after deploy with static membership", la25),
)
