"""Rules that no group can tell by itself: blindness, blocked sources, one coordinator, one sink."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    EVENT,
    LAG_CAUSE,
    META,
    PAGE,
    REBALANCING,
    SLOW,
    WARN,
    Observation,
    Rule,
    outranks,
    suppresses,
)
from laggard.diagnosis.signals.cluster import ClusterFrame

_BLIND_SHARE = fixed("blind_share", 0.5, "share of the committed partitions of a group")
_LONG_BLOCKED_WINDOWS = fixed("long_blocked_windows", 15, "windows, after which it is a page")
_SINK_GROUPS = fixed("sink_groups", 3, "groups")
_SINK_CONFIDENCE = fixed("sink_confidence", 0.6, "confidence")
OFFSETS_NEWS_WINDOWS = fixed(
    "offsets_news_windows", 10, "windows in which a change of the offsets topic is news"
)
_COORDINATOR_GROUPS = fixed("coordinator_groups", 3, "groups")
_OTHERS_SHARE = fixed("others_share", 0.1, "share of the groups of other coordinators")


@dataclass(frozen=True, slots=True)
class Correlated:
    """A broker, those of its groups that rebalanced within a minute, and how many it has."""

    broker: int
    groups: tuple[str, ...]
    active: int
    at: datetime  # end of the first of these rebalances


def find_correlated(groups: Sequence[Row], parameters: Parameters) -> list[Correlated]:
    """Find brokers with groups that rebalanced together, each with the minute of most groups.

    `groups` are the signals of active groups, with the ends of their live rebalances of the time
    to look at. A group counts at the broker that led it a minute before: members rejoin at the one
    that took over, which is not to blame.
    """
    best: dict[int, Correlated] = {}
    for found in _by_minute(groups, parameters):
        if found.broker not in best or len(found.groups) > len(best[found.broker].groups):
            best[found.broker] = found
    return [best[broker] for broker in sorted(best)]


def _by_minute(groups: Sequence[Row], parameters: Parameters) -> Iterator[Correlated]:
    """Yield brokers with enough rebalanced groups, for each minute.

    Each minute begins with the end of a rebalance.
    """
    moved = [each for each in groups if each["led_before"]]
    lasting = _by_broker(
        (each["coordinator"], each["group"]) for each in groups if not each["led_before"]
    )
    for at in sorted({at for each in groups for at in each["rebalanced_at"]}):
        led_by = _by_broker(
            (_coordinator_before(each, at, parameters), each["group"]) for each in moved
        )
        for broker, own in lasting.items():
            led_by[broker] |= own
        yield from _hit_brokers(led_by, _hit(groups, at, parameters), at, parameters)


def _hit(groups: Sequence[Row], begin: datetime, parameters: Parameters) -> set[str]:
    """Return groups that rebalanced within the minute that begins then."""
    end = begin + timedelta(seconds=parameters.coordinator_seconds)
    return {
        each["group"] for each in groups if any(begin <= at <= end for at in each["rebalanced_at"])
    }


def _by_broker(led: Iterable[tuple[int | None, str]]) -> defaultdict[int, set[str]]:
    """Return groups of each broker that is known."""
    found = defaultdict[int, set[str]](set)
    for broker, group in led:
        if broker is not None:
            found[broker].add(group)
    return found


def _hit_brokers(
    led_by: Mapping[int, set[str]], hit: set[str], at: datetime, parameters: Parameters
) -> Iterator[Correlated]:
    """Yield brokers with enough groups that rebalanced in the minute from `at`.

    Hardly any group of the other brokers rebalanced in it.
    """
    everybody = set[str]().union(*led_by.values())
    for broker, own in led_by.items():
        mine, others = own & hit, everybody - own
        share = len(others & hit) / len(others) if others else 0.0
        least = max(_COORDINATOR_GROUPS, parameters.coordinator_share * len(own))
        if len(mine) >= least and share <= _OTHERS_SHARE:
            yield Correlated(broker, tuple(sorted(mine)), len(own), at)


def _coordinator_before(group: Row, at: datetime, parameters: Parameters) -> int | None:
    """Return the former leader of a group's offsets partition; None if unknown.

    It is the broker that led it `coordinator_seconds` before a time.
    """
    since = at - timedelta(seconds=parameters.coordinator_seconds)
    found: int | None = next(
        (broker for seen, broker in group["led_before"] if seen > since), group["coordinator"]
    )
    return found


# the engine itself reports it
RULE_FAILED = Rule(
    "D00",
    "RULE_FAILED",
    META,
    says=(
        "A rule, or a step of the diagnosis, failed with an error: what it would have found "
        "about the group is unknown."
    ),
    how=(
        "The engine catches the error. The subject is the rule, or the step: layout (recorded rows "
        "to arrays), evaluation, findings (rows to write) or memory. Other rules and groups are "
        "evaluated as usual, and the next window tries again."
    ),
    is_not="a fault of the group: the fault is in laggard.",
    advice=("report the error and the job's log",),
    falsifier="the same window, evaluated again by laggard diagnose, gives no error",
    open_after=1,
)


def _named(groups: Sequence[str]) -> dict[str, str]:
    return {"groups": ", ".join(sorted(groups))}


@Rule(
    "D01",
    "MONITOR_BLIND",
    META,
    says="laggard does not see the log ends or the commits of these groups: nothing else about "
    "them can be trusted.",
    is_not="an outage of the groups it names: they may be healthy, but laggard cannot see them.",
    advice=(
        "look at the errors of the poll: laggard doctor, table batches",
        "repair laggard before you act on other findings",
    ),
    falsifier="log ends and new commits of these groups are recorded in the window",
    rank=10,
    open_after=1,
    close_after=1,
).over_all
def monitor_blind(_: ClusterFrame, groups: Sequence[Row], __: Parameters) -> Iterator[Observation]:
    """At least half of a group's committed partitions have no log end, or are stale."""
    blind = [each["group"] for each in groups if each["blind"] >= _BLIND_SHARE]
    if blind:
        evidence = {"groups": float(len(blind)), "share": len(blind) / len(groups)}
        yield Observation("MONITOR_BLIND", PAGE, evidence=evidence, evidence_text=_named(blind))


@Rule(
    "D79",
    "GROUP_QUARANTINED",
    META,
    says="The ticks of these groups fail: their rows are stale, and all other groups are "
    "published.",
    is_not="a fault of these groups or of Kafka: an error in laggard makes their ticks fail.",
    advice=(
        "report the exception as a bug of laggard: the job's log and the event quarantined name it",
        "until then read committed offsets and lag of these groups with kafka-consumer-groups.sh",
    ),
    falsifier="the newest tick wrote rows of these groups that are not stale",
    rank=20,
    open_after=1,
    close_after=1,
).over_all
def group_quarantined(
    cluster: ClusterFrame, _: Sequence[Row], __: Parameters
) -> Iterator[Observation]:
    """The columns quarantined_groups and quarantined of batches.

    They are read at the tick that closed the window.
    """
    if cluster.quarantined_groups:
        exceptions = ", ".join(sorted(set(cluster.quarantined.values())))
        text = _named(list(cluster.quarantined)) | {"exceptions": exceptions}
        evidence = {"groups": float(cluster.quarantined_groups)}
        yield Observation("GROUP_QUARANTINED", evidence=evidence, evidence_text=text)


@Rule(
    "D02",
    "SOURCE_BLOCKED",
    META,
    says="A transaction that hangs hides the newest commits of these groups.",
    is_not=(
        "stopped consumers: they may still commit, but their commits are hidden. A short "
        "transaction ends by itself."
    ),
    advice=("find it on the coordinator: kafka-transactions.sh find-hanging",),
    falsifier="every commit that appears after the transaction has ended also has a timestamp "
    "after its end",
    inhibits=(suppresses(LAG_CAUSE, "PARTITION_STALLED", "COMMITS_STOPPED", "EMPTY_WITH_LAG"),),
    rank=30,
    open_after=1,
    close_after=1,
).over_all
def source_blocked(_: ClusterFrame, groups: Sequence[Row], __: Parameters) -> Iterator[Observation]:
    """The last stable offset of a group's partition of the offsets topic is below its end.

    It becomes a page after 15 windows.
    """
    of_partition: dict[Any, list[Row]] = defaultdict(list)
    for each in groups:
        if each["blocked"]:
            of_partition[each["offsets_partition"]].append(each)
    for partition, hit in sorted(of_partition.items(), key=lambda each: str(each[0])):
        windows = max(each["blocked_windows"] for each in hit)
        yield Observation(
            "SOURCE_BLOCKED",
            PAGE if windows > _LONG_BLOCKED_WINDOWS else WARN,
            subject=str(partition),
            evidence={"groups": float(len(hit)), "windows": float(windows)},
            evidence_text=_named([each["group"] for each in hit]),
        )


@Rule(
    "D61",
    "COORDINATOR_CORRELATED",
    CAUSE,
    says="Most groups of one coordinator rebalanced within a minute.",
    is_not="a rebalance storm in each of the groups. A mass deploy also affects groups of other "
    "coordinators.",
    advice=("look for a restart or a fault of that broker",),
    falsifier="groups of other coordinators rebalance as well",
    thresholds=("coordinator_share", "coordinator_seconds"),
    inhibits=(suppresses(REBALANCING, "SESSION_EVICTION"),),
    rank=50,
    open_after=1,
).over_all
def coordinator_correlated(
    _: ClusterFrame, groups: Sequence[Row], parameters: Parameters
) -> Iterator[Observation]:
    """Most active groups of one coordinator, at least three, rebalanced within a minute.

    At most a tenth of the other groups did. The coordinator is the broker that led them before the
    rebalance: after a restart of that broker another one leads them.
    """
    for each in find_correlated([each for each in groups if each["is_active"]], parameters):
        yield Observation(
            "COORDINATOR_CORRELATED",
            subject=str(each.broker),
            evidence={"groups": float(len(each.groups)), "groups_of_broker": float(each.active)},
            evidence_text=_named(each.groups),
        )


@Rule(
    "D19",
    "SHARED_SINK",
    CAUSE,
    says="Several groups became slower on all partitions at the same time.",
    is_not=(
        "a shortage in each of the groups: they slowed down together. Two groups are too few for "
        "this conclusion."
    ),
    advice=("look for a database or an API that they share",),
    not_more=("do not add consumers: they would use the same sink",),
    falsifier="one of the groups recovers alone",
    inhibits=(outranks(SLOW, "COSTLY_PARTITION", "CAPACITY_SHORTAGE"),),
    groups=(LAG_CAUSE,),
    rank=260,
).over_all
def shared_sink(_: ClusterFrame, groups: Sequence[Row], __: Parameters) -> Iterator[Observation]:
    """Three or more groups whose lag is spread lost capacity at the same time."""
    hit = [each for each in groups if each["spread_down"]]
    if (
        len(hit) >= _SINK_GROUPS
        and len({each["coordinator"] for each in hit if each["brokers"]}) != 1
    ):
        yield Observation(
            "SHARED_SINK",
            confidence=_SINK_CONFIDENCE,
            evidence={"groups": float(len(hit))},
            evidence_text=_named([each["group"] for each in hit]),
        )


@Rule(
    "D78",
    "OFFSETS_TOPIC_CHANGED",
    EVENT,
    says="The offsets topic was recreated or has another number of partitions: groups now belong "
    "to other partitions.",
    is_not="a loss of lag history. The first start of laggard does not count.",
    advice=(
        "expect the states of groups to be stale until the groups commit again",
        (
            "a group whose offsets its broker does not find starts by auto.offset.reset: compare "
            "committed offsets"
        ),
    ),
    avoid=(
        "do not change the number of partitions of the offsets topic in a cluster that has groups",
    ),
    falsifier="the polls before and after name the same topic id and the same number of partitions",
    open_after=1,
    close_after=1,
).over_all
def offsets_topic_changed(
    cluster: ClusterFrame, _: Sequence[Row], __: Parameters
) -> Iterator[Observation]:
    """The event offsets_topic_changed, from the topic id and the number of partitions at each poll.

    It holds for 10 windows, because no window closes while the new records are read.
    """
    begin_ms = cluster.now_ms - 1000 * OFFSETS_NEWS_WINDOWS * cluster.window_seconds
    rows = [
        row
        for row in cluster.events
        if row["kind"] == "offsets_topic_changed"
        and begin_ms <= row["event_at"].timestamp() * 1000 < cluster.now_ms
    ]
    if rows:
        detail = dict(
            max(rows, key=lambda row: float(row["event_at"].timestamp())).get("detail") or {}
        )
        counts = {
            name: float(detail.pop(name))
            for name in ("partitions_from", "partitions_to")
            if name in detail
        }
        yield Observation("OFFSETS_TOPIC_CHANGED", evidence=counts, evidence_text=detail)


def reaches(observation: Observation, group: str) -> bool:
    """Return True if a group is among those that an observation of the cluster names."""
    return group in observation.evidence_text.get("groups", "").split(", ")
