"""The present lag on the page of `laggard explain`.

Every number is of the page's one tick, never of a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laggard.answers.explain.members import time_lag_is_exact
from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.words import known_duration, records
from laggard.lag.status import KNOWN_STATUSES


@dataclass(frozen=True, slots=True)
class LagNow:
    """Lag of a topic; what is not exact is a lower bound, None is unknown."""

    lag: int | None
    lag_is_exact: bool
    time_lag_seconds: float | None
    time_lag_is_exact: bool

    @property
    def is_none(self) -> bool:
        """True if nothing is unread, and that is certain."""
        return self.lag == 0 and self.lag_is_exact

    @property
    def records(self) -> str:
        return records(self.lag, is_exact=self.lag_is_exact)

    @property
    def behind(self) -> str:
        """In time where that is known, else in records."""
        if self.time_lag_seconds is None:
            return f"{self.records} records"
        return known_duration(self.time_lag_seconds, is_exact=self.time_lag_is_exact)


def lag_of_topic(explained: Explained, topic: str) -> LagNow:
    """Sum and maximum over the partitions of a topic."""
    rows = [row for row in explained.partitions if row["topic"] == topic]
    lag = lag_of(rows)
    seconds = [
        row["time_lag_seconds"]
        for row in rows
        if row["status"] == "ok" and row["time_lag_seconds"] is not None
    ]
    return LagNow(
        lag["lag_known"],
        lag["lag"] is not None,
        max(seconds, default=None),
        time_lag_is_exact(rows),
    )


def lag_of(partitions: Sequence[Row]) -> Row:
    """Return the columns of group_status that are sums over partitions, null as they are there."""
    ok = [row for row in partitions if row["status"] == "ok"]
    bad = [row for row in partitions if row["status"] not in KNOWN_STATUSES]
    lag = sum(row["lag"] for row in ok) if ok else None
    return {
        "lag": None if bad else lag,
        "lag_known": lag,
        "max_time_lag_seconds": max((row["time_lag_seconds"] or 0.0 for row in ok), default=None),
        "partitions_total": len(partitions),
        "partitions_ok": len(ok),
        "partitions_no_commit": len(partitions) - len(ok) - len(bad),
        "partitions_unknown": len(bad),
    }
