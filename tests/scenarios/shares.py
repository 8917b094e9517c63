"""Work that comes to unlike shares: several slow members, partitions that no number of members
divides.
"""

from __future__ import annotations

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import YES, Expect, Labels, Must, Scenario, only
from simulator.cluster import MINUTE
from simulator.producer import piecewise, steady


def sc67(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    members, slow = cluster.one_of((4, 2), (6, 2), (8, 2), (10, 3))
    capacity, load = cluster.between(450, 800), cluster.between(0.4, 0.6)
    cluster.topic(partitions=3 * members, rate=steady(load * capacity / 3))
    cluster.group(members, capacity=capacity)
    shares = {
        index: cluster.between(0.4, 0.75) for index in cluster.draw.sample(range(members), slow)
    }

    def weaken() -> None:
        alive = cluster.alive()
        for index, share in shares.items():
            alive[index].capacity = share * load * capacity

    cluster.minute(at, weaken, "slow_members")
    return Labels(
        at + 30,
        must=(Must("SLOW_MEMBER", at + 5),),
        never=only("CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION"),
        primary=only("SLOW_MEMBER"),
        expects=(Expect(at + 12, at + 30, only("NO_UNHEALTHY_MEMBER")),),
    )


def sc68(cluster: ScenarioCluster) -> Labels:
    """Those with one partition less than others keep up, and lag lies on half of the partitions
    only.
    """
    at, capacity = cluster.about(HEALTHY), cluster.between(450, 800)
    members, parts = cluster.one_of((5, 12), (7, 24), (5, 8))
    rate = cluster.between(1.1, 1.3) * members * capacity / parts
    cluster.topic(partitions=parts, rate=piecewise((0, 0.4 * rate), (round(at * MINUTE), rate)))
    cluster.group(members, capacity=capacity)
    return Labels(
        at + 30,
        must=(Must("CAPACITY_SHORTAGE", at),),
        never=only("SLOW_MEMBER", "COSTLY_PARTITION", "HOT_PARTITION_ARRIVAL"),
        primary=only("CAPACITY_SHORTAGE"),
        expects=(Expect(at + 12, at + 30, YES),),
        decide=at + 14,
    )


def sc69(cluster: ScenarioCluster) -> Labels:
    """Two of the five have as many partitions as before, and what they do not get done is theirs
    alone in the end.
    """
    at, capacity = cluster.about(HEALTHY), cluster.between(450, 700)
    rate = cluster.between(1.25, 1.4) * capacity / 3
    cluster.topic(rate=piecewise((0, 0.4 * rate), (round(at * MINUTE), rate)))
    cluster.group(4, capacity=capacity)
    grown = at + 20
    cluster.minute(grown, lambda: cluster.grow(1), "scale_out")
    return Labels(
        grown + 40,
        must=(Must("CAPACITY_SHORTAGE", at),),
        may=only("SCALE_OUT_FUTILE"),
        never=only("SLOW_MEMBER", "COSTLY_PARTITION", "HOT_PARTITION_ARRIVAL"),
        primary=only("CAPACITY_SHORTAGE"),
        primary_minutes=(at + 12, grown),
        expects=(Expect(at + 12, grown, YES), Expect(grown + 14, grown + 40, YES)),
        decide=grown + 25,
    )


def sc70(cluster: ScenarioCluster) -> Labels:
    """More arrives for everybody, and one member is slow besides: none has room for another's
    partitions.
    """
    at, capacity, ratio = (
        cluster.about(HEALTHY),
        cluster.between(450, 700),
        cluster.between(1.1, 1.25),
    )
    cluster.topic(
        rate=piecewise((0, 0.5 * capacity / 3), (round(at * MINUTE), ratio * capacity / 3))
    )
    cluster.group(4, capacity=capacity)
    slow = cluster.draw.randrange(4)

    def weaken() -> None:
        cluster.alive()[slow].capacity = 0.5 * capacity

    cluster.minute(at, weaken, "slow_member")
    return Labels(
        at + 35,
        must=(Must("CAPACITY_SHORTAGE", at),),
        may=only("SLOW_MEMBER"),
        never=only("COSTLY_PARTITION", "HOT_PARTITION_ARRIVAL"),
        primary=only("CAPACITY_SHORTAGE", "SLOW_MEMBER"),
        expects=(Expect(at + 14, at + 35, YES),),
        decide=at + 16,
    )


SCENARIOS = (
    Scenario("SC67", "several members do less than their share", sc67),
    Scenario("SC68", "more arrives than all can do, and some members have a partition less", sc68),
    Scenario("SC69", "one member more, where most partitions stay with their owners", sc69),
    Scenario("SC70", "more arrives than all can do, and one member does less than its share", sc70),
)
