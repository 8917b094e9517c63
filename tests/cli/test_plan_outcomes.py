"""Forecasts of random groups against arithmetic: no work is lost, and no partition is split."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.groups import signals_of, spread_over, topic_signals
from laggard.cli.plan.change import Change, apply
from laggard.cli.plan.cost import cost_of
from laggard.cli.plan.outcome import Plan, Span, rates_of
from laggard.diagnosis.signals.group import Signals
from laggard.rebalance.assignors import ASSIGNORS

CAPACITY = 1000.0
PARTITIONS = st.integers(1, 24)
ASSIGNOR = st.sampled_from(sorted(ASSIGNORS))


def group(lag: list[float], arrival: list[float], members: int, assignor: str = "range") -> Signals:
    """A group on one topic whose members do `CAPACITY` each."""
    topic = topic_signals(lag, arrival=arrival, slots=spread_over(len(lag), members))
    return signals_of(topic, capacity=CAPACITY, assignor=assignor, fact={"topic_partitions": {"orders": len(lag)}})


def plan(signals: Signals, change: Change = Change(), busy: tuple[float, ...] = (CAPACITY,)) -> Plan:  # noqa: B008 - frozen
    rates = rates_of(signals, busy)
    return Plan(apply(signals, change), rates, now=signals.member_count, keeps_owners=change.keeps_owners)


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
    places = [place for share in found.shares for place in share.partitions]
    assert sorted(places) == [("orders", number) for number in range(len(topic.lag))]
    assert sum(share.arrival for share in found.shares) == pytest.approx(topic.arrival.sum())
    assert sum(share.lag for share in found.shares) == pytest.approx(topic.lag.sum())
    assert len(found.shares) + found.idle == members


@settings(max_examples=60, deadline=None)
@given(groups(), st.integers(1, 30))
def test_the_busiest_partition_bounds_the_drain(drawn: Drawn, members: int) -> None:
    signals = group(*drawn)
    topic, found = signals.topics[0], plan(signals).outcome(members)
    spare = CAPACITY - topic.arrival
    drains = np.where(topic.arrival > CAPACITY, inf, np.where(topic.lag > 0, topic.lag / np.maximum(spare, 1e-300), 0))
    assert found.drain.value >= drains.max() * (1 - 1e-9)
    if topic.arrival.sum() > 0:  # else how much arrivals change is unknown
        assert found.drain.low <= found.drain.value <= found.drain.high


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
        drains.append(plan(signals).outcome(members).drain.value)
        assert drains[-1] == pytest.approx(most * lag / spare if spare > 0 else inf)
    assert drains == sorted(drains, reverse=True)  # more members never take longer


@settings(max_examples=40, deadline=None)
@given(groups(), st.floats(0.1, 10), st.integers(1, 30))
def test_a_rate_is_the_load_times_it(drawn: Drawn, times: float, members: int) -> None:
    signals = group(*drawn)
    plain, more = (plan(signals, Change(rate=each)).outcome(members) for each in (1.0, times))
    assert more.largest == pytest.approx(times * plain.largest)
    assert sorted(share.lag for share in more.shares) == pytest.approx(sorted(share.lag for share in plain.shares))


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
    windows = np.linspace(50, 149, 60)  # p10 55, p90 140
    topic = topic_signals([6000.0], arrival=100.0, history={"arrival": windows})
    signals = signals_of(topic, capacity=CAPACITY)
    rates = rates_of(signals, [900.0, *[1000.0] * 8, 1200.0])
    assert rates.capacity == Span(1000.0, 900.0, 1000.0)
    assert (rates.arrival.low, rates.arrival.high) == pytest.approx((windows[5] / 100, windows[53] / 100))


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
    assert (cost.rebalances, cost.rebalances_most, cost.recorded) == (1, 2, 10)
    assert (cost.paused, cost.pause) == (stopped, Span(5.0, 1.0, 9.0))
    assert cost.delayed == Span(5.0 * stopped * 100, stopped * 100, 9.0 * stopped * 100)
    assert moved in (None, cost.moved)


def test_a_change_that_keeps_the_members_costs_nothing() -> None:
    signals = group([6000.0] * 4, [100.0] * 4, 2)
    assert cost_of(signals, plan(signals), Change(rate=2.0), 2, ()).rebalances == 0
