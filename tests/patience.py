"""Time limits on a machine that does other work too."""

import os


def patient(seconds: float) -> float:
    """Seconds that a promise of `seconds`, made for an idle machine, may take on this one.

    Three times as long, and once more for each process that waits for one of our cores.
    """
    return seconds * (3 + os.getloadavg()[0] / len(os.sched_getaffinity(0)))
