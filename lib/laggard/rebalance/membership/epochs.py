"""The epochs of modern groups as rows of `generations` and `group_members`.

An epoch begins with the record of the group's new epoch and ends with the record by which its last
member reaches it in state Stable (KIP-848); one that is superseded first has no end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter, itemgetter

from laggard.rebalance.facts import Generation, Identity, to_member
from laggard.rebalance.membership.folded import Epoch, Folded, Folding, Member, fields_of
from laggard.rebalance.membership.group_facts import (
    group_topics,
    member_topics,
    preferred_assignor,
    rebalance_mode,
    resolve,
)
from laggard.rebalance.membership.history import History, Row, Step, assigned_places, distance
from laggard.rebalance.slots import compare_slots

_OF_MEMBER = (
    "member_id", "group_instance_id", "replaced_member_id", "client_id", "client_host", "rack",
    "session_timeout_ms",
    "rebalance_timeout_ms", "regex", "member_epoch", "previous_member_epoch", "member_state",
    "classic_protocols",
)  # fmt: skip
_OF_EPOCH = ("assignor", "assigned_at", "joined", "left", "replaced", "record_version", "live_read")


def bump_epoch(work: Folding, step: Step) -> None:
    """Begin a new epoch; the record of a streams group is also written again within an epoch."""
    state, history, number = work.state, step.history, step.found["epoch"]
    state.validated_topology_epoch = step.found["validated_topology_epoch"]
    if state.epoch is not None and state.epoch.number == number:
        return
    close_epoch(work, history, None)
    for member in state.members.values():
        tell_member(work, member, history)  # one that took over since and did not reach the epoch
    is_upgrade = _is_upgrade(state, number)
    if state.was_type is not None and not is_upgrade:
        state.roster = []  # the group that was here has nothing to do with this one
    now = [member.identity for member in state.members.values()]
    state.epoch = _new_epoch(step, state, now, is_upgrade=is_upgrade)
    state.roster, state.departed, state.was_type, state.was_number = now, {}, None, None
    for member in state.members.values():
        member.is_told, member.replaced_member_id = False, None
    tell_epoch(work, history, step.record["source_offset"], None)
    if not now:
        close_epoch(work, history, None)


def _new_epoch(step: Step, state: Folded, now: Sequence[Identity], *, is_upgrade: bool) -> Epoch:
    """Describe the epoch that a record begins, by the record and changes since the last epoch."""
    record, number, is_live = step.record, step.found["epoch"], step.history.tick.is_caught_up
    # what compaction removed is not known to have changed
    joined, left, replaced = None, None, None
    if is_live and state.roster is not None:
        changes = compare_slots(state.roster, now, by_member_id=True)
        joined, left, replaced = map(list, (changes.joined, changes.left, changes.replaced))
    gap = None
    if is_live:
        gap = distance(number, state.epoch_number)
    kind = "epoch" if now else "empty"
    if is_upgrade:
        kind = "upgrade"
    return Epoch(
        number=number,
        kind=kind,
        source_partition=record["source_partition"],
        source_offset=record["source_offset"],
        record_timestamp=record["record_timestamp"],
        record_version=record["record_version"],
        gap=gap,
        live_read=is_live,
        assignor=preferred_assignor(state),
        joined=joined,
        left=left,
        replaced=replaced,
    )


def _is_upgrade(state: Folded, number: int) -> bool:
    """Return True if the epoch continues a classic group.

    Its members keep their ids, and its generation is the first epoch: also one whose members have
    joined and which no record tells yet.
    """
    if state.was_type != "classic" or state.was_number is None:
        return False
    return number - state.was_number in (0, 1) and bool(state.roster)


def tell_epoch(work: Folding, history: History, offset: int, stable_at: datetime | None) -> None:
    """Show the epoch at a record to the analytics, without owners for a share group.

    A share group's partitions have many owners.
    """
    state, epoch = work.state, work.state.epoch
    if epoch is None or state.group_type == "share":
        return
    place = _place(work, epoch, history)
    rows = (_member_row(work, member, place, history) for member in state.members.values())
    members = tuple(map(to_member, rows))
    generation = Generation(
        generation_kind="epoch",
        kind=epoch.kind,
        generation=epoch.number,
        source_offset=epoch.source_offset,
        recorded_at=epoch.record_timestamp,
        live_read=epoch.live_read,
        members=members,
        stable_at=stable_at,
        generation_gap=epoch.gap,
        assignor=epoch.assignor,
        rebalance_mode=rebalance_mode(state.group_type, members),
        record_version=epoch.record_version,
    )
    history.add_fact(work.group, offset, generation)


def close_epoch(work: Folding, history: History, stable_at: datetime | None) -> None:
    """Record the epoch and its members, if it is open.

    `stable_at` is None if it was superseded, or the group is empty.
    """
    state, epoch = work.state, work.state.epoch
    if epoch is None or not epoch.is_open:
        return
    is_complete = stable_at is not None or epoch.kind == "empty"
    members, place = _without_row(state), _place(work, epoch, history)
    rows = [_member_row(work, member, place, history) for member in members]
    spread: Row = {}
    if is_complete:
        spread = _spread(state, rows, history, is_live=epoch.live_read)
    history.members += rows
    history.generations.append(place | _epoch_row(state, epoch, stable_at, rows) | spread)
    for member in members:
        member.is_told = True
    epoch.is_open = False
    # no rebalance: all keep what they have
    work.generations_total += int(is_complete and epoch.kind != "upgrade")


def _without_row(state: Folded) -> list[Member]:
    """Return members of the newest epoch that have no row of it yet."""
    of_epoch = _ids(state)
    members = state.members.values()
    return [member for member in members if member.member_id in of_epoch and not member.is_told]


def _ids(state: Folded) -> set[str]:
    return set(map(attrgetter("member_id"), state.roster or ()))


def _epoch_row(
    state: Folded, epoch: Epoch, stable_at: datetime | None, members: Sequence[Row]
) -> Row:
    """Return columns of `generations` that the epoch itself and the rows of its members give."""
    roster = state.roster or []
    status = "partial" if "partial" in map(itemgetter("status"), members) else "ok"
    return {
        "status": status,
        "kind": epoch.kind,
        "group_type": state.group_type,
        "protocol_type": state.group_type,
        "rebalance_mode": rebalance_mode(state.group_type, roster),
        "assignment_epoch": state.assignment_epoch,
        "stable_at": stable_at,
        "generation_gap": epoch.gap,
        "member_count": len(roster),
        "static_count": sum(identity.group_instance_id is not None for identity in roster),
        **fields_of(epoch, _OF_EPOCH),
    }


def tell_member(work: Folding, member: Member, history: History) -> None:
    """Add a member's row of the newest epoch.

    This is done before it goes, or if it took over after the epoch was recorded.
    """
    epoch = work.state.epoch
    if epoch is None or member.is_told:
        return
    if member.member_id in _ids(work.state):
        history.members.append(_member_row(work, member, _place(work, epoch, history), history))
        member.is_told = True


def _place(work: Folding, epoch: Epoch, history: History) -> Row:
    source = fields_of(epoch, ("source_partition", "source_offset", "record_timestamp"))
    return history.place(work.group, "epoch", source) | {"generation": epoch.number}


def _member_row(work: Folding, member: Member, place: Row, history: History) -> Row:
    state = work.state
    assigned = resolve(state, member.assigned, history.topics)
    pending = resolve(state, member.pending_revocation, history.topics)
    topics = group_topics(state) if state.group_type == "streams" else member_topics(state, member)
    named = map(itemgetter("topic"), (*(assigned or ()), *(pending or ())))
    status = "ok" if topics is not None and all(named) else "partial"
    return place | {
        **fields_of(member, _OF_MEMBER),
        "slot": member.group_instance_id or member.member_id,
        "topics": topics,
        "assigned": assigned,
        "pending_revocation": pending,
        "status": status,
    }


def _spread(state: Folded, rows: list[Row], history: History, *, is_live: bool) -> Row:
    """Count partitions with and without an owner; a share group's may have several."""
    if state.group_type == "streams" and "partial" in map(itemgetter("status"), rows):
        return {}  # a task whose topics are not known has an unknown number of partitions
    named = assigned_places(rows)
    assigned = len(named if state.group_type == "streams" else _held_parts(state))
    unassigned = None
    if is_live and all(topic for topic, _ in named):
        unassigned = history.topics.unassigned(group_topics(state), named)
    return {"partitions_assigned": assigned, "partitions_unassigned": unassigned}


def _held_parts(state: Folded) -> set[tuple[str, int]]:
    """Return partitions that members have, by topic id: the names of some may not be known."""
    topics = [topic for member in state.members.values() for topic in member.assigned or ()]
    return {(topic["source"], number) for topic in topics for number in topic["partitions"]}
