"""Records of classic groups, folded singly: a generation, or a static member's return in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from laggard.lag.arrays import to_moment
from laggard.rebalance.facts import Generation, Identity, columns_of, identities, to_member
from laggard.rebalance.membership.folded import Folded, Folding
from laggard.rebalance.membership.group_facts import imbalance
from laggard.rebalance.membership.history import History, Row, Step, assigned_places, distance
from laggard.rebalance.parameters import DEFAULTS
from laggard.rebalance.slots import SlotChanges, compare_slots, name_slots, slot_columns

# group.initial.rebalance.delay.ms: an empty group waits so long for more members
INITIAL_DELAY = timedelta(seconds=DEFAULTS.initial_delay_seconds)
_OF_GENERATION = (
    "state_timestamp", "generation_gap", "assignor", "rebalance_mode", "leader", "record_version",
    "partitions_unassigned",
)  # fmt: skip
_AS_DESCRIBED = (
    "kind", "generation", "protocol_type", "assignor", "rebalance_mode", "leader", "member_count",
    "static_count",
)  # fmt: skip


def fold_classic(work: Folding, step: Step) -> None:
    """Fold one described record (`describe_generation`)."""
    record, description, history = step.record, step.found, step.history
    place = history.place(work.group, "classic", record)
    if description["kind"] == "tombstone":
        _end(work, place, history)
        return
    state = work.begin("classic")
    if _is_downgrade(state, description):
        description["kind"] = "downgrade"
    members = identities(description["member_rows"])
    gap = distance(description["generation"], state.generation)
    # same generation: no rebalance took place
    is_replacement = gap == 0 and description["kind"] == "sync"
    slot_of = name_slots(members, by_member_id=False)
    row = place | _generation(state, description, members, slot_of, record, history)
    # compaction removes records of the past
    row["generation_gap"] = gap if history.tick.is_caught_up else None
    replaced = _replaced(state.roster, members)
    if is_replacement:
        history.replacements.append(
            place | _replacement(next(iter(replaced), None), description["member_rows"], slot_of)
        )
    else:
        history.generations.append(row)
    history.add_fact(work.group, record["source_offset"], _fact(row, description))
    place |= {"generation": description["generation"], "status": description["status"]}
    for member in description["member_rows"]:
        member_id = member["member_id"]
        slots = {"slot": slot_of[member_id], "replaced_member_id": replaced.get(member_id)}
        history.members.append(place | member | slots)
    work.generations_total += int(description["kind"] in ("sync", "empty") and not is_replacement)
    state.generation, state.roster, state.record_timestamp = (
        description["generation"],
        members,
        record["record_timestamp"],
    )
    state.was_type = state.was_number = None
    work.classic = _facts(description)


def _replacement(member_id: str | None, members: Sequence[Row], slot_of: Mapping[str, str]) -> Row:
    """Return columns about a static member that took over from itself under a new member id."""
    row: Row = next((member for member in members if member["member_id"] == member_id), {})
    return {
        "member_id": member_id,
        "slot": slot_of.get(member_id or ""),
        "held": row.get("assigned"),
        "session_timeout_ms": row.get("session_timeout_ms"),
    }


def _end(work: Folding, place: Row, history: History) -> None:
    state = work.state
    if state.group_type not in (None, "classic"):
        return  # it clears up after a group that has long gone on under another protocol
    if state.was_type != "classic":
        columns = {
            "kind": "tombstone",
            "group_type": "classic",
            "status": "ok",
            "live_read": history.tick.is_caught_up,
        }
        history.generations.append(place | columns)
        history.add_fact(
            work.group,
            place["source_offset"],
            _fact(place | columns | {"generation": state.generation or 0}),
        )
    if state.group_type is not None:
        work.end(state.generation)


def _fact(row: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> Generation:
    """Return a row of `generations` with its members, for the analytics."""
    members = () if description is None else tuple(map(to_member, description["member_rows"]))
    return Generation(
        generation_kind="classic",
        kind=row["kind"],
        generation=row["generation"],
        source_offset=row["source_offset"],
        recorded_at=row["record_timestamp"],
        live_read=row["live_read"],
        members=members,
        **columns_of(row, _OF_GENERATION),
    )


def _is_downgrade(state: Folded, description: Mapping[str, Any]) -> bool:
    """Return True if this first classic generation follows a modern group's last epoch.

    The last epoch of the group is the first generation of the classic one.
    """
    is_same = (
        state.was_type not in (None, "classic") and state.was_number == description["generation"]
    )
    return is_same and bool(state.roster) and description["kind"] == "sync"


def _generation(
    state: Folded,
    description: Mapping[str, Any],
    members: list[Identity],
    slot_of: Mapping[str, str],
    record: Row,
    history: History,
) -> Row:
    is_live = history.tick.is_caught_up
    state_timestamp = to_moment(description["state_timestamp_ms"])
    recorded = state.record_timestamp
    is_skewed = state_timestamp is not None and recorded is not None and state_timestamp < recorded
    if is_skewed:  # a coordinator that took over may state a time of long before the rebalance
        state_timestamp = None
    sync = None
    if state_timestamp is not None:
        sync = (record["record_timestamp"] - state_timestamp).total_seconds()
    # a clock that was set back would give a negative duration: then it is not known
    if description["kind"] != "sync" or (sync is not None and sync < 0):
        sync = None
    status = "partial" if is_skewed else description["status"]
    return {
        **columns_of(description, _AS_DESCRIBED),
        "group_type": "classic",
        "status": status,
        "leader_slot": slot_of.get(description["leader"] or ""),
        "started_low": _started_low(state, description, state_timestamp),
        "state_timestamp": state_timestamp,
        "sync_seconds": sync,
        **slot_columns(_changes(state, description, members, is_live=is_live)),
        "record_version": record["record_version"],
        "live_read": is_live,
        **_spread(description, history, is_live=is_live),
    }


def _changes(
    state: Folded, description: Mapping[str, Any], members: list[Identity], *, is_live: bool
) -> SlotChanges | None:
    if not is_live or description["kind"] == "downgrade":
        return None
    if state.was_type is not None:  # slots of a modern group are named otherwise
        return compare_slots([], members, by_member_id=False)
    if state.roster is None:
        return None
    return compare_slots(state.roster, members, by_member_id=False)


def _started_low(
    state: Folded, description: Mapping[str, Any], state_timestamp: datetime | None
) -> datetime | None:
    """Return the earliest possible start of the rebalance.

    A join phase is no longer than its timeout.
    """
    if state_timestamp is None or description["kind"] != "sync":
        return None
    rows = description["member_rows"]
    longest = max(row["rebalance_timeout_ms"] or row["session_timeout_ms"] for row in rows)
    low = state_timestamp - timedelta(milliseconds=max(0, longest))
    if not state.roster:
        low -= INITIAL_DELAY
    if state.record_timestamp is None:
        return low
    return max(low, state.record_timestamp)


def _spread(description: Mapping[str, Any], history: History, *, is_live: bool) -> Row:
    """Count partitions with an owner, and without one by the poll; only live, as topics grow."""
    if description["kind"] not in ("sync", "downgrade") or description["topics"] is None:
        return {}
    assigned = assigned_places(description["member_rows"])
    unassigned = None
    if is_live:
        unassigned = history.topics.unassigned(description["topics"], assigned)
    return {"partitions_assigned": len(assigned), "partitions_unassigned": unassigned}


def _replaced(before: list[Identity] | None, now: list[Identity]) -> dict[str, str]:
    """Return a dict from new member id to the old one of the same instance id."""
    old_ids = {member.group_instance_id: member.member_id for member in before or ()}
    replaced = {}
    for member in now:
        old_id = old_ids.get(member.group_instance_id, member.member_id)
        if member.group_instance_id is not None and old_id != member.member_id:
            replaced[member.member_id] = old_id
    return replaced


def _facts(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return `group_status` columns of a classic group.

    On loading, the broker tells Stable from Empty likewise.
    """
    names = ("protocol_type", "assignor", "rebalance_mode", "generation", "idle_members", "topics")
    held = list(map(itemgetter("assigned"), description["member_rows"]))
    spread = None
    if None not in held:
        spread = imbalance(map(len, held))
    return {
        "group_type": "classic",
        **columns_of(description, names),
        "members": description["member_count"],
        "static_members": description["static_count"],
        "assignment_imbalance": spread,
        "record_state": "Stable" if description["member_count"] else "Empty",
    }
