"""Checks of partition rows by themselves, beside the next window, and against their sums.

The next window is the one of the same partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.audit.known_gaps import KnownGaps
from laggard.audit.result import Tallies, Tally, differ
from laggard.lag.arrays import key_codes, where
from laggard.tables.schema.schemas import GROUP_STATUS, LAG_WINDOWS, PARTITION_STATUS, Table

COLUMNS = (
    *LAG_WINDOWS.key, "window_end", "status", "batch_id", "sampled_at", "commit_source_partition",
    "commit_source_offset", "committed_offset", "log_end_offset", "log_start_offset",
    "ahead_records", "ticks",
    "ok_ticks", "lag", "lag_min", "lag_max", "produced", "consumed", "commits", "noop_commits",
    "headroom_records",
    "matured_records", "late_records",
)  # fmt: skip
_ORDERED = (  # pairs of columns, the first at most the second
    ("ok_ticks", "ticks"),
    ("noop_commits", "commits"),
    ("late_records", "matured_records"),
    ("lag_min", "lag_max"),
    ("lag_min", "lag"),
    ("lag", "lag_max"),
)
_MOVES = (("produced", "log_end_offset"), ("consumed", "committed_offset"))
_COMMIT = ("commit_source_partition", "commit_source_offset")
TOTAL = "partitions_total"
_PARTITIONS = " of partitions"
# batch and offsets partition to the position that was read up to
SourceTo = Callable[[int, int], "int | None"]


def check_rows(rows: pa.Table, table: Table, tallies: Tallies) -> None:
    """Check I5 and I8: compare columns within each row of `lag_windows` or `partition_status`."""

    def unequal(tally: Tally, column: str, expected: Any) -> None:
        tally.add(
            rows,
            differ(rows[column], expected),
            table.name,
            table.key,
            column,
            expected,
            rows[column],
        )

    is_ok = pc.equal(rows["status"], "ok")
    committed, end, start = (
        rows["committed_offset"],
        rows["log_end_offset"],
        rows["log_start_offset"],
    )
    behind = pc.max_element_wise(pc.subtract(end, committed), 0, skip_nulls=False)
    lag, derived = tallies["I5"], tallies["I8"]
    lag.checked += rows.num_rows
    unequal(lag, "lag", where(is_ok, behind))
    lag.add(
        rows,
        pc.and_(is_ok, pc.is_null(behind)),
        table.name,
        table.key,
        "status",
        "not ok: no offset",
        "ok",
    )
    derived.checked += rows.num_rows
    ahead = pc.max_element_wise(pc.subtract(committed, end), 0, skip_nulls=False)
    is_stale = pc.equal(rows["status"], "stale")  # nothing of it is computed
    unequal(derived, "ahead_records", pc.if_else(is_stale, rows["ahead_records"], ahead))
    is_below = pc.and_(is_ok, pc.less(committed, start))
    derived.add(rows, is_below, table.name, table.key, "status", "below_log_start", "ok")
    if "headroom_records" in rows.column_names:
        unequal(derived, "headroom_records", pc.subtract(committed, start))
    for less, more in _ORDERED:
        if {less, more} <= set(rows.column_names):
            bad = pc.greater(rows[less], rows[more])
            derived.add(
                rows, bad, table.name, table.key, f"{less}, at most {more}", rows[more], rows[less]
            )


def check_neighbours(
    before: pa.Table | None, rows: pa.Table, table: Table, tallies: Tallies, known_gaps: KnownGaps
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Check I1 and I3 between rows of one key in the order of their windows.

    `before`: the last row of each key so far. Gives the same after these rows, and the pairs as two
    parallel tables.
    """
    names = (*table.key, "window_end", *_COMMIT, *np.ravel(_MOVES))
    compared = rows.select([name for name in names if name in rows.column_names])
    if before is not None:
        compared = pa.concat_tables([before, compared])
    last, earlier, later = _pairs(compared, table)
    tallies["I1"].checked += later.num_rows
    is_double = pc.equal(later["window_start"], earlier["window_start"])
    tallies["I1"].add(later, is_double, table.name, table.key, "rows", 1, "2 or more")
    follows = pc.equal(later["window_start"], earlier["window_end"])
    # a row without an offset ends with the subscription, and may return
    if "committed_offset" in compared.column_names:
        follows = pc.and_(follows, pc.is_valid(earlier["committed_offset"]))
    for column, offset in _MOVES:
        if column in compared.column_names:
            moved = pc.subtract(later[offset], earlier[offset])
            is_equal = pc.equal(later[column], moved)
            tallies["I3"].checked += _count(pc.and_(follows, pc.is_valid(is_equal)))
            bad = pc.fill_null(pc.and_(follows, pc.invert(is_equal)), False).to_numpy().copy()
            for index in np.flatnonzero(bad).tolist():
                bad[index] = not known_gaps.cut_short(_row(earlier, index))
            tallies["I3"].add(
                later, pa.array(bad), table.name, table.key, column, moved, later[column]
            )
            loose = later.filter(pc.and_(pc.invert(follows), pc.is_valid(later[column])))
            _check_unknown(loose, table, column, tallies["I3"], known_gaps)
    falls = pc.less(rows["produced"], 0)
    tallies["I3"].add(
        rows, falls, table.name, table.key, "produced", "0 or more, or unknown", rows["produced"]
    )
    return last, earlier, later


def _pairs(rows: pa.Table, table: Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return the last row of each key but its time, and consecutive rows as parallel tables.

    Consecutive rows are rows of one key that follow each other.
    """
    (codes,) = key_codes([rows], [name for name in table.key if name != "window_start"])
    order = np.lexsort((pc.cast(rows["window_start"], pa.int64()).to_numpy(), codes))
    is_pair = codes[order][1:] == codes[order][:-1]
    is_last = np.append(~is_pair, True)[: len(order)]  # of no rows there is none
    pairs = (order[is_last], order[:-1][is_pair], order[1:][is_pair])
    return tuple(rows.take(pa.array(places)) for places in pairs)


def _check_unknown(
    rows: pa.Table, table: Table, column: str, tally: Tally, known_gaps: KnownGaps
) -> None:
    """Check I3: after a hole, `column` is null in a row if no tick was in the window before it."""
    for row in rows.to_pylist():
        end = row["window_start"]
        if known_gaps.is_dark(end - (row["window_end"] - end), end):
            key = {name: row[name] for name in table.key}
            tally.refute(table.name, key, column, None, row[column])


def check_order(
    earlier: pa.Table, later: pa.Table, tallies: Tallies, known_gaps: KnownGaps
) -> None:
    """Check I2 and I4 between consecutive windows of `lag_windows`.

    There is no hole, and no commit that goes back.
    """
    check_holes(earlier, later["window_start"], tallies["I2"], known_gaps)
    falls = pc.and_(
        pc.less(later["commit_source_offset"], earlier["commit_source_offset"]),
        pc.equal(later["commit_source_partition"], earlier["commit_source_partition"]),
    )
    tallies["I4"].checked += _count(pc.is_valid(falls))
    for index in pc.indices_nonzero(pc.fill_null(falls, False)).to_pylist():
        row, end = _row(earlier, index), later["window_end"][index].as_py()
        if not known_gaps.gaps(row, row["window_start"], end):
            named = {name: later[name][index].as_py() for name in LAG_WINDOWS.key}
            sides = (rows["commit_source_offset"][index].as_py() for rows in (earlier, later))
            tallies["I4"].refute(LAG_WINDOWS.name, named, "commit_source_offset, at least", *sides)


def check_newest(
    last: pa.Table, living: pa.Table, closed_to: datetime, tally: Tally, known_gaps: KnownGaps
) -> None:
    """Check I2: partitions in `partition_status` have windows up to `closed_to`.

    The last of these windows begins at `closed_to`.
    """
    codes, alive = key_codes([last, living], PARTITION_STATUS.key)
    order = np.lexsort((pc.cast(last["window_start"], pa.int64()).to_numpy(), codes))
    # of two topics of one name the one of now
    is_last = np.append(codes[order][1:] != codes[order][:-1], True)
    newest = last.take(pa.array(order[is_last & np.isin(codes[order], alive)]))
    lengths = pc.subtract(newest["window_end"], newest["window_start"])
    check_holes(
        newest,
        pc.add(pa.scalar(closed_to, newest["window_start"].type), lengths),
        tally,
        known_gaps,
    )


def check_holes(rows: pa.Table, ends: Any, tally: Tally, known_gaps: KnownGaps) -> None:
    """Check I2: no window is missing without a reason.

    The windows are those between a row of `lag_windows` and its moment in `ends`.
    """
    tally.checked += rows.num_rows
    # a row without an offset lasts as long as the partition is assigned or subscribed
    is_hole = pc.and_(pc.greater(ends, rows["window_end"]), pc.is_valid(rows["committed_offset"]))
    for index in pc.indices_nonzero(is_hole).to_pylist():
        row, end = _row(rows, index), ends[index].as_py()
        if not known_gaps.covers(row, end):
            named = {name: row[name] for name in LAG_WINDOWS.key}
            named["window_start"] = row["window_end"]
            tally.refute(
                LAG_WINDOWS.name,
                named,
                "windows",
                f"each up to {end}",
                "none, and no recorded reason",
            )


def check_source(rows: pa.Table, tally: Tally, read_to: SourceTo) -> None:
    """Check I4: a commit lies before the position up to which the batch of its row had read."""
    wanted = rows.filter(pc.is_valid(rows["commit_source_partition"])).select(
        ["batch_id", *_COMMIT]
    )
    newest = wanted.group_by(["batch_id", "commit_source_partition"]).aggregate(
        [("commit_source_offset", "max")]
    )
    for row in newest.to_pylist():
        end, offset = (
            read_to(row["batch_id"], row["commit_source_partition"]),
            row["commit_source_offset_max"],
        )
        if end is not None and offset is not None and offset >= end:
            key = {name: row[name] for name in ("batch_id", "commit_source_partition")}
            tally.refute(LAG_WINDOWS.name, key, "commit_source_offset, below", end, offset)


def check_sums(
    partitions: pa.Table, stored: pa.Table, by: Sequence[str], table: Table, tally: Tally
) -> None:
    """Compare each stored sum of groups or topics with the fold of its partitions by `by` (I6).

    Rows of `partition_status` are all that a group has. A partition joins `lag_windows` with its
    first whole window, so the row of a window may count more of them than there are, and then no
    sum is compared. Nor are two topics of one name, one of them recreated, which are one row of
    `group_windows`. `by` holds `sampled_at` where a partition that ended in the window is not in
    the row of its group.
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
        whole = where(pc.equal(met["status"], "ok"), met["lag_known"])
        tally.add(met, differ(met["lag"], whole), table.name, table.key, "lag", whole, met["lag"])


def _folded(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return sums over partitions, under the column names of the group tables."""
    is_ok, status = pc.equal(rows["status"], "ok"), rows["status"]
    lag = where(is_ok, rows["lag"])
    no_commit = pc.equal(status, "no_commit")
    columns = {
        "lag_known": (lag, "sum"),
        "lag_max": (lag, "max"),
        "partitions_ok": (pc.cast(is_ok, pa.int64()), "sum"),
        "partitions_no_commit": (pc.cast(no_commit, pa.int64()), "sum"),
        "partitions_unknown": (
            pc.cast(pc.and_(pc.invert(is_ok), pc.invert(no_commit)), pa.int64()),
            "sum",
        ),
        TOTAL: (pa.array([1] * rows.num_rows, pa.int64()), "sum"),
        **{
            name: (rows[name], "sum")
            for name in ("commits", "noop_commits")
            if name in rows.column_names
        },
    }
    # of a row per topic, the ids of its name; of a row per group 1
    ids = rows["topic_id"] if "topic" in by else pa.array([""] * rows.num_rows)
    table = pa.table(
        {name: rows[name] for name in by}
        | {name: values for name, (values, _) in columns.items()}
        | {"ids": ids}
    )
    sums = table.group_by(list(by)).aggregate(
        [(name, how) for name, (_, how) in columns.items()] + [("ids", "count_distinct")]
    )
    return sums.select(
        [*by, *(f"{name}_{how}" for name, (_, how) in columns.items()), "ids_count_distinct"]
    ).rename_columns([*by, *columns, "ids"])


def _row(rows: pa.Table, index: int) -> dict[str, Any]:
    row: dict[str, Any] = rows.slice(index, 1).to_pylist()[0]
    return row


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)
