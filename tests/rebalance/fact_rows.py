"""Generations and commits of a group as plain values, short enough to be read in a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from laggard.rebalance.analytics.logical import advance
from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.analytics.state import RebalanceState
from laggard.rebalance.assignors import Member, TopicPartition, assign
from laggard.rebalance.facts import Commit, Generation, MemberFacts, PartitionFacts, Surroundings
from laggard.rebalance.parameters import RebalanceParameters

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
PARAMETERS = RebalanceParameters()
HERE = Surroundings("prod", "payments", coordinator=1)
MODES = {"cooperative-sticky": "cooperative", "stream": "cooperative"}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def places(*names: str) -> tuple[TopicPartition, ...]:
    """A0 is partition 0 of topic A."""
    return tuple((name[0], int(name[1:])) for name in names)


def member(member_id: str, *held: str, **fields: Any) -> MemberFacts:
    given: dict[str, Any] = {
        "client_id": f"app-{member_id}",
        "client_host": f"/10.0.0.{member_id}",
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "topics": ("A", "B"),
        "assigned": places(*held),
    }
    return MemberFacts(member_id, **(given | fields))


def generation(
    number: int,
    seconds: float,
    members: Sequence[MemberFacts],
    *,
    sync: float | None = 1.0,
    **fields: Any,
) -> Generation:
    """A classic generation whose record is written at this second."""
    assignor = fields.get("assignor", "range")
    kind, leader = ("sync", members[0].member_id) if members else ("empty", None)
    given: dict[str, Any] = {
        "generation_kind": "classic",
        "kind": kind,
        "source_offset": 1_000 + number,
        "live_read": True,
        "state_timestamp": None if sync is None else at(seconds - sync),
        "generation_gap": 1,
        "assignor": assignor,
        "rebalance_mode": MODES.get(assignor, "eager"),
        "leader": leader,
        "record_version": 4,
    }
    return Generation(
        generation=number, recorded_at=at(seconds), members=tuple(members), **(given | fields)
    )


def epoch(
    number: int,
    seconds: float,
    members: Sequence[MemberFacts],
    stable: float | None = None,
    **fields: Any,
) -> Generation:
    stable_at = None if stable is None else at(stable)
    given: dict[str, Any] = {
        "generation_kind": "epoch",
        "kind": "epoch" if members else "empty",
        "source_offset": 1_000 + number,
        "live_read": True,
        "stable_at": stable_at,
        "generation_gap": 1,
        "assignor": "uniform",
        "rebalance_mode": "incremental",
    }
    return Generation(
        generation=number, recorded_at=at(seconds), members=tuple(members), **(given | fields)
    )


def commit(name: str, seconds: float, offset: int = 0, lag: int | None = 0) -> Commit:
    return Commit(name[0], int(name[1:]), offset, at(seconds), lag)


def facts(name: str, seconds: float, **fields: Any) -> PartitionFacts:
    """A busy partition with a commit each 5 s, the newest at this second."""
    given: dict[str, Any] = {
        "commit": commit(name, seconds),
        "progressed_at": at(seconds),
        "commit_interval_seconds": 5.0,
        "commit_gap_p95_seconds": 5.0,
        "arrival_rate": 100.0,
        "consume_rate": 100.0,
        "lag": 0,
        "material": False,
    }
    return PartitionFacts(**(given | fields))


def all_facts(
    names: Sequence[str], seconds: float, **fields: Any
) -> dict[TopicPartition, PartitionFacts]:
    return {places(name)[0]: facts(name, seconds, **fields) for name in names}


def run(
    events: Sequence[Generation | Commit],
    partitions: Mapping[TopicPartition, PartitionFacts] | None = None,
    *,
    until: float = 1e5,
    state: RebalanceState | None = None,
    surroundings: Surroundings = HERE,
) -> tuple[list[Closed], RebalanceState]:
    return advance(
        state or RebalanceState(), events, partitions or {}, surroundings, at(until), PARAMETERS
    )


def only(closed: Sequence[Closed]) -> Closed:
    (found,) = closed
    return found


def assigned(
    assignor: str,
    ids: Sequence[str],
    partitions: Mapping[str, int],
    owned: Mapping[str, Sequence[TopicPartition]],
) -> list[MemberFacts]:
    """Members with what an assignor gives them."""
    topics = frozenset(partitions)
    asking = [Member(each, topics, owned=tuple(owned.get(each, ())), generation=1) for each in ids]
    found = assign(assignor, asking, partitions)
    return [
        member(
            each, assigned=tuple(found[each]), topics=tuple(sorted(topics)), pending_revocation=()
        )
        for each in ids
    ]


def held(members: Sequence[MemberFacts]) -> dict[str, tuple[TopicPartition, ...]]:
    return {each.member_id: each.assigned or () for each in members}
