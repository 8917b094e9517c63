"""Signals of a group at the end of a window: the rules' questions on history and members.

Several rules ask these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from math import nan

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, Memory, Row, Scaled, TopicFrame
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.signals.deploys import (
    Deploy,
    ScaleEvent,
    find_deploys,
    find_scale_events,
    vetoing_deploy,
)
from laggard.diagnosis.signals.rates import Positions
from laggard.diagnosis.signals.rebalances import Logical, Spans, logical_rebalances
from laggard.diagnosis.signals.rosters import (
    EVICTION_REASONS,
    Change,
    CrashLoop,
    Eviction,
    Roster,
    Series,
    changes_of,
    current_members,
    find_crash_loops,
    find_evictions,
    find_series,
    places_of,
    rosters_of,
    subscriptions_differ_since,
)
from laggard.diagnosis.signals.statistics import known_sum


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Signals of the members' records up to the end of the evaluated window, oldest first.

    Each is computed once.
    """

    frame: GroupFrame
    parameters: Parameters
    rosters: Sequence[Roster]
    current: Sequence[Row]  # members of the newest roster
    place_of: Mapping[str, str]  # of each slot that has a row
    changes: Sequence[Change]
    logical_rebalances: Sequence[Logical]
    deploys: Sequence[Deploy]
    deploy: Deploy | None  # the rolling deploy that explains rebalances now
    crash_loops: Sequence[CrashLoop]
    # places of crash loops to which departures of the last half hour belonged
    looped: frozenset[str]
    evictions_by_reason: Mapping[str, Sequence[Eviction]]  # by claimed reason
    series: Series  # of departures that are not clear by themselves
    scale_events: Sequence[ScaleEvent]
    subscriptions_differ_since: datetime | None

    @property
    def subscriptions_differ(self) -> bool:
        """True if members subscribe to different topics now."""
        return self.subscriptions_differ_since is not None

    @property
    def deploy_spans(self) -> Spans:
        """First and newest change of each deploy: the rebalances between them are explained."""
        return [(each.started_at, each.ended_at) for each in self.deploys]

    @cached_property
    def looping(self) -> set[str]:
        """Places of all crash loops."""
        return {place for each in self.crash_loops for place in each.places}

    @cached_property
    def joined_at(self) -> dict[str, datetime]:
        """Newest time at which each place joined, or restarted."""
        return {
            place: each.at for each in self.changes for place in (*each.joined, *each.restarted)
        }

    def is_in_deploy(self, at: datetime) -> bool:
        """Return True if a deploy explains an event at that time."""
        return any(begin <= at <= end for begin, end in self.deploy_spans)

    def place(self, slot: str) -> str:
        """Return the member identity of a slot; of one without a row the slot itself."""
        return self.place_of.get(slot, slot)

    def evicted(self, reason: str, seconds: float | None = None) -> list[Eviction]:
        """Return evictions of recent seconds with this claimed reason.

        The default is `deploy_horizon_seconds`.
        """
        horizon = self.parameters.deploy_horizon_seconds if seconds is None else seconds
        return [
            each
            for each in self.evictions_by_reason[reason]
            if (self.frame.now - each.at).total_seconds() < horizon
        ]


def membership_of(frame: GroupFrame, parameters: Parameters) -> Membership:
    """Return the signals of the members' records of one frame."""
    rosters, place_of, rebalances = rosters_of(frame), places_of(frame), logical_rebalances(frame)
    changes = changes_of(frame, rosters, place_of)
    deploys = find_deploys(frame, changes, rebalances, parameters)
    series = find_series(frame, parameters)
    evictions = {
        reason: find_evictions(frame, rosters, reason, parameters, series)
        for reason in EVICTION_REASONS
    }
    return Membership(
        frame=frame,
        parameters=parameters,
        rosters=rosters,
        current=current_members(frame, rosters),
        place_of=place_of,
        changes=changes,
        logical_rebalances=rebalances,
        deploys=deploys,
        deploy=vetoing_deploy(frame, deploys, parameters),
        crash_loops=find_crash_loops(frame, changes, place_of, parameters),
        looped=_looped(frame, changes, place_of, parameters),
        evictions_by_reason=evictions,
        series=series,
        scale_events=find_scale_events(
            changes, deploys, [each for found in evictions.values() for each in found]
        ),
        subscriptions_differ_since=subscriptions_differ_since(rosters),
    )


def _looped(
    frame: GroupFrame,
    changes: Sequence[Change],
    place_of: Mapping[str, str],
    parameters: Parameters,
) -> frozenset[str]:
    """Return member identities in crash loops in twice the horizon.

    Alone, a loop's newest departures show no loop.
    """
    twice = replace(parameters, deploy_horizon_seconds=2 * parameters.deploy_horizon_seconds)
    return frozenset(
        place for each in find_crash_loops(frame, changes, place_of, twice) for place in each.places
    )


Flags = npt.NDArray[np.bool_]
UNKNOWN_KIND = "unknown"  # of a stall: silent or repeating, where commits are not counted


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of the lag over the partitions of a topic.

    The numbers are NaN if there is nothing to measure.
    """

    raw: str  # none, single, spread, mixed or concentrated, by this window alone
    name: str  # the same after persistence
    gini: float = np.nan
    n_eff: float = np.nan
    rho: float = np.nan
    top1_share: float = np.nan
    top_decile_share: float = np.nan
    entropy: float = np.nan
    # smallest set of partitions that holds 70 % of the lag, largest first
    top: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of the lower envelope of a lag.

    On abstain, everything but `name` and `points` is NaN.
    """

    name: str  # growing, flat, draining, sawtooth or abstain
    points: int = 0
    slope: float = np.nan  # records/s
    slope_low: float = np.nan
    slope_high: float = np.nan
    p: float = np.nan


@dataclass(frozen=True, slots=True)
class Loss:
    """The partition of a topic that loses records to retention first."""

    seconds: float  # inf: does not drain at the current rate, NaN: not known
    partition: int = -1
    jumps: int = 0  # of the log start, by which its speed is known
    start_rate: float = np.nan  # records/s by which the log start rose over all recorded windows


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSignals:
    """Signals of a topic at the end of the evaluated window; arrays are [partitions]."""

    frame: TopicFrame
    is_ok: Flags  # status ok
    lag: Floats  # NaN if not ok
    envelope: Floats  # newest lag at a commit, else lag
    arrival: Floats  # mean over `rate_windows`, records/s
    arriving: Floats  # records/s since arrivals changed level, else the mean
    positions: Positions  # by which rates of consumption are known
    consume: Floats  # records/s between commits, over `rate_windows` at least
    interval: Floats  # commit interval in seconds, NaN below 3 gaps
    floor: Floats  # records below which lag is the commit interval
    # [partitions, windows] smallest lag of each window, at the newest commit if that is fresh
    least: Floats
    # [partitions, windows] records that it has to be above to be more than commits hide
    least_floor: Floats
    is_material: Flags
    is_stalled: Flags
    # "", silent, repeating, unknown which, unowned, or held by a transaction
    stall_kind: tuple[str, ...]
    shape: Shape
    arrival_shape: Shape
    growth_shape: Shape
    trend: Trend
    trends: Sequence[Trend]  # of each partition
    in_step: bool | None  # slopes over arrival rates alike, None unknown
    slope_iqr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSignals:
    """Signals of a member by its slot, over all topics."""

    slot: str
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]
    arrival: float  # load: sum of the arrival rates of its partitions
    consume: float
    capacity: float  # c_m: p75 of what it did in its newest busy windows, NaN unknown
    seen: float  # most it has shown in 5 windows: a lower bound of its capacity
    least_arrival: float = np.inf  # records/s, in a window of those that `consume` is from
    is_busy: bool
    waits: bool = False  # all its partitions stood lately: what it does is not what it can do
    material: int  # of its partitions
    lag: float  # sum over its partitions


@dataclass(frozen=True, slots=True)
class Fit:
    """Share of the lag of a topic that a set of partitions accounts for, and how purely."""

    places: tuple[int, ...]  # rows of the topic's arrays
    explained: float  # share of the lag
    purity: float  # share of its partitions with significant lag
    contrast: float  # median lag / floor of all others
    p: float = nan  # of the rank test
    is_small: bool = False  # no data could have reached attr_p


@dataclass(frozen=True, slots=True)
class Slowness:
    """Pace of slow members, in records/s."""

    slots: tuple[str, ...]
    pace: float  # what each of them does while busy
    shown: float  # what the others have shown, or they themselves
    load: float  # what arrives for each of them
    median_load: float
    is_by_itself: bool = False  # True: shown by themselves, as they have more to do than the others

    @property
    def ratio(self) -> float:
        return self.pace / self.shown


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause of the lag of a topic."""

    label: str
    topic: str
    partitions: tuple[int, ...]
    subject: str  # broker, host or slot; "" for partitions
    fit: Fit
    slowness: Slowness | None = None  # of member and host
    # what the same partitions would also fit
    alternatives: Mapping[str, str] = field(default_factory=dict)
    is_proven: bool = True  # False: the label is one of two that nothing seen so far tells apart


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Signals:
    """All data for a group's rules.

    `conditions` names the codes whose rules have held so far in this window.
    """

    frame: GroupFrame
    membership: Membership
    parameters: Parameters
    topics: Sequence[TopicSignals]
    members: Mapping[str, MemberSignals]
    state: str  # Kafka's spelling
    member_count: int | None  # None: no membership is known
    ceiling: int  # P_eff: members that could get a partition
    capacity: float  # c: median of the members' capacities, NaN unknown
    best_capacity: float  # c_max: the best that a single owner has shown
    is_material: bool
    lag: float  # sum over ok partitions
    material_lag: float
    time_in_rebalance: float  # share of the last 10 minutes, NaN unknown
    sub_cause: str  # steady, capacity_down, arrival_up, both, "" unknown
    flags: frozenset[str] = frozenset()  # of the gates
    memory: Memory = field(default_factory=Memory)  # of the windows before
    losses: Mapping[str, Loss] = field(default_factory=dict)  # by topic
    # by topic, until its time lag passes the SLO
    breach_seconds: Mapping[str, float] = field(default_factory=dict)
    lag_causes: Sequence[Cause] = ()  # of uneven lag, in each topic in the order they were found
    scaled: Scaled | None = None  # what the newest scale-out brought
    # with offsets, and no member subscribes to them: nobody is to blame
    left_topics: Sequence[TopicSignals] = ()

    @property
    def deploy(self) -> Deploy | None:
        """The rolling deploy that explains rebalances now; None if there is none."""
        return self.membership.deploy

    @property
    def policy(self) -> Policy:
        return self.frame.policy

    @property
    def worst(self) -> TopicSignals | None:
        """The topic with most significant lag, else with most lag; None without topics."""
        if len(self.topics) == 1:
            return self.topics[0]
        return max(
            self.topics,
            key=lambda each: (known_sum(each.lag[each.is_material]), known_sum(each.lag)),
            default=None,
        )
