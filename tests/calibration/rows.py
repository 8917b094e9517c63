"""What laggard says of one group, in rows that a real and a simulated run have in common.

Left out on purpose, as it differs between any two runs: times of day, places in the offsets topic,
member ids, and the leader, which is the first member to arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from simulator.simulation import Laggard, Simulation, ticks

Row = dict[str, Any]
Rows = dict[str, list[Row]]
CLOSING_MS = (30_000, 60_000)  # after the last poll: nothing can join what is open any more
NAMED = {
    "generations": (
        "kind", "generation", "generation_gap", "group_type", "protocol_type", "assignor",
        "rebalance_mode",
        "member_count", "static_count", "joined", "left", "replaced", "partitions_assigned",
        "partitions_unassigned",
        "record_version", "live_read", "status",
    ),
    "group_members": (
        "generation", "slot", "group_instance_id", "client_id", "client_host", "topics", "assigned",
        "owned",
        "own_generation", "pending_revocation", "session_timeout_ms", "rebalance_timeout_ms",
        "subscription_version",
        "member_epoch", "previous_member_epoch", "member_state", "status",
    ),
    "rebalances": (
        "generations", "interrupted", "cause", "necessity", "joined", "left", "replaced",
        "members_before",
        "members_after", "rebalance_mode", "assignor", "straggler_slot", "partitions", "moved",
        "necessary",
        "avoidable", "paused_partitions", "records_replayed", "unread_window_seconds", "live_read",
        "status", "flags",
    ),
    "group_events": ("kind", "slot"),
}  # fmt: skip
TIMES = {
    "generations": ("sync_seconds",),
    "group_members": (),
    "rebalances": (
        "rebalance_seconds", "join_seconds", "sync_seconds", "pause_p50_seconds",
        "pause_p95_seconds",
        "pause_max_seconds",
    ),
    "group_events": (),
}  # fmt: skip


def rows_by_group(simulation: Simulation) -> dict[str, Rows]:
    """Everything that laggard makes of a run, by group and table."""
    job, last = Laggard(), simulation.polls[-1]
    closing = [replace(last, at_ms=last.at_ms + later) for later in CLOSING_MS]
    for _, polled, records in ticks(replace(simulation, polls=[*simulation.polls, *closing])):
        job.tick(polled, records)
    groups = {row["group"] for row in job.history["generations"]}
    return {group: _rows(job.history, group) for group in groups}


def _rows(history: Mapping[str, list[Row]], group: str) -> Rows:
    own = {table: [row for row in history[table] if row["group"] == group] for table in NAMED}
    # else in any order
    own["group_members"].sort(key=lambda row: (row["source_offset"], row["client_id"]))
    names = _slot_names(own["group_members"])
    shown = {}
    for table, rows in own.items():
        columns = (*NAMED[table], *TIMES[table])
        shown[table] = [{name: _shown(row[name], names) for name in columns} for row in rows]
    return shown


def _slot_names(members: Sequence[Row]) -> dict[str, str]:
    """Slots that are member ids (KIP-848) by the order in which they came."""
    slots = dict.fromkeys(row["slot"] for row in members)
    is_modern = {row["slot"]: row["slot"] == row["member_id"] for row in members}
    return {
        slot: f"member {number}" if is_modern[slot] else slot for number, slot in enumerate(slots)
    }


def _shown(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return sorted(_shown(each, names) for each in value)
    if isinstance(value, dict):
        return (value["topic"], value["partition"])
    return names.get(value, value) if isinstance(value, str) else value
