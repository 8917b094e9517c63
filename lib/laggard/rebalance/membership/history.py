"""Rows of history from the records of a batch, and the values that all of them share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from laggard.lag.tick import Tick
from laggard.rebalance.facts import Generation
from laggard.rebalance.topics import Topics

Row = dict[str, Any]


@dataclass
class History:
    """Rows that a batch's group records add to the append tables."""

    tick: Tick
    topics: Topics
    generations: list[Row] = field(default_factory=list)
    members: list[Row] = field(default_factory=list)
    replacements: list[Row] = field(default_factory=list)  # static members that rejoined
    # with the offset of the record
    facts: dict[str, list[tuple[int, Generation]]] = field(default_factory=dict)

    def add_fact(self, group: str, offset: int, generation: Generation) -> None:
        """Add what the analytics of rebalances are to see of a group, in log order."""
        self.facts.setdefault(group, []).append((offset, generation))

    def place(self, group: str, kind: str, record: Row) -> Row:
        """Return the columns that every row takes from its record; `kind` is generation_kind."""
        at: datetime = record["record_timestamp"]
        return {
            "date": at.date(),
            "cluster": self.tick.cluster,
            "group": group,
            "generation_kind": kind,
            "batch_id": self.tick.batch_id,
            "source_partition": record["source_partition"],
            "source_offset": record["source_offset"],
            "record_timestamp": at,
        }


def assigned_places(members: Iterable[Row]) -> set[tuple[str | None, int]]:
    """Return topic and partition of all assignments of `group_members` rows.

    None stands for a topic of unknown name.
    """
    return {
        (partition["topic"], partition["partition"])
        for row in members
        for partition in row["assigned"] or ()
    }


def distance(number: int, before: int | None) -> int | None:
    """Return the number of generations or epochs between two records.

    The value is None if out of range, which no broker writes.
    """
    if before is None or not -(2**31) <= number - before < 2**31:
        return None
    return number - before


@dataclass(frozen=True, slots=True)
class Step:
    """One record on its way into a group: its place, what it says, and where the rows go."""

    record: Row
    found: Row
    history: History
