"""Forecasts of random groups against arithmetic: no work is lost, and no partition is split."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.groups import signals_of, spread_over, topic_signals
from laggard.answers.plan.change import Change, apply, cost_of
from laggard.answers.plan.outcome import Plan, Span, rates_of
from laggard.diagnosis.signals.group import Signals
from laggard.rebalance.assignors import ASSIGNORS

CAPACITY = 1000.0
PARTITIONS = st.integers(1, 24)
ASSIGNOR = st.sampled_from(sorted(ASSIGNORS))


def group(lag: list[float], arrival: list[float], members: int, assignor: str = "range") -> Signals:
    """A group on one topic whose members do `CAPACITY` each."""
    topic = topic_signals(lag, arrival=arrival, slots=spread_over(len(lag), members))
    return signals_of(
        topic, capacity=CAPACITY, assignor=assignor, fact={"topic_partitions": {"orders": len(lag)}}
    )


# frozen
def plan(
    signals: Signals,
    change: Change = Change(),  # noqa: B008 - frozen
    busy: tuple[float, ...] = (CAPACITY,),
) -> Plan:
    rates = rates_of(signals, dict.fromkeys(signals.members, busy))
    return Plan(
        apply(signals, change), rates, now=signals.member_count, keeps_owners=change.keeps_owners
    )


Drawn = tuple[list[float], list[float], int, str]


@st.composite
def groups(draw: st.DrawFn) -> Drawn:
    count = draw(PARTITIONS)
    lag = draw(st.lists(st.integers(0, 10**6).map(float), min_size=count, max_size=count))
    arrival = draw(st.lists(st.integers(0, 1500).map(float), min_size=count, max_size=count))
    return lag, arrival, draw(st.integers(1, count)), draw(ASSIGNOR)


@settings(max_examples=60, deadline=None)
@given(groups(), st.integers(1, 30))
def test_every_partition_has_one_owner_and_all_work_is_kept(drawn: Drawn, members: int) -> None:
    signals = group(*drawn)
    topic, found = signals.topics[0], plan(signals).outcome(members)
    places = [place for share in found.loads for place in share.partitions]
    assert sorted(places) == [("orders", number) for number in range(len(topic.lag))]
    assert sum(share.arrival_rate for share in found.loads) == pytest.approx(topic.arrival.sum())
    assert sum(share.lag for share in found.loads) == pytest.approx(topic.lag.sum())
    assert len(found.loads) + found.idle_members == members


@settings(max_examples=60, deadline=None)
@given(groups(), st.integers(1, 30))
def test_the_busiest_partition_bounds_the_drain(drawn: Drawn, members: int) -> None:
    signals = group(*drawn)
    topic, found = signals.topics[0], plan(signals).outcome(members)
    spare = CAPACITY - topic.arrival
    drains = np.where(
        topic.arrival > CAPACITY,
        inf,
        np.where(topic.lag > 0, topic.lag / np.maximum(spare, 1e-300), 0),
    )
    assert found.drain_seconds.value >= drains.max() * (1 - 1e-9)
    if topic.arrival.sum() > 0:  # else how much arrivals change is unknown
        assert found.drain_seconds.p10 <= found.drain_seconds.value <= found.drain_seconds.p90


@settings(max_examples=60, deadline=None)
@given(PARTITIONS, ASSIGNOR, st.integers(1, 400), st.integers(1, 10**6), st.data())
def test_an_even_group_drains_by_the_partitions_of_its_largest_member(
    count: int, assignor: str, arrival: float, lag: float, data: st.DataObject
) -> None:
    signals = group([lag] * count, [arrival] * count, data.draw(st.integers(1, count)), assignor)
    drains = []
    for members in range(1, count + 3):
        most = ceil(count / members)
        spare = CAPACITY - most * arrival
        drains.append(plan(signals).outcome(members).drain_seconds.value)
        assert drains[-1] == pytest.approx(most * lag / spare if spare > 0 else inf)
    assert drains == sorted(drains, reverse=True)  # more members never take longer


@settings(max_examples=40, deadline=None)
@given(groups(), st.floats(0.1, 10), st.integers(1, 30))
def test_a_rate_is_the_load_times_it(drawn: Drawn, times: float, members: int) -> None:
    signals = group(*drawn)
    plain, more = (plan(signals, Change(rate=each)).outcome(members) for each in (1.0, times))
    assert more.largest_rate == pytest.approx(times * plain.largest_rate)
    assert sorted(share.lag for share in more.loads) == pytest.approx(
        sorted(share.lag for share in plain.loads)
    )


@settings(max_examples=40, deadline=None)
@given(groups(), st.integers(1, 12))
def test_new_partitions_share_what_arrives_and_have_no_lag(drawn: Drawn, more: int) -> None:
    signals = group(*drawn)
    before = signals.topics[0]
    change = Change(partitions=len(before.lag) + more, topic="orders")
    for is_one_key in (False, True):
        after = apply(signals, change, is_one_key=is_one_key).topics[0]
        assert after.arrival.sum() == pytest.approx(before.arrival.sum())
        assert list(after.lag) == [*before.lag, *[0] * more]
        assert not is_one_key or after.arrival.max() >= before.arrival.max() * (1 - 1e-9)


def test_the_spread_is_of_recorded_windows() -> None:
    windows = np.array([80.0, 90, 100, 110, 120] * 12)
    topic = topic_signals([6000.0], arrival=100.0, history={"arrival": windows})
    rates = rates_of(signals_of(topic, capacity=CAPACITY), {"m0": [900.0, *[1000.0] * 8, 1200.0]})
    assert rates.capacity == rates.own["m0"] == Span(1000.0, 900.0, 1000.0)
    assert (rates.arrival.p10, rates.arrival.p90) == pytest.approx((0.8, 1.2))


def test_what_arrived_before_it_changed_is_no_spread() -> None:
    windows = np.array([50.0] * 48 + [100.0] * 12)
    topic = topic_signals([6000.0], arrival=100.0, history={"arrival": windows})
    rates = rates_of(signals_of(topic, capacity=CAPACITY), {"m0": [CAPACITY]})
    assert rates.arrival == Span(1.0, 1.0, 1.0)


def test_the_lag_is_that_of_now_less_what_was_done_since_the_commit() -> None:
    topic = replace(
        topic_signals([6000.0], consume=400.0, history={"frozen": 4.0}), envelope=np.array([3000.0])
    )
    assert rates_of(signals_of(topic, capacity=CAPACITY), {}).unread == {
        ("orders", 0): 6000 - 4 * 400
    }


def test_members_that_stay_do_what_they_did() -> None:
    topic = topic_signals([60000.0] * 3, arrival=600.0, slots=spread_over(3, 3))
    capacity = {"m0": 650.0, "m1": 1000.0, "m2": 1000.0}
    signals = signals_of(topic, capacity=capacity, fact={"topic_partitions": {"orders": 3}})
    rates = rates_of(signals, {slot: [value] * 5 for slot, value in capacity.items()})
    found = Plan(signals, rates, now=3, keeps_owners=True).outcome(3)
    assert found.drain_seconds.value == pytest.approx(60000 / 50)
    drains = {share.member: share.drain_seconds.value for share in found.loads}
    assert drains["m1"] == pytest.approx(60000 / 400)


@pytest.mark.parametrize("slots", [["", "m0", "m1", "m1"], [""] * 4])
def test_without_owners_nothing_is_known_of_now(slots: list[str]) -> None:
    topic = topic_signals([1e6, 100, 100, 100], arrival=100.0, slots=slots)
    signals = replace(signals_of(topic, capacity=CAPACITY, member_count=2), capacity=CAPACITY)
    found = plan(signals).outcome(2)
    assert isnan(found.drain_seconds.value)
    assert isnan(found.unread_after_target)
    assert found.idle_members is None
    assert len(found.unowned) == slots.count("")
    assert plan(signals).outcome(3).drain_seconds.value >= 1e6 / 900


def test_hot_is_what_no_member_has_shown_to_do() -> None:
    def at(best: float, arrival: float) -> Plan:
        topic = topic_signals([60000.0, 0.0], arrival=[arrival, 100.0], slots=spread_over(2, 2))
        return plan(
            signals_of(topic, capacity=CAPACITY, best_capacity=best), busy=(900.0, 1000.0, 1300.0)
        )

    assert at(1300.0, 1100.0).hot() == []
    assert at(1000.0, 1000.0).hot() == []
    assert at(1300.0, 1100.0).outcome(2).drain_seconds.p10 < inf
    assert at(1300.0, 1301.0).hot() == [("orders", 0)]
    assert at(1300.0, 1301.0).outcome(2).drain_seconds == Span(inf, inf, inf)


@pytest.mark.parametrize(
    ("assignor", "mode", "stopped", "moved"),
    [("range", "eager", 4, None), ("cooperative-sticky", "cooperative", 2, Span(2, 2, 2))],
)
def test_the_cost_is_what_recorded_rebalances_paused(
    assignor: str, mode: str, stopped: int, moved: Span | None
) -> None:
    topic = topic_signals([6000.0] * 4, arrival=100.0, slots=spread_over(4, 2))
    signals = signals_of(topic, capacity=CAPACITY, assignor=assignor, fact={"rebalance_mode": mode})
    rows = [{"pause_max_seconds": each} for each in (*map(float, range(1, 11)), None)]
    cost = cost_of(signals, plan(signals, Change(4)), Change(4), 4, rows)
    assert (cost.rebalances, cost.rebalances_most, cost.rebalances_recorded) == (1, 2, 10)
    assert (cost.paused_partitions, cost.pause_max_seconds) == (stopped, Span(5.0, 1.0, 9.0))
    assert cost.records_delayed == Span(5.0 * stopped * 100, stopped * 100, 9.0 * stopped * 100)
    assert moved in (None, cost.moved_partitions)


def test_a_change_that_keeps_the_members_costs_nothing() -> None:
    signals = group([6000.0] * 4, [100.0] * 4, 2)
    assert cost_of(signals, plan(signals), Change(rate=2.0), 2, ()).rebalances == 0


def test_another_assignor_restarts_every_member() -> None:
    topic = topic_signals([6000.0] * 12, arrival=100.0, slots=spread_over(12, 3))
    signals = signals_of(
        topic, capacity=CAPACITY, assignor="range", fact={"rebalance_mode": "eager"}
    )
    change = Change(assignor="cooperative-sticky")
    cost = cost_of(signals, plan(signals, change), change, 3, [{"pause_max_seconds": 20.0}])
    assert (cost.rebalances, cost.rebalances_most) == (1, 6)
    assert (cost.moved_partitions, cost.paused_partitions) == (Span(12, 12, 12), 12)
    assert cost.records_delayed.value == 20 * 1200


def test_the_cost_without_a_known_number_of_members_is_unknown() -> None:
    topic = topic_signals([6000.0] * 4, arrival=100.0, slots=spread_over(4, 2))
    signals = signals_of(topic, capacity=CAPACITY, member_count=None)
    cost = cost_of(signals, plan(signals, Change(4)), Change(4), 4, ())
    assert (cost.rebalances, cost.rebalances_most) == (None, None)
    assert isnan(cost.moved_partitions.value)


def test_new_partitions_come_after_those_without_rows() -> None:
    topic = topic_signals([0.0, 0.0, 9e5], arrival=[10.0, nan, 700.0])
    topic = replace(topic, frame=replace(topic.frame, partitions=np.array([0, 2, 5])))
    signals = signals_of(topic, capacity=CAPACITY, fact={"topic_partitions": {"orders": 12}})
    after = apply(signals, Change(partitions=14, topic="orders")).topics[0]
    assert after.frame.partitions.tolist() == [0, 2, 5, 12, 13]
    assert after.lag.tolist() == [0, 0, 9e5, 0, 0]
    assert after.arriving.tolist() == [144.0] * 5  # the unknown one is taken as the median
