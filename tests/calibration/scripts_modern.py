"""Groups of KIP-848, and the way there and back."""

from __future__ import annotations

from calibration.members import Members, Script
from calibration.scripts import APART, COUNTED, SETTLED


def modern(members: Members) -> Script:
    """KIP-848: a third member comes, and goes."""
    for number in (0, 1):
        members.start(number)
        yield members.settled()
        yield COUNTED
    members.start(2)
    yield members.settled()
    yield COUNTED
    members.close(2)
    yield members.settled()
    yield SETTLED


def upgrade(members: Members) -> Script:
    """Members of the classic protocol give way, one by one, to such of KIP-848."""
    members.start(0, 1)
    yield members.settled()
    yield APART
    for number in (1, 0):
        members.close(number)
        yield members.settled()
        yield SETTLED
        members.start(number, is_modern=True)
        yield members.settled()
        yield SETTLED


def downgrade(members: Members) -> Script:
    """One member tries KIP-848, and goes again."""
    members.start(0, 1)
    yield members.settled()
    yield COUNTED
    members.start(2, is_modern=True)
    yield members.settled()
    yield COUNTED
    members.close(2)
    yield members.settled()
    yield SETTLED
