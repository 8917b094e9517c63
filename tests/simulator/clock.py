"""Simulated time in integer milliseconds, and one random sub-stream per name.

A component that draws from its own stream does not shift what the others draw.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush

START_MS = 1_795_176_000_000  # 2026-11-20 12:00:00 UTC
Action = Callable[[], None]


class Clock:
    """A queue of events; those of one millisecond run in the order in which they were asked for."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now = now_ms
        self._queue: list[tuple[int, int, Action]] = []
        self._asked = 0

    def at(self, when_ms: int, action: Action) -> None:
        self._asked += 1
        heappush(self._queue, (max(self.now, when_ms), self._asked, action))

    def after(self, delay_ms: int, action: Action) -> None:
        self._asked += 1
        heappush(self._queue, (self.now + delay_ms, self._asked, action))

    def run_until(self, end_ms: int) -> None:
        queue = self._queue
        while queue and queue[0][0] <= end_ms:
            self.now, _, action = heappop(queue)
            action()
        self.now = end_ms


class Streams:
    """Random numbers by name, all from one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[str, random.Random] = {}

    def __call__(self, name: str) -> random.Random:
        if name not in self._streams:
            # a string is hashed the same everywhere
            self._streams[name] = random.Random(f"{self._seed}/{name}")
        return self._streams[name]


class Network:
    """Requests with a latency both ways; those of one connection arrive in order, and so do the
    answers.
    """

    def __init__(self, clock: Clock, streams: Streams, low_ms: int = 1, high_ms: int = 8) -> None:
        self._clock, self._streams = clock, streams
        self._latencies = range(low_ms, high_ms + 1)
        self._chances: dict[str, random.Random] = {}
        self._last: dict[str, int] = {}

    def send(self, connection: str, action: Action) -> None:
        """Run the action when the message has arrived."""
        chance = self._chances.get(connection)
        if chance is None:
            chance = self._chances[connection] = self._streams(f"network {connection}")
        arrival = max(
            self._clock.now + chance.choice(self._latencies), self._last.get(connection, 0)
        )
        self._last[connection] = arrival
        self._clock.at(arrival, action)
