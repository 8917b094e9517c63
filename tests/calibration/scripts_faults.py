"""Members that crash, are too slow, or stay away; what they wait for comes a session or a poll
interval later.
"""

from __future__ import annotations

from calibration.members import Members, Script
from calibration.scripts import APART, COUNTED, SETTLED


def crash(members: Members) -> Script:
    """One of three is killed, and its session runs out."""
    members.start(0, 1, 2)
    yield members.settled()
    yield COUNTED
    members.crash(2)
    yield members.settled()
    yield SETTLED


def eviction(members: Members) -> Script:
    """A batch outlasts max.poll.interval.ms: the client leaves by itself, and is back when the
    batch is done.
    """
    members.start(0, 1)
    yield members.settled()
    yield COUNTED
    members.hang(0, 23)
    yield members.hold_all(1)
    yield members.hold_all(0, 1)
    yield SETTLED


def straggler(members: Members) -> Script:
    """A third member comes while one is in a long batch: the join phase waits until the slow one
    leaves by itself.
    """
    members.start(0, 1)
    yield members.settled()
    yield COUNTED
    members.hang(0, 24)
    yield 1.0
    members.start(2)
    yield members.hold_all(1, 2)
    yield members.settled()
    yield SETTLED


def restarts(members: Members) -> Script:
    """Static members, each away for less than the session: no generation."""
    for number in (0, 1):
        members.start(number)
        if members.is_modern:  # each has an epoch of its own
            yield members.settled()
            yield COUNTED
    yield members.settled()
    yield COUNTED
    for number in (0, 1):
        members.close(number)
        yield 2.0
        members.start(number)
        yield members.settled()
        yield SETTLED


def expiry(members: Members) -> Script:
    """A static member that is away for longer than the session."""
    members.start(0, 1, 2)
    yield members.settled()
    yield COUNTED
    members.close(2)
    yield members.settled()
    yield APART
    members.start(2)
    yield members.settled()
    yield SETTLED
