"""Numbers of members that change: to and fro, to zero and back, by two more."""

from __future__ import annotations

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, EVICTIONS, FIRST, Expect, Labels, Must, Scenario, only
from simulator.producer import steady


def sc23(cluster: ScenarioCluster) -> Labels:
    at, every = cluster.about(HEALTHY), cluster.between(4, 6)
    low, high = cluster.one_of((3, 6), (2, 4), (4, 8))
    cluster.topic(rate=steady(cluster.between(40, 60)))
    cluster.group(low)

    def turn(number: int) -> None:
        if number % 2 == 0:
            cluster.grow(high - low)
        else:
            for member in sorted(cluster.alive(), key=lambda each: each.name)[low:]:
                member.close("scale_in")

    for number in range(6):
        cluster.minute(at + number * every, lambda number=number: turn(number), "scale")
    return Labels(
        at + 6 * every + 4,
        must=(Must("SCALE_OSCILLATION", at + 3 * every, within=4),),
        never=EVICTIONS | only("DEPLOY_LAG_SPIKE", "CAPACITY_SHORTAGE"),
        may=only("REBALANCE_STORM"),
        primary=only("SCALE_OSCILLATION"),
        primary_minutes=(at + 3 * every + 4, at + 6 * every + 4),
        expects=(Expect(at + 3 * every + 3, at + 5 * every, FIRST | CALM),),
    )


def sc24(cluster: ScenarioCluster) -> Labels:
    at, away = cluster.about(HEALTHY), cluster.between(18, 24)
    cluster.topic(rate=steady(20))
    cluster.group(2)
    cluster.minute(
        at, lambda: [member.close("scale_to_zero") for member in cluster.alive()], "scale_to_zero"
    )
    cluster.minute(at + away, lambda: cluster.grow(2), "return")
    drain = away * 240 / (1200 - 240)
    return Labels(
        at + away + drain + 10,
        must=(
            Must("EMPTY_WITH_LAG", at + 10.5, within=3),
            Must("SCALE_ZERO_COLD_START", at + away, within=8),
        ),
        may=only("OFFSETS_EXPIRY_FORECAST"),
        never=only(
            "CAPACITY_SHORTAGE", "CAPACITY_BURST", "HOT_PARTITION_ARRIVAL", "COMMITS_STOPPED"
        ),
        primary=only("EMPTY_WITH_LAG"),
        primary_minutes=(at + 15, at + away),
        expects=(Expect(at + 4, at + away - 1, only("NO_MEMBERS")),),
    )


def sc28(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group(4, assignors=("cooperative-sticky",))
    cluster.minute(at, lambda: cluster.grow(2), "scale_out")
    return Labels(at + 20, expects=(Expect(at + 5, at + 20, CALM),))


SCENARIOS = (
    Scenario("SC23", "members are added and removed every few minutes", sc23),
    Scenario("SC24", "to zero members and back", sc24),
    Scenario("SC28", "two more members, cooperative-sticky", sc28),
)
