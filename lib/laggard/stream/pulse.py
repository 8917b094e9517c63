"""Measure for how long this process did not run: stopped by a signal or a freezer, or starved of CPU."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from threading import Thread
from time import sleep

from laggard.sources.clock import Reading, read_clock

_BEAT_SECONDS = 1.0
_PAUSE_SECONDS = 5.0  # shorter ones are a busy machine
_KEPT = 100


class Pulse:
    """A thread that looks at the clock each second: what it missed is a pause of the process."""

    def __init__(self) -> None:
        self.started = self._beat = read_clock()
        self._pauses: deque[tuple[Reading, float]] = deque(maxlen=_KEPT)  # end of the pause, seconds
        Thread(target=self._run, name="pulse", daemon=True).start()

    def longest_since(self, earlier: Reading) -> timedelta:
        """The longest pause that ended after an earlier reading, the one that is ending now included."""
        beat = self._beat  # first: a pause that is put down meanwhile is then seen here, or among the pauses
        own = [seconds for end, seconds in tuple(self._pauses) if (end.seconds_since(earlier) or 0.0) > 0]
        now = read_clock().seconds_since(beat) or 0.0
        return timedelta(seconds=max([*own, now if now > _PAUSE_SECONDS else 0.0]))

    def began_after(self, earlier: Reading) -> bool:
        """True if this process started after an earlier reading."""
        if earlier.boot_id:
            return earlier.boot_id != self.started.boot_id or earlier.boot_ms < self.started.boot_ms
        return earlier.wall_ms < self.started.wall_ms

    def _run(self) -> None:
        while True:
            sleep(_BEAT_SECONDS)
            now = read_clock()
            passed = now.seconds_since(self._beat) or 0.0
            if passed > _PAUSE_SECONDS:
                self._pauses.append((now, passed))
            self._beat = now
