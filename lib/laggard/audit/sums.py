"""I6: fold rows of partitions, and compare the sums with those that the tables of groups and topics hold."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from laggard.audit.result import Tally, differ
from laggard.tables.schemas import GROUP_STATUS, Table

TOTAL = "partitions_total"
_PARTITIONS = " of partitions"


def check_sums(partitions: pa.Table, stored: pa.Table, by: Sequence[str], table: Table, tally: Tally) -> None:
    """Compare each sum that a table of groups or topics stores with the fold of its partitions, grouped by `by`.

    Rows of `partition_status` are all that a group has. A partition joins `lag_windows` with its first whole window,
    so the row of a window may count more of them than there are, and then no sum is compared. Nor are two topics of one
    name, one of them recreated, which are one row of `group_windows`. `by` holds `sampled_at` where a partition that
    ended in the window is not in the row of its group.
    """
    is_whole = table is GROUP_STATUS
    join = "full outer" if is_whole else "inner"
    met = stored.join(_folded(partitions, by), list(by), join_type=join, right_suffix=_PARTITIONS)
    counted = pc.fill_null(met[TOTAL + _PARTITIONS], 0)  # a group of members only
    tally.checked += met.num_rows
    if is_whole or "sampled_at" in by:
        is_short = differ(met[TOTAL], counted) if is_whole else pc.less(met[TOTAL], counted)
        tally.add(met, is_short, table.name, table.key, TOTAL, counted, met[TOTAL])
    is_equal = pc.and_(pc.equal(met[TOTAL], counted), pc.less(pc.fill_null(met["ids"], 0), 2))
    met = met.filter(is_equal)
    for name in stored.column_names:
        beside = name + _PARTITIONS
        if beside in met.column_names and name != TOTAL:
            sums = pc.fill_null(met[beside], 0) if name.startswith("partitions_") else met[beside]
            tally.add(met, differ(met[name], sums), table.name, table.key, name, sums, met[name])
    if "lag" in met.column_names:
        whole = pc.if_else(pc.equal(met["status"], "ok"), met["lag_known"], pa.scalar(None, pa.int64()))
        tally.add(met, differ(met["lag"], whole), table.name, table.key, "lag", whole, met["lag"])


def _folded(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """Sums over partitions, under the names that the tables of groups give them."""
    is_ok, status = pc.equal(rows["status"], "ok"), rows["status"]
    lag = pc.if_else(is_ok, rows["lag"], pa.scalar(None, pa.int64()))
    no_commit = pc.equal(status, "no_commit")
    columns = {
        "lag_known": (lag, "sum"),
        "lag_max": (lag, "max"),
        "partitions_ok": (pc.cast(is_ok, pa.int64()), "sum"),
        "partitions_no_commit": (pc.cast(no_commit, pa.int64()), "sum"),
        "partitions_unknown": (pc.cast(pc.and_(pc.invert(is_ok), pc.invert(no_commit)), pa.int64()), "sum"),
        TOTAL: (pa.array([1] * rows.num_rows, pa.int64()), "sum"),
        **{name: (rows[name], "sum") for name in ("commits", "noop_commits") if name in rows.column_names},
    }
    # of a row per topic, the ids of its name; of a row per group 1
    ids = rows["topic_id"] if "topic" in by else pa.array([""] * rows.num_rows)
    table = pa.table(
        {name: rows[name] for name in by} | {name: each for name, (each, _) in columns.items()} | {"ids": ids}
    )
    found = table.group_by(list(by)).aggregate(
        [(name, how) for name, (_, how) in columns.items()] + [("ids", "count_distinct")]
    )
    return found.select(
        [*by, *(f"{name}_{how}" for name, (_, how) in columns.items()), "ids_count_distinct"]
    ).rename_columns([*by, *columns, "ids"])
