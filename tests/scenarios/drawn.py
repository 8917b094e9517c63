"""Draw a cluster at random from a seed: sizes, rates, commits, protocols, and faults or look-alikes
at known times.

A cluster is no case that somebody wrote down: nothing here names a threshold of the diagnosis. What
is drawn is the truth that `drawn_truth` and `drawn_score` use, and the simulator runs it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from simulator.cluster import MINUTE
from simulator.producer import Rate

GROUPS = 3  # of a cluster at most; each has topics of its own
WARM_MINUTES = 14.0
LONGEST_MINUTES = 80.0
CRASHES = 0.3  # strength of a fault below which its members crash; above they close

# faults: something is wrong until they end; look-alikes: nothing is
FAULTS = (
    "overload",
    "hot",
    "slow",
    "hang",
    "pause",
    "stop",
    "crash_loop",
    "poison",
    "commits_refused",
    "wander",
)
# drawn in place of some, from numbers of their own: all other draws stay what they were
VARIED = ("crash_loop_all",)
LOOK_ALIKES = ("deploy", "restart", "burst", "batches", "rewind", "left_topic", "skew", "scale_out")
PAIRS = (
    ("overload", "pause"), ("overload", "hang"), ("overload", "slow"), ("overload", "crash_loop"),
    ("hot", "pause"),
    ("hot", "slow"), ("hot", "hang"), ("slow", "pause"), ("slow", "hang"), ("pause", "hang"),
    ("pause", "deploy"),
    ("overload", "deploy"), ("hot", "restart"), ("slow", "restart"), ("pause", "rewind"),
    ("crash_loop", "pause"),
)  # fmt: skip
CHURN = frozenset(
    {"stop", "crash_loop", "crash_loop_all", "poison", "deploy", "restart", "rewind", "scale_out"}
)  # members come and go
PROTOCOLS = ("range", "range", "roundrobin", "sticky", "cooperative-sticky", "static", "kip-848")


@dataclass(frozen=True)
class Fault:
    """A fault or a look-alike, in minutes of the run; `strength` means something else for each
    kind.
    """

    kind: str
    begin: float
    end: float
    strength: float
    member: int  # in order of hosts
    partitions: tuple[int, ...]  # those it is about, if it is about some; else empty

    @property
    def is_wrong(self) -> bool:
        """True if something needs to be done."""
        return self.kind in FAULTS + VARIED

    def holds(self, minute: float) -> bool:
        """True between its two moments."""
        return self.begin <= minute < self.end


@dataclass(frozen=True)
class Plan:
    """One group: how it is set up, and what happens to it."""

    number: int
    protocol: str
    members: int
    partitions: int
    capacity: float  # records/s of one member
    commit_seconds: float
    jitter: float  # of the commit interval, from member to member
    batch_ms: tuple[int, int]
    rates: tuple[float, ...]  # records/s by partition, when nothing happens
    swing: float  # of the rates, over an hour
    retention_records: int | None  # by size, per partition
    faults: tuple[Fault, ...]
    # partitions of a fault, known when it begins
    scopes: dict[int, frozenset[int]] = field(default_factory=dict)
    names: dict[int, frozenset[str]] = field(default_factory=dict)  # that its member goes by

    def rate(self, partition: int) -> Rate:
        """Records/s that arrive on a partition at a time in milliseconds of the run."""
        base, changes = (
            self.rates[partition],
            [self._change(fault, partition) for fault in self.faults],
        )

        def rate(at_ms: int) -> float:
            minute = at_ms / MINUTE
            now = base * (1 + self.swing * math.sin(2 * math.pi * minute / 60))
            for fault, change in zip(self.faults, changes, strict=True):
                if fault.holds(minute):
                    now = change(now, minute)
            return now

        return rate

    def _change(self, fault: Fault, partition: int) -> Callable[[float, float], float]:
        """The arrival rate of a partition during a fault, from that without it."""
        total, kind = sum(self.rates), fault.kind
        if kind in ("overload", "burst"):
            factor = fault.strength * self.members * self.capacity / total
            return lambda _, __: self.rates[partition] * factor
        if kind in ("hot", "skew") and partition in fault.partitions:
            return lambda _, __: fault.strength * self.capacity
        if kind == "wander":
            return lambda now, minute: (
                fault.strength * self.capacity
                if fault.partitions[int((minute - fault.begin) / 4) % len(fault.partitions)]
                == partition
                else now
            )
        if kind == "batches":
            return lambda now, minute: 8 * now if (minute - fault.begin) % 10 < 1 else now / 5
        return lambda now, _: now


@dataclass(frozen=True)
class DrawnCluster:
    """All groups of one seed."""

    seed: int
    minutes: float
    plans: tuple[Plan, ...]


def draw_cluster(seed: int) -> DrawnCluster:
    """Draw the cluster of a seed; the same seed gives the same cluster."""
    chance = random.Random(f"cluster {seed}")
    drawn = tuple(_plan(chance, number) for number in range(chance.randint(1, GROUPS)))
    plans = tuple(_varied(random.Random(f"variation {seed} {plan.number}"), plan) for plan in drawn)
    ends = [fault.end for plan in plans for fault in plan.faults]
    minutes = min(LONGEST_MINUTES, max([40.0, *ends]) + chance.uniform(6, 14))
    return DrawnCluster(seed, minutes, plans)


def _plan(chance: random.Random, number: int) -> Plan:
    kinds = _kinds(chance)
    protocol = chance.choice(
        PROTOCOLS if not {"poison", "crash_loop"} & set(kinds) else PROTOCOLS[:5]
    )
    members = chance.choice((1, 2, 3, 3, 4, 4, 5, 6, 8))
    if set(kinds) & {"slow", "crash_loop", "poison", "deploy"}:
        members = max(3, members)
    partitions = members * chance.choice((1, 2, 2, 3, 4))
    if chance.random() < 0.25:
        partitions += chance.randrange(members)
    if set(kinds) & {"hot", "wander", "pause", "skew"}:
        partitions = max(3, partitions)
    capacity = math.exp(chance.uniform(math.log(150), math.log(900)))
    largest = math.ceil(partitions / members)
    base, uneven = chance.uniform(0.15, 0.6) * capacity / largest, chance.choice((0.0, 0.1, 0.3))
    if set(kinds) & {"hot", "wander", "skew"}:
        base = min(base, chance.uniform(0.04, 0.25) * capacity / largest)
    rates = tuple(base * (1 + chance.uniform(-uneven, uneven)) for _ in range(partitions))
    faults = _faults(chance, kinds, members, partitions)
    keeps = chance.random() < 0.3
    lasting = chance.uniform(8, 25) * MINUTE / 1000  # seconds that retention by size covers at rest
    return Plan(
        number,
        protocol,
        members,
        partitions,
        capacity,
        chance.choice((1, 5, 5, 5, 10, 20, 30, 60, 60, 90, 120, 180)),
        chance.choice((0.0, 0.05, 0.2)),
        chance.choice(((1000, 1000), (500, 2500))),
        rates,
        chance.choice((0.0, 0.0, 0.15)),
        max(4000, round(lasting * max(rates))) if keeps else None,
        faults,
    )


def _varied(chance: random.Random, plan: Plan) -> Plan:
    """Let all members of some crash-looping groups crash, and make half of these groups small."""
    if [fault.kind for fault in plan.faults] != ["crash_loop"] or chance.random() < 0.5:
        return plan
    members = chance.choice((1, 1, 2, plan.members, plan.members, plan.members))
    rates = tuple(rate * members / plan.members for rate in plan.rates)
    return replace(
        plan, members=members, rates=rates, faults=(replace(plan.faults[0], kind="crash_loop_all"),)
    )


def _kinds(chance: random.Random) -> tuple[str, ...]:
    """What happens to a group: nothing, a look-alike, a fault, or two at once."""
    drawn = chance.random()
    if drawn < 0.2:
        return ()
    if drawn < 0.4:
        return (chance.choice(LOOK_ALIKES),)
    return (chance.choice(FAULTS),) if drawn < 0.78 else chance.choice(PAIRS)


def _faults(
    chance: random.Random, kinds: tuple[str, ...], members: int, partitions: int
) -> tuple[Fault, ...]:
    places = chance.sample(range(partitions), min(partitions, 3))
    who = chance.sample(range(members), min(members, 2))
    found, begin = [], WARM_MINUTES + chance.uniform(1, 10)
    for number, kind in enumerate(kinds):
        lasts = {
            "burst": chance.uniform(2, 6),
            "restart": 1.0,
            "rewind": 2.0,
            "deploy": members * 1.0,
        }.get(kind, chance.uniform(16, 32))
        if kind == "left_topic":
            begin = 8.0
        end = (
            min(begin + lasts, LONGEST_MINUTES - 6)
            if kind not in ("left_topic", "batches")
            else LONGEST_MINUTES
        )
        strength = {
            "overload": chance.uniform(1.08, 1.6),
            "burst": chance.uniform(1.3, 2.5),
            "hot": chance.uniform(1.15, 1.8),
            "wander": chance.uniform(1.2, 2.0),
            "skew": chance.uniform(0.4, 0.6),
            "slow": chance.uniform(0.4, 0.85),
            "rewind": chance.uniform(4, 10),
        }.get(kind, chance.random())
        # both of a pair need partitions and members of their own
        chosen = {
            "wander": tuple(places),
            "poison": places[:1],
            "hot": places[:1],
            "skew": places[:1],
        }
        chosen["pause"] = places[1:2] if partitions < 6 else places[1:]
        found.append(
            Fault(kind, begin, end, strength, who[number % len(who)], tuple(chosen.get(kind, ())))
        )
        begin += chance.uniform(0, max(1.0, lasts - 6))
    return tuple(found)
