"""Colours of states, verdicts, severities and shapes.

They are those of Okabe and Ito, safe for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

GREEN, SKY, BLUE, YELLOW, ORANGE, RED, PURPLE, GREY = (
    "#009E73", "#56B4E9", "#0072B2", "#F0E442", "#E69F00", "#D55E00", "#CC79A7", "#999999",
)  # fmt: skip

# a text that is in none of these is grey
COLOURS = {
    **dict.fromkeys(
        ("Stable", "none", "ok", "NOT_NEEDED", "draining", "NOT_NEEDED_DRAINING"), GREEN
    ),
    **dict.fromkeys(("info", "flat", "single"), SKY),
    **dict.fromkeys(("Empty", "YES", "YES_PARTIAL", "spread"), BLUE),
    **dict.fromkeys(
        ("Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance", "mixed"), YELLOW
    ),
    **dict.fromkeys(
        ("warn", "growing", "concentrated", "starting", "catching_up", "committed_ahead"), ORANGE
    ),
    **dict.fromkeys(
        (
            "page",
            "below_log_start",
            "topic_missing",
            "broker_unreachable",
            "stale",
            "auth",
            "clock",
        ),
        RED,
    ),
    **dict.fromkeys(
        ("sawtooth", "NO_HOT_PARTITION", "NO_COSTLY_PARTITION", "NO_UNHEALTHY_MEMBER"), PURPLE
    ),
    **dict.fromkeys(
        ("NO_REBALANCE_FIRST", "NO_STALLED", "NO_BROKER", "NO_IDLE", "NO_DOWNSTREAM"), ORANGE
    ),
}

# where a number begins to deserve a look, and where somebody has to act
THRESHOLDS: dict[str, tuple[float, float]] = {
    "age": (30, 90),  # seconds since the newest poll; the exporter withholds data after 90
    "batch": (5, 10),  # seconds of a batch; a tick is 10
    "burn": (1, 14.4),  # how many times faster than the objective allows
    "some": (1, 1),
}


def steps(name: str | None) -> dict[str, Any]:
    """Return Grafana's thresholds: green, orange, red; all green without a name."""
    found: list[dict[str, Any]] = [{"color": GREEN, "value": None}]
    if name:
        low, high = THRESHOLDS[name]
        found += [
            {"color": ORANGE, "value": low},
            *([{"color": RED, "value": high}] if high > low else []),
        ]
    return {"mode": "absolute", "steps": found}


def lanes(states: Sequence[str]) -> list[dict[str, Any]]:
    """Return Grafana's mapping of the numbers 0, 1, 2, … to states and their colours."""
    return _mapping({str(number): state for number, state in enumerate(states)})


def texts(states: Sequence[str]) -> list[dict[str, Any]]:
    """Return Grafana's mapping of texts to their colours; the texts stay."""
    return _mapping({state: state for state in states})


def _mapping(shown: dict[str, str]) -> list[dict[str, Any]]:
    options = {
        value: {"text": state, "color": COLOURS.get(state, GREY), "index": index}
        for index, (value, state) in enumerate(shown.items())
    }
    return [{"type": "value", "options": options}]
