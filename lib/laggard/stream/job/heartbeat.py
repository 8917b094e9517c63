"""Record of the job's last progress, for the job itself and, by a small file, for a probe.

The job beats when a batch begins and when it ends, when it starts a query, and while it waits for
brokers. Each beat says how long the next one may take. Nothing here imports Spark: `laggard run
--check` is asked every few seconds.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from laggard.sources.clock import Reading, read_clock

log = logging.getLogger("laggard.job")
LEAST_IDLE_SECONDS = 120.0
_PAUSE_SECONDS = 5.0  # looks that lie further apart: this process did not run meanwhile
_NUMBERS = ("pid", "started_ticks", "boot_ms", "awake_ms", "limit_seconds", "published")


def idle_limit(tick_seconds: float, request_timeout_seconds: float) -> float:
    """Return the longest time between batches in seconds, with waits for silent brokers.

    The waits are those of ticks.
    """
    return max(LEAST_IDLE_SECONDS, 6 * tick_seconds, 4 * request_timeout_seconds)


class Heartbeat:
    """The newest beat, written to `file` unless that is empty.

    It is compared with the time this process ran since.
    """

    def __init__(
        self,
        file: str,
        idle_seconds: float,
        stuck_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = Path(file).expanduser() if file else None
        self._idle_seconds = idle_seconds
        self._stuck_seconds = stuck_seconds
        self._clock = clock
        self._published = 0
        self._doing = ""
        self._limit = 0.0
        self._ran = 0.0
        self._looked_at = clock()
        self._is_failing = False

    def batch(self, doing: str) -> None:
        """Beat as work begins that may last up to the stuck limit."""
        self._beat(doing, self._stuck_seconds)

    def idle(self, doing: str, *, wait_seconds: float = 0.0) -> None:
        """Beat before a wait for the next batch."""
        self._beat(doing, self._idle_seconds + wait_seconds)

    def published(self) -> None:
        """Beat after a batch, which makes the job ready."""
        self._published += 1
        self.idle("waiting for the next tick")

    def unlimited(self, doing: str) -> None:
        """Beat before work whose length only the user can know."""
        self._beat(doing, float("inf"))

    def stuck(self) -> str:
        """Say what has lasted too long; empty if nothing. To be asked often."""
        now = self._clock()
        # a process that was stopped, or a machine that slept, has had no time to make progress
        self._ran += min(now - self._looked_at, _PAUSE_SECONDS)
        self._looked_at = now
        limit = max(self._limit, self._stuck_seconds)
        if self._ran > limit:
            return f"{self._doing} for {self._ran:.0f} s"
        return ""

    def _beat(self, doing: str, limit: float) -> None:
        self._doing, self._limit = doing, limit
        self._ran, self._looked_at = 0.0, self._clock()
        if self._file is None:
            return
        try:
            _write(self._file, self._content())
            self._is_failing = False
        except OSError as error:  # a full disk must not end the job; the probe sees an old file
            if not self._is_failing:
                log.warning("the heartbeat was not written: %s", error)
            self._is_failing = True

    def _content(self) -> dict[str, Any]:
        now = read_clock()
        return {
            "pid": os.getpid(),
            "started_ticks": started_ticks(os.getpid()),
            "boot_id": now.boot_id,
            "boot_ms": now.boot_ms,
            "awake_ms": now.awake_ms,
            "doing": self._doing,
            "limit_seconds": min(self._limit, 1e9),
            "published": self._published,
        }


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    # no fsync: after a crash of the machine it is the file of a process that is no more
    number = os.open(
        part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
    )
    with os.fdopen(number, "w", encoding="utf-8") as stream:
        json.dump(content, stream)
    part.replace(file)


def check(file: str, *, ready: bool) -> tuple[bool, str]:
    """Return True if the job is live, or ready with a published batch, and the reason.

    The reason is one line.
    """
    try:
        beat = _read(Path(file).expanduser())
    except (OSError, ValueError, RecursionError) as error:
        return False, f"no heartbeat: {error}"
    if started_ticks(beat["pid"]) != beat["started_ticks"]:
        return False, f"{file} is of process {beat['pid']}, which is no more"
    now = read_clock()
    then = Reading(0, beat["boot_id"], beat["boot_ms"], beat["awake_ms"])
    seconds = now.seconds_since(then)
    if seconds is None or now.awake_ms < then.awake_ms:
        return False, f"{file} is from another start of the machine"
    awake = seconds - now.suspended_since(then)
    doing = f"{beat['doing']}, {awake:.0f} s ago, of at most {beat['limit_seconds']:.0f} s"
    if awake > beat["limit_seconds"]:
        return False, f"not live: {doing}"
    if ready and not beat["published"]:
        return False, f"not ready, no batch was published yet: {doing}"
    return True, f"{'ready' if ready else 'live'}: {doing}"


def _read(file: Path) -> dict[str, Any]:
    # a pipe must not hang a probe
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, encoding="utf-8") as stream:
        beat: Any = json.loads(stream.read(4096))
    good = isinstance(beat, dict) and all(_is_number(beat.get(name)) for name in _NUMBERS)
    if not good or not all(isinstance(beat.get(name), str) for name in ("boot_id", "doing")):
        raise ValueError(f"{file} is no heartbeat")
    return dict(beat)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e15  # type: ignore[operator]  # NaN is not


def started_ticks(pid: int) -> int:
    """Return the process start in ticks since boot; -1 if there is no process.

    The process number alone is used again.
    """
    try:
        stat = Path(f"/proc/{pid:.0f}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    return int(stat.rpartition(")")[2].split()[19])
