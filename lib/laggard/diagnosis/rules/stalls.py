"""Rules about partitions that stall: stalls, poison pills, partitions without an owner."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from laggard.diagnosis.history.frames import TopicFrame, Track
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    HOLDS,
    PAGE,
    WARN,
    Observation,
    Rule,
    burns_slo,
    guard,
    known,
    outranks,
    passes,
    share_of_lag,
    suppresses,
)
from laggard.diagnosis.signals.group import UNKNOWN_KIND, Flags, Signals, TopicSignals
from laggard.diagnosis.signals.rates import OVERDUE_INTERVALS
from laggard.diagnosis.signals.stall import HELD, find_suspects
from laggard.diagnosis.signals.statistics import known_sum

SETTLED = ("Stable", "Unknown", "Empty", "Dead")
UNOWNED_SECONDS = fixed("unowned_seconds", 600.0, "s")
POISON_EVICTIONS = fixed("poison_evictions", 2, "owners that were evicted at one offset")
POISON_SHARE = fixed(
    "poison_share", 0.3, "share of the partitions, from which the cause is not a single record"
)
POISON_ALIKE_SECONDS = fixed(
    "poison_alike_seconds", 600.0, "s, after which partitions that stand alike are named together"
)
POISON_CONFIDENCE = fixed("poison_confidence", 0.8, "confidence")
ALL_SILENT_SHARE = fixed(
    "all_silent_share", 0.8, "share of the partitions, from which no member makes progress"
)


@Rule(
    "D20",
    "PARTITION_STALLED",
    CAUSE,
    says="The committed offset does not move although there is more to read.",
    is_not="an idle topic, control records at the end of the log, a declared pause, or the silence "
    "during a rebalance.",
    advice=(
        "silent: take a thread dump of the owner, or look in its log for what it waits for",
        "silent: then restart that one member",
        (
            "repeating: read the record at that offset, and look for a retry loop or a pause at "
            "the owner"
        ),
        "repeating: skip the record or send it to a dead-letter topic only if it is to blame",
    ),
    avoid=("do not add consumers for a stalled partition: it has one owner",),
    falsifier="the offset moves on within ten commit intervals without any intervention",
    thresholds=("stall_min_seconds", "stall_ci"),
    inhibits=(suppresses("HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION", same_partitions=True),),
    rank=220,
    open_after=1,
)
def partition_stalled(signals: Signals) -> list[Observation]:
    """The committed offset does not move though there is more to read.

    It lasts longer than its owner's commit interval explains: at least three intervals and a
    minute. If the owner commits nothing at all, it is at least two minutes, and a minute more than
    the session timeout: the owner may be in a long batch, or dead and not yet evicted. While four
    of five partitions of a group do not move, no single one counts as stalled. A finding stays open
    until an offset moves or nothing is left to read.
    """
    stalled = [
        (each, int(row)) for each in signals.topics for row in np.flatnonzero(each.is_stalled)
    ]
    # no fault of its reader
    stalled = [(each, row) for each, row in stalled if each.stall_kind[row] != HELD]
    stuck = _stuck_on_poison(signals)
    stalled = [
        (each, row) for each, row in stalled if each.frame.named("slot")[row, -1] not in stuck
    ]
    # nobody is there to move anything, but someone may commit the same offset for ever
    if not signals.member_count:
        stalled = [
            (each, row)
            for each, row in stalled
            if each.stall_kind[row] == "repeating" and _is_committed(signals, each, row)
        ]
    severity = PAGE if burns_slo(signals.frame, signals.policy.slo_objective) else WARN
    found = [
        _stall(signals, places, subject, severity)
        for subject, places in _by_member(signals, stalled)
        if _matters(places)
    ]
    return found + _going_on(signals, "PARTITION_STALLED", found)


def _stuck_on_poison(signals: Signals) -> set[str]:
    """Return slots of members with the partition of an open poison pill.

    All their other partitions wait for that record.
    """
    places = {
        (track.topic, number)
        for track in signals.memory.tracks
        if _is_open_pill(track)
        for number in track.partitions
    }
    return {
        str(each.frame.named("slot")[row, -1])
        for each in signals.topics
        for row, number in enumerate(each.frame.partitions.tolist())
        if (each.frame.topic, number) in places
    } - {""}


def _is_open_pill(track: Track) -> bool:
    return track.code == "POISON_PILL_SUSPECT" and track.opened_ms is not None


def _going_on(signals: Signals, code: str, found: list[Observation]) -> list[Observation]:
    """Return open findings of this rule that are not found again and continue unchanged.

    Their offsets have not moved and have more to read.

    A clock that begins again, at another owner or after a reset, is no sign that anybody got on.
    Without members it is not known whether anybody could.
    """
    shown = [each for each in found if each.state == HOLDS]
    places_shown = {(each.topic, number) for each in shown for number in each.partitions}
    subjects = {each.subject for each in shown}
    still = []
    for track in signals.memory.tracks:
        own = {(track.topic, number) for number in track.partitions}
        is_found = track.subject in subjects if track.subject else bool(own & places_shown)
        if (
            track.code != code
            or track.opened_ms is None
            or is_found
            or not (places := _unmoved(signals, track))
        ):
            continue
        lag = known_sum(np.array([each.lag[row] for each, row in places]))
        still.append(
            Observation(
                code,
                track.severity,
                track.topic,
                track.partitions,
                track.subject,
                track.confidence,
                evidence=known(
                    {
                        "frozen_seconds": float(
                            min(each.frame["frozen"][row, -1] for each, row in places)
                        )
                    }
                ),
                evidence_text={"kind": _kind_of(places) or UNKNOWN_KIND},
                explained=share_of_lag(signals, lag),
                abstains=not signals.member_count,
            )
        )
    return still


def _unmoved(signals: Signals, track: Track) -> list[tuple[TopicSignals, int]]:
    """Return a finding's partitions if none has moved since it began to hold.

    One of them must have more to read.

    An offset that somebody set further on is none that its owner has reached.
    """
    since = int(np.searchsorted(signals.frame.windows, track.since_ms))
    skips = [row for row in signals.frame.events if row["kind"] == "offset_skip"]
    set_to = {(row["topic"], row["partition"], row["to_offset"]) for row in skips}
    found = []
    for each in signals.topics:
        if track.topic not in {"", each.frame.topic}:
            continue
        is_own = np.isin(each.frame.partitions, track.partitions)
        if track.subject:
            is_own = (each.frame.named("slot")[:, since:] == track.subject).any(axis=1)
        for row in np.flatnonzero(is_own).tolist():
            committed, partition = (
                each.frame["committed"][row, since:],
                int(each.frame.partitions[row]),
            )
            reached = committed[1:][np.diff(committed) > 0].tolist()
            has_read = any(
                (each.frame.topic, partition, offset) not in set_to for offset in reached
            )
            if has_read or each.stall_kind[row] == HELD:
                return []
            found.append((each, row))
    # nor is it over if that is unknown
    return found if any(each.lag[row] != 0 for each, row in found) else []


def _is_committed(signals: Signals, topic: TopicSignals, row: int) -> bool:
    """Return True if an offset was committed in the newest windows.

    There are as many of these windows as a commit interval takes.

    Those until a window after the newest generation do not count: members may have made them
    before they left.
    """
    interval, rows = float(np.nan_to_num(topic.interval[row])), signals.frame.live_generations
    windows = max(1, math.ceil(OVERDUE_INTERVALS * interval / signals.frame.window_seconds))
    left_ms = rows[-1]["record_timestamp"].timestamp() * 1000 if rows else 0.0
    is_after = signals.frame.windows[-windows:] >= left_ms + 1000 * signals.frame.window_seconds
    return bool((topic.frame["commits"][row, -windows:][is_after] > 0).any())


def _by_member(
    signals: Signals, stalled: list[tuple[TopicSignals, int]]
) -> Iterator[tuple[str, list[tuple[TopicSignals, int]]]]:
    """Yield all partitions of a member together if all of them are stalled, else one by one."""
    of_slot: dict[str, list[tuple[TopicSignals, int]]] = defaultdict(list)
    for each, row in stalled:
        of_slot[each.frame.named("slot")[row, -1]].append((each, row))
    for slot, places in sorted(of_slot.items()):
        member = signals.members.get(slot)
        if member is not None and len(member.partitions) == len(places) > 1:
            yield slot, places
        else:
            for place in places:
                yield "", [place]


def _matters(places: list[tuple[TopicSignals, int]]) -> bool:
    """Return True if there are unread records.

    If lag is unknown after a deletion, return True if the log holds any.
    """
    return any(
        each.lag[row] > 0
        or (np.isnan(each.lag[row]) and each.frame["end"][row, -1] > each.frame["start"][row, -1])
        for each, row in places
    )


def _stall(
    signals: Signals, places: list[tuple[TopicSignals, int]], subject: str, severity: str
) -> Observation:
    topic, row = places[0]
    kind = _kind_of(places)
    known_lag = [float(each.lag[at]) for each, at in places if not np.isnan(each.lag[at])]
    lag = sum(known_lag)
    evidence = {"frozen_seconds": float(min(each.frame["frozen"][at, -1] for each, at in places))}
    evidence |= {"lag_records": lag} if known_lag else {}
    partitions: tuple[int, ...] = ()
    if len(places) == 1:
        partitions = (int(topic.frame.partitions[row]),)
        evidence |= {
            "committed_offset": float(topic.frame["committed"][row, -1]),
            "repeat_commits": float(topic.frame["repeats"][row, -1]),
        }
        if kind == UNKNOWN_KIND:
            del evidence["repeat_commits"]
    topics = {each.frame.topic for each, _ in places}
    return Observation(
        "PARTITION_STALLED",
        severity=severity,
        topic=topics.pop() if len(topics) == 1 else "",
        partitions=partitions,
        subject=subject,
        evidence=evidence,
        evidence_text={
            "kind": kind,
            "owner": topic.frame.named("slot")[row, -1],
            "partitions": ", ".join(
                f"{each.frame.topic}-{each.frame.partitions[at]}" for each, at in places[:20]
            ),
        },
        guards=_guards(signals, places, kind),
        explained=share_of_lag(signals, lag),
    )


def _kind_of(places: list[tuple[TopicSignals, int]]) -> str:
    kinds = {each.stall_kind[at] for each, at in places}
    if len(kinds) == 1:
        return kinds.pop()
    return UNKNOWN_KIND if UNKNOWN_KIND in kinds else "silent"


def _guards(signals: Signals, places: list[tuple[TopicSignals, int]], kind: str) -> dict[str, str]:
    """Return the guards of a stall.

    An owner that repeats its commit is alive, but may have had no time to read.
    """
    of_owner = {
        "owner_had_time": passes(_had_time(signals, places, kind)),
        "owner_stays": guard(_dies(signals, places)),
    }
    if kind == "repeating":
        return of_owner
    return of_owner | {
        "no_rebalance_running": passes(signals.state in SETTLED),
        "others_moved_on": passes(_have_others_moved(signals, places)),
    }


def _had_time(signals: Signals, places: list[tuple[TopicSignals, int]], kind: str) -> bool:
    """Return True if the newest rebalance ended as long ago as a stall must last.

    During a rebalance nobody could read.

    Who has died since then is missed a session later. One that repeats a commit is there, and had
    time if it has been for so long and read others of its partitions; in rebalances members commit
    what they have as they lose it.
    """
    rows = signals.frame.live_generations
    if not rows:
        return True
    intervals = [
        float(each.interval[row]) for each, row in places if np.isfinite(each.interval[row])
    ]
    session = (
        max((row.get("session_timeout_ms") or 0 for row in signals.frame.members), default=0) / 1000
    )
    limit = max(
        signals.parameters.stall_min_seconds,
        signals.parameters.stall_ci * max(intervals, default=0.0),
        session,
    )
    if kind == "repeating":
        limit = signals.parameters.stall_min_seconds
    seconds = (signals.frame.now - rows[-1]["record_timestamp"]).total_seconds()
    return bool(seconds >= limit) or (kind == "repeating" and _read_others(signals, places))


def _have_others_moved(signals: Signals, places: list[tuple[TopicSignals, int]]) -> bool:
    """Return True if the group as a whole has kept reading for as long as a stall must last.

    A group that nobody reads, or whose commits are refused, stands on all of its partitions. By the
    moment at which each of them committed last, some look stalled before the others, and some after
    them.
    """
    frames = [each.frame for each in signals.topics]
    total = sum(len(each.partitions) for each in frames)
    if total == 1:
        return True
    late = sum(
        (_overdue(each, signals.parameters.stall_min_seconds).sum(axis=0) for each in frames),
        start=0,
    )
    windows = np.flatnonzero(late >= ALL_SILENT_SHARE * total)
    if not len(windows):
        return True
    # in the window after it some may have moved on at its very end
    seconds = (len(signals.frame.windows) - 2 - int(windows[-1])) * signals.frame.window_seconds
    intervals = [
        float(each.interval[row]) for each, row in places if np.isfinite(each.interval[row])
    ]
    return seconds >= max(
        signals.parameters.stall_min_seconds,
        signals.parameters.stall_ci * max(intervals, default=0.0),
    )


def _overdue(frame: TopicFrame, unknown_seconds: float) -> Flags:
    """Return a mask [partitions, windows] of overdue commits with more to read.

    There is, or may be, more to read, and the next commit is overdue.
    """
    interval = np.where(np.isnan(frame["interval"]), unknown_seconds, frame["interval"])
    found: Flags = (frame["lag"] != 0) & (frame["frozen"] > OVERDUE_INTERVALS * interval)
    return found


def _read_others(signals: Signals, places: list[tuple[TopicSignals, int]]) -> bool:
    """Return True if each owner has read other partitions meanwhile.

    The partition with the shortest standstill of the owner decides.
    """
    shortest: dict[tuple[str, str], tuple[TopicSignals, int]] = {}
    for each, row in sorted(places, key=lambda place: -place[0].frame["frozen"][place[1], -1]):
        shortest[each.frame.topic, str(each.frame.named("slot")[row, -1])] = each, row
    return all(_reads_others(signals, each, row) for each, row in shortest.values())


def _reads_others(signals: Signals, topic: TopicSignals, row: int) -> bool:
    """Return True if a partition's owner has read others for as long as a stall must last.

    Who has just joined and is behind takes its partitions in turn, and some wait; who dies is
    missed a session later. For an owner that has no others, members speak that lived through the
    same rebalances.
    """
    membership, slots = signals.membership, topic.frame.named("slot")[:, -1]
    if not slots[row]:
        return False
    seconds, joined_at = (
        float(topic.frame["frozen"][row, -1]),
        membership.joined_at.get(membership.place(slots[row])),
    )
    if joined_at is not None:
        seconds = min(seconds, (signals.frame.now - joined_at).total_seconds())
    since = max(1, int(seconds // signals.frame.window_seconds))
    is_own = slots == slots[row]
    has_others = bool((is_own & ~topic.is_stalled).any())
    is_read = topic.frame["frozen"][:, -1] <= seconds - signals.parameters.stall_min_seconds
    others = np.flatnonzero(is_read & ~topic.is_stalled & (is_own if has_others else True)).tolist()
    return any(
        (topic.frame["consumed"][place, -since:] > 0).any()
        and (has_others or not _is_looping(signals, slots[place]))
        for place in others
    )


def _dies(signals: Signals, places: list[tuple[TopicSignals, int]]) -> bool:
    """Return True if all owners are members that leave repeatedly.

    Their partitions wait until they are evicted.
    """
    return all(_is_looping(signals, each.frame.named("slot")[row, -1]) for each, row in places)


def _is_looping(signals: Signals, slot: str) -> bool:
    return signals.membership.place(slot) in signals.membership.looping


@Rule(
    "D21",
    "POISON_PILL_SUSPECT",
    CAUSE,
    says="One record causes the eviction of every member that reads it.",
    is_not=(
        "a sink that is down, which stops many partitions at once. Owners that change in a "
        "deploy do not count."
    ),
    advice=(
        "read the record at that offset and send it to a dead-letter topic",
        "cap the retries of one record",
    ),
    avoid=("do not restart members: the next owner reads the same record",),
    falsifier="two partitions of one owner stall one after the other",
    inhibits=(
        outranks(
            "PARTITION_STALLED",
            "POLL_TIMEOUT_EVICTION",
            "REBALANCE_STORM",
            "CRASH_LOOP",
            "DEPLOY_LAG_SPIKE",
            "CAPACITY_SHORTAGE",
            "AT_PARTITION_CEILING",
        ),
    ),
    rank=80,
    open_after=1,
)
def poison_pill_suspect(signals: Signals) -> list[Observation]:
    """A committed offset does not move while one owner after the other is evicted from the group.

    Partitions that stood since then and had the same owners are named together, but only after ten
    minutes.
    """
    found = _suspected(signals)
    return found + _going_on(signals, "POISON_PILL_SUSPECT", found)


def _suspected(signals: Signals) -> list[Observation]:
    found = find_suspects(signals, signals.parameters.stall_min_seconds)
    # until one moves on, nothing tells which of those that stand since then has the record
    if found is None or (len(found.rows) > 1 and found.frozen_seconds < POISON_ALIKE_SECONDS):
        return []
    slots = {each.slot for each in found.evictions}
    if (
        len(slots) < POISON_EVICTIONS
        or len({each.at for each in found.evictions}) < POISON_EVICTIONS
    ):
        return []
    topic = found.topic
    numbers = [int(topic.frame.partitions[row]) for row in found.rows]
    named = {
        (each.topic, part)
        for each in signals.memory.tracks
        if _is_open_pill(each)
        for part in each.partitions
    }
    if named and named.isdisjoint((topic.frame.topic, number) for number in numbers):
        return []  # its owners were evicted with that one, and it waits for them to reach it
    offsets = topic.frame["committed"][list(found.rows), -1]
    total = sum(len(each.frame.partitions) for each in signals.topics)
    lag = known_sum(topic.lag[list(found.rows)])
    return [
        Observation(
            "POISON_PILL_SUSPECT",
            topic=topic.frame.topic,
            partitions=tuple(numbers),
            confidence=POISON_CONFIDENCE,
            evidence={
                "committed_offset": float(offsets[0]),
                "owners_put_out": float(len(slots)),
                "evictions": float(len(found.evictions)),
                "frozen_seconds": found.frozen_seconds,
            },
            evidence_text={
                "offsets": ", ".join(
                    f"{number} at {at:.0f}" for number, at in zip(numbers, offsets, strict=True)
                )
            },
            guards={
                "few_partitions_stalled": passes(
                    found.share < POISON_SHARE or found.share * total <= 1
                )
            },
            explained=share_of_lag(signals, lag),
        ),
    ]


@Rule(
    "D22",
    "PARTITION_UNOWNED",
    CAUSE,
    says="A partition of a subscribed topic is assigned to no member.",
    is_not="the moment between the two rounds of a cooperative rebalance.",
    advice=(
        "look in the members' logs for a refresh of the topic's metadata",
        "check the assignor and the subscriptions",
    ),
    falsifier="a generation of these ten minutes assigns the partition to a member",
    rank=230,
    open_after=1,
)
def partition_unowned(signals: Signals) -> list[Observation]:
    """A partition of a subscribed topic was assigned to no member for ten minutes."""
    if not signals.member_count or signals.frame.fact.get("protocol_type") not in (
        None,
        "",
        "consumer",
    ):
        return []
    windows = max(1, round(UNOWNED_SECONDS / signals.frame.window_seconds))
    wanted = signals.frame.fact.get("topics")
    facts = signals.frame.facts[-windows:]
    if len(facts) < windows or any(row is None or not row.get("members") for row in facts):
        return []
    found = []
    for each in signals.topics:
        owned = each.frame.named("owner")[:, -windows:] != ""
        if not owned[:, -1].any() or (wanted is not None and each.frame.topic not in wanted):
            continue  # assignments cannot be read, or nobody wants the topic
        left_out = ~owned.any(axis=1)
        if left_out.any():
            left_out &= (each.frame.named("status")[:, -windows:] != "").all(axis=1)
        if left_out.any():
            found.append(
                Observation(
                    "PARTITION_UNOWNED",
                    topic=each.frame.topic,
                    partitions=tuple(int(number) for number in each.frame.partitions[left_out]),
                    evidence={"partitions": float(left_out.sum()), "seconds": UNOWNED_SECONDS},
                    explained=share_of_lag(signals, known_sum(each.lag[left_out])),
                )
            )
    return found
