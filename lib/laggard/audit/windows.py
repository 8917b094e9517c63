"""Check rows of the window tables by themselves and beside the next window of the same partition."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.audit.excuses import Excuses
from laggard.audit.result import Tallies, Tally, differ
from laggard.lag.arrays import key_codes
from laggard.tables.schemas import LAG_WINDOWS, PARTITION_STATUS, Table

COLUMNS = (
    *LAG_WINDOWS.key, "window_end", "status", "batch_id", "sampled_at", "commit_source_partition",
    "commit_source_offset", "committed_offset", "log_end_offset", "log_start_offset", "ahead_records", "ticks",
    "ok_ticks", "lag", "lag_min", "lag_max", "produced", "consumed", "commits", "noop_commits", "headroom_records",
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
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits well mixed: 2^64 by the golden ratio
Hashes = npt.NDArray[np.uint64]
SourceTo = Callable[[int, int], "int | None"]  # batch and offsets partition to the position that was read up to


def check_rows(rows: pa.Table, table: Table, tallies: Tallies) -> None:
    """I5 and I8: compare columns of each row of `lag_windows` or `partition_status` with one another."""

    def unequal(tally: Tally, what: str, expected: Any) -> None:
        tally.add(rows, differ(rows[what], expected), table.name, table.key, what, expected, rows[what])

    is_ok = pc.equal(rows["status"], "ok")
    committed, end, start = rows["committed_offset"], rows["log_end_offset"], rows["log_start_offset"]
    behind = pc.max_element_wise(pc.subtract(end, committed), 0, skip_nulls=False)
    lag, derived = tallies["I5"], tallies["I8"]
    lag.checked += rows.num_rows
    unequal(lag, "lag", pc.if_else(is_ok, behind, pa.scalar(None, pa.int64())))
    lag.add(rows, pc.and_(is_ok, pc.is_null(behind)), table.name, table.key, "status", "not ok: no offset", "ok")
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
            derived.add(rows, bad, table.name, table.key, f"{less}, at most {more}", rows[more], rows[less])


def check_neighbours(
    before: pa.Table | None, rows: pa.Table, table: Table, tallies: Tallies, excuses: Excuses
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """I1 and I3 between rows of one key in the order of their windows.

    `before`: the last row of each key so far. Gives the same after these rows, and the pairs as two parallel tables.
    """
    kept = rows.select(
        [name for name in (*table.key, "window_end", *_COMMIT, *np.ravel(_MOVES)) if name in rows.column_names]
    )
    if before is not None:
        kept = pa.concat_tables([before, kept])
    (codes,) = key_codes([kept], [name for name in table.key if name != "window_start"])
    order = np.lexsort((pc.cast(kept["window_start"], pa.int64()).to_numpy(), codes))
    is_pair = codes[order][1:] == codes[order][:-1]
    earlier, later = (kept.take(pa.array(each[is_pair])) for each in (order[:-1], order[1:]))
    tallies["I1"].checked += later.num_rows
    is_double = pc.equal(later["window_start"], earlier["window_start"])
    tallies["I1"].add(later, is_double, table.name, table.key, "rows", 1, "2 or more")
    follows = pc.equal(later["window_start"], earlier["window_end"])
    if "committed_offset" in kept.column_names:  # a row without an offset ends with the subscription, and may return
        follows = pc.and_(follows, pc.is_valid(earlier["committed_offset"]))
    for column, offset in _MOVES:
        if column in kept.column_names:
            moved = pc.subtract(later[offset], earlier[offset])
            is_equal = pc.equal(later[column], moved)
            tallies["I3"].checked += _count(pc.and_(follows, pc.is_valid(is_equal)))
            bad = pc.fill_null(pc.and_(follows, pc.invert(is_equal)), False).to_numpy().copy()
            for place in np.flatnonzero(bad).tolist():
                bad[place] = not excuses.cut_short(_row(earlier, place))
            tallies["I3"].add(later, pa.array(bad), table.name, table.key, column, moved, later[column])
            _check_unknown(
                later.filter(pc.and_(pc.invert(follows), pc.is_valid(later[column]))),
                table,
                column,
                tallies["I3"],
                excuses,
            )
    falls = pc.less(rows["produced"], 0)
    tallies["I3"].add(rows, falls, table.name, table.key, "produced", "0 or more, or unknown", rows["produced"])
    last = np.append(~is_pair, True) if len(order) else np.zeros(0, bool)
    return kept.take(pa.array(order[last])), earlier, later


def _check_unknown(rows: pa.Table, table: Table, column: str, tally: Tally, excuses: Excuses) -> None:
    """I3: of rows after a hole none knows what moved, if no tick was in the window before it."""
    for row in rows.to_pylist():
        end = row["window_start"]
        if excuses.is_dark(end - (row["window_end"] - end), end):
            key = {name: row[name] for name in table.key}
            tally.refute(table.name, key, column, None, row[column])


def check_order(earlier: pa.Table, later: pa.Table, tallies: Tallies, excuses: Excuses) -> None:
    """I2 and I4 between windows of `lag_windows` that follow each other: no hole, and no commit that goes back."""
    check_holes(earlier, later["window_start"], tallies["I2"], excuses)
    falls = pc.and_(
        pc.less(later["commit_source_offset"], earlier["commit_source_offset"]),
        pc.equal(later["commit_source_partition"], earlier["commit_source_partition"]),
    )
    tallies["I4"].checked += _count(pc.is_valid(falls))
    for place in pc.indices_nonzero(pc.fill_null(falls, False)).to_pylist():
        row, end = _row(earlier, place), later["window_end"][place].as_py()
        if not excuses.gaps(row, row["window_start"], end):
            named = {name: later[name][place].as_py() for name in LAG_WINDOWS.key}
            sides = (each["commit_source_offset"][place].as_py() for each in (earlier, later))
            tallies["I4"].refute(LAG_WINDOWS.name, named, "commit_source_offset, at least", *sides)


def check_newest(last: pa.Table, living: pa.Table, closed_to: datetime, tally: Tally, excuses: Excuses) -> None:
    """I2: partitions that have a row in `partition_status` have windows up to the newest one, which begins then."""
    codes, alive = key_codes([last, living], PARTITION_STATUS.key)
    order = np.lexsort((pc.cast(last["window_start"], pa.int64()).to_numpy(), codes))
    is_last = np.append(codes[order][1:] != codes[order][:-1], True)  # of two topics of one name the one of now
    kept = last.take(pa.array(order[is_last & np.isin(codes[order], alive)]))
    lengths = pc.subtract(kept["window_end"], kept["window_start"])
    check_holes(kept, pc.add(pa.scalar(closed_to, kept["window_start"].type), lengths), tally, excuses)


def check_holes(rows: pa.Table, ends: Any, tally: Tally, excuses: Excuses) -> None:
    """I2: no window is missing without a reason between rows of `lag_windows` and moments parallel to them."""
    tally.checked += rows.num_rows
    # a row without an offset lasts as long as the partition is assigned or subscribed
    is_hole = pc.and_(pc.greater(ends, rows["window_end"]), pc.is_valid(rows["committed_offset"]))
    for place in pc.indices_nonzero(is_hole).to_pylist():
        row, end = _row(rows, place), ends[place].as_py()
        if not excuses.covers(row, end):
            named = {name: row[name] for name in LAG_WINDOWS.key} | {"window_start": row["window_end"]}
            tally.refute(LAG_WINDOWS.name, named, "windows", f"each up to {end}", "none, and no recorded reason")


def check_source(rows: pa.Table, tally: Tally, read_to: SourceTo) -> None:
    """I4: a commit lies before the position that the batch of its row had read up to."""
    wanted = rows.filter(pc.is_valid(rows["commit_source_partition"])).select(["batch_id", *_COMMIT])
    newest = wanted.group_by(["batch_id", "commit_source_partition"]).aggregate([("commit_source_offset", "max")])
    for row in newest.to_pylist():
        end, found = read_to(row["batch_id"], row["commit_source_partition"]), row["commit_source_offset_max"]
        if end is not None and found is not None and found >= end:
            key = {name: row[name] for name in ("batch_id", "commit_source_partition")}
            tally.refute(LAG_WINDOWS.name, key, "commit_source_offset, below", end, found)


def hash_rows(rows: pa.RecordBatch) -> Hashes:
    """A number for each row; those of equal rows are equal."""
    found = np.zeros(rows.num_rows, np.uint64)
    for values in rows.columns:
        codes = values.dictionary_encode("encode")
        plain = codes.dictionary  # bytes and numbers: Python cannot hold each text and time
        if pa.types.is_string(plain.type) or pa.types.is_timestamp(plain.type):
            plain = plain.cast(pa.binary() if pa.types.is_string(plain.type) else pa.int64())
        hashes = np.array([hash(each) for each in plain.to_pylist()], np.int64).view(np.uint64)
        found = (found ^ hashes[codes.indices.to_numpy()]) * _MIX
    return found


def check_unique(rows: pa.Table, table: Table, tally: Tally) -> None:
    """I1: no key stands twice in these rows, which have nothing but a key and were counted before."""
    (codes,) = key_codes([rows], rows.column_names)
    _, first, times = np.unique(codes, return_index=True, return_counts=True)
    doubled = rows.take(pa.array(first[times > 1]))
    is_bad = pa.array(np.ones(doubled.num_rows, bool))
    tally.add(doubled, is_bad, table.name, rows.column_names, "rows", 1, pa.array(times[times > 1]))


def _row(rows: pa.Table, place: int) -> dict[str, Any]:
    row: dict[str, Any] = rows.slice(place, 1).to_pylist()[0]
    return row


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)
