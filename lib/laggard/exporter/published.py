"""What the serving loop holds: one reference, replaced whole; the clock alone decides whether its data still counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from laggard.exporter.render import Body

MAX_AHEAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Published:
    """Bodies of the newest batch: `full` while its data is fresh, `own` (families G and H) when it is not."""

    cluster: str
    own: Mapping[str, Body]
    reason: str  # why data is not served, when it is not
    full: Mapping[str, Body] | None = None
    batch_id: int | None = None
    polled_at: float = 0.0
    max_age_seconds: float = 0.0

    def is_ready(self, now: float) -> bool:
        """Whether the data families are served at this moment."""
        return self.full is not None and is_fresh(self.polled_at, now, self.max_age_seconds)

    def bodies(self, now: float) -> Mapping[str, Body]:
        """What a scrape at this moment gets."""
        return self.full if self.full is not None and self.is_ready(now) else self.own

    def reason_at(self, now: float) -> str:
        """Empty while ready."""
        return "" if self.is_ready(now) else self.reason

    def etag(self, now: float) -> str:
        """The batch id, weak: the exporter's own numbers change within a batch."""
        if self.batch_id is None:
            return ""
        return f'W/"{self.batch_id}"' if self.is_ready(now) else f'W/"{self.batch_id}-{self.reason}"'


def is_fresh(polled_at: float, now: float, max_age_seconds: float) -> bool:
    """Neither too old nor from the future."""
    return -MAX_AHEAD_SECONDS <= now - polled_at <= max_age_seconds


def max_age(tick_seconds: int, configured_seconds: int = 0) -> float:
    """Age at which data disappears: max(3 ticks, 90 s), or what is configured."""
    return float(configured_seconds or max(3 * tick_seconds, 90))
