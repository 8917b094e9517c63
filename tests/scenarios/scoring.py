"""Findings and verdicts of a run against what its scenario says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scenarios.labels import ALARMS, CAUSES, META, YES, Expect, Must
from scenarios.runs import WINDOW_MS, Run, envelope_later

Row = Mapping[str, Any]
# a finding may be this much before its label: conditions come true a little before all of the fault
EARLY_WINDOWS = 5
HELPS, DOES_NOT_HELP = 0.5, 0.8
IN_VAIN = frozenset(
    {
        "NO_STALLED",
        "NO_BROKER",
        "NO_HOT_PARTITION",
        "NO_COSTLY_PARTITION",
        "NO_IDLE",
        "NO_DOWNSTREAM",
    }
)  # verdicts that another number of members must not refute


def milliseconds(moment: datetime | float | None) -> int | None:
    """Since the epoch."""
    if isinstance(moment, datetime):
        return round(moment.timestamp() * 1000)
    return None if moment is None else round(moment)


@dataclass
class Opened:
    """One finding over its life: (ms, role) in order, and when it was open."""

    code: str
    group: str
    partitions: frozenset[int]
    opened_ms: int
    closed_ms: int | None = None
    roles: list[tuple[int, str]] = field(default_factory=list)
    subject: str = ""  # the member, host or broker that it is about
    topic: str = ""

    def role_at(self, at_ms: int) -> str:
        """ "" where it was not open."""
        if self.closed_ms is not None and self.closed_ms <= at_ms:
            return ""
        return next((role for since, role in reversed(self.roles) if since <= at_ms), "")

    @property
    def is_shown(self) -> bool:
        return any(role != "suppressed" for _, role in self.roles)


def opened(rows: Iterable[Row]) -> list[Opened]:
    """The append log of findings, folded by id."""
    found: dict[str, Opened] = {}
    for row in rows:
        at_ms = milliseconds(row["at"]) or 0
        if row["event"] == "opened":
            parts = frozenset(row["partitions"] or ())
            names = {name: row.get(name) or "" for name in ("subject", "topic")}
            found[row["finding_id"]] = Opened(
                row["code"], row["group"] or "", parts, at_ms, **names
            )
        each = found.get(row["finding_id"])
        if each is None:
            continue
        if row["event"] == "closed":
            each.closed_ms = at_ms
        else:
            each.roles.append((at_ms, row["role"]))
    return list(found.values())


@dataclass
class Scored:
    """Scores of one run."""

    scenario: str
    seed: int
    hits: dict[str, float] = field(default_factory=dict)  # code -> windows after its condition
    late: set[str] = field(default_factory=set)  # hits later than the specification allows
    misses: set[str] = field(default_factory=set)
    false: set[str] = field(default_factory=set)
    primary: bool | None = None  # None: no primary is asked for
    primaries: tuple[str, ...] = ()  # what was primary instead
    verdicts_right: int = 0
    verdicts: int = 0
    wrong_verdicts: dict[str, int] = field(default_factory=dict)
    counterfactual: bool | None = None  # None: not graded


def score(run: Run, findings: Iterable[Row], windows: Iterable[Row]) -> Scored:
    """Findings and windows as rows of their tables."""
    found, result = opened(findings), Scored(run.scenario.name, run.seed)
    for must in run.labels.must:
        _score_must(run, must, found, result)
    allowed = {must.code for must in run.labels.must} | run.labels.may
    shown = {each.code for each in found if each.is_shown}
    result.false |= {code for code in shown - allowed if code in ALARMS or code in run.labels.never}
    if run.labels.primary:
        _score_primary(run, found, result)
    for expect in run.labels.expects:
        _score_verdicts(run, expect, windows, result)
    return result


def _score_must(run: Run, must: Must, found: Sequence[Opened], result: Scored) -> None:
    true_ms = run.cluster.at_ms(must.minute)
    fits = [
        each
        for each in found
        if each.code == must.code
        and each.is_shown
        and (not must.group or each.group == must.group)
        and (not must.subject or each.subject == must.subject)
        and (not must.partitions or bool(each.partitions & must.partitions))
    ]
    in_time = [each for each in fits if each.opened_ms >= true_ms - EARLY_WINDOWS * WINDOW_MS]
    if len(fits) > len(in_time) or (
        must.group and any(e.code == must.code and e.group != must.group for e in found)
    ):
        result.false.add(must.code)
    if not in_time:
        result.misses.add(must.code)
        return
    delay = max(0.0, (min(each.opened_ms for each in in_time) - true_ms) / WINDOW_MS)
    result.hits[must.code] = delay
    if delay > must.within:
        result.late.add(must.code)


def _score_primary(run: Run, found: Sequence[Opened], result: Scored) -> None:
    """Right if it is right in most windows in which the group has one, and there is
    such a window.
    """
    minutes = run.labels.minutes
    begin, end = run.labels.primary_minutes or (minutes - 10, minutes)
    seen = []
    for at_ms in range(run.cluster.at_ms(begin), run.cluster.at_ms(end), WINDOW_MS):
        for each in found:
            if each.role_at(at_ms) == "primary" and each.code in CAUSES | META:
                seen.append(each.code)
            elif each.code in run.labels.primary and each.role_at(at_ms) and not each.group:
                seen.append(each.code)  # findings of the cluster are not ranked
    right = sum(code in run.labels.primary for code in seen)
    result.primary = bool(seen) and right > len(seen) / 2
    result.primaries = tuple(sorted(set(seen)))


def verdict_at(windows: Iterable[Row], group: str, at_ms: int) -> Row | None:
    """The newest row of a group whose window has ended by then; its verdict is the same on every
    topic.
    """
    ended = [
        row
        for row in windows
        if row["group"] == group and (milliseconds(row["window_start"]) or 0) + WINDOW_MS <= at_ms
    ]
    return max(ended, key=lambda row: milliseconds(row["window_start"]) or 0, default=None)


def _score_verdicts(run: Run, expect: Expect, windows: Iterable[Row], result: Scored) -> None:
    group = expect.group or run.cluster.name()
    begin, end = run.cluster.at_ms(expect.begin), run.cluster.at_ms(expect.end)
    by_window = {
        milliseconds(row["window_start"]): row["scale_verdict"]
        for row in windows
        if row["group"] == group
    }
    for start_ms, verdict in sorted(by_window.items()):
        if start_ms is not None and begin <= start_ms and start_ms + WINDOW_MS <= end:
            result.verdicts += 1
            result.verdicts_right += verdict in expect.verdicts
            if verdict not in expect.verdicts:
                result.wrong_verdicts[str(verdict)] = result.wrong_verdicts.get(str(verdict), 0) + 1


def grade(run: Run, windows: Sequence[Row]) -> bool | None:
    """True if runs with another number of members bear out the verdict at the minute of decision;
    None: not graded.
    """
    decide = run.labels.decide
    row = (
        None
        if decide is None
        else verdict_at(windows, run.cluster.name(), run.cluster.at_ms(decide))
    )
    if decide is None or row is None or row["scale_verdict"] not in YES | IN_VAIN:
        return None
    unchanged = envelope_later(run.scenario, run.seed, decide, None)
    if unchanged <= 0:
        return None

    def ratio(members: int) -> float:
        return envelope_later(run.scenario, run.seed, decide, members) / unchanged

    if row["scale_verdict"] in YES:
        got = ratio(row["members_desired"])
        return None if HELPS < got < DOES_NOT_HELP else got <= HELPS
    members = row["members"]
    got = min(
        ratio(members + 1),
        ratio(max(members + 1, min(2 * members, row["members_ceiling"] or 2 * members))),
    )
    return None if HELPS < got < DOES_NOT_HELP else got >= DOES_NOT_HELP
