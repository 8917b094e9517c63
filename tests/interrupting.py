"""What a signal handler does between two lines of its own thread."""

import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

LIMIT = 20.0  # seconds; a thread that waits for itself needs longer


def is_ended_if_interrupted(work: Callable[[], Any], handler: Callable[[], Any], line: int) -> bool:
    """True if the work ends although the handler runs before its line of this number, lines of
    libraries included.
    """

    def run() -> None:
        lines_left = line

        def trace(_: Any, event: str, __: Any) -> Any:
            nonlocal lines_left
            lines_left -= event == "line"
            if event == "line" and lines_left == 0:
                sys.settrace(None)
                handler()
            return trace

        sys.settrace(trace)
        work()
        sys.settrace(None)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    return not thread.is_alive()
