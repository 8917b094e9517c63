"""The newest window evaluated by the rules: its rows, open findings at its end, all ever opened.

These tables are written after the batch, so no `batches` row names their versions;
`finding_state`, written last, says up to which window they are whole. Of `findings` only what came
since the last look is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Expression
from pyarrow.dataset import field as column

from laggard.diagnosis.findings.ranking import SUPPRESSED
from laggard.diagnosis.findings.rows import CLOSED, OPENED
from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.rules.rule import INFO, PAGE, WARN
from laggard.diagnosis.verdict.sizing import SCALE_IN_SECONDS
from laggard.tables.freshness import MAX_WINDOWS_BEHIND
from laggard.tables.odd_rows import Skipped, plain_rows
from laggard.tables.readers import open_table, read_known, read_newest, table_uri
from laggard.tables.schema.schemas import FINDING_STATE, FINDINGS, GROUP_WINDOWS

SEVERITIES = (INFO, WARN, PAGE)  # in order
MIN_CONFIDENCE = 0.3  # below, a finding is hardly more than a guess
_OPEN_DAYS = 30  # an open finding says so every hour: what was silent for so long is open no more
_WINDOW_COLUMNS = (
    "group", "topic", "status", "lag", "floor_records", "arrival_rate", "gini", "n_eff",
    "top_decile_share", "shape",
    "arrival_shape", "trend", "slope", "drain_seconds", "drain_at_capacity_seconds", "loss_seconds",
    "slo_breach_seconds", "members", "capacity", "scale_verdict", "members_desired",
    "members_ceiling",
    "members_lower_bound", "window_start", "flags",
)  # fmt: skip
_FINDING_COLUMNS = (
    "group", "topic", "finding_id", "seq", "at", "event", "code", "severity", "role", "confidence",
)  # fmt: skip
_SIZING_COLUMNS = (
    "group", "topic", "window_start", "arrival_rate", "members", "capacity", "members_desired",
    "members_lower_bound",
    "flags",
)  # fmt: skip
_IDLE_COLUMNS = ("group", "topic", "window_start", "lag", "arrival_rate")
_KEYS = {
    GROUP_WINDOWS.name: ("group", "topic"),
    FINDINGS.name: ("finding_id", "seq", "at", "event", "code", "severity"),
}
# who watches a count sees its first rise
_NONE_OPENED = dict.fromkeys(product(BY_CODE, SEVERITIES), 0)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Evaluation up to one window's end; empty if no window was evaluated, or long ago."""

    until: float | None = None  # end of the newest evaluated window, seconds since 1970
    windows: Sequence[Row] = ()  # of group_windows, that window, by group and topic
    # by group, without lag and arrivals up to the end
    idle_seconds: Mapping[str, float] = field(default_factory=dict)
    # by group: earlier ones, newest first
    before: Mapping[str, Sequence[Sequence[Row]]] = field(default_factory=dict)
    findings: Sequence[Row] = ()  # the newest row of each open finding
    # (code, severity) -> findings ever opened
    opened: Mapping[tuple[str, str], int] = field(default_factory=dict)
    window_seconds: int = 60

    def shown_findings(self) -> list[Row]:
        """Open findings that nothing else explains away and that are more than a guess."""
        return [
            row
            for row in self.findings
            if row["role"] != SUPPRESSED and (row["confidence"] or 0.0) >= MIN_CONFIDENCE
        ]

    def if_fresh(self, polled_at: float, window_seconds: int) -> Evaluated:
        """Return this evaluation, or only its time if the rules are too far behind the poll."""
        if self.until is None or polled_at - self.until > MAX_WINDOWS_BEHIND * window_seconds:
            return Evaluated(self.until)
        return self


def evaluated_rows(
    rows: pa.Table, table: str, skipped: Skipped, *, unique: Sequence[str] = ()
) -> list[Row]:
    """Return rows of a table of the rules as dicts, without invalid ones."""
    return plain_rows(rows, table, _KEYS[table], skipped, unique=unique)


class EvaluatedReader:
    """Reader that keeps open findings between looks.

    `idle_seconds` is the longest that a policy asks for; 0 means none.
    """

    def __init__(self, root: str, window_seconds: int, idle_seconds: float = 0.0) -> None:
        self._root = root
        self._window = timedelta(seconds=window_seconds)
        self._longest_idle = timedelta(seconds=idle_seconds)
        self._version: int | None = None
        self._seen_until: datetime | None = None
        self._sizing: dict[datetime, dict[str, list[Row]]] = {}  # of an hour, by window and group
        self._open: Mapping[str, Row] = {}
        self._opened: Counter[tuple[str, str]] = Counter()
        self.newest = Evaluated()

    def read(self, skipped: Skipped | None = None) -> Evaluated:
        """Return the newest evaluation; read only if a window was evaluated since the last call."""
        if skipped is None:
            skipped = Skipped()
        states = open_table(self._root, FINDING_STATE.name)
        version = states.version()
        if version == self._version:
            return self.newest
        if states.count():
            rows = read_newest(self._root, FINDING_STATE.name, version, ("window_start",))
            begin = pc.max(rows["window_start"]).as_py()
            end = begin + self._window
            self._follow_findings(end, skipped)
            stored = self._read(GROUP_WINDOWS.name, _WINDOW_COLUMNS, "window_start", begin, begin)
            windows = evaluated_rows(
                stored, GROUP_WINDOWS.name, skipped, unique=_KEYS[GROUP_WINDOWS.name]
            )
            self.newest = Evaluated(
                end.timestamp(),
                sorted(windows, key=itemgetter("group", "topic")),
                self._idle_seconds(begin),
                self._windows_before(begin, windows),
                [self._open[name] for name in sorted(self._open)],
                _NONE_OPENED | self._opened,
                round(self._window.total_seconds()),
            )
        self._version = version
        return self.newest

    def _follow_findings(self, end: datetime, skipped: Skipped) -> None:
        """Read findings recorded since the last call up to `end`.

        All are read again at the start and if time went back.
        """
        if self._seen_until is not None and self._seen_until <= end:
            after, still, opened = self._seen_until, dict(self._open), self._opened
        else:
            after, still = end - timedelta(days=_OPEN_DAYS) - timedelta.resolution, {}
            opened = self._count_until(after)
        rows = evaluated_rows(
            self._read(FINDINGS.name, _FINDING_COLUMNS, "at", after, end), FINDINGS.name, skipped
        )
        rows = [row for row in rows if row["at"] > after]
        for row in sorted(rows, key=itemgetter("at", "finding_id", "seq")):
            still[row["finding_id"]] = row
        opened = opened + _count(rows)
        self._open = {name: row for name, row in still.items() if row["event"] != CLOSED}
        self._opened, self._seen_until = opened, end

    def _count_until(self, until: datetime) -> Counter[tuple[str, str]]:
        wanted = (column("event") == OPENED) & (column("at") <= _moment(until))
        table, uri = open_table(self._root, FINDINGS.name), table_uri(self._root, FINDINGS.name)
        files = f"date <= '{until.date()}' AND at <= '{_text(until)}'"
        return _count(
            read_known(table, uri, ("event", "code", "severity"), wanted, files).to_pylist()
        )

    def _windows_before(
        self, begin: datetime, windows: Sequence[Row]
    ) -> dict[str, list[list[Row]]]:
        """Return each group's sizes in earlier windows, newest first, up to the first gap."""
        hour = timedelta(seconds=SCALE_IN_SECONDS)
        self._sizing = {
            start: rows for start, rows in self._sizing.items() if begin - hour < start < begin
        }
        since = max(self._sizing, default=begin - hour) + self._window
        if since < begin:
            until = begin - self._window
            rows = self._read(GROUP_WINDOWS.name, _SIZING_COLUMNS, "window_start", since, until)
            self._keep(evaluated_rows(rows, GROUP_WINDOWS.name, Skipped()))
        by_group: dict[str, list[list[Row]]] = {}
        start = begin - self._window
        while self._sizing.get(start):
            number = round((begin - start) / self._window)
            for group, sizes in self._sizing[start].items():
                if len(by_group.setdefault(group, [])) == number - 1:
                    by_group[group].append(sizes)
            start -= self._window
        self._keep(windows)
        return by_group

    def _keep(self, windows: Sequence[Row]) -> None:
        for row in sorted(windows, key=lambda row: str(row["topic"])):
            self._sizing.setdefault(row["window_start"], {}).setdefault(row["group"], []).append(
                row
            )

    def _idle_seconds(self, begin: datetime) -> dict[str, float]:
        """Return seconds without lag and arrivals per group; an unknown window ends the span."""
        if not self._longest_idle:
            return {}
        rows = self._read(
            GROUP_WINDOWS.name, _IDLE_COLUMNS, "window_start", begin - self._longest_idle, begin
        )
        is_idle: dict[tuple[str, datetime], bool] = {}
        for row in evaluated_rows(rows, GROUP_WINDOWS.name, Skipped()):
            key = row["group"], row["window_start"]
            is_idle[key] = is_idle.get(key, True) and row["lag"] == 0 and row["arrival_rate"] == 0
        seconds = {}
        for group in {group for group, _ in is_idle}:
            since = begin + self._window
            while is_idle.get((group, since - self._window)):
                since -= self._window
            seconds[group] = (begin + self._window - since).total_seconds()
        return seconds

    def _read(
        self, name: str, columns: Sequence[str], time: str, since: datetime, until: datetime
    ) -> pa.Table:
        """Return rows from a time up to another; file statistics avoid reading other files."""
        condition: Expression = (column(time) >= _moment(since)) & (column(time) <= _moment(until))
        files = f"date >= '{since.date()}' AND date <= '{until.date()}'"
        # the time too: the dates alone would leave as many files as the day has had windows
        files += f" AND {time} >= '{_text(since)}' AND {time} <= '{_text(until)}'"
        return read_known(
            open_table(self._root, name), table_uri(self._root, name), columns, condition, files
        )


def _count(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    return Counter((row["code"], row["severity"]) for row in rows if row["event"] == OPENED)


def _moment(at: datetime) -> pa.Scalar:
    return pa.scalar(at, pa.timestamp("us", tz="UTC"))


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"
