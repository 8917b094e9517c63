"""A consumer's settings, and what all components of a simulation share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.clock import Clock, Network, Streams
from simulator.records import TopicPartition
from simulator.truth import Truth

if TYPE_CHECKING:
    from simulator.coordinator import Coordinator


@dataclass(frozen=True)
class Config:
    """A consumer's settings; the first five name it."""

    group: str
    client_id: str
    host: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    assignors: tuple[str, ...] = ("range",)
    session_ms: int = 45_000
    heartbeat_ms: int = 3_000
    poll_interval_ms: int = 300_000
    commit_ms: int | None = 5_000  # None: never by itself
    commit_on_revoke: bool = True
    commit_on_close: bool = True
    capacity: float = 600.0  # records per second
    max_records: int = 500
    # a batch that is not full takes at least so long, drawn between the two
    batch_ms: tuple[int, int] = (250, 250)
    metadata_ms: int = 300_000
    # a number makes it transactional; this share of transactions aborts
    abort_share: float | None = None
    record_version: int = 3  # of its subscription
    is_read_committed: bool = False  # isolation.level

    @property
    def slot(self) -> str:
        """What stays the same over restarts of what people call one instance."""
        return self.instance_id or f"{self.client_id}@{self.host}"


class World:
    """What all components share."""

    def __init__(
        self,
        clock: Clock,
        streams: Streams,
        network: Network,
        coordinator: Coordinator,
        truth: Truth,
    ) -> None:
        self.clock, self.streams, self.network = clock, streams, network
        self.coordinator, self.truth = coordinator, truth
        self.brokers = coordinator.brokers
        self.costs: dict[TopicPartition, float] = {}  # factors on the usual cost of a record
        # nobody fetches these, their offsets are committed as ever
        self.paused: set[TopicPartition] = set()
        # record at this offset, it takes so many ms more
        self.poison: dict[TopicPartition, tuple[int, int]] = {}
        # records/s that the partition's broker serves to a reader
        self.limits: dict[TopicPartition, float] = {}
        self.sinks: dict[str, Sink] = {}  # by group: where it writes to


class Sink:
    """What several members or groups write to, one batch after the other."""

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self._free_ms = 0.0

    def done_ms(self, now_ms: int, count: int) -> int:
        """When so many records that come now are stored."""
        self._free_ms = max(self._free_ms, now_ms) + 1000 * count / self.per_second
        return round(self._free_ms)
