"""Times as a user writes them, the same in every verb.

Examples: 2h, -2h, now, 10:36, 2026-11-20, 2026-11-20T12:00+01:00.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

When = Callable[[datetime], datetime]  # the time of the newest poll to the time that is meant
FORMS = "2h or -2h (before the newest poll), now, 10:36, 2026-11-20T12:00 or 2026-11-20T12:00+01:00"
HELP = f"{FORMS}; UTC if it names no zone"
_LONGEST = timedelta(days=36500)  # what lies before it is near the end of what Python can count
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.ASCII)
_ZONE = re.compile(r" ?(?:z|utc)$", re.ASCII | re.IGNORECASE)
_TIME = r"\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[+-]\d\d(?::?\d\d)?)?"  # from the minutes on
_OF_DAY = re.compile(rf"\d\d?:{_TIME}", re.ASCII)
# Python takes any letter for T
_AT = re.compile(rf"\d{{4}}-\d\d-\d\d(?:[T ]\d\d:{_TIME})?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Written:
    """Hold a time as it was written, and what it means; an exporter is asked with the text."""

    text: str
    meant: When

    def __call__(self, now: datetime) -> datetime:
        return self.meant(now)


def span(text: str) -> timedelta:
    """Parse a span such as 90s, 30m, 24h or 7d."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ArgumentTypeError(f"expected a span such as 90s, 30m, 24h or 7d, got {text!r}")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError:
        raise ArgumentTypeError(f"too long: {text!r}") from None


def when(text: str) -> Written:
    """Parse a moment, or a span before the newest poll.

    A time of day is the last one before that poll.
    """
    plain = text.strip()
    if plain.lower() == "now":
        return Written(text, lambda now: now)
    if _SPAN.fullmatch(plain.removeprefix("-")):
        back = span(plain.removeprefix("-"))
        if back > _LONGEST:
            raise ArgumentTypeError(f"too long ago: {text!r}")
        return Written(text, lambda now: now - back)
    return _time(text, _ZONE.sub("+00:00", plain))


def _time(text: str, plain: str) -> Written:
    """Read a time of the day, or a moment; `text` is as it was written."""
    try:
        if _OF_DAY.fullmatch(plain):
            of_day = _aware(f"2000-01-02T{plain if plain[2] == ':' else '0' + plain}")
            return Written(text, lambda now: now - (now - of_day) % timedelta(days=1))
        if not _AT.fullmatch(plain):
            raise ValueError(plain)
        at = _aware(plain)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"expected a time as {FORMS}, got {text!r}") from None
    if not 1970 <= at.year < 3000:
        raise ArgumentTypeError(f"expected a time from 1970 to 2999, got {text!r}")
    return Written(text, lambda _: at)


def _aware(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)


def at_time(text: str) -> datetime:
    """Return the time that a document gives as text."""
    return datetime.fromisoformat(text)
