"""Keep kafka-python's log free of secrets, whatever level its loggers have."""

from __future__ import annotations

import logging

_CLIENT = "kafka"


def silence_client() -> None:
    """Silence kafka-python, which logs every retry; what matters is raised as an error.

    Its DEBUG lines hold each request, and so the password of a login: they are dropped also where somebody else's
    settings ask for them. A filter counts for one logger, and a level of `kafka.net` wins over that of `kafka`.
    """
    logging.getLogger(_CLIENT).setLevel(logging.CRITICAL)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if f"{name}.".startswith(f"{_CLIENT}.") and isinstance(logger, logging.Logger):
            logger.addFilter(_is_no_request)  # once only: it knows its filters


def _is_no_request(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG
