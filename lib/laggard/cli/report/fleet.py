"""Values and charts of the page of all groups, from the published tables.

The template makes names safe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from laggard.answers.reading import Row
from laggard.cli.query.notes import gaps_in
from laggard.cli.query.range import Range
from laggard.cli.query.verb import open_session
from laggard.cli.query.views import read_views
from laggard.cli.report.charts import Span, by_bin, drawn_to, on_grid, spark
from laggard.tables.published import Batch

MOST_GROUPS, SPARK_BINS = 500, 48


def fleet_page(
    root: str, batch: Batch, asked: Range, window_seconds: int, *, is_past: bool = False
) -> dict[str, Any]:
    """Return all values of the page of all groups.

    They are the present state, or that at the end of a past window.
    """
    end = asked.end or batch.polled_at
    begin = on_grid(asked.begin or end - timedelta(days=1), window_seconds)
    # a window that begins there is not in it
    ask = open_session(root, Range(begin, end - timedelta.resolution))
    # what was opened before the range may be open at its end
    worst = open_session(root, Range(None, end))(_worst(end if is_past else None)).to_pylist()
    bounds = _BOUNDS_THEN.format(end=end.isoformat()) if is_past else _BOUNDS
    parts: list[Mapping[str, Row]] = [
        {row["group"]: row for row in ask(sql).to_pylist()} for sql in (*_BY_GROUP, bounds)
    ]
    newest = ask(_NEWEST).to_pylist()
    span = Span(begin, drawn_to(newest, end, window_seconds), window_seconds, SPARK_BINS)
    points = ask(_SPARKS.format(seconds=span.step, begin=begin.isoformat())).to_pylist()
    return {
        "cluster": batch.cluster,
        "batch_id": batch.batch_id,
        "begin": begin,
        "end": end,
        "is_past": is_past,
        "groups": len(worst),
        "names": {row["group"] for row in worst},
        "rows": _rows(worst[:MOST_GROUPS], parts, span, points),
        "gaps": gaps_in(root, batch, Range(begin, end)),
        "late": {row["group"]: row for row in parts[2].values() if row["late_records"]},
    }


def _rows(
    worst: Sequence[Row], parts: Sequence[Mapping[str, Row]], span: Span, points: Sequence[Row]
) -> list[dict[str, Any]]:
    """Make a row for each group, with its lag over time as a small chart."""
    drawn: dict[str, list[tuple[datetime, float | None]]] = defaultdict(list)
    for row in points:
        drawn[row["group"]].append((row["at"], None if row["unknown"] else row["lag"]))
    rows = []
    for row in worst:
        merged = {
            name: value
            for part in reversed(parts)
            for name, value in part.get(row["group"], {}).items()
        }
        values = by_bin(span, drawn.get(row["group"], []))
        rows.append({**merged, **row, "spark": spark(values)})
    return rows


def _worst(then: datetime | None) -> str:
    """Return the query for worst_groups.

    For a past moment it has that window's rows in place of the newest rows.
    """
    if then is None:
        return "select * from worst_groups order by place"
    view = read_views()["worst_groups"].sql.partition(" as\n")[2].rstrip(";\n ")
    status = _STATUS_THEN.format(end=then.isoformat(), date=(then - timedelta(days=1)).date())
    return f"with group_status as ({status}) select * from ({view}) order by place"  # noqa: S608


_STATUS_THEN = """
select cluster, "group", group_state, max_time_lag_seconds, lag, lag_known, partitions_unknown
from group_history
left join (
    select "group" as name, max(max_time_lag_seconds) as max_time_lag_seconds from group_windows
    where date >= cast('{date}' as date) and window_end = cast('{end}' as timestamp)
    group by "group"
) on name = "group"
where date >= cast('{date}' as date) and window_end = cast('{end}' as timestamp)
"""
_BOUNDS = """
select "group", max(time_lag_seconds) as bound from partition_status
where time_lag_censored and status = 'ok' group by "group"
"""
_BOUNDS_THEN = """
select "group", max(max_time_lag_seconds) as bound from group_windows
where time_lag_censored and window_end = cast('{end}' as timestamp) group by "group"
"""
_NEWEST = (
    "select max(window_end) as window_end from group_windows having max(window_end) is not null"
)
_BY_GROUP = (
    """select "group", max(lag_known) as lag_known_max, max(max_time_lag_seconds) as time_lag_max,
    max(case when time_lag_censored then max_time_lag_seconds end) as time_lag_bound
    from group_windows group by "group" """,
    """select "group", sum(rebalances) as rebalances, sum(paused_partition_seconds) as paused,
    sum(rebalances_unknown) as rebalances_unknown from rebalance_cost group by "group" """,
    """select "group", sum(matured_records) as matured_records, sum(late_records) as late_records
    from slo_daily group by "group" """,
    """select "group", count(*) as windows, count(members) as windows_with_members
    from group_history group by "group" """,
)
_SPARKS = """
select "group",
    date_bin(interval '{seconds} seconds', window_start, cast('{begin}' as timestamp)) as at,
    max(lag_known) as lag, max(unknown) as unknown
from (
    select "group", window_start, sum(lag_known) as lag_known, count(*) - count(lag) as unknown
    from group_windows group by "group", window_start
) group by 1, 2 order by 1, 2
"""
