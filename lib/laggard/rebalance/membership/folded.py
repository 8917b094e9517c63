"""A group as its records leave it: all state to fold the next record, in the column `folded`.

The fields are the columns of that struct in `tables/schema/status_tables.py`, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import itemgetter
from typing import Any

from laggard.rebalance.facts import Identity, columns_of

# source (topic id, or subtopology id in streams groups) and its partitions
Held = list[dict[str, Any]]


@dataclass(slots=True)
class Member:
    """A member of a modern group; what no record has said yet is None."""

    member_id: str
    group_instance_id: str | None = None
    replaced_member_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rack: str | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    topics: list[str] | None = None
    regex: str | None = None
    server_assignor: str | None = None
    classic_protocols: list[str] | None = None
    member_epoch: int | None = None
    previous_member_epoch: int | None = None
    member_state: str | None = None
    assigned: Held | None = None
    pending_revocation: Held | None = None
    is_told: bool = False  # it has its row of the newest epoch

    @property
    def identity(self) -> Identity:
        return Identity(self.member_id, self.group_instance_id, self.client_id, self.client_host)

    def is_reconciled(self, epoch: int | None) -> bool:
        """Return True if the member has reached its target.

        The rule is that of Kafka's ConsumerGroupMember.isReconciledTo.
        """
        return self.member_state == "Stable" and self.member_epoch == epoch


@dataclass(slots=True)
class Epoch:
    """The newest epoch of a modern group: its `generations` row in the making, and its state."""

    number: int
    kind: str
    source_partition: int
    source_offset: int
    record_timestamp: datetime
    record_version: int | None
    gap: int | None
    live_read: bool
    assignor: str | None = None
    joined: list[str] | None = None
    left: list[str] | None = None
    replaced: list[str] | None = None
    assigned_at: datetime | None = None
    is_open: bool = True  # neither reached by all members nor superseded


@dataclass(slots=True)
class Folded:
    """The whole group."""

    group_type: str | None = None  # None: no group record stands
    assignment_epoch: int | None = None
    epoch: Epoch | None = None
    members: dict[str, Member] = field(default_factory=dict)  # of a modern group
    # members of the newest generation or epoch; None: not known
    roster: list[Identity] | None = None
    regexes: dict[str, list[str]] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)  # by topic id, from records
    topology_epoch: int | None = None
    validated_topology_epoch: int | None = None
    subtopologies: dict[str, dict[str, Any]] = field(default_factory=dict)
    # instance id to member id, gone since the newest epoch
    departed: dict[str, str] = field(default_factory=dict)
    generation: int | None = None  # of a classic group
    record_timestamp: datetime | None = None  # of the newest classic generation
    # what the group was before its tombstone, and its generation or epoch then
    was_type: str | None = None
    was_number: int | None = None

    @property
    def epoch_number(self) -> int | None:
        """Number of the newest epoch; None before the first one."""
        if self.epoch is None:
            return None
        return self.epoch.number

    def to_row(self) -> dict[str, Any]:
        """Return the group as a struct, with lists in place of dicts."""
        epoch, roster = None, None
        if self.epoch is not None:
            epoch = fields_of(self.epoch, _NAMES[Epoch])
        if self.roster is not None:
            roster = [fields_of(member, _NAMES[Identity]) for member in self.roster]
        return {
            **fields_of(self, _PLAIN),
            "epoch": epoch,
            "members": [fields_of(member, _NAMES[Member]) for member in self.members.values()],
            "roster": roster,
            "regexes": _rows(self.regexes, "regex", "topics"),
            "topic_names": _rows(self.topic_names, "topic_id", "topic"),
            "subtopologies": list(self.subtopologies.values()),
            "departed": _rows(self.departed, "group_instance_id", "member_id"),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | None) -> Folded:
        """Return the group that `to_row` was given; a new one for None."""
        if row is None:
            return cls()
        epoch, roster = None, None
        if row["epoch"] is not None:
            epoch = Epoch(**row["epoch"])
        if row["roster"] is not None:
            roster = [Identity(**member) for member in row["roster"]]
        return cls(
            **columns_of(row, _PLAIN),
            epoch=epoch,
            members={member["member_id"]: Member(**member) for member in row["members"] or ()},
            roster=roster,
            regexes=_pairs(row["regexes"], "regex", "topics"),
            topic_names=_pairs(row["topic_names"], "topic_id", "topic"),
            subtopologies={part["subtopology_id"]: part for part in row["subtopologies"] or ()},
            departed=_pairs(row["departed"], "group_instance_id", "member_id"),
        )


_PLAIN = (
    "group_type", "assignment_epoch", "topology_epoch", "validated_topology_epoch", "generation",
    "record_timestamp",
    "was_type", "was_number",
)  # fmt: skip
_NAMES = {kind: tuple(column.name for column in fields(kind)) for kind in (Member, Epoch, Identity)}


def _pairs(rows: Iterable[Mapping[str, Any]] | None, key: str, value: str) -> dict[Any, Any]:
    return dict(map(itemgetter(key, value), rows or ()))


def _rows(pairs: Mapping[str, Any], key: str, value: str) -> list[dict[str, Any]]:
    return [{key: first, value: second} for first, second in pairs.items()]


def fields_of(value: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the named fields of an object, by name."""
    return {name: getattr(value, name) for name in names}


@dataclass(slots=True)
class Folding:
    """One group while the records of a batch are folded onto it."""

    group: str
    state: Folded
    classic: dict[str, Any] | None  # facts of the newest classic record
    generations_total: int
    # places by name, of members that went in this batch
    held: dict[str, Held | None] = field(default_factory=dict)

    def begin(self, group_type: str) -> Folded:
        """Return the state for a record of this group type; another type resets it.

        A reset needs no tombstone.
        """
        state = self.state
        if state.group_type is None:
            state.group_type = group_type
        elif state.group_type != group_type:
            self.state = Folded(group_type=group_type)
        if group_type != "classic":
            self.classic = None
        return self.state

    def end(self, number: int | None) -> None:
        """End the group at its own tombstone; keep the state that another protocol may continue."""
        state = self.state
        self.state = Folded(was_type=state.group_type, was_number=number, roster=state.roster)
        self.classic = None
