"""The answer to a question: the present group, the changed group, the way there, the unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from math import isnan
from typing import Annotated

from laggard.answers.explain.rows import Explained
from laggard.answers.plan.change import Change, Cost, apply, cost_of, is_known, pauses_of
from laggard.answers.plan.outcome import Outcome, Place, Plan, Rates, Span, rates_of
from laggard.answers.plan.recorded import Recorded
from laggard.answers.reading import Row
from laggard.answers.schema.types import Unsure
from laggard.answers.text.diagnosis_words import verdict_sentence
from laggard.answers.text.words import count, listed, short
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
            desired: int | None = self.verdict["members_desired"]
            return desired
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
    pause = pauses_of(rebalances)[0].p90
    plan = Plan(changed, rates, now=now, keeps_owners=change.keeps_owners, pause=pause)
    other = None
    if change.partitions is not None:
        by_key = apply(signals, change, is_one_key=True)
        other = Plan(by_key, rates, now=now, keeps_owners=False, pause=pause)

    def outcome(number: int) -> Outcome:
        even = plan.outcome(number)
        return even if other is None else _wider(even, other.outcome(number))

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


def _wider(even: Outcome, by_key: Outcome) -> Outcome:
    """Return `even` with the later drain end of both outcomes.

    The assignment of keys to partitions is not recorded.
    """
    drain, other = even.drain_seconds, by_key.drain_seconds
    if not is_known(drain):
        return even
    latest = max(end for end in (drain.p90, other.p90, other.value) if not isnan(end))
    return replace(even, drain_seconds=drain._replace(p90=latest))


def _counts(ceiling: int, named: Iterable[int]) -> list[int]:
    """Return member counts for a sweep.

    They are all counts up to the ceiling and one that idles, or some of them evenly spread.
    """
    step = max(1, -(-ceiling // _ROWS))
    return sorted({*range(step, ceiling + 1, step), 1, ceiling, ceiling + 1, *named} - {0})


def not_known(plan: Answer) -> Iterator[tuple[str, str]]:
    """Yield codes and texts of the gaps, and of the assumptions of the forecast."""
    signals = plan.signals
    yield from _of_owners(plan)
    yield from _of_rates(plan)
    yield from _of_way(plan)
    if not plan.plan.replay.is_own:
        name = signals.frame.fact.get("assignor") or "unknown"
        text = (
            f"the assignor ({name}) is none of {listed(ASSIGNORS, 9)}: partitions are dealt out "
            "one by one instead"
        )
        yield "assignor_unknown", text
    if plan.change.partitions is not None:
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


def _of_owners(plan: Answer) -> Iterator[tuple[str, str]]:
    if plan.signals.member_count is None:
        yield (
            "members_unknown",
            "who reads is not recorded: the load of each member of now is unknown",
        )
    if plan.now is not None and plan.now.unowned:
        names = listed(f"{topic}-{number}" for topic, number in sorted(plan.now.unowned))
        text = f"no owner of {count(len(plan.now.unowned), 'partition')} is recorded ({names})"
        yield ("owners_unknown", f"{text}: nobody reads them, or it is not known who does")
    own = {slot: span.value for slot, span in plan.rates.own.items()}
    slow = [slot for slot in sorted(own) if own[slot] < _SLOW * plan.rates.capacity.value]
    if slow:
        named = listed(f"{short(slot)} {own[slot]:,.0f}/s" for slot in slow)
        text = (
            f"members are not equal ({named}): those that keep their partitions are counted with "
            "their own rate"
        )
        yield "members_differ", f"{text}, all others with the median"


def _of_rates(plan: Answer) -> Iterator[tuple[str, str]]:
    if not plan.plan.loads:
        yield (
            "load_unknown",
            "the lag or the arrival rate of a whole topic is unknown, and with it all loads",
        )
    if isnan(plan.rates.capacity.value):
        windows = count(plan.signals.parameters.busy_min_windows, "window")
        shown = plan.signals.best_capacity
        seen = (
            ""
            if isnan(shown)
            else f"; the best has shown {shown:,.0f} records/s, which is less than it can do"
        )
        text = (
            f"no member was busy for {windows} in the last 24 h, so the capacity of one is unknown"
        )
        yield "capacity_unknown", f"{text}, and with it every drain time{seen}"
    if plan.plan.estimated:
        text = (
            f"the load of {count(plan.plan.estimated, 'partition')} is unknown and taken as the "
            "median of its topic"
        )
        yield "partitions_estimated", text
    if isnan(plan.rates.arrival.p10):
        text = (
            "nothing arrives now, or too few windows are recorded to say how much arrivals change"
        )
        yield "arrival_spread_unknown", text


def _of_way(plan: Answer) -> Iterator[tuple[str, str]]:
    if plan.cost.rebalances == 0:
        return
    if not plan.cost.rebalances_recorded:
        yield (
            "pauses_unknown",
            "no rebalance of the group with a known pause is recorded: the cost of one is unknown",
        )
    elif isnan(plan.cost.paused_partitions):
        yield (
            "mode_unknown",
            "how the group rebalances is not recorded: which partitions are paused is unknown",
        )
    is_uneven = len({len(share.partitions) for share in plan.then.loads}) > 1
    if plan.plan.is_sticky and is_uneven:
        text = (
            "which partitions come together on a member with more than the others is decided by "
            "member ids: if two busy ones do, it takes longer than its interval says"
        )
        yield "pairing_unknown", text
    if plan.change.assignor is not None:
        text = (
            "another assignor is a restart of every member with the new setting; each restart "
            "may be a rebalance"
        )
        yield "restart_needed", text


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is not known, or is assumed."""

    code: Annotated[str, "stable name of the gap"]
    text: Annotated[str, "the same as a sentence, with the reason"]


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """The document of `laggard plan`: what its page says, with exact numbers."""

    cluster: Annotated[str, "name of the Kafka cluster"]
    group: Annotated[str, "consumer group, as it is"]
    window_end: Annotated[datetime, "end of the evaluated window that the plan is of"]
    verdict: Annotated[str | None, "would adding consumers help, as the group is"]
    verdict_text: Annotated[str, "the verdict as sentences, with its numbers"]
    change: Annotated[Change, "what is asked about"]
    members_desired: Annotated[
        int | None, "members to have after the change; null: unknown, or none is enough"
    ]
    members_ceiling: Annotated[int, "members that can get a partition"]
    capacity_rate: Annotated[Span, "records/s of one member"]
    arrival_ratio: Annotated[Span, "times the arrival rate of now, in the recorded windows"]
    hot_partitions: Annotated[
        list[Place], "those that get more than one member can read, the busiest first"
    ]
    least_drain_seconds: Annotated[
        Unsure, "drain time of the slowest partition with a member to itself; null: unknown"
    ]
    now: Annotated[
        Outcome | None, "the group as it is; null: no members, or their number is unknown"
    ]
    then: Annotated[Outcome, "the group after the change"]
    cost: Annotated[Cost, "the way to the change"]
    sweep: Annotated[tuple[Outcome, ...], "one for each number of members; empty without --sweep"]
    not_known: Annotated[list[Gap], "every gap in the answer"]


def document_of(plan: Answer) -> PlanDocument:
    """Return the document of a plan."""
    return PlanDocument(
        cluster=plan.explained.batch.cluster,
        group=plan.explained.group["group"],
        window_end=plan.verdict["window_end"],
        verdict=plan.verdict["scale_verdict"],
        verdict_text=verdict_sentence(plan.verdict),
        change=plan.change,
        members_desired=plan.desired,
        members_ceiling=plan.plan.signals.ceiling,
        capacity_rate=plan.rates.capacity,
        arrival_ratio=plan.rates.arrival,
        hot_partitions=plan.plan.hot(),
        least_drain_seconds=plan.plan.least_drain()[1],
        now=plan.now,
        then=plan.then,
        cost=plan.cost,
        sweep=plan.sweep,
        not_known=[Gap(*gap) for gap in not_known(plan)],
    )
