"""Rows that the rules wrote of groups, as the verbs read and show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from pyarrow.dataset import Expression, field

from laggard.answers.reading import Row, shown_rows
from laggard.answers.text.words import UNKNOWN
from laggard.diagnosis.findings.tracks import LACKING
from laggard.diagnosis.history.frames import LEFT
from laggard.tables.evaluated import newest_evaluated, read_between
from laggard.tables.freshness import MAX_WINDOWS_BEHIND
from laggard.tables.schema.schemas import FINDINGS, GROUP_WINDOWS

REPEATED_WITHIN = timedelta(hours=2)  # an open finding has a row at least once an hour
_OF_FINDING = tuple(name for name in FINDINGS.names if name not in {"date", "batch_id", "status"})
_OF_WINDOW = tuple(
    name for name in GROUP_WINDOWS.names if name not in {"date", "cluster", "batch_id"}
)
_KEPT = ("evidence", "evidence_text", "guards")
_ROLES = ("primary", "symptom", "contributing", "note", "suppressed")
SEVERITIES = ("page", "warn", "info")
INFO = SEVERITIES[-1]
BEHIND = "behind"
LEVELS = ("page", "warn", BEHIND, UNKNOWN, INFO, "ok")  # of a group's health, the worst first
_OF_HEALTH = (
    "group", "topic", "max_time_lag_seconds", "lag_known", "partitions_material", "shape", "trend",
    "scale_verdict",
    "flags",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Windows and findings of a group at a moment."""

    evaluated_to: datetime | None  # end of the newest window that was evaluated of any group
    windows_behind: int | None  # windows that have closed since
    windows: list[Row]  # of group_windows, one per topic, the furthest behind first
    findings: list[Row]  # open and shown, the primary first
    suppressed: int  # open, explained by one of these

    @property
    def is_old(self) -> bool:
        """True if the rules are too far behind to speak of the moment."""
        return self.windows_behind is None or self.windows_behind > MAX_WINDOWS_BEHIND

    @property
    def is_current(self) -> bool:
        """True if they say something of the moment."""
        return not self.is_old and bool(self.windows or self.findings)

    @property
    def is_known(self) -> bool:
        """True if --fail-on can go by it: the health that `status` shows of the group is known."""
        return self.is_current and Health(self.windows, counted(self.findings)).level != UNKNOWN

    @property
    def unseen(self) -> dict[str, str]:
        """Open findings that the newest window does not show: id to GONE or LACKING.

        Of a group whose evaluation failed there is no window: whether what it had goes on is
        unknown.
        """
        if self.windows:
            return self.windows[0]["unseen_findings"] or {}
        own = [row for row in self.findings if row["group"] is not None]
        others = [row for row in own if row["code"] != "RULE_FAILED"]
        return {row["finding_id"]: LACKING for row in others} if len(others) < len(own) else {}

    @property
    def has_lag(self) -> bool:
        """True if any lag is significant."""
        return any(map(is_behind, self.windows))


@dataclass(frozen=True, slots=True)
class Health:
    """Windows and findings of a group for one line."""

    windows: list[Row]  # of group_windows, the topic that is furthest behind first
    findings: list[Row]  # open, neither suppressed nor notes, the one to act on first

    @property
    def level(self) -> str:
        """Worst severity of an open finding, else `behind`, else ok or unknown.

        `behind` needs significant lag.
        """
        severities = {row["severity"] for row in self.findings}
        loudest = next((severity for severity in ("page", "warn") if severity in severities), None)
        if loudest is not None:
            return loudest
        if any(map(is_behind, self.windows)):
            return BEHIND
        is_known = bool(self.windows) and not any(
            row["scale_verdict"] == "UNKNOWN_INPUT" for row in self.windows
        )
        if not is_known:
            return UNKNOWN
        return INFO if INFO in severities else "ok"

    @property
    def code(self) -> str | None:
        """The finding to act on."""
        return self.findings[0]["code"] if self.findings else None

    def of_worst(self, name: str) -> Any:
        """Return a column's value for the topic that is furthest behind; None without windows."""
        return self.windows[0][name] if self.windows else None


def read_diagnosis(root: str, group: str, at: datetime, window_seconds: int) -> Diagnosis:
    """Return the newest evaluated window that ended by a moment, and what was open then."""
    window = timedelta(seconds=window_seconds)
    start = _newest_start(root, at, window)
    if start is None:
        return Diagnosis(None, None, [], [], 0)
    end = start + window
    behind = int((at - end) / window)
    windows = rows_between(
        root, GROUP_WINDOWS.name, _OF_WINDOW, start, start, field("group") == group
    )
    mine = (field("group") == group) | field("group").is_null()
    open_rows = [
        row for row in _open_at(root, end, mine) if row["group"] == group or names_group(row, group)
    ]
    shown = sorted((row for row in open_rows if row["role"] != "suppressed"), key=rank)
    return Diagnosis(end, behind, sorted(windows, key=_badness), shown, len(open_rows) - len(shown))


def read_health(root: str, at: datetime, window_seconds: int) -> dict[str, Health]:
    """Return each group of the newest evaluated window that ended by a moment.

    The result is empty if that window is too long ago.
    """
    window = timedelta(seconds=window_seconds)
    start = _newest_start(root, at, window)
    if start is None or int((at - start - window) / window) > MAX_WINDOWS_BEHIND:
        return {}
    end = start + window
    windows = sorted(rows_between(root, GROUP_WINDOWS.name, _OF_HEALTH, start, start), key=_badness)
    of_group: dict[str, list[Row]] = {}
    for row in sorted(counted(_open_at(root, end)), key=rank):
        for group in [row["group"]] if row["group"] is not None else _groups_named(row):
            of_group.setdefault(group, []).append(row)
    of_window: dict[str, list[Row]] = {}
    for row in windows:
        of_window.setdefault(row["group"], []).append(row)
    return {
        group: Health(of_window.get(group, []), of_group.get(group, []))
        for group in of_window.keys() | of_group.keys()
    }


def counted(findings: Iterable[Row]) -> list[Row]:
    """Open findings that count in a group's health: neither suppressed nor notes."""
    return [row for row in findings if row["role"] not in ("suppressed", "note")]


def rows_between(
    root: str,
    name: str,
    columns: Sequence[str],
    since: datetime,
    until: datetime,
    condition: Expression | None = None,
) -> list[Row]:
    """Return rows of a table of the rules by time, maps as dicts.

    A column that an older job did not write is null.
    """
    return shown_rows(read_between(root, name, columns, since, until, condition), name, columns)


def read_findings(
    root: str, since: datetime, until: datetime, condition: Expression | None = None
) -> list[Row]:
    """Return the newest row of each finding that has one between two moments."""
    return newest_rows(rows_between(root, FINDINGS.name, _OF_FINDING, since, until, condition))


def read_open(root: str, at: datetime, window_seconds: int) -> list[Row]:
    """Return all findings that were open in the newest evaluated window that ended by a moment."""
    window = timedelta(seconds=window_seconds)
    start = _newest_start(root, at, window)
    return [] if start is None else _open_at(root, start + window)


def _open_at(root: str, end: datetime, condition: Expression | None = None) -> list[Row]:
    """Return findings that were open at the end of a window."""
    return open_findings(read_findings(root, end - REPEATED_WITHIN, end, condition))


def read_rows_of_findings(
    root: str, since: datetime, until: datetime, condition: Expression
) -> list[Row]:
    """Return all rows of findings between two moments that meet a condition."""
    return rows_between(root, FINDINGS.name, _OF_FINDING, since, until, condition)


def newest_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the newest row of each finding.

    Evidence that this row lacks, as at the end of the finding, comes from the row before.
    """
    newest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (row["finding_id"], row["seq"])):
        before = newest.get(row["finding_id"], {})
        newest[row["finding_id"]] = row | {
            name: row[name] or before.get(name) or {} for name in _KEPT
        }
    return list(newest.values())


def open_findings(rows: Iterable[Row]) -> list[Row]:
    """Return the findings that have not ended."""
    return [row for row in rows if row["event"] != "closed"]


def is_any_known(root: str, at: datetime, window_seconds: int, glob: str = "*") -> bool:
    """Return True if a matching group's health is known at a moment; False without a match."""
    healths = read_health(root, at, window_seconds)
    return any(
        fnmatchcase(group, glob) and health.level != UNKNOWN for group, health in healths.items()
    )


def _newest_start(root: str, at: datetime, window: timedelta) -> datetime | None:
    """Begin of the newest evaluated window that ended by a moment; None without one."""
    return newest_evaluated(root, at - window + timedelta.resolution)


def names_group(row: Row, group: str) -> bool:
    """Return True if a finding about the cluster names this group."""
    return row["group"] is None and group in _groups_named(row)


def _groups_named(row: Row) -> list[str]:
    return row["evidence_text"].get("groups", "").split(", ")  # type: ignore[no-any-return]


def rank(row: Row) -> tuple[object, ...]:
    """Return the sort key of a finding.

    First comes the primary finding; then findings go by severity, the group's own before the
    cluster's, then by age.
    """
    severity = (
        SEVERITIES.index(row["severity"]) if row["severity"] in SEVERITIES else len(SEVERITIES)
    )
    role = _ROLES.index(row["role"]) if row["role"] in _ROLES else len(_ROLES)
    return (role, severity, row["group"] is None, row["started_at"], row["code"], row["finding_id"])


def is_behind(row: Row) -> bool:
    """Return True if a window has significant lag of a topic that the group reads."""
    return bool(row["partitions_material"]) and not is_left(row)


def is_left(row: Row) -> bool:
    """Return True if no member subscribes to the window's topic any more.

    The lag of such a topic does not count in any verdict.
    """
    return LEFT in (row["flags"] or ())


def _badness(row: Row) -> tuple[bool, float, int, str]:
    seconds, lag = row["max_time_lag_seconds"], row["lag_known"]
    if seconds is None:
        seconds = -1.0
    if lag is None:
        lag = -1
    return (is_left(row), -seconds, -lag, row["topic"])
