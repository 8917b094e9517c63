"""From a group's frame to the signals that its rules share, each computed once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from laggard.diagnosis.history.frames import Floats, GroupFrame, Memory, Row, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals import significance, stall, trend
from laggard.diagnosis.signals.attribution import attribute
from laggard.diagnosis.signals.change_effects import newest_scale_out
from laggard.diagnosis.signals.forecast import PARTIAL_SHARE, breach_seconds, losses, partial_share
from laggard.diagnosis.signals.group import (
    Flags,
    MemberSignals,
    Shape,
    Signals,
    TopicSignals,
    membership_of,
)
from laggard.diagnosis.signals.members import lasting_capacity, member_signals, typical_capacity
from laggard.diagnosis.signals.rates import newest_level, positions, rolling_mean
from laggard.diagnosis.signals.rosters import (
    longest_seconds,
)
from laggard.diagnosis.signals.statistics import known_sum, lower_median
from laggard.diagnosis.signals.trend import TrendState

HIDDEN = ("stale", "source_blocked")
_AT_LEAST_DONE = fixed(
    "at_least_done", 0.9, "of what a member did all day, which it can do at least"
)


def signals_of(frame: GroupFrame, memory: Memory, parameters: Parameters) -> tuple[Signals, Memory]:
    """Return the signals at the end of the newest window, and the updated memory.

    The memory has updated trends and busy members.
    """
    topics, left, trends = _topics_of(frame, memory, parameters)
    members, busy = member_signals(frame, topics, memory.busy, parameters)
    capacity = lasting_capacity(memory.capacity, typical_capacity(members, busy, parameters), busy)
    shown = [rate for each in members.values() for rate in (each.capacity, each.seen)]
    material = sum(float(each.lag[each.is_material].sum()) for each in topics)
    ratio = frame.fact.get("time_in_rebalance_ratio")
    signals = Signals(
        frame=frame,
        membership=membership_of(frame, parameters),
        parameters=parameters,
        topics=topics,
        members=members,
        state=frame.fact.get("group_state") or "Unknown",
        member_count=frame.fact.get("members"),
        ceiling=ceiling_of(frame),
        capacity=capacity,
        best_capacity=float(np.fmax.reduce(shown, initial=np.nan)),
        is_material=_is_material(topics, material, parameters),
        lag=float(sum(known_sum(each.lag) for each in topics)),
        material_lag=material,
        time_in_rebalance=math.nan if ratio is None else ratio,
        sub_cause=_sub_cause(frame, topics, members, capacity, parameters),
        flags=frozenset(_flags(frame, topics)),
        memory=memory,
        left_topics=left,
    )
    signals = replace(
        signals,
        losses=losses(signals),
        breach_seconds=breach_seconds(signals),
        scaled=newest_scale_out(signals),
    )
    # causes are found by all other signals
    signals = replace(signals, lag_causes=attribute(signals))
    return signals, replace(
        memory, trends=trends, busy=busy, capacity=capacity, scaled=signals.scaled
    )


def _topics_of(
    frame: GroupFrame, memory: Memory, parameters: Parameters
) -> tuple[list[TopicSignals], list[TopicSignals], dict[str, tuple[str, int]]]:
    """Return the signals of read topics and of left topics, and the trends to remember."""
    topics: list[TopicSignals] = []
    left: list[TopicSignals] = []
    trends: dict[str, tuple[str, int]] = {}
    for each in frame.topics:
        before = TrendState(*memory.trends.get(each.topic, ("", 0)))
        topic, after = topic_signals(
            each, frame, before, parameters, has_members=bool(frame.fact.get("members"))
        )
        if is_left(each, frame):
            unread = np.zeros(len(each.partitions), np.bool_)
            left.append(replace(topic, is_stalled=unread, stall_kind=("",) * len(unread)))
        else:
            topics.append(topic)
        if after.name:
            trends[each.topic] = (after.name, after.unconfirmed)
    return topics, left, trends


def _is_material(topics: list[TopicSignals], lag: float, parameters: Parameters) -> bool:
    """Return True if lag of a topic counts, and the group's lag is large enough.

    The size is in records or in time.
    """
    longest = max(
        (float(np.fmax.reduce(each.frame["time_lag"][:, -1], initial=0.0)) for each in topics),
        default=0.0,
    )
    is_enough = (
        lag >= parameters.min_group_lag_records or longest >= parameters.min_group_time_lag_seconds
    )
    return is_enough and any(each.is_material.any() for each in topics)


def is_left(topic: TopicFrame, group: GroupFrame) -> bool:
    """Return True if the group has offsets of a topic without a subscribed member."""
    subscribed = group.fact.get("topic_partitions")
    if not group.fact.get("members") or not subscribed or topic.topic in subscribed:
        return False
    # else it may be missing from the poll
    return bool((topic.named("status")[:, -1] == "ok").any())


def topic_signals(
    frame: TopicFrame,
    group: GroupFrame,
    before: TrendState,
    parameters: Parameters,
    *,
    has_members: bool,
) -> tuple[TopicSignals, TrendState]:
    """Return the signals of one topic, and its trend to remember."""
    frame = stall.with_lost(frame, group.window_seconds)
    arrival = rolling_mean(frame["arrival"], parameters.rate_windows)
    known = positions(frame, group.window_seconds)
    consume = known.newest_rates(parameters.rate_windows)
    if np.isnan(consume).any():  # before the second commit the windows are all there is
        consume = np.where(
            np.isnan(consume),
            rolling_mean(frame["consume"], parameters.rate_windows)[:, -1],
            consume,
        )
    floors = significance.floors(frame, arrival, group.window_seconds, parameters)
    seconds = group.windows / 1000.0 + group.window_seconds
    unseen = significance.unseen(frame, group)
    envelopes = np.where(unseen, np.nan, trend.since_break(frame))
    slopes = trend.partition_slopes(seconds, envelopes, parameters)
    at_commits = trend.newest_at_commits(frame, seconds, envelopes, group.window_seconds)
    left = significance.lag_left(frame, floors, at_commits)
    is_material = significance.material(frame, left, group.policy.slo_time_lag_seconds, parameters)
    partition_trends = trend.partition_trends(
        frame, seconds, envelopes, slopes, arrival[:, -1], group, parameters
    )
    is_growing = np.array([each.name == trend.GROWING for each in partition_trends], bool)
    is_material[:, -1] |= is_growing
    # what grows by now was lag before it was past the floor
    matters: Flags = np.logical_or(is_material.any(axis=0), is_growing.any())
    newest = np.where(unseen, np.nan, np.where(np.isnan(at_commits), frame["lag"], at_commits))
    few = min(parameters.shape_windows_few, newest.shape[1])
    is_ok = frame.named("status")[:, -few:] == "ok"
    newest_shapes = [
        significance.raw_shape(
            np.where(is_ok[:, at], newest[:, at], np.nan),
            frame.partitions,
            is_material=bool(matters[at]),
            parameters=parameters,
        )
        if at == -1 or matters[at]
        else Shape(significance.NONE, significance.NONE)
        for at in range(-few, 0)
    ]
    lag_shape = replace(
        newest_shapes[-1],
        name=significance.persist(newest_shapes, len(frame.partitions), parameters),
    )
    group_trend, after = trend.topic_trend(
        frame, seconds, envelopes, newest, arrival[:, -1], before, group, parameters
    )
    is_in_step, iqr = trend.in_step(slopes, arrival[:, -1], parameters)
    grows = np.where(slopes > 0, slopes, 0.0)
    poll_interval_seconds = session_seconds = 0.0
    if has_members:
        poll_interval_seconds = longest_seconds(group, "rebalance_timeout_ms")
        session_seconds = longest_seconds(group, "session_timeout_ms")
    kinds = stall.stalls(
        frame,
        has_members=has_members,
        window_seconds=group.window_seconds,
        parameters=parameters,
        poll_interval_seconds=poll_interval_seconds,
        session_seconds=session_seconds,
        hidden_seconds=0.0 if group.hidden is None else float(np.nan_to_num(group.hidden.most[-1])),
        settled_seconds=_settled_seconds(group),
        floor=floors.momentary[:, -1],
    )
    signals = TopicSignals(
        frame=frame,
        is_ok=is_ok[:, -1],
        lag=frame["lag"][:, -1],
        envelope=newest[:, -1],
        arrival=arrival[:, -1],
        arriving=newest_level(
            frame["arrival"], parameters.rate_windows, parameters.arrival_up_ratio
        ),
        positions=known,
        consume=consume,
        interval=frame["interval"][:, -1],
        floor=floors.momentary[:, -1],
        least=left.least,
        least_floor=left.floor,
        is_material=is_material[:, -1],
        is_stalled=np.array([bool(kind) for kind in kinds], bool),
        stall_kind=kinds,
        shape=lag_shape,
        arrival_shape=_plain_shape(arrival[:, -1], frame, parameters),
        growth_shape=_plain_shape(grows, frame, parameters),
        trend=group_trend,
        trends=partition_trends,
        in_step=is_in_step,
        slope_iqr=iqr,
    )
    return signals, after


def _plain_shape(values: Floats, frame: TopicFrame, parameters: Parameters) -> Shape:
    """Return the shape of rates, of which every one above zero counts."""
    is_material = bool(known_sum(values) > 0)
    return significance.raw_shape(
        values, frame.partitions, is_material=is_material, parameters=parameters
    )


def _settled_seconds(group: GroupFrame) -> float:
    """Return the seconds since the newest rebalance; infinity if none is recorded."""
    rows = group.live_generations
    return (group.now - rows[-1]["record_timestamp"]).total_seconds() if rows else math.inf


def ceiling_of(frame: GroupFrame) -> int:
    """Return the number of members that can get a partition: the subscribed partitions.

    Under range, it is the number of partitions of the largest topic.
    """
    counts = frame.fact.get("topic_partitions") or {
        each.topic: len(each.partitions) for each in frame.topics
    }
    numbers = list(counts.values()) or [0]
    return max(numbers) if frame.fact.get("assignor") == "range" else sum(numbers)


def _sub_cause(
    frame: GroupFrame,
    topics: list[TopicSignals],
    members: Mapping[str, MemberSignals],
    capacity: float,
    parameters: Parameters,
) -> str:
    """Return the change since the day before: arrivals or the capacity of members.

    Return "" without enough data of that day.
    """
    if not any(each.is_material.any() for each in topics):
        return ""
    usual = _usual(frame, topics, parameters)
    if usual is None:
        return ""
    arrived, could, did = usual
    is_up = (
        float(sum(known_sum(each.arrival) for each in topics))
        >= parameters.arrival_up_ratio * arrived
    )
    seen = lower_median([each.seen for each in members.values()]) if math.isnan(could) else math.nan
    # whatever members can do, they cannot do less than what they did all day
    is_down = (
        capacity <= parameters.capacity_down_ratio * could
        or capacity <= _AT_LEAST_DONE * np.fmax(did, seen)
    )
    return {(True, True): "both", (True, False): "arrival_up", (False, True): "capacity_down"}.get(
        (is_up, bool(is_down)), "steady"
    )


def _usual(
    frame: GroupFrame, topics: Sequence[TopicSignals], parameters: Parameters
) -> tuple[float, float, float] | None:
    """Return the day's medians in records/s; None without them.

    They are arrivals, capacity of a member, and rate of each member.

    What a member could do is NaN if fewer windows know it: these may be those of the trouble
    itself.
    """
    arrived, could, did = 0.0, math.nan, 0.0
    for each in topics:
        rows = _rows_before(frame, each.frame.topic, parameters)
        if len(rows) < parameters.baseline_min_windows:
            return None
        arrived += lower_median([row["arrival_rate"] for row in rows])
        known = [row["capacity"] for row in rows if row["capacity"] is not None]
        if len(known) >= parameters.baseline_min_windows:
            could = lower_median(known)
        did += lower_median([rate_per_member(row) for row in rows])
    return arrived, could, did


def _rows_before(frame: GroupFrame, topic: str, parameters: Parameters) -> list[Row]:
    """Return rows of the baseline that have an arrival rate, the newest minutes left out."""
    before_ms = frame.now_ms - 1000 * parameters.baseline_skip_seconds
    rows = [row for row in frame.baseline().get(topic, ()) if row["arrival_rate"] is not None]
    return [row for row in rows if round(row["window_end"].timestamp() * 1000) <= before_ms]


def rate_per_member(row: Row) -> float:
    """Return what each member did in a window of the baseline, records/s; NaN unknown.

    Where commits are polled and not counted, a window's records are all those since the answer
    before.
    """
    consumed, members, rate = row.get("consumed"), row.get("members"), row.get("consume_rate")
    if row.get("commits") is None:
        return rate / members if None not in (consumed, rate) and members else math.nan
    seconds = (row["window_end"] - row["window_start"]).total_seconds()
    return consumed / members / seconds if consumed is not None and members else math.nan


def _flags(frame: GroupFrame, topics: list[TopicSignals]) -> set[str]:
    """Return the flags that limit the evaluation of this group."""
    found = set()
    status = [name for each in topics for name in each.frame.named("status")[:, -1].tolist()]
    if partial_share(topics) > PARTIAL_SHARE:
        found.add("partial")
    for name in HIDDEN:
        if name in status:
            found.add({"source_blocked": "blocked"}.get(name, name))
    if frame.fact.get("watched_since") is None:
        found.add("bootstrap")
    if topics and all(each.trend.name == "abstain" for each in topics):
        found.add("sparse")
    return found
