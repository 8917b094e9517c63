"""Output of the demo: progress with seconds on standard error, the groups on standard output."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import TextIO

BLOCK_SECONDS = 10.0  # between two blocks where nothing can be redrawn


class View:
    """A block of lines, redrawn in place on a terminal, else printed now and then."""

    def __init__(self, out: TextIO, notes: TextIO | None = None) -> None:
        self._out = out
        self._notes = sys.stderr if notes is None else notes
        self._start = time.monotonic()
        self._drawn = 0
        self._shown_at: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._start

    def note(self, text: str) -> None:
        """Write a line of progress."""
        self._drawn = 0  # what is above it stays
        self._notes.write(f"laggard: {self.seconds:5.1f} s  {text}\n")
        self._notes.flush()

    def note_from_handler(self, text: str) -> None:
        """Write the same from a signal handler.

        The handler may have interrupted a write to the stream.
        """
        self._drawn = 0
        line = f"laggard: {self.seconds:5.1f} s  {text}\n"
        try:
            os.write(self._notes.fileno(), line.encode())
        # closed, or no file: a stream in memory cannot be interrupted halfway
        except (OSError, ValueError):
            self._notes.write(line)

    def show(self, lines: Sequence[str]) -> None:
        """Show the block, in place of the one before if that is possible."""
        if self._out.isatty():
            width = shutil.get_terminal_size().columns
            up = f"\x1b[{self._drawn}F" if self._drawn else ""
            # a line that wraps would count as two on the way up
            self._write(up + "\x1b[J", [line[: width - 1] for line in lines])
            self._drawn = len(lines)
        elif self._shown_at is None or self.seconds - self._shown_at >= BLOCK_SECONDS:
            self._write("", [*lines, ""])
            self._shown_at = self.seconds

    def tell(self, lines: Sequence[str]) -> None:
        """Write lines that stay: the next block does not replace them."""
        self._drawn = 0
        self._write("", lines)

    def _write(self, prefix: str, lines: Sequence[str]) -> None:
        self._out.write(prefix + "".join(f"{line}\n" for line in lines))
        self._out.flush()
