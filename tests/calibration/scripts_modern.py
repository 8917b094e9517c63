"""Groups of KIP-848, and the way there and back."""

from __future__ import annotations

from calibration.cast import Cast, Script
from calibration.scripts import APART, COUNTED, SETTLED


def modern(cast: Cast) -> Script:
    """KIP-848: a third member comes, and goes."""
    for number in (0, 1):
        cast.start(number)
        yield cast.settled()
        yield COUNTED
    cast.start(2)
    yield cast.settled()
    yield COUNTED
    cast.close(2)
    yield cast.settled()
    yield SETTLED


def upgrade(cast: Cast) -> Script:
    """Members of the classic protocol give way, one by one, to such of KIP-848."""
    cast.start(0, 1)
    yield cast.settled()
    yield APART
    for number in (1, 0):
        cast.close(number)
        yield cast.settled()
        yield SETTLED
        cast.start(number, is_modern=True)
        yield cast.settled()
        yield SETTLED


def downgrade(cast: Cast) -> Script:
    """One member tries KIP-848, and goes again."""
    cast.start(0, 1)
    yield cast.settled()
    yield COUNTED
    cast.start(2, is_modern=True)
    yield cast.settled()
    yield COUNTED
    cast.close(2)
    yield cast.settled()
    yield SETTLED
