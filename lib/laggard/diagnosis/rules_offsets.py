"""Rules about offsets that jump or do not fit their log, and events that are told as they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from laggard.diagnosis.frames import Row
from laggard.diagnosis.observation import CAUSE, EVENT, INFO, WARN, Observation, Rule
from laggard.diagnosis.order import known_sum
from laggard.diagnosis.patterns_rebalances import now_of
from laggard.diagnosis.view import View

_TRANSACTION_SECONDS = 900.0  # Kafka's default of transaction.max.timeout.ms: no honest one lasts longer


def offset_rewind(view: View, span: timedelta | None = None) -> list[Observation]:
    """The committed offset fell in the window, or in a span up to its end: a replay, or someone set it back."""
    replayed = sum(row["replay_bound"] or 0 for row in view.frame.rebalances[-3:])
    found = []
    for topic, rows in _events(view, "offset_rewind", span):
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
                    evidence={"ahead_records": known_sum(ahead)},
                    explained=float(beyond.mean()),
                )
            )
    return found


def lso_stuck(view: View) -> list[Observation]:
    """The group stands at the last stable offset, and a transaction keeps it there."""
    count = max(2, round(_TRANSACTION_SECONDS / view.frame.window_seconds))
    found = []
    for each in view.topics:
        held: list[int] = []
        windows = each.frame.facts.get("windows", {})
        for row, partition in enumerate(each.frame.partitions if windows else ()):
            rows = windows.get(int(partition), [])[-count:]
            stable = {one["last_stable_offset"] for one in rows}
            ends = [one["log_end_offset"] for one in rows if one["log_end_offset"] is not None]
            if len(rows) < count or len(stable) != 1 or None in stable or not ends or ends[-1] <= ends[0]:
                continue
            if each.frame["committed"][row, -1] >= min(stable) - each.floor[row]:
                held.append(row)
        if held:
            lag = known_sum(each.lag[held])
            found.append(
                Observation(
                    "LSO_STUCK",
                    topic=each.frame.topic,
                    partitions=tuple(int(each.frame.partitions[row]) for row in held),
                    evidence={"lag_records": lag, "seconds": _TRANSACTION_SECONDS},
                    explained=lag / view.material_lag if view.material_lag else 0.0,
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


def _events(view: View, kind: str, span: timedelta | None = None) -> list[tuple[str, list[Row]]]:
    """Events of a kind in this window, or in a span up to its end, by topic."""
    found: dict[str, list[Row]] = {}
    end = now_of(view.frame)
    begin = end - (span or timedelta(seconds=view.frame.window_seconds))
    for row in view.frame.events:
        if row["kind"] == kind and begin <= row["event_at"] < end:
            found.setdefault(row["topic"] or "", []).append(row)
    return sorted(found.items())


def event_rule(code: str, kind: str, says: str) -> Rule:
    """A rule that tells of an event as it is in `group_events`."""

    def condition(view: View) -> list[Observation]:
        found = []
        for topic, rows in _events(view, kind):
            numbers = {"records": float(rows[0]["records"])} if rows[0].get("records") is not None else {}
            found.append(Observation(code, severity=INFO, topic=topic, evidence={"events": float(len(rows))} | numbers))
        return found

    return Rule("D80", code, EVENT, condition, says, (), open_after=1, close_after=1)


_tell_of_recreated = event_rule(
    "TOPIC_RECREATED", "topic_recreated", "The topic was made anew; committed offsets are of the old one."
)


def topic_recreated(view: View) -> list[Observation]:
    """The topic has another id: by its event, or where nobody was watching the change, by what the group had before."""
    found = list(_tell_of_recreated.condition(view))
    told = {row["topic"] for row in view.frame.events if row["kind"] == "topic_recreated"}
    for each in view.topics:
        if not each.frame.facts.get("former_topic_id") or each.frame.topic in told:
            continue
        if (each.frame.named("status") != "").any(axis=0).sum() == 1:
            found.append(Observation("TOPIC_RECREATED", severity=INFO, topic=each.frame.topic))
    return found


RULES = (
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
    Rule(
        "D30",
        "LSO_STUCK",
        CAUSE,
        lso_stuck,
        "A transaction that hangs on the topic hides records from a group that reads committed ones only.",
        ("find it on the partition's leader: kafka-transactions.sh find-hanging, then abort it",),
        ("do not change the consumers",),
        "the last stable offset moves",
        open_after=1,
    ),
    event_rule("GROUP_DELETED", "group_deleted", "The group and its offsets were deleted."),
    event_rule("PARTITIONS_ADDED", "partitions_added", "A topic that the group reads got more partitions; keys move."),
    replace(_tell_of_recreated, condition=topic_recreated),
)  # fmt: skip
