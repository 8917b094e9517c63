"""Owner of each partition of a group, by the newest records; for partition rows only.

It is not updated record by record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import key_codes, match
from laggard.rebalance.analytics.state import newest_generation
from laggard.rebalance.membership.folded import Folded
from laggard.rebalance.membership.group_facts import resolve
from laggard.rebalance.slots import Named, name_slots
from laggard.rebalance.topics import Topics

OWNERS = pa.schema(
    [
        ("owner", pa.string()),
        ("slot", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("generation", pa.int32()),
    ]
)
_KEY = ("group", "topic", "partition")
_FOLDED = ("group", "folded")
_MODERN = ("consumer", "streams")  # a share group's partitions have many owners
Owner = tuple[str, str, str | None, str | None, int | None]  # columns of OWNERS
Place = tuple[str | None, int]  # topic, None while its name is not known, and partition


def find_owners(rows: pa.Table, groups: pa.Table, topics: Topics) -> dict[str, pa.ChunkedArray]:
    """Return columns `OWNERS`, parallel to rows with group, topic and partition.

    A column is null without an owner or if the owner is unknown.

    `groups`: rows of `group_status` at that time.
    """
    owners: list[Owner] = []
    keys: list[tuple[str, str | None, int]] = []
    number: list[int] = []
    for group, owner, held in _members(
        groups.filter(pc.is_in(groups["group"], pc.unique(rows["group"]))), topics
    ):
        keys += [(group, *partition) for partition in held]
        number += [len(owners)] * len(held)
        owners.append(owner)
    columns = list(zip(*keys, strict=True)) or [()] * len(_KEY)
    schema = pa.schema(list(map(rows.schema.field, _KEY)))
    held_by = pa.table(list(map(pa.array, columns, schema.types)), schema=schema)
    wanted, known = key_codes([rows.select(_KEY), held_by], _KEY)
    at = match(wanted, known)
    owner_at = np.r_[np.array(number, np.int64), -1][at]  # -1 finds the last one, which is nobody
    of_owners = list(zip(*owners, strict=True)) or [()] * len(OWNERS)
    owner_rows = pa.table(list(map(pa.array, of_owners, OWNERS.types)), schema=OWNERS)
    chosen = owner_rows.take(pa.array(owner_at, mask=owner_at < 0))
    return dict(zip(OWNERS.names, chosen.columns, strict=True))


def _members(groups: pa.Table, topics: Topics) -> Iterator[tuple[str, Owner, list[Place]]]:
    """Yield each group's members and their partitions."""
    kind = pc.struct_field(groups["folded"], "group_type")
    classic = groups.filter(pc.equal(kind, "classic"))
    # by its coordinator: members are in `folded`
    described = classic.filter(pc.is_null(classic["rebalance_state"]))
    classic = classic.filter(pc.is_valid(classic["rebalance_state"]))
    rosters = pc.struct_field(classic["folded"], "roster").to_pylist()
    texts = classic["rebalance_state"].to_pylist()
    for group, roster, text in zip(classic["group"].to_pylist(), rosters, texts, strict=True):
        for owner, held in _classic(roster or (), text):
            yield group, owner, held
    modern = groups.filter(pc.is_in(kind, pa.array(_MODERN)))
    for row in [*described.select(_FOLDED).to_pylist(), *modern.select(_FOLDED).to_pylist()]:
        for owner, held in _modern(Folded.from_row(row["folded"]), topics):
            yield row["group"], owner, held


def _owner(member: Named, slot_of: Mapping[str, str], generation: int | None) -> Owner:
    slot = slot_of[member.member_id]
    return member.member_id, slot, member.client_id, member.client_host, generation


def _classic(
    roster: Iterable[Mapping[str, Any]], text: str | None
) -> Iterator[tuple[Owner, list[Place]]]:
    """Yield owners and partitions, without members that left with another protocol.

    Only the analytics keep the partitions.
    """
    newest = newest_generation(text)
    if newest is None:
        return
    living = set(map(itemgetter("member_id"), roster))
    members = [member for member in newest.members if member.member_id in living]
    slot_of = name_slots(members, by_member_id=False)
    for member in members:
        yield _owner(member, slot_of, newest.generation), list(member.assigned or ())


def _modern(state: Folded, topics: Topics) -> Iterator[tuple[Owner, list[Place]]]:
    identities = [member.identity for member in state.members.values()]
    slot_of = name_slots(identities, by_member_id=state.group_type != "classic")
    for member in state.members.values():
        held = resolve(state, member.assigned, topics) or ()
        owner = _owner(member.identity, slot_of, state.assignment_epoch)
        yield owner, list(map(itemgetter("topic", "partition"), held))
