"""Conditions of D13 and D15 to D18: lag of some partitions, a member, a host or a broker only."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

import numpy as np

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    CONFIDENCE,
    LAG_CAUSE,
    MISSING,
    SLOW,
    Observation,
    Rule,
    guard,
    is_compacted,
    known,
    no_deploy,
    outranks,
    share_of_lag,
    suppresses,
)
from laggard.diagnosis.signals.attribution import (
    BROKER,
    COSTLY,
    HOST,
    HOT,
    MEMBER,
    UNEVEN,
    searchable,
)
from laggard.diagnosis.signals.group import Cause, Signals, TopicSignals
from laggard.diagnosis.signals.hot import (
    WANDER_PLACES,
    is_hot_ratio,
    overtaken_places,
    owner_of,
    share,
    wandering,
)
from laggard.diagnosis.signals.slow import is_itself_costly
from laggard.diagnosis.signals.statistics import known_sum

# one group alone does not prove a broker, nor a partition with one owner
ONE_GROUP_CONFIDENCE = fixed("one_group_confidence", 0.5, "confidence, at most")
# a compacted topic has fewer records than offsets
COMPACTED_DOUBT = fixed("compacted_doubt", 0.3, "of confidence, taken off")
_ATTRIBUTION = ("attr_explained", "attr_purity", "attr_p")
# what other keys cost stands wherever they are advised
OTHER_KEYS = (
    "Changing the key breaks consumers that rely on it: old records stay where they are and the "
    "order per key is lost at the switch. Plan a new topic."
)
MILD_FACTOR = fixed(
    "mild_factor", 0.9, "of the confidence, for a member that is slower, but not by much"
)
CORRELATED_GROUPS = fixed("correlated_groups", 2, "groups of different clients")


@Rule(
    "D13",
    "HOT_PARTITION_ARRIVAL",
    CAUSE,
    says="A few partitions get more records than one member can handle.",
    is_not=(
        "what a slow owner leaves, nor records that take longer: each of them gets more than the "
        "best member ever read, or has an owner that reads nearly as much. An owner may be slow "
        "besides."
    ),
    advice=(
        "Sample keys of these partitions: look for one large tenant, or a constant or missing key.",
        "Split or salt the hot key, or give it a topic of its own.",
        "Hand records to a pool of workers behind the consumer, by key if order matters.",
        OTHER_KEYS,
    ),
    avoid=(
        "Do not add consumers for these partitions: a partition has one owner per group.",
        "Do not add partitions: a hot key stays on one of them.",
    ),
    falsifier="an owner reads as much as arrives on one of them",
    thresholds=("hot_ratio", "shape_gini_concentrated", *_ATTRIBUTION),
    inhibits=(suppresses("CAPACITY_SHORTAGE"), outranks("SCALE_OUT_FUTILE")),
    groups=(LAG_CAUSE,),
    rank=290,
    open_after=2,
)
def hot_partition(signals: Signals) -> list[Observation]:
    """Lag is on partitions that get more than an owner can consume, or that retention overtakes.

    While the hot partition changes from window to window, a finding stays open for those that were
    hot lately.
    """
    found, every = [], _causes(signals, HOT)
    for topic in signals.topics:
        if overtaken := overtaken_places(signals, topic):
            found.append(_hot(signals, topic, overtaken))
        if topic.shape.name not in UNEVEN:
            continue
        causes = [cause for cause in every if cause.topic == topic.frame.topic]
        found += [_hot(signals, topic, cause.fit.places, cause) for cause in causes]
        if not causes and signals.is_material and np.isnan(signals.best_capacity):
            lagging = np.flatnonzero(searchable(topic) & topic.is_material).tolist()
            places = [place for place in lagging if is_hot_ratio(signals, topic, place)]
            partitions = tuple(topic.frame.partitions[places].tolist())
            if partitions:  # what an owner can do is not known
                name = topic.frame.topic
                found.append(
                    Observation(
                        "HOT_PARTITION_ARRIVAL", topic=name, partitions=partitions, abstains=True
                    )
                )
    return found + _wandering_on(signals, found)


def _wandering_on(signals: Signals, shown: list[Observation]) -> list[Observation]:
    """Return open findings of recently hot partitions that are not `shown` by themselves.

    They count if a hot partition wanders.

    They are hot again in their turn.
    """
    hot_now = {(each.topic, number) for each in shown for number in each.partitions}
    found = []
    for topic in signals.topics:
        rows = wandering(signals, topic)
        if len(rows) < WANDER_PLACES:
            continue
        lately = {(topic.frame.topic, int(topic.frame.partitions[row])) for row in rows}
        for track in signals.memory.tracks:
            own = {(track.topic, number) for number in track.partitions}
            is_open = track.code == "HOT_PARTITION_ARRIVAL" and track.opened_ms is not None
            if is_open and own & lately and not own & hot_now:
                places = np.flatnonzero(np.isin(topic.frame.partitions, track.partitions))
                found.append(_hot(signals, topic, tuple(places.tolist())))
    return found


def _hot(
    signals: Signals, topic: TopicSignals, places: tuple[int, ...], cause: Cause | None = None
) -> Observation:
    """Return the observation of these rows.

    `cause` is the cause of their lag, None if their lag is unknown.
    """
    owners = [
        owner
        for owner in (owner_of(signals, topic, place) for place in places)
        if owner is not None
    ]
    partitions = tuple(topic.frame.partitions[list(places)].tolist())
    evidence = {
        "n_eff_partitions": topic.shape.n_eff,
        "arrival_share_ratio": share(topic.arrival, places),
        "largest_arrival_rate": float(topic.arrival[list(places)].max()),
        "best_capacity_rate": signals.best_capacity,
        "explained_ratio": cause.fit.explained if cause else nan,
    }
    keys = ", ".join(f"{topic.frame.topic}-{partition}" for partition in partitions)
    return Observation(
        "HOT_PARTITION_ARRIVAL",
        topic=topic.frame.topic,
        partitions=partitions,
        confidence=CONFIDENCE - COMPACTED_DOUBT * is_compacted(topic),
        evidence=known(evidence),
        evidence_text={
            "owners": ", ".join(owner.slot for owner in owners),
            "sample": f"keys of {keys}",
        },
        explained=_of_group(signals, [cause]) if cause else 0.0,
    )


@Rule(
    "D15",
    "COSTLY_PARTITION",
    CAUSE,
    says="Some partitions get no more records than the others but take longer, with every owner.",
    is_not=(
        "a hot partition, as it gets no more than the others, nor a slow member, as it lags with "
        "every owner."
    ),
    advice=(
        "Compare the size of their records and the work per record with the others.",
        "Take the expensive work out of the poll loop.",
        "Check the fetch limits of the broker that leads them.",
    ),
    avoid=("Do not add consumers for these partitions: a partition has one owner per group.",),
    falsifier="after a partition moves, the lag stays with the member",
    thresholds=("storm_ratio", *_ATTRIBUTION),
    groups=(LAG_CAUSE,),
    rank=300,
)
def costly_partition(signals: Signals) -> list[Observation]:
    """Partitions that get no more records than the others take longer, with every owner.

    Not evaluated while the group is busy with rebalances: members that restart begin late with some
    partitions.
    """
    found = []
    ratio = signals.time_in_rebalance
    guards = {
        "no_deploy": no_deploy(signals),
        "few_rebalances": guard(None if isnan(ratio) else ratio >= signals.parameters.storm_ratio),
    }
    for cause in _causes(signals, COSTLY):
        topic = next(each for each in signals.topics if each.frame.topic == cause.topic)
        places = list(cause.fit.places)
        evidence = {
            "consume_rate": float(topic.consume[places].sum()),
            "arrival_rate": float(topic.arrival[places].sum()),
            "explained_ratio": cause.fit.explained,
        }
        text = {"owners": ", ".join(topic.frame.named("slot")[places, -1])}
        if "member" in cause.alternatives:
            text["alternative"] = f"SLOW_MEMBER {cause.alternatives['member']}"
        found.append(
            Observation(
                "COSTLY_PARTITION",
                topic=cause.topic,
                partitions=cause.partitions,
                confidence=CONFIDENCE if cause.is_proven else ONE_GROUP_CONFIDENCE,
                evidence=known(evidence),
                evidence_text=text,
                guards=guards,
                explained=_of_group(signals, [cause]),
            )
        )
    return found


def proven_costly(signals: Signals) -> tuple[tuple[str, int], ...]:
    """Return partitions to remember as costly.

    The move that proved it leaves the recorded hour, the lag does not.
    """
    costly = {
        (cause.topic, partition)
        for cause in _causes(signals, COSTLY)
        for partition in cause.partitions
    }
    costly |= set(signals.memory.costly)
    return tuple(
        sorted(
            (topic.frame.topic, partition)
            for topic in (signals.topics if costly else ())
            for place, partition in enumerate(topic.frame.partitions.tolist())
            if (topic.frame.topic, partition) in costly and is_itself_costly(signals, topic, place)
        )
    )


@Rule(
    "D16",
    "SLOW_MEMBER",
    CAUSE,
    says="One member consumes less than the others can. If it has more to do than they have: less "
    "than it did before.",
    is_not=(
        "a member that was assigned more than others and does as much as ever "
        "(ASSIGNMENT_IMBALANCE), nor one in the middle of a deploy."
    ),
    advice=(
        (
            "Look at that instance: garbage collection, CPU limit, a busy neighbour, its "
            "connection to the sink."
        ),
        "Restart or replace it only after that.",
    ),
    not_more=("Do not add members before it is repaired: it keeps its share of the partitions.",),
    falsifier="after a partition moves, the lag follows the partition",
    thresholds=("slow_ratio", "slow_ratio_strong", *_ATTRIBUTION),
    inhibits=(outranks("COSTLY_PARTITION", "ASSIGNMENT_IMBALANCE"),),
    groups=(SLOW, LAG_CAUSE),
    rank=280,
    open_after=2,
)
def slow_member(signals: Signals) -> list[Observation]:
    """One member consumes less than the others can, or than before, and its partitions lag."""
    return _slow(signals, "SLOW_MEMBER", MEMBER)


@Rule(
    "D17",
    "SLOW_HOST",
    CAUSE,
    says=(
        "All members on one host consume less than the others can. If they have more to do than "
        "these: less than they did before."
    ),
    is_not="one slow member: at least two on the host are slow, and others elsewhere are not.",
    advice=(
        "Look at that host: CPU, disk, network, other workloads.",
        "Move its members elsewhere.",
    ),
    avoid=("Do not add members to that host.",),
    falsifier="after a member or a partition moves, the lag follows it",
    thresholds=("slow_ratio", "slow_ratio_strong", *_ATTRIBUTION),
    inhibits=(outranks("SLOW_MEMBER"),),
    groups=(SLOW, LAG_CAUSE),
    rank=270,
)
def slow_host(signals: Signals) -> list[Observation]:
    """All members of a host with two or more consume too little, and their partitions lag."""
    return _slow(signals, "SLOW_HOST", HOST)


def _slow(signals: Signals, code: str, label: str) -> list[Observation]:
    causes, found = _causes(signals, label), []
    for subject in sorted({cause.subject for cause in causes}):
        mine = [cause for cause in causes if cause.subject == subject]
        first = max(mine, key=lambda cause: cause.fit.explained)
        slowness = first.slowness
        if slowness is None:
            continue
        evidence = {
            "explained_ratio": first.fit.explained,
            "purity_ratio": first.fit.purity,
            "p": first.fit.p,
            "pace_rate": slowness.pace,
            "own_seen_rate" if slowness.is_by_itself else "others_seen_rate": slowness.shown,
            "load_rate": slowness.load,
            "median_load_rate": slowness.median_load,
        }
        text = {"partitions": "; ".join(map(_named, mine)), "members": ", ".join(slowness.slots)}
        text |= {f"alternative_{name}": value for name, value in first.alternatives.items()}
        factor = (
            1.0 if slowness.ratio <= signals.parameters.slow_ratio_strong else MILD_FACTOR
        ) * _doubt(first)
        found.append(
            Observation(
                code,
                subject=subject,
                confidence=CONFIDENCE * factor,
                evidence=known(evidence),
                evidence_text=text,
                guards={"no_deploy": no_deploy(signals)},
                explained=_of_group(signals, mine),
            )
        )
    return found


def _over_groups(_: object, groups: Sequence[Row], __: Parameters) -> list[Observation]:
    """Find brokers whose partitions lag in several groups of different clients."""
    found = []
    for broker in sorted({number for each in groups for number in each["brokers"]}):
        hit = [each for each in groups if broker in each["brokers"]]
        clients = {tuple(each["client_ids"]) for each in hit}
        if min(len(hit), len(clients)) >= CORRELATED_GROUPS:
            found.append(
                Observation(
                    "BROKER_CORRELATED",
                    subject=str(broker),
                    evidence={"groups": float(len(hit))},
                    evidence_text={"groups": ", ".join(sorted(each["group"] for each in hit))},
                    explained=min(each["brokers"][broker] for each in hit),
                )
            )
    return found


@Rule(
    "D18",
    "BROKER_CORRELATED",
    CAUSE,
    check_all=_over_groups,
    says="The partitions that one broker leads lag, and the others do not.",
    is_not="a fault of the application. If it is seen in one group only, it is uncertain.",
    advice=(
        "Look at that broker: disk, network, in-sync replicas, request queues.",
        "Compare with other groups that read from it.",
    ),
    avoid=("Do not begin with a change of the application or of its number of members.",),
    falsifier="after a change of leader the lag stays with the partitions",
    thresholds=_ATTRIBUTION,
    inhibits=(outranks(SLOW, "COSTLY_PARTITION", "CAPACITY_SHORTAGE"),),
    groups=(LAG_CAUSE,),
    rank=240,
)
def broker_correlated(signals: Signals) -> list[Observation]:
    """In one group, the partitions that one broker leads lag, and no others do."""
    causes = _causes(signals, BROKER)
    found = []
    for subject in sorted({cause.subject for cause in causes}):
        mine = [cause for cause in causes if cause.subject == subject]
        first = max(mine, key=lambda cause: cause.fit.explained)
        evidence = {
            "explained_ratio": first.fit.explained,
            "purity_ratio": first.fit.purity,
            "p": first.fit.p,
            "groups": 1,
        }
        found.append(
            Observation(
                "BROKER_CORRELATED",
                subject=subject,
                confidence=ONE_GROUP_CONFIDENCE * _doubt(first),
                evidence=known(evidence),
                evidence_text={"partitions": "; ".join(map(_named, mine))},
                explained=_of_group(signals, mine),
            )
        )
    return found


def _doubt(cause: Cause) -> float:
    return MISSING ** (cause.fit.is_small + (not cause.is_proven))


def _causes(signals: Signals, label: str) -> list[Cause]:
    return [cause for cause in signals.lag_causes if cause.label == label]


def _named(cause: Cause) -> str:
    return ", ".join(f"{cause.topic}-{partition}" for partition in cause.partitions)


def _of_group(signals: Signals, causes: Sequence[Cause]) -> float:
    """Return the share of the group's significant lag that is on the partitions of these causes."""
    lag = 0.0
    for cause in causes:
        topic = next(each for each in signals.topics if each.frame.topic == cause.topic)
        places = list(cause.fit.places)
        lag += known_sum(topic.lag[places][topic.is_material[places]])
    return share_of_lag(signals, lag)
