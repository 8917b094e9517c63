"""Records and offsets that retention takes, or would take if nobody did anything."""

from __future__ import annotations

import math

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from simulator.broker import SEGMENT
from simulator.cluster import MINUTE, SECOND
from simulator.producer import piecewise, steady

HOUR = 60 * MINUTE
SWEEP = 10  # minutes


def _sweep(cluster: ScenarioCluster, minutes: float) -> None:
    """What the group coordinator does every ten minutes: expired offsets are deleted."""
    cluster.brokers.offsets_retention_minutes = round(minutes)
    cluster.every(SWEEP * 60, 1, 1000, lambda: cluster.coordinator.sweep(round(minutes * MINUTE)))


def _swept(expired: float) -> float:
    """Minute of the first sweep after offsets expire."""
    return 1 + SWEEP * math.ceil((expired - 1) / SWEEP)


def sc25(cluster: ScenarioCluster) -> Labels:
    at, retention = cluster.about(HEALTHY), cluster.one_of(30, 60)
    cluster.topic(rate=steady(cluster.between(10, 40)))
    cluster.group(cluster.one_of(2, 3))
    if cluster.one_of(True, False):  # else it was the only group
        cluster.topic(f"{cluster.main}-other", partitions=2, rate=steady(20))
        cluster.group(
            1, group=cluster.name(1), client_id="other", topics=(f"{cluster.main}-other",)
        )
    _sweep(cluster, retention)

    def stop() -> None:
        for member in cluster.alive(cluster.name()):
            member.close("scale_in")

    cluster.minute(at, stop, "all_stopped")
    return Labels(
        at + retention + 14,
        must=(
            Must("OFFSETS_EXPIRY_FORECAST", at + 1, within=3, group=cluster.name()),
            Must("EMPTY_WITH_LAG", at + 11, within=3, group=cluster.name()),
            Must("GROUP_DELETED", _swept(at + retention), within=3, group=cluster.name()),
        ),
        never=only(
            "PARTITION_STALLED", "COMMITS_STOPPED", "CAPACITY_SHORTAGE", "DATA_LOSS_FORECAST"
        ),
        primary=only("EMPTY_WITH_LAG"),
        primary_minutes=(at + 15, at + retention - 2),
        expects=(Expect(at + 4, at + retention - 2, only("NO_MEMBERS")),),
    )


def sc41(cluster: ScenarioCluster) -> Labels:
    at, minutes, rate = cluster.about(HEALTHY), cluster.between(9, 15), cluster.between(60, 140)
    cluster.topic(rate=steady(rate), retention_ms=round(minutes * MINUTE))
    cluster.group(poll_interval_ms=HOUR)
    how = cluster.one_of("paused", "hang")
    index, parts = cluster.draw.randrange(4), frozenset(cluster.draw.sample(range(12), 2))

    def stall() -> None:
        if how == "paused":
            cluster.world.paused.update((cluster.main, part) for part in parts)
        else:
            cluster.alive()[index].hang(HOUR)

    cluster.minute(at, stall, "stalled")
    gone = at + minutes + SEGMENT / rate / 60  # the log start moves by whole segments
    return Labels(
        at + 25,
        must=(
            Must("PARTITION_STALLED", at + 1, within=3),
            Must("DATA_LOSS_FORECAST", at + 1, within=3),
            Must("DATA_LOST", gone, within=3, partitions=parts if how == "paused" else frozenset()),
        ),
        never=only(
            "CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL", "SLOW_MEMBER", "OFFSET_BEYOND_END"
        ),
        primary=only("PARTITION_STALLED"),  # also after the loss: it stands on
    )


def sc41b(cluster: ScenarioCluster) -> Labels:
    """Everybody is behind and falls back further, until retention has overtaken them."""
    at, minutes = cluster.about(HEALTHY + 12), 10.0
    capacity, over = cluster.between(500, 700), cluster.between(3, 4)
    before, after = 0.5 * capacity / 3, over * capacity / 3
    cluster.topic(
        rate=piecewise((0, before), (round(at * MINUTE), after)),
        retention_ms=round(minutes * MINUTE),
    )
    cluster.group(capacity=capacity)
    # the age of what is read grows by 1 - 1/over of the time
    gone = at + minutes * over / (over - 1)
    return Labels(
        gone + 8,
        must=(
            Must("CAPACITY_SHORTAGE", at + 1, within=10),
            Must("DATA_LOSS_FORECAST", at + 4, within=9),
            # a reader that finds its place deleted goes on from the log start, so that it commits
            # what is there
        ),
        may=only("DATA_LOST", "CAPACITY_BURST", "AT_PARTITION_CEILING"),
        never=only("PARTITION_STALLED"),
    )


def la21(cluster: ScenarioCluster) -> Labels:
    """A group keeps up while retention removes what a busier hour had brought."""
    at, rate, minutes = (
        cluster.about(HEALTHY + 10),
        cluster.between(60, 120),
        cluster.between(8, 20),
    )
    low = cluster.between(0.02, 0.3) * rate
    cluster.topic(
        rate=piecewise((0, rate), (round(at * MINUTE), low)), retention_ms=round(minutes * MINUTE)
    )
    cluster.group(commit_ms=cluster.one_of(5, 60) * SECOND)
    return Labels(at + 45, expects=(Expect(15, at + 45, CALM),))


def la22(cluster: ScenarioCluster) -> Labels:
    """Nothing arrives any more, and retention empties the log behind a group that
    has read it all.
    """
    at, rate, minutes = cluster.about(HEALTHY), cluster.between(60, 120), cluster.between(8, 20)
    cluster.topic(
        rate=piecewise((0, rate), (round(at * MINUTE), 0)), retention_ms=round(minutes * MINUTE)
    )
    cluster.group(cluster.one_of(2, 4), capacity=1000.0)  # two of them can do all that arrives
    return Labels(at + 50, expects=(Expect(at + 5, at + 50, CALM),))


SCENARIOS = (
    Scenario("SC25", "a group is away until its offsets expire", sc25, groups=2),
    Scenario("SC41a", "a partition is stalled until retention deletes what it has not read", sc41),
    Scenario("SC41b", "a group falls back until retention overtakes it", sc41b),
    Scenario("LA21", "retention removes what a busier hour brought", la21),
    Scenario("LA22", "retention empties an idle log", la22),
)
