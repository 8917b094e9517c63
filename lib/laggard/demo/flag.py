"""An event that a signal handler may set."""

from __future__ import annotations

import os
import select


class Flag:
    """Set once, and waited for by any thread.

    The lock of `threading.Event` is not reentrant: a handler that sets one while its thread is at
    the beginning or end of a wait for it, waits for itself.
    """

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()

    def set(self) -> None:
        """End all waits, now and later."""
        os.write(self._writes, b".")

    def is_set(self) -> bool:
        """Return True after a call of `set`."""
        return self.wait(0)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is set, so many seconds at most; True if it is."""
        return bool(select.select([self._reads], [], [], seconds)[0])
