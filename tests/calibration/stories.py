"""The stories that real and simulated consumers play; short settings, so that none takes a minute."""

from __future__ import annotations

from typing import Any

from calibration.cast import Cast, Script, Story
from simulator.world import Config

HEARTBEAT_MS = COMMIT_MS = 1_000
# a next join phase that ends within ten seconds would make one rebalance of two (RebalanceParameters)
APART = 13.0
COUNTED = 8.0  # then the commits of every partition have shown their interval
SETTLED = 4.0  # then every partition has been committed again


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
    cast.start(0, 1)
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


def _settings(name: str, **changes: Any) -> Config:
    # a session far above the heartbeat, except where it is to run out: the machine may be busy
    usual: dict[str, Any] = {"session_ms": 20_000, "heartbeat_ms": HEARTBEAT_MS, "commit_ms": COMMIT_MS}
    return Config(name, name, "/127.0.0.1", (name,), **usual | changes)


STORIES = (
    Story(scale_out, _settings("scale-out")),
    # two rounds take a heartbeat, which must not look like a pause of what is kept
    Story(scale_out, _settings("cooperative", assignors=("cooperative-sticky",), commit_ms=2 * COMMIT_MS)),
    Story(leave, _settings("leave")),
    Story(crash, _settings("crash", session_ms=6_000), doomed=2),
    Story(eviction, _settings("eviction", poll_interval_ms=8_000)),
    Story(restarts, _settings("restarts"), is_static=True),
    Story(expiry, _settings("expiry", session_ms=6_000), is_static=True),
    Story(modern, _settings("modern", assignors=()), is_modern=True),
)


def warm_up(cast: Cast) -> Script:
    """A member alone, so that its process need load no class while others play."""
    cast.start(0)
    yield cast.settled()
    cast.close(0)


WARM_UPS = tuple(
    Story(warm_up, _settings(f"warm-up-{name}", assignors=()), is_modern=True, doomed=doomed)
    for name, doomed in (("troupe", None), ("doomed", 0))
)
