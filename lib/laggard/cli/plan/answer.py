"""The answer to a question: the present group, the changed group, the way there, the unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import verdict_sentence
from laggard.answers.text.words import count, listed, short
from laggard.cli.plan.change import Change, Cost, apply, cost_of, is_known, pauses_of
from laggard.cli.plan.outcome import Outcome, Plan, Rates, Share, Span, rates_of
from laggard.cli.plan.recorded import Recorded
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.verdict.sizing import Sizing, size
from laggard.rebalance.assignors import ASSIGNORS

_ROWS = 24  # of a sweep
_SLOW = 0.9  # of the median member's capacity


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan of one group.

    `verdict` is the newest row of group_windows, as `laggard explain` reads it.
    """

    explained: Explained
    verdict: Row
    change: Change
    signals: Signals  # of now
    rates: Rates
    now: Outcome | None  # None: no members, or not known how many
    plan: Plan
    then: Outcome
    sizing: Sizing  # as changed
    cost: Cost
    sweep: tuple[Outcome, ...] = ()

    @property
    def desired(self) -> int | None:
        """Desired number of members, by explain for the group as it is, else by the sizing.

        The sizing counts if load, partitions or assignor change.
        """
        is_same_load = self.change.keeps_owners and self.change.rate == 1
        if is_same_load:
            found: int | None = self.verdict["members_desired"]
            return found
        return None if self.is_undecided else self.sizing.members_desired

    @property
    def is_undecided(self) -> bool:
        """True if no number of members can be the answer.

        Then a partition is hot, or the rules know too little.
        """
        return bool(self.plan.hot()) or str(self.verdict["scale_verdict"]).startswith(
            "UNKNOWN_INPUT"
        )


def answer(
    explained: Explained, verdict: Row, recorded: Recorded, change: Change, *, is_sweep: bool
) -> Answer:
    """Work out the plan; without a number of members it is for the present ones."""
    signals = recorded.signals
    rates = rates_of(signals, recorded.busy_rates)
    now = signals.member_count
    members = change.members if change.members is not None else now or 1
    changed = apply(signals, change)
    rebalances = explained.rebalances or ()
    pause = pauses_of(rebalances)[0].high
    plan = Plan(changed, rates, now=now, keeps_owners=change.keeps_owners, pause=pause)
    other = None
    if change.partitions is not None:
        by_key = apply(signals, change, is_one_key=True)
        other = Plan(by_key, rates, now=now, keeps_owners=False, pause=pause)

    def outcome(number: int) -> Outcome:
        found = plan.outcome(number)
        return found if other is None else _wider(found, other.outcome(number))

    sizing = size(changed)
    counts = (
        _counts(changed.ceiling, filter(None, (now, members, sizing.members_desired)))
        if is_sweep
        else []
    )
    return Answer(
        explained,
        verdict,
        change,
        signals,
        rates,
        Plan(signals, rates, now=now, keeps_owners=True).outcome(now) if now else None,
        plan,
        outcome(members),
        sizing,
        cost_of(signals, plan, change, members, rebalances),
        tuple(map(outcome, counts)),
    )


def _wider(found: Outcome, other: Outcome) -> Outcome:
    """Return `found` with the later drain end of both outcomes.

    The assignment of keys to partitions is not recorded.
    """
    if not is_known(found.drain):
        return found
    high = max(
        each for each in (found.drain.high, other.drain.high, other.drain.value) if not isnan(each)
    )
    return replace(found, drain=Span(found.drain.value, found.drain.low, high))


def _counts(ceiling: int, named: Iterable[int]) -> list[int]:
    """Return member counts for a sweep.

    They are all counts up to the ceiling and one that idles, or some of them evenly spread.
    """
    step = max(1, -(-ceiling // _ROWS))
    return sorted({*range(step, ceiling + 1, step), 1, ceiling, ceiling + 1, *named} - {0})


def not_known(found: Answer) -> Iterator[tuple[str, str]]:
    """Yield codes and texts of the gaps, and of the assumptions of the forecast."""
    signals = found.signals
    yield from _of_owners(found)
    yield from _of_rates(found)
    yield from _of_way(found)
    if not found.plan.replay.is_own:
        name = signals.frame.fact.get("assignor") or "unknown"
        text = (
            f"the assignor ({name}) is none of {listed(ASSIGNORS, 9)}: partitions are dealt out "
            "one by one instead"
        )
        yield "assignor_unknown", text
    if found.change.partitions is not None:
        text = (
            "how keys are distributed over the new partitions is not recorded: the drain time is "
            "for an even share, its upper bound also for one key that makes a partition as busy as "
            "the busiest is now; keys that move lose their order"
        )
        yield "keys_unknown", text
    elasticity = None if signals.scaled is None else signals.scaled.elasticity
    if elasticity is not None and elasticity < signals.parameters.elasticity_min:
        text = f"the last members that were added brought {elasticity:.1f} of what they should have"
        yield (
            "capacity_shared",
            f"{text}: what members write to may be the limit, and more of them would bring less",
        )


def _of_owners(found: Answer) -> Iterator[tuple[str, str]]:
    if found.signals.member_count is None:
        yield (
            "members_unknown",
            "who reads is not recorded: the load of each member of now is unknown",
        )
    if found.now is not None and found.now.unowned:
        places = listed(f"{topic}-{number}" for topic, number in sorted(found.now.unowned))
        text = f"no owner of {count(len(found.now.unowned), 'partition')} is recorded ({places})"
        yield ("owners_unknown", f"{text}: nobody reads them, or it is not known who does")
    own = {slot: span.value for slot, span in found.rates.own.items()}
    slow = [slot for slot in sorted(own) if own[slot] < _SLOW * found.rates.capacity.value]
    if slow:
        named = listed(f"{short(slot)} {own[slot]:,.0f}/s" for slot in slow)
        text = (
            f"members are not equal ({named}): those that keep their partitions are counted with "
            "their own rate"
        )
        yield "members_differ", f"{text}, all others with the median"


def _of_rates(found: Answer) -> Iterator[tuple[str, str]]:
    if not found.plan.loads:
        yield (
            "load_unknown",
            "the lag or the arrival rate of a whole topic is unknown, and with it all loads",
        )
    if isnan(found.rates.capacity.value):
        windows = count(found.signals.parameters.busy_min_windows, "window")
        shown = found.signals.best_capacity
        seen = (
            ""
            if isnan(shown)
            else f"; the best has shown {shown:,.0f} records/s, which is less than it can do"
        )
        text = (
            f"no member was busy for {windows} in the last 24 h, so the capacity of one is unknown"
        )
        yield "capacity_unknown", f"{text}, and with it every drain time{seen}"
    if found.plan.estimated:
        text = (
            f"the load of {count(found.plan.estimated, 'partition')} is unknown and taken as the "
            "median of its topic"
        )
        yield "partitions_estimated", text
    if isnan(found.rates.arrival.low):
        text = (
            "nothing arrives now, or too few windows are recorded to say how much arrivals change"
        )
        yield "arrival_spread_unknown", text


def _of_way(found: Answer) -> Iterator[tuple[str, str]]:
    if found.cost.rebalances == 0:
        return
    if not found.cost.recorded:
        yield (
            "pauses_unknown",
            "no rebalance of the group with a known pause is recorded: the cost of one is unknown",
        )
    elif isnan(found.cost.paused):
        yield (
            "mode_unknown",
            "how the group rebalances is not recorded: which partitions are paused is unknown",
        )
    is_uneven = len({len(each.partitions) for each in found.then.shares}) > 1
    if found.plan.is_sticky and is_uneven:
        text = (
            "which partitions come together on a member with more than the others is decided by "
            "member ids: if two busy ones do, it takes longer than its interval says"
        )
        yield "pairing_unknown", text
    if found.change.assignor is not None:
        text = (
            "another assignor is a restart of every member with the new setting; each restart "
            "may be a rebalance"
        )
        yield "restart_needed", text


def to_data(found: Answer) -> dict[str, Any]:
    """Return the facts of the page with exact numbers, as `laggard plan --json` gives them.

    All keys are always there; null is not known, and no number of seconds is infinite but as the
    text Infinity.
    """
    row, rates, cost = found.verdict, found.rates, found.cost
    return {
        "cluster": found.explained.batch.cluster,
        "group": found.explained.group["group"],
        "window_end": row["window_end"],
        "verdict": row["scale_verdict"],
        "verdict_text": verdict_sentence(row),
        "change": {
            "members": found.change.members,
            "assignor": found.change.assignor,
            "topic": found.change.topic,
            "partitions": found.change.partitions,
            "rate": found.change.rate,
        },
        "members_desired": found.desired,
        "members_ceiling": found.plan.signals.ceiling,
        "capacity_rate": _span(rates.capacity),
        "arrival_ratio": _span(rates.arrival),
        "hot_partitions": [
            {"topic": topic, "partition": number} for topic, number in found.plan.hot()
        ],
        "least_drain_seconds": _number(found.plan.least_drain()[1]),
        "now": None if found.now is None else _outcome(found.now),
        "then": _outcome(found.then),
        "cost": {
            "rebalances": cost.rebalances,
            "rebalances_most": cost.rebalances_most,
            "moved_partitions": _span(cost.moved),
            "paused_partitions": _number(cost.paused),
            "pause_max_seconds": _span(cost.pause),
            "rebalances_recorded": cost.recorded,
            "records_delayed": _span(cost.delayed),
        },
        "sweep": [_outcome(each) for each in found.sweep],
        "not_known": [{"code": code, "text": text} for code, text in not_known(found)],
    }


def _outcome(found: Outcome) -> dict[str, Any]:
    return {
        "members": found.members,
        "idle_members": found.idle,
        "largest_rate": _number(found.largest),
        "drain_seconds": _span(found.drain),
        "unread_after_target": _number(found.left),
        "loads": [_share(each) for each in found.shares],
    }


def _share(share: Share) -> dict[str, Any]:
    return {
        "member": share.name,
        "partitions": [{"topic": topic, "partition": number} for topic, number in share.partitions],
        "arrival_rate": share.arrival,
        "lag": share.lag,
        "drain_seconds": _span(share.drain),
    }


def _span(span: Span) -> dict[str, float | None]:
    return {"value": _number(span.value), "p10": _number(span.low), "p90": _number(span.high)}


def _number(value: float) -> float | None:
    return None if isnan(value) else value
