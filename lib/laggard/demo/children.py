"""The demo's child processes: load, exporter and job, each with a log of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import laggard
from laggard.demo.guard import await_end, start_guarded
from laggard.demo.node import HOST
from laggard.errors import LaggardError

PORT = 8917  # the exporter's own default
STOP_SECONDS = 20.0
REPORTED_LOG_LINES = 15


class Child:
    """A process with a log; it never outlives us, whatever ends us."""

    def __init__(
        self, name: str, arguments: Sequence[str], folder: Path, remove_if_orphaned: Path | None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self._process = start_guarded(
                [sys.executable, "-m", *arguments],
                output,
                folder=folder,  # Spark leaves a folder where it runs
                environment=child_environment(os.environ),
                remove_if_orphaned=remove_if_orphaned,
            )

    def printed(self) -> str:
        """Return the text of its log up to now."""
        return self.log.read_text(errors="replace")

    def check(self) -> None:
        """Raise if it has ended."""
        code = self._process.poll()
        if code is not None:
            raise LaggardError(
                f"the demo's {self.name} has ended", cause=f"exit code {code}; {self.last_words()}"
            )

    def last_words(self) -> str:
        """Quote the end of its log."""
        return "\n  ".join(
            [f"{self.log.name} ends with", *self.printed().splitlines()[-REPORTED_LOG_LINES:]]
        )

    def send(self, sig: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(sig)

    def await_end(self, limit_seconds: float) -> None:
        """Wait for its end, or end it by force after the limit, with all that it started."""
        await_end(self._process, limit_seconds)


def start_children(
    stack: ExitStack,
    folder: Path,
    bootstrap: str,
    listen: str | None,
    remove_if_orphaned: Path | None,
    drill: str = "",
) -> dict[str, Child]:
    """Start load, exporter and job, by name.

    The configuration is in the folder, and the stack ends the children.
    """
    config = str(folder / "laggard.toml")
    address = listen or f"{HOST}:{PORT if is_free(PORT) else 0}"
    children = dict[str, Child]()
    # data that goes away needs no orderly end; a job that is still starting its JVM would take 15 s
    # for one
    stack.callback(stop_children, children, 0.0 if remove_if_orphaned else STOP_SECONDS)
    for name, arguments in (
        ("load", ["laggard.demo.load", bootstrap, *filter(None, [drill])]),
        ("exporter", ["laggard", "export", "--config", config, "--listen", address]),
        ("job", ["laggard", "run", "--config", config]),
    ):
        children[name] = Child(name, arguments, folder, remove_if_orphaned)
    return children


def stop_children(children: Mapping[str, Child], limit_seconds: float) -> None:
    """End all of them side by side, by force after the limit."""
    deadline = time.monotonic() + limit_seconds
    for child in children.values():
        child.send(signal.SIGTERM)
    for child in children.values():
        child.await_end(max(0.0, deadline - time.monotonic()))


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return our environment with the path of the running laggard package.

    The user's configuration is left out.
    """
    inherited = {
        name: value
        for name, value in environ.items()
        if name != "LAGGARD_CONFIG" and not (name.startswith("LAGGARD_") and "__" in name)
    }
    library = str(Path(laggard.__file__).absolute().parent.parent)
    return inherited | {
        "PYTHONPATH": os.pathsep.join([library, *filter(None, [environ.get("PYTHONPATH")])])
    }


def is_free(port: int, host: str = HOST) -> bool:
    """Return True if the address is on this machine and no process listens there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
