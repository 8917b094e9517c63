"""A wall clock that a test sets for the processes it starts."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest


class Clock:
    """The wall clock of processes with this `environment`; time since boot and the clock of the
    disk go on.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("gcc") is None:
            pytest.skip("gcc is not installed")
        self._offset, library = folder / "offset", folder / "set_clock.so"
        self.set(0)
        source = Path(__file__).with_suffix(".c")
        subprocess.run(
            [
                "gcc",
                "-shared",
                "-fPIC",
                "-O2",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-o",
                library,
                source,
            ],
            check=True,
        )
        self.environment = {"LD_PRELOAD": str(library), "LAGGARD_TEST_CLOCK": str(self._offset)}

    def set(self, seconds: int) -> None:
        """Set the clock so far ahead of the machine's."""
        # processes have it mapped
        with self._offset.open("r+b" if self._offset.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))
