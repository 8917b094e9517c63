"""Partitions and groups that are stalled, and offsets that jump."""

from __future__ import annotations

from scenarios.cluster import HEALTHY, Checkpointer, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from simulator.cluster import MINUTE, SECOND
from simulator.producer import piecewise, steady

STALL = frozenset({"PARTITION_STALLED"})
HOUR = 60 * MINUTE


def sc10(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    members, each = cluster.one_of((4, 3), (3, 4), (6, 2))
    cluster.topic(partitions=members * each, rate=steady(cluster.between(60, 140)))
    cluster.group(members, poll_interval_ms=HOUR)
    index = cluster.draw.randrange(members)
    cluster.minute(at, lambda: cluster.alive()[index].hang(HOUR), "hang")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1, within=3),),
        never=only("SLOW_MEMBER", "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=STALL,
        expects=(Expect(at + 6, at + 25, only("NO_STALLED")),),
        decide=at + 10,
    )


def sc11(cluster: ScenarioCluster) -> Labels:
    at, part = cluster.about(HEALTHY), cluster.draw.randrange(12)
    cluster.topic(rate=steady(cluster.between(60, 140)))
    cluster.group()
    cluster.minute(at, lambda: cluster.world.paused.add((cluster.main, part)), "paused")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1, within=3, partitions=frozenset({part})),),
        never=only("HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION", "POISON_PILL_SUSPECT"),
        primary=STALL,
        expects=(Expect(at + 6, at + 25, only("NO_STALLED")),),
        decide=at + 10,
    )


def sc12(cluster: ScenarioCluster) -> Labels:
    at, part = cluster.about(HEALTHY), cluster.draw.randrange(12)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group(poll_interval_ms=60_000)
    place = cluster.main, part

    def poison() -> None:
        cluster.world.poison[place] = cluster.brokers.end(*place) + 50, 300 * SECOND

    cluster.minute(at, poison, "poison")
    return Labels(
        at + 40,
        must=(
            Must("POISON_PILL_SUSPECT", at + 6, within=12, partitions=frozenset({part})),
            Must("POLL_TIMEOUT_EVICTION", at + 5, within=12),
        ),
        # in the end all members hold on to the record, and nobody commits any more
        may=only(
            "REBALANCE_STORM",
            "PARTITION_STALLED",
            "REBALANCE_STRAGGLER",
            "CRASH_LOOP",
            "COMMITS_STOPPED",
        ),
        never=only("SESSION_EVICTION", "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=only("POISON_PILL_SUSPECT"),
        expects=(Expect(at + 18, at + 40, only("NO_REBALANCE_FIRST")),),
    )


def sc33(cluster: ScenarioCluster) -> Labels:
    at, how = cluster.about(HEALTHY), cluster.one_of("close", "crash")
    cluster.topic(rate=steady(cluster.between(30, 80)))  # two members can do it
    cluster.group(cluster.one_of(2, 3, 4))

    def stop() -> None:
        for member in cluster.alive():
            getattr(member, how)()

    cluster.minute(at, stop, "all_stopped")
    return Labels(
        at + 32,
        must=(Must("EMPTY_WITH_LAG", at + 11, within=3),),
        may=only("SESSION_EVICTION", "OFFSETS_EXPIRY_FORECAST"),
        never=only("CAPACITY_SHORTAGE", "PARTITION_STALLED", "COMMITS_STOPPED"),
        primary=only("EMPTY_WITH_LAG"),
        expects=(Expect(at + 4, at + 32, only("NO_MEMBERS")),),
    )


def sc34(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(60, 140)))
    poll_ms = cluster.one_of(60_000, 120_000, 300_000)
    cluster.group(poll_interval_ms=poll_ms)
    cluster.minute(at, lambda: cluster.coordinator.refusing.add(cluster.name()), "commits_fail")
    return Labels(
        at + 25,
        must=(Must("COMMITS_STOPPED", at + poll_ms / MINUTE, within=4),),
        may=only("CAPACITY_SHORTAGE"),
        never=only("HOT_PARTITION_ARRIVAL", "SLOW_MEMBER", "PARTITION_STALLED"),
        primary=only("COMMITS_STOPPED"),
        primary_minutes=(at + 10, at + 25),
    )


def _checkpointer(cluster: ScenarioCluster, commit_ms: int, parts: int) -> None:
    config = cluster.config(commit_ms=commit_ms, capacity=4000.0, max_records=10_000)
    reader = Checkpointer(cluster, config, [(cluster.main, part) for part in range(parts)])
    cluster.members.append(reader)
    cluster.clock.after(SECOND, reader.start)


def sc35(cluster: ScenarioCluster) -> Labels:
    at, parts = cluster.about(HEALTHY + 10), cluster.one_of(4, 8, 12)
    cluster.topic(partitions=parts, rate=steady(cluster.between(40, 120)))
    _checkpointer(cluster, cluster.one_of(5, 10, 20) * SECOND, parts)
    stuck = frozenset(cluster.draw.sample(range(parts), max(1, parts // 4)))
    cluster.minute(
        at, lambda: cluster.world.paused.update((cluster.main, part) for part in stuck), "paused"
    )
    return Labels(
        at + 25,
        must=(
            Must("PARTITION_STALLED", at + 1.5, within=3),
            Must("EXTERNAL_COMMITTER", 11, within=4),
        ),
        never=only("SLOW_MEMBER", "EMPTY_WITH_LAG", "COMMITS_STOPPED", "HOT_PARTITION_ARRIVAL"),
        primary=STALL,
    )


def _reset(cluster: ScenarioCluster, offsets: dict[tuple[str, int], int]) -> None:
    """As an operator does it: the group is stopped, reset, and started again."""
    number = len(cluster.alive())
    for member in cluster.alive():
        member.close("reset")

    def start() -> None:
        cluster.coordinator.store(cluster.name(), offsets)
        for index in range(number):
            cluster.start(cluster.config(index))

    cluster.clock.after(90 * SECOND, start)


def sc37(cluster: ScenarioCluster) -> Labels:
    at, back = cluster.about(HEALTHY + 10), cluster.between(8, 14)
    rate = cluster.between(50, 80)
    cluster.topic(rate=steady(rate))
    cluster.group()

    def rewind() -> None:
        then = cluster.clock.now - round(back * MINUTE)
        logs = cluster.brokers.topics[cluster.main].logs
        _reset(cluster, {(cluster.main, part): log.end_at(then) for part, log in enumerate(logs)})

    cluster.minute(at, rewind, "reset")
    return Labels(
        at + 25,
        must=(Must("OFFSET_REWIND", at + 1.5, within=4),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=only("CAPACITY_SHORTAGE", "CAPACITY_BURST", "HOT_PARTITION_ARRIVAL"),
        expects=(Expect(at + 20, at + 25, only("NOT_NEEDED", "NOT_NEEDED_DRAINING")),),
    )


def sc38(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY + 15)
    begin = HEALTHY
    cluster.topic(rate=piecewise((0, 100), (round(begin * MINUTE), 1000)))
    cluster.group(4, capacity=600.0)

    def skip() -> None:
        logs = cluster.brokers.topics[cluster.main].logs
        now = cluster.clock.now + 89 * SECOND
        _reset(cluster, {(cluster.main, part): log.end_at(now) for part, log in enumerate(logs)})
        for log in logs:
            log._rate = steady(100)

    cluster.minute(at, skip, "reset")
    return Labels(
        at + 20,
        must=(Must("OFFSET_SKIP", at + 1.5, within=4),),
        may=only("CAPACITY_SHORTAGE", "CAPACITY_BURST", "AT_PARTITION_CEILING"),
        expects=(Expect(at + 8, at + 20, CALM),),
    )


def sc61(cluster: ScenarioCluster) -> Labels:
    at, part = cluster.about(HEALTHY), cluster.draw.randrange(12)
    cluster.topic(rate=steady(cluster.between(60, 140)))
    for number in range(2):
        for index in range(4):
            config = cluster.config(
                10 * number + index,
                group=cluster.name(number),
                client_id=f"app-{number}",
                poll_interval_ms=HOUR,
            )
            cluster.clock.after(
                cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
            )
    chosen = cluster.draw.randrange(2)
    group = cluster.name(chosen)
    cluster.minute(at, lambda: cluster.owner((cluster.main, part), group).hang(HOUR), "hang")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1, within=3, group=group),),
        never=only("BROKER_CORRELATED", "SLOW_MEMBER"),
        primary=STALL,
        expects=(
            Expect(at + 6, at + 25, only("NO_STALLED"), group),
            Expect(at + 6, at + 25, CALM, cluster.name(1 - chosen)),
        ),
    )


SCENARIOS = (
    Scenario("SC10", "one member hangs, its heartbeats go on", sc10),
    Scenario("SC11", "one partition is paused, the same offset is committed again", sc11),
    Scenario("SC12", "one record takes longer than the poll interval, for ever", sc12),
    Scenario("SC33", "all members stop", sc33),
    Scenario("SC34", "commits fail, processing goes on", sc34),
    Scenario("SC35", "a reader without membership stalls on some partitions", sc35),
    Scenario("SC37", "an operator sets the offsets back", sc37),
    Scenario("SC38", "an operator skips a backlog", sc38),
    Scenario("SC61", "two groups read one topic, one of them stalls", sc61, groups=2),
)
