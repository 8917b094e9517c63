"""Rates: means over windows of what arrives, and from commit to commit of what is consumed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, TopicFrame
from laggard.diagnosis.parameters import fixed

RATE_COMMITS = fixed("rate_commits", 3, "gaps between commits that a rate is taken over at least")
_RECENT_GAPS = fixed("recent_gaps", 2, "times the longest gap, since the newest commit")
OVERDUE_INTERVALS = fixed(
    "overdue_intervals", 1.5, "commit intervals, from which a commit is overdue"
)


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Instants at which the position of each partition is known, and what was consumed until then.

    A window gives one at most: its newest commit that moved the offset, its end if nothing is left
    to read, or a commit interval before its end if the next commit is overdue: until then nothing
    was done. Arrays are [partitions, windows].
    """

    # number of the newest window with such an instant up to each window, -1 if none
    newest: npt.NDArray[np.int64]
    # of the instant in each window, from the beginning of the first one, without `jumped` ones
    seconds: Floats
    done: Floats  # records, until the end of each window
    patience: Floats  # [partitions, 1] seconds from which the next commit is overdue
    stood: npt.NDArray[np.bool_]  # True where the next commit was overdue
    # True where it is not known what was consumed, as past deleted records
    jumped: npt.NDArray[np.bool_]
    least: Floats  # as `done`, with the least that was read in such windows where commits are rare
    taken: Floats  # as `seconds`, with these windows
    unclear: npt.NDArray[np.bool_]  # True where not even the least is known
    is_whole: bool  # True if every window has such an instant

    def rates(self, windows: int) -> Floats:
        """Return consume rates in records/s up to the newest instant of each window.

        The span is `windows` or a few more windows.

        NaN if only one instant is known: there is nothing to divide by.
        """
        if not self.is_whole:
            return self._between(self.newest, windows)
        count = np.arange(self.done.shape[1])  # nearly always, and in a third of the time
        first = np.maximum(count - windows, 0)
        span = self.seconds - self.seconds[:, first]
        found: Floats = np.full(span.shape, np.nan)
        np.divide(self.done - self.done[:, first], span, out=found, where=span > 0)
        return found

    def newest_rates(self, windows: int | npt.NDArray[np.int64]) -> Floats:
        """Return the rates at the end of the newest window alone, [partitions].

        `windows` may differ by partition.
        """
        return self._between(self.newest[:, -1:], np.reshape(windows, (-1, 1)))[:, 0]

    def gap_rates(self, count: int) -> list[Floats]:
        """Return the same rates of each of the newest gaps between two instants, [partitions].

        The newest gap comes first.

        Of a gap with a jump past deleted records between rare commits it is the least that was
        read in it, NaN if that is not known.
        """
        rows, last, found = np.arange(len(self.newest))[:, None], self.newest[:, -1:], []
        for _ in range(count):
            rates = self._over(last, 1, self.least, self.taken)
            found.append(np.where(self.unclear[rows, last], np.nan, rates)[:, 0])
            last = np.where(last > 0, self.newest[rows, last - 1], -1)
        return found

    def resumed_rates(self) -> Floats:
        """Return the same rate of the newest gap after a halt of the partition, [partitions].

        The partition stood until the gap began; the rate is NaN elsewhere.

        No commit of before is in it, and what of it its owner still stood makes the rate lower.
        """
        rows, last = np.arange(len(self.newest)), self.newest[:, -1]
        before = np.where(last > 0, self.newest[rows, last - 1], -1)
        stood = (before >= 0) & (
            self.stood[rows, before] | self.stood[rows, np.maximum(before - 1, 0)]
        )
        return np.where(stood, self.gap_rates(1)[0], np.nan)

    def begin(
        self, last: npt.NDArray[np.int64], windows: int | npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the windows of the start instants of the rates.

        The rates reach up to the instants of the windows `last`.
        """
        first = np.where(
            last >= windows, self.newest[np.arange(len(last))[:, None], last - windows], -1
        )
        # history is shorter
        return np.where(first < 0, np.argmax(self.newest >= 0, axis=1)[:, None], first)

    def _between(self, last: npt.NDArray[np.int64], windows: int | npt.NDArray[np.int64]) -> Floats:
        """Return rates up to the instants of the windows `last`, [partitions, n]."""
        return self._over(last, windows, self.done, self.seconds)

    def _over(
        self,
        last: npt.NDArray[np.int64],
        windows: int | npt.NDArray[np.int64],
        records: Floats,
        seconds: Floats,
    ) -> Floats:
        rows, first = np.arange(len(last))[:, None], self.begin(last, windows)
        span = seconds[rows, last] - seconds[rows, first]
        is_known = (last > first) & (first >= 0) & (span > 0)
        done = records[rows, last] - records[rows, first]
        return np.where(is_known, done / np.where(is_known, span, 1.0), np.nan)


def positions(frame: TopicFrame, window_seconds: int) -> Positions:
    """Find the instants at which positions are known.

    Consumption is known at commits only: a mean over some windows holds a commit too many or too
    few.
    """
    consumed, frozen = frame["consumed"], frame["frozen"]
    # rebalances make it look shorter for a while
    interval = np.fmax.reduce(frame["interval"], axis=1, keepdims=True)
    has_moved, unknown = consumed > 0, np.isnan(consumed)
    is_polled = np.isnan(frame["commits"][:, -1:]) & np.isnan(frame["repeats"][:, -1:])
    jumped = unknown & ~is_polled
    if unknown.any():  # past deleted records: by how many it is not known, when it is
        has_moved |= jumped & (frozen < window_seconds)
    patience = np.fmax(OVERDUE_INTERVALS * interval, window_seconds)
    count = np.arange(consumed.shape[1])
    is_overdue = frozen > patience
    is_instant = has_moved | (frozen == 0) | is_overdue
    # the next commit may hold what was read in an interval before it
    unseen = np.where(is_overdue, np.nan_to_num(interval), 0.0)
    since = np.where(has_moved & ~np.isnan(frozen), frozen, unseen)
    taken: Floats = np.float64(window_seconds) * (count + 1.0) - since
    seconds, done = taken, np.cumsum(np.where(unknown, 0.0, consumed), axis=1)
    least, unclear = done, unknown
    # what is not known of takes no time; but where commits are polled, the next answer has all of
    # it
    if unknown.any():
        kept = np.where(jumped & (interval > window_seconds), _not_deleted(frame), np.nan)
        seconds = taken - window_seconds * np.cumsum(jumped, axis=1)
        taken = taken - window_seconds * np.cumsum(jumped & np.isnan(kept), axis=1)
        least, unclear = done + np.cumsum(np.nan_to_num(kept), axis=1), jumped & np.isnan(kept)
    return Positions(
        np.maximum.accumulate(np.where(is_instant, count, -1), axis=1),
        seconds,
        done,
        patience,
        is_overdue,
        jumped,
        least,
        taken,
        unclear,
        bool(is_instant.all()),
    )


def _not_deleted(frame: TopicFrame) -> Floats:
    """Return records that each window's commits passed and retention had not deleted when they did.

    A log start is polled as its window begins. NaN if it is not known that it had passed the commit
    before, and where the offset was set back.
    """
    committed, start = frame["committed"], frame["start"]
    before = np.concatenate([np.full_like(committed[:, :1], np.nan), committed[:, :-1]], axis=1)
    after = np.concatenate([start[:, 1:], start[:, -1:]], axis=1)
    is_known = (committed >= before) & (after > before) & ~(frame["rewound"] > 0)
    return np.where(is_known, np.maximum(committed - after, 0.0), np.nan)


def rolling_mean(values: Floats, windows: int) -> Floats:
    """Return the mean of the known values among the newest `windows` up to each window.

    It is NaN if none is known.
    """
    known = ~np.isnan(values)
    if known.all():  # nearly always, and three times as fast
        sums = np.cumsum(values, axis=1)
        sums[:, windows:] = sums[:, windows:] - sums[:, :-windows]
        means: Floats = sums / np.minimum(np.arange(1, values.shape[1] + 1), windows)
        return means
    sums = np.cumsum(np.where(known, values, 0.0), axis=1)
    counts = np.cumsum(known, axis=1)
    sums[:, windows:] = sums[:, windows:] - sums[:, :-windows]
    counts[:, windows:] = counts[:, windows:] - counts[:, :-windows]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def newest_level(values: Floats, windows: int, ratio: float) -> Floats:
    """Return the mean of the newest `windows`, [partitions], or since the level changed.

    The level has changed if all values since are above or below the rest.

    Arrivals are known of each window; a mean over some tells of a change only once the last window
    before it is out. One window alone, in which the level may have changed, has to differ by
    `ratio`.
    """
    newest = values[:, -windows:]
    found: Floats = rolling_mean(newest, windows)[:, -1]
    for count in range(newest.shape[1] - 1, 0, -1):
        now, before = newest[:, -count:], newest[:, :-count]
        least = ratio if count == 1 else 1.0
        has_changed = (now.min(axis=1) > least * before.max(axis=1)) | (
            least * now.max(axis=1) < before.min(axis=1)
        )
        found = np.where(has_changed, now.mean(axis=1), found)
    return found


def rates_at_commits(consumed: Floats) -> Floats:
    """Return records/s over the newest `RATE_COMMITS` gaps, or fewer, at windows with a commit.

    The first window with a commit has no rate.

    A mean over windows would count one commit too many or too few of those that are rarer than
    windows.
    """
    at = np.flatnonzero(consumed > 0)
    done = np.cumsum(consumed[at])
    before = np.maximum(np.arange(1, len(at)) - RATE_COMMITS, 0)
    found: Floats = (done[1:] - done[before]) / (at[1:] - at[before])
    return found


def falls_behind(left: Floats, least_rate: float, window_seconds: int) -> bool:
    """Return True if each of the newest commits left more than the commit before it.

    The commits span `RATE_COMMITS` + 1 gaps.

    `left` [windows] is the lag at commits in records, NaN in a window without one, `least_rate` in
    records/s what it must have grown by. The first gap may be the one in which there began to be
    too much to do.
    """
    at = np.flatnonzero(~np.isnan(left))[-RATE_COMMITS - 2 :]
    if len(at) < RATE_COMMITS + 2:
        return False
    gaps = np.diff(at)
    is_recent = len(left) - 1 - at[-1] <= _RECENT_GAPS * gaps.max()
    return bool(is_recent and (np.diff(left[at]) > least_rate * gaps * window_seconds).all())
