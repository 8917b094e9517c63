"""Input of the rules of the cluster: each group as plain values, and the cluster's own events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.group import Signals

_BLIND = ("no_end_offset", "stale")
_RECENT_WINDOWS = fixed(
    "recent_windows", 2, "windows in which a rebalance may be its coordinator's"
)


@dataclass(frozen=True, slots=True)
class ClusterFrame:
    """The window that all groups are evaluated in, and the cluster's own events of it."""

    name: str
    window_ms: int
    window_seconds: int
    events: Sequence[Row] = ()  # of group_events up to its end, without a group
    # group to exception, after the tick that closed it
    quarantined: Mapping[str, str] = field(default_factory=dict)
    quarantined_groups: int = 0  # of which `quarantined` names some

    @property
    def now_ms(self) -> int:
        return self.window_ms + 1000 * self.window_seconds


def cluster_signal(signals: Signals, brokers: Mapping[int, float]) -> Row:
    """Return what the cluster's rules look at in a group, as plain values.

    `brokers` are those whose partitions lag and no others, with the share of the group's lag that
    they explain.
    """
    status = np.concatenate(
        [each.frame.named("status")[:, -1] for each in signals.topics] or [np.array([], object)]
    )
    committed = [each for each in status.tolist() if each not in ("no_commit", "")]
    begin = signals.frame.now - timedelta(seconds=_RECENT_WINDOWS * signals.frame.window_seconds)
    worst = signals.worst
    return {
        "group": signals.frame.group,
        "coordinator": signals.frame.fact.get("coordinator"),
        "offsets_partition": signals.frame.fact.get("offsets_partition"),
        "client_ids": sorted({each.client_id for each in signals.members.values()}),
        "is_active": bool(signals.member_count),
        "blind": sum(each in _BLIND for each in committed) / len(committed) if committed else 0.0,
        "blocked": "source_blocked" in committed,
        "blocked_windows": _blocked_windows(signals),
        "led_before": led_before(signals.frame.events),
        "rebalanced_at": _rebalanced(signals, begin),
        "spread_down": bool(
            worst is not None
            and worst.shape.name == "spread"
            and signals.sub_cause in ("capacity_down", "both")
        ),
        "brokers": dict(brokers),
        "material_lag": signals.material_lag,
    }


def led_before(events: Sequence[Row]) -> list[tuple[datetime, int | None]]:
    """Return former coordinators and first sight of their replacement, oldest first.

    None stands for no broker; the replacement is the first other broker seen in their place.

    A poll sees a change up to a tick after it was made.
    """
    rows = [row for row in events if row["kind"] == "coordinator_changed"]
    brokers = [dict(row["detail"] or ()).get("from", "") for row in rows]
    found = [
        (row["event_at"], int(each) if each.isdigit() else None)
        for row, each in zip(rows, brokers, strict=True)
    ]
    return sorted(found, key=lambda each: float(each[0].timestamp()))


def no_signal(group: str) -> Row:
    """Return the signal of a group that could not be evaluated.

    It counts neither for nor against a finding.
    """
    return {
        "group": group, "coordinator": None, "offsets_partition": None, "client_ids": [],
        "is_active": False,
        "blind": 0.0, "blocked": False, "blocked_windows": 0, "led_before": [], "rebalanced_at": [],
        "spread_down": False, "brokers": {}, "material_lag": 0.0,
    }  # fmt: skip


def _blocked_windows(signals: Signals) -> int:
    """Return for how many windows up to this one the group's commits have been hidden."""
    if not any(
        "source_blocked" in each.frame.named("status")[:, -1].tolist() for each in signals.topics
    ):
        return 0
    hidden = [
        (each.frame.named("status") == "source_blocked").any(axis=0) for each in signals.topics
    ]
    together = np.any(hidden, axis=0)[::-1]
    return int(len(together) if together.all() else np.argmin(together))


def _rebalanced(signals: Signals, begin: datetime) -> list[datetime]:
    """Return the times of rebalances since a moment, without those in which a new group forms."""
    # which has no generation
    rows = [row for row in signals.frame.live_generations if row["kind"] != "tombstone"]
    if rows and rows[0]["generation"] <= 1:
        together = timedelta(seconds=signals.parameters.coordinator_seconds)
        begin = max(begin, rows[0]["record_timestamp"] + together)
    return [row["record_timestamp"] for row in rows if row["record_timestamp"] >= begin]
