"""Rolling replacements again and again, with records of old brokers, and of Connect's workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scenarios.ground import HEALTHY, Ground
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from scenarios.rebalances import DEPLOY_NEVER, deploy, sc17
from simulator.producer import steady
from simulator.stage import SECOND

DEPLOYS = 3


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
    Scenario("SC63", "deploy after deploy without static membership", sc63),
    Scenario("SC65", "a rolling deploy, by records of old brokers", sc65),
    Scenario("LA17", "a Connect worker is lost for five minutes", la17),
    Scenario("LA25", "deploy after deploy with static membership", la25),
)
