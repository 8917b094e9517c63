"""Readings of the machine's clocks, and pauses of this process by a signal, a freezer or low CPU.

The wall clock can be set, the time since boot cannot.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Thread
from time import sleep

_PROCESS = str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Reading:
    """Wall clock and time since boot with and without suspended time, in ms.

    Readings are comparable within one boot.
    """

    wall_ms: int
    boot_id: str = ""  # "": the time since boot is not known
    boot_ms: int = 0
    awake_ms: int = 0

    def seconds_since(self, earlier: Reading) -> float | None:
        """Return the true seconds between two readings; None across reboots or machines."""
        if not self.boot_id or self.boot_id != earlier.boot_id or self.boot_ms < earlier.boot_ms:
            return None
        return (self.boot_ms - earlier.boot_ms) / 1000

    def set_back_since(self, earlier: Reading) -> float:
        """Return seconds by which the wall clock lags true elapsed time; 0 if unknown."""
        whole = self.seconds_since(earlier)
        if whole is None:
            return 0.0
        return max(0.0, whole - (self.wall_ms - earlier.wall_ms) / 1000)

    def suspended_since(self, earlier: Reading) -> float:
        """Return the seconds for which the machine was suspended; 0 if that is unknown."""
        whole = self.seconds_since(earlier)
        if whole is None:
            return 0.0
        return max(0.0, whole - (self.awake_ms - earlier.awake_ms) / 1000)


def read_clock() -> Reading:
    """Return the clocks now.

    Without a boot id of the system, readings compare only within this process.
    """
    awake = time.monotonic_ns()
    boot = awake
    if hasattr(time, "CLOCK_BOOTTIME"):
        boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return Reading(time.time_ns() // 1_000_000, _boot_id(), boot // 1_000_000, awake // 1_000_000)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _PROCESS


_BEAT_SECONDS = 1.0
_PAUSE_SECONDS = 5.0  # shorter ones are a busy machine
_KEPT = 100


class Pulse:
    """A thread that looks at the clock each second: what it missed is a pause of the process."""

    def __init__(self) -> None:
        self.started = self._beat = read_clock()
        # end of the pause, seconds
        self._pauses: deque[tuple[Reading, float]] = deque(maxlen=_KEPT)
        Thread(target=self._run, name="pulse", daemon=True).start()

    def longest_since(self, earlier: Reading) -> timedelta:
        """Return the longest pause that ended after `earlier`, including a pause ending now."""
        # first: a pause that is put down meanwhile is then seen here, or among the pauses
        beat = self._beat
        own = [
            seconds
            for end, seconds in tuple(self._pauses)
            if (end.seconds_since(earlier) or 0.0) > 0
        ]
        now = read_clock().seconds_since(beat) or 0.0
        return timedelta(seconds=max([*own, now if now > _PAUSE_SECONDS else 0.0]))

    def began_after(self, earlier: Reading) -> bool:
        """Return True if this process started after an earlier reading."""
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
