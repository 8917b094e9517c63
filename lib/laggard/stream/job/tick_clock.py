"""Time of a tick: it never goes back, and its difference from the true elapsed time is recorded.

A clock that was set back holds the time of rows where it was, and windows wait; one that was set
forward moves it. In both cases times of our own that were stored before are shifted, so that rates
and ages are of true seconds. The reasons are in docs/decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from laggard.lag.tick import Tick
from laggard.rebalance.analytics.times import known
from laggard.sources.clock import Reading
from laggard.sources.snapshot import Snapshot
from laggard.tables.published import BACKFILL
from laggard.tables.schema.batch_tables import CATCHING_UP, CLOCK, JOB_DOWN, TICK_LATE

SLACK = timedelta(seconds=1)  # a clock that is behind by less is slewed, not set
DRIFT = 0.001  # of the time that passed: more than a clock that is slewed differs (500 ppm)
Gap = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a tick.

    `elapsed` is the true time since the tick before, `shift` what is to be added to stored times of
    our own; both None if the machine cannot tell: it was booted since.
    """

    now: datetime
    reading: Reading
    is_held: bool = False
    elapsed: timedelta | None = None
    shift: timedelta | None = timedelta(0)
    suspended: timedelta = timedelta(0)

    @property
    def wall(self) -> datetime:
        return _time(self.reading.wall_ms)


def place(last: Mapping[str, Any] | None, snapshot: Snapshot) -> Moment:
    """Return the time of a poll after the last tick.

    `last` is the newest row of `batches`, the floor of all later.
    """
    reading = snapshot.reading
    wall = _time(reading.wall_ms)
    if last is None or last["polled_at"] is None:
        return Moment(wall, reading)
    floor, before = last["polled_at"], reading_of(last)
    if snapshot.poll_id <= last.get("poll_id", 0):  # the poll of the tick before once more
        return Moment(floor, reading, is_held=was_held(last), elapsed=timedelta(0))
    seconds = reading.seconds_since(before)
    elapsed = None
    if seconds is not None:
        elapsed = timedelta(seconds=seconds)
    suspended = timedelta(seconds=reading.suspended_since(before))
    if floor - wall > SLACK:
        shift = None if elapsed is None else -elapsed
        return Moment(floor, reading, True, elapsed, shift, suspended)
    now = max(wall, floor)
    shift = timedelta(0)
    slack = SLACK if wall > floor else timedelta(0)
    if elapsed is not None and abs(now - floor - elapsed) > slack + DRIFT * elapsed:
        shift = now - floor - elapsed
    return Moment(now, reading, False, elapsed, shift, suspended)


def reading_of(row: Mapping[str, Any]) -> Reading:
    """Return the clocks at the poll of a `batches` row.

    Rows of an older job have the wall clock only.
    """
    clock = row.get("clock")
    if not clock:
        return Reading(round(row["polled_at"].timestamp() * 1000))
    wall_ms = round(clock["wall"].timestamp() * 1000)
    return Reading(wall_ms, clock["boot_id"] or "", clock["boot_ms"] or 0, clock["awake_ms"] or 0)


def clock_column(reading: Reading) -> dict[str, Any]:
    """Return the column `clock` of a reading, the inverse of `reading_of`."""
    wall = _time(reading.wall_ms)
    if not reading.boot_id:
        return {"wall": wall, "boot_id": None, "boot_ms": None, "awake_ms": None}
    return {
        "wall": wall,
        "boot_id": reading.boot_id,
        "boot_ms": reading.boot_ms,
        "awake_ms": reading.awake_ms,
    }


def was_held(row: Mapping[str, Any]) -> bool:
    """Return True if a tick kept the time before, as its clock was behind the time of its rows."""
    return bool(row["polled_at"] - _time(reading_of(row).wall_ms) > SLACK)


def time_gaps(
    last: Mapping[str, Any],
    moment: Moment,
    window: timedelta,
    *,
    was_down: bool,
    frozen: timedelta = timedelta(0),
) -> list[Gap]:
    """Return gap rows for time no tick observed, and for time the clock skipped or repeated.

    `frozen`: seconds for which this process did not run since the poll before.
    """
    since = last["polled_at"]
    if moment.is_held:
        return _gaps_while_held(last, moment)
    span = moment.now - since
    if span <= window:
        return []
    is_false = moment.shift is not None and moment.shift > timedelta(0)
    true = moment.elapsed if is_false and moment.elapsed is not None else span
    gaps = []
    if true > window:
        stood = max(moment.suspended, frozen)
        late = JOB_DOWN if was_down else TICK_LATE
        if true - stood <= window:
            late = CLOCK
        gaps.append(_gap(late, since, since + true))
        since += true
    if is_false:
        gaps.append(_gap(CLOCK, since, moment.now))
    return gaps


def backfill_gaps(last: Mapping[str, Any], tick: Tick) -> list[Gap]:
    """Return the gap row after a batch that only caught up.

    Windows lack rows, or ended early, because of it.

    Nothing of it on a first start, before which there are no windows.
    """
    done = last.get("windows_closed_to")
    if last["kind"] != BACKFILL or done is None or tick.is_held:
        return []
    since = _window_start(last["polled_at"], tick.window_seconds)
    if since <= done:
        since = last["polled_at"]
    until = tick.window_start
    if tick.is_caught_up and not tick.opens_window:
        until += tick.window
    if since < until:
        return [_gap(CATCHING_UP, since, until)]
    return []


def _gaps_while_held(last: Mapping[str, Any], moment: Moment) -> list[Gap]:
    """Find the gap of a tick that counts nothing, as the clock is not yet where it was before."""
    before = _time(reading_of(last).wall_ms)
    is_set_back = moment.elapsed is not None and moment.wall < before + moment.elapsed - 2 * SLACK
    if not was_held(last):
        return [_gap(CLOCK, moment.wall, last["polled_at"])]
    if is_set_back and moment.wall < before:
        return [_gap(CLOCK, moment.wall, before)]
    return []


def is_open(last: Mapping[str, Any] | None, window_seconds: int) -> bool:
    """Return True if the window of the tick before was not closed yet."""
    if last is None:
        return False
    done = last.get("windows_closed_to")
    return done is None or _window_start(last["polled_at"], window_seconds) > done


def is_unwritten(window_start_ms: int, last: Mapping[str, Any] | None) -> bool:
    """Return True if rows of a window that the poller closed are not written yet.

    Its clock may have been set back.
    """
    done = (last or {}).get("windows_closed_to")
    return done is None or _time(window_start_ms) > done


def closed_to(last: Mapping[str, Any] | None, tick: Tick, snapshot: Snapshot) -> datetime | None:
    """Start of the newest window that has rows, after this tick."""
    ended: list[datetime | None] = []
    if last is not None:
        ended.append(last.get("windows_closed_to"))
        if tick.closes_windows:
            ended.append(_window_start(last["polled_at"], tick.window_seconds))
    if snapshot.closed.num_rows:
        ended.append(_time(snapshot.window_start_ms))
    return max(known(ended), default=None)


def _window_start(at: datetime, window_seconds: int) -> datetime:
    return at - timedelta(seconds=at.timestamp() % window_seconds)


def _gap(reason: str, since: datetime, until: datetime) -> Gap:
    return {"gap_scope": "all", "gap_from": since, "gap_to": until, "gap_reason": reason}


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)
