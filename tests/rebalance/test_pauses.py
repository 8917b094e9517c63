"""Pauses: what each partition lost, by the gaps between its commits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.analytics.pauses import (
    Cost,
    PartitionPause,
    begin_pause,
    measure_cost,
    nearest_rank,
)
from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.facts import Commit, PartitionFacts
from rebalance.fact_rows import (
    all_facts,
    assigned,
    at,
    commit,
    facts,
    generation,
    held,
    member,
    only,
    places,
    run,
)

SIX = ("A0", "A1", "A2", "A3", "A4", "A5")
IDS = ("1", "2", "3")


def over(
    name: str = "A0", *, gap: float = 9.0, lag_after: int = 0, offset: int = 1, **fields: object
) -> PartitionPause:
    """A pause from a commit at second 0 to one after a gap."""
    begun = begin_pause(places(name)[0], facts(name, 0, **fields), at(1))
    return begun.after(commit(name, gap, offset, lag_after), is_after_end=True)


def cost(*pauses: PartitionPause, moved: tuple[str, ...] = (), mode: str | None = "eager") -> Cost:
    return measure_cost(
        pauses,
        moved=frozenset(places(*moved)),
        rebalance_mode=mode,
        started_est=at(4),
        closed_at=at(600),
    )


def test_a_pause_is_the_gap_beyond_the_commit_interval() -> None:
    assert over(gap=12).seconds == 7
    assert over(gap=3).seconds == 0


@pytest.mark.parametrize(
    "unknown",
    [
        {"commit": None},
        {"commit_interval_seconds": None},
        {"arrival_rate": None},
        {"arrival_rate": 0},
        {"lag": None},
    ],
)
def test_a_pause_is_unknown_without_traffic_commit_or_interval(unknown: dict[str, object]) -> None:
    pause = over(**({"arrival_rate": 0.0} if "lag" in unknown else {}), **unknown)
    assert (pause.seconds, pause.is_awaited) == (None, False)


@pytest.mark.parametrize(("unseen", "expected"), [(0, 7), (1, 2), (2, 0)])
def test_commits_in_between_took_an_interval_each(unseen: int, expected: float) -> None:
    begun = begin_pause(places("A0")[0], facts("A0", 0), at(1))
    assert (
        begun.after(replace(commit("A0", 12, 3), unseen=unseen), is_after_end=True).seconds
        == expected
    )


def test_lag_without_arrivals_is_traffic() -> None:
    assert over(arrival_rate=0.0, lag=3).seconds == 4


def test_a_commit_of_after_the_begin_is_not_the_last_one_before() -> None:
    assert begin_pause(("A", 0), facts("A0", 5), at(1)).last_before is None


def test_a_rebalance_of_two_rounds_sums_what_stood_still() -> None:
    pause = begin_pause(("A", 0), facts("A0", 0), at(1))
    first = pause.after(commit("A0", 8), is_after_end=True)
    second = first.after(commit("A0", 13), is_after_end=True).going_on(None, at(14))
    assert second.after(commit("A0", 25), is_after_end=True).seconds == (8 - 5) + (25 - 13 - 5)


def test_commits_that_move_nothing_do_not_end_a_pause() -> None:
    """At 100/s and a commit each 5 s, 500 records wait where all is well."""
    pause = begin_pause(("A", 0), facts("A0", 0), at(1))
    for seconds, lag in ((6, 501), (11, 1_001)):
        pause = pause.after(commit("A0", seconds, 0, lag), is_after_end=True)
        assert (pause.seconds, pause.is_awaited) == (None, True)
    assert pause.after(commit("A0", 16, 40, 1_400), is_after_end=True).seconds == 11


@pytest.mark.parametrize("lag", [500, None])
def test_a_commit_that_had_nothing_to_move_ends_a_pause(lag: int | None) -> None:
    pause = begin_pause(("A", 0), facts("A0", 0), at(1))
    assert pause.after(commit("A0", 8, 0, lag), is_after_end=True).seconds == 3


@pytest.mark.parametrize(
    ("given_at", "given_up_at", "expected"),
    [(10, 12, 3), (10, 15.5, 0), (None, 12, 0)],
    ids=["on revocation", "in its interval", "not eager"],
)
def test_nobody_reads_between_giving_up_and_the_next_generation(
    given_at: float | None, given_up_at: float, expected: float
) -> None:
    """Rounds of a few seconds: each gap is shorter than the commit interval."""
    pause = begin_pause(("A", 0), facts("A0", 8), at(9)).after(
        commit("A0", given_up_at, 1), is_after_end=True
    )
    going = pause.going_on(None if given_at is None else at(given_at), at(15))
    assert (
        going.after(commit("A0", given_up_at + 4, 2), is_after_end=True).seconds
        == expected + pause.excess_seconds
    )


def test_a_commit_before_its_time_that_moves_nothing_of_what_waited_ends_no_pause() -> None:
    """At 100/s, 250 wait 2 s after a commit that left 50: the member that gives up again has read
    none of them.
    """
    pause = begin_pause(("A", 0), facts("A0", 0), at(1)).going_on(at(1), at(1))
    again = pause.after(commit("A0", 2, 0, 250), is_after_end=True)
    assert (again.seconds, again.is_awaited) == (None, True)
    assert (
        again.going_on(at(1), at(4)).after(commit("A0", 6, 90, 0), is_after_end=True).seconds == 4
    )
    # no more than came since
    assert pause.after(commit("A0", 2, 0, 200), is_after_end=True).is_over


def test_the_cost_of_two_partitions() -> None:
    found = cost(
        over("A0", gap=12, lag_after=700), over("A1", gap=7, lag_after=50, arrival_rate=10.0)
    )
    assert found == Cost(
        paused_partitions=2,
        pause_p50_seconds=2,
        pause_p95_seconds=7,
        pause_max_seconds=7,
        paused_partition_seconds=9,
        records_delayed=720,
        records_replayed=0,
        replay_bound=800,
        lag_before=0,
        lag_after=750,
        seconds=(2, 7),
    )


def test_the_replay_bound_is_what_was_read_since_the_last_commit() -> None:
    assert cost(over(consume_rate=200.0)).replay_bound == 800
    assert cost(over(consume_rate=None)).replay_bound is None


def test_records_are_replayed_where_the_first_commit_after_lies_below_the_last_before() -> None:
    last = commit("A0", 0, offset=1_000)
    assert (
        cost(
            over(commit=last, offset=940), over("A1", commit=commit("A1", 0, 5), offset=9)
        ).records_replayed
        == 60
    )


def test_a_partition_that_does_not_commit_again_makes_only_what_needs_it_unknown() -> None:
    waiting = begin_pause(("A", 2), facts("A2", 0), at(1))
    found = cost(over("A0", gap=6), over("A1", gap=7), waiting)
    assert (found.paused_partitions, found.pause_p50_seconds) == (3, 2)
    unknown = (
        found.pause_p95_seconds,
        found.pause_max_seconds,
        found.paused_partition_seconds,
        found.lag_after,
    )
    assert unknown == (None,) * 4
    assert (found.records_delayed, found.records_replayed, found.is_complete) == (None, None, False)


def test_without_traffic_there_is_no_cost() -> None:
    assert cost(over(arrival_rate=0.0)) == Cost()
    assert cost(over(arrival_rate=None)) == Cost(is_complete=False)


def test_a_cooperative_rebalance_pauses_what_moved_and_what_stood_for_an_interval() -> None:
    pauses = [over("A0", gap=6), over("A1", gap=6), over("A2", gap=10.5)]
    assert cost(*pauses, moved=("A0",), mode="cooperative").paused_partitions == 2
    assert cost(*pauses, moved=("A0",), mode="eager").paused_partitions == 3


def test_a_cooperative_rebalance_that_moves_nothing_pauses_nothing() -> None:
    found = cost(over(gap=6), mode="cooperative")
    assert (found.paused_partitions, found.pause_max_seconds, found.records_delayed) == (0, 0.0, 0)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, 2), (0.95, 4), (1.0, 4), (0.25, 1)],
)
def test_percentiles_are_nearest_rank(share: float, expected: float) -> None:
    assert nearest_rank([4, 1, 3, 2], share) == expected


@given(
    st.lists(st.floats(0, 100), min_size=1), st.integers(0, 5), st.sampled_from([0.5, 0.95, 1.0])
)
def test_an_unknown_pause_is_taken_for_the_longest(
    known: list[float], unknown: int, share: float
) -> None:
    found = nearest_rank([*known, *[None] * unknown], share)
    expected = nearest_rank([*known, *[1_000.0] * unknown], share)
    assert found == (None if expected == 1_000.0 else expected)


def when_one_of_three_leaves(assignor: str) -> Closed:
    """Six partitions with traffic; commits each 5 s, those that stop miss 8 s."""
    before = assigned(assignor, IDS, {"A": 6}, {})
    after = assigned(assignor, IDS[:2], {"A": 6}, held(before))
    kept = {place for each in IDS[:2] for place in held(after)[each] if place in held(before)[each]}
    resumed = [
        Commit(*place, 100, at(105 if assignor != "range" and place in kept else 111), 0)
        for place in places(*SIX)
    ]
    events = [
        generation(1, 0, before, assignor=assignor),
        generation(2, 103, after, assignor=assignor),
        *sorted(resumed, key=lambda each: each.at),
    ]
    return only(run(events, all_facts(SIX, 99.5), until=700)[0][1:])


def test_an_eager_rebalance_pauses_the_whole_group() -> None:
    row = when_one_of_three_leaves("range").row
    assert (row.paused_partitions, row.pause_p50_seconds, row.pause_max_seconds) == (6, 6.5, 6.5)
    assert (row.records_delayed, row.paused_partition_seconds) == (6 * 650, 6 * 6.5)


def test_a_cooperative_rebalance_pauses_what_moves() -> None:
    row = when_one_of_three_leaves("cooperative-sticky").row
    assert (row.moved, row.paused_partitions, row.pause_max_seconds) == (2, 2, 6.5)


def test_nothing_of_history_is_evaluated() -> None:
    events = [
        generation(1, 0, [member("1", "A0")], live_read=False),
        generation(2, 100, [member("2", "A0")], live_read=False),
        commit("A0", 120),
    ]
    row = run(events, all_facts(["A0"], 98))[0][1].row
    assert (row.paused_partitions, row.pause_max_seconds, row.records_delayed, row.lag_before) == (
        None,
    ) * 4
    assert (row.joined, row.left, row.moved, row.members_before, row.cause) == (
        None,
        None,
        None,
        None,
        "unknown",
    )
    assert (row.status, row.flags) == ("partial", ("bootstrap",))


@given(st.permutations([over(name, gap=6 + number) for number, name in enumerate(SIX)]))
def test_the_order_of_partitions_changes_nothing(pauses: list[PartitionPause]) -> None:
    expected = cost(*[over(name, gap=6 + number) for number, name in enumerate(SIX)])
    assert cost(*pauses) == expected


def test_a_partition_that_nothing_is_known_of_stays_unknown() -> None:
    assert PartitionFacts().has_traffic is None
    assert replace(facts("A0", 0), arrival_rate=0.0).has_traffic is False
