"""Topics that grow, are made anew or lose their ends, and the offsets that groups have there."""

from __future__ import annotations

from scenarios.ground import HEALTHY, Ground
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from scenarios.rebalances import find_leader
from scenarios.runs import TICK_MS
from simulator.offsets_log import PARTITIONS
from simulator.producer import piecewise, steady
from simulator.stage import MINUTE, SECOND


def sc36(ground: Ground) -> Labels:
    at, more = ground.about(HEALTHY), ground.one_of(3, 6)
    rate = ground.between(40, 100)
    ground.topic(rate=steady(rate))
    ground.group(metadata_ms=0)  # nobody looks for new partitions by himself
    ground.minute(at, lambda: ground.brokers.expand(ground.main, [steady(rate)] * more), "partitions_added")

    def look() -> None:
        leader = find_leader(ground)
        if leader is not None:
            leader.rejoin("topic_change")

    seen = at + ground.between(16, 20)
    ground.minute(seen, look, "topic_change")
    return Labels(
        seen + 15,
        must=(
            Must("PARTITIONS_ADDED", at, within=3),
            Must("PARTITION_UNOWNED", at + 10, within=3, partitions=frozenset(range(12, 12 + more))),
        ),
        may=only("CAPACITY_BURST"),
        never=only("SLOW_MEMBER", "HOT_PARTITION_ARRIVAL", "DEPLOY_LAG_SPIKE"),
        primary=only("PARTITION_UNOWNED"),
        primary_minutes=(at + 13, seen),
    )


def la24(ground: Ground) -> Labels:
    """New partitions are found within five minutes, as clients do."""
    at, more = ground.about(HEALTHY), ground.one_of(3, 6, 12)
    rate = ground.between(30, 60)
    ground.topic(rate=steady(rate))
    ground.group(assignors=(ground.one_of("range", "cooperative-sticky"),))
    ground.minute(at, lambda: ground.brokers.expand(ground.main, [steady(rate / 2)] * more), "partitions_added")
    return Labels(at + 30, may=only("CAPACITY_BURST"), expects=(Expect(at + 12, at + 30, CALM),))


def sc39(ground: Ground) -> Labels:
    """The new topic holds more than the old one when its readers return."""
    at, rate = ground.about(HEALTHY), ground.between(20, 50)
    # at once as much again as in all the time before
    burst = 1.5 * rate * at
    ground.topic(rate=piecewise((0, rate), (round((at + 2) * MINUTE), burst), (round((at + 3) * MINUTE), rate)))
    members, capacity = 4, 2000.0
    ground.group(members, capacity=capacity)

    def stop() -> None:
        for member in ground.alive():
            member.close("stopped")

    def recreate() -> None:
        rates = ground.brokers.delete(ground.main).rates
        ground.coordinator.topic_deleted(ground.main)
        ground.clock.after(20 * SECOND, lambda: ground.rates(rates))

    ground.minute(at, stop, "stopped")
    ground.minute(at + 1, recreate, "topic_recreated")
    ground.minute(at + 5, lambda: ground.group(members, capacity=capacity))
    # a poll between the two sees a topic go and another come: the group meets that when it is back
    was_polled = ground.at_ms(at + 1) // TICK_MS < ground.at_ms(at + 1 + 20 / 60) // TICK_MS
    return Labels(
        at + 25,
        must=(Must("TOPIC_RECREATED", at + (5 if was_polled else 1.5), within=3),),
        may=only("CAPACITY_BURST", "DEPLOY_LAG_SPIKE"),
        never=only("OFFSET_REWIND", "OFFSET_SKIP", "DATA_LOST", "GROUP_DELETED"),
        expects=(Expect(at + 15, at + 25, CALM),),
    )


def sc40(ground: Ground) -> Labels:
    at, rate = ground.about(HEALTHY), ground.between(8, 20)
    part, lost = ground.draw.randrange(12), ground.between(5, 9)  # minutes of records
    ground.topic(rate=steady(rate))
    ground.group()
    ground.minute(at, lambda: ground.brokers.cut(ground.main, part, round(lost * 60 * rate)), "unclean_election")
    return Labels(
        at + 25,
        must=(Must("OFFSET_BEYOND_END", at + 0.5, within=3, partitions=frozenset({part})),),
        never=only("OFFSET_REWIND", "DATA_LOST", "PARTITION_STALLED", "TOPIC_RECREATED"),
        primary=only("OFFSET_BEYOND_END"),
        primary_minutes=(at + 2, at + lost - 1),
    )


def sc60(ground: Ground) -> Labels:
    """No broker is started again: all go on with the number of partitions that they found."""
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(40, 100)))
    ground.group()
    ground.minute(at, lambda: ground.coordinator.log.expand(100), "offsets_topic_expanded")
    return Labels(at + 20, must=(Must("OFFSETS_TOPIC_CHANGED", at, within=3),), expects=(Expect(6, at + 20, CALM),))


SCENARIOS = (
    Scenario("SC36", "partitions are added, and nobody looks for them", sc36),
    Scenario("SC39", "a topic is deleted and made anew, with more records", sc39),
    Scenario("SC40", "an unclean election cuts a log", sc40),
    Scenario("SC60", "the offsets topic gets more partitions", sc60, groups=PARTITIONS),  # recorded alone
    Scenario("LA24", "partitions are added and found within minutes", la24),
)
