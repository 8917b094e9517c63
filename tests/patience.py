"""What a test may take: time limits on a machine that does other work too, and numbers of examples."""

import os


def patient(seconds: float) -> float:
    """Seconds that a promise of `seconds`, made for an idle machine, may take on this one.

    Three times as long, and once more for each process that waits for one of our cores.
    """
    return seconds * (3 + os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def examples(number: int) -> int:
    """A quarter of them in `make test`; `make test-all` repeats the tests marked `examples` with all."""
    return number if os.environ.get("ALL_EXAMPLES") else number // 4
