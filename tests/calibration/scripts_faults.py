"""Members that crash, are too slow, or stay away; what they wait for comes a session or a poll interval later."""

from __future__ import annotations

from calibration.cast import Cast, Script
from calibration.scripts import APART, COUNTED, SETTLED


def crash(cast: Cast) -> Script:
    """One of three is killed, and its session runs out."""
    cast.start(0, 1, 2)
    yield cast.settled()
    yield COUNTED
    cast.crash(2)
    yield cast.settled()
    yield SETTLED


def eviction(cast: Cast) -> Script:
    """A batch outlasts max.poll.interval.ms: the client leaves by itself, and is back when the batch is done."""
    cast.start(0, 1)
    yield cast.settled()
    yield COUNTED
    cast.hang(0, 23)
    yield cast.hold_all(1)
    yield cast.hold_all(0, 1)
    yield SETTLED


def straggler(cast: Cast) -> Script:
    """A third member comes while one is in a long batch: the join phase waits until the slow one leaves by itself."""
    cast.start(0, 1)
    yield cast.settled()
    yield COUNTED
    cast.hang(0, 24)
    yield 1.0
    cast.start(2)
    yield cast.hold_all(1, 2)
    yield cast.settled()
    yield SETTLED


def restarts(cast: Cast) -> Script:
    """Static members, each away for less than the session: no generation."""
    for number in (0, 1):
        cast.start(number)
        if cast.is_modern:  # each has an epoch of its own
            yield cast.settled()
            yield COUNTED
    yield cast.settled()
    yield COUNTED
    for number in (0, 1):
        cast.close(number)
        yield 2.0
        cast.start(number)
        yield cast.settled()
        yield SETTLED


def expiry(cast: Cast) -> Script:
    """A static member that is away for longer than the session."""
    cast.start(0, 1, 2)
    yield cast.settled()
    yield COUNTED
    cast.close(2)
    yield cast.settled()
    yield APART
    cast.start(2)
    yield cast.settled()
    yield SETTLED
