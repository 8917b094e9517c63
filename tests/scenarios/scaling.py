"""Numbers of members that change: to and fro, to zero and back, by two more."""

from __future__ import annotations

from scenarios.ground import HEALTHY, Ground
from scenarios.labels import CALM, EVICTIONS, FIRST, Expect, Labels, Must, Scenario, only
from simulator.producer import steady


def sc23(ground: Ground) -> Labels:
    at, every = ground.about(HEALTHY), ground.between(4, 6)
    low, high = ground.one_of((3, 6), (2, 4), (4, 8))
    ground.topic(rate=steady(ground.between(40, 60)))
    ground.group(low)

    def turn(number: int) -> None:
        if number % 2 == 0:
            ground.grow(high - low)
        else:
            for member in sorted(ground.alive(), key=lambda each: each.name)[low:]:
                member.close("scale_in")

    for number in range(6):
        ground.minute(at + number * every, lambda number=number: turn(number), "scale")
    return Labels(
        at + 6 * every + 4,
        must=(Must("SCALE_OSCILLATION", at + 3 * every, within=4),),
        never=EVICTIONS | only("DEPLOY_LAG_SPIKE", "CAPACITY_SHORTAGE"),
        may=only("REBALANCE_STORM"),
        primary=only("SCALE_OSCILLATION"),
        primary_minutes=(at + 3 * every + 4, at + 6 * every + 4),
        expects=(Expect(at + 3 * every + 3, at + 5 * every, FIRST | CALM),),
    )


def sc24(ground: Ground) -> Labels:
    at, away = ground.about(HEALTHY), ground.between(18, 24)
    ground.topic(rate=steady(20))
    ground.group(2)
    ground.minute(at, lambda: [member.close("scale_to_zero") for member in ground.alive()], "scale_to_zero")
    ground.minute(at + away, lambda: ground.grow(2), "return")
    drain = away * 240 / (1200 - 240)
    return Labels(
        at + away + drain + 10,
        must=(
            Must("EMPTY_WITH_LAG", at + 10.5, within=3),
            Must("SCALE_ZERO_COLD_START", at + away, within=8),
        ),
        may=only("OFFSETS_EXPIRY_FORECAST"),
        never=only("CAPACITY_SHORTAGE", "CAPACITY_BURST", "HOT_PARTITION_ARRIVAL", "COMMITS_STOPPED"),
        primary=only("EMPTY_WITH_LAG"),
        primary_minutes=(at + 15, at + away),
        expects=(Expect(at + 4, at + away - 1, only("NO_MEMBERS")),),
    )


def sc28(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(4, assignors=("cooperative-sticky",))
    ground.minute(at, lambda: ground.grow(2), "scale_out")
    return Labels(at + 20, expects=(Expect(at + 5, at + 20, CALM),))


SCENARIOS = (
    Scenario("SC23", "members are added and removed every few minutes", sc23),
    Scenario("SC24", "to zero members and back", sc24),
    Scenario("SC28", "two more members, cooperative-sticky", sc28),
)
