"""Label values: any name a client can invent becomes safe text, and two names never become one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any

MAX_BYTES = 256
_HASH_DIGITS = 16


@lru_cache(maxsize=1 << 17)
def escape_label(name: str) -> str:
    r"""Return the name as `printable` gives it, cut above 256 bytes.

    A cut name has `\#` and a hash that makes it unique.
    """
    if name.isascii() and name.isprintable() and "\\" not in name and len(name) <= MAX_BYTES:
        return name
    escaped = printable(name)
    if len(escaped.encode()) <= MAX_BYTES:
        return escaped
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return _cut(list(map(_escape_letter, name)), MAX_BYTES - _HASH_DIGITS - 2) + "\\#" + digest


def printable(text: str) -> str:
    r"""Return the text with backslash and unprintable characters as `\xNN` (UTF-8 bytes in hex)."""
    return "".join(map(_escape_letter, text))


def printable_json(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    r"""Return JSON with all characters that are not printable, controls included, as `\uNNNN`."""
    text = json.dumps(finite(value), default=default, ensure_ascii=False, allow_nan=False)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def finite(value: Any) -> Any:
    """Replace infinity and NaN, which JSON lacks, with the texts Infinity and NaN.

    Null would mean unknown.
    """
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "NaN"
        return str(value).replace("inf", "Infinity")
    return value


def printable_lines(text: str) -> str:
    r"""Return text with unprintable characters as `\xNN`, except line ends.

    The text is our sentences with names of others in them.
    """
    return "\n".join(
        "".join(c if c.isprintable() else _escape_letter(c) for c in line)
        for line in text.split("\n")
    )


def _escape_letter(letter: str) -> str:
    # not printable: control, format (bidirectional marks), surrogate, unassigned, and separators
    # but the space
    if letter.isprintable() and letter != "\\":
        return letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))


def _cut(pieces: list[str], size: int) -> str:
    """Join as many whole pieces as fit into `size` bytes."""
    fitting = []
    for piece in pieces:
        size -= len(piece.encode())
        if size < 0:
            break
        fitting.append(piece)
    return "".join(fitting)
