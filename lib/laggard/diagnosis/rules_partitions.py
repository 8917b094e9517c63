"""Rules about single partitions and about commits that stop: stalls, poison pills, groups without members, rewinds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from laggard.diagnosis.frames import Row
from laggard.diagnosis.observation import (
    CAUSE,
    EVENT,
    FAIL,
    HYGIENE,
    INFO,
    PAGE,
    PASS,
    WARN,
    Observation,
    Rule,
)  # fmt: skip
from laggard.diagnosis.view import TopicView, View

SETTLED = ("Stable", "Unknown")
EMPTY = ("Empty", "Dead")
QUIET_SECONDS = 600.0
POISON_OWNERS = 3  # the partition outlived two changes of its owner


def slo_burns(view: View) -> bool:
    """More records came late in the last five minutes than the objective allows."""
    if not view.policy.slo_time_lag_seconds:
        return False
    matured, late = (_sum_newest(view, name, 300.0) for name in ("matured", "late"))
    return late > (1.0 - view.policy.slo_objective) * matured > 0


def partition_stalled(view: View) -> list[Observation]:
    """The committed offset stands still although there is more to read."""
    stalled = [(each, int(row)) for each in view.topics for row in np.flatnonzero(each.is_stalled)]
    total = sum(len(each.frame.partitions) for each in view.topics)
    silent = [(each, row) for each, row in stalled if each.stall_kind[row] == "silent"]
    if total > 1 and len(silent) >= 0.8 * total and view.member_count:
        stalled = [place for place in stalled if place not in silent]  # no member works: that is another finding
    severity = PAGE if slo_burns(view) else WARN
    return [
        _stall(view, places, subject, severity) for subject, places in _by_member(view, stalled) if _matters(places)
    ]


def _by_member(view: View, stalled: list[tuple[TopicView, int]]) -> Iterator[tuple[str, list[tuple[TopicView, int]]]]:
    """All partitions of a member together where all of them stand, else one by one."""
    of_slot: dict[str, list[tuple[TopicView, int]]] = defaultdict(list)
    for each, row in stalled:
        of_slot[each.frame.named("slot")[row, -1]].append((each, row))
    for slot, places in sorted(of_slot.items()):
        member = view.members.get(slot)
        if member is not None and len(member.partitions) == len(places) > 1:
            yield slot, places
        else:
            for place in places:
                yield "", [place]


def _matters(places: list[tuple[TopicView, int]]) -> bool:
    return any(each.lag[row] > 0 for each, row in places)


def _stall(view: View, places: list[tuple[TopicView, int]], subject: str, severity: str) -> Observation:
    topic, row = places[0]
    kinds = {each.stall_kind[at] for each, at in places}
    kind = kinds.pop() if len(kinds) == 1 else "silent"
    is_moving = kind != "silent" or view.state in SETTLED or view.state in EMPTY
    lag = float(sum(each.lag[at] for each, at in places))
    evidence = {
        "frozen_seconds": float(min(each.frame["frozen"][at, -1] for each, at in places)),
        "lag_records": lag,
    }
    if len(places) == 1:
        evidence |= {
            "committed_offset": float(topic.frame["committed"][row, -1]),
            "repeat_commits": float(topic.frame["repeats"][row, -1]),
        }
    topics = {each.frame.topic for each, _ in places}
    return Observation(
        "PARTITION_STALLED",
        severity=severity,
        topic=topics.pop() if len(topics) == 1 else "",
        partitions=tuple(int(each.frame.partitions[at]) for each, at in places) if len(places) == 1 else (),
        subject=subject,
        evidence=evidence,
        evidence_text={
            "kind": kind,
            "owner": topic.frame.named("slot")[row, -1],
            "partitions": ", ".join(f"{each.frame.topic}-{each.frame.partitions[at]}" for each, at in places[:20]),
        },
        guards={"no rebalance is running": PASS if is_moving else FAIL},
        explained=lag / view.material_lag if view.material_lag else 0.0,
    )


def poison_pill_suspect(view: View) -> list[Observation]:
    """The same offset stands while one owner after the other is put out of the group."""
    found = []
    for each in view.topics:
        for row in np.flatnonzero(each.is_stalled):
            windows = int(each.frame["frozen"][row, -1] // view.frame.window_seconds) + 1
            owners = [name for name in each.frame.named("owner")[row, -windows:] if name]
            evictions = _evictions(view, windows)
            if len(set(owners)) < POISON_OWNERS or len(evictions) < POISON_OWNERS - 1:
                continue
            crowd = float(np.mean(each.is_stalled))
            found.append(
                Observation(
                    "POISON_PILL_SUSPECT",
                    topic=each.frame.topic,
                    partitions=(int(each.frame.partitions[row]),),
                    confidence=0.8,
                    evidence={
                        "committed_offset": float(each.frame["committed"][row, -1]),
                        "owners": float(len(set(owners))),
                        "evictions": float(len(evictions)),
                        "frozen_seconds": float(each.frame["frozen"][row, -1]),
                    },
                    guards={"fewer than 30 % of the partitions stand": PASS if crowd < 0.3 else FAIL},
                    explained=float(each.lag[row] / view.material_lag) if view.material_lag else 0.0,
                )
            )
    return found


def _evictions(view: View, windows: int) -> list[Row]:
    """Rebalances of the newest windows in which a member was put out for not polling or not answering."""
    since_ms = view.frame.now_ms - 1000 * windows * view.frame.window_seconds
    found = []
    for row in view.frame.rebalances:
        reasons = row.get("cause_posterior") or {}
        put_out = sum(reasons.get(name, 0.0) for name in ("poll_timeout", "session_expiry", "crash"))
        if row["left"] and row["ended_at"].timestamp() * 1000 >= since_ms and put_out >= 0.5:
            found.append(row)
    return found


def partition_unowned(view: View) -> list[Observation]:
    """A partition of a subscribed topic that no member was given for ten minutes."""
    if not view.member_count or view.frame.fact.get("protocol_type") not in (None, "", "consumer"):
        return []
    windows = max(1, round(QUIET_SECONDS / view.frame.window_seconds))
    wanted = view.frame.fact.get("topics")
    facts = view.frame.facts[-windows:]
    if len(facts) < windows or any(row is None or not row.get("members") for row in facts):
        return []
    found = []
    for each in view.topics:
        owned = each.frame.named("owner") != ""
        if not owned[:, -1].any() or (wanted is not None and each.frame.topic not in wanted):
            continue  # assignments cannot be read, or nobody wants the topic
        is_known = (each.frame.named("status")[:, -windows:] != "").all(axis=1)
        left_out = is_known & ~owned[:, -windows:].any(axis=1)
        if left_out.any():
            found.append(
                Observation(
                    "PARTITION_UNOWNED",
                    topic=each.frame.topic,
                    partitions=tuple(int(number) for number in each.frame.partitions[left_out]),
                    evidence={"partitions": float(left_out.sum()), "seconds": QUIET_SECONDS},
                    explained=float(np.nansum(each.lag[left_out]) / view.material_lag) if view.material_lag else 0.0,
                )
            )
    return found


def empty_with_lag(view: View) -> list[Observation]:
    """Records wait and nobody is there to read them."""
    if view.member_count or view.state not in EMPTY or not view.is_material:
        return []
    if _sum_newest(view, "commits", QUIET_SECONDS) > 0 or not _covers(view, QUIET_SECONDS):
        return []
    arrival = float(sum(np.nansum(each.arrival) for each in view.topics))
    is_wanted = view.policy.scale_to_zero or arrival == 0
    return [
        Observation(
            "EMPTY_WITH_LAG",
            severity=INFO if is_wanted else WARN,
            evidence={"lag_records": view.lag, "arrival_rate": arrival},
            evidence_text={"empty_since": str(view.frame.fact.get("empty_since") or "unknown")},
            guards={"nobody commits": PASS},
            explained=1.0,
        )
    ]


def commits_stopped(view: View) -> list[Observation]:
    """Members are there and records arrive, and not one partition is committed any more."""
    if not view.member_count or not view.topics or view.frame.fact.get("group_type") in ("share", "streams"):
        return []
    intervals = [float(each.interval[np.isfinite(each.interval)].max(initial=0.0)) for each in view.topics]
    timeouts = [row["rebalance_timeout_ms"] for row in view.frame.members if row.get("rebalance_timeout_ms")]
    seconds = max(5 * max(intervals), max(timeouts, default=300_000) / 1000, view.frame.window_seconds)
    commits = float(sum(np.nansum(each.frame["commits"]) for each in view.topics))
    arrival = float(sum(np.nansum(each.arrival) for each in view.topics))
    if arrival <= 0 or not _covers(view, seconds + view.frame.window_seconds) or not view.is_material:
        return []
    if _sum_newest(view, "commits", seconds + view.frame.window_seconds) > 0:
        return []
    return [
        Observation(
            "COMMITS_STOPPED",
            evidence={"seconds": seconds, "arrival_rate": arrival, "members": float(view.member_count)},
            guards={"it has committed before": PASS if commits or _has_commit(view) else FAIL},
            explained=1.0,
        )
    ]


def _has_commit(view: View) -> bool:
    return any(np.isfinite(each.frame["committed"][:, -1]).any() for each in view.topics)


def external_committer(view: View) -> list[Observation]:
    """Offsets are committed by someone who is no member: lag follows the rhythm of his commits."""
    if view.member_count or not _covers(view, QUIET_SECONDS):
        return []
    commits = _sum_newest(view, "commits", QUIET_SECONDS)
    if not commits:
        return []
    known = [float(value) for each in view.topics for value in each.interval if np.isfinite(value)]
    return [
        Observation(
            "EXTERNAL_COMMITTER",
            severity=INFO,
            evidence={"commits": commits} | ({"commit_interval_seconds": max(known)} if known else {}),
        )
    ]


def no_committed_offset(view: View) -> list[Observation]:
    """A member has the partition and records arrive, and no offset was ever committed."""
    windows = max(1, round(QUIET_SECONDS / view.frame.window_seconds))
    found = []
    for each in view.topics:
        lasting = (each.frame.named("status")[:, -windows:] == "no_commit").all(axis=1)
        owned = (each.frame.named("owner")[:, -windows:] != "").all(axis=1)
        grew = np.nansum(each.frame["produced"][:, -windows:], axis=1) > 0
        rows = lasting & owned & grew
        if rows.any() and each.frame.named("status").shape[1] >= windows:
            found.append(
                Observation(
                    "NO_COMMITTED_OFFSET",
                    severity=INFO,
                    topic=each.frame.topic,
                    partitions=tuple(int(number) for number in each.frame.partitions[rows]),
                    evidence={"partitions": float(rows.sum())},
                )
            )
    return found


def offset_rewind(view: View) -> list[Observation]:
    """The committed offset fell: a replay, or someone set it back."""
    replayed = sum(row["replay_bound"] or 0 for row in view.frame.rebalances[-3:])
    found = []
    for topic, rows in _events(view, "offset_rewind"):
        records = sum(row["records"] or 0 for row in rows)
        is_small = records <= replayed
        found.append(
            _event("OFFSET_REWIND", topic, rows, INFO if is_small else WARN, {"replay_bound_records": float(replayed)})
        )
    return found


def offset_skip(view: View) -> list[Observation]:
    """The committed offset jumped to the end: records were not processed."""
    return [_event("OFFSET_SKIP", topic, rows, INFO, {}) for topic, rows in _events(view, "offset_skip")]


def offset_beyond_end(view: View) -> list[Observation]:
    """Committed offsets lie behind the end of the log: the topic was cut or is another one."""
    found = []
    for each in view.topics:
        beyond = each.frame.named("status")[:, -1] == "committed_ahead"
        if beyond.any():
            ahead = each.frame["committed"][beyond, -1] - each.frame["end"][beyond, -1]
            found.append(
                Observation(
                    "OFFSET_BEYOND_END",
                    topic=each.frame.topic,
                    partitions=tuple(int(number) for number in each.frame.partitions[beyond]),
                    evidence={"ahead_records": float(np.nansum(ahead))},
                    explained=float(beyond.mean()),
                )
            )
    return found


def _event(code: str, topic: str, rows: list[Row], severity: str, more: dict[str, float]) -> Observation:
    return Observation(
        code,
        severity=severity,
        topic=topic,
        partitions=tuple(sorted({row["partition"] for row in rows})),
        evidence={
            "records": float(sum(row["records"] or 0 for row in rows)),
            "from_offset": float(rows[0]["from_offset"] or 0),
            "to_offset": float(rows[0]["to_offset"] or 0),
        }
        | more,
    )


def _events(view: View, kind: str) -> list[tuple[str, list[Row]]]:
    """This window's events of a kind, by topic."""
    found: dict[str, list[Row]] = {}
    begin_ms = int(view.frame.windows[-1])
    for row in view.frame.events:
        at_ms = row["event_at"].timestamp() * 1000
        if row["kind"] == kind and begin_ms <= at_ms < view.frame.now_ms:
            found.setdefault(row["topic"] or "", []).append(row)
    return sorted(found.items())


def event_rule(code: str, kind: str) -> Rule:
    """A rule that tells of an event as it is in `group_events`."""

    def condition(view: View) -> list[Observation]:
        found = []
        for topic, rows in _events(view, kind):
            numbers = {"records": float(rows[0]["records"])} if rows[0].get("records") is not None else {}
            found.append(Observation(code, severity=INFO, topic=topic, evidence={"events": float(len(rows))} | numbers))
        return found

    return Rule("D80", code, EVENT, condition, f"{kind.replace('_', ' ')}", (), open_after=1, close_after=1)


def _sum_newest(view: View, name: str, seconds: float) -> float:
    windows = max(1, round(seconds / view.frame.window_seconds))
    return float(sum(np.nansum(each.frame[name][:, -windows:]) for each in view.topics))


def _covers(view: View, seconds: float) -> bool:
    """The recorded history of some partition reaches back so far."""
    windows = max(1, round(seconds / view.frame.window_seconds))
    status = [each.frame.named("status") for each in view.topics]
    return any(each.shape[1] >= windows and (each[:, -windows] != "").any() for each in status)


RULES = (
    Rule(
        "D20", "PARTITION_STALLED", CAUSE, partition_stalled,
        "The committed offset stands still although there is more to read.",
        ("read the record at that offset", "look for a retry loop, a pause or a hang at its owner",
         "skip it or send it to a dead-letter topic"),
        ("do not add consumers: the partition has one owner",),
        "the offset moves on without anybody's help within ten commit intervals",
        ("stall_min_seconds", "stall_ci"), open_after=1,
    ),
    Rule(
        "D21", "POISON_PILL_SUSPECT", CAUSE, poison_pill_suspect,
        "One record puts out every member that gets it.",
        ("read the record at that offset and send it to a dead-letter topic", "cap the retries of one record"),
        ("do not restart members: the next owner meets the same record",),
        "two partitions of one owner stand in turn", open_after=1,
    ),
    Rule(
        "D22", "PARTITION_UNOWNED", CAUSE, partition_unowned,
        "Nobody was given a partition that the group subscribes to.",
        ("look at the members' log for a refresh of the topic's metadata", "check the assignor and the subscriptions"),
        open_after=1,
    ),
    Rule(
        "D23", "EMPTY_WITH_LAG", CAUSE, empty_with_lag,
        "Records wait and the group has no member.",
        ("start the consumers",), ("do not size the group before it runs",), "somebody commits", open_after=1,
    ),
    Rule(
        "D24", "COMMITS_STOPPED", CAUSE, commits_stopped,
        "Members are there, records arrive, and no partition is committed.",
        ("look for a hang or an outage of what they write to", "look for failing commits in the members' log"),
        ("do not add consumers",), "a commit arrives", open_after=1,
    ),
    Rule(
        "D25", "EXTERNAL_COMMITTER", EVENT, external_committer,
        "Offsets are committed by someone who is no member.",
        ("read lag against the interval of these commits",), open_after=1,
    ),
    Rule(
        "D26", "NO_COMMITTED_OFFSET", HYGIENE, no_committed_offset,
        "A partition in work was never committed; its reset policy decides where a restart begins.",
        ("check auto.offset.reset and that the partition is committed at all",), open_after=1,
    ),
    Rule(
        "D27", "OFFSET_REWIND", EVENT, offset_rewind,
        "The committed offset fell: records are read once more.",
        ("ask who reset the offsets",), ("do not size the group by this backlog",), open_after=1,
    ),
    Rule(
        "D28", "OFFSET_SKIP", EVENT, offset_skip,
        "The committed offset jumped to the end: records were not processed.",
        ("ask who reset the offsets, or what auto.offset.reset did",), open_after=1,
    ),
    Rule(
        "D29", "OFFSET_BEYOND_END", CAUSE, offset_beyond_end,
        "The group committed more than the log holds: the topic was cut or made anew.",
        ("compare the topic's history with an unclean election or a new topic", "reset the group's offsets"),
        open_after=1,
    ),
    event_rule("GROUP_DELETED", "group_deleted"),
    event_rule("PARTITIONS_ADDED", "partitions_added"),
    event_rule("TOPIC_RECREATED", "topic_recreated"),
)  # fmt: skip
