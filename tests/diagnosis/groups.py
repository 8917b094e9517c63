"""Signals of groups short enough to be read in a test: what is not said is steady, healthy and
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from laggard.diagnosis.history.frames import NAMES, NUMBERS, GroupFrame, Row, TopicFrame
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.signals.attribution import attribute
from laggard.diagnosis.signals.deploys import Deploy
from laggard.diagnosis.signals.group import (
    MemberSignals,
    Shape,
    Signals,
    TopicSignals,
    Trend,
    membership_of,
)
from laggard.diagnosis.signals.rates import positions

WINDOWS = 60
END_MS = 1_780_000_020_000  # end of the evaluated window
PARAMETERS = Parameters()
END = datetime.fromtimestamp(END_MS / 1000, timezone.utc)
GENERATION: Row = {  # of which nothing is known but that it was
    "generation_kind": "classic", "generation": 1, "source_offset": 100, "record_timestamp": END,
    "kind": "sync",
    "generation_gap": 1, "member_count": 1, "joined": None, "left": None, "replaced": None,
    "live_read": True,
}  # fmt: skip
REBALANCE: Row = {
    "rebalance_id": "r1",
    "ended_at": END,
    "generations": [1],
    "cause": "",
    "cause_posterior": None,
}


def window_starts(count: int = WINDOWS, seconds: int = 60) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Begins of the windows in ms, the evaluated one last."""
    return END_MS - 1000 * seconds * np.arange(count, 0, -1, dtype=np.int64)


def spread_over(partitions: int, members: int) -> list[str]:
    """Slots m0, m1, ... by contiguous ranges, as range gives them; of no members nobody's."""
    if not members:
        return [""] * partitions
    share, rest = divmod(partitions, members)
    return [f"m{member}" for member in range(members) for _ in range(share + (member < rest))]


def topic_signals(
    lag: Sequence[float],
    *,
    topic: str = "orders",
    arrival: float | Sequence[float] = 100.0,
    consume: float | Sequence[float] | None = None,
    floor: float | Sequence[float] = 1000.0,
    interval: float = 5.0,
    slots: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    brokers: Sequence[float] | None = None,
    status: Sequence[str] | None = None,
    stalled: Mapping[int, str] | None = None,
    shape: str | Shape = "spread",
    arrival_shape: str = "spread",
    growth_shape: str = "spread",
    trend: str | Trend = "flat",
    in_step: bool | None = True,
    history: Mapping[str, Any] | None = None,
    facts: Row | None = None,
    windows: int = WINDOWS,
) -> TopicSignals:
    """A topic whose partitions did the same in every window; `history` names arrays of the frame
    that differ.

    Each value of `history` is an array [partitions, windows], or one row or column that fits.
    `stalled` is place of the partition -> kind. Lag is significant above the floor and 5 records.
    Without slots all belong to m0.
    """
    count = len(lag)
    lags = np.asarray(lag, float)
    arrivals, floors = np.full(count, arrival, float), np.full(count, floor, float)
    consumed = arrivals.copy() if consume is None else np.full(count, consume, float)
    names = {
        "slot": slots or ["m0"] * count,
        "host": hosts or [f"host-of-{slot}" for slot in slots or ["m0"] * count],
        "status": status or ["ok"] * count,
    }
    names |= {
        "owner": [slot and f"id-{slot}" for slot in names["slot"]],
        "client_id": ["app"] * count,
    }
    numbers = dict.fromkeys(NUMBERS, np.nan) | {
        "lag": lags,
        "lag_min": lags,
        "lag_max": lags,
        "envelope": lags,
        "arrival": arrivals,
        "consume": consumed,
        "produced": arrivals * 60,
        "consumed": consumed * 60,
        "interval": interval,
        "broker": brokers or [float(place % 3) for place in range(count)],
    }
    given = dict(history or {})
    if "consume" in given and "consumed" not in given:
        given["consumed"] = 60 * np.asarray(given["consume"], float)
    values = {
        name: _filled(given.get(name, numbers[name]), (count, windows), float) for name in NUMBERS
    }
    frame = TopicFrame(
        topic,
        f"id-of-{topic}",
        np.arange(count),
        values,
        {name: _filled(given.get(name, names[name]), (count, windows), object) for name in NAMES},
        facts or {},
    )
    is_ok = np.array([each == "ok" for each in names["status"]])
    kinds = stalled or {}
    material = is_ok & (lags > np.maximum(floors, 5))
    if isinstance(trend, str):
        trend = Trend(trend, 0 if trend == "abstain" else 20)
    if isinstance(shape, str):
        shape = Shape(shape, shape)
    return TopicSignals(
        frame=frame,
        is_ok=is_ok,
        lag=np.where(is_ok, lags, np.nan),
        envelope=np.where(is_ok, lags, np.nan),
        arrival=arrivals,
        arriving=arrivals,
        positions=positions(frame, 60),
        consume=consumed,
        interval=np.full(count, interval),
        floor=floors,
        least=frame["lag_min"],
        least_floor=np.repeat(floors[:, None], windows, axis=1),
        is_material=material,
        is_stalled=np.array([place in kinds for place in range(count)]),
        stall_kind=tuple(kinds.get(place, "") for place in range(count)),
        shape=shape,
        arrival_shape=Shape(arrival_shape, arrival_shape),
        growth_shape=Shape(growth_shape, growth_shape),
        trend=trend,
        trends=[trend] * count,
        in_step=in_step,
        slope_iqr=np.nan if in_step is None else 0.1,
    )


def signals_of(
    *topics: TopicSignals,
    members: Sequence[str] | None = None,
    capacity: float | Mapping[str, float] = np.nan,
    seen: Mapping[str, float] | None = None,
    busy: Sequence[str] = (),
    best_capacity: float | None = None,
    state: str = "Stable",
    member_count: int | None = -1,
    ceiling: int | None = None,
    assignor: str | None = "range",
    time_in_rebalance: float = 0.0,
    is_material: bool | None = None,
    sub_cause: str = "",
    policy: Policy = Policy(),  # noqa: B008 -- frozen
    parameters: Parameters = PARAMETERS,
    flags: frozenset[str] = frozenset(),
    deploy: Deploy | None = None,
    fact: Row | None = None,
    group_facts: Sequence[Row | None] | None = None,
    baseline: Mapping[str, Sequence[Row]] | None = None,
    **lists: Sequence[Row],
) -> Signals:
    """A group of these topics. Members are the slots of the partitions, and those of `members`
    without any.

    `capacity` is that of every member, or by slot; `seen` is what they consume now if not given.
    `member_count` -1 counts the members. `fact` is the row of group_history of every window;
    `lists` are those of GroupFrame.
    """
    found = _members(topics, members or (), capacity, seen or {}, busy)
    count = len(found) if member_count == -1 else member_count
    row = {
        "assignor": assignor,
        "members": count,
        "group_state": state,
        "topics": [t.frame.topic for t in topics],
    }
    row |= {"idle_members": sum(not member.partitions for member in found.values())} | (fact or {})
    windows = topics[0].frame["lag"].shape[1] if topics else WINDOWS
    frame = GroupFrame(
        cluster="prod",
        group="payments",
        window_seconds=60,
        windows=window_starts(windows),
        topics=[topic.frame for topic in topics],
        facts=[row] * windows if group_facts is None else group_facts,
        policy=policy,
        baseline=lambda: baseline or {},
        **({"rebalances": (), "generations": (), "members": (), "events": ()} | lists),
    )
    capacities = sorted(
        member.capacity for member in found.values() if not np.isnan(member.capacity)
    )
    usual_capacity = capacities[(len(capacities) - 1) // 2] if capacities else np.nan
    counts = [len(topic.frame.partitions) for topic in topics]
    material = sum(float(np.nansum(topic.lag[topic.is_material])) for topic in topics)
    if best_capacity is None:
        best_capacity = max([*capacities, *(each.seen for each in found.values())], default=np.nan)
    if ceiling is None:
        ceiling = max(counts, default=0) if assignor == "range" else sum(counts)
    signals = Signals(
        frame=frame,
        membership=replace(membership_of(frame, parameters), deploy=deploy),
        parameters=parameters,
        topics=topics,
        members=found,
        state=state,
        member_count=count,
        ceiling=ceiling,
        capacity=usual_capacity,
        best_capacity=best_capacity,
        is_material=material > 0 if is_material is None else is_material,
        lag=sum(float(np.nansum(topic.lag)) for topic in topics),
        material_lag=material,
        time_in_rebalance=time_in_rebalance,
        sub_cause=sub_cause,
        flags=flags,
    )
    return replace(signals, lag_causes=attribute(signals))


def _members(
    topics: Sequence[TopicSignals],
    others: Sequence[str],
    capacity: float | Mapping[str, float],
    seen: Mapping[str, float],
    busy: Sequence[str],
) -> dict[str, MemberSignals]:
    owned: dict[str, list[tuple[TopicSignals, int]]] = {slot: [] for slot in others}
    hosts = {slot: f"host-of-{slot}" for slot in others}
    for topic in topics:
        for place, slot in enumerate(topic.frame.named("slot")[:, -1]):
            if slot:
                owned.setdefault(slot, []).append((topic, place))
                hosts[slot] = topic.frame.named("host")[place, -1]
    found = {}
    for slot, held in sorted(owned.items()):
        consume = float(sum(topic.consume[place] for topic, place in held))
        found[slot] = MemberSignals(
            slot=slot,
            client_id="app",
            host=hosts[slot],
            partitions=tuple(
                (topic.frame.topic, int(topic.frame.partitions[place])) for topic, place in held
            ),
            arrival=float(sum(topic.arrival[place] for topic, place in held)),
            consume=consume,
            capacity=capacity.get(slot, np.nan) if isinstance(capacity, Mapping) else capacity,
            seen=seen.get(slot, consume),
            is_busy=slot in busy,
            material=sum(bool(topic.is_material[place]) for topic, place in held),
            lag=float(sum(np.nan_to_num(topic.lag[place]) for topic, place in held)),
        )
    return found


def _filled(value: Any, size: tuple[int, int], kind: type) -> Any:
    """The value for every window: an array of that size, one value per partition,
    or one for all.
    """
    array = np.asarray(value, kind)
    filled = np.empty(size, kind)
    filled[:] = array[:, None] if array.shape == size[:1] else array
    return filled
