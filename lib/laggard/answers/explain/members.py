"""Partitions and lag of each member of a group, and the reader of a partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.lag.status import KNOWN_STATUSES

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member with the lag on its partitions.

    A value that is not exact is a lower bound; None is unknown.
    """

    row: Row
    partitions: list[Place] | None
    lag: int | None
    lag_is_exact: bool
    time_lag_seconds: float | None
    time_lag_is_exact: bool

    @property
    def is_idle(self) -> bool:
        return self.partitions == [] and not self.row["assigned"]


def member_lines(explained: Explained) -> list[MemberLine]:
    """Return the lines of members, those with the oldest unread record first."""
    # a recreated topic has two rows for a partition: the one that is not of the old topic counts
    rows = sorted(explained.partitions, key=lambda row: row["status"] != "topic_recreated")
    now = {(row["topic"], row["partition"]): row for row in rows}
    lines = [_line(row, now) for row in _asked_for(explained)]
    return sorted(
        lines,
        key=lambda line: (-(line.time_lag_seconds or 0.0), -(line.lag or 0), line.row["member_id"]),
    )


def _asked_for(explained: Explained) -> Iterator[Row]:
    """Yield the members.

    For one topic, yield the members that have its partitions, with these partitions alone, and
    the members that may have some.
    """
    for row in explained.members or ():
        if explained.topic is None or row["assigned"] is None:
            yield row
        elif held := [
            partition for partition in row["assigned"] if partition["topic"] == explained.topic
        ]:
            yield row | {"assigned": held}


def no_reader(explained: Explained, topic: str) -> str:
    """Return words for an unknown reader: "nobody" or "nobody known".

    The word is "nobody" if no member subscribes to the topic.
    """
    subscribed = explained.group["topics"]
    return (
        "nobody"
        if explained.group["members"] == 0 or (subscribed and topic not in subscribed)
        else "nobody known"
    )


def readers(explained: Explained) -> dict[Place, Row]:
    """Return a dict from partition to the member that owns it.

    It is empty for a share group, in which several members may own a partition.
    """
    if explained.group["group_type"] == "share":
        return {}
    return {
        partition: row
        for row in explained.members or ()
        for partition in places(row["assigned"]) or ()
    }


def places(held: list[Row] | None) -> list[Place] | None:
    """Return the partitions by topic name, without those whose topic name is unknown."""
    return (
        None
        if held is None
        else sorted(
            (partition["topic"], partition["partition"]) for partition in held if partition["topic"]
        )
    )


def ranges(held: Iterable[Place]) -> str:
    """Return partitions in a short form: orders 0-3, 7; payments 1."""
    return "; ".join(
        f"{topic} {', '.join(_runs([partition for _, partition in group]))}"
        for topic, group in groupby(sorted(held), key=lambda partition: partition[0])
    )


def time_lag_is_exact(rows: Iterable[Row]) -> bool:
    """Return True if the largest time lag of these partitions is known and not a lower bound."""
    return all(
        row["status"] == "ok"
        and row["time_lag_seconds"] is not None
        and not row["time_lag_censored"]
        for row in rows
        if row["status"] != "no_commit"
    )


def _runs(numbers: list[int]) -> list[str]:
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return [f"{run[0][1]}" if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs]


def _line(row: Row, now: dict[Place, Row]) -> MemberLine:
    held = places(row["assigned"])
    rows = [now[partition] for partition in held or () if partition in now]
    is_whole = held is not None and len(rows) == len(row["assigned"])
    lags, seconds = _known(rows, "lag"), _known(rows, "time_lag_seconds")
    nothing = 0 if row["assigned"] == [] else None
    return MemberLine(
        row,
        held,
        sum(lags) if lags else nothing,
        is_whole and all(partition["status"] in KNOWN_STATUSES for partition in rows),
        max(seconds, default=nothing),
        is_whole and time_lag_is_exact(rows),
    )


def _known(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row["status"] == "ok" and row[name] is not None]
