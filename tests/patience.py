"""What a test may take: time limits on a machine that does other work too, and
numbers of examples.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")


def patient(seconds: float) -> float:
    """Seconds that a promise of `seconds`, made for an idle machine, may take on this one.

    Three times as long, and once more for each process that waits for one of our cores; but no more
    than five minutes, or a test that waits in vain is ended by pytest's own limit, which does not
    say what was missing.
    """
    return max(seconds, min(seconds * (3 + _load()), 300.0))


def unhurried(seconds: float) -> float:
    """A time limit that a test lets pass on purpose: up to five times as long where more than two
    wait for a core.

    What is not to be waited for must take much less on this machine.
    """
    return seconds * min(5.0, max(1.0, _load() / 2))


def _load() -> float:
    """Processes that run or wait, for each of our cores."""
    return os.getloadavg()[0] / len(os.sched_getaffinity(0))


def examples(number: int) -> int:
    """A quarter of them in `make test`; `make test-all` repeats the tests marked `examples` with
    all.
    """
    return number if os.environ.get("ALL_EXAMPLES") else number // 4


def some(cases: Iterable[Case]) -> list[Case]:
    """A quarter of the cases in `make test`; all where tests marked `examples` are repeated."""
    return list(cases)[:: 1 if os.environ.get("ALL_EXAMPLES") else 4]
