"""Which processes live: by number, by group, or by a mark in the environment, which all that they
start inherit.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

MARK = "DEMO_TEST_MARK"


def lives(pid: int) -> bool:
    """True if a process with this number runs; one that has ended and waits to be
    reaped does not.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def members_of_group(group: int) -> list[int]:
    """Living processes of a process group: Java and its watcher share one."""
    living = [int(path.name) for path in Path("/proc").glob("[0-9]*") if lives(int(path.name))]
    return [pid for pid in living if _group(pid) == group]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def processes_of(mark: str) -> dict[int, str]:
    """Living processes, by number, with the mark in their environment, and their command lines."""
    wanted, found = f"{MARK}={mark}".encode(), {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (
                    (process / "cmdline").read_text(errors="replace").replace("\0", " ")
                )
        except OSError:  # it has just ended, or is not ours
            continue
    return found


def comes_true(condition: Callable[[], bool], limit_seconds: float) -> bool:
    """True if the condition holds before the limit."""
    deadline = time.monotonic() + limit_seconds
    while not (is_true := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return is_true
