"""What happens in the workloads; the times are short, so that none takes a minute."""

from __future__ import annotations

from calibration.members import Members, Script

# RebalanceParameters: a next join phase that ends within ten seconds would make one
# rebalance of two
APART = 13.0
COUNTED = 8.0  # then the commits of every partition have shown their interval
SETTLED = 4.0  # then every partition has been committed again


def warm_up(members: Members) -> Script:
    """A member alone, so that its process need load no class while others run."""
    members.start(0)
    yield members.settled()
    members.close(0)


def scale_out(members: Members) -> Script:
    """A third member comes."""
    members.start(0, 1)
    yield members.settled()
    yield APART
    members.start(2)
    yield members.settled()
    yield SETTLED


def leave(members: Members) -> Script:
    """One of three closes in order."""
    members.start(0, 1, 2)
    yield members.settled()
    yield APART
    members.close(2)
    yield members.settled()
    yield SETTLED


def to_zero(members: Members) -> Script:
    """All members leave, and one restarts."""
    members.start(0, 1)
    yield members.settled()
    yield APART
    members.close(0)
    members.close(1)
    yield APART
    members.start(0)
    yield members.settled()
    yield SETTLED


def partitions_added(members: Members) -> Script:
    """The leader sees more partitions than it has handed out, and joins again."""
    members.start(0, 1)
    yield members.settled()
    yield APART
    members.expand(2)
    yield members.settled()
    yield SETTLED
