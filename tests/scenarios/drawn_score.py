"""Verdicts, findings, forecasts and flaps of a drawn cluster against its truth, and of simpler
methods beside it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

from scenarios.baselines import METHODS, Call
from scenarios.compared import own_calls
from scenarios.diagnosed import diagnose
from scenarios.drawn import WARM_MINUTES, Plan
from scenarios.drawn_runs import Drawn, Sample
from scenarios.drawn_truth import LAST_MINUTES, YES, Alarms, alarms, answers, longest_gap_seconds
from scenarios.labels import ALARMS
from scenarios.runs import MINUTE, TICK_MS, WINDOW_MS
from scenarios.scoring import Opened, milliseconds, opened

Row = Mapping[str, Any]
OWN = "laggard"
FACTOR = 1.5  # within which a forecast is right
HOUR_MS = 60 * MINUTE
SHORTEST_LOSS_MINUTES = 6.0  # less is over before a forecast can be made
SHORTEST_DRAIN_MINUTES = 4.0
PEAK_SAMPLES = 4  # after a fault, among which the backlog is largest
BEFORE_MS = WINDOW_MS  # a finding may begin in the window in which its fault does


@dataclass
class DrawnScore:
    """One seed; counters have keys that the page shows."""

    seed: int
    groups: int = 0
    minutes: int = 0  # group-minutes after warm-up
    right: Counter[str] = field(default_factory=Counter)  # by method, at once
    # with the time that a fault may take to be seen
    after_delay: Counter[str] = field(default_factory=Counter)
    # of the group's faults -> right, minutes
    by_kind: dict[str, list[int]] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)  # "kinds: given instead of one right"
    # method -> right about adding members, asked
    adds: dict[str, list[int]] = field(default_factory=dict)
    # method -> in a fault, given, minutes of faults
    alerts: dict[str, list[int]] = field(default_factory=dict)
    hits: dict[str, list[float]] = field(default_factory=dict)  # code -> delays in minutes
    late: Counter[str] = field(default_factory=Counter)  # beyond what is allowed
    misses: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    where: Counter[str] = field(default_factory=Counter)  # "code missed: kinds"
    reopened: int = 0
    resized: int = 0  # changes of `members_desired` while the answer stays yes
    drains: list[float] = field(default_factory=list)  # forecast / truth at half of the backlog
    losses: list[float] = field(default_factory=list)  # at half of the time
    silent: int = 0  # forecasts that were due and not given
    # minutes in which members_desired would keep up, asked
    enough: list[int] = field(default_factory=lambda: [0, 0])

    def verdicts(self, plan: Plan, samples: Sequence[Sample], rows: Mapping[int, Row]) -> None:
        """Compare the verdict of each whole minute with what is right in it."""
        truths, last = truth_by_minute(plan, samples), int(samples[-1].minute)
        delay, kinds = allowed_minutes(plan), kinds_of(plan)
        kept = self.by_kind.setdefault(kinds, [0, 0])
        for minute in range(round(WARM_MINUTES), last):
            row = rows.get(minute)
            truth = as_recorded(truths[minute], row)
            lately = as_recorded(
                frozenset[str]().union(*(truths[minute - back] for back in range(delay + 1))), row
            )
            given = row["scale_verdict"] if row is not None else "none"
            self.minutes += 1
            kept[1] += 1
            is_right = given in truth
            kept[0] += is_right
            self.right[OWN] += is_right
            self.after_delay[OWN] += is_right or (lately != truth and given in lately | {"UNKNOWN"})
            self.right["always NOT_NEEDED"] += "NOT_NEEDED" in truth
            self.right["six lines"] += six_lines(row) in truth
            if not is_right:
                self.wrong[f"{kinds}: {given} for {'/'.join(sorted(truth))}"] += 1
            if (
                row is not None
                and given in YES
                and truth & YES
                and row["members_desired"] is not None
            ):
                sample = next(each for each in samples if each.minute >= minute)
                self.enough[0] += keeps_up(plan, sample, row["members_desired"])
                self.enough[1] += 1

    def findings(self, plan: Plan, known: Alarms, found: Sequence[Opened], start_ms: int) -> None:
        """Count what opened as it must, too late, elsewhere, not at all, and what
        should not have.
        """
        kinds = kinds_of(plan)
        shown = [each for each in found if each.is_shown and each.code in ALARMS]
        used = set[int]()
        for must in known.must:
            begin_ms, end_ms = (
                start_ms + round(must.begin * MINUTE),
                start_ms + round(must.end * MINUTE),
            )
            fits = [
                each
                for each in shown
                if each.code == must.code
                and begin_ms - BEFORE_MS
                <= each.opened_ms
                <= end_ms + round(must.after * MINUTE) + BEFORE_MS
                and must.covers(each)
            ]
            used |= {id(each) for each in fits}
            fits = [each for each in fits if each.opened_ms <= end_ms + BEFORE_MS]
            met_ms = must.met_ms(fits)
            if met_ms is not None:
                delay = (met_ms - begin_ms) / MINUTE - must.needs
                self.hits.setdefault(must.code, []).append(max(0.0, delay))
                self.late[must.code] += delay > must.limit
            else:
                self.misses[must.code] += 1
                self.where[f"{must.code} missed, {kinds}"] += 1
        for each in shown:
            minute = (each.opened_ms - start_ms) / MINUTE
            allowed = any(
                code == each.code and begin <= minute <= end for code, begin, end in known.may
            )
            if id(each) not in used and not allowed:
                self.false[each.code] += 1
                self.where[f"{each.code} wrong, {kinds}"] += 1

    def flaps(self, found: Sequence[Opened], rows: Mapping[int, Row]) -> None:
        """Count findings that open again within an hour, and changes of the number to have while
        the answer is yes.
        """
        closed = dict[tuple[str, frozenset[int], str], int]()
        for each in sorted(found, key=lambda each: each.opened_ms):
            if each.code not in ALARMS or not each.is_shown:
                continue
            key = each.code, each.partitions, each.subject
            self.reopened += key in closed and each.opened_ms - closed[key] < HOUR_MS
            closed[key] = each.closed_ms or each.opened_ms
        sizes = [
            row["members_desired"] if row["scale_verdict"] in YES else None
            for _, row in sorted(rows.items())
        ]
        self.resized += sum(
            one is not None and two is not None and one != two for one, two in pairwise(sizes)
        )

    def beside(
        self,
        method: str,
        plan: Plan,
        samples: Sequence[Sample],
        calls: Sequence[Call],
        start_ms: int,
    ) -> None:
        """Count what a method says about adding members, and whether it alarms while something is
        wrong.
        """
        truths, by_minute = (
            truth_by_minute(plan, samples),
            {(c.window_ms - start_ms) // MINUTE: c for c in calls},
        )
        adds, alerts = (
            self.adds.setdefault(method, [0, 0]),
            self.alerts.setdefault(method, [0, 0, 0]),
        )
        for minute in range(round(WARM_MINUTES), int(samples[-1].minute)):
            truth, call = truths[minute], by_minute.get(minute)
            if truth <= YES or not truth & YES:  # it is clear whether members would help
                adds[0] += (call is not None and call.adds_consumers) == (truth <= YES)
                adds[1] += 1
            is_wrong = any(fault.is_wrong and fault.holds(minute) for fault in plan.faults)
            lasts_on = any(
                fault.begin <= minute < fault.end + LAST_MINUTES for fault in plan.faults
            )
            given = call is not None and call.is_alarm
            alerts[0] += given and is_wrong
            # while a backlog drains an alarm is neither
            alerts[1] += given and (is_wrong or not lasts_on)
            alerts[2] += is_wrong

    def drain_forecasts(
        self, plan: Plan, samples: Sequence[Sample], reported: Sequence[tuple[float, Row]]
    ) -> None:
        """Compare the forecast at half of a backlog with the time when it had drained; nothing else
        may change.

        Unread records that retention deletes leave a backlog that nobody has read: it counts from
        when that is over. A forecast is that of the last partition to drain: what others have
        between two commits is no part of it.
        """
        edges = edges_of(plan)
        for fault in plan.faults:
            after = [each for each in samples if each.minute >= fault.end]
            deleted = [number for number, each in enumerate(after, 1) if any(each.behind_start)]
            after = after[deleted[-1] :] if deleted else after
            peak = max((sum(each.backlog) for each in after[:PEAK_SAMPLES]), default=0)
            half = next(
                (each for each in after[PEAK_SAMPLES:] if sum(each.backlog) <= peak / 2), None
            )
            gone = next((each for each in after if is_at_rest(plan, each)), None)
            if half is None or gone is None or gone.minute - half.minute < SHORTEST_DRAIN_MINUTES:
                continue
            if any(fault.end < edge <= gone.minute for edge in edges):
                continue
            at, row = next(each for each in reported if each[0] >= half.minute)
            if row["drain_seconds"] is None or not row["lag"]:
                self.silent += 1
            elif at < gone.minute:
                before, now = (
                    after[after.index(gone) - 1],
                    next(each for each in after if each.minute >= at),
                )
                last = [
                    part for part in range(plan.partitions) if not is_at_rest(plan, before, [part])
                ]
                rest, lag = (sum(each.backlog[part] for part in last) for each in (gone, now))
                self.drains.append(
                    (1 - rest / max(lag, rest + 1)) * row["drain_seconds"] / 60 / (gone.minute - at)
                )

    def loss_forecast(
        self, plan: Plan, samples: Sequence[Sample], reported: Sequence[tuple[float, Row]]
    ) -> None:
        """Compare the forecast halfway to the first loss with that loss; nothing else may change in
        between.

        The way begins when the partition that loses first was at rest for the last time: lag of
        others, and a fault that has not begun, say nothing of it.
        """
        lost = next((each for each in samples if any(each.behind_start)), None)
        if lost is None:
            return
        parts = [part for part, is_behind in enumerate(lost.behind_start) if is_behind]
        calm = [
            each.minute
            for each in samples
            if each.minute < lost.minute and is_at_rest(plan, each, parts)
        ]
        if not calm or lost.minute - calm[-1] < SHORTEST_LOSS_MINUTES:
            return
        middle = (lost.minute + calm[-1]) / 2
        at, row = min(reported, key=lambda each: (abs(each[0] - middle), each[0]))
        if any(at < edge <= lost.minute for edge in edges_of(plan)):
            return
        if row["loss_seconds"] is None:
            self.silent += 1
        else:
            self.losses.append(row["loss_seconds"] / 60 / (lost.minute - at))


def truth_by_minute(plan: Plan, samples: Sequence[Sample]) -> dict[int, frozenset[str]]:
    """What is right in each minute: at its beginning, in its middle or at its end."""
    found = defaultdict[int, frozenset[str]](frozenset)
    for each in samples:
        now = answers(plan, each)
        for minute in {int(each.minute), int(each.minute - 0.01)}:
            found[minute] |= now
    return found


def as_recorded(truth: frozenset[str], row: Row | None) -> frozenset[str]:
    """Leave out that nothing is needed where records are unread and no member is there any more to
    read them.
    """
    if row is None or row["members"] != 0 or not row["lag_known"]:
        return truth
    return (truth - {"NOT_NEEDED"}) | {"NO_MEMBERS", "NO_REBALANCE_FIRST"}


def allowed_minutes(plan: Plan) -> int:
    """How long a change may take to be seen."""
    return max(5, ceil(3 * plan.commit_seconds / 60))


def kinds_of(plan: Plan) -> str:
    """What happens to a group, in words."""
    return " + ".join(fault.kind for fault in plan.faults) or "nothing"


def edges_of(plan: Plan) -> list[float]:
    """Minutes in which something begins or ends that no record could tell before."""
    return sorted(edge for fault in plan.faults for edge in (fault.begin, fault.end))


def is_at_rest(plan: Plan, sample: Sample, partitions: Iterable[int] | None = None) -> bool:
    """True if none of these partitions, or of all, is a minute further behind than commits make of
    it.
    """
    longest = 60 + longest_gap_seconds(plan)
    chosen = range(plan.partitions) if partitions is None else partitions
    return all(sample.backlog[part] <= longest * sample.arrival[part] + 100 for part in chosen)


def keeps_up(plan: Plan, sample: Sample, members: int) -> bool:
    """True if the busiest of so many members would keep up, or there can be no more."""
    each = ceil(plan.partitions / members)
    return members >= plan.partitions or sum(sorted(sample.arrival)[-each:]) <= plan.capacity


def six_lines(row: Row | None) -> str:
    """A heuristic to compare with: state, lag against its floor, and whether less is read than
    arrives.
    """
    if row is None or row["lag"] is None:
        return "UNKNOWN"
    if row["lag"] <= 2 * (row["floor_records"] or 0) + 100:
        return "NOT_NEEDED"
    if not row["members"]:
        return "NO_MEMBERS"
    if (row["catch_up_ratio"] or 0) < 1:
        return "YES" if row["members"] < row["partitions_total"] else "NO_IDLE"
    return "NOT_NEEDED_DRAINING"


def score_drawn(drawn: Drawn) -> DrawnScore:
    """Diagnose a cluster and score it."""
    diagnosed, run = diagnose(drawn.recorded), drawn.recorded.run
    result = DrawnScore(drawn.cluster.seed, groups=len(drawn.cluster.plans))
    found, start_ms = opened(diagnosed.findings), run.cluster.at_ms(0)
    calls = {method: decide(drawn.recorded) for method, decide in METHODS.items()}
    calls[OWN] = own_calls(drawn.recorded, diagnosed.findings, diagnosed.windows)
    for plan in drawn.cluster.plans:
        group, samples = drawn.group(plan), drawn.samples[plan.number]
        rows = [row for row in diagnosed.windows if row["group"] == group]
        minutes = {
            ((milliseconds(row["window_start"]) or 0) - start_ms) // MINUTE: row for row in rows
        }
        own = [each for each in found if each.group == group]
        result.verdicts(plan, samples, minutes)
        result.findings(plan, alarms(plan, samples, drawn.topic(plan)), own, start_ms)
        result.flaps(own, minutes)
        for method, each in calls.items():
            result.beside(
                method, plan, samples, [call for call in each if call.group == group], start_ms
            )
        reported = [
            (((milliseconds(row["window_end"]) or 0) - TICK_MS - start_ms) / MINUTE, row)
            for row in rows
        ]
        result.drain_forecasts(plan, samples, reported)
        result.loss_forecast(plan, samples, reported)
    return result
