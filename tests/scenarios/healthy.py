"""What looks like a fault and is none: no meta finding, symptom or cause may open."""

from __future__ import annotations

from scenarios.cluster import HEALTHY, Checkpointer, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Scenario, only
from scenarios.rebalances import find_leader
from simulator.cluster import MINUTE, SECOND
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import piecewise, steady


def _calm(minutes: float, begin: float = 12) -> Labels:
    return Labels(minutes, expects=(Expect(begin, minutes, CALM),))


def la1(cluster: ScenarioCluster) -> Labels:
    cluster.topic(rate=steady(0))
    cluster.group(cluster.one_of(1, 4), commit_ms=cluster.one_of(1, 5) * SECOND)
    return _calm(75)


def la2(cluster: ScenarioCluster) -> Labels:
    rate = cluster.between(8000, 12000)
    cluster.topic(rate=steady(rate))
    cluster.group(capacity=6 * rate, max_records=60_000)
    return _calm(40)


def la3(cluster: ScenarioCluster) -> Labels:
    load, capacity = cluster.between(0.4, 0.6), cluster.between(400, 800)
    cluster.topic(rate=steady(load * capacity / 3))
    cluster.group(capacity=capacity, commit_ms=60 * SECOND)
    return _calm(60)


def la4(cluster: ScenarioCluster) -> Labels:
    parts = cluster.one_of(4, 12)
    cluster.topic(partitions=parts, rate=steady(cluster.between(40, 200)))
    config = cluster.config(commit_ms=600 * SECOND, capacity=10_000.0, max_records=10_000)
    reader = Checkpointer(cluster, config, [(cluster.main, part) for part in range(parts)])
    cluster.members.append(reader)
    cluster.clock.after(cluster.draw.randint(0, 120) * SECOND, reader.start)
    return _calm(120, 45)


def la5(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group(cluster.one_of(3, 4, 6))
    how = cluster.one_of("close", "crash")
    cluster.minute(
        at,
        lambda: cluster.restart(cluster.one_of(*cluster.alive()), 20 * SECOND, how=how),
        "restart",
    )
    return _calm(at + 20, at + 8)


def la6(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group()
    cluster.minute(at, lambda: cluster.grow(2), "scale_out")

    def shrink() -> None:
        for member in sorted(cluster.alive(), key=lambda each: each.name)[-2:]:
            member.close("scale_in")

    cluster.minute(at + 50, shrink, "scale_in")
    return _calm(at + 70, at + 55)


def la7(cluster: ScenarioCluster) -> Labels:
    """Every hour a batch arrives that is gone four minutes later."""
    rate, capacity = cluster.between(40, 70), 600.0
    begin = cluster.about(HEALTHY)
    total = 12 * rate
    lasts = 1.0
    # what four minutes of spare capacity can take, above the usual
    burst = (2400 - total) * 4 / lasts / 12
    steps = [(0, rate)]
    for number in range(2):
        at = begin + 60 * number
        steps += [(round(at * MINUTE), rate + 0.8 * burst), (round((at + lasts) * MINUTE), rate)]
    cluster.topic(rate=piecewise(*steps))
    cluster.group(capacity=capacity)
    return Labels(begin + 75, may=only("CAPACITY_BURST"))


def la8(cluster: ScenarioCluster) -> Labels:
    capacity = cluster.between(700, 1000)
    low = cluster.between(0.07, 0.1) * capacity
    cluster.rates([steady(5 * low if part % 3 == 0 else low) for part in range(12)])
    cluster.group(capacity=capacity)
    return _calm(50)


def la10(cluster: ScenarioCluster) -> Labels:
    """The leader joins again every ten minutes, as Streams does while it warms tasks up."""
    cluster.topic(rate=steady(cluster.between(60, 100)))
    cluster.group(assignors=("cooperative-sticky",))

    def probe() -> None:
        leader = find_leader(cluster)
        if leader is not None:
            leader.rejoin("leader_rejoin")

    cluster.every(600, HEALTHY, 74, probe)
    return _calm(75)


def la11(cluster: ScenarioCluster) -> Labels:
    """A new group reads a backlog from the beginning, as fast as it can."""
    begin, rate, capacity = 25, cluster.between(30, 50), cluster.between(600, 900)
    cluster.topic(rate=steady(rate))
    cluster.minute(begin, lambda: cluster.group(capacity=capacity), "new_group")
    drain = begin * 12 * rate / (4 * capacity - 12 * rate)
    return Labels(begin + drain + 15, may=only("CAPACITY_BURST"))


def la12(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(30)
    rate = cluster.between(60, 120)
    cluster.topic(rate=piecewise(
        (0, rate), (round(at * MINUTE), rate / 4), (round((at + 8) * MINUTE), 0.2),
        (round((at + 16) * MINUTE), 0),
    ))  # fmt: skip
    cluster.group()
    return _calm(at + 50)


def la13(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    cluster.topic(rate=steady(cluster.between(80, 120)))
    cluster.group(4, cluster.one_of(Member, ModernMember))
    load_ms = cluster.draw.randint(1, 6) * SECOND
    cluster.minute(
        at, lambda: cluster.coordinator.fail_over(partition_of(cluster.name()), load_ms), "failover"
    )
    return _calm(at + 20)


def la14(cluster: ScenarioCluster) -> Labels:
    """One member after the other subscribes to one topic more."""
    at = cluster.about(HEALTHY)
    more = f"{cluster.main}-more"
    cluster.topic(rate=steady(cluster.between(60, 100)))
    cluster.topic(more, partitions=4, rate=steady(20))
    cluster.group()
    for number in range(4):
        cluster.minute(
            at + 0.5 * number,
            lambda number=number: cluster.alive()[number].subscribe(cluster.main, more),
            "subscription_change",
        )
    return _calm(at + 25, at + 8)


def la18(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    low, more = cluster.one_of((4, 2), (3, 3), (4, 8))
    cluster.topic(rate=steady(cluster.between(60, 100)))
    cluster.group(low, assignors=("cooperative-sticky",))
    cluster.minute(at, lambda: cluster.grow(more), "scale_out")
    return _calm(at + 25, at + 6)


def la19(cluster: ScenarioCluster) -> Labels:
    """A commit after each batch, and batches of 1 to 40 seconds."""
    cluster.topic(rate=steady(cluster.between(20, 40)))
    cluster.group(commit_ms=0, batch_ms=(1000, 40_000), max_records=100_000, capacity=4000.0)
    return _calm(60)


def la20(cluster: ScenarioCluster) -> Labels:
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group()
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
