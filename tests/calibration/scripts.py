"""What happens in the stories; the times are short, so that none takes a minute."""

from __future__ import annotations

from calibration.cast import Cast, Script

# a next join phase that ends within ten seconds would make one rebalance of two (RebalanceParameters)
APART = 13.0
COUNTED = 8.0  # then the commits of every partition have shown their interval
SETTLED = 4.0  # then every partition has been committed again


def warm_up(cast: Cast) -> Script:
    """A member alone, so that its process need load no class while others play."""
    cast.start(0)
    yield cast.settled()
    cast.close(0)


def scale_out(cast: Cast) -> Script:
    """A third member comes."""
    cast.start(0, 1)
    yield cast.settled()
    yield APART
    cast.start(2)
    yield cast.settled()
    yield SETTLED


def leave(cast: Cast) -> Script:
    """One of three closes in order."""
    cast.start(0, 1, 2)
    yield cast.settled()
    yield APART
    cast.close(2)
    yield cast.settled()
    yield SETTLED


def to_zero(cast: Cast) -> Script:
    """All members leave, and one comes back."""
    cast.start(0, 1)
    yield cast.settled()
    yield APART
    cast.close(0)
    cast.close(1)
    yield APART
    cast.start(0)
    yield cast.settled()
    yield SETTLED


def partitions_added(cast: Cast) -> Script:
    """The leader sees more partitions than it has handed out, and joins again."""
    cast.start(0, 1)
    yield cast.settled()
    yield APART
    cast.expand(2)
    yield cast.settled()
    yield SETTLED
