"""Values that are the same for every row of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from laggard.lag.arrays import differ


@dataclass(frozen=True, slots=True)
class Tick:
    """Constants of one tick.

    `now` is the time of its poll and never goes back; no function reads a clock.
    """

    cluster: str
    batch_id: int
    poll_id: int
    metadata_poll_id: int  # poll in which topics were last listed
    now: datetime
    window_seconds: int
    is_caught_up: bool  # read up to the last stable offsets that the poll saw
    opens_window: bool  # the first live tick of a window
    closes_windows: bool  # windows of the tick before end here
    has_history: bool  # some live tick came before: what is new now is new in the world
    blocked_partitions: tuple[int, ...] = ()  # of the offsets topic, frozen by an open transaction
    # of the offsets topic, whose leader did not answer
    unread_partitions: frozenset[int] = frozenset()
    # those of them that have not been read for a window or more
    silent_partitions: tuple[int, ...] = ()
    # of the offsets topic, cut below what was read, and where they end now: any record read of them
    # from now on is later than what is known
    truncated_partitions: tuple[tuple[int, int], ...] = ()
    rereads: bool = False  # some records of the batch were read before
    # of the offsets topic, which is read again from its start, with the offset before which each
    # record has its rows
    written: tuple[tuple[int, int], ...] = ()
    # by the machine's clock; before `now` while time is held. None: as `now`
    wall: datetime | None = None
    # commits are seen by polls of the coordinators (cluster.source = "admin"): neither counted nor
    # timed
    polls_commits: bool = False
    is_held: bool = False  # the clock was set back: `now` waits for it, and windows are not counted
    # to be added to our own times of the tick before, where the clock was set: None if that is not
    # known
    shift: timedelta | None = timedelta(0)

    @property
    def counts(self) -> bool:
        """True if windows are counted at this tick."""
        return self.is_caught_up and not self.is_held

    def is_written(self, record: Mapping[str, Any]) -> bool:
        """Return True if the record's history rows were written at its first reading."""
        return any(
            record["source_partition"] == part and record["source_offset"] < end
            for part, end in self.written
        )

    @property
    def window(self) -> timedelta:
        return timedelta(seconds=self.window_seconds)

    @property
    def window_start(self) -> datetime:
        """Start of the window that `now` lies in."""
        return self.now - timedelta(seconds=self.now.timestamp() % self.window_seconds)


def was_followed(before: Any, tick: Tick) -> Any:
    """Return a mask of rows observed at the previous tick: they changed between the two ticks.

    What was carried while catching up was not observed. An offset that a coordinator once gave
    stands until its next answer, however long that takes and whatever the status says meanwhile.
    """
    if tick.polls_commits:
        return pc.is_valid(before["answered_at"])
    return differ(before["status"], "stale")
