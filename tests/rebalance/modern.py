"""Records of modern groups as true bytes, named for what they say, and jobs that fold them tick by
tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

import encoder
from laggard.rebalance.analytics.counters import STATE
from stream.simulation import ID_A, ID_B, NOON, Record, Row, Simulation, end

TOPICS = {"t": ID_A, "u": ID_B}
ENDS = [
    end(100, topic="t", topic_id=ID_A),
    end(100, topic="t", topic_id=ID_A, partition=1),
    end(100, topic="u", topic_id=ID_B),
]
STABLE, UNREVOKED, UNRELEASED = range(3)
Held = Mapping[str, Sequence[int]]  # topic, topic id or subtopology to partitions
# what says when a tick was or flowed between two, and what counts rebalances, whose rows come once
# the group rests
OF_THE_TICK = (
    "batch_id", "poll_id", "sampled_at", "state_since", "empty_since", "watched_since",
    "topic_counters",
    "outcome_counters",
    "window_state_seconds",
)  # fmt: skip
OF_REBALANCES = (
    "rebalance_state",
    "rebalancing_since",
    "last_rebalance_at",
    "time_in_rebalance_ratio",
    *STATE,
)


@dataclass(frozen=True)
class Kind:
    """Record types of one kind of group."""

    name: str
    epoch_type: int
    member_type: int
    target_epoch_type: int
    target_type: int
    current_type: int
    group: str = "g"

    def epoch(self, number: int, **columns: Any) -> Record:
        tags = {"last_assignment_configs": [], "stored_description_topology_epoch": -1}
        tags |= {"validated_topology_epoch": -1, "failed_description_topology_epoch": -1}
        return self._group(
            self.epoch_type, {"epoch": number, "metadata_hash": 7, **tags, **columns}
        )

    def target_epoch(self, number: int) -> Record:
        return self._group(
            self.target_epoch_type, {"assignment_epoch": number, "assignment_timestamp": 0}
        )

    def member(self, name: str, topics: Sequence[str] = ("t",), **columns: Any) -> Record:
        fields = {
            "instance_id": None,
            "rack_id": None,
            "client_id": "reader",
            "client_host": "/10.0.0.1",
            "subscribed_topic_names": topics,
            "subscribed_topic_regex": "",
            "rebalance_timeout_ms": 60_000,
            "server_assignor": None,
            "classic_member_metadata": None,
            "topology_epoch": 0,
            "process_id": "p",
            "user_endpoint": None,
            "client_tags": [],
        }
        return self._member(self.member_type, name, fields | columns)

    def target(self, name: str, held: Held) -> Record:
        tasks = {"standby_tasks": [], "warmup_tasks": [], "active_tasks": _tasks(held)}
        return self._member(
            self.target_type, name, {"topic_partitions": _partitions(held), **tasks}
        )

    def current(
        self,
        name: str,
        epoch: int,
        held: Held | None = None,
        *,
        state: int = STABLE,
        pending: Held | None = None,
    ) -> Record:
        nothing = {
            f"{role}_tasks{suffix}": []
            for role in ("standby", "warmup")
            for suffix in ("", "_pending_revocation")
        }
        fields = {
            "member_epoch": epoch,
            "previous_member_epoch": epoch - 1,
            "state": state + (self.name == "streams"),
            "assigned_partitions": _partitions(held or {}),
            "partitions_pending_revocation": _partitions(pending or {}),
            "active_tasks": _tasks(held or {}),
            "active_tasks_pending_revocation": _tasks(pending or {}),
        }
        return self._member(self.current_type, name, fields | nothing)

    def gone(self, name: str) -> list[Record]:
        """The tombstones of a member, in Kafka's order."""
        return [
            self._member(number, name, None)
            for number in (self.current_type, self.target_type, self.member_type)
        ]

    def deleted(self, names: Iterable[str] = (), extra: Sequence[int] = ()) -> list[Record]:
        """The tombstones of a group, in Kafka's order; `extra` types come before
        the group's own.
        """
        members = list(names)
        return [
            *(self._member(self.current_type, name, None) for name in members),
            *(self._member(self.target_type, name, None) for name in members),
            self._group(self.target_epoch_type, None),
            *(self._member(self.member_type, name, None) for name in members),
            *(self._group(number, None) for number in extra),
            self._group(self.epoch_type, None),
        ]

    def of_group(self, record_type: int, fields: Mapping[str, Any] | None) -> Record:
        """Any other record whose key is the group."""
        return self._group(record_type, fields)

    def regex(self, expression: str, topics: Sequence[str] | None) -> Record:
        key = encoder.record_key(16, {"group_id": self.group, "regular_expression": expression})
        if topics is None:
            return Record(key, None)
        return Record(
            key, encoder.record_value(16, 0, {"topics": topics, "version": 1, "timestamp": 1})
        )

    def _group(self, record_type: int, fields: Mapping[str, Any] | None) -> Record:
        return self._record(record_type, {"group_id": self.group}, fields)

    def _member(self, record_type: int, name: str, fields: Mapping[str, Any] | None) -> Record:
        return self._record(record_type, {"group_id": self.group, "member_id": name}, fields)

    def _record(
        self, record_type: int, key: dict[str, Any], fields: Mapping[str, Any] | None
    ) -> Record:
        value = None if fields is None else encoder.record_value(record_type, 0, dict(fields))
        return Record(encoder.record_key(record_type, key), value)


CONSUMER = Kind("consumer", 3, 5, 6, 7, 8)
SHARE = Kind("share", 11, 10, 12, 13, 14)
STREAMS = Kind("streams", 17, 19, 20, 21, 22)


def _partitions(held: Held) -> list[dict[str, Any]]:
    return [
        {"topic_id": TOPICS.get(topic, topic if len(topic) == 22 else ID_A), "partitions": numbers}
        | {"assignment_epochs": None}
        for topic, numbers in held.items()
    ]


def _tasks(held: Held) -> list[dict[str, Any]]:
    return [
        {"subtopology_id": name, "partitions": numbers, "assignment_epochs": None}
        for name, numbers in held.items()
    ]


def timed(records: Iterable[Record]) -> list[Record]:
    """One record a second, so that their times do not hang on the ticks that read them."""
    return [
        replace(record, at=NOON + timedelta(seconds=number))
        for number, record in enumerate(records)
    ]


def folded(*ticks: Sequence[Record], ends: Sequence[Row] = ENDS) -> Simulation:
    """A job that had a live tick and then read these records, tick by tick."""
    job = copy(_live())
    job.history = {name: [] for name in job.history}
    for records in ticks:
        job.tick(ends, records)
    return job


@cache
def _live() -> Simulation:
    job = Simulation()
    job.tick(ENDS)
    return job


def rows_of(job: Simulation, table: str) -> list[Row]:
    """Rows of an append table without the columns that say which tick wrote them,
    in order of key.
    """
    rows = [
        {name: value for name, value in row.items() if name not in OF_THE_TICK}
        for row in job.history[table]
    ]
    return sorted(rows, key=lambda row: (row.get("source_offset") or 0, row.get("member_id") or ""))


def epochs(job: Simulation, *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in names) for row in rows_of(job, "generations")]


def members(job: Simulation, epoch: int) -> dict[str, Row]:
    rows = (row for row in rows_of(job, "group_members") if row["generation"] == epoch)
    return {row["member_id"]: row for row in rows}


def held(*pairs: tuple[str | None, int]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": number} for topic, number in pairs]


def groups_of(job: Simulation) -> dict[str, Row]:
    return {
        group: {
            name: value for name, value in row.items() if name not in OF_THE_TICK + OF_REBALANCES
        }
        for group, row in job.groups.items()
    }


def states(kind: Kind, records: Sequence[Record]) -> list[str | None]:
    """The state after each record, each in a tick of its own."""
    job = folded()
    found = []
    for record in records:
        job.tick(ENDS, [record])
        found.append(job.groups[kind.group]["group_state"] if kind.group in job.groups else None)
    return found
