"""Losses of readers that are alive when retention overtakes them: they go on from the log start, so their offset jumps.

A log start ahead of the previous commit proves no loss: the reader may have been past it before the records were
deleted. It is a loss if the reader would have had to be much faster than it and the arrivals were, and if the records
that this cannot explain fit into what was deleted. Log starts are polled once per window: until then the largest jump
of the window waits in the column `pace`. What is called lost is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import Ints, add_saturating, as_double, both, flags, numbers, seconds_between, where
from laggard.lag.followed import was_followed
from laggard.lag.merged import Merged
from laggard.lag.reached import reached_by
from laggard.lag.tick import Tick

FASTER = 1.5  # than it was seen to read, and than what arrives: more it has not read
HALVES_SECONDS = 1800.0  # in which a rate counts for half, while slower ones follow
LATE_INTERVALS = 2.0  # commit intervals without progress, after which a reader is not alive
IMPOSSIBLE = 10.0  # times as fast: the offset was reset, wherever to
PACE = pa.struct(
    [
        ("rate", pa.float64()),
        ("jump_from", pa.int64()),
        ("jump_to", pa.int64()),
        ("jump_seconds", pa.float64()),
        ("jump_excess", pa.int64()),
        ("owed", pa.int64()),
        ("lost", pa.int64()),
    ]
)
_MOST = 2.0**62  # a larger double does not fit into an int64
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Found per row: the new state, records lost and records read, and what the window that ended holds.

    `may_skip`: a jump in it passed records that were deleted. `is_open`: the offset passed a log start, and it is not
    known if all before that had been read.
    """

    pace: pa.Array
    lost: pa.Array
    consumed: pa.Array
    window_lost: pa.Array
    may_skip: pa.Array
    is_open: pa.Array


@dataclass(frozen=True, slots=True)
class _Jumps:
    """Jumps per row: where they began and ended, their seconds, and records beyond what was read; from -1: none."""

    origin: Ints
    to: Ints
    seconds: Doubles
    excess: Ints


def find_overtaken(
    merged: Merged, now: dict[str, Any], rewound_records: Any, is_comparable: Any, tick: Tick
) -> Overtaken:
    """Remember this tick's jump, and settle that of the window which ended if this tick polled log starts."""
    before = merged.before
    is_live = both(is_comparable, was_followed(before, tick), pa.scalar(tick.is_caught_up))
    (was, _), (at, _) = numbers(reached_by(before)), numbers(reached_by(now))
    start, _ = numbers(now["log_start_offset"])
    old_start, _ = numbers(where(is_comparable, before["log_start_offset"]))
    forward = both(is_live, merged.is_new, pc.greater(pc.subtract(reached_by(now), reached_by(before)), 0))
    moved = flags(pc.fill_null(both(forward, pc.equal(rewound_records, 0)), False))
    jump = np.where(moved, at - was, 0)
    rate, kept, owed, window_lost = _pace(before, is_comparable)
    arrival = np.nan_to_num(_doubles(now["arrival_rate"]))
    # from progress to progress: what was read in a stop before may be committed in one step
    elapsed = _doubles(seconds_between(now["progressed_at"], before["progressed_at"]))
    is_timed = moved & (elapsed >= 0) & (not tick.polls_commits)  # a poll does not say when a commit was made
    elapsed = np.fmax(elapsed, 1.0)
    # only one that has more to read all the time shows how fast it can be
    is_busy = at < numbers(before["log_end_offset"])[0]
    usual = np.where(is_busy, rate, np.fmax(rate, arrival))
    excess = np.where(is_timed, np.nan_to_num(jump - FASTER * usual * elapsed), 0.0)
    was_below = moved & (was < old_start)  # what it lost is counted already
    excess = np.where(was_below | np.isnan(rate), 0.0, np.clip(excess, 0.0, _MOST))
    # it may be faster now: that is seen with the log start
    may_skip = ~_had_read_all(before, np.fmax(rate, arrival)) & ~_deletes_itself(merged.keys)
    is_jump = was_below | (is_timed & may_skip & (jump > rate * elapsed))
    known_rate = rate
    seen = np.where(is_timed & is_busy & ~is_jump, jump / elapsed, np.nan)
    rate = np.fmax(seen, np.where(np.isnan(seen), rate, rate * 0.5 ** (elapsed / HALVES_SECONDS)))
    is_first = is_timed & may_skip & np.isnan(known_rate)  # nobody can say how much of it was read
    new = _Jumps(np.where(is_jump | is_first, was, -1), at, elapsed, excess.astype(np.int64))
    is_polled = flags(pc.is_valid(merged.positions["log_start_offset"])) & tick.opens_window
    has_jumped = is_polled & (kept.origin >= 0)
    deleted = np.where(has_jumped, np.maximum(start - kept.origin, 0), 0)
    explained = kept.to - kept.origin - kept.excess
    is_reset = kept.to - kept.origin > IMPOSSIBLE / FASTER * explained
    most = np.where(is_reset, np.maximum(deleted - explained, 0), 0)
    lost = np.where(deleted > 0, np.where(kept.excess <= deleted, kept.excess, most), 0)
    read = np.where(has_jumped & ~(is_reset & (deleted > 0)), kept.to - kept.origin - deleted, 0)
    # surely read: what was not deleted; by one that was not busy this says nothing of how fast it can be
    rate = np.where(np.isnan(known_rate) | (read <= 0), rate, np.fmax(rate, read / kept.seconds))
    net = jump - np.where(was_below, np.minimum(old_start, at) - was, 0) - lost - owed
    passed = is_polled & _passed(before, is_comparable, start, at) & ~_deletes_itself(merged.keys)
    is_open = (passed & ~_kept_up(before, np.fmax(rate, arrival)) | (deleted > 0)) & (lost == 0)
    behind = np.where(flags(pc.fill_null(is_live, False)), _lost_behind(before, now, rate, moved), 0)
    jumps = _larger(kept, new, is_polled)
    has_jump = jumps.origin >= 0
    pace = pa.StructArray.from_arrays(
        [
            pa.array(rate, mask=np.isnan(rate)),
            pa.array(jumps.origin, mask=~has_jump),
            pa.array(jumps.to, mask=~has_jump),
            pa.array(jumps.seconds, mask=~has_jump),
            pa.array(jumps.excess, mask=~has_jump),
            pa.array(np.maximum(-net, 0)),
            pa.array(behind if tick.opens_window else window_lost + behind),
        ],
        fields=list(PACE),
    )
    return Overtaken(
        pace,
        lost=pa.array(lost + behind),
        consumed=pa.array(np.maximum(net, 0)),
        window_lost=pa.array(window_lost + lost),
        may_skip=pa.array(is_open | (deleted > 0)),
        is_open=pa.array(is_open),
    )


def _lost_behind(before: Any, now: dict[str, Any], rate: Doubles, moved: Any) -> Ints:
    """Records that the log start passed since the tick before, and that the reader had not reached.

    A reader is ahead of its commit by what it reads until the next one. How far, is unknown of one that is alive and
    was not seen to read while it was behind; one that stopped had kept up before.
    """
    interval = _doubles(now["commit_interval_seconds"])
    still = _doubles(seconds_between(now["sampled_at"], now["progressed_at"]))
    is_alive = moved | (still < LATE_INTERVALS * interval)
    usual = np.where(np.isnan(rate), _doubles(now["arrival_rate"]), rate)
    ahead = np.where(is_alive & np.isnan(rate), _MOST, np.nan_to_num(FASTER * usual * interval))
    start = now["log_start_offset"]
    # offsets may be near 2^63
    reached = add_saturating(now["committed_offset"], pa.array(np.clip(ahead, 0.0, _MOST).astype(np.int64)))
    known = pc.max_element_wise(before["log_start_offset"], reached, skip_nulls=False)
    return np.maximum(numbers(pc.subtract(start, known))[0], 0)


def at_window_end(rows: pa.Table, found: Overtaken) -> pa.Table:
    """Status rows of the tick before, as windows are closed on them, with what became known of their jumps.

    A window that may hold a jump over deleted records does not say how much was consumed: it has no base.
    """
    size = rows.num_rows  # those that were known before come first
    lost, may_skip, is_open = (each.slice(0, size) for each in (found.window_lost, found.may_skip, found.is_open))
    place, base = (rows.schema.get_field_index(name) for name in ("lost_records", "base_committed_offset"))
    known = where(
        pc.or_(pc.invert(is_open), pc.greater(lost, 0)),
        pc.max_element_wise(rows["lost_records"], lost, skip_nulls=False),
    )
    state = pc.if_else(pc.fill_null(pc.greater(rows["lost_records"], 0), False), rows["lost_records"], known)
    rows = rows.set_column(place, rows.schema.field(place), state)
    return rows.set_column(base, rows.schema.field(base), where(pc.invert(may_skip), rows["base_committed_offset"]))


def _pace(before: Any, is_comparable: Any) -> tuple[Doubles, _Jumps, Ints, Ints]:
    """Rate (NaN: unknown), the jump that waits, records owed, and those lost in the window, as they were kept."""
    column = before["pace"]
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def kept(name: str) -> Any:
        return where(is_comparable, pc.struct_field(column, name))

    origin, has_origin = numbers(kept("jump_from"))
    jumps = _Jumps(
        np.where(has_origin, origin, -1),
        numbers(kept("jump_to"))[0],
        np.fmax(_doubles(kept("jump_seconds")), 1.0),
        numbers(kept("jump_excess"))[0],
    )
    return _doubles(kept("rate")), jumps, numbers(kept("owed"))[0], numbers(kept("lost"))[0]


def _larger(kept: _Jumps, new: _Jumps, is_settled: Any) -> _Jumps:
    """The faster one of two jumps; the new one where the other is settled."""
    faster = (new.to - new.origin) * kept.seconds > (kept.to - kept.origin) * new.seconds
    is_new = is_settled | (new.origin >= 0) & ((kept.origin < 0) | faster)
    return _Jumps(
        np.where(is_new, new.origin, kept.origin),
        np.where(is_new, new.to, kept.to),
        np.where(is_new, new.seconds, kept.seconds),
        np.where(is_new, new.excess, kept.excess),
    )


def _passed(before: Any, is_comparable: Any, start: Ints, at: Ints) -> Any:
    """True if the log start is ahead of where the window began, and the offset is not behind it."""
    base, has_base = numbers(where(is_comparable, before["base_committed_offset"]))
    return has_base & (base < start) & (at >= start)


def _kept_up(before: Any, rate: Doubles) -> Any:
    """True if at a commit of the window no more was left than is read until the next one: it had read all there was."""
    return _is_little(pc.coalesce(before["window_lag_envelope"], before["window_lag_min"]), before, rate)


def _had_read_all(before: Any, rate: Doubles) -> Any:
    """True if at the tick before no more was left: what is deleted since was hardly written, so it was read before."""
    return _is_little(before["lag"], before, rate)


def _is_little(left: Any, before: Any, rate: Doubles) -> Any:
    interval = np.fmax(_doubles(before["commit_interval_seconds"]), 1.0)
    return _doubles(left) <= np.nan_to_num(FASTER * rate * interval)


def _deletes_itself(keys: Any) -> Any:
    """True for repartition topics of Kafka Streams, named after the group, of which it deletes only what it read.

    Their retention is endless, so that it cannot overtake anybody, however fast the reader becomes.
    """
    found = flags(pc.ends_with(keys["topic"], "-repartition"))
    for row in np.flatnonzero(found):
        found[row] = keys["topic"][row].as_py().startswith(f"{keys['group'][row].as_py()}-")
    return found


def _doubles(column: Any) -> Doubles:
    """Values with NaN if unknown."""
    found: Doubles = pc.fill_null(as_double(column), float("nan")).to_numpy(zero_copy_only=False).astype(np.float64)
    return found
