"""The scenarios of the demo: five healthy or slow groups, and drills with one group in trouble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAVE, JOIN = "leave", "join"  # the oldest member; a new one
REPLACE = "replace"  # the oldest gives way to one with another name
RESTART = "restart"  # the oldest restarts under its name: each in turn
CRASH = "crash"  # the newest restarts under its name: the same one each time
HANG = "hang"  # the oldest does nothing any more, and its heartbeats go on
SLOW_DOWN = "slow down"  # all members, to the slow rate


@dataclass(frozen=True)
class Part:
    """One group; without a rate a member keeps up with whatever comes."""

    group: str
    topic: str
    members: int = 1
    # records per second that a member handles, on all its partitions together
    rate: float | None = None
    slow_rate: float | None = None
    script: tuple[tuple[float, str], ...] = ()  # seconds to wait, then what happens
    repeats: bool = False  # the script


@dataclass(frozen=True)
class Scenario:
    """Topics with the records per second of each partition by its number, and who reads them.

    Of a drill `group` is the one in trouble, which begins when the cue is given: then the scripts
    start, and the partitions of `hot` get those rates instead. It is over when the diagnosis has
    said all of `codes`.
    """

    help: str
    topics: Mapping[str, tuple[int, ...]]
    parts: tuple[Part, ...]
    group: str = ""
    codes: tuple[str, ...] = ()
    hot: Mapping[tuple[str, int], int] | None = None
    scales_to_zero: bool = False  # declared of the group


EVERYDAY = Scenario(
    "five groups, each with another way to lag",
    {"orders": (8, 8, 8, 8, 8, 8), "payments": (4, 4, 60, 4), "emails": (4, 4, 4)},
    (
        Part("checkout", "orders", members=2),
        Part("reporting", "orders", rate=18),
        Part("fraud", "payments", rate=37),
        Part("archive", "orders", script=((8, LEAVE),)),
        Part("mailer", "emails", members=2, script=((20, REPLACE),), repeats=True),
    ),
)
HOT_PARTITION = "payments-2"  # of everyday life

_ORDERS = {"orders": (10,) * 6}
_CHECKOUT = Part("checkout", "orders", members=2)  # the healthy group of every drill

DRILLS: Mapping[str, Scenario] = {
    "slow-group": Scenario(
        "all members of billing are too slow for what arrives",
        _ORDERS,
        (
            _CHECKOUT,
            Part("billing", "orders", members=2, rate=60, slow_rate=20, script=((0, SLOW_DOWN),)),
        ),
        group="billing",
        codes=("CAPACITY_SHORTAGE",),
    ),
    "hot-key": Scenario(
        "one partition gets more than its owner in billing can do",
        _ORDERS,
        (_CHECKOUT, Part("billing", "orders", members=3, rate=36)),
        group="billing",
        codes=("HOT_PARTITION_ARRIVAL",),
        hot={("orders", 4): 60},
    ),
    "rolling-deploy": Scenario(
        "the members of billing are restarted one by one",
        _ORDERS,
        (
            _CHECKOUT,
            Part(
                "billing",
                "orders",
                members=3,
                rate=22,
                script=((0, RESTART), (12, RESTART), (12, RESTART)),
            ),
        ),
        group="billing",
        codes=("DEPLOY_LAG_SPIKE",),
    ),
    "stuck-member": Scenario(
        "one member of billing hangs, and its heartbeats go on",
        _ORDERS,
        (_CHECKOUT, Part("billing", "orders", members=3, script=((0, HANG),))),
        group="billing",
        codes=("PARTITION_STALLED",),
    ),
    "storm": Scenario(
        "one member of billing crashes again and again",
        _ORDERS,
        (
            _CHECKOUT,
            Part("billing", "orders", members=3, rate=22, script=((8, CRASH),), repeats=True),
        ),
        group="billing",
        codes=("CRASH_LOOP",),
    ),
    "scale-to-zero": Scenario(
        "billing has no member for a while, and then drains what came meanwhile",
        _ORDERS,
        (_CHECKOUT, Part("billing", "orders", rate=150, script=((0, LEAVE), (90, JOIN)))),
        group="billing",
        codes=("EMPTY_WITH_LAG", "SCALE_ZERO_COLD_START"),
        scales_to_zero=True,
    ),
}


def scenario_of(name: str) -> Scenario:
    """Return the drill of this name, or the everyday scenario for ""."""
    if not name:
        return EVERYDAY
    return DRILLS[name]


def partition_rates(
    scenario: Scenario = EVERYDAY, *, is_on: bool = False
) -> dict[tuple[str, int], int]:
    """Return the records per second of each topic and partition.

    `is_on` means that the cue was given.
    """
    rates: dict[tuple[str, int], int] = {}
    for topic, of_topic in scenario.topics.items():
        for number, rate in enumerate(of_topic):
            rates[topic, number] = rate
    if is_on:
        rates |= scenario.hot or {}
    return rates
