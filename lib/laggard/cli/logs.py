"""The log on standard error: JSON lines for machines, text for people."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from laggard.escape import printable_json, printable_lines

if TYPE_CHECKING:
    _Stream = logging.StreamHandler[TextIO]
else:
    _Stream = logging.StreamHandler  # takes no type in Python 3.10

LINES_PER_MINUTE, KEPT_FOR_ERRORS = 40, 10  # the JVM of the job may write 20 more
# one dead broker gives two lines a second; what matters is raised as an error of ours
_NOISY = ("kafka", "py4j")


class JsonLines(logging.Formatter):
    """One object per line.

    JSON escapes control characters, so a group's name cannot forge a line.
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """Time, level, message; control characters are escaped here too."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        message = printable_json(record.getMessage())[1:-1].replace('\\"', '"')
        error = (
            f"\n{printable_lines(self.formatException(record.exc_info))}" if record.exc_info else ""
        )
        return f"{clock} {record.levelname.lower()} {message}{error}"


class BoundedHandler(_Stream):
    """At most `LINES_PER_MINUTE` lines a minute whatever goes wrong; tells how many were left out.

    The last lines of a minute are kept for errors.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._minute_began = clock()
        self._lines = 0
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, or count it."""
        if self._clock() - self._minute_began >= 60:
            left_out, self._left_out, self._lines, self._minute_began = (
                self._left_out,
                0,
                0,
                self._clock(),
            )
            if left_out:
                self.emit(
                    logging.makeLogRecord(
                        {
                            "levelno": logging.WARNING,
                            "levelname": "WARNING",
                            "name": "laggard.log",
                            "msg": f"{left_out} log lines were left out in the last minute",
                        }
                    )
                )
        limit = (
            LINES_PER_MINUTE
            if record.levelno >= logging.ERROR
            else LINES_PER_MINUTE - KEPT_FOR_ERRORS
        )
        if self._lines >= limit:
            self._left_out += 1
            return
        self._lines += 1
        super().emit(record)


def start_log(level: str, *, is_json: bool) -> None:
    """Send every logger of this process to standard error."""
    # who asks for everything gets everything
    handler = logging.StreamHandler() if level == "debug" else BoundedHandler()
    handler.setFormatter(JsonLines() if is_json else TextLines())
    if level != "debug":
        handler.addFilter(_is_not_of_py4j)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _NOISY:
        # never debug: kafka-python writes its whole configuration there, py4j every call
        logging.getLogger(name).setLevel(logging.INFO if level == "debug" else logging.CRITICAL)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return False for records that py4j logs with the root logger.

    They are a traceback for each thread of an ended JVM.
    """
    return f"{os.sep}py4j{os.sep}" not in record.pathname
