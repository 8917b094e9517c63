"""Members that are evicted or join again and again; rounds that do not end; assignors and
coordinators that change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, EVICTIONS, FIRST, TURMOIL, Expect, Labels, Must, Scenario, only
from simulator.classic_group import ClassicGroup
from simulator.cluster import MINUTE, SECOND
from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import steady


def sc13(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group(poll_interval_ms=60_000)
    factor = cluster.between(90, 120)  # a full batch takes 75 s and more
    slower = {(cluster.main, part): factor for part in range(12)}
    cluster.minute(at, lambda: cluster.world.costs.update(slower), "slow_records")
    return Labels(
        at + 40,
        must=(Must("POLL_TIMEOUT_EVICTION", at + 5, within=8),),
        may=TURMOIL | only("COMMITS_STOPPED", "PARTITION_STALLED"),
        never=only(
            "CAPACITY_SHORTAGE", "AT_PARTITION_CEILING", "SESSION_EVICTION", "POISON_PILL_SUSPECT"
        ),
        primary=only("POLL_TIMEOUT_EVICTION"),
        expects=(Expect(at + 12, at + 40, FIRST),),
    )


def sc14(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group(session_ms=10_000)
    every, lasts = cluster.between(100, 130), cluster.between(14, 18)

    def freeze() -> None:
        cluster.one_of(*cluster.alive()).freeze(round(lasts * SECOND), "gc")

    cluster.every(every, at, at + 36, freeze)
    return Labels(
        at + 36,
        must=(Must("SESSION_EVICTION", at + 2 * every / 60 + 1, within=8),),
        may=TURMOIL,
        never=only("POLL_TIMEOUT_EVICTION", "CAPACITY_SHORTAGE", "DEPLOY_LAG_SPIKE"),
        primary=only("SESSION_EVICTION"),
        expects=(Expect(at + 12, at + 36, FIRST | CALM),),
    )


def sc15(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group()
    victim: list[Any] = []
    life, pause = cluster.between(20, 40), cluster.between(15, 25)

    def start() -> None:
        victim[:] = [cluster.start(victim[0].config)]
        cluster.clock.after(round(life * SECOND), stop)

    def stop() -> None:
        victim[0].crash("crash_loop") if is_hard else victim[0].close("crash_loop")
        cluster.clock.after(round(pause * SECOND), start)

    def begin() -> None:
        victim.append(cluster.one_of(*cluster.alive()))
        stop()

    is_hard = cluster.one_of(False, False, True)
    cluster.minute(at, begin, "crash_loop")
    return Labels(
        at + 30,
        must=(Must("CRASH_LOOP", at + 4, within=5),),
        may=TURMOIL | only("SESSION_EVICTION"),
        never=only("POLL_TIMEOUT_EVICTION", "DEPLOY_LAG_SPIKE", "CAPACITY_SHORTAGE"),
        primary=only("CRASH_LOOP"),
        expects=(Expect(at + 10, at + 30, FIRST | CALM),),
    )


def find_leader(cluster: ScenarioCluster) -> Any:
    group = cluster.coordinator.groups[cluster.name()]
    assert isinstance(group, ClassicGroup)
    return next((each for each in cluster.alive() if each.member_id == group.leader), None)


def sc16(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group()

    def rejoin() -> None:
        leader = find_leader(cluster)
        if leader is not None:
            leader.rejoin("leader_rejoin")

    cluster.every(cluster.between(3, 5), at, at + 12, rejoin)
    return Labels(
        at + 16,
        must=(Must("REBALANCE_STORM", at + 3, within=12),),
        may=only("CAPACITY_SHORTAGE"),
        never=EVICTIONS | only("DEPLOY_LAG_SPIKE"),
        primary=only("REBALANCE_STORM"),
        primary_minutes=(at + 8, at + 13),
        expects=(Expect(at + 6, at + 12, FIRST | CALM),),
    )


def sc26(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    poll_ms = cluster.one_of(120_000, 180_000, 300_000)
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group(poll_interval_ms=poll_ms)
    index, later = cluster.draw.randrange(4), cluster.between(2, 12)
    cluster.minute(at, lambda: cluster.alive()[index].hang(2 * poll_ms), "slow_batch")
    cluster.minute(at + later / 60, lambda: cluster.grow(1), "join")
    return Labels(
        at + poll_ms / MINUTE + 14,
        must=(Must("REBALANCE_STRAGGLER", at + poll_ms / MINUTE, within=4),),
        may=only(
            "COMMITS_STOPPED", "PARTITION_STALLED", "POLL_TIMEOUT_EVICTION", "REBALANCE_INCOMPLETE"
        ),
        never=only("CAPACITY_SHORTAGE", "SESSION_EVICTION", "REBALANCE_STORM"),
        primary=only("REBALANCE_STRAGGLER"),
        primary_minutes=(at + poll_ms / MINUTE + 2, at + poll_ms / MINUTE + 5),
    )


def sc27(cluster: ScenarioCluster) -> Labels:
    """Leaders die between join and sync, so that generations pass of which no record tells."""
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group(4, session_ms=10_000, poll_interval_ms=20_000)
    times = [0]

    def watch(left: int) -> None:
        group = cluster.coordinator.groups[cluster.name()]
        if left and getattr(group, "state", "") == "CompletingRebalance":
            leader = find_leader(cluster)
            if leader is not None:
                times[0] += 1
                cluster.restart(leader, 2 * SECOND, how="crash", why="crash")
                cluster.clock.after(5 * SECOND, lambda: watch(left - 1))
                return
        if left:
            cluster.clock.after(2, lambda: watch(left))

    for number in range(2):
        cluster.minute(at + 3 * number, lambda: watch(2), "interrupted")
        cluster.minute(at + 3 * number + 0.02, lambda: cluster.grow(1))
    return Labels(
        at + 18,
        must=(Must("REBALANCE_INCOMPLETE", at + 4.5, within=5),),
        may=TURMOIL | EVICTIONS,
        never=only("CAPACITY_SHORTAGE", "DEPLOY_LAG_SPIKE"),
        primary=only("REBALANCE_INCOMPLETE", "CRASH_LOOP", "SESSION_EVICTION"),
        primary_minutes=(at + 6, at + 8),
    )


def sc29(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(60, 100)))
    cluster.group(4, assignors=("roundrobin",))

    def leave() -> None:
        cluster.restart(cluster.alive()[0], 60 * SECOND, why="restart")

    for number in range(6):
        cluster.minute(at + 8 * number, leave, "leave")
    return Labels(
        at + 52,
        # the third rebalance is at the second departure, the second return of a partition soon
        # after
        must=(Must("NON_STICKY_MOVES", at + 8, within=10), Must("PING_PONG", at + 9, within=15)),
        never=only("REBALANCE_STORM", "CAPACITY_SHORTAGE", "DEPLOY_LAG_SPIKE", "CRASH_LOOP"),
    )


def sc30(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group(4, ModernMember, poll_interval_ms=120_000)
    index = cluster.draw.randrange(4)

    def block() -> None:
        member = cluster.alive()[index]
        # its revoke callback never returns
        member.settle = lambda done, places=None, *, is_wanted: None
        cluster.grow(2, ModernMember)

    cluster.minute(at, block, "revoke_hangs")
    return Labels(
        at + 18,
        must=(Must("RECONCILE_STUCK", at + 2, within=6),),
        never=only("CAPACITY_SHORTAGE"),
        # one rebalance that takes minutes fills a fifth of the time, too
        may=only("PARTITION_STALLED", "PARTITION_UNOWNED", "REBALANCE_STORM"),
        primary=only("RECONCILE_STUCK", "PARTITION_STALLED"),
    )


def sc31(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(partitions=200, rate=steady(8))
    cluster.group(20, capacity=400.0)
    cluster.minute(
        at, lambda: cluster.restart(cluster.one_of(*cluster.alive()), 20 * SECOND), "restart"
    )
    return Labels(
        at + 12,
        must=(Must("EAGER_LARGE_GROUP", at + 0.5, within=13),),
        expects=(Expect(at + 6, at + 12, CALM),),
    )


def sc32(cluster: ScenarioCluster) -> Labels:
    """A rolling change of the assignor that is taken back, and tried again."""
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(60, 100)))
    cluster.group(4)
    steps = (
        ("cooperative-sticky", "range"),
        ("cooperative-sticky",),
        ("cooperative-sticky", "range"),
        ("range",),
    )

    def roll(assignors: tuple[str, ...]) -> None:
        for index, member in enumerate(cluster.alive()):
            fresh = replace(member.config, assignors=assignors)
            cluster.clock.after(index * 25 * SECOND, lambda member=member: member.close("deploy"))
            cluster.clock.after(
                (index * 25 + 10) * SECOND, lambda fresh=fresh: cluster.start(fresh)
            )

    every = cluster.between(4, 6)
    for number in range(6):
        cluster.minute(
            at + number * every, lambda number=number: roll(steps[number % 4]), "assignor_change"
        )
    return Labels(
        at + 6 * every + 6,
        must=(Must("ASSIGNOR_FLAP", at + 3 * every + 2, within=12),),
        may=TURMOIL | only("DEPLOY_LAG_SPIKE", "CRASH_LOOP"),
        never=only("CAPACITY_SHORTAGE", "POLL_TIMEOUT_EVICTION"),
        primary=only("ASSIGNOR_FLAP"),
    )


def sc45(cluster: ScenarioCluster) -> Labels:
    """The groups of one broker lose their coordinator for longer than their session."""
    at, groups = cluster.about(HEALTHY), 12
    cluster.topic(partitions=4, rate=steady(cluster.between(20, 40)))
    for number in range(groups):
        for index in range(2):
            config = cluster.config(
                10 * number + index,
                group=cluster.name(number),
                client_id=f"app-{number}",
                session_ms=10_000,
            )
            cluster.clock.after(
                cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
            )
    broker = cluster.draw.randrange(3)
    lost = [
        cluster.name(number)
        for number in range(groups)
        if partition_of(cluster.name(number)) % 3 == broker
    ]

    def restart() -> None:
        for name in lost:
            cluster.coordinator.fail_over(partition_of(name), 2 * SECOND)
            cluster.clock.after(
                3 * SECOND, lambda name=name: cluster.alive(name)[0].rejoin("coordinator_move")
            )

    cluster.minute(at, restart, "coordinator_restart")
    return Labels(
        at + 12,
        must=(Must("COORDINATOR_CORRELATED", at + 0.3, within=4, subject=str(broker)),),
        never=only("REBALANCE_STORM", "SESSION_EVICTION", "REBALANCE_STRAGGLER"),
        primary=only("COORDINATOR_CORRELATED"),
        primary_minutes=(at + 2, at + 4),
    )


SCENARIOS = (
    Scenario("SC13", "every batch takes longer than the poll interval", sc13),
    Scenario("SC14", "pauses longer than the session, on one member after the other", sc14),
    Scenario("SC15", "one member exits soon after each start", sc15),
    Scenario("SC16", "the leader joins again every few seconds", sc16),
    Scenario("SC26", "a join waits for a member in a long batch", sc26),
    Scenario("SC27", "leaders die between join and sync", sc27),
    Scenario("SC29", "one member goes and returns, roundrobin", sc29),
    Scenario("SC30", "a revoke callback that never returns, KIP-848", sc30),
    Scenario("SC31", "one restart in a large eager group", sc31),
    Scenario("SC32", "the assignor is changed to and fro", sc32),
    Scenario("SC45", "a coordinator broker restarts", sc45, groups=12),
)
