"""Running totals carried by each `batches` row, gaps between batches, and seconds of steps."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from laggard.lag.tick import Tick
from laggard.sources.snapshot import Snapshot
from laggard.tables.schema.batch_tables import RECORDS_REMOVED

OUTCOMES = {
    "record": "decoded",
    "tombstone": "tombstones",
    "unsupported": "unknown",
    "malformed": "dead",
}


@dataclass
class Totals:
    """Counters that never fall, not even across restarts: they are columns of `batches`."""

    batches: int = 0
    records: Counter[str] = field(default_factory=Counter)
    dead_letters: Counter[str] = field(default_factory=Counter)
    unknown_records: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)
    polls: Counter[str] = field(default_factory=Counter)
    poll_errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)
    stage_seconds: Counter[str] = field(default_factory=Counter)
    quarantines: int = 0
    source_commits: Counter[int] = field(default_factory=Counter)
    poll_seconds: Counter[str] = field(default_factory=Counter)
    shed_keys: int = 0
    corrections: int = 0

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | None) -> Totals:
        """Return the totals after the batch of this row; zeros for None."""
        if row is None:
            return cls()
        return cls(
            batches=row["batches_total"],
            records=Counter(row["records_total"]),
            dead_letters=Counter(row["dead_letters_total"]),
            unknown_records=Counter(
                {
                    (entry["record_type"], entry["version"]): entry["records"]
                    for entry in row["unknown_records_total"]
                }
            ),
            polls=Counter(row["polls_total"]),
            poll_errors=Counter(
                {
                    (entry["api"], entry["error"]): entry["errors"]
                    for entry in row["poll_errors_total"]
                }
            ),
            gaps=Counter(row["gaps_total"]),
            stage_seconds=Counter(row["stage_seconds_total"]),
            quarantines=row.get("quarantines_total") or 0,  # an older job did not count them
            source_commits=Counter(row.get("source_commits_total") or {}),
            poll_seconds=Counter(row.get("poll_seconds_total") or {}),
            shed_keys=row.get("shed_keys_total") or 0,
            corrections=row.get("reconcile_corrections_total") or 0,
        )

    def columns(self) -> dict[str, Any]:
        """Return the `…_total` columns."""
        return {
            "batches_total": self.batches,
            "records_total": dict(self.records),
            "dead_letters_total": dict(self.dead_letters),
            "unknown_records_total": [
                {"record_type": kind, "version": version, "records": number}
                for (kind, version), number in self.unknown_records.items()
            ],
            "polls_total": dict(self.polls),
            "poll_errors_total": [
                {"api": api, "error": error, "errors": number}
                for (api, error), number in self.poll_errors.items()
            ],
            "gaps_total": dict(self.gaps),
            "stage_seconds_total": dict(self.stage_seconds),
            "quarantines_total": self.quarantines,
            "source_commits_total": dict(self.source_commits),
            "poll_seconds_total": dict(self.poll_seconds),
            "shed_keys_total": self.shed_keys,
            "reconcile_corrections_total": self.corrections,
        }

    def add_records(self, counts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Add a batch's count rows and return the batch's counts.

        These are decoded, tombstones, unknown, dead and records.
        """
        batch = Counter({"decoded": 0, "tombstones": 0, "unknown": 0, "dead": 0})
        for row in counts:
            batch[OUTCOMES[row["outcome"]]] += row["records"]
            if row["outcome"] == "malformed":
                self.dead_letters[row["reason"]] += row["records"]
            if row["outcome"] == "unsupported":
                self.unknown_records[row["record_type"], row["record_version"]] += row["records"]
        self.records.update(
            decoded=batch["decoded"],
            tombstone=batch["tombstones"],
            unknown=batch["unknown"],
            dead=batch["dead"],
        )
        return {**batch, "records": sum(batch.values())}

    def finish(
        self, stage_seconds: Mapping[str, float], gap_reasons: Iterable[str]
    ) -> dict[str, Any]:
        """Count the batch itself; gives the `…_total` columns of its row."""
        self.batches += 1
        self.gaps.update(gap_reasons)
        self.stage_seconds.update(stage_seconds)
        return self.columns()

    def add_poll(self, snapshot: Snapshot) -> None:
        """Add a poll's requests, what they took, and failures."""
        self.polls.update(snapshot.requests)
        self.poll_seconds.update(snapshot.request_seconds)
        for api, error, number in snapshot.failures:
            self.poll_errors[api, error] += number


def find_gaps(
    last: Mapping[str, Any] | None, snapshot: Snapshot, tick: Tick, *, reason: str = ""
) -> list[dict[str, Any]]:
    """Return gap rows for records removed before they were read, and for a replaced source.

    `reason` is that for which nothing goes on from the batch before, empty for none.
    """
    if last is None or last["polled_at"] is None:
        return []
    gaps: list[dict[str, Any]] = []
    if reason:
        gaps.append(
            {
                "gap_scope": "all",
                "gap_from": last["polled_at"],
                "gap_to": tick.now,
                "gap_reason": reason,
            }
        )
    for part in snapshot.offsets_partitions.to_pylist():
        position, start = last["source_to"].get(part["offsets_partition"]), part["log_start_offset"]
        if position is not None and start is not None and start > position:
            gaps.append(
                {
                    "gap_scope": f"offsets partition {part['offsets_partition']}",
                    "gap_from": last["polled_at"],
                    "gap_to": tick.now,
                    "gap_from_offset": position,
                    "gap_to_offset": start,
                    "gap_reason": RECORDS_REMOVED,
                }
            )
    return gaps


class Stopwatch:
    """Seconds per stage of the batch, and when it began and ended."""

    def __init__(self) -> None:
        self._started_at = datetime.now(timezone.utc)
        self._began = self._since = time.monotonic()
        self.seconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage] = now - self._since
        self._since = now

    def times(self, not_before: datetime) -> dict[str, datetime]:
        """Return `started_at` and `published_at`, true elapsed seconds apart.

        They are not before the time of the rows.
        """
        started_at = max(self._started_at, not_before)
        return {
            "started_at": started_at,
            "published_at": started_at + timedelta(seconds=time.monotonic() - self._began),
        }

    def move(self, stage: str, to: str, seconds: float) -> None:
        """Count some seconds of one stage for another."""
        self.seconds[to] = min(seconds, self.seconds[stage])
        self.seconds[stage] -= self.seconds[to]
