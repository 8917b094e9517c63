"""How a group is set up: timeouts, commits, subscriptions, members to spare."""

from __future__ import annotations

from laggard.diagnosis.parameters import Policy
from scenarios.cluster import HEALTHY, WITH_BASELINE, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from simulator.cluster import MINUTE, SECOND
from simulator.producer import piecewise, steady

TIMEOUTS = frozenset({"TIMEOUT_TIGHT", "TIMEOUT_RATIO"})


def sc54a(cluster: ScenarioCluster) -> Labels:
    """A batch, and with it a commit, takes most of the poll interval."""
    low, high = 245_000, 285_000
    cluster.topic(partitions=6, rate=steady(cluster.between(2, 6)))
    cluster.group(3, commit_ms=0, batch_ms=(low, high), max_records=100_000, capacity=4000.0)
    return Labels(
        75,
        must=(Must("TIMEOUT_TIGHT", 20, within=12),),
        never=only("TIMEOUT_RATIO", "POLL_TIMEOUT_EVICTION"),
    )


def sc54b(cluster: ScenarioCluster) -> Labels:
    heartbeat = cluster.between(2.5, 4)
    cluster.topic(rate=steady(cluster.between(40, 100)))
    cluster.group(session_ms=6000, heartbeat_ms=round(heartbeat * SECOND))
    return Labels(
        20,
        must=(Must("TIMEOUT_RATIO", 6, within=3),),
        never=only("TIMEOUT_TIGHT", "SESSION_EVICTION"),
        policies={cluster.name(): Policy(heartbeat_seconds=heartbeat)},
    )


def _spare(cluster: ScenarioCluster, parts: int, topics: int, assignor: str) -> None:
    """More members than a topic has partitions."""
    members = parts + cluster.one_of(1, 2, 3)
    names = tuple(f"{cluster.main}-{number}" for number in range(topics))
    for name in names:
        cluster.topic(name, partitions=parts, rate=steady(cluster.between(20, 60)))
    cluster.group(members, topics=names, assignors=(assignor,))


def sc55a(cluster: ScenarioCluster) -> Labels:
    _spare(
        cluster,
        cluster.one_of(4, 6),
        1,
        cluster.one_of("range", "roundrobin", "cooperative-sticky"),
    )
    return Labels(30, must=(Must("IDLE_MEMBERS", 11, within=3),), expects=(Expect(6, 30, CALM),))


def sc55b(cluster: ScenarioCluster) -> Labels:
    _spare(cluster, 6, 2, "range")
    return Labels(30, must=(Must("IDLE_MEMBERS", 11, within=3),), expects=(Expect(6, 30, CALM),))


def sc55c(cluster: ScenarioCluster) -> Labels:
    _spare(cluster, 6, 2, "roundrobin")
    return Labels(
        30, never=only("IDLE_MEMBERS", "ASSIGNMENT_IMBALANCE"), expects=(Expect(6, 30, CALM),)
    )


def la16(cluster: ScenarioCluster) -> Labels:
    """The spare members are declared as a hot standby."""
    _spare(cluster, cluster.one_of(4, 6), 1, "range")
    return Labels(
        30,
        never=only("IDLE_MEMBERS", "OVERPROVISIONED_IDLE"),
        expects=(Expect(6, 30, CALM),),
        policies={cluster.name(): Policy(hot_standby=True)},
    )


def sc56a(cluster: ScenarioCluster) -> Labels:
    parts = cluster.one_of(12, 24)
    cluster.topic(partitions=parts, rate=steady(0))
    cluster.group(cluster.one_of(2, 4))
    return Labels(
        75,
        must=(Must("COMMIT_IDLE_CHURN", 6 + 1000 / (12 * parts), within=4),),
        never=only("COMMIT_RATE_HIGH"),
    )


def sc56b(cluster: ScenarioCluster) -> Labels:
    """A commit after every record."""
    rate = cluster.between(20, 35)
    cluster.topic(partitions=2, rate=steady(rate))
    cluster.group(2, commit_ms=0, max_records=1, capacity=60.0)
    never = only("COMMIT_IDLE_CHURN", "AUTOCOMMIT_PATTERN")
    return Labels(16, must=(Must("COMMIT_RATE_HIGH", 10, within=3),), never=never)


def sc56c(cluster: ScenarioCluster) -> Labels:
    """Each member's timer is a little off; now much arrives and now little."""
    low = cluster.between(10, 30)
    at, members = cluster.about(HEALTHY), cluster.one_of(2, 3, 4)
    cluster.topic(rate=piecewise((0, low), (round(at * MINUTE), cluster.between(2, 5) * low)))
    for index in range(members):
        commit_ms = round(cluster.between(4.95, 5.05) * SECOND)
        # two members can do all that may arrive
        config = cluster.config(index, commit_ms=commit_ms, batch_ms=(100, 150), capacity=1500.0)
        cluster.clock.after(
            cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
        )
    return Labels(
        at + 20,
        must=(Must("AUTOCOMMIT_PATTERN", 5.5, within=5),),
        never=only("COMMIT_IDLE_CHURN", "COMMIT_RATE_HIGH"),
        expects=(Expect(6, at + 20, CALM),),
    )


def _apart(cluster: ScenarioCluster, minutes: float) -> float:
    """Half of the members subscribe to one topic more, the others so many minutes later; when it
    began.
    """
    at, more = cluster.about(HEALTHY), f"{cluster.main}-more"
    cluster.topic(rate=steady(cluster.between(40, 80)))
    cluster.topic(more, partitions=4, rate=steady(20))
    cluster.group(4)

    def subscribe(members: list[int]) -> None:
        for index in members:
            cluster.alive()[index].subscribe(cluster.main, more)

    cluster.minute(at, lambda: subscribe([0, 1]), "subscription_change")
    cluster.minute(at + minutes, lambda: subscribe([2, 3]))
    return at


def sc58a(cluster: ScenarioCluster) -> Labels:
    minutes = cluster.between(4, 20)
    at = _apart(cluster, minutes)
    return Labels(
        at + 45,
        never=only("SUBSCRIPTION_DIVERGENT", "PARTITION_UNOWNED"),
        expects=(Expect(at + 28, at + 45, CALM),),
    )


def sc58b(cluster: ScenarioCluster) -> Labels:
    at = _apart(cluster, 120)
    return Labels(at + 45, must=(Must("SUBSCRIPTION_DIVERGENT", at + 30, within=3),))


def sc64a(cluster: ScenarioCluster) -> Labels:
    """Members that commit with a checkpoint every ten minutes."""
    capacity = cluster.between(500, 700)
    cluster.topic(rate=steady(cluster.between(0.4, 0.7) * capacity / 3))
    cluster.group(capacity=capacity, commit_ms=600 * SECOND)
    return Labels(150, expects=(Expect(60, 150, CALM),))


def sc64b(cluster: ScenarioCluster) -> Labels:
    at, capacity, over = (
        cluster.about(WITH_BASELINE),
        cluster.between(500, 700),
        cluster.between(1.1, 1.2),
    )
    before, after = 0.6 * capacity / 3, over * capacity / 3
    cluster.topic(rate=piecewise((0, before), (round(at * MINUTE), after)))
    cluster.group(capacity=capacity, commit_ms=600 * SECOND)
    return Labels(
        at + 90,
        must=(Must("CAPACITY_SHORTAGE", at, within=75),),
        never=only("PARTITION_STALLED", "COMMITS_STOPPED", "HOT_PARTITION_ARRIVAL"),
        primary=only("CAPACITY_SHORTAGE"),
    )


def sc59(cluster: ScenarioCluster) -> Labels:
    """A batch every three hours that keeps them busy for a twentieth of the time; a day stands for
    the week.
    """
    hours, rate = 21, cluster.between(20, 40)
    steps, at = [(0, 0.0)], cluster.between(20, 100)
    while at < 60 * hours:
        steps += [(round(at * MINUTE), rate), (round((at + 8) * MINUTE), 0.0)]
        at += 180
    cluster.topic(partitions=4, rate=piecewise(*steps))
    cluster.group(
        cluster.one_of(2, 4), commit_ms=60 * SECOND, batch_ms=(5000, 5000), max_records=5000
    )
    return Labels(60 * hours + 6, must=(Must("OVERPROVISIONED_IDLE", 60 * hours, within=3),))


SCENARIOS = (
    Scenario("SC54a", "a batch takes nearly as long as the poll interval", sc54a),
    Scenario("SC54b", "a session of two heartbeats", sc54b),
    Scenario("SC55a", "more members than partitions", sc55a),
    Scenario("SC55b", "more members than partitions of each of two topics, range", sc55b),
    Scenario("SC55c", "the same, roundrobin", sc55c),
    Scenario("SC56a", "commits go on for an hour, and nothing arrives", sc56a),
    Scenario("SC56b", "a commit per record", sc56b),
    Scenario("SC56c", "commits by a timer, whatever arrives", sc56c),
    Scenario("SC58a", "members subscribe to different topics for minutes", sc58a),
    Scenario("SC58b", "members subscribe to different topics for good", sc58b),
    Scenario("SC59", "busy for a twentieth of the time", sc59),
    Scenario("SC64a", "members commit every ten minutes", sc64a),
    Scenario("SC64b", "members commit every ten minutes, and too much arrives", sc64b),
    Scenario("LA16", "a declared hot standby", la16),
)
