"""The process `laggard`: the effect of signals from the first line on, one verb, the exit.

Until the handlers are set a signal ends Python itself (-15), so each import before that counts:
`typing` and `contextlib` would double what they cost together.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# end in order on SIGTERM; any other verb is cut off by it, and its exit code says so
SERVICES = ("run", "export")
OK, INTERRUPTED = 0, 130  # as in laggard.errors; nothing is imported before the signals are set
EARLY = {signal.SIGTERM: lambda *_: os._exit(OK), signal.SIGINT: lambda *_: os._exit(INTERRUPTED)}


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run one verb and end the process with its exit code."""
    chosen = sys.argv[1:] if words is None else list(words)
    # perhaps a service; sure once the parser is there
    early = EARLY
    if {*SERVICES}.isdisjoint(chosen):
        early = {signal.SIGINT: EARLY[signal.SIGINT]}
    before = {number: signal.signal(number, end) for number, end in early.items()}
    from laggard.cli.main import main as run_verb
    from laggard.cli.parser import chosen_verb

    # a service has nothing to put in order until it sets handlers of its own
    if chosen_verb(chosen) not in SERVICES or "--print" in chosen:
        for number, end in before.items():
            signal.signal(number, end)
    try:
        code = run_verb(chosen)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as end:  # argparse: help, version, a wrong use
        code = end.code if isinstance(end.code, int) else OK
    leave(code)


def leave(code: int) -> NoReturn:
    """End the process without ending the interpreter.

    Threads of Arrow and delta-rs may still be at work; one of them that meets an interpreter half
    taken down is a segmentation fault.
    """
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, full, or never there
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
