"""Rolling replacements: once, with too much work, again and again, by records of old brokers, of Connect's workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scenarios.ground import HEALTHY, Ground
from scenarios.labels import CALM, EVICTIONS, Expect, Labels, Must, Scenario, only
from simulator.producer import piecewise, steady
from simulator.stage import MINUTE, SECOND

DEPLOYS = 3
DEPLOY_NEVER = frozenset({"REBALANCE_STORM", "CAPACITY_SHORTAGE", *EVICTIONS})


def deploy(ground: Ground, at: float, gap: float, every: float, members: int) -> float:
    """One pod after the other; the minute of the last return."""

    def renew(index: int) -> None:
        member = order[index]
        member.close("deploy")
        host = member.config.host if member.config.instance_id else f"/10.2.{ground.place}.{index}"
        ground.clock.after(round(gap * SECOND), lambda: ground.start(replace(member.config, host=host), type(member)))

    order: list[Any] = []
    ground.minute(at, lambda: order.extend(ground.alive()), "deploy")
    for index in range(members):
        ground.minute(at + 0.01 + index * every / 60, lambda index=index: renew(index))
    return at + ((members - 1) * every + gap) / 60


def _rolling(ground: Ground, **changes: Any) -> tuple[float, float, int]:
    at, members = ground.about(HEALTHY), ground.one_of(6, 8, 8)
    ground.topic(partitions=24, rate=steady(ground.between(80, 115)))
    if changes.pop("static", False):
        ground.static(members, **changes)
    else:
        ground.group(members, **changes)
    gap = ground.between(20, 40)
    over = deploy(ground, at, gap, gap + ground.between(20, 40), members)
    return at, over, members


def sc17(ground: Ground) -> Labels:
    at, over, _ = _rolling(ground)
    return Labels(
        over + 12,
        must=(Must("DEPLOY_LAG_SPIKE", over, within=12),),
        never=DEPLOY_NEVER,
        primary=only("DEPLOY_LAG_SPIKE"),
        primary_minutes=(at + 4, over + 12),
    )


def sc18(ground: Ground) -> Labels:
    _, over, _ = _rolling(ground, static=True)
    return Labels(
        over + 12, never=DEPLOY_NEVER | only("STATIC_EXPIRED", "STATIC_DUPLICATE"), may=only("DEPLOY_LAG_SPIKE")
    )


def sc19(ground: Ground) -> Labels:
    _, over, _ = _rolling(ground, assignors=("cooperative-sticky",))
    return Labels(over + 12, may=only("DEPLOY_LAG_SPIKE"), never=DEPLOY_NEVER)


def sc62(ground: Ground) -> Labels:
    at, members = ground.about(HEALTHY), 8
    capacity, ratio = ground.between(500, 700), ground.between(1.15, 1.35)
    ground.topic(partitions=24, rate=piecewise((0, 0.4 * capacity / 3), (round(at * MINUTE), ratio * capacity / 3)))
    ground.group(members, capacity=capacity)
    gap = ground.between(30, 45)
    over = deploy(ground, at, gap, gap + 20, members)
    return Labels(
        over + 25,
        must=(Must("CAPACITY_SHORTAGE", over, within=10),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=EVICTIONS | only("REBALANCE_STORM"),
        primary=only("CAPACITY_SHORTAGE"),
    )


def sc63(ground: Ground) -> Labels:
    """Deploys within the hour; the specification's four days take too long to be played."""
    members, gap, every = 6, ground.between(25, 40), ground.between(60, 80)
    ground.topic(partitions=24, rate=steady(ground.between(105, 118)))
    ground.group(members)
    begins = [HEALTHY + 45.0 * number for number in range(2)]
    for number, at in enumerate(begins):
        order: list[Any] = []
        ground.minute(at, lambda order=order: order.extend(ground.alive()), "deploy")
        for index in range(members):
            ground.minute(
                at + 0.01 + index * every / 60,
                lambda order=order, index=index, number=number: _renew(ground, order[index], number, index, gap),
            )
    over = begins[1] + ((members - 1) * every + gap) / 60
    return Labels(
        begins[-1] + 25,
        must=(Must("STATIC_NOT_USED", over, within=15),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=DEPLOY_NEVER,
    )


def _renew(ground: Ground, member: Any, number: int, index: int, gap: float) -> None:
    member.close("deploy")
    config = replace(member.config, host=f"/10.{3 + number}.{ground.place}.{index}")
    ground.clock.after(round(gap * SECOND), lambda: ground.start(config))


def sc65(ground: Ground) -> Labels:
    """Records of version 1 know no instance id, and not since when a group has been in its state."""
    ground.coordinator.commit_version = ground.coordinator.group_version = 1
    return sc17(ground)


def la17(ground: Ground) -> Labels:
    """A Connect worker dies, and its sink tasks come back on the others after five minutes (KIP-415)."""
    at, workers = ground.about(HEALTHY), ground.one_of(2, 3)
    ground.topic(rate=steady(ground.between(40, 70)))
    names = [f"connector-consumer-orders-{number}" for number in range(2 * workers)]
    configs = [ground.config(number // 2, client_id=name) for number, name in enumerate(names)]
    for config in configs:
        ground.clock.after(ground.chance.randint(0, 2 * SECOND), lambda config=config: ground.start(config))
    delay = ground.between(300, 330)

    def die() -> None:
        for member in ground.alive()[:2]:
            member.crash()
            config = replace(member.config, host=configs[-1].host)
            ground.clock.after(round(delay * SECOND), lambda config=config: ground.start(config))

    ground.minute(at, die, "worker_lost")
    return Labels(at + 30, never=only("SCALE_OSCILLATION"), expects=(Expect(at + 18, at + 30, CALM),))


def la25(ground: Ground) -> Labels:
    """Static members are replaced one after the other, three times: nothing more is to be gained."""
    ground.topic(partitions=24, rate=steady(ground.between(85, 110)))
    ground.static(6)
    for number in range(DEPLOYS):
        deploy(ground, HEALTHY + 25.0 * number, 20, 30, 6)
    return Labels(HEALTHY + 25.0 * DEPLOYS + 10, never=DEPLOY_NEVER | only("STATIC_NOT_USED", "STATIC_EXPIRED"))


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
