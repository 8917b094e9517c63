"""Times as a user writes them: 2026-11-20T12:00, or -2h before the newest poll."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

When = Callable[[datetime], datetime]  # the time of the newest poll to the time that is meant
_LONGEST = timedelta(days=36500)  # what lies before it is near the end of what Python can count
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Written:
    """Hold a time as it was written, and what it means; an exporter is asked with the text."""

    text: str
    meant: When

    def __call__(self, now: datetime) -> datetime:
        return self.meant(now)


def span(text: str) -> timedelta:
    """90s, 30m, 24h or 7d."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None:
        raise ArgumentTypeError(f"expected a span such as 30m, 24h or 7d, got {text!r}")
    try:
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise ArgumentTypeError(f"too long: {text!r}") from None


def when(text: str) -> Written:
    """A moment in ISO 8601, in UTC unless it says otherwise; or a span before the newest poll, as -2h."""
    if text.startswith("-"):
        back = span(text[1:])
        if back > _LONGEST:
            raise ArgumentTypeError(f"too long ago: {text!r}")
        return Written(text, lambda now: now - back)
    try:
        at = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
        at = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"expected a time such as 2026-11-20T12:00 or -2h, got {text!r}") from None
    if not 1970 <= at.year < 3000:
        raise ArgumentTypeError(f"expected a time from 1970 to 2999, got {text!r}")
    return Written(text, lambda _: at)


def accept_spans(parser: argparse.ArgumentParser) -> None:
    """Let `--at -2h` be an option with its value; to argparse only -2 would be one."""
    parser._negative_number_matcher = re.compile(r"-\d+(\.\d+)?[smhd]?$")  # it has no other way
