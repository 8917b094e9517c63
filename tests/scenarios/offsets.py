"""Topics that grow, are recreated or lose their ends, and the offsets that groups have there."""

from __future__ import annotations

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from scenarios.rebalances import find_leader
from scenarios.runs import TICK_MS
from simulator.cluster import MINUTE, SECOND
from simulator.offsets_log import PARTITIONS
from simulator.producer import piecewise, steady


def sc36(cluster: ScenarioCluster) -> Labels:
    at, more = cluster.about(HEALTHY), cluster.one_of(3, 6)
    rate = cluster.between(40, 100)
    cluster.topic(rate=steady(rate))
    cluster.group(metadata_ms=0)  # nobody looks for new partitions by himself
    cluster.minute(
        at, lambda: cluster.brokers.expand(cluster.main, [steady(rate)] * more), "partitions_added"
    )

    def look() -> None:
        leader = find_leader(cluster)
        if leader is not None:
            leader.rejoin("topic_change")

    seen = at + cluster.between(16, 20)
    cluster.minute(seen, look, "topic_change")
    return Labels(
        seen + 15,
        must=(
            Must("PARTITIONS_ADDED", at, within=3),
            Must(
                "PARTITION_UNOWNED", at + 10, within=3, partitions=frozenset(range(12, 12 + more))
            ),
        ),
        may=only("CAPACITY_BURST"),
        never=only("SLOW_MEMBER", "HOT_PARTITION_ARRIVAL", "DEPLOY_LAG_SPIKE"),
        primary=only("PARTITION_UNOWNED"),
        primary_minutes=(at + 13, seen),
    )


def la24(cluster: ScenarioCluster) -> Labels:
    """New partitions are found within five minutes, as clients do."""
    at, more = cluster.about(HEALTHY), cluster.one_of(3, 6, 12)
    rate = cluster.between(30, 60)
    cluster.topic(rate=steady(rate))
    cluster.group(assignors=(cluster.one_of("range", "cooperative-sticky"),))
    cluster.minute(
        at,
        lambda: cluster.brokers.expand(cluster.main, [steady(rate / 2)] * more),
        "partitions_added",
    )
    return Labels(at + 30, may=only("CAPACITY_BURST"), expects=(Expect(at + 12, at + 30, CALM),))


def sc39(cluster: ScenarioCluster) -> Labels:
    """The new topic holds more than the old one when its readers return."""
    at, rate = cluster.about(HEALTHY), cluster.between(20, 50)
    # at once as much again as in all the time before
    burst = 1.5 * rate * at
    cluster.topic(
        rate=piecewise(
            (0, rate), (round((at + 2) * MINUTE), burst), (round((at + 3) * MINUTE), rate)
        )
    )
    members, capacity = 4, 2000.0
    cluster.group(members, capacity=capacity)

    def stop() -> None:
        for member in cluster.alive():
            member.close("stopped")

    def recreate() -> None:
        rates = cluster.brokers.delete(cluster.main).rates
        cluster.coordinator.topic_deleted(cluster.main)
        cluster.clock.after(20 * SECOND, lambda: cluster.rates(rates))

    cluster.minute(at, stop, "stopped")
    cluster.minute(at + 1, recreate, "topic_recreated")
    cluster.minute(at + 5, lambda: cluster.group(members, capacity=capacity))
    # a poll between the two sees a topic go and another come: the group meets that when it is back
    was_polled = cluster.at_ms(at + 1) // TICK_MS < cluster.at_ms(at + 1 + 20 / 60) // TICK_MS
    return Labels(
        at + 25,
        must=(Must("TOPIC_RECREATED", at + (5 if was_polled else 1.5), within=3),),
        may=only("CAPACITY_BURST", "DEPLOY_LAG_SPIKE"),
        never=only("OFFSET_REWIND", "OFFSET_SKIP", "DATA_LOST", "GROUP_DELETED"),
        expects=(Expect(at + 15, at + 25, CALM),),
    )


def sc40(cluster: ScenarioCluster) -> Labels:
    at, rate = cluster.about(HEALTHY), cluster.between(8, 20)
    part, lost = cluster.draw.randrange(12), cluster.between(5, 9)  # minutes of records
    cluster.topic(rate=steady(rate))
    cluster.group()
    cluster.minute(
        at,
        lambda: cluster.brokers.cut(cluster.main, part, round(lost * 60 * rate)),
        "unclean_election",
    )
    return Labels(
        at + 25,
        must=(Must("OFFSET_BEYOND_END", at + 0.5, within=3, partitions=frozenset({part})),),
        never=only("OFFSET_REWIND", "DATA_LOST", "PARTITION_STALLED", "TOPIC_RECREATED"),
        primary=only("OFFSET_BEYOND_END"),
        primary_minutes=(at + 2, at + lost - 1),
    )


def sc60(cluster: ScenarioCluster) -> Labels:
    """No broker is started again: all go on with the number of partitions that they found."""
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(40, 100)))
    cluster.group()
    cluster.minute(at, lambda: cluster.coordinator.log.expand(100), "offsets_topic_expanded")
    return Labels(
        at + 20,
        must=(Must("OFFSETS_TOPIC_CHANGED", at, within=3),),
        expects=(Expect(6, at + 20, CALM),),
    )


SCENARIOS = (
    Scenario("SC36", "partitions are added, and nobody looks for them", sc36),
    Scenario("SC39", "a topic is deleted and recreated, with more records", sc39),
    Scenario("SC40", "an unclean election cuts a log", sc40),
    # recorded alone
    Scenario("SC60", "the offsets topic gets more partitions", sc60, groups=PARTITIONS),
    Scenario("LA24", "partitions are added and found within minutes", la24),
)
