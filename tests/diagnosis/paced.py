"""Groups whose commits come at their own pace, drawn at random: sizes, rates, commit intervals and
their jitter.

Members read in steps of a second and commit at instants of their own; polls and windows are cut
from that as the job does it. Nothing here names a threshold of the diagnosis, and the truth is one
number: arrivals over capacity.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median_low
from typing import Any

import numpy as np

from diagnosis.fluid import NOON, Evaluation, Fluid, evaluate, tables_of
from laggard.diagnosis.history.frames import Floats

WINDOW, TICK = 60, 10  # seconds
CHANGE, WINDOWS = 30, 90  # windows: before the load changes, and in all
CHANGED = NOON + timedelta(seconds=WINDOW * CHANGE)
YES = frozenset({"YES", "YES_PARTIAL"})


@dataclass(frozen=True)
class Group:
    """A group and its load: arrivals over the capacity of all its members, before the change and
    after.
    """

    number: int
    members: int
    partitions: int
    rate: float  # records/s of the whole group, after the change
    interval: float  # seconds between two commits of a member
    jitter: float  # of the interval
    before: float
    after: float

    @property
    def name(self) -> str:
        """Name of the group."""
        return f"group-{self.number:03}"


def draw_group(seed: int, *, is_short: bool) -> Group:
    """Draw the group of a seed: overloaded by 5 to 30 %, or with as much room."""
    chance = random.Random(f"paced {seed} {is_short}")
    members = chance.randint(1, 8)
    partitions = min(60, max(2, members + 1, round(members * chance.uniform(1.3, 7.5))))
    load = chance.uniform(0.05, 0.30)
    rate = math.exp(chance.uniform(0.0, math.log(1e5)))
    interval, jitter = chance.uniform(5, 200), chance.choice((0.0, 0.05, 0.2))
    before = after = 1 - load
    if is_short:
        before, after = chance.uniform(0.5, 0.8), 1 + load
    return Group(seed, members, partitions, rate, interval, jitter, before, after)


@dataclass
class Paced(Fluid):
    """The recorded history of one such group."""

    plan: Group = Group(0, 1, 1, 1.0, 5.0, 0.0, 0.5, 0.5)

    def __post_init__(self) -> None:
        plan, chance = self.plan, np.random.default_rng(self.plan.number)
        seconds = WINDOW * WINDOWS
        owner = np.arange(plan.partitions) * plan.members // plan.partitions
        held = np.bincount(owner)
        # every member has the same load, and works at its capacity, more or less
        share = 1 / (plan.members * held[owner])
        load = np.where(np.arange(seconds) < CHANGE * WINDOW, plan.before, plan.after) / plan.after
        arrived = chance.poisson(plan.rate * share[:, None] * load)
        capacity = plan.rate / plan.after / plan.members
        work = capacity * chance.uniform(0.9, 1.1, (plan.members, seconds))
        ends, done = 1e6 + np.cumsum(arrived, axis=1), self._read(arrived, work, owner)
        done += 1e6
        commits = [self._instants(chance, seconds) for _ in range(plan.members)]
        for part in range(plan.partitions):
            self.lag_rows += self._rows(
                part, int(owner[part]), ends[part], done[part], commits[int(owner[part])]
            )
        self.fact_rows = [
            self._fact_row(NOON + timedelta(seconds=WINDOW * window), plan.members, plan.partitions)
            for window in range(WINDOWS)
        ]

    def _read(self, arrived: Any, work: Floats, owner: Any) -> Floats:
        """Records read of each partition by the end of each second: members give each what it
        needs, in proportion.
        """
        left, read = np.zeros(len(owner)), np.empty(arrived.shape)
        # whole records only: what is over is used in the next second
        room = np.zeros(work.shape[0])
        total = np.zeros(len(owner))
        for second in range(arrived.shape[1]):
            left = left + arrived[:, second]
            wanted = np.bincount(owner, left, work.shape[0])
            room = np.minimum(room, 1.0) + work[:, second]
            given = np.minimum(1.0, room / np.maximum(wanted, 1e-9))
            now = left * given[owner]
            room -= np.bincount(owner, now, work.shape[0])
            left, total = left - now, total + now
            read[:, second] = total
        return read

    def _instants(self, chance: np.random.Generator, seconds: int) -> list[int]:
        """Seconds in which a member commits."""
        found, at = list[int](), chance.uniform(0, self.plan.interval)
        while at < seconds:
            found.append(int(at))
            at += self.plan.interval * (1 + self.plan.jitter * chance.uniform(-1, 1))
        return sorted(set(found))

    def _rows(
        self, part: int, owner: int, ends: Floats, done: Floats, instants: list[int]
    ) -> list[dict[str, Any]]:
        committed, at, gaps = 1e6, 0, list[float]()  # newest offset, when it moved
        known, rows, place = 0, list[dict[str, Any]](), 0
        before_end, before_committed = 1e6, 1e6
        for window in range(WINDOWS):
            lags, envelope, count, noops = list[float](), math.inf, 0, 0
            for tick in range(WINDOW * window + TICK - 1, WINDOW * (window + 1), TICK):
                while place < len(instants) and instants[place] <= tick:
                    second, count = instants[place], count + 1
                    offset = math.floor(done[second])
                    noops += offset == committed
                    envelope = min(envelope, max(0.0, ends[second] - offset))
                    if known:
                        gaps.append(second - known)
                    known = second
                    if offset > committed:
                        committed, at = offset, second
                    place += 1
                lags.append(max(0.0, ends[tick] - committed))
            # first second with more
            oldest = int(np.searchsorted(ends[: tick + 1], committed, side="right"))
            frozen = min(tick - at, tick - oldest) if lags[-1] else 0
            begin = NOON + timedelta(seconds=WINDOW * window)
            produced, consumed = ends[tick] - before_end, committed - before_committed
            row = self._lag_row(
                begin,
                part,
                owner,
                lags[-1],
                0.0,
                ends[tick],
                produced,
                consumed,
                float(max(0, frozen)),
            )
            interval = float(median_low(gaps[-20:])) if len(gaps) > 2 else None
            lag_envelope = None if envelope == math.inf else round(envelope)
            rows.append(
                row | {
                    "lag_min": round(min(lags)), "lag_max": round(max(lags)),
                    "committed_offset": round(committed),
                    "lag_envelope": lag_envelope,
                    "noop_commits": noops,
                    "commits": count,
                    "time_lag_seconds": float(max(0, tick - oldest)) if lags[-1] else 0.0,
                    "commit_interval_seconds": interval,
                }
            )  # fmt: skip
            before_end, before_committed = ends[tick], committed
        return rows


@dataclass
class Outcome:
    """What was found of one group."""

    plan: Group
    opened: float | None = None  # minutes from the change until a shortage is a finding
    answered: float | None = None  # until the verdict is yes
    # findings of a shortage that opened though there was room, or before the change
    alarms: int = 0
    yes: int = 0  # windows with a yes though there was room, or before the change
    closed: int = 0  # times that the finding of a shortage ended though it went on
    changes: int = (
        # of members_desired from one known value to the next, two commits and ten minutes after the
        # change
        0
    )
    fewer: int = 0  # of these, those to fewer members
    hours: float = 0.0  # in which these were counted


def run(plans: list[Group]) -> list[Outcome]:
    """Evaluate all windows of these groups in one cluster."""
    # the arrays of a fluid group are not used, but for what its rows take from them
    groups = [
        Paced(
            np.zeros((each.partitions, 1)), np.zeros((each.members, 1)), group=each.name, plan=each
        )
        for each in plans
    ]
    result = evaluate(tables_of(groups))
    return [outcome(each, result) for each in plans]


def outcome(plan: Group, result: Evaluation) -> Outcome:
    """What was found of one of the groups."""
    found = Outcome(plan)
    _count_findings(found, [row for row in result.findings if row["group"] == plan.name])
    rows = [row for row in result.windows if row["group"] == plan.name]
    for row in rows:
        minutes = (row["window_end"] - CHANGED).total_seconds() / 60
        if row["scale_verdict"] in YES:
            is_right = plan.after > 1 and minutes > 0
            found.yes += not is_right
            if is_right and found.answered is None:
                found.answered = minutes
    settled = CHANGED + timedelta(minutes=10 + 2 * plan.interval / 60) if plan.after > 1 else NOON
    sizes = [row["members_desired"] for row in rows if row["window_end"] > settled]
    found.hours = len(sizes) * WINDOW / 3600
    known = [each for each in sizes if each is not None]
    found.changes = sum(one != two for one, two in pairwise(known))
    found.fewer = sum(one > two for one, two in pairwise(known))
    return found


def _count_findings(found: Outcome, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["code"] != "CAPACITY_SHORTAGE" or row["role"] == "suppressed":
            continue
        minutes = (row["at"] - CHANGED).total_seconds() / 60
        is_right = found.plan.after > 1 and minutes > 0
        if row["event"] == "opened":
            found.alarms += not is_right
            if is_right and found.opened is None:
                found.opened = minutes
        found.closed += row["event"] == "closed" and is_right


def report(found: list[Outcome]) -> str:
    """The figures of a set of groups in a few lines."""
    short, calm = (
        [each for each in found if each.plan.after > 1],
        [each for each in found if each.plan.after <= 1],
    )
    lines = []
    for name in ("opened", "answered"):
        known = sorted(value for each in short if (value := getattr(each, name)) is not None)
        at = (
            [known[min(len(known) - 1, int(share * len(known)))] for share in (0.5, 0.9)]
            if known
            else []
        )
        lines.append(f"{name}: {len(known)} of {len(short)}, minutes (median, 9 of 10): {at}")
    for name, each in (("short", short), ("calm", calm)):
        hours = sum(one.hours for one in each) or 1.0
        changes = sum(one.changes for one in each)
        fewer = sum(one.fewer for one in each)
        lines.append(
            f"{name}: {changes} changes of members_desired, {fewer} to fewer, in {hours:.0f} "
            "group-hours"
        )
    lines.append(
        f"false: {sum(each.alarms for each in found)} findings, {sum(each.yes for each in found)} "
        "windows of yes"
    )
    lines.append(f"ended though it went on: {sum(each.closed for each in short)}")
    return "\n".join(lines)
