"""Distribution of the lag over partitions and readers, on the page of `laggard explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from laggard.answers.evaluated import is_behind
from laggard.answers.explain.headline import TRENDS
from laggard.answers.explain.members import Place, no_reader, ranges, readers
from laggard.answers.explain.now import lag_of_topic
from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.words import (
    UNKNOWN,
    aligned,
    known_duration,
    paragraph,
    percent,
    records,
    short,
)

_SHAPES = {
    "spread": "spread: all partitions have their share of it",
    "concentrated": "concentrated: few partitions have most of it",
    "mixed": "mixed: between spread and concentrated",
    "single": "single: the topic has one partition",
    "none": "its shape has no name yet, as it has to last first",
}
_NOT_YET = "spread over all partitions in this window, which has to last before it counts"
_SHOWN = 5


def shape_lines(explained: Explained) -> Iterator[str]:
    """Yield lines per topic with significant lag: its shape and its main readers.

    These readers have the partitions that carry most of the lag.
    """
    reader, windows = readers(explained), explained.diagnosis.windows
    for row in windows:
        if is_behind(row):
            trend = TRENDS.get(row["trend"], "whether it grows is not known yet")
            shape = _NOT_YET if _is_new_spread(row) else _SHAPES.get(row["shape"], row["shape"])
            # the lag of the only topic is that of the group, which stands under Lag
            lag = (
                f"{lag_of_topic(explained, row['topic']).records} records, "
                if len(windows) > 1
                else ""
            )
            yield from paragraph(f"{short(row['topic'])}: {lag}{trend}; {shape}", "  ", "  ")
            yield from _carriers(explained, row, reader)


def _carriers(explained: Explained, row: Row, reader: Mapping[Place, Row]) -> Iterator[str]:
    """Yield a line per reader.

    For spread lag it covers all partitions, else the partitions that hold 70 % of the lag.
    """
    rows = {
        partition["partition"]: partition
        for partition in explained.partitions
        if partition["topic"] == row["topic"]
    }
    total = sum(partition["lag"] or 0 for partition in rows.values())  # of those known
    worst = _by_reader(
        map(rows.get, _carrying(row, rows)), reader, no_reader(explained, row["topic"])
    )
    cells = [_carrier(name, held, total) for (name, _), held in worst]
    if cells:
        titles = ("READ BY", "PARTITIONS", "LAG", "SHARE", "TIME LAG")
        yield from (
            f"    {line}"
            for line in aligned([titles, *cells[:_SHOWN]], [False, False, True, True, True])
        )
    if len(cells) > _SHOWN:
        yield f"    … and {len(cells) - _SHOWN} more"


def _carrying(row: Row, partitions: Iterable[int]) -> list[int]:
    is_spread = row["shape"] == "spread" or _is_new_spread(row)
    return sorted(partitions if is_spread else row["top_partitions"] or ())


def _by_reader(
    partitions: Iterable[Row | None], reader: Mapping[Place, Row], nobody: str
) -> list[tuple[tuple[str, str], list[Row]]]:
    """Collect rows with lag by name and member id of the reader, most lag first.

    Some readers share client id and host.
    """
    by_member: dict[tuple[str, str], list[Row]] = {}
    for row in partitions:
        if row is not None and row["lag"]:
            member = reader.get((row["topic"], row["partition"]))
            member_key = _reader(member) or nobody, member["member_id"] if member else ""
            by_member.setdefault(member_key, []).append(row)
    return sorted(
        by_member.items(),
        key=lambda pair: (-sum(partition["lag"] for partition in pair[1]), pair[0]),
    )


def _is_new_spread(row: Row) -> bool:
    """Return True if lag is spread in this window but not yet in two of three.

    The shape's name is then `mixed`.
    """
    return bool(row["shape"] == "mixed" and row["shape_raw"] == "spread")


def _reader(member: Row | None) -> str:
    if member is None or member["client_id"] is None:
        return ""
    host = member["client_host"]
    return (
        f"{short(member['client_id'])} on "
        f"{UNKNOWN if host is None else short(host.removeprefix('/'))}"
    )


def _carrier(name: str, held: list[Row], total: int) -> tuple[str, ...]:
    lag = sum(partition["lag"] for partition in held)
    oldest = max(
        held,
        key=lambda partition: (
            -1.0 if partition["time_lag_seconds"] is None else partition["time_lag_seconds"]
        ),
    )
    return (
        name,
        short(
            ranges((partition["topic"], partition["partition"]) for partition in held).partition(
                " "
            )[2],
            24,
        ),
        records(lag),
        percent(lag / total),
        known_duration(oldest["time_lag_seconds"], is_exact=not oldest["time_lag_censored"]),
    )
