"""The facts of the page with exact numbers, as `laggard plan --json` gives them."""

from __future__ import annotations

from math import isnan
from typing import Any

from laggard.cli.diagnosis_words import verdict_sentence
from laggard.cli.plan.answer import Answer, not_known
from laggard.cli.plan.outcome import Outcome, Share, Span


def to_data(found: Answer) -> dict[str, Any]:
    """All keys are always there; null is not known, and no number of seconds is infinite but as the text Infinity."""
    row, rates, cost = found.verdict, found.rates, found.cost
    return {
        "cluster": found.explained.batch.cluster,
        "group": found.explained.group["group"],
        "window_end": row["window_end"],
        "verdict": row["scale_verdict"],
        "verdict_text": verdict_sentence(row),
        "change": {
            "members": found.change.members,
            "assignor": found.change.assignor,
            "topic": found.change.topic,
            "partitions": found.change.partitions,
            "rate": found.change.rate,
        },
        "members_desired": found.desired,
        "members_ceiling": found.plan.signals.ceiling,
        "capacity_rate": _span(rates.capacity),
        "arrival_ratio": _span(rates.arrival),
        "hot_partitions": [{"topic": topic, "partition": number} for topic, number in found.plan.hot()],
        "least_drain_seconds": _number(found.plan.least_drain()[1]),
        "now": None if found.now is None else _outcome(found.now),
        "then": _outcome(found.then),
        "cost": {
            "rebalances": cost.rebalances,
            "rebalances_most": cost.rebalances_most,
            "moved_partitions": _span(cost.moved),
            "paused_partitions": _number(cost.paused),
            "pause_max_seconds": _span(cost.pause),
            "rebalances_recorded": cost.recorded,
            "records_delayed": _span(cost.delayed),
        },
        "sweep": [_outcome(each) for each in found.sweep],
        "not_known": [{"code": code, "text": text} for code, text in not_known(found)],
    }


def _outcome(found: Outcome) -> dict[str, Any]:
    return {
        "members": found.members,
        "idle_members": found.idle,
        "largest_rate": _number(found.largest),
        "drain_seconds": _span(found.drain),
        "unread_after_target": _number(found.left),
        "loads": [_share(each) for each in found.shares],
    }


def _share(share: Share) -> dict[str, Any]:
    return {
        "member": share.name,
        "partitions": [{"topic": topic, "partition": number} for topic, number in share.partitions],
        "arrival_rate": share.arrival,
        "lag": share.lag,
        "drain_seconds": _span(share.drain),
    }


def _span(span: Span) -> dict[str, float | None]:
    return {"value": _number(span.value), "p10": _number(span.low), "p90": _number(span.high)}


def _number(value: float) -> float | None:
    return None if isnan(value) else value
