"""Transactions that hang, abort or leave their markers, on user topics and on the offsets topic."""

from __future__ import annotations

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from simulator import records
from simulator.cluster import MINUTE, SECOND
from simulator.offsets_log import partition_of
from simulator.producer import piecewise, steady

HANGING = 1_000_000  # id of a producer that no timeout reaches


def sc42(cluster: ScenarioCluster) -> Labels:
    at, count = cluster.about(HEALTHY), cluster.one_of(2, 6, 12)
    parts = frozenset(cluster.draw.sample(range(12), count))
    cluster.topic(rate=steady(cluster.between(60, 140)))
    cluster.group(is_read_committed=True)
    cluster.minute(
        at, lambda: cluster.brokers.open_transaction(cluster.main, parts), "hanging_transaction"
    )
    return Labels(
        at + 30,
        must=(Must("LSO_STUCK", at + 15, within=3, partitions=parts),),
        never=only(
            "PARTITION_STALLED", "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL", "COMMITS_STOPPED"
        ),
        primary=only("LSO_STUCK"),
        expects=(Expect(at + 18, at + 30, only("NO_BROKER")),),
    )


def sc43(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(40, 100)))
    for number in range(5):
        cluster.group(2, group=cluster.neighbour(number), client_id=f"app-{number}")

    def hang() -> None:
        record = records.commit("exactly-once", (cluster.main, 0), 1, cluster.clock.now)
        cluster.coordinator.log.append(partition_of(cluster.name()), [record], HANGING)

    cluster.minute(at, hang, "hanging_transaction")
    return Labels(
        at + 25,
        must=(Must("SOURCE_BLOCKED", at + 1, within=3),),
        never=only("OFFSET_REWIND", "OFFSET_SKIP"),
        expects=tuple(
            Expect(at + 4, at + 25, only("UNKNOWN_INPUT"), cluster.neighbour(number))
            for number in range(5)
        ),
    )


def sc44(cluster: ScenarioCluster) -> Labels:
    share = cluster.between(0.4, 0.6)
    cluster.topic(rate=steady(cluster.between(40, 80)))
    cluster.group(capacity=1500.0, commit_ms=cluster.one_of(2, 5) * SECOND, abort_share=share)
    # twelve aborts in a row, a minute without progress, come about once a run where 0.6 of 2000
    # commits abort
    return Labels(45, may=only("PARTITION_STALLED"), never=only("OFFSET_REWIND", "OFFSET_SKIP"))


def la9(cluster: ScenarioCluster) -> Labels:
    """The last offset of each log is a transaction's marker, which a reader never gets."""
    at, parts = cluster.about(HEALTHY), cluster.one_of(12, 50)
    rate = cluster.between(5, 40)
    cluster.topic(partitions=parts, rate=piecewise((0, rate), (round(at * MINUTE), 0)))
    cluster.brokers.topics[cluster.main].ends_in_marker = True
    cluster.group(is_read_committed=True)
    return Labels(at + 60, expects=(Expect(12, at + 60, CALM),))


def la23(cluster: ScenarioCluster) -> Labels:
    """Transactions of half a minute, one after the other, on the topic and on the offsets
    partition.
    """
    rate, lasts = cluster.between(60, 120), round(cluster.between(15, 45) * SECOND)
    cluster.topic(rate=steady(rate))
    cluster.group(is_read_committed=True)
    partition = partition_of(cluster.name())
    topic = cluster.brokers.topics[cluster.main]

    def begin() -> None:
        cluster.brokers.open_transaction(cluster.main, range(12))
        record = records.commit("exactly-once", (cluster.main, 0), 1, cluster.clock.now)
        cluster.coordinator.log.append(partition, [record], HANGING)
        cluster.clock.after(lasts, end)

    def end() -> None:
        topic.opened.clear()
        cluster.coordinator.log.end_transaction(partition, HANGING, is_committed=False)

    cluster.every(lasts / SECOND + cluster.between(1, 20), HEALTHY, 45, begin)
    return Labels(46, never=only("OFFSET_REWIND", "OFFSET_SKIP"))


SCENARIOS = (
    Scenario("SC42", "a transaction hangs on the topic, its readers read committed", sc42),
    Scenario("SC43", "a transaction hangs on an offsets partition", sc43),
    Scenario("SC44", "half of all transactional commits abort", sc44),
    Scenario("LA9", "markers are left at the ends of idle logs", la9),
    Scenario("LA23", "transactions of half a minute, one after the other", la23),
)
