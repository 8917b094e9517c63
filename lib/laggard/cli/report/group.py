"""Values and charts of the page of one group, from the published tables.

The template makes names safe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from laggard.answers.explain.data import to_data
from laggard.answers.explain.rebalance import events_and_cost
from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import evidence_words, spoken, where
from laggard.answers.text.words import known_duration, short, short_duration
from laggard.cli.query.notes import gaps_in
from laggard.cli.query.output import number
from laggard.cli.query.range import Range
from laggard.cli.query.verb import open_session
from laggard.cli.report.charts import (
    COLOURS,
    HEIGHTS,
    NOTHING,
    UNWATCHED,
    Span,
    by_bin,
    drawn_to,
    line,
    marks,
    nice_seconds,
    on_grid,
    strip,
)

MOST_TOPICS, MOST_REBALANCES = 5, 200
Series = Sequence[tuple[datetime, float | str | None]]


def group_page(
    explained: Explained, root: str, window_seconds: int, objective: float
) -> dict[str, Any]:
    """Return all values of the page of one group."""
    batch, group = explained.batch, str(explained.group["group"])
    end = batch.polled_at
    begin = on_grid(explained.since or end - timedelta(days=1), window_seconds)
    # a window that begins there is not in it
    ask = open_session(root, Range(begin, end - timedelta.resolution))
    name = "'" + group.replace("'", "''") + "'"
    windows = ask(_WINDOWS.format(name=name)).to_pylist()
    span = Span(begin, drawn_to(windows, end, window_seconds), window_seconds)
    facts = to_data(explained)
    slo = (
        ask(_SLO.format(name=name)).to_pylist()
        if any(map(itemgetter("matured_records"), windows))
        else []
    )
    return {
        "group": group,
        "cluster": batch.cluster,
        "batch_id": batch.batch_id,
        "begin": begin,
        "end": end,
        "diagnosis": facts["diagnosis"],
        "findings": [_finding(row) for row in facts["diagnosis"]["findings"] or ()],
        "past": [row for row in facts["past"] or () if row["role"] != "suppressed"],
        "state": explained.group,
        "totals": _totals(windows, span),
        "charts": _charts(windows, span),
        "shapes": _shapes(windows, span),
        "legend": [
            (shape, colour, round(14 * HEIGHTS[shape])) for shape, colour in COLOURS.items()
        ],
        "rebalances": _rebalances(
            explained, span, is_watched=bool(ask(_WATCHED.format(name=name)).num_rows)
        ),
        "slo": [row | {"burn": _burn(row, objective)} for row in slo],
        "objective": objective,
        "gaps": gaps_in(root, batch, Range(begin, end)),
        "not_known": facts["not_known"],
    }


_WINDOWS = """
select topic, window_start, window_end, lag, lag_known, max_time_lag_seconds, time_lag_censored,
    shape, matured_records, late_records
from group_windows where "group" = {name} order by window_start, topic
"""
# a window in which it is known who reads: only then are rebalances seen
_WATCHED = (
    'select window_start from group_history where "group" = {name} and members is not null limit 1'
)
_SLO = 'select * from slo_daily where "group" = {name} order by date'


def _burn(row: Row, objective: float) -> float | None:
    share = row["late_share"]
    return None if share is None or objective >= 1 else float(share) / (1 - objective)


def _finding(row: Row) -> Row:
    return row | {
        "where": where(row),
        "numbers": evidence_words(row),
        "wrong_if": spoken(row["falsifier"] or "").rstrip("."),
    }


def _sums(windows: Iterable[Row], column: str) -> list[tuple[datetime, float | None]]:
    """Return a column's sum over topics by window; None if it is unknown for a topic."""
    found: dict[datetime, list[float | None]] = defaultdict(list)
    for row in windows:
        found[row["window_start"]].append(row[column])
    return [
        (at, None if None in values else sum(v for v in values if v is not None))
        for at, values in found.items()
    ]


def _largest(windows: Iterable[Row], column: str) -> list[tuple[datetime, float | None]]:
    found: dict[datetime, float | None] = {}
    for row in windows:
        at, value = row["window_start"], row[column]
        found[at] = max((v for v in (found.get(at), value) if v is not None), default=None)
    return list(found.items())


def _totals(windows: Sequence[Row], span: Span) -> dict[str, Any]:
    lags = _sums(windows, "lag")
    known = [value for _, value in lags if value is not None]
    times = [row for row in windows if row["max_time_lag_seconds"] is not None]
    worst = max(times, key=_time_lag, default=None)
    expected = max(round(span.seconds / span.window_seconds), 1)
    return {
        "lag_max": max(known, default=None),
        "time_lag_max": known_duration(
            None if worst is None else worst["max_time_lag_seconds"],
            is_exact=worst is None or not worst["time_lag_censored"],
        ),
        "windows": len(lags),
        "windows_known": len(known),
        "windows_expected": max(expected, len(lags)),
    }


def _time_lag(row: Row) -> tuple[float, bool]:
    return row["max_time_lag_seconds"], bool(row["time_lag_censored"])


def _charts(windows: Sequence[Row], span: Span) -> list[dict[str, Any]]:
    def drawn(title: str, says: str, rows: Series, *how: Any) -> dict[str, Any]:
        return {
            "title": title,
            "says": says,
            "svg": line(span, by_bin(span, rows), f"{title}: {says}", *how),
        }

    bounds = _bounds(windows, span)
    of_time = (
        "age of the oldest record not committed, of partitions that know it; dashed: a lower bound"
    )
    found = [
        drawn("Lag", "records that arrived and are not committed", _sums(windows, "lag"), _records),
        drawn(
            "Time lag",
            of_time,
            _largest(windows, "max_time_lag_seconds"),
            _age,
            nice_seconds,
            bounds,
        ),
    ]
    if any(row["matured_records"] for row in windows):
        late = dict(_sums(windows, "late_records"))
        shares = [
            (at, _share(late[at], matured)) for at, matured in _sums(windows, "matured_records")
        ]
        says = "share of the records that reached the age of the SLO; no line: none did"
        found.append(drawn("Late records", says, shares, _percent))
    return found


def _bounds(windows: Iterable[Row], span: Span) -> set[int]:
    """Return the bins whose largest time lag is a lower bound."""
    largest: dict[int, Row] = {}
    for row in windows:
        if row["max_time_lag_seconds"] is not None:
            place = span.place(row["window_start"])
            largest[place] = max(largest.get(place, row), row, key=_time_lag)
    return {place for place, row in largest.items() if row["time_lag_censored"]}


def _share(late: float | None, matured: float | None) -> float | str | None:
    if late is None or matured is None:
        return None
    return late / matured if matured else NOTHING


def _records(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else number(value)


def _age(seconds: float) -> str:
    return short_duration(seconds).removesuffix(" 00 s").removesuffix(" 00 m").removesuffix(" 00 h")


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.4g} %"


def _shapes(windows: Sequence[Row], span: Span) -> list[dict[str, Any]]:
    """Return the shape of lag over time for the topics that were furthest behind."""
    behind: dict[str, int] = {}
    for row in windows:
        behind[row["topic"]] = max(behind.get(row["topic"], -1), row["lag_known"] or 0)
    topics = sorted(behind, key=lambda topic: (-behind[topic], topic))
    found = []
    for topic in topics[:MOST_TOPICS]:
        states: list[float | str | None] = [UNWATCHED] * span.count
        for row in windows:
            if row["topic"] == topic and 0 <= span.place(row["window_start"]) < span.count:
                states[span.place(row["window_start"])] = row["shape"]  # the last of a bin
        found.append(
            {"topic": topic, "svg": strip(span, states, f"Shape of the lag on {short(topic)}")}
        )
    return [
        *found,
        *(
            [{"topic": None, "more": len(topics) - MOST_TOPICS}]
            if len(topics) > MOST_TOPICS
            else []
        ),
    ]


def _rebalances(explained: Explained, span: Span, *, is_watched: bool) -> dict[str, Any]:
    rows = explained.rebalances or []
    drawn = [
        (
            row["ended_at"],
            row["pause_max_seconds"],
            f"{row['ended_at']:%Y-%m-%d %H:%M:%S} UTC {row['cause']}",
        )
        for row in rows
    ]
    return {
        "are_known": bool(rows) or (is_watched and explained.rebalances is not None),
        "count": len(rows),
        "rows": [
            row | {"says": events_and_cost(row, explained.names, explained.limits)[0]}
            for row in rows[:MOST_REBALANCES]
        ],
        "paused": _known_sum(rows, "paused_partition_seconds"),
        "delayed": _known_sum(rows, "records_delayed"),
        "svg": marks(span, drawn, "Longest pause of each rebalance", short_duration)
        if rows
        else None,
    }


def _known_sum(rows: Sequence[Row], column: str) -> dict[str, Any]:
    """Return the sum of the known values, and the number of unknown ones."""
    values = [row[column] for row in rows if row[column] is not None]
    return {"sum": sum(values) if values else None, "unknown": len(rows) - len(values)}
