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
