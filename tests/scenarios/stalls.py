"""Partitions and groups that stand still, and offsets that jump."""

from __future__ import annotations

from scenarios.ground import HEALTHY, Checkpointer, Ground
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from simulator.producer import piecewise, steady
from simulator.stage import MINUTE, SECOND

STALL = frozenset({"PARTITION_STALLED"})
HOUR = 60 * MINUTE


def sc10(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    members, each = ground.one_of((4, 3), (3, 4), (6, 2))
    ground.topic(partitions=members * each, rate=steady(ground.between(60, 140)))
    ground.group(members, poll_interval_ms=HOUR)
    index = ground.draw.randrange(members)
    ground.minute(at, lambda: ground.alive()[index].hang(HOUR), "hang")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1, within=3),),
        never=only("SLOW_MEMBER", "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=STALL,
        expects=(Expect(at + 6, at + 25, only("NO_STALLED")),),
        decide=at + 10,
    )


def sc11(ground: Ground) -> Labels:
    at, part = ground.about(HEALTHY), ground.draw.randrange(12)
    ground.topic(rate=steady(ground.between(60, 140)))
    ground.group()
    ground.minute(at, lambda: ground.world.paused.add((ground.main, part)), "paused")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1, within=3, partitions=frozenset({part})),),
        never=only("HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION", "POISON_PILL_SUSPECT"),
        primary=STALL,
        expects=(Expect(at + 6, at + 25, only("NO_STALLED")),),
        decide=at + 10,
    )


def sc12(ground: Ground) -> Labels:
    at, part = ground.about(HEALTHY), ground.draw.randrange(12)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(poll_interval_ms=60_000)
    place = ground.main, part

    def poison() -> None:
        ground.world.poison[place] = ground.brokers.end(*place) + 50, 300 * SECOND

    ground.minute(at, poison, "poison")
    return Labels(
        at + 40,
        must=(
            Must("POISON_PILL_SUSPECT", at + 6, within=12, partitions=frozenset({part})),
            Must("POLL_TIMEOUT_EVICTION", at + 5, within=12),
        ),
        # in the end all members hold on to the record, and nobody commits any more
        may=only("REBALANCE_STORM", "PARTITION_STALLED", "REBALANCE_STRAGGLER", "CRASH_LOOP", "COMMITS_STOPPED"),
        never=only("SESSION_EVICTION", "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=only("POISON_PILL_SUSPECT"),
        expects=(Expect(at + 18, at + 40, only("NO_REBALANCE_FIRST")),),
    )


def sc33(ground: Ground) -> Labels:
    at, how = ground.about(HEALTHY), ground.one_of("close", "crash")
    ground.topic(rate=steady(ground.between(30, 80)))  # two members can do it
    ground.group(ground.one_of(2, 3, 4))

    def stop() -> None:
        for member in ground.alive():
            getattr(member, how)()

    ground.minute(at, stop, "all_stopped")
    return Labels(
        at + 32,
        must=(Must("EMPTY_WITH_LAG", at + 11, within=3),),
        may=only("SESSION_EVICTION", "OFFSETS_EXPIRY_FORECAST"),
        never=only("CAPACITY_SHORTAGE", "PARTITION_STALLED", "COMMITS_STOPPED"),
        primary=only("EMPTY_WITH_LAG"),
        expects=(Expect(at + 4, at + 32, only("NO_MEMBERS")),),
    )


def sc34(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(60, 140)))
    poll_ms = ground.one_of(60_000, 120_000, 300_000)
    ground.group(poll_interval_ms=poll_ms)
    ground.minute(at, lambda: ground.coordinator.refusing.add(ground.name()), "commits_fail")
    return Labels(
        at + 25,
        must=(Must("COMMITS_STOPPED", at + poll_ms / MINUTE, within=4),),
        may=only("CAPACITY_SHORTAGE"),
        never=only("HOT_PARTITION_ARRIVAL", "SLOW_MEMBER", "PARTITION_STALLED"),
        primary=only("COMMITS_STOPPED"),
        primary_minutes=(at + 10, at + 25),
    )


def _checkpointer(ground: Ground, commit_ms: int, parts: int) -> None:
    config = ground.config(commit_ms=commit_ms, capacity=4000.0, max_records=10_000)
    reader = Checkpointer(ground, config, [(ground.main, part) for part in range(parts)])
    ground.members.append(reader)
    ground.clock.after(SECOND, reader.start)


def sc35(ground: Ground) -> Labels:
    at, parts = ground.about(HEALTHY + 10), ground.one_of(4, 8, 12)
    ground.topic(partitions=parts, rate=steady(ground.between(40, 120)))
    _checkpointer(ground, ground.one_of(5, 10, 20) * SECOND, parts)
    stuck = frozenset(ground.draw.sample(range(parts), max(1, parts // 4)))
    ground.minute(at, lambda: ground.world.paused.update((ground.main, part) for part in stuck), "paused")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1.5, within=3), Must("EXTERNAL_COMMITTER", 11, within=4)),
        never=only("SLOW_MEMBER", "EMPTY_WITH_LAG", "COMMITS_STOPPED", "HOT_PARTITION_ARRIVAL"),
        primary=STALL,
    )


def _reset(ground: Ground, offsets: dict[tuple[str, int], int]) -> None:
    """As an operator does it: the group is stopped, reset, and started again."""
    number = len(ground.alive())
    for member in ground.alive():
        member.close("reset")

    def start() -> None:
        ground.coordinator.store(ground.name(), offsets)
        for index in range(number):
            ground.start(ground.config(index))

    ground.clock.after(90 * SECOND, start)


def sc37(ground: Ground) -> Labels:
    at, back = ground.about(HEALTHY + 10), ground.between(8, 14)
    rate = ground.between(50, 80)
    ground.topic(rate=steady(rate))
    ground.group()

    def rewind() -> None:
        then = ground.clock.now - round(back * MINUTE)
        logs = ground.brokers.topics[ground.main].logs
        _reset(ground, {(ground.main, part): log.end_at(then) for part, log in enumerate(logs)})

    ground.minute(at, rewind, "reset")
    return Labels(
        at + 25,
        must=(Must("OFFSET_REWIND", at + 1.5, within=4),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=only("CAPACITY_SHORTAGE", "CAPACITY_BURST", "HOT_PARTITION_ARRIVAL"),
        expects=(Expect(at + 20, at + 25, only("NOT_NEEDED", "NOT_NEEDED_DRAINING")),),
    )


def sc38(ground: Ground) -> Labels:
    at = ground.about(HEALTHY + 15)
    begin = HEALTHY
    ground.topic(rate=piecewise((0, 100), (round(begin * MINUTE), 1000)))
    ground.group(4, capacity=600.0)

    def skip() -> None:
        logs = ground.brokers.topics[ground.main].logs
        now = ground.clock.now + 89 * SECOND
        _reset(ground, {(ground.main, part): log.end_at(now) for part, log in enumerate(logs)})
        for log in logs:
            log._rate = steady(100)

    ground.minute(at, skip, "reset")
    return Labels(
        at + 20,
        must=(Must("OFFSET_SKIP", at + 1.5, within=4),),
        may=only("CAPACITY_SHORTAGE", "CAPACITY_BURST", "AT_PARTITION_CEILING"),
        expects=(Expect(at + 8, at + 20, CALM),),
    )


def sc61(ground: Ground) -> Labels:
    at, part = ground.about(HEALTHY), ground.draw.randrange(12)
    ground.topic(rate=steady(ground.between(60, 140)))
    for number in range(2):
        for index in range(4):
            config = ground.config(
                10 * number + index, group=ground.name(number), client_id=f"app-{number}", poll_interval_ms=HOUR
            )
            ground.clock.after(ground.chance.randint(0, 2 * SECOND), lambda config=config: ground.start(config))
    chosen = ground.draw.randrange(2)
    group = ground.name(chosen)
    ground.minute(at, lambda: ground.owner((ground.main, part), group).hang(HOUR), "hang")
    return Labels(
        at + 25,
        must=(Must("PARTITION_STALLED", at + 1, within=3, group=group),),
        never=only("BROKER_CORRELATED", "SLOW_MEMBER"),
        primary=STALL,
        expects=(
            Expect(at + 6, at + 25, only("NO_STALLED"), group),
            Expect(at + 6, at + 25, CALM, ground.name(1 - chosen)),
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
