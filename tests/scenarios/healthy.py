"""What looks like a fault and is none: no meta finding, symptom or cause may open."""

from __future__ import annotations

from scenarios.ground import HEALTHY, Checkpointer, Ground
from scenarios.labels import CALM, Expect, Labels, Scenario, only
from scenarios.rebalances import find_leader
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import piecewise, steady
from simulator.stage import MINUTE, SECOND


def _calm(minutes: float, begin: float = 12) -> Labels:
    return Labels(minutes, expects=(Expect(begin, minutes, CALM),))


def la1(ground: Ground) -> Labels:
    ground.topic(rate=steady(0))
    ground.group(ground.one_of(1, 4), commit_ms=ground.one_of(1, 5) * SECOND)
    return _calm(75)


def la2(ground: Ground) -> Labels:
    rate = ground.between(8000, 12000)
    ground.topic(rate=steady(rate))
    ground.group(capacity=6 * rate, max_records=60_000)
    return _calm(40)


def la3(ground: Ground) -> Labels:
    load, capacity = ground.between(0.4, 0.6), ground.between(400, 800)
    ground.topic(rate=steady(load * capacity / 3))
    ground.group(capacity=capacity, commit_ms=60 * SECOND)
    return _calm(60)


def la4(ground: Ground) -> Labels:
    parts = ground.one_of(4, 12)
    ground.topic(partitions=parts, rate=steady(ground.between(40, 200)))
    config = ground.config(commit_ms=600 * SECOND, capacity=10_000.0, max_records=10_000)
    reader = Checkpointer(ground, config, [(ground.main, part) for part in range(parts)])
    ground.members.append(reader)
    ground.clock.after(ground.draw.randint(0, 120) * SECOND, reader.start)
    return _calm(120, 45)


def la5(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(ground.one_of(3, 4, 6))
    how = ground.one_of("close", "crash")
    ground.minute(at, lambda: ground.restart(ground.one_of(*ground.alive()), 20 * SECOND, how=how), "restart")
    return _calm(at + 20, at + 8)


def la6(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group()
    ground.minute(at, lambda: ground.grow(2), "scale_out")

    def shrink() -> None:
        for member in sorted(ground.alive(), key=lambda each: each.name)[-2:]:
            member.close("scale_in")

    ground.minute(at + 50, shrink, "scale_in")
    return _calm(at + 70, at + 55)


def la7(ground: Ground) -> Labels:
    """Every hour a batch arrives that is gone four minutes later."""
    rate, capacity = ground.between(40, 70), 600.0
    begin = ground.about(HEALTHY)
    total = 12 * rate
    lasts = 1.0
    burst = (2400 - total) * 4 / lasts / 12  # what four minutes of spare capacity can take, above the usual
    steps = [(0, rate)]
    for number in range(2):
        at = begin + 60 * number
        steps += [(round(at * MINUTE), rate + 0.8 * burst), (round((at + lasts) * MINUTE), rate)]
    ground.topic(rate=piecewise(*steps))
    ground.group(capacity=capacity)
    return Labels(begin + 75, may=only("CAPACITY_BURST"))


def la8(ground: Ground) -> Labels:
    capacity = ground.between(700, 1000)
    low = ground.between(0.07, 0.1) * capacity
    ground.rates([steady(5 * low if part % 3 == 0 else low) for part in range(12)])
    ground.group(capacity=capacity)
    return _calm(50)


def la10(ground: Ground) -> Labels:
    """The leader joins again every ten minutes, as Streams does while it warms tasks up."""
    ground.topic(rate=steady(ground.between(60, 100)))
    ground.group(assignors=("cooperative-sticky",))

    def probe() -> None:
        leader = find_leader(ground)
        if leader is not None:
            leader.rejoin("leader_rejoin")

    ground.every(600, HEALTHY, 74, probe)
    return _calm(75)


def la11(ground: Ground) -> Labels:
    """A new group reads a backlog from the beginning, as fast as it can."""
    begin, rate, capacity = 25, ground.between(30, 50), ground.between(600, 900)
    ground.topic(rate=steady(rate))
    ground.minute(begin, lambda: ground.group(capacity=capacity), "new_group")
    drain = begin * 12 * rate / (4 * capacity - 12 * rate)
    return Labels(begin + drain + 15, may=only("CAPACITY_BURST"))


def la12(ground: Ground) -> Labels:
    at = ground.about(30)
    rate = ground.between(60, 120)
    ground.topic(rate=piecewise(
        (0, rate), (round(at * MINUTE), rate / 4), (round((at + 8) * MINUTE), 0.2), (round((at + 16) * MINUTE), 0),
    ))  # fmt: skip
    ground.group()
    return _calm(at + 50)


def la13(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    ground.topic(rate=steady(ground.between(80, 120)))
    ground.group(4, ground.one_of(Member, ModernMember))
    load_ms = ground.draw.randint(1, 6) * SECOND
    ground.minute(at, lambda: ground.coordinator.fail_over(partition_of(ground.name()), load_ms), "failover")
    return _calm(at + 20)


def la14(ground: Ground) -> Labels:
    """One member after the other subscribes to one topic more."""
    at = ground.about(HEALTHY)
    more = f"{ground.main}-more"
    ground.topic(rate=steady(ground.between(60, 100)))
    ground.topic(more, partitions=4, rate=steady(20))
    ground.group()
    for number in range(4):
        ground.minute(
            at + 0.5 * number,
            lambda number=number: ground.alive()[number].subscribe(ground.main, more),
            "subscription_change",
        )
    return _calm(at + 25, at + 8)


def la18(ground: Ground) -> Labels:
    at = ground.about(HEALTHY)
    low, more = ground.one_of((4, 2), (3, 3), (4, 8))
    ground.topic(rate=steady(ground.between(60, 100)))
    ground.group(low, assignors=("cooperative-sticky",))
    ground.minute(at, lambda: ground.grow(more), "scale_out")
    return _calm(at + 25, at + 6)


def la19(ground: Ground) -> Labels:
    """A commit after each batch, and batches of 1 to 40 seconds."""
    ground.topic(rate=steady(ground.between(20, 40)))
    ground.group(commit_ms=0, batch_ms=(1000, 40_000), max_records=100_000, capacity=4000.0)
    return _calm(60)


def la20(ground: Ground) -> Labels:
    ground.topic(rate=steady(ground.between(60, 120)))
    ground.group()
    return _calm(40)


SCENARIOS = (
    Scenario("LA1", "nothing arrives, commits go on", la1),
    Scenario("LA2", "very much arrives and is done", la2),
    Scenario("LA3", "a commit every minute", la3),
    Scenario("LA4", "a checkpoint every ten minutes", la4),
    Scenario("LA5", "one member restarts", la5),
    Scenario("LA6", "two members more for an hour, as planned", la6),
    Scenario("LA7", "an hourly batch", la7),
    Scenario("LA8", "arrivals five times apart, and capacity for them", la8),
    Scenario("LA10", "the leader joins again every ten minutes", la10),
    Scenario("LA11", "a new group catches up", la11),
    Scenario("LA12", "night falls", la12),
    Scenario("LA13", "a coordinator moves, sessions survive", la13),
    Scenario("LA14", "one member after the other subscribes to one topic more", la14),
    Scenario("LA18", "more members, cooperative-sticky", la18),
    Scenario("LA19", "a commit per batch, batches of 1 to 40 s", la19),
    Scenario("LA20", "the poller's clock is 20 s ahead", la20, poll_ahead_ms=20_000),
)
