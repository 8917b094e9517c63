"""State of the serving loop: one reference, replaced whole; the clock decides if data counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from laggard.exporter.body.render import Body
from laggard.exporter.snapshot import Snapshot
from laggard.tables.freshness import is_fresh

# for a body of several roots to be made again without the one that became too old
_LATE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Shown:
    """Hold what a body has of one table root."""

    cluster: str
    reason: str  # why data is not served, when it is not
    has_data: bool = False
    batch_id: int | None = None
    polled_at: float = 0.0
    max_age_seconds: float = 0.0
    root: str = ""
    snapshot: Snapshot | None = None  # while its data is carried

    def reason_at(self, now: float) -> str:
        """Say why data is not served at this moment; empty while it is."""
        is_ready = self.has_data and is_fresh(self.polled_at, now, self.max_age_seconds)
        if is_ready:
            return ""
        return self.reason


@dataclass(frozen=True, slots=True)
class Published:
    """Bodies of the newest batches: `full` while data is fresh, `own` (families G and H) if not."""

    own: Mapping[str, Body]
    roots: tuple[Shown, ...]
    full: Mapping[str, Body] | None = None

    def reasons(self, now: float) -> dict[str, str]:
        """Return per cluster why its data is not served; empty while it is."""
        return {root.cluster: root.reason_at(now) for root in self.roots}

    def bodies(self, now: float) -> Mapping[str, Body]:
        """Return the bodies of a scrape at this moment."""
        late = _LATE_SECONDS if len(self.roots) > 1 else 0.0
        if self.full is None:
            return self.own
        for root in self.roots:
            if root.has_data and not is_fresh(root.polled_at, now, root.max_age_seconds + late):
                return self.own
        return self.full

    def etag(self, now: float) -> str:
        """Return a weak ETag of the batch ids: the exporter's own numbers change within a batch."""
        if all(root.batch_id is None for root in self.roots):
            return ""
        parts = (f"{root.batch_id}-{root.reason_at(now)}".removesuffix("-") for root in self.roots)
        return f'W/"{".".join(parts)}"'
