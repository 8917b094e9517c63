"""Logical rebalances: which generations belong together, and when the row is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.analytics.logical import advance
from laggard.rebalance.analytics.result import Closed, Rebalance
from laggard.rebalance.analytics.state import RebalanceState, from_text, to_text
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import Commit, Generation, MemberFacts, PartitionFacts
from rebalance.fact_rows import (
    HERE,
    PARAMETERS,
    all_facts,
    assigned,
    at,
    commit,
    epoch,
    facts,
    generation,
    held,
    member,
    only,
    places,
    run,
)

ONE, TWO = member("1", "A0"), member("2", "A1")
BOTH = member("1", "A0", "A1")


def grouped(
    *events: Generation | Commit, partitions: Mapping[TopicPartition, PartitionFacts] | None = None
) -> list[tuple[int, ...]]:
    return [each.row.generations for each in run(events, partitions)[0]]


@pytest.mark.parametrize(
    ("sync", "joined_after", "expected"),
    [(1, 9.9, [(1, 2)]), (1, 10, [(1,), (2,)]), (8, 15.9, [(1, 2)]), (8, 16, [(1,), (2,)])],
)
def test_a_join_phase_that_ends_soon_after_goes_on_with_the_rebalance(
    sync: float, joined_after: float, expected: list[tuple[int, ...]]
) -> None:
    assert (
        grouped(
            generation(1, 0, [ONE], sync=sync), generation(2, joined_after + 0.5, [ONE], sync=0.5)
        )
        == expected
    )


@pytest.mark.parametrize(("seconds", "expected"), [(9, [(1, 2)]), (11, [(1,), (2,)])])
def test_without_a_state_timestamp_the_record_counts(
    seconds: float, expected: list[tuple[int, ...]]
) -> None:
    assert grouped(generation(1, 0, [ONE]), generation(2, seconds, [ONE], sync=None)) == expected


def test_a_group_that_never_rests_gets_a_row_every_ten_minutes() -> None:
    events = [generation(number, 4.0 * number, [ONE]) for number in range(1, 401)]
    closed = run(events, all_facts(["A0"], -5, arrival_rate=0.0))[0]
    assert [len(each.row.generations) for each in closed] == [151, 151, 98]
    assert [each.row.flags for each in closed] == [("merge_limit", "partial"), ("merge_limit",), ()]
    assert [each.row.cause for each in closed] == ["unknown", "leader_rejoin", "leader_rejoin"]


ARTICLE = {"A": 4}
FIRST = [
    member("1", "A0", "A3", topics=("A",), pending_revocation=()),
    member("2", "A1", topics=("A",), pending_revocation=()),
    member("3", "A2", topics=("A",), pending_revocation=()),
]


def cooperative(
    number: int, seconds: float, members: list[MemberFacts], **more: object
) -> Generation:
    return generation(number, seconds, members, assignor="cooperative-sticky", **more)


def test_a_cooperative_group_gives_the_partition_of_a_dead_member_away_in_one_generation() -> None:
    after = assigned("cooperative-sticky", ["1", "3"], ARTICLE, held(FIRST))
    assert set(held(after)["3"]) == {*places("A1", "A2")}
    row = run([cooperative(1, 0, FIRST), cooperative(2, 100, after)])[0][1].row
    assert (row.generations, row.moved, row.necessary, row.avoidable) == ((2,), 1, 1, 0)
    assert (row.cause, row.rebalance_mode) == ("member_left", "cooperative")


def test_a_cooperative_group_takes_a_member_back_in_two_generations_and_one_rebalance() -> None:
    two = assigned("cooperative-sticky", ["1", "3"], ARTICLE, held(FIRST))
    revoking = assigned("cooperative-sticky", ["1", "2", "3"], ARTICLE, held(two))
    whole = assigned("cooperative-sticky", ["1", "2", "3"], ARTICLE, held(revoking))
    assert [len(each.assigned or ()) for each in revoking] == [2, 0, 1]
    assert [len(each.assigned or ()) for each in whole] == [2, 1, 1]
    closed = run(
        [cooperative(1, 0, two), cooperative(2, 100, revoking), cooperative(3, 130, whole)]
    )[0]
    row = closed[1].row
    assert [each.row.generations for each in closed] == [(1,), (2, 3)]
    assert (row.moved, row.necessary, row.efficiency, row.cause) == (1, 1, 1.0, "member_join")
    assert (row.sync_seconds, row.ended_at, row.started_high) == (2, at(130), at(99))


def test_a_cooperative_group_grows_from_four_to_six() -> None:
    topic = {"A": 12}
    four = assigned("cooperative-sticky", ["1", "2", "3", "4"], topic, {})
    revoking = assigned("cooperative-sticky", ["1", "2", "3", "4", "5", "6"], topic, held(four))
    whole = assigned("cooperative-sticky", ["1", "2", "3", "4", "5", "6"], topic, held(revoking))
    names = [f"A{number}" for number in range(12)]
    moved = {place for each in four for place in each.assigned or ()} - {
        place for each in revoking for place in each.assigned or ()
    }
    commits = [
        commit(f"A{number}", 102 if ("A", number) not in moved else 115) for number in range(12)
    ]
    commits += [commit(f"A{number}", 107) for number in range(12) if ("A", number) not in moved]
    commits += [commit(f"A{number}", 112) for number in range(12) if ("A", number) not in moved]
    events = [
        cooperative(1, 0, four),
        cooperative(2, 100, revoking),
        cooperative(3, 106, whole),
        *commits,
    ]
    ordered = sorted(events, key=lambda each: each.at)
    row = run(ordered, all_facts(names, 97))[0][1].row
    assert (row.generations, row.moved, row.necessary, row.paused_partitions) == ((2, 3), 4, 4, 4)
    assert (row.pause_p50_seconds, row.pause_max_seconds) == (13, 13)


def test_partitions_that_nobody_took_over_are_waited_for_ten_minutes() -> None:
    revoking = [
        replace(ONE, pending_revocation=places("A1"), topics=("A",)),
        replace(TWO, assigned=(), topics=("A",)),
    ]
    opening = [cooperative(1, 0, [replace(BOTH, topics=("A",))]), cooperative(2, 100, revoking)]
    assert len(run(opening, until=699)[0]) == 1
    row = run(opening, all_facts(["A0", "A1"], -5, arrival_rate=0.0), until=700)[0][1].row
    assert (row.moved, row.status, row.flags) == (None, "partial", ("partial",))


def test_a_partition_that_never_had_an_owner_is_not_waited_for() -> None:
    members = [replace(ONE, pending_revocation=(), topics=("A",))]
    late = cooperative(2, 300, members, partitions_unassigned=6)
    assert grouped(cooperative(1, 0, members), late, cooperative(3, 340, members)) == [
        (1,),
        (2,),
        (3,),
    ]


def test_a_straggler_is_the_one_the_join_waited_for() -> None:
    three = [ONE, TWO, member("3", "A2")]
    events = [generation(1, 0, three), commit("A0", 1_000), commit("A2", 1_001), commit("A1", 995)]
    out = generation(2, 1_301, [ONE, member("3", "A1", "A2")])
    row = run([*events, out], all_facts(["A0", "A1", "A2"], -5))[0][1].row
    assert (row.straggler_slot, row.join_seconds, row.started_low) == (
        "app-2/10.0.0.2#0",
        300,
        at(1_000),
    )
    assert (row.started_est, row.started_high, row.rebalance_seconds) == (at(1_000), at(1_300), 301)
    quick = generation(2, 1_010, [ONE, member("3", "A1", "A2")])
    assert run([*events, quick], all_facts(["A0", "A1", "A2"], -5))[0][1].row.straggler_slot is None


def test_a_join_of_a_heartbeat_and_a_batch_has_no_straggler() -> None:
    short = [replace(each, rebalance_timeout_ms=10_000) for each in (ONE, TWO)]
    events = [generation(1, 0, short), commit("A0", 100), generation(2, 111, [replace(short[0])])]

    def straggler(gap: float) -> str | None:
        return run(events, all_facts(["A0", "A1"], -5, commit_gap_p95_seconds=gap))[0][
            1
        ].row.straggler_slot

    assert (straggler(8), straggler(5)) == (None, "app-2/10.0.0.2#0")


def test_a_begin_after_the_end_gives_no_length() -> None:
    """The epoch was written by a coordinator whose clock is ahead, and was Stable by the clock of
    the next one.
    """
    events = [epoch(1, 0, [BOTH], 0), epoch(2, 100, [BOTH, TWO]), epoch(2, 100, [ONE, TWO], 93)]
    row = run(events)[0][1].row
    assert (row.started_est, row.ended_at, row.rebalance_seconds) == (at(100), at(93), None)


def test_interrupted_rounds_are_counted() -> None:
    events = [generation(1, 0, [ONE]), generation(5, 100, [ONE, TWO], generation_gap=4)]
    row = run([*events, generation(6, 105, [ONE], generation_gap=2)])[0][1].row
    assert (row.generations, row.interrupted) == ((5, 6), 4)


def test_an_epoch_has_a_start_and_an_end() -> None:
    events = [epoch(1, 0, [BOTH], 0), epoch(2, 100, [BOTH, TWO]), epoch(2, 100, [ONE, TWO], 107)]
    row = run(events)[0][1].row
    assert (row.started_low, row.started_est, row.started_high, row.ended_at) == (
        at(100),
        at(100),
        at(100),
        at(107),
    )
    assert (row.rebalance_seconds, row.join_seconds, row.sync_seconds) == (7, None, None)
    assert (row.generations, row.moved, row.joined, row.cause) == ((2,), 1, ("2",), "member_join")


def test_epochs_are_one_rebalance_until_one_is_stable() -> None:
    two = [BOTH, replace(TWO, assigned=())]
    three = [ONE, TWO, member("3")]
    events = [epoch(1, 0, [BOTH], 0), epoch(2, 100, two), epoch(3, 103, three), epoch(2, 100, two)]
    closed = run(
        [*events, epoch(3, 103, three, 109), epoch(4, 110, three), epoch(4, 110, three, 111)]
    )[0]
    assert [each.row.generations for each in closed] == [(1,), (2, 3), (4,)]
    assert (closed[1].row.started_est, closed[1].row.ended_at) == (at(100), at(109))
    assert closed[1].row.joined == ("2", "3")


def test_an_epoch_pauses_what_moved_from_its_begin_on() -> None:
    events: list[Generation | Commit] = [
        epoch(1, 0, [BOTH], 0),
        commit("A0", 99),
        commit("A1", 99, 50),
    ]
    events += [epoch(2, 100, [BOTH, TWO]), commit("A0", 104), commit("A1", 101, 60)]
    events += [epoch(2, 100, [ONE, TWO], 107), commit("A0", 109), commit("A1", 113, 55)]
    row = run(events, all_facts(["A0", "A1"], -5))[0][1].row
    assert (row.paused_partitions, row.pause_max_seconds, row.records_replayed) == (1, 7, 5)


def test_an_epoch_reported_after_its_begin_leaves_the_pauses_unknown() -> None:
    events = [
        epoch(1, 0, [BOTH], 0),
        commit("A0", 104),
        commit("A1", 104),
        epoch(2, 100, [ONE, TWO], 107),
    ]
    row = run([*events, commit("A0", 109), commit("A1", 120)], all_facts(["A0", "A1"], -5))[0][
        1
    ].row
    assert (row.paused_partitions, row.pause_max_seconds, row.flags) == (
        1,
        None,
        ("pause_unknown",),
    )


LIFE: list[Generation | Commit] = [
    generation(1, 0, [ONE, TWO]),
    commit("A0", 98, 10),
    commit("A1", 97, 10),
    generation(2, 103, [BOTH]),
]


@pytest.mark.parametrize(
    ("until", "rows"),
    [(122, 1), (123, 2), (1e4, 2)],
)
def test_the_row_waits_until_no_generation_can_join_it(until: float, rows: int) -> None:
    events = [*LIFE, commit("A0", 106, 20), commit("A1", 106, 20)]
    assert len(run(events, all_facts(["A0", "A1"], -5), until=until)[0]) == rows


@pytest.mark.parametrize(("until", "rows"), [(702, 1), (703, 2)])
def test_the_row_waits_for_every_stopped_partition_and_gives_up_after_ten_minutes(
    until: float, rows: int
) -> None:
    closed, state = run([*LIFE, commit("A0", 106, 20)], all_facts(["A0", "A1"], -5), until=until)
    assert len(closed) == rows
    assert (state.open is None) is (rows == 2)


def test_what_is_not_known_when_it_gives_up_stays_null() -> None:
    row = run([*LIFE, commit("A0", 106, 20)], all_facts(["A0", "A1"], -5), until=703)[0][1].row
    assert (row.paused_partitions, row.pause_p50_seconds, row.pause_max_seconds, row.lag_after) == (
        2,
        3,
        None,
        None,
    )
    assert (row.status, row.flags, row.lag_before) == ("partial", ("pause_unknown",), 0)


def test_the_next_rebalance_ends_the_waiting() -> None:
    closed = run(
        [*LIFE, commit("A0", 106, 20), generation(3, 200, [ONE, TWO])], all_facts(["A0", "A1"], -5)
    )[0]
    assert [each.row.generations for each in closed] == [(1,), (2,), (3,)]
    assert (closed[1].row.pause_max_seconds, closed[2].row.pause_max_seconds) == (None, None)


def test_partitions_without_traffic_are_not_waited_for() -> None:
    quiet = all_facts(["A0", "A1"], -5, arrival_rate=0.0)
    assert len(run(LIFE, quiet, until=123)[0]) == 2


def test_a_new_group_starts_from_nobody() -> None:
    row = only(run([generation(0, 0, [], kind="create"), generation(1, 3, [ONE])])[0]).row
    assert (row.members_before, row.members_after, row.joined, row.cause) == (
        0,
        1,
        ("app-1/10.0.0.1#0",),
        "member_join",
    )


def test_the_last_member_leaves() -> None:
    row = run(
        [generation(1, 0, [ONE, TWO]), generation(2, 100, [])],
        all_facts(["A0", "A1"], -5),
        until=200,
    )[0][1].row
    assert (row.members_after, row.cause, row.moved, row.paused_partitions) == (
        0,
        "member_left",
        0,
        None,
    )


def test_a_static_member_that_returns_within_the_generation_is_no_rebalance() -> None:
    static = replace(TWO, group_instance_id="two")
    events = [
        generation(1, 0, [ONE, static]),
        generation(1, 50, [ONE, replace(static, member_id="2b")]),
    ]
    closed, state = run([*events, generation(2, 100, [ONE, replace(static, member_id="2b")])])
    assert [each.row.generations for each in closed] == [(1,), (2,)]
    assert closed[1].row.cause == "leader_rejoin"
    assert [each.member_id for each in (state.standing.members if state.standing else ())] == [
        "1",
        "2b",
    ]


def test_a_static_member_that_returns_before_the_row_is_written_is_not_replaced() -> None:
    one, two = replace(ONE, group_instance_id="one"), replace(TWO, group_instance_id="two")
    back = replace(one, member_id="1b")
    events = [generation(1, 0, [one, two]), generation(2, 100, [one]), generation(2, 105, [back])]
    first, second = run([*events, generation(3, 200, [back, two])])[0][1:]
    assert (first.row.cause, first.row.left, first.row.replaced) == ("static_expired", ("two",), ())
    assert (second.row.cause, second.row.joined, second.row.replaced) == (
        "static_return",
        ("two",),
        (),
    )


def test_an_upgrade_is_no_rebalance_and_the_next_epoch_starts_from_it() -> None:
    events = [generation(1, 0, [ONE, TWO]), generation(1, 50, [], kind="tombstone")]
    events += [
        epoch(1, 51, [ONE, TWO], kind="upgrade"),
        epoch(2, 60, [ONE]),
        epoch(2, 60, [BOTH], 61),
    ]
    closed = run(events)[0]
    assert [each.row.generations for each in closed] == [(1,), (2,)]
    assert (closed[1].row.left, closed[1].row.moved) == (("2",), 1)


def test_a_downgrade_is_followed_by_the_rebalance_of_the_departure_that_caused_it() -> None:
    events = [epoch(4, 0, [ONE, TWO], 0), epoch(4, 50, [], kind="tombstone")]
    events += [
        generation(4, 50, [ONE], kind="downgrade", assignor="range"),
        generation(5, 53, [BOTH]),
    ]
    closed = run(events)[0]
    assert [each.row.generations for each in closed] == [(4,), (5,)]
    row = closed[1].row
    assert (row.cause, row.left, row.moved, row.necessary) == (
        "member_left",
        ("app-2/10.0.0.2#0",),
        1,
        1,
    )


def test_a_group_that_empties_in_a_burst_has_no_pauses_and_waits_for_nobody() -> None:
    events = [generation(1, 0, [ONE, TWO]), generation(2, 100, [BOTH]), generation(3, 105, [])]
    closed = run(events, all_facts(["A0", "A1"], -5), until=130)[0]
    assert [each.row.generations for each in closed] == [(1,), (2, 3)]
    assert (closed[1].row.sync_seconds, closed[1].pauses) == (1, ())


def test_an_empty_generation_has_no_sync_phase() -> None:
    events = [generation(1, 0, [ONE]), generation(2, 100, [], sync=0), generation(3, 106, [TWO])]
    assert run(events)[0][1].row.sync_seconds == 1


def test_a_deleted_group_leaves_nothing_to_compare_with() -> None:
    closed = run(
        [generation(1, 0, [ONE]), generation(1, 50, [], kind="tombstone"), generation(1, 90, [TWO])]
    )[0]
    assert [each.row.cause for each in closed] == ["unknown", "unknown"]
    # same place in the log in this test only
    assert closed[0].row.rebalance_id == closed[1].row.rebalance_id
    later = run([generation(1, 90, [TWO], source_offset=5_000)])[0][0].row
    assert later.rebalance_id != closed[0].row.rebalance_id


def test_members_that_subscribe_differently_have_no_movement() -> None:
    closed = only(
        run(
            [generation(1, 0, [ONE, TWO]), generation(2, 100, [replace(BOTH, topics=("A",)), TWO])]
        )[0][1:]
    )
    assert closed.row.moved is None


def test_movement_of_different_subscriptions_is_null_but_the_moves_are_known() -> None:
    now = [member("1", topics=("A",)), member("2", "A0", "A1")]
    closed = only(run([generation(1, 0, [ONE, TWO]), generation(2, 100, now)])[0][1:])
    assert (closed.row.moved, closed.row.partitions, closed.row.efficiency) == (None, None, None)
    assert [(each.topic, each.partition) for each in closed.moves] == [("A", 0)]


def test_an_old_record_leaves_the_times_unknown() -> None:
    row = run(
        [generation(1, 0, [ONE]), generation(2, 100, [ONE, TWO], sync=None, record_version=1)]
    )[0][1].row
    times = (
        row.started_low,
        row.started_est,
        row.rebalance_seconds,
        row.join_seconds,
        row.sync_seconds,
    )
    assert times == (None,) * 5
    assert (row.flags, row.status, row.ended_at) == (
        ("old_record", "pause_unknown"),
        "partial",
        at(100),
    )


def test_a_row_has_the_columns_of_the_table() -> None:
    expected = """
        cluster group rebalance_id status
        started_low started_high started_est ended_at rebalance_seconds join_seconds
        sync_seconds generations interrupted rebalance_mode assignor cause necessity
        cause_posterior joined left replaced members_before members_after leader straggler_slot
        partitions moved necessary avoidable moved_ratio efficiency stateful paused_partitions
        pause_p50_seconds pause_p95_seconds pause_max_seconds paused_partition_seconds
        records_delayed records_replayed replay_bound lag_before lag_after unread_window_seconds
        coordinator live_read flags
    """
    assert [each.name for each in fields(Rebalance)] == expected.split()


def test_rows_are_those_of_one_rebalance_under_one_id() -> None:
    rows = [each.row for each in run(LIFE, all_facts(["A0", "A1"], -5))[0]]
    again = [each.row for each in run(LIFE, all_facts(["A0", "A1"], -5))[0]]
    other = [each.row for each in run(LIFE, surroundings=replace(HERE, group="refunds"))[0]]
    assert [each.rebalance_id for each in rows] == [each.rebalance_id for each in again]
    assert len({each.rebalance_id for each in (*rows, *other)}) == 4


def test_the_state_is_one_text() -> None:
    _, state = run(LIFE, all_facts(["A0", "A1"], -5), until=110)
    assert state.open is not None
    assert from_text(to_text(state)) == state
    assert to_text(state).count('"members"') == 2  # those before stand there once
    assert from_text(None) == RebalanceState()


def test_a_state_of_an_older_job_goes_on() -> None:
    _, state = run(LIFE, all_facts(["A0", "A1"], -5), until=110)
    older = json.loads(to_text(state))
    del older["open"]["values"]["pauses"]["values"]["stopped_seconds"]
    assert from_text(json.dumps(older)) == state


NAMES = ("A0", "A1", "A2", "A3")


@st.composite
def lives(draw: st.DrawFn) -> list[Generation | Commit]:
    """A group's records in log order: generations of changing members, commits between them."""
    events: list[Generation | Commit] = []
    now, number, kind = 0.0, 0, draw(st.sampled_from(["range", "cooperative-sticky", "uniform"]))
    members: list[MemberFacts] = []
    offset = 0
    for _ in range(draw(st.integers(1, 14))):
        now += draw(st.sampled_from([0.5, 3, 9, 14, 40, 650]))
        if draw(st.integers(0, 2)):
            offset += draw(st.integers(-1, 5))
            events.append(
                commit(draw(st.sampled_from(NAMES)), now, offset, draw(st.integers(0, 9)))
            )
            continue
        number += draw(st.sampled_from([1, 1, 1, 3]))
        ids = draw(st.lists(st.sampled_from("1234"), unique=True, max_size=3))
        assignor = "cooperative-sticky" if kind == "uniform" else kind
        members = assigned(assignor, sorted(ids), {"A": 4}, held(members))
        if kind == "uniform":
            events.append(epoch(number, now, members))
            if members and draw(st.booleans()):
                now += draw(st.sampled_from([0.5, 3, 20]))
                events.append(
                    epoch(number, events[-1].at.timestamp() - at(0).timestamp(), members, now)
                )
        else:
            now += 1
            events.append(
                generation(
                    number, now, members, sync=draw(st.sampled_from([0.5, 6])), assignor=kind
                )
            )
    return events


def in_ticks(events: Sequence[Generation | Commit], cuts: Sequence[int]) -> list[Closed]:
    """The events cut into batches; between two batches the state is text and the partitions are
    rows.
    """
    known = all_facts(NAMES, -5)
    text: str | None = None
    closed: list[Closed] = []
    for first, last in zip([0, *cuts], [*cuts, len(events)], strict=True):
        batch = events[first:last]
        # as far as all is read: up to just before the first record of the next batch
        until = events[last].at - timedelta(milliseconds=1) if last < len(events) else events[-1].at
        found, state = advance(from_text(text), batch, known, HERE, until, PARAMETERS)
        text = to_text(state)
        closed += found
        for each in batch:
            if isinstance(each, Commit):
                place = (each.topic, each.partition)
                old = known[place]
                has_moved = (
                    old.commit is None or each.committed_offset > old.commit.committed_offset
                )
                known[place] = replace(
                    old, commit=each, progressed_at=each.at if has_moved else old.progressed_at
                )
    found, _ = advance(from_text(text), [], known, HERE, at(1e6), PARAMETERS)
    return closed + found


@given(lives(), st.data())
def test_no_cut_into_batches_changes_a_row(
    events: list[Generation | Commit], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=6)))
    expected, _ = advance(RebalanceState(), events, all_facts(NAMES, -5), HERE, at(1e6), PARAMETERS)
    assert [asdict(each) for each in in_ticks(events, cuts)] == [asdict(each) for each in expected]


@given(lives())
def test_every_generation_is_in_one_rebalance(events: list[Generation | Commit]) -> None:
    reported = [each.generation for each in events if isinstance(each, Generation)]
    closed, state = run(events, all_facts(NAMES, -5), until=1e6)
    found = [number for each in closed for number in each.row.generations]
    assert [*found, *(state.open.generations if state.open else ())] == list(
        dict.fromkeys(reported)
    )


@given(lives())
def test_rows_keep_what_they_promise(events: list[Generation | Commit]) -> None:
    for each in run(events, all_facts(NAMES, -5), until=1e6)[0]:
        row = each.row
        if row.started_low and row.started_est and row.started_high:
            assert row.started_low <= row.started_est <= row.started_high <= row.ended_at
        if row.moved is not None and row.necessary is not None and row.moved >= row.necessary:
            assert row.moved == row.necessary + (row.avoidable or 0)
        pauses = (row.pause_p50_seconds, row.pause_p95_seconds, row.pause_max_seconds)
        known = [pause for pause in pauses if pause is not None]
        assert known == sorted(known)
        assert (row.cause_posterior is None) is (not each.departures)


def test_facts_of_one_partition_do_not_reach_another() -> None:
    partitions = {
        **all_facts(["A0"], 98),
        places("A1")[0]: facts("A1", 98, commit_interval_seconds=None),
    }
    row = run(
        [generation(1, 0, [ONE, TWO]), generation(2, 103, [BOTH]), commit("A0", 106)], partitions
    )[0][1].row
    assert (row.paused_partitions, row.pause_p50_seconds, row.pause_max_seconds) == (2, 3, None)


def test_a_generation_at_the_very_moment_of_settling_still_joins() -> None:
    assert grouped(generation(1, 0, [ONE]), generation(2, 20, [ONE], sync=11)) == [(1, 2)]
    assert grouped(generation(1, 0, [ONE]), generation(2, 20.1, [ONE], sync=11.1)) == [(1,), (2,)]


def test_a_partition_of_a_topic_that_nobody_wants_any_more_is_not_waited_for() -> None:
    before = [member("1", "A0", "B0", pending_revocation=())]
    now = [member("1", "A0", topics=("A",), pending_revocation=places("B0"))]
    row = run([cooperative(1, 0, before), cooperative(2, 100, now)], until=120)[0][1].row
    assert (row.cause, row.moved, row.members_after) == ("subscription_change", 0, 1)


def test_commits_between_two_rounds_do_not_end_the_pause() -> None:
    events = [generation(1, 0, [ONE, TWO]), commit("A0", 98), generation(2, 103, [BOTH])]
    events += [commit("A0", 106), generation(3, 112, [ONE, TWO]), commit("A0", 120)]
    row = run(events, all_facts(["A0"], -5))[0][1].row
    assert (row.generations, row.pause_p50_seconds) == ((2, 3), (106 - 98 - 5) + (120 - 106 - 5))


def test_history_is_not_waited_for() -> None:
    events = [generation(1, 0, [ONE], live_read=False), generation(2, 100, [ONE], live_read=False)]
    assert len(run(events, all_facts(["A0"], -5), until=120)[0]) == 2


def test_different_subscriptions_before_leave_the_movement_unknown() -> None:
    before = [replace(ONE, topics=("A",)), TWO]
    assert run([generation(1, 0, before), generation(2, 100, [ONE, TWO])])[0][1].row.moved is None


def test_a_partition_that_nobody_wants_any_more_does_not_pause() -> None:
    now = [member("1", "A0", topics=("A",))]
    events = [
        generation(1, 0, [member("1", "A0", "B0")]),
        generation(2, 103, now),
        commit("A0", 106),
    ]
    row = run(events, all_facts(["A0", "B0"], 98), until=130)[0][1].row
    assert (row.paused_partitions, row.pause_max_seconds) == (1, 3)
