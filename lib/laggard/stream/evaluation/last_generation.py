"""Generations in which groups have stood for over 24 hours; a window names their place.

A generation may be of any age.

Most groups rebalance less than once a day. Their members are in rows of long ago, and
`group_history` says of when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow.dataset import field

from laggard.lag.arrays import by_name, tuples
from laggard.tables.odd_rows import holdable
from laggard.tables.readers import open_table, read_known, table_uri

# table -> column of group_history
PLACES = {"generations": "generation_at", "group_members": "roster_at"}
_TIME = pa.timestamp("us", tz="UTC")
_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("window_start", _TIME),
        ("batch_id", pa.int64()),
        ("generation_at", _TIME),
        ("roster_at", _TIME),
    ]
)
COLUMNS = tuple(_SCHEMA.names)


def places(now: pa.Table, then: pa.Table, span: timedelta) -> pa.Table:
    """Return the record times of each group's generation, by window start and `PLACES` columns.

    `now`: rows of `group_history` of the evaluated windows, `then`: those of the windows a span
    before them.
    """
    tables = [_SCHEMA.empty_table()]
    for rows, later in ((now, timedelta(0)), (then, span)):
        if set(COLUMNS) <= set(rows.column_names):  # an older job named no places
            columns = by_name(rows.select(COLUMNS))
            columns["window_start"] = pc.add(
                rows["window_start"], pa.scalar(later, pa.duration("us"))
            )
            # the members of a generation before that of now, which is empty, are not its own
            is_older = pc.less(rows["roster_at"], rows["generation_at"])
            columns["roster_at"] = pc.if_else(is_older, pa.scalar(None, _TIME), rows["roster_at"])
            tables.append(pa.table(columns, _SCHEMA))
    # a row that is odd costs its own group, when that is evaluated
    return holdable(pa.concat_tables(tables))


def read_older(
    root: str, table: DeltaTable, near: pa.Table, name: str, named: pa.Table, before: datetime
) -> pa.Table:
    """Return `near`, a table's rows from a time on, with older rows at the named times.

    Some more rows of those dates are added.
    """
    older = named.filter(pc.less(named[PLACES[name]], pa.scalar(before, _TIME)))
    if not older.num_rows:
        return near
    groups = frozenset(older["group"].to_pylist())
    times = frozenset(older[PLACES[name]].to_pylist())
    files = frozenset(table.file_uris(file_pruning_predicate=_of_dates(times)))
    rows = _read_files(root, name, files, groups, times, tuple(near.column_names))
    if not rows.num_rows:
        return near
    return pa.concat_tables([near, rows])


@lru_cache(maxsize=len(PLACES))  # it changes when a group rebalances, not with every window
def _read_files(
    root: str,
    name: str,
    # the files of these dates: a member of an old generation may be recorded later
    _: frozenset[str],
    groups: frozenset[str],
    times: frozenset[datetime],
    columns: tuple[str, ...],
) -> pa.Table:
    """Return rows of these groups and times at the newest version.

    No window evaluates rows published since.
    """
    is_wanted = field("record_timestamp").isin(pa.array(sorted(times), _TIME)) & field(
        "group"
    ).isin(sorted(groups))
    rows = read_known(
        open_table(root, name), table_uri(root, name), columns, is_wanted, _of_dates(times)
    )
    return rows.select(list(columns))


def _of_dates(times: Iterable[datetime]) -> str:
    dates = sorted({f"'{time.date()}'" for time in times})
    return f"date IN ({', '.join(dates)})"


def by_window(named: pa.Table, column: str) -> dict[datetime, dict[str, list[datetime]]]:
    """Return possible times of groups' newest generations, by window start and group."""
    times: dict[datetime, dict[str, list[datetime]]] = {}
    for start, group, at in tuples(named, ("window_start", "group", column)):
        if at is not None:
            times.setdefault(start, {}).setdefault(group, []).append(at)
    return times


def newest(places: Mapping[str, Sequence[datetime]], before: datetime) -> dict[str, datetime]:
    """Return the newest of each group's times before a given time."""
    newest_at: dict[str, datetime] = {}
    for group, times in places.items():
        older = [at for at in times if at < before]
        if older:
            newest_at[group] = max(older)
    return newest_at
