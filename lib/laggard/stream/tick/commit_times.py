"""Commits of a batch by offsets partition, and the brokers' clock difference by their stamps.

Kafka has no request for the time. The coordinator stamps a commit when it takes it, so a stamp
after the poll that saw it, or before the poll that it came after, is a difference of clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import tuples
from laggard.rebalance.analytics.times import known
from laggard.sources.snapshot import Snapshot
from laggard.tables.published import TICK


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """Commit records of an offsets partition, and their earliest and latest stamps.

    The stamps are in seconds since 1970.
    """

    commits: int = 0
    earliest: float | None = None
    latest: float | None = None

    def __add__(self, other: CommitTimes) -> CommitTimes:
        """Return the commit times of both, as shards of groups share offsets partitions."""
        earliest = min(known([self.earliest, other.earliest]), default=None)
        latest = max(known([self.latest, other.latest]), default=None)
        return CommitTimes(self.commits + other.commits, earliest, latest)


def commit_times(commits: pa.Table) -> list[list[Any]]:
    """Return [offsets partition, commits, earliest, latest] of decoded commit rows.

    The values are plain.
    """
    stamped = commits.select(["source_partition", "commits"])
    stamps = pc.divide(
        pc.cast(pc.cast(commits["commit_timestamp"], pa.int64()), pa.float64(), safe=False), 1e6
    )
    spans = (
        stamped.append_column("at", stamps)
        .group_by("source_partition")
        .aggregate([("commits", "sum"), ("at", "min"), ("at", "max")])
    )
    columns = ("source_partition", "commits_sum", "at_min", "at_max")
    return list(map(list, tuples(spans, columns)))


def clock_skew(
    last: Mapping[str, Any] | None,
    snapshot: Snapshot,
    times: Mapping[int, CommitTimes],
    *,
    is_live: bool,
) -> float | None:
    """Return the brokers' clock minus ours in seconds; None without a stamp.

    The result is the smallest difference that explains all stamps.

    No commit of the batch was made after the poll ended. One of a partition that had been read to
    its end was made after the poll before, of which the time is known if that was since the same
    boot.
    """
    polled_at = snapshot.polled_at_ms / 1000
    latest = sum(times.values(), CommitTimes()).latest
    if latest is None:
        return None
    least: float = max(0.0, latest - (polled_at + snapshot.seconds))
    if last is None or not is_live or (before := _polled_before(last, snapshot)) is None:
        return least
    ends = last["source_high_watermark"] or {}
    whole = {
        number for number, position in last["source_to"].items() if ends.get(number) == position
    }
    earliest = sum((times[number] for number in whole & times.keys()), CommitTimes()).earliest
    if earliest is None:
        return least
    return max(least, min(0.0, earliest - before), key=abs)


def _polled_before(last: Mapping[str, Any], snapshot: Snapshot) -> float | None:
    """Return the previous tick's poll time in seconds by the present clock; None if unknown."""
    clock = last["clock"] if last["kind"] == TICK else None
    if clock is None or clock["boot_id"] != snapshot.boot_id:
        return None
    before: float = snapshot.polled_at_ms / 1000 - (snapshot.boot_ms - clock["boot_ms"]) / 1000
    return before
