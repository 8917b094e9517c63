"""Losses of live readers that retention overtakes: they go on from the log start.

Their offset jumps to the log start.

A log start ahead of the previous commit proves no loss: the reader may have been past it before
the records were deleted. It is a loss if the reader would have had to be much faster than it and
the arrivals were, and if the records that this cannot explain fit into what was deleted. Log
starts are polled once per window: until then the largest jump of the window waits in the column
`pace`. What is called lost is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    Doubles,
    Flags,
    Ints,
    add_saturating,
    both,
    doubles,
    flags,
    key_codes,
    numbers,
    seconds_between,
    tuples,
    where,
)
from laggard.lag.loss.pace import Jumps, Pace, larger, read_pace, to_column
from laggard.lag.merged import Merged
from laggard.lag.reached import reached_by
from laggard.lag.tick import Tick, was_followed

FASTER = 1.5  # than it was seen to read, and than what arrives: more it has not read
HALVES_SECONDS = 1800.0  # in which a rate counts for half, while slower ones follow
LATE_INTERVALS = 2.0  # commit intervals without progress, after which a reader is not alive
IMPOSSIBLE = 10.0  # times as fast: the offset was reset, wherever to
_TOPIC = ("group", "topic")
_MOST = 2.0**62  # a larger double does not fit into an int64


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Results per row: new state, records lost, records read, and values of the ended window.

    `may_skip`: a jump in it passed records that were deleted. `is_open`: the offset passed a log
    start, and it is not known if all before that had been read.
    """

    pace: pa.Array
    lost: pa.Array
    consumed: pa.Array
    window_lost: pa.Array
    may_skip: pa.Array
    is_open: pa.Array


@dataclass(frozen=True, slots=True)
class _Step:
    """The way of each offset since the tick before, 0 records if it did not move forward.

    `seconds` are those from progress to progress: what was read in a stop before may be committed
    in one step. `is_timed`: they are known. `was_below`: it began below the log start, and what it
    lost is counted already.
    """

    was: Ints
    at: Ints
    moved: Flags
    records: Ints
    seconds: Doubles
    is_timed: Flags
    was_below: Flags
    counted: Ints  # records, of those the step passed


@dataclass(frozen=True, slots=True)
class _Settled:
    """Jumps of the ended window, settled by the first log start of the new window.

    Records are counted as deleted ahead, lost, or surely read.
    """

    deleted: Ints
    lost: Ints
    read: Ints


def find_overtaken(
    merged: Merged, now: dict[str, Any], rewound_records: Any, is_comparable: Any, tick: Tick
) -> Overtaken:
    """Store this tick's jump; settle the ended window's jump if this tick polled log starts."""
    before = merged.before
    is_live = both(is_comparable, was_followed(before, tick), pa.scalar(tick.is_caught_up))
    old_pace = read_pace(before, is_comparable)
    step = _step(merged, now, both(is_live, pc.equal(rewound_records, 0)), is_comparable, tick)
    arrival = np.nan_to_num(doubles(now["arrival_rate"]))
    is_overtakable = ~_deletes_itself(merged.keys)
    new = _jumps(step, before, old_pace.rate, arrival, is_overtakable)
    rate = _shown_rate(step, before, old_pace.rate, new)
    start, _ = numbers(now["log_start_offset"])
    is_polled = flags(pc.is_valid(merged.positions["log_start_offset"])) & tick.opens_window
    settled = _settle(old_pace.jumps, start, is_polled)
    # surely read: what was not deleted; by one that was not busy this says nothing of how fast it
    # can be
    is_slower = np.isnan(old_pace.rate) | (settled.read <= 0)
    rate = np.where(is_slower, rate, np.fmax(rate, settled.read / old_pace.jumps.seconds))
    passed = is_polled & _passed(before, is_comparable, start, step.at) & is_overtakable
    # at a commit of the window no more was left than is read until the next one: it had read all
    # there was
    least = pc.coalesce(before["window_lag_envelope"], before["window_lag_min"])
    kept_up = _is_little(least, before, np.fmax(rate, arrival))
    is_open = (passed & ~kept_up | (settled.deleted > 0)) & (settled.lost == 0)
    behind = np.where(
        flags(pc.fill_null(is_live, False)), _lost_behind(before, now, rate, step.moved), 0
    )
    net = step.records - step.counted - settled.lost - old_pace.owed
    in_window = behind
    if not tick.opens_window:
        in_window = old_pace.lost + behind
    pace = Pace(rate, larger(old_pace.jumps, new, is_polled), np.maximum(-net, 0), in_window)
    return Overtaken(
        to_column(pace),
        lost=pa.array(settled.lost + behind),
        consumed=pa.array(np.maximum(net, 0)),
        window_lost=pa.array(old_pace.lost + settled.lost),
        may_skip=pa.array(is_open | (settled.deleted > 0)),
        is_open=pa.array(is_open),
    )


def _step(
    merged: Merged, now: dict[str, Any], is_certain: Any, is_comparable: Any, tick: Tick
) -> _Step:
    """Take the step of each offset: 0 records unless it is certain that it only went forward."""
    before = merged.before
    (was, _), (at, _) = numbers(reached_by(before)), numbers(reached_by(now))
    old_start, _ = numbers(where(is_comparable, before["log_start_offset"]))
    is_forward = pc.greater(pc.subtract(reached_by(now), reached_by(before)), 0)
    moved = flags(pc.fill_null(both(is_certain, merged.is_new, is_forward), False))
    seconds = doubles(seconds_between(now["progressed_at"], before["progressed_at"]))
    # a poll does not say when a commit was made
    is_timed = moved & (seconds >= 0) & (not tick.polls_commits)
    was_below = moved & (was < old_start)
    counted = np.where(was_below, np.minimum(old_start, at) - was, 0)
    records = np.where(moved, at - was, 0)
    return _Step(was, at, moved, records, np.fmax(seconds, 1.0), is_timed, was_below, counted)


def _jumps(
    step: _Step, before: Any, rate: Doubles, arrival: Doubles, is_overtakable: Flags
) -> Jumps:
    """Find steps that may have passed unread records, and the records surely not read in them."""
    usual = np.where(_is_busy(step, before), rate, np.fmax(rate, arrival))
    excess = np.where(
        step.is_timed, np.nan_to_num(step.records - FASTER * usual * step.seconds), 0.0
    )
    excess = np.where(step.was_below | np.isnan(rate), 0.0, np.clip(excess, 0.0, _MOST))
    # it may be faster now: that is seen with the log start
    # if no more was left at the tick before, what is deleted since was hardly written: it was read
    # before
    may_skip = (
        step.is_timed & is_overtakable & ~_is_little(before["lag"], before, np.fmax(rate, arrival))
    )
    is_faster = step.records > rate * step.seconds
    is_first = np.isnan(rate)  # how much of it was read is unknown
    is_jump = step.was_below | (may_skip & (is_faster | is_first))
    return Jumps(np.where(is_jump, step.was, -1), step.at, step.seconds, excess.astype(np.int64))


def _shown_rate(step: _Step, before: Any, rate: Doubles, new: Jumps) -> Doubles:
    """Track the reader's rate while it has more to read; slower steps count by halves."""
    # the first step shows all that is known
    is_jump = np.where(np.isnan(rate), step.was_below, new.origin >= 0)
    seen = np.where(
        step.is_timed & _is_busy(step, before) & ~is_jump, step.records / step.seconds, np.nan
    )
    return np.fmax(
        seen, np.where(np.isnan(seen), rate, rate * 0.5 ** (step.seconds / HALVES_SECONDS))
    )


def _is_busy(step: _Step, before: Any) -> Flags:
    """Return a mask of readers that did not reach the earlier log end.

    Only such a step shows how fast a reader can be.
    """
    is_busy: Flags = step.at < numbers(before["log_end_offset"])[0]
    return is_busy


def _settle(jumps: Jumps, start: Ints, is_polled: Flags) -> _Settled:
    """Say what was lost by the jumps that waited for a poll of the log start."""
    has_jumped = is_polled & (jumps.origin >= 0)
    size = jumps.to - jumps.origin
    deleted = np.where(has_jumped, np.maximum(start - jumps.origin, 0), 0)
    explained = size - jumps.excess
    is_reset = size > IMPOSSIBLE / FASTER * explained
    most = np.where(is_reset, np.maximum(deleted - explained, 0), 0)
    lost = np.where(deleted > 0, np.where(jumps.excess <= deleted, jumps.excess, most), 0)
    read = np.where(has_jumped & ~(is_reset & (deleted > 0)), size - deleted, 0)
    return _Settled(deleted, lost, read)


def _lost_behind(before: Any, now: dict[str, Any], rate: Doubles, moved: Any) -> Ints:
    """Return the records that the log start passed since the last tick and that were unread.

    The reader had not reached these records.

    A reader is ahead of its commit by what it reads until the next one. How far, is unknown of one
    that is alive and was not seen to read while it was behind; one that stopped had kept up
    before.
    """
    interval = doubles(now["commit_interval_seconds"])
    still = doubles(seconds_between(now["sampled_at"], now["progressed_at"]))
    is_alive = moved | (still < LATE_INTERVALS * interval)
    usual = np.where(np.isnan(rate), doubles(now["arrival_rate"]), rate)
    ahead = np.where(is_alive & np.isnan(rate), _MOST, np.nan_to_num(FASTER * usual * interval))
    start = now["log_start_offset"]
    # offsets may be near 2^63
    reached = add_saturating(
        now["committed_offset"], pa.array(np.clip(ahead, 0.0, _MOST).astype(np.int64))
    )
    known = pc.max_element_wise(before["log_start_offset"], reached, skip_nulls=False)
    return np.maximum(numbers(pc.subtract(start, known))[0], 0)


def at_window_end(rows: pa.Table, overtaken: Overtaken) -> pa.Table:
    """Return status rows of the previous tick, with results on their jumps, for closing windows.

    A window that may hold a jump over deleted records does not say how much was consumed: it has
    no base.
    """
    size = rows.num_rows  # those that were known before come first
    lost, may_skip = overtaken.window_lost.slice(0, size), overtaken.may_skip.slice(0, size)
    is_open = overtaken.is_open.slice(0, size)
    index = rows.schema.get_field_index("lost_records")
    base = rows.schema.get_field_index("base_committed_offset")
    known = where(
        pc.or_(pc.invert(is_open), pc.greater(lost, 0)),
        pc.max_element_wise(rows["lost_records"], lost, skip_nulls=False),
    )
    state = pc.if_else(
        pc.fill_null(pc.greater(rows["lost_records"], 0), False), rows["lost_records"], known
    )
    rows = rows.set_column(index, rows.schema.field(index), state)
    return rows.set_column(
        base, rows.schema.field(base), where(pc.invert(may_skip), rows["base_committed_offset"])
    )


def _passed(before: Any, is_comparable: Any, start: Ints, at: Ints) -> Any:
    """Return a mask of rows whose log start passed the offset at the window's start.

    The log start has not passed the present offset.
    """
    base, has_base = numbers(where(is_comparable, before["base_committed_offset"]))
    return has_base & (base < start) & (at >= start)


def _is_little(left: Any, before: Any, rate: Doubles) -> Any:
    """Return True if no more is left than is read until the next commit."""
    interval = np.fmax(doubles(before["commit_interval_seconds"]), 1.0)
    return doubles(left) <= np.nan_to_num(FASTER * rate * interval)


def _deletes_itself(keys: pa.Table) -> Any:
    """Return True for Kafka Streams repartition topics named after the group.

    The group deletes only records that it has read.

    Their retention is endless, so that it cannot overtake anybody, however fast the reader
    becomes.
    """
    is_named = flags(pc.ends_with(keys["topic"], "-repartition"))
    if not is_named.any():
        return is_named
    named = keys.select(_TOPIC).filter(pa.array(is_named)).group_by(_TOPIC).aggregate([])
    is_own = [topic.startswith(f"{group}-") for group, topic in tuples(named, _TOPIC)]
    own = named.filter(pa.array(is_own, pa.bool_()))
    codes, own_codes = key_codes([keys, own], _TOPIC)
    return np.isin(codes, own_codes)
