"""The facts of the page with exact numbers, as `laggard explain --json` and the API give them."""

from __future__ import annotations

from typing import Any

from laggard.answers.explain.headline import headline, leading
from laggard.answers.explain.members import member_lines, time_lag_is_exact
from laggard.answers.explain.rows import Explained
from laggard.answers.explain.unknown import not_known
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import says, steps, verdict_sentence


def to_data(explained: Explained, most: int | None = None) -> dict[str, Any]:
    """Return all facts of the page with exact numbers, also infinite ones; null means unknown.

    Of the partitions, which are in order, so many at most.
    """
    shown = explained.partitions[:most]
    past = explained.past
    if past is not None:
        past = [row | {"says": says(row)} for row in past]
    return {
        "cluster": explained.batch.cluster,
        "batch_id": explained.batch.batch_id,
        "polled_at": explained.batch.polled_at,
        "diagnosis": _diagnosis(explained),
        "group": explained.group | {"time_lag_is_exact": time_lag_is_exact(explained.partitions)},
        "partitions": shown,
        "partitions_left_out": len(explained.partitions) - len(shown),
        "members": None if explained.members is None else _members(explained),
        "rebalances": explained.rebalances,
        "topic": explained.topic,
        "since": explained.since,
        "past": past,
        "not_known": [{"code": code, "text": text} for code, text in not_known(explained)],
    }


def _members(explained: Explained) -> list[Row]:
    return [
        {
            **{
                name: value
                for name, value in line.row.items()
                if name not in {"batch_id", "source_offset"}
            },
            "is_idle": line.is_idle,
            "lag": line.lag,
            "lag_is_exact": line.lag_is_exact,
            "time_lag_seconds": line.time_lag_seconds,
            "time_lag_is_exact": line.time_lag_is_exact,
        }
        for line in member_lines(explained)
    ]


def _diagnosis(explained: Explained) -> dict[str, Any]:
    """Return the diagnosis with all keys always present.

    Unknown values, as when the rules are behind, are null.
    """
    diagnosis = explained.diagnosis
    window = diagnosis.windows[0] if diagnosis.windows and diagnosis.is_current else {}
    lead = leading(diagnosis) or {} if diagnosis.is_current else {}
    windows = findings = suppressed = None
    if diagnosis.is_current:
        windows, suppressed = diagnosis.windows, diagnosis.suppressed
        findings = [row | {"says": says(row), **steps(row, window)} for row in diagnosis.findings]

    return {
        "headline": headline(explained),
        "evaluated_to": diagnosis.evaluated_to,
        "windows_behind": diagnosis.windows_behind,
        "is_current": diagnosis.is_current,
        "verdict": window.get("scale_verdict"),
        "verdict_text": verdict_sentence(window) if window else None,
        "members_desired": window.get("members_desired"),
        "windows": windows,
        "primary_finding_id": lead.get("finding_id"),
        "findings": findings,
        "suppressed": suppressed,
    }
