"""Work that comes to unlike shares: several slow members, partitions that no number of members divides."""

from __future__ import annotations

from scenarios.ground import HEALTHY, Ground
from scenarios.labels import YES, Expect, Labels, Must, Scenario, only
from simulator.producer import piecewise, steady
from simulator.stage import MINUTE


def sc67(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    members, slow = ground.one_of((4, 2), (6, 2), (8, 2), (10, 3))
    capacity, load = ground.between(450, 800), ground.between(0.4, 0.6)
    ground.topic(partitions=3 * members, rate=steady(load * capacity / 3))
    ground.group(members, capacity=capacity)
    shares = {index: ground.between(0.4, 0.75) for index in ground.draw.sample(range(members), slow)}

    def weaken() -> None:
        alive = ground.alive()
        for index, share in shares.items():
            alive[index].capacity = share * load * capacity

    ground.minute(at, weaken, "slow_members")
    return Labels(
        at + 30,
        must=(Must("SLOW_MEMBER", at + 5),),
        never=only("CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION"),
        primary=only("SLOW_MEMBER"),
        expects=(Expect(at + 12, at + 30, only("NO_UNHEALTHY_MEMBER")),),
    )


def sc68(ground: Ground) -> Labels:
    """Those with one partition less than others keep up, and lag lies on half of the partitions only."""
    at, capacity = ground.about(HEALTHY), ground.between(450, 800)
    members, parts = ground.one_of((5, 12), (7, 24), (5, 8))
    rate = ground.between(1.1, 1.3) * members * capacity / parts
    ground.topic(partitions=parts, rate=piecewise((0, 0.4 * rate), (round(at * MINUTE), rate)))
    ground.group(members, capacity=capacity)
    return Labels(
        at + 30,
        must=(Must("CAPACITY_SHORTAGE", at),),
        never=only("SLOW_MEMBER", "COSTLY_PARTITION", "HOT_PARTITION_ARRIVAL"),
        primary=only("CAPACITY_SHORTAGE"),
        expects=(Expect(at + 12, at + 30, YES),),
        decide=at + 14,
    )


def sc69(ground: Ground) -> Labels:
    """Two of the five have as many partitions as before, and what they do not get done is theirs alone in the end."""
    at, capacity = ground.about(HEALTHY), ground.between(450, 700)
    rate = ground.between(1.25, 1.4) * capacity / 3
    ground.topic(rate=piecewise((0, 0.4 * rate), (round(at * MINUTE), rate)))
    ground.group(4, capacity=capacity)
    grown = at + 20
    ground.minute(grown, lambda: ground.grow(1), "scale_out")
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


def sc70(ground: Ground) -> Labels:
    """More arrives for everybody, and one member is slow besides: none has room for another's partitions."""
    at, capacity, ratio = ground.about(HEALTHY), ground.between(450, 700), ground.between(1.1, 1.25)
    ground.topic(rate=piecewise((0, 0.5 * capacity / 3), (round(at * MINUTE), ratio * capacity / 3)))
    ground.group(4, capacity=capacity)
    slow = ground.draw.randrange(4)

    def weaken() -> None:
        ground.alive()[slow].capacity = 0.5 * capacity

    ground.minute(at, weaken, "slow_member")
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
