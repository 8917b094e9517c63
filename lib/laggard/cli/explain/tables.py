"""Lag and members on the page of `laggard explain`: what is behind, and who reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from laggard.cli.explain.members import MemberLine, Place, member_lines, no_reader, ranges, readers, time_lag_is_exact
from laggard.cli.explain.rows import Explained
from laggard.cli.published import Row
from laggard.cli.words import UNKNOWN, aligned, count, known_duration, listed, records, short

_WORST = 5


def lag_lines(explained: Explained) -> Iterator[str]:
    """The group's lag, and its worst partitions."""
    group = explained.group
    if group["group_type"] == "share":
        yield "  none here: a share group commits no offsets"
        return
    if not group["partitions_total"]:
        yield "  no partition is subscribed or committed"
        return
    partitions = count(group["partitions_total"], "partition")
    lag, is_exact = (group["lag_known"], False) if group["lag"] is None else (group["lag"], True)
    if lag is None or group["lag"] == 0:
        yield f"  {UNKNOWN if lag is None else 'nothing unread'} in {partitions}"
        return
    unknown = "" if is_exact else f", {len(explained.bad_partitions)} of them not known"
    yield f"  {records(lag, is_exact=is_exact)} records in {partitions}{unknown}"
    is_timed = time_lag_is_exact(explained.partitions)
    yield f"  oldest unread record: {known_duration(group['max_time_lag_seconds'], is_exact=is_timed)} old"
    behind = [row for row in explained.partitions if row["lag"]]
    reader = readers(explained)
    yield from _table(
        ("WORST PARTITIONS", "LAG", "TIME LAG", "READ BY"),
        [_partition_cells(row, reader, no_reader(explained, row["topic"])) for row in behind[:_WORST]],
        {"LAG", "TIME LAG"},
    )
    if len(behind) > _WORST:
        yield f"  … and {len(behind) - _WORST} more with lag"


def member_page(explained: Explained) -> Iterator[str]:
    """Members with partitions, those that are furthest behind first, then the idle ones."""
    if not explained.members:
        is_none = explained.group["members"] == 0 or explained.group["group_type"] == "simple"
        yield "  none" if is_none else f"  {UNKNOWN}"
        return
    lines = member_lines(explained)
    titles = ("CLIENT", "HOST", "INSTANCE", "PARTITIONS", "LAG", "TIME LAG")
    yield from _table(titles, [_member_cells(line) for line in lines if not line.is_idle], {"LAG", "TIME LAG"})
    idle = [_who(line.row) for line in lines if line.is_idle]
    if idle:
        yield f"  {count(len(idle), 'idle member')}, without any partition: {listed(idle)}"


def _partition_cells(row: Row, reader: Mapping[Place, Row], nobody: str) -> tuple[str, ...]:
    owner = reader.get((row["topic"], row["partition"]))
    return (
        f"{short(row['topic'])}-{row['partition']}",
        records(row["lag"]),
        known_duration(row["time_lag_seconds"], is_exact=not row["time_lag_censored"]),
        nobody if owner is None else _who(owner),
    )


def _member_cells(line: MemberLine) -> tuple[str, ...]:
    row, held = line.row, line.partitions
    return (
        _name(row["client_id"]),
        _host(row),
        "-" if row["group_instance_id"] is None else short(row["group_instance_id"]),
        UNKNOWN if held is None else f"{len(row['assigned'])}: {short(ranges(held)) or UNKNOWN}",
        records(line.lag, is_exact=line.lag_is_exact),
        known_duration(line.time_lag_seconds, is_exact=line.time_lag_is_exact),
    )


def _who(row: Row) -> str:
    return f"{_name(row['client_id'])} on {_host(row)}"


def _host(row: Row) -> str:
    return _name(row["client_host"] and row["client_host"].removeprefix("/"))


def _name(name: str | None) -> str:
    return UNKNOWN if name is None else short(name)


def _table(titles: tuple[str, ...], cells: Sequence[tuple[str, ...]], right: set[str]) -> list[str]:
    lines = aligned([titles, *cells], [title in right for title in titles]) if cells else []
    return [f"  {line}" for line in lines]
