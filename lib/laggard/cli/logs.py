"""The log on standard error: JSON lines for machines, text for people."""

from __future__ import annotations

import json
import logging
import time

_NOISY = ("kafka", "py4j")  # one dead broker gives two lines a second; what matters comes back as an error of ours


class JsonLines(logging.Formatter):
    """One object per line; JSON escapes control characters, so a group's name cannot forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
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
        message = json.dumps(record.getMessage(), ensure_ascii=False)[1:-1].replace('\\"', '"')
        error = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{clock} {record.levelname.lower()} {message}{error}"


def start_log(level: str, *, is_json: bool) -> None:
    """Send every logger of this process to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if is_json else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _NOISY:
        # never debug: kafka-python writes its whole configuration there, py4j every call
        logging.getLogger(name).setLevel(logging.INFO if level == "debug" else logging.CRITICAL)
