"""One logical rebalance in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_DOWN, Decimal

from laggard.answers.reading import Row
from laggard.answers.text.words import (
    NOTHING,
    UNKNOWN,
    count,
    listed,
    moment,
    records,
    short,
    short_duration,
)
from laggard.rebalance.analytics.posterior import claim_reason, two_best
from laggard.rebalance.analytics.times import seconds_between
from laggard.rebalance.parameters import DEFAULTS

CAUSE_WORDS = {
    "coordinator_failover": "another broker took over as coordinator, the members stayed the same",
    "partitions_added": "a topic that the group reads got more partitions",
    "subscription_change": "a member changed the topics it subscribes to",
    "assignor_change": "the group switched to another assignor",
    "static_expired": "a static member was away for longer than its session timeout",
    "static_return": "a static member rejoined after its session had expired",
    "member_join": "new members joined",
    "member_left": "members left",
    "replacement": "members restarted or were replaced",
    "streams_probing": "Kafka Streams asked for its planned probing rebalance",
    "leader_rejoin": "the same members joined again, nothing else had changed",
    "unknown": "the cause is not known",
}
REASON_WORDS = {
    "poll_timeout": "a poll that came too late, max.poll.interval.ms",
    "session_expiry": "an expired session, no heartbeat in time",
    "deploy": "a deploy, members restarted one after the other",
    "crash": "a crash",
    "scale_in": "the group was scaled in",
}


def events_and_cost(row: Row, names: Mapping[str, str]) -> tuple[str, str]:
    """Return a row of `rebalances` as two paragraphs; unknown values are stated, never left out.

    `names`: what to call a slot that is only an id.
    """
    events = [_when_and_why(row), *_members(row, names), *_reason(row)]
    return " ".join(events), " ".join([_movement(row), _pauses(row), *_records(row)])


def how_long(row: Row) -> str:
    """Return the duration of a rebalance as text.

    It is exact, or an estimate with bounds if the records do not have the exact value.
    """
    est, low, high = (
        seconds_between(row["ended_at"], row[f"started_{name}"]) for name in ("est", "low", "high")
    )
    if est is None or high is None or est < 0:
        return "after a time that is not known"
    if low == high or (low is not None and low < NOTHING):
        return f"after {short_duration(est)}"
    return f"after {_estimate(est, low, high)}"


def _estimate(est: float, low: float | None, high: float) -> str:
    """Give the estimate, and its bounds unless they read like it.

    `high` belongs to the latest begin.
    """
    least = "" if high < NOTHING else f"at least {short_duration(high)}"
    most = "" if low is None else f"at most {short_duration(low)}"
    bounds = ", ".join(filter(None, (least, most)))
    if most == f"at most {short_duration(high if least else est)}":
        return f"about {short_duration(high)}" if least else bounds
    if est == high:  # no more is known than that it began by then
        return bounds or "a time that is not known"
    word = "probably" if est < NOTHING else "about"
    return f"{word} {short_duration(est)}" + (f" ({bounds})" if bounds else "")


def _when_and_why(row: Row) -> str:
    cause = str(row["cause"])
    why = CAUSE_WORDS.get(cause, cause)
    if cause == "leader_rejoin" and not row["members_after"]:
        why = "nothing had changed in the empty group"
    if cause == "unknown":
        why += f", {_why_unknown(row)}"
    rounds = len(row["generations"] or ())
    several = f" in {rounds} rounds" if rounds > 1 else ""
    return f"Ended {moment(row['ended_at'])} {how_long(row)}{several}: {why}."


def _why_unknown(row: Row) -> str:
    if not row["live_read"]:
        return "as it was read from history, where records may be missing"
    if row["interrupted"]:
        return "as a member may have joined and left in a round without a record"
    return "as the members before are not known"


def _members(row: Row, names: Mapping[str, str]) -> Iterator[str]:
    if row["joined"] is None or row["left"] is None:
        yield (
            f"Which members joined and left is not known; {count(row['members_after'], 'member')} "
            "after."
        )
        return
    shown = _changes(row, names)
    before = "unknown" if row["members_before"] is None else row["members_before"]
    if shown or row["members_after"]:
        text = "; ".join(shown) or "the same members before and after"
        yield f"{text[0].upper()}{text[1:]} ({before} → {count(row['members_after'], 'member')})."
    else:
        yield "No member before it and none after."
    if row["interrupted"]:
        yield f"{count(row['interrupted'], 'round')} before it never got to an assignment."
    if row["straggler_slot"]:
        yield f"Until its timeout it waited for {short(row['straggler_slot'])}."


def _changes(row: Row, names: Mapping[str, str]) -> list[str]:
    gone = [slot for slot in row["left"] if slot not in (row["replaced"] or ())]
    changes = (
        ("joined", row["joined"]),
        ("left", gone),
        ("restarted or replaced", row["replaced"]),
    )
    return [
        f"{word}: {listed(names.get(slot, slot) for slot in slots)}"
        for word, slots in changes
        if slots
    ]


def _reason(row: Row) -> Iterator[str]:
    """Yield the reason for which a member left, if its posterior is high enough.

    The reason is not recorded.
    """
    posterior = row["cause_posterior"]
    if not posterior:
        return
    claimed = claim_reason(posterior, DEFAULTS)
    if claimed is not None:
        yield f"Why it left: most likely {_reason_words(claimed, posterior)}."
        return
    first, second = two_best(posterior)
    yield (
        f"Why it left: unknown, perhaps {_reason_words(first, posterior)} or "
        f"{_reason_words(second, posterior)}."
    )


def _reason_words(reason: str, posterior: dict[str, float]) -> str:
    # rounded down: what is not claimed must not look as if it had reached the bound
    share = Decimal(str(posterior[reason])).quantize(Decimal("0.01"), ROUND_DOWN)
    return f"{REASON_WORDS.get(reason, reason)} ({share})"


def _movement(row: Row) -> str:
    if row["moved"] is None:
        return "How many partitions moved is not known."
    if not row["moved"]:
        return "No partition moved."
    state = ", and state with them" if row["stateful"] else ""
    needless = (
        f"{row['avoidable']} of them needlessly" if row["avoidable"] else "all of them needed"
    )
    return f"{row['moved']} of {count(row['partitions'], 'partition')} moved{state}, {needless}."


def _pauses(row: Row) -> str:
    paused = row["paused_partitions"]
    if paused is None:
        return _why_no_pause(row)
    if not paused:
        return "No partition paused."
    names = (("median", "p50"), ("95th percentile", "p95"), ("longest", "max"))
    lengths = ", ".join(f"{word} {_pause(row[f'pause_{name}_seconds'])}" for word, name in names)
    return f"{count(paused, 'partition')} paused: {lengths}."


def _pause(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else short_duration(seconds)


def _why_no_pause(row: Row) -> str:
    if not row["live_read"] or row["members_before"] is None or "pause_unknown" in row["flags"]:
        return "Whether partitions paused is not known."
    if not row["members_after"]:
        return "No member was left to read."
    if not row["members_before"]:
        return "The group was empty before it, so nothing paused."
    return "No partition had anything to read, so nothing paused."


def _records(row: Row) -> Iterator[str]:
    if not row["paused_partitions"]:
        return
    delayed, replayed, bound = (
        row[name] for name in ("records_delayed", "records_replayed", "replay_bound")
    )
    again = (
        records(replayed) if replayed is not None or bound is None else f"at most {records(bound)}"
    )
    lag = f"lag before and after it: {records(row['lag_before'])} → {records(row['lag_after'])}"
    yield f"Records that had to wait: {records(delayed)}; read again: {again}; {lag}."
