"""Child processes that never outlive the process that started them, whatever ends it."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

# exec keeps the process number, so the one we started is the command itself, and $$ in the watcher
# is its number. The watcher waits on a pipe whose other end only the owner holds: it closes however
# the owner ends, SIGKILL included.
GUARDED = """
exec 3<&0
(
  read -r _ <&3
  kill -KILL $$
  sleep 1
  [ -z "$0" ] || rm -rf "$0"
) &
exec "$@" </dev/null 3<&-
"""


def start_guarded(
    command: Sequence[str],
    output: IO[bytes],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    remove_if_orphaned: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; if we die before its `await_end`, it is killed.

    Then a folder can also be removed. `await_end` is the other half: the process has a watcher,
    which must end too.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", GUARDED, str(remove_if_orphaned or ""), *command],
        stdin=_lifeline()[0],
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        start_new_session=True,  # Ctrl-C is for the owner, who ends its children in order
    )


def await_end(process: subprocess.Popen[bytes], limit_seconds: float) -> None:
    """Wait for a guarded process to end, kill it after the limit, and clean up.

    The clean-up ends its watcher and all else that it started.
    """
    with suppress(subprocess.TimeoutExpired):
        process.wait(limit_seconds)
    # the watcher is in the group, so the number cannot belong to anybody else yet
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@functools.cache
def _lifeline() -> tuple[int, int]:
    """Return a pipe without a writer.

    Its reader sees the end of file when this process ends.
    """
    os.register_at_fork(after_in_child=_drop_lifeline)
    return os.pipe()


def _drop_lifeline() -> None:
    # a forked child that outlives us must not keep our children alive
    if _lifeline.cache_info().currsize:
        for end in _lifeline():
            os.close(end)
        _lifeline.cache_clear()
