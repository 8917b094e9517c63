from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis.groups import signals_of, spread_over, topic_signals
from laggard.diagnosis.history.frames import Memory, from_json
from laggard.diagnosis.rules.skew import proven_costly
from laggard.diagnosis.signals.attribution import attribute, least_p, rank_p
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.slow import is_at_pace_again

LAG = 50_000.0


def lagging(partitions: int, *places: int, lag: float = LAG) -> list[float]:
    return [lag if place in places else 10.0 for place in range(partitions)]


def slower(
    partitions: int, *places: int, rate: float = 60.0, arrival: float = 100.0
) -> list[float]:
    return [rate if place in places else arrival for place in range(partitions)]


def causes(signals: Signals) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(cause.label, cause.subject, cause.partitions) for cause in attribute(signals)]


def by_hand(lags: list[int], chosen: tuple[int, ...]) -> float:
    reached = sum(lags[place] for place in chosen)
    others = [c for c in combinations(range(len(lags)), len(chosen)) if c != tuple(sorted(chosen))]
    return (1 + sum(sum(lags[place] for place in each) >= reached for each in others)) / (
        len(others) + 1
    )


@given(st.lists(st.integers(0, 9), min_size=4, max_size=9), st.data())
def test_rank_test_counts_every_other_subset(lags: list[int], data: st.DataObject) -> None:
    chosen = tuple(
        sorted(
            data.draw(st.sets(st.integers(0, len(lags) - 1), min_size=1, max_size=len(lags) // 2))
        )
    )

    assert rank_p(tuple(map(float, lags)), chosen, "any") == pytest.approx(by_hand(lags, chosen))


def test_six_partitions_of_two_each_cannot_prove_more_than_one_in_fifteen() -> None:
    assert (
        rank_p((9.0, 9.0, 0.0, 0.0, 0.0, 0.0), (0, 1), "any")
        == pytest.approx(1 / 15)
        == least_p(6, 2)
    )


def test_drawn_subsets_repeat_with_their_seed_and_come_near_the_exact_share() -> None:
    lags = tuple(float(place) for place in range(24))
    chosen = (2, 9, 13, 17, 20, 22)
    exact = sum(sum(c) >= sum(chosen) for c in combinations(range(24), 6)) / comb(24, 6)

    assert comb(24, 6) > 5_000
    assert rank_p(lags, chosen, "a") == rank_p(lags, chosen, "a") != rank_p(lags, chosen, "b")
    assert rank_p(lags, chosen, "a") == pytest.approx(exact, abs=0.02)
    assert rank_p(lags, tuple(range(18, 24)), "a") == 1 / 5_000


def test_drawing_ends_early_only_where_p_is_out_of_reach() -> None:
    lags = tuple(float(place) for place in range(24))

    assert rank_p(lags, (0, 1, 2, 3, 4, 5), "a", 0.01) > 0.01
    assert rank_p(lags, tuple(range(18, 24)), "a", 0.01) == 1 / 5_000


def slow_group(
    members: int = 4,
    partitions: int = 12,
    places: tuple[int, ...] = (6, 7, 8),
    slots: list[str] | None = None,
    **fields: Any,
) -> Signals:
    """One member works its partitions at 60/s each where 100/s arrive, as m2 of
    four ranges does.
    """
    topic = {
        "shape": "concentrated",
        "slots": slots or spread_over(partitions, members),
        "consume": slower(partitions, *places),
    }
    names = {
        "hosts",
        "brokers",
        "history",
        "stalled",
        "shape",
        "arrival",
        "consume",
        "interval",
        "floor",
    }
    topic |= {name: fields.pop(name) for name in names & fields.keys()}
    lag = fields.pop("lag", lagging(partitions, *places))
    return signals_of(topic_signals(lag, **topic), **({"busy": ["m2"]} | fields))


def test_a_member_that_does_less_than_the_others_is_named_with_what_it_does() -> None:
    (cause,) = attribute(slow_group())

    assert (cause.label, cause.subject, cause.partitions) == ("member", "m2", (6, 7, 8))
    assert (cause.fit.purity, cause.fit.p) == (1.0, pytest.approx(1 / comb(12, 3)))
    assert cause.fit.explained == pytest.approx(150_000 / 150_090)
    assert cause.slowness is not None
    assert (cause.slowness.pace, cause.slowness.shown, cause.slowness.load) == (180.0, 300.0, 300.0)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": "spread"},
        {"is_material": False},
        {"busy": []},  # what it can do is not known
        {"consume": slower(12, 6, 7, 8, rate=95.0)},  # 285 of 300: no slower than 0.9 of the others
        # it was given more
        {"arrival": slower(12, 6, 7, 8, rate=150.0), "consume": slower(12, 6, 7, 8)},
        {"lag": lagging(12, 6, 7, 8, 9, 10, 11, 0, 1)},  # it explains 3 of 8
        {"lag": lagging(12, 6)},  # one of its three: no member's doing
        {"stalled": {6: "silent", 7: "silent", 8: "silent"}},
    ],
)
def test_a_member_is_not_slow(change: dict[str, Any]) -> None:
    assert "member" not in [label for label, *_ in causes(slow_group(**change))]


@pytest.mark.parametrize(("shown", "slow"), [(180.0, []), (230.0, [("m2", 180.0, 230.0)])])
def test_a_member_that_has_more_to_do_than_the_others_is_slow_if_it_did_more_before(
    shown: float, slow: list[tuple[str, float, float]]
) -> None:
    """It gets 450/s and the others 300; it does 180, and did so always, or 230 once."""
    more = {"arrival": slower(12, 6, 7, 8, rate=150.0), "consume": slower(12, 6, 7, 8)}
    found = attribute(slow_group(seen={"m2": shown}, **more))

    named = [
        (each.subject, each.slowness.pace, each.slowness.shown) for each in found if each.slowness
    ]
    assert named == slow


@pytest.mark.parametrize(("reads", "is_back"), [(93.0, False), (125.0, True)])
def test_a_member_that_has_more_to_do_is_back_at_its_own_pace(
    reads: float, *, is_back: bool
) -> None:
    """It gets 450/s and has read 400; the others get and read 300."""
    more = {"arrival": slower(12, 6, 7, 8, rate=150.0), "consume": slower(12, 6, 7, 8, rate=reads)}

    assert is_at_pace_again(slow_group(seen={"m2": 400.0}, **more), "m2") == is_back


def test_others_above_their_floor_are_no_contrast() -> None:
    # its three hold 150 000 of 168 000, but the median of the others is twice its floor
    lag = [2_000.0] * 12
    lag[6:9] = [LAG] * 3

    assert causes(slow_group(lag=lag)) == []
    assert [label for label, *_ in causes(slow_group(lag=lag, floor=2_000.0))] == ["member"]


def test_a_batch_that_has_just_come_to_the_others_is_no_lag_of_theirs() -> None:
    """Their newest commits left nothing; what lies there now came since."""
    signals = slow_group(lag=[5_000.0] * 6 + [LAG] * 3 + [5_000.0] * 3)
    (topic,) = signals.topics
    left = np.where(topic.lag == LAG, LAG, 0.0)

    assert causes(signals) == []
    assert [
        label for label, *_ in causes(replace(signals, topics=[replace(topic, envelope=left)]))
    ] == ["member"]


@pytest.mark.parametrize(
    ("slow", "named"), [((1, 4), ["m1", "m4"]), ((1, 2, 4), ["m1", "m2", "m4"]), ((0, 1, 2, 4), [])]
)
def test_slow_members_are_named_one_by_one_as_long_as_most_are_not(
    slow: tuple[int, ...], named: list[str]
) -> None:
    """None of them has most of the lag, and the others of them are no contrast."""
    places = tuple(place for place in range(18) if place // 3 in slow)
    signals = slow_group(
        6, 18, places, lag=lagging(18, *places), busy=[f"m{number}" for number in slow]
    )

    assert causes(signals) == [
        ("member", name, tuple(range(3 * int(name[1]), 3 * int(name[1]) + 3))) for name in named
    ]


def test_capacity_of_old_windows_does_not_hide_that_a_busy_member_is_slow_now() -> None:
    signals = slow_group(capacity={"m2": 600.0}, seen={"m0": 300.0, "m1": 300.0, "m3": 300.0})

    assert [cause.slowness.pace for cause in attribute(signals) if cause.slowness] == [180.0]


@pytest.mark.parametrize(
    ("newest", "is_slow"),
    [((60.0, 60.0), True), ((60.0, 80.0), True), ((60.0, 200.0), False), ((200.0, 200.0), False)],
)
def test_a_member_that_has_stood_still_and_catches_up_is_not_slow(
    newest: tuple[float, float], *, is_slow: bool
) -> None:
    consumed = np.full((12, 60), 100.0)
    consumed[6:9] = 0.0
    consumed[6:9, -2:] = newest
    signals = slow_group(history={"consume": consumed})

    assert [label for label, *_ in causes(signals)] == (["member"] if is_slow else [])


@pytest.mark.parametrize(("rate", "is_slow"), [(60.0, True), (200.0, False)])
def test_a_member_that_commits_in_each_third_window_is_at_pace_by_the_newest_gap(
    rate: float, *, is_slow: bool
) -> None:
    is_commit = np.arange(60) % 3 == 2
    consumed = np.where(is_commit, 3.0, 0.0) * np.full((12, 1), 100.0)
    consumed[6:9, :-3] *= 0.6
    consumed[6:9, -3:] *= rate / 100.0
    frozen = np.where(is_commit, 0.0, 60.0 * (np.arange(60) % 3 + 1.0))
    signals = slow_group(history={"consume": consumed, "frozen": frozen}, interval=180.0)

    assert [label for label, *_ in causes(signals)] == (["member"] if is_slow else [])


def test_all_members_of_a_slow_host_are_one_cause() -> None:
    slots, places = spread_over(24, 8), (6, 7, 8, 9, 10, 11)
    hosts = [f"h{int(slot[1:]) // 2}" for slot in slots]

    signals = slow_group(8, 24, places, slots=slots, hosts=hosts, busy=["m2", "m3"])

    assert causes(signals) == [("host", "h1", places)]


def test_a_host_with_one_member_is_that_member() -> None:
    assert causes(slow_group(hosts=[f"h{slot}" for slot in spread_over(12, 4)])) == [
        ("member", "m2", (6, 7, 8))
    ]


def test_partitions_of_one_broker_point_at_the_broker() -> None:
    places = (1, 4, 7, 10)
    signals = slow_group(places=places, busy=[])

    assert causes(signals) == [("broker", "1", places)]


@pytest.mark.parametrize(
    ("calm", "lags", "is_named"),
    [
        ([900.0, 940.0], [500, 500], False),  # 1040 is more than it ever served
        ([940.0, 960.0], [500, 500], True),
        ([500.0, 1300.0], [500, 500], True),
        ([500.0, 500.0], [500_000, None], True),  # no window is known in which nothing lagged
        ([500.0, 1300.0], [500, 500_000], False),
        ([], [], True),
    ],
)
def test_no_broker_is_slow_of_which_more_is_read_than_when_nothing_lagged(
    calm: list[float], lags: list[int | None], *, is_named: bool
) -> None:
    rows = [{"arrival_rate": rate, "lag_known": lag} for rate, lag in zip(calm, lags, strict=True)]
    # 8 x 100 and 4 x 60 are read
    signals = slow_group(places=(1, 4, 7, 10), busy=[], baseline={"orders": rows})

    assert ("broker" in [label for label, *_ in causes(signals)]) == is_named


def test_one_group_does_not_distinguish_a_broker_and_a_member_with_the_same_partitions() -> None:
    slots = [f"m{place % 3}" for place in range(12)]  # round robin over three, as the leaders lie
    signals = slow_group(places=(2, 5, 8, 11), slots=slots)
    (cause,) = attribute(signals)

    assert (cause.label, cause.subject, dict(cause.alternatives), cause.is_proven) == (
        "member",
        "m2",
        {"broker": "2"},
        False,
    )


def test_what_one_member_left_is_no_proof_against_the_broker_that_leads_it() -> None:
    """It reads as fast as the others now: it hung, and drains what it left."""
    brokers = [2.0 if 6 <= place <= 8 else 0.0 for place in range(12)]
    signals = slow_group(brokers=brokers, consume=slower(12, 6, 7, 8, rate=200.0))

    assert causes(signals) == []


def test_hot_partitions_that_one_broker_leads_are_hot() -> None:
    arrival = [700.0 if place % 3 == 1 else 20.0 for place in range(12)]
    lag = [LAG if rate > 20 else 10.0 for rate in arrival]
    signals = slow_group(
        lag=lag,
        arrival=arrival,
        consume=[min(rate, 300.0) for rate in arrival],
        best_capacity=600.0,
    )

    assert causes(signals) == [("hot", "", (1, 4, 7, 10))]


def hot_group(
    arrival: float = 900.0, others: float = 50.0, best: float = 600.0, **fields: Any
) -> Signals:
    rates = [others] * 12
    rates[7] = arrival
    topic = topic_signals(
        lagging(12, 7),
        arrival=rates,
        consume=[min(rate, 450.0) for rate in rates],
        slots=spread_over(12, 4),
        shape="concentrated",
        history=fields.pop("history", {}),
    )
    return signals_of(topic, best_capacity=best, **fields)


@pytest.mark.parametrize(
    ("signals", "is_hot"),
    [
        (hot_group(), True),
        (hot_group(arrival=590.0, best=600.0), False),  # another owner has done as much
        (hot_group(arrival=590.0, best=500.0, capacity={"m2": 500.0}), True),
        # its owner was never busy, and 450 is 0.8 of the best
        (hot_group(arrival=500.0, best=560.0), True),
        (hot_group(arrival=500.0, best=560.0, busy=["m2"]), False),
        (hot_group(arrival=500.0, best=570.0), False),
        (hot_group(others=301.0), False),  # not three times the others
        (hot_group(others=300.0), True),
        # little, but 270 records in five minutes
        (hot_group(arrival=0.9, others=0.05, best=0.6), True),
        (hot_group(arrival=0.3, others=0.02, best=0.2), False),  # 90 of them may be chance
        (hot_group(best=np.nan), False),
        (
            hot_group(
                history={"arrival": np.where(np.arange(60) < 51, np.nan, 900.0) * np.ones((12, 1))}
            ),
            False,
        ),
        (
            hot_group(
                history={"arrival": np.where(np.arange(60) < 50, np.nan, 900.0) * np.ones((12, 1))}
            ),
            True,
        ),
    ],
)
def test_a_partition_is_hot_when_it_gets_more_than_any_owner_has_shown(
    signals: Signals, is_hot: bool
) -> None:
    assert causes(signals) == ([("hot", "", (7,))] if is_hot else [])


def test_two_causes_at_once_are_two_findings() -> None:
    arrival = [900.0 if place == 0 else 100.0 for place in range(12)]
    lag = lagging(12, 6, 7, 8, lag=20_000.0)
    lag[0] = 500_000.0
    consume = [450.0, *slower(12, 6, 7, 8)[1:]]

    signals = slow_group(
        lag=lag, arrival=arrival, consume=consume, seen={"m0": 600.0}, best_capacity=600.0
    )

    assert causes(signals) == [("hot", "", (0,)), ("member", "m2", (6, 7, 8))]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (800.0, [("member", "m2", (6, 7, 8))]),  # 500,000 records at 700/s more than come: in 714 s
        (600.0, []),  # in 1,000 s: it is most of the lag for longer than the drain target
    ],
)
def test_what_a_cause_that_is_over_has_left_hides_no_other(
    reads: float, expected: list[Any]
) -> None:
    lag = lagging(12, 6, 7, 8, lag=20_000.0)
    lag[0] = 500_000.0
    signals = slow_group(lag=lag, consume=[reads, *slower(12, 6, 7, 8)[1:]])

    assert causes(signals) == expected


def small_group(earlier_lag: float) -> Signals:
    lags = np.full((6, 60), 10.0)
    lags[2:4, -3:] = [[earlier_lag, LAG, LAG]] * 2
    return slow_group(
        3,
        6,
        (2, 3),
        history={"lag": lags, "lag_min": lags},
        busy=["m1"],
        lag=lagging(6, 2, 3),
        brokers=[0.0] * 6,
    )


def test_six_partitions_of_two_each_must_agree_for_two_windows_more() -> None:
    (cause,) = attribute(small_group(LAG))

    assert (cause.subject, cause.fit.is_small) == ("m1", True)
    assert causes(small_group(10.0)) == []


def moved_group(before: float = LAG, rate: float = 60.0, since: int = 10, **fields: Any) -> Signals:
    """p4 and p5 were m1's, with p3, and are m2's for `since` windows; p3 stayed."""
    slots = np.array([[slot] * 60 for slot in spread_over(12, 6)], object)
    slots[3:6, :-since] = "m1"
    lags = np.full((12, 60), 10.0)
    lags[3:6, 20:-since] = before
    lags[4:6, -since:] = LAG
    return slow_group(
        6,
        12,
        (4, 5),
        slots=spread_over(12, 6),
        lag=lagging(12, 4, 5),
        consume=slower(12, 4, 5, rate=rate),
        history={"slot": slots, "lag": lags, "consume": slower(12, 4, 5, rate=rate)},
        brokers=[0.0] * 12,
        **fields,
    )


def test_lag_that_follows_partitions_to_a_new_owner_is_the_partitions() -> None:
    (cause,) = attribute(moved_group())

    assert (cause.label, cause.partitions, cause.is_proven) == ("costly", (4, 5), True)


def test_partitions_of_an_owner_that_does_as_much_as_the_others_could_do_are_not_costly() -> None:
    # their capacity, none of them is busy now
    others = {f"m{number}": 130.0 for number in (0, 1, 3, 4, 5)}

    assert causes(moved_group(capacity=others)) == []
    assert causes(moved_group(capacity=dict.fromkeys(others, 140.0))) == [("costly", "", (4, 5))]


def test_lag_that_begins_with_the_new_owner_is_the_owners() -> None:
    assert causes(moved_group(before=10.0)) == [("member", "m2", (4, 5))]


def test_a_backlog_that_the_new_owner_drains_accuses_nobody() -> None:
    assert causes(moved_group(rate=140.0)) == []


def test_a_move_must_be_three_windows_old_to_show_anything() -> None:
    assert causes(moved_group(since=3)) == [("member", "m2", (4, 5))]
    assert causes(moved_group(since=4)) == [("costly", "", (4, 5))]


def test_a_move_that_has_proven_a_partition_is_remembered_while_it_lags_where_it_is() -> None:
    after, later = moved_group(), moved_group(since=60)
    known = Memory(costly=proven_costly(after))
    assert known.costly == (("orders", 4), ("orders", 5))
    assert from_json(known.to_json()) == known
    assert causes(later) == [("member", "m2", (4, 5))]  # the move has left the hour
    remembering = replace(later, memory=known)
    assert causes(remembering) == [("costly", "", (4, 5))]
    assert proven_costly(remembering) == known.costly
    moved_again = replace(moved_group(before=10.0), memory=known)
    assert causes(moved_again) == [("member", "m2", (4, 5))]
    assert proven_costly(moved_again) == ()


def costly_group(slots: list[str] | None, **fields: Any) -> Signals:
    return slow_group(places=(5,), slots=slots, brokers=[0.0] * 12, busy=["m1"], **fields)


def test_a_partition_slower_than_the_others_of_its_owner_is_costly() -> None:
    (cause,) = attribute(costly_group(spread_over(12, 4)))

    assert (cause.label, cause.partitions, cause.is_proven) == ("costly", (5,), True)


@pytest.mark.parametrize(("windows", "expected"), [(2, []), (3, [("costly", "", (5,))])])
def test_the_first_partition_of_an_owner_to_lag_is_not_costly_at_once(
    windows: int, expected: list[Any]
) -> None:
    lags = np.full((12, 60), 10.0)
    lags[5, -windows:] = LAG

    assert causes(costly_group(spread_over(12, 4), history={"lag": lags})) == expected


def test_an_owner_with_one_partition_may_be_slow_as_well() -> None:
    (cause,) = attribute(costly_group(spread_over(12, 12)))

    assert (cause.label, cause.is_proven, dict(cause.alternatives)) == (
        "costly",
        False,
        {"member": "m5"},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"consume": slower(12, 5, rate=98.3)},  # 510 records, and one commit is of 500
        # at commits of five minutes fifteen windows are looked at: 31,500 records, and one commit
        # is of 30,000
        {
            "consume": slower(12, 5, rate=65.0),
            "floor": 60_001.0,
            "interval": 300.0,
            "lag": lagging(12, 5, lag=7e4),
        },
    ],
)
def test_a_costly_partition_is_worked_slower_by_more_than_a_commit(change: dict[str, Any]) -> None:
    assert causes(costly_group(spread_over(12, 12), **change)) == [("costly", "", (5,))]


@pytest.mark.parametrize(
    "change",
    [
        {"arrival": slower(12, 5, rate=201.0), "consume": slower(12, 5)},  # it gets twice as much
        {"consume": slower(12, 5, rate=0.0)},  # it is stalled
        {"consume": slower(12, 5, rate=100.0)},  # it keeps up
        # 480 records in five minutes, and one commit is of 500
        {"consume": slower(12, 5, rate=98.4)},
        {
            "consume": slower(12, 5, rate=67.0),
            "floor": 60_001.0,
            "interval": 300.0,
            "lag": lagging(12, 5, lag=7e4),
        },
        {"lag": lagging(12, *range(5, 12))},  # so do more than half of them
    ],
)
def test_a_partition_is_not_costly(change: dict[str, Any]) -> None:
    assert causes(costly_group(spread_over(12, 12), **change)) == []
