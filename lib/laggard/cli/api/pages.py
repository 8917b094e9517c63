"""Lists in pages: the next one begins behind the last entry, by the order and not by a number."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from laggard.cli.api.questions import ApiError

T = TypeVar("T")
Key = tuple[Any, ...]


def page_of(
    ordered: Sequence[tuple[Key, T]], limit: int, after: str | None, order: str, kinds: Collection[str]
) -> tuple[list[T], str | None]:
    """Give the entries behind a place, and the place of the last one if there are more.

    A key is of one of the `kinds`, with n for a number and s for a text.
    """
    if after is not None:
        place = _place(after, order)
        if "".join(map(_kind, place)) not in kinds:
            raise _bad(after)
        try:
            ordered = [each for each in ordered if each[0] > place]
        except TypeError:  # of the kind of another entry of the list
            raise _bad(after) from None
    shown = ordered[:limit]
    return [entry for _, entry in shown], _cursor(order, shown[-1][0]) if len(shown) < len(ordered) else None


def _cursor(order: str, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([order, *key]).encode()).decode().rstrip("=")


def _place(after: str, order: str) -> Key:
    try:
        found, *key = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)), parse_constant=_number)
    except (ValueError, TypeError, RecursionError):
        raise _bad(after) from None
    if found != order:
        raise ApiError(400, "bad_cursor", f"after belongs to the order {found!r}, not {order!r}")
    return tuple(key)


def _number(name: str) -> float:
    """Read what JSON lacks and Python writes; NaN is no place, as nothing is behind it."""
    if name == "NaN":
        raise ValueError(name)
    return float(name)


def _kind(value: object) -> str:
    return "n" if isinstance(value, (int, float)) else "s" if isinstance(value, str) else "?"


def _bad(after: str) -> ApiError:
    return ApiError(400, "bad_cursor", f"after is not a position in this list: {after[:80]!r}")
