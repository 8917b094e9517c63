"""The diagnosis of `laggard explain --json`: the facts of the page, with exact numbers."""

from __future__ import annotations

import math
from typing import Any

from laggard.cli.diagnosis_words import advice, avoid, says, verdict_sentence
from laggard.cli.explain_headline import headline, leading
from laggard.cli.explain_rows import Explained
from laggard.cli.published import Row


def diagnosis_data(explained: Explained) -> dict[str, Any]:
    """All keys are always there; what is not known, as after a rule that is behind, is null."""
    diagnosis = explained.diagnosis
    window = diagnosis.windows[0] if diagnosis.windows and diagnosis.is_current else None
    found = leading(diagnosis) if diagnosis.is_current else None
    data = {
        "headline": headline(explained),
        "judged_to": diagnosis.judged_to,
        "windows_behind": diagnosis.windows_behind,
        "is_current": diagnosis.is_current,
        "verdict": None if window is None else window["scale_verdict"],
        "verdict_text": None if window is None else verdict_sentence(window),
        "members_desired": None if window is None else window["members_desired"],
        "windows": diagnosis.windows if diagnosis.is_current else None,
        "primary_finding_id": None if found is None else found["finding_id"],
        "findings": [_finding(row, window or {}) for row in diagnosis.findings] if diagnosis.is_current else None,
        "suppressed": diagnosis.suppressed if diagnosis.is_current else None,
    }
    return {name: finite(value) for name, value in data.items()}


def _finding(row: Row, window: Row) -> Row:
    return row | {"says": says(row), "advice": advice(row, window), "avoid": avoid(row)}


def finite(value: Any) -> Any:
    """JSON has no infinity: it becomes the text Infinity, since null would say that it is not known."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return str(value).replace("inf", "Infinity") if isinstance(value, float) and math.isinf(value) else value
