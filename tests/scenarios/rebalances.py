"""Members that leave, return, are put out, are replaced; assignors that change; coordinators that go away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scenarios.ground import HEALTHY, Ground
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from simulator.classic_group import ClassicGroup
from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import piecewise, steady
from simulator.stage import MINUTE, SECOND

EVICTIONS = frozenset({"POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "CRASH_LOOP"})
TURMOIL = frozenset({"REBALANCE_STORM", "REBALANCE_STRAGGLER", "REBALANCE_INCOMPLETE"})
FIRST = frozenset({"NO_REBALANCE_FIRST"})


def sc13(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(poll_interval_ms=60_000)
    factor = ground.between(90, 120)  # a full batch takes 75 s and more
    slower = {(ground.main, part): factor for part in range(12)}
    ground.minute(at, lambda: ground.world.costs.update(slower), "slow_records")
    return Labels(
        at + 40,
        must=(Must("POLL_TIMEOUT_EVICTION", at + 5, within=8),),
        may=TURMOIL | only("COMMITS_STOPPED", "PARTITION_STALLED"),
        never=only("CAPACITY_SHORTAGE", "AT_PARTITION_CEILING", "SESSION_EVICTION", "POISON_PILL_SUSPECT"),
        primary=only("POLL_TIMEOUT_EVICTION"),
        expects=(Expect(at + 12, at + 40, FIRST),),
    )


def sc14(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(session_ms=10_000)
    every, lasts = ground.between(100, 130), ground.between(14, 18)

    def freeze() -> None:
        ground.one_of(*ground.alive()).freeze(round(lasts * SECOND), "gc")

    ground.every(every, at, at + 36, freeze)
    return Labels(
        at + 36,
        must=(Must("SESSION_EVICTION", at + 2 * every / 60 + 1, within=8),),
        may=TURMOIL,
        never=only("POLL_TIMEOUT_EVICTION", "CAPACITY_SHORTAGE", "DEPLOY_LAG_SPIKE"),
        primary=only("SESSION_EVICTION"),
        expects=(Expect(at + 12, at + 36, FIRST | CALM),),
    )


def sc15(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group()
    victim: list[Any] = []
    life, pause = ground.between(20, 40), ground.between(15, 25)

    def start() -> None:
        victim[:] = [ground.start(victim[0].config)]
        ground.clock.after(round(life * SECOND), stop)

    def stop() -> None:
        victim[0].crash("crash_loop") if is_hard else victim[0].close("crash_loop")
        ground.clock.after(round(pause * SECOND), start)

    def begin() -> None:
        victim.append(ground.one_of(*ground.alive()))
        stop()

    is_hard = ground.one_of(False, False, True)
    ground.minute(at, begin, "crash_loop")
    return Labels(
        at + 30,
        must=(Must("CRASH_LOOP", at + 4, within=5),),
        may=TURMOIL | only("SESSION_EVICTION"),
        never=only("POLL_TIMEOUT_EVICTION", "DEPLOY_LAG_SPIKE", "CAPACITY_SHORTAGE"),
        primary=only("CRASH_LOOP"),
        expects=(Expect(at + 10, at + 30, FIRST | CALM),),
    )


def find_leader(ground: Ground) -> Any:
    group = ground.coordinator.groups[ground.name()]
    assert isinstance(group, ClassicGroup)
    return next((each for each in ground.alive() if each.member_id == group.leader), None)


def sc16(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group()

    def rejoin() -> None:
        leader = find_leader(ground)
        if leader is not None:
            leader.rejoin("leader_rejoin")

    ground.every(ground.between(3, 5), at, at + 12, rejoin)
    return Labels(
        at + 16,
        must=(Must("REBALANCE_STORM", at + 3, within=12),),
        may=only("CAPACITY_SHORTAGE"),
        never=EVICTIONS | only("DEPLOY_LAG_SPIKE"),
        primary=only("REBALANCE_STORM"),
        primary_minutes=(at + 8, at + 13),
        expects=(Expect(at + 6, at + 12, FIRST | CALM),),
    )


def deploy(ground: Ground, at: float, gap: float, every: float, members: int) -> float:
    """One pod after the other; the minute of the last return."""

    def renew(index: int) -> None:
        member = order[index]
        member.close("deploy")
        host = member.config.host if member.config.instance_id else f"/10.2.{ground.place}.{index}"
        ground.clock.after(round(gap * SECOND), lambda: ground.start(replace(member.config, host=host), type(member)))

    order: list[Any] = []
    ground.minute(at, lambda: order.extend(ground.alive()), "deploy")
    for index in range(members):
        ground.minute(at + 0.01 + index * every / 60, lambda index=index: renew(index))
    return at + ((members - 1) * every + gap) / 60


def _rolling(ground: Ground, **changes: Any) -> tuple[float, float, int]:
    at, members = ground.about(HEALTHY), ground.one_of(6, 8, 8)
    ground.topic(partitions=24, rate=steady(ground.between(80, 115)))
    if changes.pop("static", False):
        ground.static(members, **changes)
    else:
        ground.group(members, **changes)
    gap = ground.between(20, 40)
    over = deploy(ground, at, gap, gap + ground.between(20, 40), members)
    return at, over, members


DEPLOY_NEVER = frozenset({"REBALANCE_STORM", "CAPACITY_SHORTAGE", *EVICTIONS})


def sc17(ground: Ground) -> Labels:
    at, over, _ = _rolling(ground)
    return Labels(
        over + 12,
        must=(Must("DEPLOY_LAG_SPIKE", over, within=12),),
        never=DEPLOY_NEVER,
        primary=only("DEPLOY_LAG_SPIKE"),
        primary_minutes=(at + 4, over + 12),
    )


def sc18(ground: Ground) -> Labels:
    _, over, _ = _rolling(ground, static=True)
    return Labels(
        over + 12, never=DEPLOY_NEVER | only("STATIC_EXPIRED", "STATIC_DUPLICATE"), may=only("DEPLOY_LAG_SPIKE")
    )


def sc19(ground: Ground) -> Labels:
    _, over, _ = _rolling(ground, assignors=("cooperative-sticky",))
    return Labels(over + 12, may=only("DEPLOY_LAG_SPIKE"), never=DEPLOY_NEVER)


def sc62(ground: Ground) -> Labels:
    at, members = ground.about(HEALTHY), 8
    capacity, ratio = ground.between(500, 700), ground.between(1.15, 1.35)
    ground.topic(partitions=24, rate=piecewise((0, 0.4 * capacity / 3), (round(at * MINUTE), ratio * capacity / 3)))
    ground.group(members, capacity=capacity)
    gap = ground.between(30, 45)
    over = deploy(ground, at, gap, gap + 20, members)
    return Labels(
        over + 25,
        must=(Must("CAPACITY_SHORTAGE", over, within=10),),
        may=only("DEPLOY_LAG_SPIKE"),
        never=EVICTIONS | only("REBALANCE_STORM"),
        primary=only("CAPACITY_SHORTAGE"),
    )


def sc20(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.static(4)
    away = ground.between(60, 110)
    ground.minute(at, lambda: ground.restart(ground.one_of(*ground.alive()), round(away * SECOND)), "static_restart")
    return Labels(
        at + 18,
        must=(Must("STATIC_EXPIRED", at + away / 60, within=4),),
        never=EVICTIONS | only("STATIC_DUPLICATE", "STATIC_ID_UNSTABLE", "REBALANCE_STORM"),
        primary=only("STATIC_EXPIRED"),
        primary_minutes=(at + away / 60 + 2, at + away / 60 + 5),
    )


def sc21(ground: Ground) -> Labels:
    """Each of the two is started again whenever the other one puts it out."""
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.static(4)
    pair: list[Any] = []

    def turn() -> None:
        for index, member in enumerate(pair):
            if member.is_dead:
                pair[index] = ground.start(member.config)

    def begin() -> None:
        first = ground.one_of(*ground.alive())
        pair.extend([first, ground.start(replace(first.config, host=f"/10.9.{ground.place}.9"))])

    ground.minute(at, begin, "duplicate")
    ground.every(ground.between(18, 30), at + 0.3, at + 22, turn)
    return Labels(
        at + 22,
        must=(Must("STATIC_DUPLICATE", at + 2, within=5),),
        may=TURMOIL | only("CRASH_LOOP"),  # who is fenced is started again, every time
        never=only("POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "DEPLOY_LAG_SPIKE"),
        primary=only("STATIC_DUPLICATE"),
    )


def sc22(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.static(4)
    every = ground.between(150, 200)

    def renew(number: int) -> None:
        member = ground.alive()[0]
        member.close("restart")
        config = replace(
            member.config, instance_id=f"billing-{ground.draw.randrange(10**6)}", host=f"/10.0.0.{50 + number}"
        )
        ground.clock.after(20 * SECOND, lambda: ground.start(config))

    for number in range(4):
        ground.minute(at + number * every / 60, lambda number=number: renew(number), "new_instance_id")
    return Labels(
        at + 4 * every / 60 + 12,
        must=(Must("STATIC_ID_UNSTABLE", at + (2 * every + 70) / 60, within=6),),
        may=TURMOIL | only("DEPLOY_LAG_SPIKE"),
        never=only("STATIC_DUPLICATE", "POLL_TIMEOUT_EVICTION", "CAPACITY_SHORTAGE"),
        primary=only("STATIC_ID_UNSTABLE"),
        primary_minutes=(at + (3 * every + 80) / 60, at + 4 * every / 60 + 3),
    )


def sc23(ground: Ground) -> Labels:
    at, every = ground.about(HEALTHY), ground.between(4, 6)
    low, high = ground.one_of((3, 6), (2, 4), (4, 8))
    ground.topic(rate=steady(ground.between(40, 60)))
    ground.group(low)

    def turn(number: int) -> None:
        if number % 2 == 0:
            ground.grow(high - low)
        else:
            for member in sorted(ground.alive(), key=lambda each: each.name)[low:]:
                member.close("scale_in")

    for number in range(6):
        ground.minute(at + number * every, lambda number=number: turn(number), "scale")
    return Labels(
        at + 6 * every + 4,
        must=(Must("SCALE_OSCILLATION", at + 3 * every, within=4),),
        never=EVICTIONS | only("DEPLOY_LAG_SPIKE", "CAPACITY_SHORTAGE"),
        may=only("REBALANCE_STORM"),
        primary=only("SCALE_OSCILLATION"),
        primary_minutes=(at + 3 * every + 4, at + 6 * every + 4),
        expects=(Expect(at + 3 * every + 3, at + 5 * every, FIRST | CALM),),
    )


def sc24(ground: Ground) -> Labels:
    at, away = ground.about(HEALTHY), ground.between(18, 24)
    ground.topic(rate=steady(20))
    ground.group(2)
    ground.minute(at, lambda: [member.close("scale_to_zero") for member in ground.alive()], "scale_to_zero")
    ground.minute(at + away, lambda: ground.grow(2), "return")
    drain = away * 240 / (1200 - 240)
    return Labels(
        at + away + drain + 10,
        must=(
            Must("EMPTY_WITH_LAG", at + 10.5, within=3),
            Must("SCALE_ZERO_COLD_START", at + away, within=8),
        ),
        may=only("OFFSETS_EXPIRY_FORECAST"),
        never=only("CAPACITY_SHORTAGE", "CAPACITY_BURST", "HOT_PARTITION_ARRIVAL", "COMMITS_STOPPED"),
        primary=only("EMPTY_WITH_LAG"),
        primary_minutes=(at + 15, at + away),
        expects=(Expect(at + 4, at + away - 1, only("NO_MEMBERS")),),
    )


def sc26(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    poll_ms = ground.one_of(120_000, 180_000, 300_000)
    ground.topic(rate=steady(ground.between(60, 120)))
    ground.group(poll_interval_ms=poll_ms)
    index, later = ground.draw.randrange(4), ground.between(2, 12)
    ground.minute(at, lambda: ground.alive()[index].hang(2 * poll_ms), "slow_batch")
    ground.minute(at + later / 60, lambda: ground.grow(1), "join")
    return Labels(
        at + poll_ms / MINUTE + 14,
        must=(Must("REBALANCE_STRAGGLER", at + poll_ms / MINUTE, within=4),),
        may=only("COMMITS_STOPPED", "PARTITION_STALLED", "POLL_TIMEOUT_EVICTION", "REBALANCE_INCOMPLETE"),
        never=only("CAPACITY_SHORTAGE", "SESSION_EVICTION", "REBALANCE_STORM"),
        primary=only("REBALANCE_STRAGGLER"),
        primary_minutes=(at + poll_ms / MINUTE + 2, at + poll_ms / MINUTE + 5),
    )


def sc27(ground: Ground) -> Labels:
    """Leaders die between join and sync, so that generations pass of which no record tells."""
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(60, 120)))
    ground.group(4, session_ms=10_000, poll_interval_ms=20_000)
    times = [0]

    def watch(left: int) -> None:
        group = ground.coordinator.groups[ground.name()]
        if left and getattr(group, "state", "") == "CompletingRebalance":
            leader = find_leader(ground)
            if leader is not None:
                times[0] += 1
                ground.restart(leader, 2 * SECOND, how="crash", why="crash")
                ground.clock.after(5 * SECOND, lambda: watch(left - 1))
                return
        if left:
            ground.clock.after(2, lambda: watch(left))

    for number in range(2):
        ground.minute(at + 3 * number, lambda: watch(2), "interrupted")
        ground.minute(at + 3 * number + 0.02, lambda: ground.grow(1))
    return Labels(
        at + 18,
        must=(Must("REBALANCE_INCOMPLETE", at + 4.5, within=5),),
        may=TURMOIL | EVICTIONS,
        never=only("CAPACITY_SHORTAGE", "DEPLOY_LAG_SPIKE"),
        primary=only("REBALANCE_INCOMPLETE", "CRASH_LOOP", "SESSION_EVICTION"),
        primary_minutes=(at + 6, at + 8),
    )


def sc28(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(4, assignors=("cooperative-sticky",))
    ground.minute(at, lambda: ground.grow(2), "scale_out")
    return Labels(at + 20, expects=(Expect(at + 5, at + 20, CALM),))


def sc29(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(60, 100)))
    ground.group(4, assignors=("roundrobin",))

    def leave() -> None:
        ground.restart(ground.alive()[0], 60 * SECOND, why="restart")

    for number in range(6):
        ground.minute(at + 8 * number, leave, "leave")
    return Labels(
        at + 52,
        # the third rebalance is at the second departure, the second return of a partition soon after
        must=(Must("NON_STICKY_MOVES", at + 8, within=10), Must("PING_PONG", at + 9, within=15)),
        never=only("REBALANCE_STORM", "CAPACITY_SHORTAGE", "DEPLOY_LAG_SPIKE", "CRASH_LOOP"),
    )


def sc30(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(60, 120)))
    ground.group(4, ModernMember, poll_interval_ms=120_000)
    index = ground.draw.randrange(4)

    def block() -> None:
        member = ground.alive()[index]
        member.settle = lambda done, places=None, *, is_wanted: None  # its revoke callback never returns
        ground.grow(2, ModernMember)

    ground.minute(at, block, "revoke_hangs")
    return Labels(
        at + 18,
        must=(Must("RECONCILE_STUCK", at + 2, within=6),),
        never=only("CAPACITY_SHORTAGE"),
        # one rebalance that takes minutes fills a fifth of the time, too
        may=only("PARTITION_STALLED", "PARTITION_UNOWNED", "REBALANCE_STORM"),
        primary=only("RECONCILE_STUCK", "PARTITION_STALLED"),
    )


def sc31(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(partitions=200, rate=steady(8))
    ground.group(20, capacity=400.0)
    ground.minute(at, lambda: ground.restart(ground.one_of(*ground.alive()), 20 * SECOND), "restart")
    return Labels(
        at + 12, must=(Must("EAGER_LARGE_GROUP", at + 0.5, within=13),), expects=(Expect(at + 6, at + 12, CALM),)
    )


def sc32(ground: Ground) -> Labels:
    """A rolling change of the assignor that is taken back, and tried again."""
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(60, 100)))
    ground.group(4)
    steps = (("cooperative-sticky", "range"), ("cooperative-sticky",), ("cooperative-sticky", "range"), ("range",))

    def roll(assignors: tuple[str, ...]) -> None:
        for index, member in enumerate(ground.alive()):
            fresh = replace(member.config, assignors=assignors)
            ground.clock.after(index * 25 * SECOND, lambda member=member: member.close("deploy"))
            ground.clock.after((index * 25 + 10) * SECOND, lambda fresh=fresh: ground.start(fresh))

    every = ground.between(4, 6)
    for number in range(6):
        ground.minute(at + number * every, lambda number=number: roll(steps[number % 4]), "assignor_change")
    return Labels(
        at + 6 * every + 6,
        must=(Must("ASSIGNOR_FLAP", at + 3 * every + 2, within=12),),
        may=TURMOIL | only("DEPLOY_LAG_SPIKE", "CRASH_LOOP"),
        never=only("CAPACITY_SHORTAGE", "POLL_TIMEOUT_EVICTION"),
        primary=only("ASSIGNOR_FLAP"),
    )


def sc45(ground: Ground) -> Labels:
    """The groups of one broker lose their coordinator for longer than their session."""
    at, groups = ground.about(HEALTHY), 12
    ground.topic(partitions=4, rate=steady(ground.between(20, 40)))
    for number in range(groups):
        for index in range(2):
            config = ground.config(
                10 * number + index, group=ground.name(number), client_id=f"app-{number}", session_ms=10_000
            )
            ground.clock.after(ground.chance.randint(0, 2 * SECOND), lambda config=config: ground.start(config))
    broker = ground.draw.randrange(3)
    lost = [ground.name(number) for number in range(groups) if partition_of(ground.name(number)) % 3 == broker]

    def restart() -> None:
        for name in lost:
            ground.coordinator.fail_over(partition_of(name), 2 * SECOND)
            ground.clock.after(3 * SECOND, lambda name=name: ground.alive(name)[0].rejoin("coordinator_move"))

    ground.minute(at, restart, "coordinator_restart")
    return Labels(
        at + 12,
        must=(Must("COORDINATOR_CORRELATED", at + 0.3, within=4),),
        never=only("REBALANCE_STORM", "SESSION_EVICTION", "REBALANCE_STRAGGLER"),
        primary=only("COORDINATOR_CORRELATED"),
        primary_minutes=(at + 2, at + 4),
    )


SCENARIOS = (
    Scenario("SC13", "every batch takes longer than the poll interval", sc13),
    Scenario("SC14", "pauses longer than the session, on one member after the other", sc14),
    Scenario("SC15", "one member exits soon after each start", sc15),
    Scenario("SC16", "the leader joins again every few seconds", sc16),
    Scenario("SC17", "a rolling deploy", sc17),
    Scenario("SC18", "a rolling deploy of static members", sc18),
    Scenario("SC19", "a rolling deploy, cooperative-sticky", sc19),
    Scenario("SC20", "a static member stays away longer than its session", sc20),
    Scenario("SC21", "two members with one instance id", sc21),
    Scenario("SC22", "a new instance id at each restart", sc22),
    Scenario("SC23", "members are added and removed every few minutes", sc23),
    Scenario("SC24", "to zero members and back", sc24),
    Scenario("SC26", "a join waits for a member in a long batch", sc26),
    Scenario("SC27", "leaders die between join and sync", sc27),
    Scenario("SC28", "two more members, cooperative-sticky", sc28),
    Scenario("SC29", "one member goes and returns, roundrobin", sc29),
    Scenario("SC30", "a revoke callback that never returns, KIP-848", sc30),
    Scenario("SC31", "one restart in a large eager group", sc31),
    Scenario("SC32", "the assignor is changed to and fro", sc32),
    Scenario("SC45", "a coordinator broker restarts", sc45, groups=12),
    Scenario("SC62", "a rolling deploy and too much work at once", sc62),
)
