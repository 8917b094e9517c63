"""The JSON object around the answer of every verb."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from laggard.answers.schema.types import printed
from laggard.escape import finite, printable_json


def json_answer(
    data: Any, *, is_ok: bool = True, text_of: Callable[[Any], str] = datetime.isoformat
) -> str:
    """Return the answer that `--json` prints; `text_of` writes the values that JSON lacks."""
    return printable_json(finite({"v": 1, "ok": is_ok, "data": printed(data)}), text_of)
