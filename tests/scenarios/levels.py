"""Groups with a declared service level of time lag: records that come later than it allows, and a
backlog within it.
"""

from __future__ import annotations

from dataclasses import replace

from laggard.diagnosis.parameters import Policy
from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.healthy import la7
from scenarios.labels import YES, Expect, Labels, Must, Scenario, only
from simulator.cluster import MINUTE
from simulator.producer import piecewise, steady

HOUR = 60 * MINUTE
# windows: one until records have matured, one for a hundredth of the hour's, and two that begin at
# any time
WITHIN = 4


def _level(cluster: ScenarioCluster, seconds: float) -> dict[str, Policy]:
    return {cluster.name(): Policy(slo_time_lag_seconds=seconds)}


def sc71(cluster: ScenarioCluster) -> Labels:
    """What arrives x seconds after the fault waits (ratio - 1) x, and is late a service level after
    that.
    """
    at, level = cluster.about(HEALTHY), cluster.between(60, 120)
    capacity, ratio = cluster.between(450, 700), cluster.between(1.15, 1.35)
    cluster.topic(
        rate=piecewise((0, 0.5 * capacity / 3), (round(at * MINUTE), ratio * capacity / 3))
    )
    cluster.group(capacity=capacity)
    late = at + level * ratio / (ratio - 1) / 60
    return Labels(
        at + 30,
        must=(Must("CAPACITY_SHORTAGE", at), Must("TIME_LAG_SLO_BREACH", late, WITHIN)),
        never=only("HOT_PARTITION_ARRIVAL"),
        primary=only("CAPACITY_SHORTAGE"),
        expects=(Expect(at + 14, at + 30, YES),),
        policies=_level(cluster, level),
    )


def sc72(cluster: ScenarioCluster) -> Labels:
    at, level = cluster.about(HEALTHY), cluster.between(60, 180)
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group(poll_interval_ms=HOUR)
    stuck, lasts = cluster.draw.randrange(4), cluster.between(8, 12)
    cluster.minute(at, lambda: cluster.alive()[stuck].hang(round(lasts * MINUTE)), "hang")
    return Labels(
        at + lasts + 15,
        must=(
            Must("PARTITION_STALLED", at + 1, within=3),
            Must("TIME_LAG_SLO_BREACH", at + level / 60, WITHIN),
        ),
        never=only("SLOW_MEMBER", "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=only("PARTITION_STALLED"),
        primary_minutes=(at + 4, at + lasts),
        policies=_level(cluster, level),
    )


def la26(cluster: ScenarioCluster) -> Labels:
    return replace(la7(cluster), policies=_level(cluster, 240.0))


SCENARIOS = (
    Scenario("SC71", "more arrives than all can do, until records are late", sc71),
    Scenario("SC72", "one member hangs for a while, and its records are late", sc72),
    Scenario("LA26", "an hourly batch that is done within the service level", la26),
)
