"""Readings of the machine's clocks: the wall clock can be set, the time since boot cannot."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

_PROCESS = str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Reading:
    """Wall clock, time since boot with suspended time and without it, in ms; comparable within one boot."""

    wall_ms: int
    boot_id: str = ""  # "": the time since boot is not known
    boot_ms: int = 0
    awake_ms: int = 0

    def seconds_since(self, earlier: Reading) -> float | None:
        """True time between two readings; None across a reboot or between machines."""
        if not self.boot_id or self.boot_id != earlier.boot_id or self.boot_ms < earlier.boot_ms:
            return None
        return (self.boot_ms - earlier.boot_ms) / 1000

    def set_back_since(self, earlier: Reading) -> float:
        """Seconds by which the wall clock is behind the time that truly passed; 0 if that is not known."""
        whole = self.seconds_since(earlier)
        return 0.0 if whole is None else max(0.0, whole - (self.wall_ms - earlier.wall_ms) / 1000)

    def suspended_since(self, earlier: Reading) -> float:
        """Seconds in which the machine was suspended; 0 if it is not known."""
        whole = self.seconds_since(earlier)
        return 0.0 if whole is None else max(0.0, whole - (self.awake_ms - earlier.awake_ms) / 1000)


def read_clock() -> Reading:
    """The clocks now. Where the system has no id of its boot, readings compare within this process."""
    awake = time.monotonic_ns()
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else awake
    return Reading(time.time_ns() // 1_000_000, _boot_id(), boot // 1_000_000, awake // 1_000_000)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _PROCESS
