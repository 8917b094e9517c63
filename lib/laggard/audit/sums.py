"""I6: fold rows of partitions, and compare the sums with those that the tables of groups and topics hold."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from laggard.audit.result import Tally, differ
from laggard.tables.schemas import Table

TOTAL = "partitions_total"
_PARTITIONS = " of partitions"


def check_sums(partitions: pa.Table, stored: pa.Table, by: Sequence[str], table: Table, tally: Tally) -> None:
    """Compare each sum that a table of groups or topics stores with the fold of its partitions, grouped by `by`.

    A partition joins `lag_windows` with its first whole window, so a group whose number of partitions differs is not
    compared; nor are two topics of one name, one of them recreated, which are one row of `group_windows`.
    """
    met = stored.join(_folded(partitions, by), list(by), join_type="inner", right_suffix=_PARTITIONS)
    met = met.filter(pc.and_(pc.equal(met[TOTAL], met[TOTAL + _PARTITIONS]), pc.less(met["ids"], 2)))
    tally.checked += met.num_rows
    for name in stored.column_names:
        beside = name + _PARTITIONS
        if beside in met.column_names and name != TOTAL:
            tally.add(met, differ(met[name], met[beside]), table.name, by, name, met[beside], met[name])
    if "lag" in met.column_names:
        whole = pc.if_else(pc.equal(met["status"], "ok"), met["lag_known"], pa.scalar(None, pa.int64()))
        tally.add(met, differ(met["lag"], whole), table.name, by, "lag", whole, met["lag"])


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
