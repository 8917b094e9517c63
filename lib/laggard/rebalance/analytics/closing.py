"""The row of `rebalances` when a logical rebalance is over, and facts kept for the next ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from laggard.lag.tick import Tick
from laggard.rebalance.analytics.causes import Change, find_cause, find_necessity
from laggard.rebalance.analytics.departures import Departure
from laggard.rebalance.analytics.movement import (
    Compared,
    Departed,
    add_returns,
    compare_rosters,
    find_departed,
    follow_moves,
)
from laggard.rebalance.analytics.pauses import Cost, measure_cost
from laggard.rebalance.analytics.posterior import claim_reason, find_posterior, gather_evidence, mix
from laggard.rebalance.analytics.result import Closed, Rebalance
from laggard.rebalance.analytics.state import OpenRebalance, RebalanceState, stand
from laggard.rebalance.analytics.times import known, length_seconds
from laggard.rebalance.facts import Generation, Surroundings
from laggard.rebalance.parameters import RebalanceParameters
from laggard.rebalance.slots import name_slots, slot_columns

_PARTIAL = {"bootstrap", "old_record", "skew", "partial", "pause_unknown"}


def close_rebalance(
    state: RebalanceState,
    at: datetime,
    following: Generation | None,
    surroundings: Surroundings,
    parameters: RebalanceParameters,
) -> tuple[Closed | None, RebalanceState]:
    """Return the open rebalance's row as of `at`; an epoch that never was Stable ends then.

    `following` is the generation of that time, which begins another rebalance.
    """
    rebalance = state.open
    if rebalance is None:
        return None, state
    ended_at = rebalance.ended_at or at
    compared = compare_rosters(rebalance)
    departed = find_departed(rebalance, compared, state.departures, ended_at, parameters)
    seen = add_returns(departed, rebalance, following, parameters)
    cost = _cost(rebalance, compared, at)
    change = _change(rebalance, compared, ended_at, state)
    columns = {
        **_identify(rebalance, surroundings),
        **_time(rebalance, ended_at),
        **_explain(change, departed, seen, at, surroundings, parameters),
        **_describe(rebalance, compared),
        **_flag(rebalance, compared, cost),
        **asdict(cost),
    }
    del columns["seconds"], columns["is_complete"]
    standing = stand(rebalance.last, ended_at, is_complete=rebalance.is_at_rest)
    moves = compared.moves or ()
    returned, last_moves = follow_moves(moves, state.moves, ended_at, parameters)
    after = RebalanceState(standing, None, departed.near, ended_at, last_moves)
    # where nobody is left, partitions do not pause: they end
    pauses = rebalance.pauses if rebalance.last.members else ()
    return Closed(Rebalance(**columns), moves, departed.own, pauses, cost.seconds, returned), after


def rebalance_rows(closed: Iterable[Closed], tick: Tick) -> list[dict[str, Any]]:
    """Return rows of `rebalances`."""
    rows = (rebalance.row for rebalance in closed)
    return [asdict(row) | {"date": row.ended_at.date(), "batch_id": tick.batch_id} for row in rows]


def _cost(rebalance: OpenRebalance, compared: Compared, at: datetime) -> Cost:
    if not rebalance.live_read or not rebalance.pauses or not rebalance.last.members:
        return Cost()
    places = None
    if compared.moves is not None:
        places = frozenset((move.topic, move.partition) for move in compared.moves)
    return measure_cost(
        rebalance.pauses,
        moved=places,
        rebalance_mode=rebalance.last.rebalance_mode,
        started_est=rebalance.start.est,
        closed_at=at,
    )


def _change(
    rebalance: OpenRebalance, compared: Compared, ended_at: datetime, state: RebalanceState
) -> Change:
    before, last = rebalance.before, rebalance.last
    members_before, assignor_before = None, None
    if before is not None:
        members_before, assignor_before = before.members, before.assignor
    return Change(
        live_read=rebalance.live_read,
        is_epoch=last.generation_kind == "epoch",
        interrupted=rebalance.interrupted,
        has_guests=rebalance.has_guests,
        started_at=rebalance.start.est,
        ended_at=ended_at,
        last_ended_at=state.last_ended_at,
        before=members_before,
        now=last.members,
        slots=compared.slots,
        slot_before=name_slots(members_before or (), by_member_id=last.by_member_id),
        slot_now=name_slots(last.members, by_member_id=last.by_member_id),
        assignor_before=assignor_before,
        assignor=last.assignor,
    )


def _identify(rebalance: OpenRebalance, surroundings: Surroundings) -> dict[str, object]:
    kind, first = rebalance.last.generation_kind, rebalance.generations[0]
    # the offset tells a group from an earlier one of its name, whose generations began at 1 as well
    key = [surroundings.cluster, surroundings.group, kind, first, rebalance.source_offset]
    return {
        "cluster": surroundings.cluster,
        "group": surroundings.group,
        "rebalance_id": hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32],
        "coordinator": surroundings.coordinator,
    }


def _time(rebalance: OpenRebalance, ended_at: datetime) -> dict[str, object]:
    start, join_seconds = rebalance.start, None
    if rebalance.last.generation_kind != "epoch":
        join_seconds = start.join_seconds
    return {
        "started_low": start.low,
        "started_high": start.high,
        "started_est": start.est,
        "ended_at": ended_at,
        "rebalance_seconds": length_seconds(ended_at, start.est),
        "join_seconds": join_seconds,
        "sync_seconds": rebalance.sync_seconds,
        "generations": rebalance.generations,
        "interrupted": rebalance.interrupted,
    }


def _explain(
    change: Change,
    departed: Departed,
    seen: Departed,
    at: datetime,
    surroundings: Surroundings,
    parameters: RebalanceParameters,
) -> dict[str, object]:
    posteriors = [
        find_posterior(
            gather_evidence(departure, seen.near, len(change.before or ()), at, parameters)
        )
        for departure in seen.own
    ]
    reasons = [claim_reason(posterior, parameters) for posterior in posteriors]
    mixture = mix(posteriors)
    cause = find_cause(change, surroundings, departed.earlier, parameters)
    return {
        "cause": cause,
        "necessity": find_necessity(
            cause,
            claim_reason(mixture, parameters),
            is_declared_deploy=surroundings.is_declared_deploy,
        ),
        "cause_posterior": mixture,
        "unread_window_seconds": _unread_seconds(departed.own, reasons),
    }


def _unread_seconds(departures: Sequence[Departure], reasons: Sequence[str | None]) -> float | None:
    """Return the longest session of members that left no LeaveGroup; None if unknown.

    These members are missed for that long.
    """
    silent = [
        departure.session_seconds
        for departure, reason in zip(departures, reasons, strict=True)
        if departure.is_static or reason in {"session_expiry", "crash"}
    ]
    seconds = known(silent)
    if len(seconds) != len(silent):
        return None
    return max(seconds, default=None)


def _describe(rebalance: OpenRebalance, compared: Compared) -> dict[str, object]:
    last, slots, movement = rebalance.last, compared.slots, compared.movement
    members_before = None
    if slots is not None and rebalance.before is not None:
        members_before = len(rebalance.before.members)
    names = ("partitions", "moved", "necessary", "avoidable", "moved_ratio", "efficiency")
    moved: dict[str, object] = dict.fromkeys(names)
    if movement is not None:
        moved = asdict(movement)
    stateful = None
    if last.assignor is not None:
        stateful = last.assignor == "stream"
    return {
        **slot_columns(slots),
        **moved,
        "rebalance_mode": last.rebalance_mode,
        "assignor": last.assignor,
        "members_before": members_before,
        "members_after": len(last.members),
        "leader": last.leader,
        "straggler_slot": rebalance.straggler_slot,
        # a stateful consumer restores its state wherever a partition moves to
        "stateful": stateful,
    }


def _flag(rebalance: OpenRebalance, compared: Compared, cost: Cost) -> dict[str, object]:
    flags = list(rebalance.flags)
    if rebalance.live_read and compared.moves is None:
        flags.append("partial")
    if not cost.is_complete:
        flags.append("pause_unknown")
    status = "partial" if _PARTIAL & set(flags) else "ok"
    return {"live_read": rebalance.live_read, "flags": tuple(flags), "status": status}
