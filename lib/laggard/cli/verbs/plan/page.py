"""The page of `laggard plan`: today, the question, loads, drain, the way there, sweep, unknowns."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf, isnan

from laggard.answers.plan.answer import Answer, not_known
from laggard.answers.plan.outcome import Outcome, Share, Span
from laggard.answers.text.diagnosis_words import verdict_sentence
from laggard.answers.text.words import (
    UNKNOWN,
    aligned,
    count,
    duration,
    known,
    listed,
    moment,
    paragraph,
    percent,
    short,
    short_duration,
)

_MEMBERS = 10  # rows of the table
_BAR = 30
_LOADS = ("MEMBER", "PARTITIONS", "RECORDS/S", "OF CAPACITY", "UNREAD", "DRAINS IN")
_SWEEP = ("MEMBERS", "HIGHEST LOAD", "OF CAPACITY", "DRAINS IN", "BETWEEN")


def page_lines(plan: Answer) -> Iterator[str]:
    """Yield all lines of the page."""
    yield f"{short(plan.explained.group['group'], 1000)}: {_question(plan)}"
    for title, lines in (
        ("Now", _now(plan)),
        ("Load", _load(plan)),
        ("Drain", _drain(plan)),
        ("Getting there", _way(plan)),
        ("Sweep", _sweep(plan)),
        ("Not known, or assumed", _unknown(plan)),
    ):
        text = list(lines)
        if text:
            yield from ("", title, *text)


def _question(plan: Answer) -> str:
    change = plan.change
    parts = [count(plan.then.members, "member")]
    if change.assignor is not None:
        parts.append(f"assignor {change.assignor}")
    if change.partitions is not None:
        parts.append(f"{count(change.partitions, 'partition')} in {short(change.topic or '')}")
    if change.rate != 1:
        parts.append(f"{change.rate:g} times the records")
    return f"what if: {', '.join(parts)}" if change.is_any else f"as it is, with {parts[0]}"


def _now(plan: Answer) -> Iterator[str]:
    row = plan.verdict
    yield from paragraph(
        f"{verdict_sentence(row)} This is of {moment(row['window_end'])}.", "  ", "  "
    )
    is_yes = str(row["scale_verdict"]).startswith("YES")
    if is_yes and (row["scale_reason"] or {}).get("drain_at_desired_seconds") is not None:
        text = (
            "The verdict's drain time begins with what was unread at the newest commits, those "
            "below with what is unread now: they are a little longer."
        )
        yield from paragraph(text, "  ", "  ")
    capacity = plan.rates.capacity
    windows = f", p10 to p90 of {count(plan.rates.busy_windows, 'busy window')}"
    numbers = [
        f"members {known(plan.signals.member_count)}",
        f"members to have {known(row['members_desired'])}",
        f"capacity of one {_rate(capacity, windows)}",
    ]
    if plan.now is not None:
        numbers.append(f"{_drains(plan.now.drain_seconds)} with each member at its capacity")
    yield from paragraph("; ".join(numbers), "  ", "  ")


def _load(plan: Answer) -> Iterator[str]:
    then, capacity = plan.then, plan.rates.capacity.value
    if plan.change.rate != 1 or not plan.change.keeps_owners:
        yield from paragraph(_needed(plan), "  ", "  ")
    if not then.loads:
        return
    rows = [_cells(share, capacity) for share in then.loads[:_MEMBERS]]
    yield from (
        f"  {line}" for line in aligned([_LOADS, *rows], [name != "MEMBER" for name in _LOADS])
    )
    if len(then.loads) > _MEMBERS:
        yield f"  and {count(len(then.loads) - _MEMBERS, 'member')} with as much or less"
    if then.idle_members is None:
        yield "  and members of which it is not known what they have"
    elif then.idle_members:
        idle = count(then.idle_members, "member")
        yield f"  and {idle} without a partition: a partition is never split"


def _needed(plan: Answer) -> str:
    needed = plan.desired
    text = f"Members that this load needs: {known(needed)}"
    if plan.sizing.target_unreachable and needed is not None:
        text += ", as no more can get a partition, and not even these drain it within the target"
    return f"{text}; members that can get a partition: {plan.plan.signals.ceiling}"


def _cells(share: Share, capacity: float) -> tuple[str, ...]:
    return (
        short(share.member),
        f"{len(share.partitions)}",
        f"{share.arrival_rate:,.0f}",
        UNKNOWN if isnan(capacity) else percent(share.arrival_rate / capacity),
        f"{share.lag:,.0f}",
        _seconds(share.drain_seconds.value),
    )


def _drain(plan: Answer) -> Iterator[str]:
    then = plan.then
    if isnan(then.drain_seconds.value):
        yield "  Unknown."
        return
    text = (
        f"Drains in {_time(then.drain_seconds)}, if each member reads at its capacity; the "
        "rebalance adds to that."
    )
    if isinf(then.drain_seconds.value):
        short_ones = [share for share in then.loads if isinf(share.drain_seconds.value)]
        text = f"Does not drain: {count(len(short_ones), 'member')} would get more than one does."
        if not then.members:
            text = "Does not drain: no member reads it."
        elif isfinite(then.drain_seconds.p10):
            text += f" At the best recorded rates it drains in {_seconds(then.drain_seconds.p10)}."
    yield from paragraph(text, "  ", "  ")
    yield from _limits(plan)


def _limits(plan: Answer) -> Iterator[str]:
    """Name the partitions that set a limit which no number of members lifts."""
    hot = plan.plan.hot()
    if hot:
        names = listed(f"{topic}-{number}" for topic, number in hot)
        most = plan.plan.loads[hot[0]].arrival
        subject = "partition gets" if len(hot) == 1 else "partitions get up to"
        text = (
            f"{len(hot)} {subject} {most:,.0f} records/s, more than any member was seen to read: "
            f"{names}."
        )
        yield from paragraph(
            f"{text} No number of members and no assignor drains that.", "  ", "  "
        )
        return
    slowest, seconds = plan.plan.least_drain()
    if slowest is not None and seconds >= 1:
        text = (
            f"No number of members makes it less than {_seconds(seconds)}: partition "
            f"{short(slowest.topic)}-{slowest.partition}"
        )
        yield from paragraph(f"{text} takes that with a member of its own.", "  ", "  ")


def _way(plan: Answer) -> Iterator[str]:
    cost = plan.cost
    if cost.rebalances == 0:
        return
    if cost.rebalances is None or cost.rebalances_most is None:
        yield "  Unknown."
        return
    times = count(cost.rebalances, "rebalance")
    if cost.rebalances_most > cost.rebalances:
        times += f", up to {cost.rebalances_most} if members change one by one"
    lines = [f"{times}; partitions that move: {_number(cost.moved_partitions)}"]
    if cost.rebalances_recorded and not isnan(cost.paused_partitions):
        paused = count(round(cost.paused_partitions), "partition")
        lines.append(
            f"each pauses {paused} for up to {_pause(cost.pause_max_seconds)}, "
            f"as {count(cost.rebalances_recorded, 'recorded rebalance')} did, and delays "
            f"{_number(cost.records_delayed)} records"
        )
    else:
        lines.append("how long each pauses partitions is unknown")
    yield from paragraph("; ".join(lines) + ".", "  ", "  ")


def _sweep(plan: Answer) -> Iterator[str]:
    if not plan.sweep:
        return
    capacity, seconds = plan.rates.capacity.value, plan.signals.policy.drain_target_seconds
    lefts = [step.unread_after_target for step in plan.sweep]
    most = max((left for left in lefts if not isnan(left)), default=0.0)
    rows = [_step(outcome, capacity) for outcome in plan.sweep]
    lines = aligned([_SWEEP, *rows], [True] * len(_SWEEP))
    width = max(map(len, lines))
    yield f"  {lines[0].ljust(width)}  UNREAD AFTER {duration(seconds)}"
    for line, outcome in zip(lines[1:], plan.sweep, strict=True):
        left = outcome.unread_after_target
        bar = "" if isnan(left) or not most else "#" * round(_BAR * left / most)
        shown = UNKNOWN if isnan(left) else f"{left:,.0f}"
        marks = _marks(plan, outcome.members)
        yield f"  {line.ljust(width)}  {' '.join(filter(None, (bar, shown, marks)))}"


def _step(outcome: Outcome, capacity: float) -> tuple[str, ...]:
    largest, drain = outcome.largest_rate, outcome.drain_seconds
    share = UNKNOWN if isnan(capacity + largest) else percent(largest / capacity)
    load = UNKNOWN if isnan(largest) else f"{largest:,.0f}/s"
    between = UNKNOWN
    if not isnan(drain.p10):
        between = f"{_seconds(drain.p10)} to {_seconds(drain.p90)}"
    return (f"{outcome.members}", load, share, _seconds(drain.value), between)


def _marks(plan: Answer, members: int) -> str:
    """Name the counts that matter."""
    marks = [
        (plan.signals.member_count, "now"),
        (plan.change.members, "asked for"),
        (plan.desired, "members to have"),
        (plan.plan.signals.ceiling, "all that can get a partition"),
    ]
    names = [name for number, name in marks if number == members]
    return f"({', '.join(names)})" if names else ""


def _unknown(plan: Answer) -> Iterator[str]:
    for _, text in not_known(plan):
        yield from paragraph(f"{text}.")


def _rate(span: Span, windows: str) -> str:
    if isnan(span.value):
        return UNKNOWN
    text = f"{span.value:,.0f} records/s"
    return text if isnan(span.p10) else f"{text} ({span.p10:,.0f} to {span.p90:,.0f}{windows})"


def _time(span: Span) -> str:
    text = _seconds(span.value)
    return text if isnan(span.p10) else f"{text} ({_seconds(span.p10)} to {_seconds(span.p90)})"


def _drains(span: Span) -> str:
    if isnan(span.value):
        return "when it drains is unknown"
    if isinf(span.p10) or (isinf(span.value) and isnan(span.p10)):
        return "does not drain"
    between = "" if isnan(span.p10) else f" ({_seconds(span.p10)} to {_seconds(span.p90)})"
    return (
        f"{'does not drain' if isinf(span.value) else f'drains in {_seconds(span.value)}'}{between}"
    )


def _seconds(seconds: float) -> str:
    if isnan(seconds):
        return UNKNOWN
    return "never" if isinf(seconds) else duration(seconds)


def _pause(span: Span) -> str:
    return (
        f"{short_duration(span.value)} ({short_duration(span.p10)} to {short_duration(span.p90)})"
    )


def _number(span: Span) -> str:
    if isnan(span.value):
        return UNKNOWN
    text = f"{span.value:,.0f}"
    return (
        text
        if isnan(span.p10) or span.p10 == span.p90
        else f"{text} ({span.p10:,.0f} to {span.p90:,.0f})"
    )
