"""Logical rebalances, the time they take, storms and interrupted generations."""

from __future__ import annotations

import math
from dataclasses import replace

from diagnosis.rebalance_rows import NOW, Life, at, pods, rolled
from laggard.diagnosis.history.frames import GroupFrame
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.rebalances import (
    Spans,
    Storm,
    find_storm,
    interrupted_rebalances,
    logical_rebalances,
    stragglers,
    time_in_rebalance,
)

ALL = pods(1, 2, 3, 4)
LIMITS = Parameters()


def storm_in(frame: GroupFrame, explained: Spans = ()) -> Storm:
    return find_storm(frame, logical_rebalances(frame), LIMITS, explained)


def share_in(frame: GroupFrame, explained: Spans = ()) -> float:
    return time_in_rebalance(frame, logical_rebalances(frame), explained)


def test_generations_stand_for_a_rebalance_until_its_row_is_written() -> None:
    life = Life().generation(100, *ALL).generation(3000, *ALL[:3]).generation(3400, *ALL, row=False)
    found = logical_rebalances(life.frame())
    assert [(each.ended_at, each.rebalance_id) for each in found] == [
        (at(100), "r1"),
        (at(3000), "r2"),
        (at(3400), ""),
    ]


def test_generations_close_to_each_other_are_one_rebalance() -> None:
    life = (
        Life()
        .generation(3400, *ALL, row=False)
        .generation(3409, *ALL, row=False)
        .generation(3425, *ALL, row=False)
    )
    assert [(each.ended_at, each.generations) for each in logical_rebalances(life.frame())] == [
        (at(3409), 2),
        (at(3425), 1),
    ]


def test_history_read_while_catching_up_is_no_rebalance() -> None:
    life = Life()
    for second in range(3010, 3600, 60):
        life.generation(second, *ALL, live_read=False)
    assert logical_rebalances(life.frame()) == ()
    assert storm_in(life.frame()).because == ()


def test_time_in_rebalance_is_the_union_of_what_lies_in_ten_minutes() -> None:
    life = Life()
    life.generation(3030, *ALL, start=2970)  # 30 s of it lie in the range
    life.generation(3200, *ALL, start=3170)
    life.generation(3260, *ALL, start=3190)  # overlaps by 10 s
    assert share_in(life.frame()) == (30 + 30 + 60) / 600


def test_the_rebalance_under_way_counts_up_to_now() -> None:
    life = Life().generation(3200, *ALL, start=3170)
    assert share_in(life.frame(rebalancing_since=at(3540))) == (30 + 60) / 600


def test_a_rebalance_that_has_ended_but_waits_for_its_pauses_does_not_go_on() -> None:
    life = Life().generation(3200, *ALL, row=False)
    assert share_in(life.frame(rebalancing_since=at(3170))) == 30 / 600


def test_time_in_rebalance_is_unknown_where_a_begin_is_or_the_group_was_not_watched() -> None:
    life = Life().generation(3200, *ALL, of_row={"started_est": None})
    assert math.isnan(share_in(life.frame()))
    assert math.isnan(share_in(Life().frame(time_in_rebalance_ratio=None)))


def storm_of(times: list[float], seconds: float = 1.0) -> tuple[str, ...]:
    life = Life().generation(10, *ALL)
    for second in times:
        life.generation(second, *ALL, start=second - seconds)
    return storm_in(life.frame()).because


def test_five_rebalances_in_ten_minutes_are_a_storm_and_four_are_none() -> None:
    assert storm_of([3010, 3130, 3250, 3370, 3490]) == ("count",)
    assert storm_of([2990, 3130, 3250, 3370, 3490]) == ()


def test_members_that_bring_an_empty_group_to_life_stop_nobody() -> None:
    life = Life()
    for second in (3100, 3200, 3300):
        life.generation(second, *ALL).generation(second + 50)
    assert storm_in(life.frame()).rebalances == 3


def test_a_fifth_of_the_time_in_rebalances_is_a_storm() -> None:
    assert storm_of([3100, 3300, 3500], seconds=40) == ("ratio",)
    assert storm_of([3100, 3300, 3500], seconds=39) == ()


def test_one_long_join_is_no_storm() -> None:
    assert storm_of([3500], seconds=300) == ()


def test_four_rebalances_nearly_end_to_end_are_a_storm() -> None:
    assert storm_of([3400, 3430, 3460, 3490], seconds=11) == ("mtbr",)
    assert storm_of([3400, 3430, 3460, 3490], seconds=10) == ()


def test_two_hundred_generations_of_three_seconds_are_a_storm_though_one_rebalance() -> None:
    life = Life().generation(10, *ALL)
    for number in range(200):
        life.generation(3000 + 3 * number, *ALL, row=False)
    storm = storm_in(life.frame(rebalancing_since=at(2999)))
    assert (storm.rebalances, storm.generations, storm.because) == (1, 200, ("ratio",))


def interrupted(life: Life) -> list[int]:
    return [
        each.interrupted
        for each in interrupted_rebalances(logical_rebalances(life.frame()), at(NOW), LIMITS)
    ]


def test_interrupted_generations_are_the_gaps_of_half_an_hour() -> None:
    life = Life().generation(1700, *ALL, generation_gap=5).generation(3100, *ALL, generation_gap=3)
    assert interrupted(life) == [2]
    assert interrupted(Life(kind="epoch").generation(3100, *ALL, generation_gap=3)) == []


def test_a_gap_in_history_is_no_interruption() -> None:
    assert interrupted(Life().generation(3100, *ALL, generation_gap=3, live_read=False)) == []


def test_rounds_cut_short_by_a_start_count_once_the_group_starts_again_and_again() -> None:
    life = Life().generation(10, *ALL)
    for second in (1900, 2060, 2220):
        life.generation(second).generation(second + 30, *ALL, generation_gap=4)
    assert interrupted(life) == [3, 3]


def test_a_straggler_is_named_with_the_length_of_the_join() -> None:
    life = Life().generation(3300, *ALL[:3], start=3000, of_row={"straggler_slot": ALL[3]})
    assert stragglers(logical_rebalances(life.frame()), at(NOW), 1800) == [(ALL[3], 300.0, "r1")]
    assert stragglers(logical_rebalances(replace(life.frame(), rebalances=())), at(NOW), 1800) == []


def test_rebalances_of_a_deploy_make_no_storm() -> None:
    frame = rolled().frame(now=3460, time_in_rebalance_ratio=0.0)
    spans = [(at(3200), at(3340))]
    assert (storm_in(frame).rebalances, storm_in(frame, spans).rebalances) == (8, 0)
    assert (share_in(frame), share_in(frame, spans)) == (8 / 600, 0.0)
    # the one that ends at 3260 began before
    assert storm_in(frame, [(at(3200), at(3259.5))]).rebalances == 4


def test_the_generation_left_by_the_first_rebalance_of_the_day_is_none_of_it() -> None:
    life = Life().generation(-90_000, *ALL, row=False).generation(3400, *ALL[:3], row=False)
    (found,) = logical_rebalances(life.frame(rebalancing_since=at(3380)))
    assert (found.started_at, found.ended_at, found.is_first) == (at(3380), at(3400), False)
