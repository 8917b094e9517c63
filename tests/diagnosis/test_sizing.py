from collections import Counter
from itertools import product
from math import inf, isnan
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis.groups import PARAMETERS, REBALANCE, signals_of, spread_over, topic_signals
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.signals.forecast import drain_seconds
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.statistics import percentile
from laggard.diagnosis.verdict.reasons import autoscaler_settings
from laggard.diagnosis.verdict.sizing import (
    Load,
    Sizing,
    lasting,
    lower_bound,
    packed,
    size,
    slowest_drain,
)
from laggard.rebalance.assignors import ASSIGNORS, Member, assign


def sized(lag: Any, members: int = 4, **fields: Any) -> Sizing:
    topic = {name: fields.pop(name) for name in ("arrival", "status") if name in fields}
    slots = spread_over(len(lag), members)
    return size(
        signals_of(topic_signals(lag, slots=slots, **topic), **({"capacity": 600.0} | fields))
    )


def shares(assignor: str, members: int, topics: Any) -> list[int]:
    """Partitions per member, by order of member."""
    given = assign(assignor, [Member(f"{n:03}", frozenset(topics)) for n in range(members)], topics)
    return [len(given[name]) for name in sorted(given)]


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [
        (8, 6, [1] * 6 + [0] * 2),
        (3, 6, [2] * 3),
        (20, 100, [5] * 20),
        (10, 100, [10] * 10),
        (2, 9, [5, 4]),
        (3, 9, [3, 3, 3]),
    ],
)
def test_members_beyond_the_partitions_get_nothing(
    members: int, partitions: int, expected: Any
) -> None:
    for assignor in ("range", "roundrobin", "sticky", "uniform"):
        assert sorted(shares(assignor, members, {"orders": partitions}), reverse=True) == expected


@pytest.mark.parametrize(
    ("assignor", "members", "topics", "expected"),
    [
        ("range", 3, {"a": 6, "b": 6}, [4, 4, 4]),
        ("range", 3, {"a": 7, "b": 7}, [6, 4, 4]),
        ("roundrobin", 3, {"a": 7, "b": 7}, [5, 5, 4]),
        ("range", 8, {"a": 6, "b": 6}, [2] * 6 + [0, 0]),
        ("roundrobin", 8, {"a": 6, "b": 6}, [2] * 4 + [1] * 4),
    ],
)
def test_range_collects_the_remainders_of_every_topic_at_the_first_members(
    assignor: str, members: int, topics: Any, expected: Any
) -> None:
    assert shares(assignor, members, topics) == expected


def test_work_is_arrivals_and_the_lag_spread_over_the_drain_target() -> None:
    found = sized([90_000.0] * 12, arrival=220.0)

    assert found.work == pytest.approx(12 * (220 + 90_000 / 900))


@pytest.mark.parametrize(
    ("lag", "desired"),
    # w = 240 is 0.4 c: two fill a member
    [(0.0, 6), (18_000.0, 6), (18_001.0, 12), (200_000.0, 12)],
)
def test_a_steady_shortage_wants_six_members_while_two_partitions_fit_one(
    lag: Any, desired: int
) -> None:
    found = sized([lag] * 12, arrival=220.0)

    assert (found.members_desired, found.target_unreachable) == (desired, False)


def test_where_no_partition_fits_a_member_the_ceiling_is_wanted_and_misses_the_target() -> None:
    # P 12, N 6, c 1000/s, 400/s and 900 000 records each: 25 minutes at 12 members, 150 at 6
    found = sized([900_000.0] * 12, 6, arrival=400.0, capacity=1000.0)

    assert (found.members_desired, found.target_unreachable) == (12, True)
    assert (found.drain_seconds, found.drain_now_seconds) == (1500.0, 9000.0)
    assert found.residual_records == pytest.approx(12 * (900_000 - 600 * 900))


def test_never_above_the_ceiling_of_a_range_over_two_topics() -> None:
    topics = [
        topic_signals([50_000.0] * 6, topic=name, arrival=200.0, slots=spread_over(6, 3))
        for name in ("a", "b")
    ]
    by_range, by_turns = (
        size(signals_of(*topics, capacity=300.0, assignor=name)) for name in ("range", "roundrobin")
    )

    assert (by_range.members_desired, by_range.target_unreachable) == (6, True)
    assert by_turns.members_desired == 12


def test_a_count_that_divides_the_partitions_is_preferred_if_one_more_lowers_the_load() -> None:
    # 12 partitions of 100/s, room 480: 3 members have 4 each and fit; of 11 members one has 2
    assert sized([0.0] * 12, arrival=100.0).members_desired == 3
    # room 300: 4 members have 3 each; 5 would not lower it below 3
    assert sized([0.0] * 12, arrival=100.0, capacity=375.0).members_desired == 4
    # room 220 of 10 partitions: 5 members, 2 each; 110: 10 members
    assert sized([0.0] * 10, arrival=100.0, capacity=275.0).members_desired == 5
    # of 15 partitions, room 420: 4 members have 4 at most, 5 divide them and have 3
    assert sized([0.0] * 15, arrival=100.0, capacity=525.0).members_desired == 5


def smallest_by_search(
    work: list[int], room: float, ceiling: int, assignor: str, owned: Any
) -> int | None:
    for count in range(1, ceiling + 1):
        members = [
            Member(f"{n:05}", frozenset({"orders"}), owned=owned.get(n, ()), generation=1)
            for n in range(count)
        ]
        given = assign(assignor, members, {"orders": len(work)})
        if max(sum(work[place] for _, place in held) for held in given.values()) <= room + 1e-9:
            return count
    return None


@given(
    rates=st.lists(st.integers(0, 400), min_size=1, max_size=14),
    members=st.integers(1, 5),
    assignor=st.sampled_from(["range", "roundrobin", "sticky", "uniform"]),
)
def test_the_smallest_number_that_fits_is_the_one_a_plain_search_finds(
    rates: list[int], members: int, assignor: str
) -> None:
    topic = topic_signals(
        [0.0] * len(rates),
        arrival=[float(rate) for rate in rates],
        slots=spread_over(len(rates), members),
    )
    signals = signals_of(topic, capacity=500.0, assignor=assignor)
    owned = {n: signals.members[slot].partitions for n, slot in enumerate(sorted(signals.members))}
    expected = smallest_by_search(rates, 400.0, len(rates), assignor, owned)

    found = size(signals)

    assert found.members_desired is not None
    assert found.target_unreachable == (expected is None)
    if expected is not None:  # one more where that divides the partitions
        assert found.members_desired in {expected, expected + 1}
        assert found.members_desired == expected or len(rates) % found.members_desired == 0


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_packing_lies_between_the_bound_and_eleven_ninths_of_the_best_packing(
    work: list[int],
) -> None:
    def fits(bins: tuple[int, ...]) -> bool:
        loads = Counter[int]()
        for each, place in zip(work, bins, strict=True):
            loads[place] += each
        return max(loads.values()) <= 60

    places = product(range(len(work)), repeat=len(work))
    best = min(len(set(bins)) for bins in places if fits(bins))

    assert lower_bound(work, 60) <= best <= packed(work, 60) <= 11 / 9 * best + 6 / 9


def test_a_partition_larger_than_a_member_fills_one() -> None:
    assert (lower_bound([900.0, 100.0], 400), packed([900.0, 100.0], 400)) == (3, 2)


def test_without_a_capacity_nothing_is_wanted() -> None:
    assert sized([9_000.0] * 12, capacity=np.nan) == Sizing()


def test_a_partition_that_is_not_known_counts_as_the_median_and_is_counted() -> None:
    found = sized(
        [9_000.0] * 11 + [np.nan], arrival=[100.0] * 11 + [np.nan], status=["ok"] * 11 + ["stale"]
    )

    assert (found.partitions_estimated, found.work) == (1, pytest.approx(12 * 110))


def test_an_assignor_that_is_not_known_deals_partitions_out() -> None:
    assert sized([0.0] * 12, arrival=220.0, assignor="our.own.Assignor").members_desired == 6


def test_moves_are_those_of_the_groups_own_assignor() -> None:
    # 4 x 3 to 6 x 2: sticky moves one of each; ranges shift all but 0 1 of m0, 3 of m1, and none of
    # the rest
    assert sized([0.0] * 12, arrival=220.0, assignor="sticky").moved_partitions == 4
    assert sized([0.0] * 12, arrival=220.0, assignor="cooperative-sticky").moved_partitions == 4
    ranges = [set(range(3 * n, 3 * n + 3)) & set(range(2 * n, 2 * n + 2)) for n in range(4)]
    assert sized([0.0] * 12, arrival=220.0).moved_partitions == 12 - sum(map(len, ranges))


def test_a_member_that_gets_more_than_it_can_do_never_drains() -> None:
    assert slowest_drain([[Load(100, 500, 0)], [Load(600, 1, 0)]], 600) == inf
    assert slowest_drain([[Load(100, 500, 0)], [Load(600, 0, 0)]], 600) == 1.0


@pytest.mark.parametrize(
    ("lag", "arrival", "consume", "seconds"),
    [
        (14_400_000, 1000, 2000, 14_400),
        (0, 1000, 0, 0),
        (10, 1000, 1020, inf),
        (10, 1000, 900, inf),
    ],
)
def test_a_backlog_of_four_hours_that_takes_four_to_drain_is_consumed_at_twice_the_arrivals(
    lag: Any, arrival: float, consume: float, seconds: float
) -> None:
    assert drain_seconds(lag, arrival, consume, PARAMETERS) == seconds


def test_rates_that_are_not_known_give_no_drain() -> None:
    assert isnan(drain_seconds(10, np.nan, 5, PARAMETERS))


def test_an_autoscaler_gets_what_a_member_does_within_the_slo() -> None:
    rebalances = [REBALANCE | {"pause_p95_seconds": seconds} for seconds in (12.0, None)]
    signals = signals_of(
        topic_signals([0.0]),
        capacity=500.0,
        policy=Policy(slo_time_lag_seconds=60.0),
        rebalances=rebalances,
    )
    assert autoscaler_settings(signals) == {
        "autoscaler_lag_per_member_records": 30_000.0,
        "autoscaler_cooldown_seconds": 36.0,
    }
    unknown = autoscaler_settings(signals_of(topic_signals([0.0])))
    assert all(isnan(value) for value in unknown.values())


def test_percentiles_are_values_by_nearest_rank() -> None:
    assert [
        percentile(range(1, 21), 95),
        percentile([7.0], 95),
        percentile([1.0, np.nan, 3.0], 50),
    ] == [19, 7, 1]


def timed(signals: Signals) -> float:
    """Seconds of processor time, as other work on the machine says nothing about ours."""
    times = []
    for _ in range(3):
        begin = process_time()
        size(signals)
        times.append(process_time() - begin)
    return min(times)


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_sizing_costs_little_for_12_partitions_and_is_bounded_for_200(assignor: str) -> None:
    small = topic_signals([5_000.0] * 12, arrival=220.0, slots=spread_over(12, 4))
    rates = np.random.default_rng(4).uniform(1, 100, 200)
    rates[0] = 480.0  # leaves no room beside it: almost every number of members is looked at
    large = topic_signals([0.0] * 200, arrival=rates.tolist(), slots=spread_over(200, 20))

    # measured 0.3 ms and 0.3 s; the limits leave room for a slow machine
    assert timed(signals_of(small, capacity=600.0, assignor=assignor)) < 0.02
    assert timed(signals_of(large, capacity=600.0, assignor=assignor)) < 2


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ([4, 5, 4, 5, 4, 5, 4], [4] * 7),
        ([4, 5, 6, 5, 7, 6, 6], [4, 4, 4, 4, 4, 5, 5]),  # the nearest of five
        ([4, 3, 2, 2, 2, 2, 2], [4, 4, 4, 4, 4, 3, 3]),
        ([4, 5, 5, 5, 5, 3, 5], [4] * 7),
    ],
)
def test_a_size_is_published_when_five_windows_lie_on_one_side_of_the_one_before(
    found: list[int], shown: list[int]
) -> None:
    sizes, published = (), []
    for each in found:
        sizes = lasting(sizes, each)
        published.append(sizes[0])
    assert published == shown
