"""`laggard status --rebalances`: the number of rebalances of each group, and its last rebalance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyarrow.dataset import field

from laggard.answers.reading import (
    Row,
    made_lines,
    read_dates,
    read_where,
)
from laggard.answers.text.words import NOTHING, known, moment, percent, short, short_duration
from laggard.rebalance.analytics.times import seconds_between
from laggard.tables.published import Batch
from laggard.tables.schema.schemas import GROUP_STATUS, REBALANCES

_GROUP_COLUMNS = (
    "group",
    "rebalances_total",
    "last_rebalance_at",
    "time_in_rebalance_ratio",
    "rebalancing_since",
)
LAST = ("cause", "rebalance_seconds", "pause_max_seconds", "moved", "avoidable")
_NONE = "-"


@dataclass(frozen=True, slots=True)
class RebalanceLine:
    """One group; None is unknown, and all of the last rebalance where there was none."""

    group: str
    rebalances: int | None
    rebalancing_since: datetime | None
    last_rebalance_at: datetime | None
    cause: str | None
    rebalance_seconds: float | None
    least_seconds: float | None  # what the records allow; equal where the begin is exact
    most_seconds: float | None
    pause_max_seconds: float | None
    moved: int | None
    avoidable: int | None
    time_in_rebalance_ratio: float | None


def read_lines(root: str, batch: Batch, names: Collection[str]) -> list[RebalanceLine]:
    """Return the lines of these groups, those that rebalance most of the time first."""
    rows = read_where(root, batch, GROUP_STATUS.name, _GROUP_COLUMNS)
    groups = [row for row in rows if row["group"] in names]
    last = _last_rebalances(root, batch, groups)

    def shown_line(row: Row) -> RebalanceLine:
        line = _line(row, last.get(row["group"], {}))
        cells(line)
        return line

    return sorted(made_lines(groups, GROUP_STATUS.name, shown_line), key=order)


def order(line: RebalanceLine) -> tuple[float, float, str]:
    """Return the sort key of a line.

    Most time in rebalance comes first, then the newest; unknown comes last.
    """
    ratio, at = line.time_in_rebalance_ratio, line.last_rebalance_at
    by_ratio = 1.0 if ratio is None else -ratio
    return (by_ratio, 0.0 if at is None else -at.timestamp(), line.group)


def _last_rebalances(root: str, batch: Batch, groups: Sequence[Row]) -> dict[str, Row]:
    """Return a dict from group to the row of its last rebalance.

    It is read from the dates on which a rebalance ended.
    """
    ends = {
        row["group"]: row["last_rebalance_at"]
        for row in groups
        if row["last_rebalance_at"] is not None
    }
    wanted = field("ended_at").isin(
        pa.array(sorted(set(ends.values())), pa.timestamp("us", tz="UTC"))
    )
    rows = read_dates(
        root,
        batch,
        REBALANCES.name,
        ("group", "ended_at", "started_low", "started_high", *LAST),
        {at.date().isoformat() for at in ends.values()},
        wanted,
    )
    return {row["group"]: row for row in rows if ends.get(row["group"]) == row["ended_at"]}


def _line(row: Row, last: Row) -> RebalanceLine:
    counts = row["rebalances_total"]
    names = ("rebalancing_since", "last_rebalance_at", "time_in_rebalance_ratio")
    return RebalanceLine(
        group=row["group"],
        rebalances=None if counts is None else sum(counts.values()),
        **{name: row[name] for name in names},
        least_seconds=seconds_between(last.get("ended_at"), last.get("started_high")),
        most_seconds=seconds_between(last.get("ended_at"), last.get("started_low")),
        **{name: last.get(name) for name in LAST},
    )


def cells(line: RebalanceLine) -> tuple[str, ...]:
    """Return the line in words, in the order of the table's columns."""
    has_none = line.last_rebalance_at is None and line.rebalances is not None
    last_end = None if line.last_rebalance_at is None else moment(line.last_rebalance_at)
    last = (
        last_end,
        line.cause,
        _took(line),
        None if line.pause_max_seconds is None else short_duration(line.pause_max_seconds),
        line.moved,
        line.avoidable,
    )
    return (
        short(line.group),
        known(line.rebalances),
        *(_NONE if has_none else known(value) for value in last),
        percent(line.time_in_rebalance_ratio),
    )


def _took(line: RebalanceLine) -> str | None:
    """Return the duration as text.

    It is exact, an estimate, or a lower bound if no commit shows the start.
    """
    seconds = line.rebalance_seconds
    if seconds is None or line.least_seconds == line.most_seconds:
        return None if seconds is None else short_duration(seconds)
    if line.most_seconds is not None and line.most_seconds < NOTHING:
        return short_duration(seconds)
    if seconds != line.least_seconds:
        return f"{'probably' if seconds < NOTHING else 'about'} {short_duration(seconds)}"
    return None if seconds < NOTHING else f"≥ {short_duration(seconds)}"
