"""Would adding consumers help? The first reason that applies, with the numbers that decided it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import isinf, isnan, nan

import numpy as np

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.capacity import RISING_WINDOWS, rises
from laggard.diagnosis.rules.registry import BLOCKS_SCALING
from laggard.diagnosis.rules.rule import Observation, share_of_lag
from laggard.diagnosis.signals.attribution import UNEVEN, searchable
from laggard.diagnosis.signals.draining import (
    drain_at_current_rates,
    drains_soon_in,
    falls,
    owner_drains_in,
    owners_of_lag,
    partitions_drain_in,
)
from laggard.diagnosis.signals.forecast import (
    is_read_by_others,
    is_seen,
    partial_share,
)
from laggard.diagnosis.signals.group import Flags, MemberSignals, Signals, TopicSignals
from laggard.diagnosis.signals.hot import (
    HOT_WINDOWS,
    hot_places,
    is_hot_unknown,
    overtaken_places,
    wandering,
)
from laggard.diagnosis.signals.stall import BELOW_LOG_START, HELD, is_lost, retained
from laggard.diagnosis.signals.statistics import known_sum
from laggard.diagnosis.verdict import reasons
from laggard.diagnosis.verdict.reasons import (
    VERDICT_SHARE,
    Reason,
    Verdict,
    members_to_have,
    numbers_of,
)
from laggard.diagnosis.verdict.sizing import Sizing

_SERIES_GAPS = fixed("series_gaps", 4, "newest gaps between changes of the members")
_SERIES_SILENCE = fixed(
    "series_silence", 2, "times the longest of them, after which such changes have ended"
)
_SERIES_WINDOWS = fixed("series_windows", 3, "windows at least")
# from here on there is more to it than one member
ENOUGH_BUSY = fixed("enough_busy", 0.5, "share of the other members")


def scale_verdict(
    signals: Signals,
    conditions: Mapping[str, Observation],
    sizing: Sizing,
    *,
    elasticity: float = nan,
) -> Verdict:
    """Return the verdict by the first reason that applies.

    `conditions` are the codes that hold now, `elasticity` is that of the last scale-out.
    """
    reason, found = next(_reasons(signals, conditions, sizing, elasticity))
    numbers = numbers_of(signals, sizing) | found
    return Verdict(
        reason,
        {name: value for name, value in numbers.items() if not isnan(value)},
        members_to_have(reason, signals, sizing),
    )


_Applies = tuple[Reason, dict[str, float]]


def _reasons(
    signals: Signals, conditions: Mapping[str, Observation], sizing: Sizing, elasticity: float
) -> Iterator[_Applies]:
    """Yield reasons that apply, in order."""
    topic, parameters = signals.worst, signals.parameters
    # what is said of the last half hour blocks scaling for as long as it goes on
    restless = BLOCKS_SCALING & conditions.keys() if _goes_on(signals) else frozenset[str]()
    is_read = _is_empty(signals) and is_read_by_others(signals)
    is_waiting = _has_unread(signals) and not is_read
    if is_waiting and _is_empty(signals) and not restless:  # it evicts none
        yield reasons.NO_MEMBERS, {}
    if not is_seen(signals) or topic is None:
        yield reasons.INPUT_UNKNOWN, {"partitions_unknown_ratio": partial_share(signals.topics)}
        return
    # what waited for members that come and go counts, however little it is
    is_waiting = is_waiting and bool(restless) and _was_empty(signals)
    if (
        not is_waiting
        and not _lags_on(signals)
        and not any(each.trend.name == "growing" for each in signals.topics)
    ):
        yield reasons.NO_LAG, {}
    if restless or signals.time_in_rebalance >= signals.parameters.storm_ratio:
        yield (
            reasons.REBALANCES,
            {"time_in_rebalance_ratio": signals.time_in_rebalance, "conditions": len(restless)},
        )
    yield from _held_back(signals, topic, conditions)
    if signals.member_count is None or is_read:  # offsets are committed, but who reads is not known
        yield reasons.READER_UNKNOWN, {"members_known": 0.0}
        return
    yield from _uneven(signals, topic, conditions, sizing)
    yield from _drains(signals)
    is_shaped = _costly_share(signals, conditions) < VERDICT_SHARE and topic.shape.name in {
        "spread",
        "single",
        *UNEVEN,
    }
    yield from _suffices(signals, sizing, is_shaped=is_shaped)
    is_known = not isnan(signals.capacity) and sizing.members_desired is not None and is_shaped
    if not is_known and _is_little(signals):
        yield reasons.LITTLE_LAG, {"size_known": 0.0}
    if signals.member_count >= signals.ceiling:
        yield reasons.AT_CEILING, {}
    if elasticity < parameters.elasticity_min or "SHARED_SINK" in conditions:
        yield reasons.DOWNSTREAM, {"elasticity_ratio": elasticity}
    yield from _sized(signals, sizing, is_known=is_known, is_shaped=is_shaped)


def _drains(signals: Signals) -> Iterator[_Applies]:
    """Yield the reason of a backlog that drains within the target by what the members read now."""
    drain = drain_at_current_rates(signals)
    if (
        any(each.trend.name == "draining" for each in signals.topics)
        and drain <= signals.policy.drain_target_seconds
    ):
        yield reasons.DRAINING, {"drain_seconds": drain}


def _is_empty(signals: Signals) -> bool:
    return signals.state == "Empty" or signals.member_count == 0


def _was_empty(signals: Signals) -> bool:
    """Return True if the group had no member at a window's end since its newest commit.

    The commit is that of the unread records.
    """
    frozen = [each.frame["frozen"][each.lag > 0, -1] for each in signals.topics]
    since = float(np.fmin.reduce(np.concatenate(frozen), initial=np.nan))
    windows = int(np.nan_to_num(since) / signals.frame.window_seconds) + 1
    return any(
        row is not None and row.get("members") == 0 for row in signals.frame.facts[-windows:]
    )


def _has_unread(signals: Signals) -> bool:
    """Return True if a record is unread.

    The record is of known lag, or retention deletes it before a member reads it.
    """
    statuses = [
        status for topic in signals.topics for status in topic.frame.named("status")[:, -1].tolist()
    ]
    return is_seen(signals, ("ok", BELOW_LOG_START)) and (
        signals.lag > 0 or BELOW_LOG_START in statuses
    )


def _lags_on(signals: Signals) -> bool:
    """Return True if significant lag lasted all through the window.

    Lag that drained in between needs no member.

    Where retention has deleted unread records, what it has not yet deleted is lag, too.
    """
    for topic in signals.topics:
        if (is_lost(topic.frame) & (retained(topic.frame) > topic.floor)).any():
            return True
    for topic in signals.topics if signals.is_material else ():
        is_passing = topic.least[:, -1] <= topic.least_floor[:, -1]
        is_growing = np.array([each.name == "growing" for each in topic.trends], bool)
        if (topic.is_material & (~is_passing | is_growing)).any():
            return True
    return False


def _goes_on(signals: Signals) -> bool:
    """Return True during a rebalance, or after a recent change of members.

    Recent means no longer ago than twice the gap between such changes.

    Also if no change is recorded: then what is said of the group is all that is known.
    """
    if signals.state not in {"Stable", "Empty"}:
        return True
    now = signals.frame.now.timestamp()
    ago = [
        now - row["record_timestamp"].timestamp()
        for row in signals.frame.generations[-_SERIES_GAPS - 1 :]
    ]
    longest = max((one - two for one, two in pairwise(ago)), default=0.0)
    silence = max(_SERIES_SILENCE * longest, _SERIES_WINDOWS * signals.frame.window_seconds)
    return not ago or ago[-1] <= min(silence, signals.parameters.storm_seconds)


def _held_back(
    signals: Signals, topic: TopicSignals, conditions: Mapping[str, Observation]
) -> Iterator[_Applies]:
    """Yield the reason for lag that no number of members could drain."""
    unowned = conditions.get("PARTITION_UNOWNED")
    hidden = np.array([kind == HELD for kind in topic.stall_kind], bool)
    stuck = topic.is_stalled & ~hidden
    if unowned is not None and unowned.topic in {"", topic.frame.topic}:
        stuck |= np.isin(topic.frame.partitions, unowned.partitions)
    # commits that stopped everywhere are a stall of every partition
    stalled = 1.0 if "COMMITS_STOPPED" in conditions else _lag_share(topic, stuck)
    if stalled >= VERDICT_SHARE:
        yield reasons.STALLED, {"stalled_lag_ratio": stalled}
    if _lag_share(topic, hidden) >= VERDICT_SHARE:
        yield reasons.TRANSACTION_OPEN, {"hidden_lag_ratio": _lag_share(topic, hidden)}
    for code in ("BROKER_CORRELATED", "LSO_STUCK", "OFFSET_BEYOND_END"):
        if code in conditions and explained(signals, conditions[code]) >= VERDICT_SHARE:
            yield reasons.BROKER, {"explained_ratio": explained(signals, conditions[code])}


def _uneven(
    signals: Signals, topic: TopicSignals, conditions: Mapping[str, Observation], sizing: Sizing
) -> Iterator[_Applies]:
    """Yield the reason for lag of some partitions or members only."""
    hot = hot_places(signals, topic, searchable(topic)) if topic.shape.name in UNEVEN else ()
    hot += overtaken_places(signals, topic)
    if hot:
        numbers = {
            "hot_partitions": float(len(hot)),
            "hot_arrival_rate": float(topic.arrival[list(hot)].max()),
            "best_capacity_rate": signals.best_capacity,
            "residual_records": sizing.residual_records,
        }
        yield reasons.HOT_PARTITION, numbers
    elif (count := len(wandering(signals, topic))) > 1:
        yield (
            reasons.HOT_WANDERS,
            {"hot_partitions": float(count), "best_capacity_rate": signals.best_capacity},
        )
    costly = _costly_share(signals, conditions)
    if costly >= VERDICT_SHARE and signals.memory.is_open("COSTLY_PARTITION"):
        yield reasons.COSTLY_PARTITION, {"explained_ratio": costly}
    slow = [conditions[code] for code in ("SLOW_HOST", "SLOW_MEMBER") if code in conditions]
    if slow:
        named = {each.subject for each in slow}
        others = [
            _is_short(signals, m)
            for m in signals.members.values()
            if m.partitions and not {m.slot, m.host} & named
        ]
        busy = sum(others) / len(others) if others else 1.0
        if busy < ENOUGH_BUSY:
            yield reasons.UNHEALTHY_MEMBER, {"busy_others_ratio": busy}


def _costly_share(signals: Signals, conditions: Mapping[str, Observation]) -> float:
    """Return the share of costly partitions in the lag that does not soon drain by itself.

    Until they are a finding, a stall that begins looks like them.
    """
    costly = conditions.get("COSTLY_PARTITION")
    if costly is None:
        return 0.0
    gone = 0.0
    for topic in signals.topics:
        is_costly = np.isin(topic.frame.partitions, costly.partitions) & (
            topic.frame.topic == costly.topic
        )
        is_soon_gone = partitions_drain_in(topic) <= signals.policy.drain_target_seconds
        gone += known_sum(topic.lag[topic.is_material & ~is_costly & is_soon_gone])
    share = explained(signals, costly)
    return share / (1 - share_of_lag(signals, gone)) if share > 0 else 0.0


def _is_short(signals: Signals, member: MemberSignals) -> bool:
    """Return True if a member has more to read than it will soon have done.

    The speed is its capacity, or its present rate, if known.
    """
    seconds = signals.policy.drain_target_seconds
    if not member.is_busy or member.lag <= (member.capacity - member.arrival) * seconds:
        return False
    return any(
        owner_drains_in(topic, member.slot) > seconds
        for topic in signals.topics
        if member.slot in owners_of_lag(topic)
    )


def _suffices(signals: Signals, sizing: Sizing, *, is_shaped: bool) -> Iterator[_Applies]:
    """Yield the reason of lag that the present members drain in time.

    It may still be that there can be no more members.
    """
    desired = sizing.members_desired if is_shaped and not isnan(signals.capacity) else None
    if (
        desired is not None
        and desired <= (signals.member_count or 0)
        and not sizing.target_unreachable
    ):
        yield reasons.ENOUGH_MEMBERS, {}
    # whatever members could do, or by that: of those with several partitions, some may wait for
    # their turn
    known = [
        drains_soon_in(signals),
        sizing.drain_now_seconds if is_shaped and falls(signals) else nan,
    ]
    soon = min((each for each in known if not isnan(each)), default=nan)
    if soon <= signals.policy.drain_target_seconds:
        yield reasons.DRAINING_SOON, {"drain_seconds": soon}


def _sized(
    signals: Signals, sizing: Sizing, *, is_known: bool, is_shaped: bool
) -> Iterator[_Applies]:
    """Yield the reason by the sizing for lag that present members do not drain in time.

    More members are the answer only if the lag drains with them.
    """
    if not is_known:
        needed = float(signals.parameters.busy_min_windows)
        is_measured = isnan(signals.capacity) and any(
            each.capacity > 0 for each in signals.members.values()
        )
        lacking = {"capacity_known": 0.0} if is_measured else {"busy_windows_needed": needed}
        yield reasons.LOAD_UNKNOWN, lacking | {"shape_known": float(is_shaped)}
    elif any(
        is_hot_unknown(signals, each, searchable(each))
        for each in signals.topics
        if each.shape.name in UNEVEN
    ):
        yield reasons.HOT_UNKNOWN, {"arrival_windows_needed": float(HOT_WINDOWS)}
    elif isinf(sizing.drain_seconds):
        # where the best member could do it, what the others can do is not known well enough
        is_endless = isinf(sizing.drain_at_best_seconds)
        yield (
            (reasons.PARTITIONS_TOO_FEW, {})
            if is_endless
            else (reasons.LOAD_UNKNOWN, {"capacity_known": 0.0})
        )
    elif sizing.target_unreachable:
        yield reasons.TARGET_MISSED, {}
    else:
        yield reasons.TOO_FEW_MEMBERS, {}


def _is_little(signals: Signals) -> bool:
    """Return True if no lag exceeds its floor by more than a window's arrivals, or is seen to rise.

    It may be over in the next window. What has just begun to be watched may as well be what falls
    behind.
    """
    seconds = signals.frame.window_seconds
    return all(
        (topic.lag <= topic.floor + topic.arriving * seconds)[topic.is_material].all()
        and (np.isfinite(topic.least).sum(axis=1) > RISING_WINDOWS)[topic.is_material].all()
        and topic.trend.name != "growing"
        and not rises(signals, topic)
        for topic in signals.topics
        if topic.is_material.any()
    )


def explained(signals: Signals, observation: Observation) -> float:
    """Return the share of the group's lag an observation accounts for.

    It is the observation's own figure, else the lag of its partitions.
    """
    if observation.explained > 0 or not observation.partitions:
        return observation.explained
    topic = next((each for each in signals.topics if each.frame.topic == observation.topic), None)
    if topic is None or signals.lag <= 0:
        return 0.0
    return (
        known_sum(topic.lag[np.isin(topic.frame.partitions, observation.partitions)]) / signals.lag
    )


def _lag_share(topic: TopicSignals, chosen: Flags) -> float:
    """Return the chosen partitions' share of the lag at the newest commits.

    A batch that arrived since does not count.

    Where retention has deleted unread records, what it has not yet deleted is left.
    """
    left = np.where(is_lost(topic.frame), retained(topic.frame), topic.envelope)
    total = known_sum(left)
    return known_sum(left[chosen]) / total if total > 0 else 0.0
