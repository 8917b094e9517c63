"""Decide how old a batch may be before its numbers are no longer those of now."""

from __future__ import annotations

MAX_AHEAD_SECONDS = 60.0
MAX_WINDOWS_BEHIND = 5  # by more, what the rules found no longer speaks of now


def is_fresh(polled_at: float, now: float, max_age_seconds: float) -> bool:
    """Return True if the poll is neither too old nor from the future."""
    return -MAX_AHEAD_SECONDS <= now - polled_at <= max_age_seconds


def max_age(tick_seconds: int, configured_seconds: int = 0) -> float:
    """Return the age in seconds at which data disappears: max(3 ticks, 90 s), or configured."""
    return float(configured_seconds or max(3 * tick_seconds, 90))
