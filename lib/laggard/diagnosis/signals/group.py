"""Signals of a group at the end of a window: its history, and everything that several rules ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, Policy, TopicFrame
from laggard.diagnosis.memory import Memory, Scaled
from laggard.diagnosis.order import known_sum
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.deploys import Deploy
from laggard.diagnosis.signals.membership import Membership
from laggard.diagnosis.signals.rates import Positions

Flags = npt.NDArray[np.bool_]
UNKNOWN_KIND = "unknown"  # of a stall: silent or repeating, where commits are not counted


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of the lag over the partitions of a topic; the numbers are NaN if there is nothing to measure."""

    raw: str  # none, single, spread, mixed or concentrated, by this window alone
    name: str  # the same after persistence
    gini: float = np.nan
    n_eff: float = np.nan
    rho: float = np.nan
    top1_share: float = np.nan
    top_decile_share: float = np.nan
    entropy: float = np.nan
    top: tuple[int, ...] = ()  # smallest set of partitions that holds 70 % of the lag, largest first


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of the lower envelope of a lag; everything but `name` and `points` is NaN on abstain."""

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
    positions: Positions  # by which rates of consumption are known
    consume: Floats  # records/s between commits, over `rate_windows` at least
    interval: Floats  # commit interval in seconds, NaN below 3 gaps
    floor: Floats  # records below which lag is the commit interval
    least: Floats  # [partitions, windows] smallest lag of each window, at the newest commit if that is fresh
    least_floor: Floats  # [partitions, windows] records that it has to be above to be more than commits hide
    is_material: Flags
    is_stalled: Flags
    stall_kind: tuple[str, ...]  # "", silent, repeating, unknown which, unowned, or held by a transaction
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
    is_busy: bool
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
    others: float  # what the others have shown
    load: float  # what arrives for each of them
    median_load: float

    @property
    def ratio(self) -> float:
        return self.pace / self.others


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause of the lag of a topic."""

    label: str
    topic: str
    partitions: tuple[int, ...]
    subject: str  # broker, host or slot; "" for partitions
    fit: Fit
    slowness: Slowness | None = None  # of member and host
    alternatives: Mapping[str, str] = field(default_factory=dict)  # what the same partitions would also fit
    is_proven: bool = True  # False: the label is one of two that nothing seen so far tells apart


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Signals:
    """All a group's rules look at. `conditions` names the codes whose rules have held so far in this window."""

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
    partition_capacity: Mapping[tuple[str, int], float]  # of partitions that are busy by themselves
    is_material: bool
    lag: float  # sum over ok partitions
    material_lag: float
    time_in_rebalance: float  # share of the last 10 minutes, NaN unknown
    sub_cause: str  # steady, capacity_down, arrival_up, both, "" unknown
    flags: frozenset[str] = frozenset()  # of the gates
    memory: Memory = field(default_factory=Memory)  # of the windows before
    losses: Mapping[str, Loss] = field(default_factory=dict)  # by topic
    breach_seconds: Mapping[str, float] = field(default_factory=dict)  # by topic, until its time lag passes the SLO
    lag_causes: Sequence[Cause] = ()  # of uneven lag, in each topic in the order they were found
    scaled: Scaled | None = None  # what the newest scale-out brought
    left_topics: Sequence[TopicSignals] = ()  # with offsets, and no member subscribes to them: nobody is to blame

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
