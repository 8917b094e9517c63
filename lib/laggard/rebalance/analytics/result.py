"""Analytics results: a row of `rebalances` per logical rebalance, and the details behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from laggard.rebalance.analytics.departures import Departure
from laggard.rebalance.analytics.movement import Move
from laggard.rebalance.analytics.pauses import PartitionPause
from laggard.rebalance.analytics.posterior import Posterior


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A row of `rebalances` without what the writer adds (date, batch_id)."""

    cluster: str
    group: str
    rebalance_id: str
    status: str
    started_low: datetime | None
    started_high: datetime | None
    started_est: datetime | None
    ended_at: datetime
    rebalance_seconds: float | None
    join_seconds: float | None
    sync_seconds: float | None
    generations: tuple[int, ...]
    interrupted: int | None
    rebalance_mode: str | None
    assignor: str | None
    cause: str
    necessity: str
    cause_posterior: Posterior | None
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    replaced: tuple[str, ...] | None
    members_before: int | None
    members_after: int
    leader: str | None
    straggler_slot: str | None
    partitions: int | None
    moved: int | None
    necessary: int | None
    avoidable: int | None
    moved_ratio: float | None
    efficiency: float | None
    stateful: bool | None
    paused_partitions: int | None
    pause_p50_seconds: float | None
    pause_p95_seconds: float | None
    pause_max_seconds: float | None
    paused_partition_seconds: float | None
    records_delayed: int | None
    records_replayed: int | None
    replay_bound: int | None
    lag_before: int | None
    lag_after: int | None
    unread_window_seconds: float | None
    coordinator: int | None
    live_read: bool
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """A row, and the single moves, departures and pauses that it sums up."""

    row: Rebalance
    moves: tuple[Move, ...]
    departures: tuple[Departure, ...]
    pauses: tuple[PartitionPause, ...]
    pause_seconds: tuple[float, ...]  # of the partitions that it stopped
    # of the moves, those that bring a partition back to where its last move took it from
    returned: int
