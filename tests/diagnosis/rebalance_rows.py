"""Rows of a group's history in small: rosters become generations, rebalances and members; lag
becomes signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from laggard.diagnosis.history.frames import NAMES, NUMBERS, GroupFrame, TopicFrame
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.signals.group import (
    Membership,
    MemberSignals,
    Shape,
    Signals,
    TopicSignals,
    Trend,
    membership_of,
)
from laggard.diagnosis.signals.rates import positions

Row = dict[str, Any]
BEGIN = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
WINDOWS = 60
NOW = 3600.0  # end of the evaluated window in seconds after BEGIN


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


class Life:
    """What a group went through, recorded one by one; times are seconds after BEGIN."""

    def __init__(
        self, kind: str = "classic", session: float = 45, timeout: float = 300, **columns: Any
    ) -> None:
        self.kind, self.session, self.timeout, self.columns = kind, session, timeout, columns
        self.generations: list[Row] = []
        self.rebalances: list[Row] = []
        self.members: list[Row] = []
        self.events: list[Row] = []
        self._slots: set[str] = set()
        self._number = 0

    def generation(self, seconds: float, *slots: str, row: bool = True, **columns: Any) -> Life:
        """A rebalance that leaves these slots; `row` false: its row of `rebalances` is still to
        come.
        """
        now, before = set(slots), self._slots
        restarted = set(columns.pop("restarted", ()))
        left, joined = before - now, now - before
        followed = sorted(left)[: len(joined)]
        self._number += columns.get("generation_gap", 1)
        start = columns.pop("start", seconds - 1)
        of_row = columns.pop("of_row", {})
        assigned = columns.pop("assigned", {})
        of_member = columns.pop("of_member", {})
        recorded, stable_at, kind, group_type = seconds, None, "sync", "classic"
        if self.kind != "classic":
            recorded, stable_at, kind, group_type = start, at(seconds), "epoch", "consumer"
        generation = {
            "generation_kind": self.kind,
            "generation": self._number,
            "source_offset": 100 * self._number,
            "record_timestamp": at(recorded),
            "stable_at": stable_at,
            "kind": kind if slots else "empty",
            "group_type": group_type,
            "protocol_type": "consumer",
            "assignor": "range",
            "rebalance_mode": "eager",
            "state_timestamp": at(seconds - 0.1),
            "sync_seconds": 0.1,
            "generation_gap": 1,
            "member_count": len(slots),
            "joined": sorted(joined),
            "left": sorted(left),
            "replaced": sorted({*restarted, *followed}),
            "partitions_unassigned": 0,
            "live_read": True,
            **self.columns,
            **columns,
        }
        self.generations.append(generation)
        if row:
            cause = "member_join" if joined else "leader_rejoin"
            self.rebalances.append(
                {
                    "rebalance_id": f"r{self._number}",
                    "started_est": at(start),
                    "ended_at": at(seconds),
                    "generations": [self._number],
                    "interrupted": generation["generation_gap"] - 1,
                    "cause": "member_left" if left else cause,
                    "cause_posterior": None,
                    "join_seconds": seconds - start,
                    "straggler_slot": None,
                    "members_before": len(before),
                    "moved": None,
                    "avoidable": None,
                    "stateful": False,
                    "pause_p95_seconds": None,
                    **{
                        name: generation[name]
                        for name in ("joined", "left", "replaced", "assignor", "live_read")
                    },
                    **of_row,
                }
            )
        self.roster(recorded, slots, assigned, of_member)
        self._slots = now
        return self

    def roster(
        self,
        seconds: float,
        slots: Sequence[str],
        assigned: Mapping[str, Sequence[int]] | None = None,
        of_member: Mapping[str, Row] | None = None,
        offset: int = 0,
    ) -> Life:
        """Rows of group_members; slots are instance ids unless they name a host,
        `client/host#0`.
        """
        for slot in slots:
            instance_id, client_id, client_host = slot, "app", "/10.0.0.1"
            if "/" in slot:
                client_id, _, host = slot.partition("/")
                instance_id, client_host = None, f"/{host.partition('#')[0]}"
            held = (assigned or {}).get(slot)
            pairs = None
            if held is not None:
                pairs = [{"topic": "orders", "partition": each} for each in held]
            self.members.append(
                {
                    "generation_kind": self.kind,
                    "generation": self._number,
                    "source_offset": 100 * self._number + offset,
                    "record_timestamp": at(seconds),
                    "batch_id": len(self.members),
                    "member_id": f"{slot}-1",
                    "slot": slot,
                    "group_instance_id": instance_id,
                    "client_id": client_id,
                    "client_host": client_host,
                    "session_timeout_ms": round(1000 * self.session),
                    "rebalance_timeout_ms": round(1000 * self.timeout),
                    "topics": ["orders"],
                    "assigned": pairs,
                    "member_state": None if self.kind == "classic" else "Stable",
                    **(of_member or {}).get(slot, {}),
                }
            )
        return self

    def static_return(
        self, seconds: float, slot: str, member_id: str, host: str, away: float | None = None
    ) -> Life:
        """A static member restarts within its generation."""
        offset = len(self.events) + 1
        of_member = {slot: {"member_id": member_id, "client_host": host}}
        self.roster(seconds, sorted(self._slots), None, of_member, offset)
        self.events.append(
            {"kind": "static_replacement", "event_at": at(seconds), "slot": slot, "seconds": away}
        )
        return self

    def frame(self, now: float = NOW, policy: Policy | None = None, **fact: Any) -> GroupFrame:
        end = round(at(now).timestamp() * 1000)
        starts = end - 60_000 * np.arange(WINDOWS, 0, -1)
        known = {
            "group_type": "classic",
            "protocol_type": "consumer",
            "members": len(self._slots),
        } | fact
        return GroupFrame(
            cluster="c",
            group="g",
            window_seconds=60,
            windows=starts,
            topics=(),
            facts=[None] * (WINDOWS - 1) + [known],
            rebalances=self.rebalances,
            generations=self.generations,
            members=self.members,
            events=self.events,
            policy=policy or Policy(),
        )

    def membership(self, now: float = NOW, **fact: Any) -> Membership:
        return membership_of(self.frame(now, **fact), Parameters())

    def signals(
        self,
        now: float = NOW,
        policy: Policy | None = None,
        topics: Sequence[TopicSignals] = (),
        **columns: Any,
    ) -> Signals:
        fact = columns.pop("fact", {})
        frame = replace(self.frame(now, policy, **fact), topics=[topic.frame for topic in topics])
        frame = replace(
            frame,
            **{name: columns.pop(name) for name in ("baseline", "deploys") if name in columns},
        )
        lag = float(sum(np.nansum(topic.lag) for topic in topics))
        given: Row = {
            "frame": frame,
            "membership": membership_of(frame, Parameters()),
            "parameters": Parameters(),
            "topics": topics,
            "members": {},
            "state": "Stable",
            "member_count": len(self._slots),
            "ceiling": 12,
            "capacity": np.nan,
            "best_capacity": np.nan,
            "is_material": False,
            "lag": lag,
            "material_lag": 0.0,
            "time_in_rebalance": np.nan,
            "sub_cause": "",
        }
        return Signals(**(given | columns))


def series(**arrays: Any) -> TopicSignals:
    """A topic whose arrays are given per window (all partitions alike) or as
    [partitions, windows].
    """
    partitions = arrays.pop("partitions", 2)
    floor = np.full(partitions, float(arrays.pop("floor", 100.0)))
    trend = arrays.pop("trend", "flat")
    shape = (partitions, WINDOWS)
    numbers = {name: np.full(shape, np.nan) for name in NUMBERS}
    for name, value in arrays.items():
        numbers[name] = np.broadcast_to(np.asarray(value, float), shape).copy()
    names = {name: np.full(shape, "", object) for name in NAMES}
    frame = TopicFrame("orders", "id", np.arange(partitions), numbers, names)
    lag = numbers["lag"][:, -1]
    none = Shape("none", "none")
    flags = np.zeros(partitions, bool)
    return TopicSignals(
        frame=frame, is_ok=~flags, lag=lag, envelope=numbers["envelope"][:, -1],
        arrival=numbers["arrival"][:, -1],
        arriving=numbers["arrival"][:, -1], consume=numbers["consume"][:, -1],
        interval=numbers["interval"][:, -1],
        floor=floor, is_material=lag > floor,
        positions=positions(frame, 60), least=numbers["lag_min"],
        least_floor=np.broadcast_to(floor[:, None], shape),
        is_stalled=flags, stall_kind=("",) * partitions, shape=none, arrival_shape=none,
        growth_shape=none,
        trend=Trend(trend), trends=(), in_step=None, slope_iqr=np.nan,
    )  # fmt: skip


def member(slot: str, material: int = 0) -> MemberSignals:
    return MemberSignals(
        slot=slot, client_id="app", host="", partitions=(), arrival=0.0, consume=0.0,
        capacity=np.nan, seen=0.0,
        is_busy=False, material=material, lag=0.0,
    )  # fmt: skip


def pods(*numbers: int) -> tuple[str, ...]:
    """Slots of dynamic members, one host each."""
    return tuple(f"app/10.0.0.{number}#0" for number in numbers)


def rolled(number: int = 4) -> Life:
    """A deploy from 3200 s on, a member each 40 s, each new one on a new host."""
    now, life = list(pods(*range(number))), Life().generation(10, *pods(*range(number)))
    for index in range(number):
        life.generation(3200 + 40 * index, *[each for each in now if each != now[index]])
        now[index] = pods(50 + index)[0]
        life.generation(3220 + 40 * index, *now)
    return life
