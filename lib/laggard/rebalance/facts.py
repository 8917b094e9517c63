"""Inputs of the rebalance analytics: generations and commits in log order, and other known events.

None is not known, everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import starmap
from operator import itemgetter
from typing import Any

from laggard.rebalance.assignors import TopicPartition


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a member: by it a member that returns is known again."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


IDENTITY = ("member_id", "group_instance_id", "client_id", "client_host")


def identities(rows: Iterable[Mapping[str, Any]]) -> list[Identity]:
    """Return the identities of members, of rows that have its columns."""
    return list(starmap(Identity, map(itemgetter(*IDENTITY), rows)))


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """A member of one generation or epoch: a row of `group_members`."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    topics: tuple[str, ...] | None = None
    assigned: tuple[TopicPartition, ...] | None = None
    pending_revocation: tuple[TopicPartition, ...] | None = None

    @property
    def identity(self) -> Identity:
        return Identity(self.member_id, self.group_instance_id, self.client_id, self.client_host)

    @property
    def join_timeout_ms(self) -> int | None:
        """Longest join; in record version 0 the session timeout (GroupMetadataManager)."""
        if self.rebalance_timeout_ms is None:
            return self.session_timeout_ms
        return self.rebalance_timeout_ms


def are_assignments_known(members: Iterable[MemberFacts]) -> bool:
    """Return True if the partitions of every member are known."""
    return all(member.assigned is not None for member in members)


def partitions_of(members: Iterable[MemberFacts]) -> set[TopicPartition]:
    """Return the partitions of all members, as far as they are known."""
    return {partition for member in members for partition in member.assigned or ()}


def columns_of(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named columns of a row; None for one that the row lacks."""
    return {name: row.get(name) for name in names}


_PLAIN = (
    "member_id", "group_instance_id", "client_id", "client_host", "session_timeout_ms",
    "rebalance_timeout_ms",
)  # fmt: skip


def to_member(row: Mapping[str, Any]) -> MemberFacts:
    """Return a member from a row of `group_members`."""
    topics = row["topics"]
    if topics is not None:
        topics = tuple(topics)
    return MemberFacts(
        **columns_of(row, _PLAIN),
        topics=topics,
        assigned=_places(row["assigned"]),
        pending_revocation=_places(row["pending_revocation"]),
    )


def _places(held: Iterable[Mapping[str, Any]] | None) -> tuple[TopicPartition, ...] | None:
    """Return the partitions by topic name; None also if a topic's name is unknown."""
    if held is None:
        return None
    partitions = tuple(map(itemgetter("topic", "partition"), held))
    if any(topic is None for topic, _ in partitions):
        return None
    return partitions


@dataclass(frozen=True, slots=True)
class Generation:
    """A row of `generations` with its members.

    An epoch is recorded twice: at its start without `stable_at`, and again when it is Stable; one
    that is superseded first is recorded once.
    """

    generation_kind: str  # classic or epoch
    kind: str  # sync, empty, create, epoch, upgrade, downgrade or tombstone
    generation: int
    source_offset: int
    recorded_at: datetime
    live_read: bool
    members: tuple[MemberFacts, ...] = ()
    state_timestamp: datetime | None = None
    stable_at: datetime | None = None
    generation_gap: int | None = None
    assignor: str | None = None
    rebalance_mode: str | None = None
    leader: str | None = None
    record_version: int | None = None
    partitions_unassigned: int | None = None

    @property
    def at(self) -> datetime:
        """Time of the record that tells this."""
        if self.stable_at is None:
            return self.recorded_at
        return self.stable_at

    @property
    def ended_at(self) -> datetime | None:
        """End of the rebalance; an epoch with members ends when it is Stable."""
        if self.stable_at is not None:
            return self.stable_at
        if self.kind == "epoch" and self.members:
            return None
        return self.recorded_at

    @property
    def by_member_id(self) -> bool:
        """A member of a modern group keeps its id as long as it lives (KIP-848)."""
        return self.generation_kind == "epoch"


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset commit.

    `lag` is the lag at its instant, `unseen` counts the moving commits since the one before.
    """

    topic: str
    partition: int
    committed_offset: int
    at: datetime
    lag: int | None = None
    unseen: int = 0


def time_of(commit: Commit | None) -> datetime | None:
    """Return the time of a commit; None without one."""
    if commit is None:
        return None
    return commit.at


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Partition of the group before the batch; rates per second, `lag` now, `commit` the newest."""

    commit: Commit | None = None
    progressed_at: datetime | None = None  # newest commit that moved the offset on
    commit_interval_seconds: float | None = None
    commit_gap_p95_seconds: float | None = None
    arrival_rate: float | None = None
    consume_rate: float | None = None
    lag: int | None = None
    material: bool | None = None  # lag above the floor

    @property
    def has_traffic(self) -> bool | None:
        """True if there is anything to read; only such a partition can be seen to pause."""
        if (self.arrival_rate or 0) > 0 or (self.lag or 0) > 0:
            return True
        if self.arrival_rate is None or self.lag is None:
            return None
        return False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Other events around the group; `…_at` is the newest time."""

    cluster: str
    group: str
    coordinator: int | None = None
    coordinator_changed_at: datetime | None = None
    partitions_added_at: datetime | None = None  # to a topic that the group subscribes to
    is_declared_deploy: bool = False
