"""Numbers, times, names and sentences as text: the same in every verb."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from textwrap import wrap

from laggard.escape import escape_label

UNKNOWN = "unknown"
NAME_WIDTH = 48
NOTHING = 0.05  # seconds; less is shown as less than a tenth, and is no lower bound worth a word
WIDTH = 100
_NO_WIDTH = ("Mn", "Me", "Cf")  # marks on the letter before, and what steers the text
# parts of a Korean letter; tones of a skin
_JOINED = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff\U0001f3fb-\U0001f3ff]")
_GLUE = "\u00a0"  # in no name: `short` writes it as bytes
_TOGETHER = re.compile(r"(?<=\d) (?=[smhd]\b|%|UTC|records/s|\d\d[ :])")


def aligned(rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> list[str]:
    """Return rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    padded = (
        [
            pad(cell, size, is_right=right)
            for cell, size, right in zip(row, widths, is_right, strict=True)
        ]
        for row in rows
    )
    return ["  ".join(cells).rstrip() for cells in padded]


def pad(cell: str, size: int, *, is_right: bool) -> str:
    """Fill a cell up to a width on the screen."""
    gap = " " * (size - width(cell))
    return gap + cell if is_right else cell + gap


def width(text: str) -> int:
    """Return the screen columns of a text.

    Chinese letters and emoji take two, combining accents none.
    """
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    letters = (
        letter for letter in text if category(letter) not in _NO_WIDTH and not _JOINED.match(letter)
    )
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in letters)


def duration(seconds: float) -> str:
    """Return a duration in at most two units: 4 s, 3 m 05 s, 1 h 04 m, 2 d 03 h."""
    whole = int(seconds)
    for size, unit, small, part in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small:02d} {part}"
    return f"{whole} s"


def short_duration(seconds: float) -> str:
    """Return a duration, below a minute with tenths: 0.4 s; below a tenth "less than 0.1 s"."""
    if 0 < seconds < NOTHING:
        return "less than 0.1 s"
    return f"{seconds:.1f}".removesuffix(".0") + " s" if seconds < 59.95 else duration(seconds)


def moment(at: datetime) -> str:
    """Return a time as text in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def known(value: object, *, is_exact: bool = True) -> str:
    """Return the value as text, a lower bound marked as such, or `unknown`."""
    if value is None:
        return UNKNOWN
    return str(value) if is_exact else f"≥ {value}"


def records(number: int | None, *, is_exact: bool = True) -> str:
    """Return a number of records as text: 1,200; a lower bound is ≥ 1,200; else unknown."""
    return known(None if number is None else f"{number:,}", is_exact=is_exact)


def known_duration(seconds: float | None, *, is_exact: bool = True) -> str:
    """Return a duration as text, a lower bound marked as such, or `unknown`."""
    return known(None if seconds is None else duration(seconds), is_exact=is_exact)


def percent(ratio: float | None) -> str:
    """Return a ratio in percent with one decimal, or `unknown`."""
    return UNKNOWN if ratio is None else f"{100 * ratio:.1f} %"


def short(name: str, size: int = NAME_WIDTH) -> str:
    """Return a client's name escaped and shortened for the terminal.

    So the name can neither control nor fill the terminal.
    """
    safe = escape_label(name)
    if width(safe) <= size:
        return safe
    while width(safe) >= size:
        safe = safe[: min(len(safe), size) - 1]
    return safe + "…"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: 1 partition, 2 partitions."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Iterable[str], limit: int = 5) -> str:
    """Return names separated by commas; after the first few only the number of the others."""
    every = list(names)
    shown = ", ".join(map(short, every[:limit]))
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit} more"


def paragraph(text: str, begin: str = "  - ", after: str = "    ") -> list[str]:
    """Return a text as wrapped lines; a number stays with its unit, and a date with its time."""
    lines = wrap(
        _TOGETHER.sub(_GLUE, text),
        WIDTH,
        initial_indent=begin,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]
