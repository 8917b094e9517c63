from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from math import nan
from typing import Any

import numpy as np
import pytest

from diagnosis.groups import END_MS, GENERATION, signals_of, spread_over, topic_signals
from diagnosis.rebalance_rows import rolled
from laggard.diagnosis.history.frames import Memory, Row, Track
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.rules import assignment, capacity, skew
from laggard.diagnosis.rules.registry import rules_of
from laggard.diagnosis.rules.rule import ABSTAINS, FAILS, HOLDS, INFO, WARN, Observation
from laggard.diagnosis.signals.attribution import attribute
from laggard.diagnosis.signals.group import Signals

RULES = (*rules_of(capacity), *rules_of(skew), *rules_of(assignment))
END = datetime.fromtimestamp(END_MS / 1000, timezone.utc)
LAG = 50_000.0


def found(code: str, signals: Signals) -> list[Observation]:
    (rule,) = [rule for rule in RULES if rule.code == code]
    return rule.check(signals)


def states(code: str, signals: Signals) -> list[str]:
    return [each.state for each in found(code, signals)]


def holding(signals: Signals) -> set[str]:
    return {each.code for rule in RULES for each in rule.check(signals) if each.state == HOLDS}


def short_group(
    members: int = 4, partitions: int = 12, topic: dict[str, Any] | None = None, **fields: Any
) -> Signals:
    slots = spread_over(partitions, members)
    shown = {"arrival": 220.0, "consume": 200.0, "slots": slots, "trend": "growing"} | (topic or {})
    lag = fields.pop("lag", [LAG] * partitions)
    return signals_of(
        topic_signals(lag, **shown), **({"capacity": 600.0, "sub_cause": "arrival_up"} | fields)
    )


def starving(
    busy: int = 4,
    lags: tuple[float, ...] = (LAG,) * 4,
    best: float = 700.0,
    capacity: float = 600.0,
    **topic: Any,
) -> Signals:
    """Of the three partitions of each member the first is read at once, and the others wait; 2640/s
    arrive.
    """
    lag = [0.0 if place % 3 == 0 else lags[place // 3] for place in range(12)]
    return short_group(
        topic={"shape": "mixed", "consume": [220.0, 190.0, 190.0] * 4} | topic,
        lag=lag,
        busy=[f"m{number}" for number in range(busy)],
        best_capacity=best,
        capacity=capacity,
    )


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (starving(), {"CAPACITY_SHORTAGE"}),
        (starving(busy=3), set()),  # one has room for more partitions
        (starving(busy=3, best=659.0), {"CAPACITY_SHORTAGE"}),  # but not for enough of them
        (starving(busy=3, best=660.0), set()),
        (starving(busy=3, best=nan), set()),
        (starving(busy=3, best=300.0, capacity=nan), set()),  # what all can do is not known
        # nor where only a slow one has shown what it can
        (starving(busy=3, best=300.0, capacity=200.0), set()),
        # one has most of it, none has room
        (starving(lags=(LAG, LAG, 8 * LAG, LAG)), {"CAPACITY_SHORTAGE"}),
        (starving(shape="concentrated"), {"CAPACITY_SHORTAGE"}),
        (starving(trend="flat"), set()),
        (starving(trend="draining"), set()),
    ],
)
def test_members_are_short_if_none_has_room_or_more_arrives_than_all_can_read(
    signals: Signals, expected: set[str]
) -> None:
    assert holding(signals) == expected


@pytest.mark.parametrize(
    ("hot", "expected"), [(False, {"CAPACITY_SHORTAGE"}), (True, {"HOT_PARTITION_ARRIVAL"})]
)
def test_an_only_member_that_reads_partitions_in_turn_is_short_if_none_is_hot(
    *, hot: bool, expected: set[str]
) -> None:
    """Three of its partitions lag, and one does not; or only one does, of which more arrives than
    it can do.
    """
    arrival = [20.0, 20.0, 20.0, 700.0] if hot else [200.0] * 4
    lag = [0.0, 0.0, 0.0, LAG] if hot else [0.0, LAG, 2 * LAG, 3 * LAG]
    topic = {"shape": "concentrated", "arrival": arrival, "consume": [150.0] * 4}
    signals = short_group(
        members=1, partitions=4, topic=topic, lag=lag, busy=["m0"], best_capacity=600.0
    )
    codes = holding(replace(signals, lag_causes=attribute(signals)))

    assert codes & {"CAPACITY_SHORTAGE", "HOT_PARTITION_ARRIVAL"} == expected


def event(kind: str, minutes: float) -> Row:
    return {"kind": kind, "event_at": END - timedelta(minutes=minutes)}


def began(minutes: float) -> Row:
    return {**GENERATION, "record_timestamp": END - timedelta(minutes=minutes)}


OPEN = Memory(tracks=(Track("CAPACITY_SHORTAGE", "", (), "", since_ms=1, opened_ms=2),))


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (short_group(generations=[began(1)]), [HOLDS]),
        (short_group(deploy=rolled().membership().deploy), [HOLDS]),
        (short_group(topic={"trend": "flat"}), [HOLDS]),
        (short_group(topic={"trend": "abstain"}), [HOLDS]),
        (short_group(topic={"consume": 220.0}), []),  # its falsifier
        (short_group(topic={"consume": nan}), [ABSTAINS]),
        (short_group(is_material=False), []),
    ],
)
def test_an_open_shortage_lasts_through_rebalances_until_no_less_is_consumed_than_arrives(
    signals: Signals, expected: list[str]
) -> None:
    assert states("CAPACITY_SHORTAGE", replace(signals, memory=OPEN)) == expected


def test_a_shortage_comes_with_the_rates_and_its_sub_cause() -> None:
    (shortage,) = found("CAPACITY_SHORTAGE", short_group())

    assert (shortage.state, shortage.severity, shortage.topic, shortage.partitions) == (
        HOLDS,
        WARN,
        "",
        (),
    )
    assert {
        name: shortage.evidence[name]
        for name in ("arrival_rate", "consume_rate", "capacity_rate", "members")
    } == {
        "arrival_rate": 2640,
        "consume_rate": 2400,
        "capacity_rate": 600,
        "members": 4,
    }
    assert shortage.evidence_text == {
        "topic": "orders",
        "sub_cause": "arrival_up",
        "in_step": "yes",
    }
    assert (shortage.confidence, shortage.explained) == (0.9, 1.0)


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        # who did what its rates tell is not who is there now
        (short_group(generations=[began(4)]), [FAILS]),
        (short_group(generations=[began(5)]), [HOLDS]),
        (short_group(time_in_rebalance=0.5), [HOLDS]),  # long ago by now
        (short_group(topic={"consume": 220.0}), []),
        (short_group(topic={"shape": "concentrated"}, best_capacity=660.0), []),
        (short_group(topic={"trend": "flat"}), []),
        (short_group(topic={"trend": "sawtooth"}), []),
        (short_group(topic={"trend": "abstain"}), [ABSTAINS]),
        (short_group(topic={"consume": nan}), [ABSTAINS]),
        (short_group(is_material=False), []),
        # half of it does not drain at all
        (short_group(topic={"stalled": dict.fromkeys(range(6), "silent")}), []),
        (short_group(topic={"stalled": dict.fromkeys(range(5), "silent")}), [HOLDS]),
        (short_group(members=0, state="Empty"), []),
        (short_group(deploy=rolled().membership().deploy), [FAILS]),
        (short_group(deploy=None), [HOLDS]),
        (short_group(events=[event("members_returned", 9)]), [FAILS]),
        (short_group(events=[event("members_returned", 11)]), [HOLDS]),
        (short_group(events=[event("partitions_added", 1)]), [HOLDS]),
    ],
)
def test_a_shortage_is_growth_on_all_partitions_of_a_group_at_rest(
    signals: Signals, expected: list[str]
) -> None:
    assert states("CAPACITY_SHORTAGE", signals) == expected


def test_what_is_not_known_makes_a_shortage_less_certain() -> None:
    (shortage,) = found(
        "CAPACITY_SHORTAGE", short_group(capacity=nan, sub_cause="", time_in_rebalance=nan)
    )

    assert shortage.confidence == pytest.approx(0.9 * 0.8**3)
    assert not {"capacity_rate", "time_in_rebalance_ratio"} & shortage.evidence.keys()
    assert shortage.guards["group_at_rest"] == "unknown"


@pytest.mark.parametrize(("members", "expected"), [(5, []), (6, [HOLDS]), (8, [HOLDS])])
def test_a_group_is_at_its_ceiling_with_a_member_for_each_partition(
    members: int, expected: list[str]
) -> None:
    signals = short_group(members, 6, {"arrival": 700.0, "consume": 600.0})

    assert states("AT_PARTITION_CEILING", signals) == expected


def test_the_ceiling_of_range_over_several_topics_is_the_largest_of_them() -> None:
    shown: dict[str, Any] = {
        "arrival": 700.0,
        "consume": 600.0,
        "trend": "growing",
        "slots": spread_over(6, 6),
    }
    topics = [topic_signals([LAG] * 6, topic=name, **shown) for name in ("a", "b")]
    (ceiling,) = found("AT_PARTITION_CEILING", signals_of(*topics, capacity=600.0))

    assert (ceiling.evidence["partitions"], ceiling.evidence["members_ceiling"]) == (12, 6)
    assert ceiling.evidence_text["ceiling"] == "largest topic, by range"
    assert (
        found("AT_PARTITION_CEILING", signals_of(*topics, capacity=600.0, assignor="sticky")) == []
    )


def days_rows(rate: float, count: int = 1440) -> dict[str, list[Row]]:
    return {
        "orders": [
            {"window_start": END - timedelta(minutes=n + 1), "arrival_rate": rate}
            for n in range(count)
        ]
    }


def burst(windows: int, **fields: Any) -> Signals:
    arrivals = np.full((12, 60), 100.0)
    arrivals[:, 50 - windows : 50] = 400.0
    topic = {
        "arrival": 100.0,
        "consume": 200.0,
        "trend": "draining",
        "history": {"arrival": arrivals},
    }
    return short_group(topic=topic, **({"baseline": days_rows(1200.0)} | fields))


@pytest.mark.parametrize(
    ("lag", "expected"),
    [
        ([9000.0, 8000.0, 7000.0, 6000.0], [HOLDS]),
        ([8000.0, 7000.0, 6000.0], []),  # too short
        ([9000.0, 8000.0, 8000.0, 6000.0], []),  # it did not always fall
        ([9000.0, 8999.0, 8998.0, 8997.0], []),  # by less than the commit interval can hide
    ],
)
def test_after_a_burst_three_windows_of_falling_lag_tell_before_a_trend_can(
    lag: list[float], expected: list[str]
) -> None:
    arrivals, left = np.full((12, 60), 100.0), np.full((12, 60), 10_000.0)
    arrivals[:, 55 - len(lag) : 60 - len(lag)] = 400.0
    left[:, 60 - len(lag) :] = lag
    history = {"arrival": arrivals, "envelope": left}
    topic = {"arrival": 100.0, "consume": 200.0, "trend": "flat", "history": history}
    signals = short_group(topic=topic, baseline=days_rows(1200.0))
    assert [each.state for each in found("CAPACITY_BURST", signals)] == expected


def test_a_burst_is_reported_by_its_size_and_the_time_it_takes_to_drain() -> None:
    (one,) = found("CAPACITY_BURST", burst(5))

    assert (one.state, one.severity) == (HOLDS, INFO)
    assert one.evidence == {
        "baseline_rate": 1200,
        "peak_rate": 4800,
        "burst_seconds": 300,
        "burst_records": 3600 * 300,
        "drain_seconds": 12 * LAG / 1200,
    }


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (burst(30), [HOLDS]),
        (burst(31), []),
        (burst(0), []),
        (burst(5, baseline=days_rows(1601.0)), []),
        (burst(5, baseline=days_rows(1200.0, 74)), [ABSTAINS]),  # 59 rows are older than 15 minutes
        (burst(5, baseline=days_rows(1200.0, 75)), [HOLDS]),
        (burst(5, baseline={}), [ABSTAINS]),
    ],
)
def test_a_burst_is_three_times_the_baseline_for_half_an_hour_at_most(
    signals: Signals, expected: list[str]
) -> None:
    assert states("CAPACITY_BURST", signals) == expected


def uneven(arrival: Sequence[float], lag: Sequence[float], **fields: Any) -> Signals:
    topic = {"shape": "concentrated", "slots": spread_over(12, 4)}
    topic |= {
        name: fields.pop(name)
        for name in ("consume", "history", "facts", "brokers", "shape")
        if name in fields
    }
    return signals_of(topic_signals(lag, arrival=list(arrival), **topic), **fields)


HOT_RATES = [900.0 if place == 7 else 50.0 for place in range(12)]
ONE_LAGS = [LAG if place == 7 else 10.0 for place in range(12)]
HOT_CONSUME = [min(rate, 500.0) for rate in HOT_RATES]


def test_a_hot_partition_is_named_with_its_share_and_nobody_adds_consumers() -> None:
    (hot,) = found("HOT_PARTITION_ARRIVAL", uneven(HOT_RATES, ONE_LAGS, consume=HOT_CONSUME))

    assert (hot.topic, hot.partitions, hot.confidence, hot.explained) == ("orders", (7,), 0.9, 1.0)
    assert hot.evidence["arrival_share_ratio"] == pytest.approx(900 / 1450)
    assert hot.evidence_text["owners"] == "m2"
    assert not hot.is_falsified


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shape": "mixed"}, [HOLDS]),  # soon its owner gets behind with its others, too
        ({"shape": "spread"}, []),
        ({"best_capacity": nan}, [ABSTAINS]),
        ({"best_capacity": 900.0}, []),
    ],
)
def test_a_hot_partition_needs_uneven_lag_and_a_known_best(
    change: dict[str, Any], expected: list[str]
) -> None:
    signals = uneven(HOT_RATES, ONE_LAGS, **({"consume": HOT_CONSUME} | change))

    assert states("HOT_PARTITION_ARRIVAL", signals) == expected


def test_a_hot_partition_of_a_compacted_topic_is_less_certain() -> None:
    signals = uneven(
        HOT_RATES, ONE_LAGS, consume=HOT_CONSUME, facts={"cleanup_policy": "compact,delete"}
    )

    assert [each.confidence for each in found("HOT_PARTITION_ARRIVAL", signals)] == [
        pytest.approx(0.6)
    ]


def test_a_hot_partition_of_a_slow_owner_is_hot_no_less() -> None:
    """Its owner did 1.6 times as much before; more arrives than any member ever did."""
    slow: dict[str, Any] = {"consume": [rate * 0.5 for rate in HOT_CONSUME], "seen": {"m2": 850.0}}
    (hot,) = found(
        "HOT_PARTITION_ARRIVAL", uneven(HOT_RATES, ONE_LAGS, best_capacity=850.0, **slow)
    )

    assert (hot.state, hot.partitions) == (HOLDS, (7,))
    assert not found(
        "HOT_PARTITION_ARRIVAL", uneven(HOT_RATES, ONE_LAGS, best_capacity=900.0, **slow)
    )


def skewed(rates: Sequence[float], lag: float = 10.0, dip: int | None = None) -> Signals:
    arrivals = np.repeat(np.asarray(rates, float)[:, None], 60, axis=1)
    if dip is not None:
        arrivals[7, dip : dip + 5] = 50.0
    return uneven(
        rates, [lag] * 12, history={"arrival": arrivals}, shape="none", is_material=lag > 1000
    )


def test_arrivals_three_times_the_others_for_half_an_hour_are_an_early_warning() -> None:
    rates = [300.0 if place == 7 else 50.0 for place in range(12)]
    (skew,) = found("ARRIVAL_SKEW", skewed(rates))

    assert (skew.severity, skew.partitions) == (INFO, (7,))
    assert skew.evidence == {
        "arrival_share_ratio": pytest.approx(300 / 850),
        "largest_arrival_rate": 300,
        "median_other_rate": 50,
    }
    assert holding(skewed(rates)) == {"ARRIVAL_SKEW", "ASSIGNMENT_IMBALANCE"}


def hot(rate: float, others: float = 50.0) -> list[float]:
    return [rate if place == 7 else others for place in range(12)]


@pytest.mark.parametrize(
    ("signals", "count"),
    [
        (skewed(hot(300.0), lag=LAG), 0),
        (skewed(hot(300.0), dip=30), 0),
        (skewed(hot(300.0), dip=25), 1),
        (skewed(hot(149.0)), 0),
        (skewed(hot(0.9, others=0.1)), 0),
    ],
)
def test_arrivals_are_not_skewed_for_long_or_not_without_lag(signals: Signals, count: int) -> None:
    assert len(found("ARRIVAL_SKEW", signals)) == count


SLOW = {"consume": [60.0 if place in {6, 7, 8} else 100.0 for place in range(12)], "busy": ["m2"]}
THREE_LAGS = [LAG if place in {6, 7, 8} else 10.0 for place in range(12)]


def test_a_slow_member_is_the_scope_of_its_finding() -> None:
    (slow,) = found("SLOW_MEMBER", uneven([100.0] * 12, THREE_LAGS, **SLOW))

    assert (slow.subject, slow.topic, slow.partitions, slow.state) == ("m2", "", (), HOLDS)
    assert slow.evidence_text["partitions"] == "orders-6, orders-7, orders-8"
    assert (slow.evidence["pace_rate"], slow.evidence["others_seen_rate"]) == (180, 300)
    assert (slow.confidence, slow.explained) == (0.9, 1.0)
    assert holding(uneven([100.0] * 12, THREE_LAGS, **SLOW)) == {"SLOW_MEMBER"}


def test_a_member_that_is_slow_over_two_topics_is_one_finding() -> None:
    shown: dict[str, Any] = {
        "consume": SLOW["consume"],
        "slots": spread_over(12, 4),
        "shape": "concentrated",
    }
    signals = signals_of(
        *(topic_signals(THREE_LAGS, topic=name, **shown) for name in ("a", "b")), busy=["m2"]
    )
    (slow,) = found("SLOW_MEMBER", signals)

    assert (slow.explained, slow.evidence_text["partitions"]) == (
        1.0,
        "a-6, a-7, a-8; b-6, b-7, b-8",
    )


def test_a_deploy_vetoes_a_slow_member() -> None:
    topic = topic_signals(
        THREE_LAGS, consume=SLOW["consume"], slots=spread_over(12, 4), shape="concentrated"
    )

    assert states(
        "SLOW_MEMBER", signals_of(topic, busy=["m2"], deploy=rolled().membership().deploy)
    ) == [FAILS]


def test_one_group_is_at_most_half_sure_of_a_broker() -> None:
    brokers = [0.0 if place in {6, 7, 8, 9} else 1.0 for place in range(12)]
    lags = [LAG if broker == 0 else 10.0 for broker in brokers]
    (broker,) = found("BROKER_CORRELATED", uneven([100.0] * 12, lags, brokers=brokers))

    assert (broker.subject, broker.confidence, broker.evidence["groups"]) == ("0", 0.5, 1)


def test_a_costly_partition_of_an_owner_with_nothing_else_names_the_owner_too() -> None:
    consume = [60.0 if place == 7 else 100.0 for place in range(12)]
    topic = topic_signals(
        ONE_LAGS, consume=consume, slots=spread_over(12, 12), shape="concentrated"
    )
    (costly,) = found("COSTLY_PARTITION", signals_of(topic))

    assert (costly.partitions, costly.confidence, costly.evidence_text["alternative"]) == (
        (7,),
        0.5,
        "SLOW_MEMBER m7",
    )


@pytest.mark.parametrize(("back", "expected"), [(2, []), (30, [HOLDS])])
def test_a_partition_is_not_costly_whose_owner_read_others_meanwhile(
    back: int, expected: list[str]
) -> None:
    """As the neighbour of a member that crashes now and then has its partition for a while."""
    consume = [60.0 if place == 7 else 100.0 for place in range(12)]
    topic = topic_signals(
        ONE_LAGS, consume=consume, slots=spread_over(12, 12), shape="concentrated"
    )
    slots = topic.frame.named("slot").copy()
    slots[8, -1 - back] = "m7"
    signals = signals_of(
        replace(topic, frame=replace(topic.frame, names={**topic.frame.names, "slot": slots}))
    )

    assert states("COSTLY_PARTITION", signals) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(0.19, [HOLDS]), (0.2, [FAILS]), (nan, [HOLDS])])
def test_a_partition_that_members_hardly_come_to_between_rebalances_is_not_costly(
    ratio: float, expected: list[str]
) -> None:
    consume = [60.0 if place == 7 else 100.0 for place in range(12)]
    topic = topic_signals(
        ONE_LAGS, consume=consume, slots=spread_over(12, 12), shape="concentrated"
    )

    assert states("COSTLY_PARTITION", signals_of(topic, time_in_rebalance=ratio)) == expected


def test_a_deploy_vetoes_a_costly_partition() -> None:
    consume = [60.0 if place == 7 else 100.0 for place in range(12)]
    topic = topic_signals(
        ONE_LAGS, consume=consume, slots=spread_over(12, 12), shape="concentrated"
    )

    assert states("COSTLY_PARTITION", signals_of(topic, deploy=rolled().membership().deploy)) == [
        FAILS
    ]


def balanced(slots: Sequence[str], members: Sequence[str] = (), **fields: Any) -> Signals:
    return signals_of(
        topic_signals([0.0] * len(slots), slots=slots, shape="none"), members=members, **fields
    )


NAMES = [f"m{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("signals", "idle"),
    [
        (balanced(spread_over(6, 6), NAMES), 2),
        (balanced(spread_over(6, 6), NAMES, policy=Policy(hot_standby=True)), None),
        (
            balanced(
                spread_over(6, 6),
                NAMES,
                group_facts=[{"idle_members": 0}] * 51 + [{"idle_members": 2}] * 9,
            ),
            None,
        ),
        (
            balanced(
                spread_over(6, 6),
                NAMES,
                group_facts=[{"idle_members": 0}] * 50 + [{"idle_members": 2}] * 10,
            ),
            2,
        ),
        (balanced(spread_over(6, 3)), None),
        (balanced(spread_over(6, 6), NAMES, member_count=None), None),
        (balanced(spread_over(6, 6), NAMES, ceiling=0), None),  # no topic is known
        (balanced([*spread_over(6, 4)], NAMES[:6]), None),  # no more than partitions: not by number
    ],
)
def test_members_beyond_the_ceiling_without_partitions_for_ten_minutes_are_idle(
    signals: Signals, idle: int | None
) -> None:
    held = [
        each.evidence["idle_members"]
        for each in found("IDLE_MEMBERS", signals)
        if each.state == HOLDS
    ]

    assert held == ([] if idle is None else [idle])


def test_idle_members_are_not_evaluated_where_history_is_missing() -> None:
    rows = [{"idle_members": 2}] * 60
    signals = balanced(spread_over(6, 6), NAMES, group_facts=[*rows[:55], None, *rows[:4]])

    assert states("IDLE_MEMBERS", signals) == [ABSTAINS]


@pytest.mark.parametrize(("assignor", "idle"), [("range", [2]), ("roundrobin", [])])
def test_eight_members_on_two_topics_of_six_are_idle_under_range_only(
    assignor: str, idle: list[int]
) -> None:
    slots = spread_over(6, 6) if assignor == "range" else NAMES[:6]
    others = slots if assignor == "range" else [*NAMES[6:], *NAMES[:4]]
    held = {"a": slots, "b": others}
    topics = [topic_signals([0.0] * 6, topic=name, slots=held[name], shape="none") for name in held]
    signals = signals_of(*topics, members=NAMES, assignor=assignor)

    assert [each.evidence["idle_members"] for each in found("IDLE_MEMBERS", signals)] == idle
    assert found("ASSIGNMENT_IMBALANCE", signals) == []  # 2 each, or 2 and 1


def test_ranges_of_two_topics_of_seven_are_six_four_and_four_partitions() -> None:
    slots = spread_over(7, 3)
    signals = signals_of(
        *(topic_signals([0.0] * 7, topic=name, slots=slots, shape="none") for name in ("a", "b"))
    )
    (unlike,) = found("ASSIGNMENT_IMBALANCE", signals)

    assert (
        unlike.severity,
        unlike.evidence["most_partitions"],
        unlike.evidence["fewest_partitions"],
    ) == (INFO, 6, 4)
    assert unlike.evidence_text == {"fullest_member": "m0", "assignor": "range"}


@pytest.mark.parametrize(("rate", "expected"), [(190.0, []), (210.0, [HOLDS])])
def test_arrivals_of_half_as_much_again_as_the_mean_are_unlike(
    rate: float, expected: list[str]
) -> None:
    # three owners: rate / ((rate + 200) / 3) is 1.46 and 1.54
    topic = topic_signals(
        [0.0] * 3, arrival=[rate, 100.0, 100.0], slots=["a", "b", "c"], shape="none"
    )

    assert states("ASSIGNMENT_IMBALANCE", signals_of(topic)) == expected


@pytest.mark.parametrize(
    ("members", "hot", "expected"), [(9, 100, []), (9, 500, [HOLDS]), (8, 100, []), (7, 100, [])]
)
def test_partitions_that_no_assignor_could_give_more_evenly_are_no_imbalance(
    members: int, hot: float, expected: list[str]
) -> None:
    slots = [f"m{place % members}" for place in range(12)]
    topic = topic_signals([0.0] * 12, arrival=[hot, *[100.0] * 11], slots=slots, shape="none")

    assert states("ASSIGNMENT_IMBALANCE", signals_of(topic)) == expected


def test_a_healthy_group_gets_no_finding() -> None:
    assert [each for rule in RULES for each in rule.check(balanced(spread_over(12, 4)))] == []
    assert [each for rule in RULES for each in rule.check(signals_of())] == []


def test_rules_have_the_numbers_of_the_catalogue_and_name_parameters_that_exist() -> None:
    assert sorted(rule.number for rule in RULES) == [
        f"D{n}" for n in (*range(10, 19), 47, 48, 49, 51, 52)
    ]
    assert {name for rule in RULES for name in rule.thresholds} <= {
        *Parameters.__dataclass_fields__
    }
    at_once = [rule.code for rule in RULES if rule.open_after == 1]
    assert at_once == ["ARRIVAL_SKEW", "IDLE_MEMBERS", "EAGER_LARGE_GROUP"]


def text(code: str) -> str:
    (rule,) = [rule for rule in RULES if rule.code == code]
    return " ".join(rule.advice).lower()


def avoided(code: str) -> str:
    (rule,) = [rule for rule in RULES if rule.code == code]
    return " ".join(rule.mistakes).lower()


def test_advice_to_add_partitions_says_that_there_is_no_way_back_and_that_keys_move() -> None:
    for word in (
        "never goes down",
        "keys move",
        "metadata",
        "rebalances",
        "once",
        "peak",
        "margin",
    ):
        assert word in text("AT_PARTITION_CEILING")
    assert text("AT_PARTITION_CEILING").index("cheaper") < text("AT_PARTITION_CEILING").index(
        "add partitions"
    )


def test_advice_to_change_keys_says_what_breaks() -> None:
    for word in (
        "breaks",
        "old records stay",
        "order per key",
        "new topic",
        "sample keys",
        "tenant",
        "constant",
    ):
        assert word in text("HOT_PARTITION_ARRIVAL")


@pytest.mark.parametrize(
    "code", ["HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION", "AT_PARTITION_CEILING", "SLOW_MEMBER"]
)
def test_where_members_do_not_help_they_are_advised_against(code: str) -> None:
    assert "do not add" in avoided(code)
    assert "add members" not in text(code)
    assert "add consumers" not in text(code)


OVERTAKEN: dict[str, Any] = {
    "arrival": [50.0] * 11 + [900.0],
    "consume": [50.0] * 11 + [0.0],
    "status": ["ok"] * 11 + ["below_log_start"],
    "shape": "none",
    "trend": "flat",
}


@pytest.mark.parametrize(
    ("topic", "best", "expected"),
    [
        ({}, 600.0, [(11,)]),
        ({}, 950.0, []),  # an owner has shown that it can do as much: it may be slow
        # hardly more than the others
        ({"arrival": [400.0] * 11 + [900.0], "consume": 400.0}, 600.0, []),
        ({"stalled": {11: "silent"}}, 600.0, []),  # nobody reads it
        ({"status": ["ok"] * 12, "lag": [0.0] * 12}, 600.0, []),
    ],
)
def test_a_hot_partition_is_found_though_retention_overtakes_its_reader(
    topic: dict[str, Any], best: float, expected: list[tuple[int, ...]]
) -> None:
    """Its lag is not known, nor what is read of it: each commit is a jump over deleted records."""
    given = OVERTAKEN | topic
    signals = short_group(lag=given.pop("lag", [10.0] * 12), topic=given, best_capacity=best)

    assert [each.partitions for each in found("HOT_PARTITION_ARRIVAL", signals)] == expected


@pytest.mark.parametrize(
    ("left", "places"), [(900.0, []), (1000.0, []), (1001.0, [(11,)]), (nan, [(11,)])]
)
def test_a_reader_that_retention_overtakes_between_two_commits_alone_is_not_too_slow(
    left: float, places: list[tuple[int, ...]]
) -> None:
    """Its commits leave what is next to nothing, and by the next one the log starts
    after the last.
    """
    signals = short_group(lag=[10.0] * 12, topic=OVERTAKEN, best_capacity=600.0)
    (topic,) = signals.topics
    signals = replace(
        signals, topics=[replace(topic, envelope=np.append(topic.envelope[:-1], left))]
    )

    assert [each.partitions for each in found("HOT_PARTITION_ARRIVAL", signals)] == places
