"""The page of `laggard plan`: today, the question, loads, drain, the way there, sweep, unknowns."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf, isnan

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
from laggard.cli.plan.answer import Answer, not_known
from laggard.cli.plan.outcome import Outcome, Share, Span

_MEMBERS = 10  # rows of the table
_BAR = 30
_LOADS = ("MEMBER", "PARTITIONS", "RECORDS/S", "OF CAPACITY", "UNREAD", "DRAINS IN")
_SWEEP = ("MEMBERS", "HIGHEST LOAD", "OF CAPACITY", "DRAINS IN", "BETWEEN")


def page_lines(found: Answer) -> Iterator[str]:
    """Yield all lines of the page."""
    yield f"{short(found.explained.group['group'], 1000)}: {_question(found)}"
    for title, lines in (
        ("Now", _now(found)),
        ("Load", _load(found)),
        ("Drain", _drain(found)),
        ("Getting there", _way(found)),
        ("Sweep", _sweep(found)),
        ("Not known, or assumed", _unknown(found)),
    ):
        text = list(lines)
        if text:
            yield from ("", title, *text)


def _question(found: Answer) -> str:
    change = found.change
    parts = [count(found.then.members, "member")]
    if change.assignor is not None:
        parts.append(f"assignor {change.assignor}")
    if change.partitions is not None:
        parts.append(f"{count(change.partitions, 'partition')} in {short(change.topic or '')}")
    if change.rate != 1:
        parts.append(f"{change.rate:g} times the records")
    return f"what if: {', '.join(parts)}" if change.is_any else f"as it is, with {parts[0]}"


def _now(found: Answer) -> Iterator[str]:
    row = found.verdict
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
    capacity = found.rates.capacity
    windows = f", p10 to p90 of {count(found.rates.busy_windows, 'busy window')}"
    numbers = [
        f"members {known(found.signals.member_count)}",
        f"members to have {known(row['members_desired'])}",
        f"capacity of one {_rate(capacity, windows)}",
    ]
    if found.now is not None:
        numbers.append(f"{_drains(found.now.drain)} with each member at its capacity")
    yield from paragraph("; ".join(numbers), "  ", "  ")


def _load(found: Answer) -> Iterator[str]:
    then, capacity = found.then, found.rates.capacity.value
    if found.change.rate != 1 or not found.change.keeps_owners:
        yield from paragraph(_needed(found), "  ", "  ")
    if not then.shares:
        return
    rows = [_cells(each, capacity) for each in then.shares[:_MEMBERS]]
    yield from (
        f"  {line}" for line in aligned([_LOADS, *rows], [name != "MEMBER" for name in _LOADS])
    )
    if len(then.shares) > _MEMBERS:
        yield f"  and {count(len(then.shares) - _MEMBERS, 'member')} with as much or less"
    if then.idle is None:
        yield "  and members of which it is not known what they have"
    elif then.idle:
        yield f"  and {count(then.idle, 'member')} without a partition: a partition is never split"


def _needed(found: Answer) -> str:
    needed = found.desired
    text = f"Members that this load needs: {known(needed)}"
    if found.sizing.target_unreachable and needed is not None:
        text += ", as no more can get a partition, and not even these drain it within the target"
    return f"{text}; members that can get a partition: {found.plan.signals.ceiling}"


def _cells(share: Share, capacity: float) -> tuple[str, ...]:
    return (
        short(share.name),
        f"{len(share.partitions)}",
        f"{share.arrival:,.0f}",
        UNKNOWN if isnan(capacity) else percent(share.arrival / capacity),
        f"{share.lag:,.0f}",
        _seconds(share.drain.value),
    )


def _drain(found: Answer) -> Iterator[str]:
    then = found.then
    if isnan(then.drain.value):
        yield "  Unknown."
        return
    text = (
        f"Drains in {_time(then.drain)}, if each member reads at its capacity; the rebalance "
        "adds to that."
    )
    if isinf(then.drain.value):
        short_ones = [each for each in then.shares if isinf(each.drain.value)]
        text = f"Does not drain: {count(len(short_ones), 'member')} would get more than one does."
        if not then.members:
            text = "Does not drain: no member reads it."
        elif isfinite(then.drain.low):
            text += f" At the best recorded rates it drains in {_seconds(then.drain.low)}."
    yield from paragraph(text, "  ", "  ")
    yield from _limits(found)


def _limits(found: Answer) -> Iterator[str]:
    """Name the partitions that set a limit which no number of members lifts."""
    hot = found.plan.hot()
    if hot:
        names = listed(f"{topic}-{number}" for topic, number in hot)
        most = found.plan.loads[hot[0]].arrival
        one = "partition gets" if len(hot) == 1 else "partitions get up to"
        text = (
            f"{len(hot)} {one} {most:,.0f} records/s, more than any member was seen to read: "
            f"{names}."
        )
        yield from paragraph(
            f"{text} No number of members and no assignor drains that.", "  ", "  "
        )
        return
    place, seconds = found.plan.least_drain()
    if place is not None and seconds >= 1:
        text = (
            f"No number of members makes it less than {_seconds(seconds)}: partition "
            f"{short(place[0])}-{place[1]}"
        )
        yield from paragraph(f"{text} takes that with a member of its own.", "  ", "  ")


def _way(found: Answer) -> Iterator[str]:
    cost = found.cost
    if cost.rebalances == 0:
        return
    if cost.rebalances is None or cost.rebalances_most is None:
        yield "  Unknown."
        return
    times = count(cost.rebalances, "rebalance")
    if cost.rebalances_most > cost.rebalances:
        times += f", up to {cost.rebalances_most} if members change one by one"
    lines = [f"{times}; partitions that move: {_number(cost.moved)}"]
    if cost.recorded and not isnan(cost.paused):
        lines.append(
            f"each pauses {count(round(cost.paused), 'partition')} for up to {_pause(cost.pause)}, "
            f"as {count(cost.recorded, 'recorded rebalance')} did, and delays "
            f"{_number(cost.delayed)} records"
        )
    else:
        lines.append("how long each pauses partitions is unknown")
    yield from paragraph("; ".join(lines) + ".", "  ", "  ")


def _sweep(found: Answer) -> Iterator[str]:
    if not found.sweep:
        return
    capacity, seconds = found.rates.capacity.value, found.signals.policy.drain_target_seconds
    most = max((each.left for each in found.sweep if not isnan(each.left)), default=0.0)
    rows = [_step(each, capacity) for each in found.sweep]
    lines = aligned([_SWEEP, *rows], [True] * len(_SWEEP))
    width = max(map(len, lines))
    yield f"  {lines[0].ljust(width)}  UNREAD AFTER {duration(seconds)}"
    for line, each in zip(lines[1:], found.sweep, strict=True):
        bar = "" if isnan(each.left) or not most else "#" * round(_BAR * each.left / most)
        left = UNKNOWN if isnan(each.left) else f"{each.left:,.0f}"
        yield (
            f"  {line.ljust(width)}  "
            f"{' '.join(filter(None, (bar, left, _marks(found, each.members))))}"
        )


def _step(each: Outcome, capacity: float) -> tuple[str, ...]:
    share = UNKNOWN if isnan(capacity + each.largest) else percent(each.largest / capacity)
    between = (
        UNKNOWN
        if isnan(each.drain.low)
        else f"{_seconds(each.drain.low)} to {_seconds(each.drain.high)}"
    )
    load = UNKNOWN if isnan(each.largest) else f"{each.largest:,.0f}/s"
    return (f"{each.members}", load, share, _seconds(each.drain.value), between)


def _marks(found: Answer, members: int) -> str:
    """Name the counts that matter."""
    marks = [
        (found.signals.member_count, "now"),
        (found.change.members, "asked for"),
        (found.desired, "members to have"),
        (found.plan.signals.ceiling, "all that can get a partition"),
    ]
    names = [name for number, name in marks if number == members]
    return f"({', '.join(names)})" if names else ""


def _unknown(found: Answer) -> Iterator[str]:
    for _, text in not_known(found):
        yield from paragraph(f"{text}.")


def _rate(span: Span, windows: str) -> str:
    if isnan(span.value):
        return UNKNOWN
    text = f"{span.value:,.0f} records/s"
    return text if isnan(span.low) else f"{text} ({span.low:,.0f} to {span.high:,.0f}{windows})"


def _time(span: Span) -> str:
    text = _seconds(span.value)
    return text if isnan(span.low) else f"{text} ({_seconds(span.low)} to {_seconds(span.high)})"


def _drains(span: Span) -> str:
    if isnan(span.value):
        return "when it drains is unknown"
    if isinf(span.low) or (isinf(span.value) and isnan(span.low)):
        return "does not drain"
    between = "" if isnan(span.low) else f" ({_seconds(span.low)} to {_seconds(span.high)})"
    return (
        f"{'does not drain' if isinf(span.value) else f'drains in {_seconds(span.value)}'}{between}"
    )


def _seconds(seconds: float) -> str:
    if isnan(seconds):
        return UNKNOWN
    return "never" if isinf(seconds) else duration(seconds)


def _pause(span: Span) -> str:
    return (
        f"{short_duration(span.value)} ({short_duration(span.low)} to {short_duration(span.high)})"
    )


def _number(span: Span) -> str:
    if isnan(span.value):
        return UNKNOWN
    text = f"{span.value:,.0f}"
    return (
        text
        if isnan(span.low) or span.low == span.high
        else f"{text} ({span.low:,.0f} to {span.high:,.0f})"
    )
