"""The generation in which a group has stood since before the last 24 hours, however old: a window names its place.

Most groups rebalance less than once a day. Their members are in rows of long ago, and `group_history` says of when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow.dataset import field

from laggard.tables.readers import open_table, read_known, table_uri
from laggard.tables.sift import holdable

PLACES = {"generations": "generation_at", "group_members": "roster_at"}  # table -> column of group_history
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
    """Return the record times of each group's generation, by the start of the window and the columns of `PLACES`.

    `now`: rows of `group_history` of the evaluated windows, `then`: those of the windows a span before them.
    """
    found = [_SCHEMA.empty_table()]
    for rows, later in ((now, timedelta(0)), (then, span)):
        if set(COLUMNS) <= set(rows.column_names):  # an older job named no places
            columns = {name: rows[name] for name in COLUMNS}
            columns["window_start"] = pc.add(rows["window_start"], pa.scalar(later, pa.duration("us")))
            # the members of a generation before that of now, which is empty, are not its own
            is_older = pc.less(rows["roster_at"], rows["generation_at"])
            columns["roster_at"] = pc.if_else(is_older, pa.scalar(None, _TIME), rows["roster_at"])
            found.append(pa.table(columns, _SCHEMA))
    return holdable(pa.concat_tables(found))  # a row that is odd costs its own group, when that is evaluated


def read_older(root: str, table: DeltaTable, near: pa.Table, name: str, named: pa.Table, before: datetime) -> pa.Table:
    """Return `near`, a table's rows from a time on, with older rows at the named times and some more of those dates."""
    older = named.filter(pc.less(named[PLACES[name]], pa.scalar(before, _TIME)))
    if not older.num_rows:
        return near
    groups, times = (frozenset(older[each].to_pylist()) for each in ("group", PLACES[name]))
    files = frozenset(table.file_uris(file_pruning_predicate=_of_dates(times)))
    rows = _read_files(root, name, files, groups, times, tuple(near.column_names))
    return pa.concat_tables([near, rows]) if rows.num_rows else near


@lru_cache(maxsize=len(PLACES))  # it changes when a group rebalances, not with every window
def _read_files(
    root: str,
    name: str,
    _: frozenset[str],  # the files of these dates: a member of an old generation may be recorded later
    groups: frozenset[str],
    times: frozenset[datetime],
    columns: tuple[str, ...],
) -> pa.Table:
    """Return rows of these groups and times at the newest version; no window evaluates what was published since."""
    is_wanted = field("record_timestamp").isin(pa.array(sorted(times), _TIME)) & field("group").isin(sorted(groups))
    rows = read_known(open_table(root, name), table_uri(root, name), columns, is_wanted, _of_dates(times))
    return rows.select(list(columns))


def _of_dates(times: Iterable[datetime]) -> str:
    dates = ", ".join(f"'{each}'" for each in sorted({each.date() for each in times}))
    return f"date IN ({dates})"


def by_window(named: pa.Table, column: str) -> dict[datetime, dict[str, list[datetime]]]:
    """Return the possible times of the groups' newest generations, by the start of the window and the group."""
    found: dict[datetime, dict[str, list[datetime]]] = {}
    for start, group, at in zip(*(named[each].to_pylist() for each in ("window_start", "group", column)), strict=True):
        if at is not None:
            found.setdefault(start, {}).setdefault(group, []).append(at)
    return found


def newest(places: Mapping[str, Sequence[datetime]], before: datetime) -> dict[str, datetime]:
    """Return the newest of each group's times before a given time."""
    older = {group: [at for at in times if at < before] for group, times in places.items()}
    return {group: max(times) for group, times in older.items() if times}
