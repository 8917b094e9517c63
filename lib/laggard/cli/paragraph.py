"""Sentences as lines of one width."""

from __future__ import annotations

import re
from textwrap import wrap

WIDTH = 100
_GLUE = "\u00a0"  # in no name: `short` writes it as bytes
_TOGETHER = re.compile(r"(?<=\d) (?=[smhd]\b|%|UTC|records/s|\d\d[ :])")


def paragraph(text: str, begin: str = "  - ", after: str = "    ") -> list[str]:
    """Lines of one width; a number stays with its unit, and a date with its time."""
    lines = wrap(
        _TOGETHER.sub(_GLUE, text),
        WIDTH,
        initial_indent=begin,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]
