"""Too much work, or too little of what does it: everywhere, on one partition, one member, one host,
in one sink.
"""

from __future__ import annotations

from scenarios.cluster import HEALTHY, WITH_BASELINE, ScenarioCluster
from scenarios.labels import CALM, YES, Expect, Labels, Must, Scenario, only
from simulator.cluster import MINUTE, SECOND
from simulator.producer import piecewise, steady
from simulator.world import Sink

SHORTAGE = frozenset({"CAPACITY_SHORTAGE", "AT_PARTITION_CEILING"})


def sc01(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(WITH_BASELINE)
    members, each = cluster.one_of((3, 4), (4, 3), (4, 3), (5, 2), (6, 2))
    capacity, ratio = cluster.between(400, 900), cluster.between(1.08, 1.35)
    total, parts = members * capacity, members * each
    calm = cluster.between(0.4, 0.6)
    cluster.topic(
        partitions=parts,
        rate=piecewise((0, calm * total / parts), (round(at * MINUTE), ratio * total / parts)),
    )
    cluster.group(members, capacity=capacity)
    return Labels(
        at + 30,
        must=(Must("CAPACITY_SHORTAGE", at),),
        never=only("HOT_PARTITION_ARRIVAL", "CAPACITY_BURST"),
        primary=only("CAPACITY_SHORTAGE"),
        expects=(Expect(at + 12, at + 30, YES),),
        decide=at + 14,
    )


def sc02(cluster: ScenarioCluster) -> Labels:
    at, lasts = cluster.about(WITH_BASELINE), cluster.between(4.5, 6)
    # gone after 12 to 25 minutes
    times, load = cluster.between(3.6, 4.4), cluster.between(0.56, 0.62)
    capacity = cluster.between(500, 800)
    rate, parts = load * 4 * capacity / 12, 12
    cluster.topic(partitions=parts, rate=piecewise(
        (0, rate), (round(at * MINUTE), times * rate), (round((at + lasts) * MINUTE), rate),
    ))  # fmt: skip
    cluster.group(4, capacity=capacity)
    drain = lasts * (times * load - 1) / (1 - load)
    over = at + lasts
    return Labels(
        over + drain + 8,
        must=(Must("CAPACITY_BURST", over + 1),),
        may=only("CAPACITY_SHORTAGE"),
        primary=only("CAPACITY_BURST", "CAPACITY_SHORTAGE"),
        primary_minutes=(at + 4, over + drain),
        expects=(
            Expect(over + drain / 2, over + drain - 1, only("NOT_NEEDED_DRAINING", "NOT_NEEDED")),
        ),
    )


def _hot(cluster: ScenarioCluster, parts: int, members: int, hot: int) -> Labels:
    at = cluster.about(HEALTHY)
    capacity = cluster.between(450, 800)
    chosen = frozenset(cluster.draw.sample(range(parts), hot))
    if hot > 1:  # one to a member, as range assigns them
        step = parts // members
        chosen = frozenset(owner * step + cluster.draw.randrange(step) for owner in range(hot))
    others = cluster.between(0.04, 0.09) * capacity * members / parts
    heat = cluster.between(1.25, 1.8) * capacity
    cluster.rates([
        piecewise((0, others), (round(at * MINUTE), heat)) if part in chosen else steady(others)
        for part in range(parts)
    ])  # fmt: skip
    cluster.group(members, capacity=capacity)
    return Labels(
        at + 35,
        must=(Must("HOT_PARTITION_ARRIVAL", at + 3, partitions=chosen),),
        never=only("COSTLY_PARTITION", "OFFSET_SKIP"),
        primary=only("HOT_PARTITION_ARRIVAL"),
        expects=(Expect(at + 12, at + 35, only("NO_HOT_PARTITION")),),
        decide=at + 15,
    )


def sc03a(cluster: ScenarioCluster) -> Labels:
    return _hot(cluster, 12, 4, 1)


def sc03b(cluster: ScenarioCluster) -> Labels:
    return _hot(cluster, 3, 3, 1)


def sc03c(cluster: ScenarioCluster) -> Labels:
    return _hot(cluster, 6, 3, 1)


def sc03d(cluster: ScenarioCluster) -> Labels:
    return _hot(cluster, 50, 10, 5)


def sc04(cluster: ScenarioCluster) -> Labels:
    labels = _hot(cluster, 12, 4, 1)
    grown = labels.minutes - 35 + 15
    cluster.minute(grown, lambda: cluster.grow(8), "scale_out")
    return Labels(
        grown + 40,
        must=(*labels.must, Must("SCALE_OUT_FUTILE", grown + 5, within=25)),
        may=only("DEPLOY_LAG_SPIKE"),
        never=labels.never,
        primary=labels.primary,
        primary_minutes=(grown - 4, grown + 40),
        expects=(Expect(grown + 10, grown + 40, only("NO_HOT_PARTITION", "NO_IDLE")),),
    )


def sc05(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    capacity = cluster.between(550, 900)
    others = cluster.between(0.07, 0.1) * capacity
    hot, part = cluster.between(3.6, 6) * others, cluster.draw.randrange(12)
    cluster.rates([
        piecewise((0, others), (round(at * MINUTE),
            hot)) if each == part else steady(others) for each in range(12)
    ])  # fmt: skip
    cluster.group(4, capacity=capacity)
    return Labels(
        at + 45,
        must=(Must("ARRIVAL_SKEW", at + 30, within=10),),
        expects=(Expect(at + 5, at + 45, CALM),),
    )


def sc06(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    members, each = cluster.one_of((4, 3), (3, 4), (5, 2), (4, 2), (6, 3))
    capacity, load = cluster.between(450, 800), cluster.between(0.4, 0.6)
    cluster.topic(partitions=members * each, rate=steady(load * capacity / each))
    cluster.group(members, capacity=capacity)
    slow, share = cluster.draw.randrange(members), cluster.between(0.4, 0.75)

    def weaken() -> None:
        cluster.alive()[slow].capacity = share * load * capacity

    cluster.minute(at, weaken, "slow_member")
    return Labels(
        at + 30,
        must=(Must("SLOW_MEMBER", at + 5),),
        never=only("CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=only("SLOW_MEMBER"),
        expects=(Expect(at + 12, at + 30, only("NO_UNHEALTHY_MEMBER")),),
    )


def sc07(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    capacity, load = cluster.between(450, 800), cluster.between(0.4, 0.6)
    cluster.topic(partitions=24, rate=steady(load * capacity / 3))
    for index in range(8):
        config = cluster.config(
            index, capacity=capacity, host=f"/10.1.{cluster.place}.{index // 2}"
        )
        cluster.clock.after(
            cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
        )
    host, share = f"/10.1.{cluster.place}.{cluster.draw.randrange(4)}", cluster.between(0.4, 0.7)

    def weaken() -> None:
        for member in cluster.alive():
            if member.config.host == host:
                member.capacity = share * load * capacity

    cluster.minute(at, weaken, "slow_host")
    return Labels(
        at + 30,
        must=(Must("SLOW_HOST", at + 5),),
        may=only("SLOW_MEMBER"),
        never=only("CAPACITY_SHORTAGE"),
        primary=only("SLOW_HOST"),
        expects=(Expect(at + 12, at + 30, only("NO_UNHEALTHY_MEMBER")),),
    )


def sc08(cluster: ScenarioCluster) -> Labels:
    """A broker serves its partitions slowly to three groups of different applications."""
    at, broker, rate = cluster.about(HEALTHY), cluster.draw.randrange(3), cluster.between(80, 120)
    cluster.topic(rate=steady(rate))
    for number in range(3):
        for index in range(4):
            config = cluster.config(
                10 * number + index, group=cluster.name(number), client_id=f"app-{number}"
            )
            cluster.clock.after(
                cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
            )
    parts = frozenset(part for part in range(12) if part % 3 == broker)

    def throttle() -> None:
        cluster.world.limits = {
            (cluster.main, part): cluster.between(0.2, 0.5) * rate for part in sorted(parts)
        }

    cluster.minute(at, throttle, "broker")
    return Labels(
        at + 30,
        must=(Must("BROKER_CORRELATED", at + 4),),
        may=only("COSTLY_PARTITION"),
        never=only("CAPACITY_SHORTAGE"),
        primary=only("BROKER_CORRELATED"),
        expects=(Expect(at + 12, at + 30, only("NO_BROKER")),),
        decide=at + 15,
    )


def sc09(cluster: ScenarioCluster) -> Labels:
    at, part = cluster.about(HEALTHY), cluster.draw.randrange(12)
    cluster.topic()
    cluster.group(4)
    cost = cluster.between(10, 14)
    cluster.minute(
        at, lambda: cluster.world.costs.update({(cluster.main, part): cost}), "costly_partition"
    )
    grown = at + 25
    cluster.minute(grown, lambda: cluster.grow(2), "scale_out")
    return Labels(
        grown + 30,
        must=(Must("COSTLY_PARTITION", grown + 5, partitions=frozenset({part})),),
        may=only("SLOW_MEMBER", "SCALE_OUT_FUTILE"),
        never=only("CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"),
        primary=only("COSTLY_PARTITION"),
        expects=(Expect(grown + 12, grown + 30, only("NO_COSTLY_PARTITION")),),
    )


def sc51(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(WITH_BASELINE)
    for number in range(3):
        topic = cluster.main if number == 0 else f"{cluster.main}-{number}"
        cluster.topic(topic)
        for index in range(4):
            config = cluster.config(
                10 * number + index,
                group=cluster.name(number),
                client_id=f"app-{number}",
                topics=(topic,),
            )
            cluster.clock.after(
                cluster.chance.randint(0, 2 * SECOND), lambda config=config: cluster.start(config)
            )
    sink = Sink(6 * 4 * 600)
    cluster.world.sinks = dict.fromkeys([cluster.name(number) for number in range(3)], sink)
    rate = cluster.between(0.6, 0.85) * 3 * 1200

    def slow_down() -> None:
        sink.per_second = rate

    cluster.minute(at, slow_down, "shared_sink")
    return Labels(
        at + 30,
        must=(Must("SHARED_SINK", at + 6, within=12),),
        may=only("CAPACITY_SHORTAGE"),
        primary=only("SHARED_SINK"),
        expects=(Expect(at + 20, at + 30, only("NO_DOWNSTREAM")),),
        decide=at + 22,
    )


def sc52(cluster: ScenarioCluster) -> Labels:
    at, members = cluster.about(HEALTHY), cluster.one_of(4, 6, 6, 8)
    capacity, ratio = cluster.between(450, 700), cluster.between(1.1, 1.35)
    rate = piecewise((0, 0.5 * capacity), (round(at * MINUTE), ratio * capacity))
    cluster.topic(partitions=members, rate=rate)
    cluster.group(members, capacity=capacity)
    return Labels(
        at + 30,
        must=(Must("AT_PARTITION_CEILING", at),),
        may=only("CAPACITY_SHORTAGE"),
        never=only("HOT_PARTITION_ARRIVAL"),
        primary=only("AT_PARTITION_CEILING"),
        expects=(Expect(at + 12, at + 30, only("NO_IDLE")),),
        decide=at + 15,
    )


def sc53(cluster: ScenarioCluster) -> Labels:
    at = cluster.about(HEALTHY)
    limit = cluster.between(900, 1100)
    cluster.topic(rate=piecewise((0, 0.6 * limit / 12), (round(at * MINUTE), 1.25 * limit / 12)))
    cluster.group(4)
    cluster.world.sinks = {cluster.name(): Sink(limit)}
    grown = at + 20
    cluster.minute(grown, lambda: cluster.grow(4), "scale_out")
    return Labels(
        grown + 40,
        must=(Must("SCALE_OUT_FUTILE", grown + 5, within=25),),
        may=only("CAPACITY_SHORTAGE"),
        primary=only("SCALE_OUT_FUTILE", "CAPACITY_SHORTAGE"),
        expects=(Expect(grown + 32, grown + 40, only("NO_DOWNSTREAM")),),
        decide=grown + 33,
    )


def sc66(cluster: ScenarioCluster) -> Labels:
    at, capacity = cluster.about(WITH_BASELINE), cluster.between(500, 700)
    load, ratio = cluster.between(0.45, 0.6), cluster.between(1.1, 1.4)
    cluster.topic(rate=steady(load * capacity / 3))
    cluster.group(4, capacity=capacity)
    slower = {(cluster.main, part): ratio / load for part in range(12)}
    cluster.minute(at, lambda: cluster.world.costs.update(slower), "capacity_down")
    return Labels(
        at + 30,
        must=(Must("CAPACITY_SHORTAGE", at),),
        never=only("SLOW_MEMBER", "HOT_PARTITION_ARRIVAL", "CAPACITY_BURST"),
        primary=only("CAPACITY_SHORTAGE"),
        expects=(Expect(at + 12, at + 30, YES),),
        decide=at + 14,
    )


SCENARIOS = (
    Scenario("SC01", "more arrives than all members together can do", sc01),
    Scenario("SC02", "four times as much for five minutes", sc02),
    Scenario("SC03a", "one hot partition of 12", sc03a),
    Scenario("SC03b", "one hot partition of 3, a member each", sc03b),
    Scenario("SC03c", "one hot partition of 6", sc03c),
    Scenario("SC03d", "five hot partitions of 50", sc03d),
    Scenario("SC04", "a hot partition, then three times as many members", sc04),
    Scenario("SC05", "one partition gets more than the others, and its owner copes", sc05),
    Scenario("SC06", "one member does less than its share", sc06),
    Scenario("SC07", "the members of one host do less than their share", sc07),
    Scenario("SC08", "one broker serves its partitions slowly", sc08, groups=3),
    Scenario("SC09", "the records of one partition cost more, and it gets another owner", sc09),
    Scenario("SC51", "three groups write to one sink that slows down", sc51, groups=3),
    Scenario("SC52", "too much for as many members as there are partitions", sc52),
    Scenario("SC53", "a sink that takes no more, and twice the members", sc53),
    Scenario("SC66", "each record costs more everywhere", sc66),
)
