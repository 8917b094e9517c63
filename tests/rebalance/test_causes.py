"""Causes: why a rebalance happened, why a member left, and whether it had to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.analytics.causes import find_necessity
from laggard.rebalance.analytics.departures import Departure
from laggard.rebalance.analytics.posterior import (
    LIKELIHOOD,
    PRIOR,
    REASONS,
    claim_reason,
    find_posterior,
    gather_evidence,
    mix,
    two_best,
)
from laggard.rebalance.analytics.result import Rebalance
from laggard.rebalance.facts import Commit, Generation, MemberFacts, Surroundings
from rebalance.fact_rows import (
    HERE,
    PARAMETERS,
    all_facts,
    at,
    commit,
    epoch,
    generation,
    member,
    run,
)

ONE, TWO, THREE = member("1", "A0"), member("2", "A1"), member("3", "A2")
EXPIRED = replace(TWO, group_instance_id="static")
RESTARTED = replace(ONE, group_instance_id="another")


def last_row(*events: Generation | Commit, surroundings: Surroundings = HERE) -> Rebalance:
    return run(events, surroundings=surroundings)[0][-1].row


def cause_of(
    before: Sequence[MemberFacts],
    now: Sequence[MemberFacts],
    surroundings: Surroundings = HERE,
    **fields: object,
) -> str:
    """Cause of a rebalance that begins at second 1000."""
    events = [generation(1, 0, before), generation(2, 1_001, now, **fields)]
    return last_row(*events, surroundings=surroundings).cause


def around(**times: float) -> Surroundings:
    return replace(HERE, **{name: at(seconds) for name, seconds in times.items()})


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([ONE], [ONE, TWO], "member_join"),
        ([ONE, TWO], [ONE], "member_left"),
        ([ONE, TWO], [], "member_left"),
        ([], [ONE], "member_join"),
        ([ONE, TWO], [ONE, THREE], "replacement"),
        ([ONE, TWO], [ONE, replace(TWO, member_id="2b")], "replacement"),
        ([ONE, TWO], [ONE, TWO], "leader_rejoin"),
        ([ONE, EXPIRED], [ONE], "static_expired"),
        ([RESTARTED, EXPIRED], [replace(RESTARTED, member_id="1b")], "static_expired"),
        ([RESTARTED, TWO], [replace(RESTARTED, member_id="1b")], "member_left"),
        ([RESTARTED], [replace(RESTARTED, member_id="1b"), TWO], "member_join"),
        ([ONE, EXPIRED, THREE], [ONE], "member_left"),
        ([ONE, replace(TWO, topics=("A",))], [ONE, TWO], "subscription_change"),
        ([ONE, replace(TWO, topics=None)], [ONE, TWO], "leader_rejoin"),
    ],
    ids=lambda each: each if isinstance(each, str) else str(len(each)),
)
def test_the_members_tell_the_cause(
    before: list[MemberFacts], now: list[MemberFacts], expected: str
) -> None:
    assert cause_of(before, now) == expected


def test_another_assignor_is_the_cause() -> None:
    assert cause_of([ONE, TWO], [ONE, TWO], assignor="cooperative-sticky") == "assignor_change"


@pytest.mark.parametrize(
    ("changed", "expected"), [(941, "coordinator_failover"), (939, "leader_rejoin")]
)
def test_a_new_coordinator_shortly_before_is_the_cause(changed: float, expected: str) -> None:
    assert cause_of([ONE, TWO], [ONE, TWO], around(coordinator_changed_at=changed)) == expected


def test_a_new_coordinator_goes_on_with_an_epoch() -> None:
    events = [epoch(4, 0, [ONE, TWO], 0), epoch(5, 100, [ONE, TWO], 102)]
    assert last_row(*events, surroundings=around(coordinator_changed_at=90)).cause == "unknown"


def test_a_new_coordinator_does_not_explain_other_members() -> None:
    assert cause_of([ONE, TWO], [ONE], around(coordinator_changed_at=990)) == "member_left"


@pytest.mark.parametrize(
    ("added", "partitions", "expected"),
    [
        (701, ("A0", "A2"), "partitions_added"),
        (699, ("A0", "A2"), "leader_rejoin"),
        (990, ("A0",), "leader_rejoin"),
    ],
)
def test_new_partitions_are_the_cause_where_they_are_handed_out(
    added: float, partitions: tuple[str, ...], expected: str
) -> None:
    now = [member("1", *partitions), TWO]
    assert cause_of([ONE, TWO], now, around(partitions_added_at=added)) == expected


def test_a_static_member_that_returns_is_distinguished_from_a_new_one() -> None:
    expiry = [generation(1, 0, [ONE, EXPIRED]), generation(2, 100, [ONE])]
    back = replace(EXPIRED, member_id="2b")
    assert last_row(*expiry, generation(3, 130, [ONE, back])).cause == "static_return"
    assert last_row(*expiry, generation(3, 701, [ONE, back])).cause == "member_join"
    assert (
        last_row(*expiry, generation(3, 130, [ONE, replace(back, group_instance_id="x")])).cause
        == "member_join"
    )


@pytest.mark.parametrize(("tell", "new_id"), [(generation, "2b"), (epoch, "2b"), (epoch, "2")])
@pytest.mark.parametrize(
    ("others", "joined", "expected"),
    [([], [], "static_expired"), ([THREE], [], "member_left"), ([], [THREE], "replacement")],
)
def test_a_static_member_that_one_generation_of_the_rebalance_lacks_had_expired(
    tell: Any, new_id: str, others: list[MemberFacts], joined: list[MemberFacts], expected: str
) -> None:
    """A member of a KIP-848 group rejoins under the id it had; one that restarts in time is never
    missing.
    """
    back = replace(EXPIRED, member_id=new_id)
    events = [
        tell(1, 0, [ONE, EXPIRED, *others]),
        tell(2, 100, [ONE]),
        tell(3, 103, [ONE, back, *joined]),
    ]
    if tell is epoch:
        events = [
            replace(events[0], stable_at=at(0)),
            *events[1:],
            replace(events[2], stable_at=at(105)),
        ]
    closed = run(events)[0][-1]
    assert (closed.row.generations, closed.row.cause) == ((2, 3), expected)
    assert [each.returned for each in closed.departures if each.slot == "static"] == ["same_host"]


@pytest.mark.parametrize("tell", [generation, epoch])
def test_a_static_member_that_no_record_lacks_may_have_restarted_in_time(tell: Any) -> None:
    events = [tell(1, 0, [ONE, EXPIRED]), tell(2, 100, [ONE, replace(EXPIRED, member_id="2b")])]
    closed = run(
        events if tell is generation else [replace(each, stable_at=each.at) for each in events]
    )[0][-1]
    assert (closed.row.cause, closed.departures) == ("unknown", ())


@pytest.mark.parametrize("staying", [[], [ONE]])
def test_no_leader_asks_for_a_rebalance_in_which_somebody_comes_and_goes(
    staying: list[MemberFacts],
) -> None:
    events = [
        generation(1, 0, staying),
        generation(2, 100, [*staying, TWO]),
        generation(3, 103, staying),
    ]
    row = last_row(*events)
    assert (row.generations, row.joined, row.left, row.cause) == ((2, 3), (), (), "unknown")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(600, "streams_probing"), (670, "leader_rejoin")]
)
def test_streams_probe_every_ten_minutes(seconds: float, expected: str) -> None:
    events = [
        generation(1, 0, [ONE], assignor="stream"),
        generation(2, seconds, [ONE], assignor="stream"),
    ]
    row = last_row(*events)
    assert (row.cause, row.stateful) == (expected, True)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"live_read": False}, "unknown"),
        ({"generation_gap": None}, "unknown"),
        ({"generation_gap": 3}, "unknown"),
    ],
)
def test_what_was_not_seen_whole_has_no_cause(fields: dict[str, object], expected: str) -> None:
    assert cause_of([ONE, TWO], [ONE, TWO], **fields) == expected


def test_an_epoch_of_the_same_members_has_no_cause() -> None:
    events = [epoch(4, 0, [ONE, TWO], 0), epoch(5, 100, [ONE, TWO], 102)]
    assert last_row(*events).cause == "unknown"


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (generation(1, 3, [ONE], generation_gap=None), "member_join"),
        (epoch(1, 3, [ONE], 4, generation_gap=None), "member_join"),
        (generation(2, 3, [ONE], generation_gap=None), "unknown"),
        (generation(1, 3, [ONE], generation_gap=None, live_read=False), "unknown"),
    ],
)
def test_number_one_follows_nobody(reported: Generation, expected: str) -> None:
    row = last_row(reported)
    assert (row.cause, row.moved) == (expected, 0 if expected == "member_join" else None)


def test_the_first_generation_seen_has_no_cause() -> None:
    row = last_row(generation(7, 0, [ONE]))
    assert (row.cause, row.necessity, row.joined, row.members_before) == (
        "unknown",
        "unknown",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("cause", "reason", "is_declared", "expected"),
    [
        ("member_join", None, False, "planned"),
        ("streams_probing", None, False, "planned"),
        ("partitions_added", None, False, "planned"),
        ("subscription_change", None, False, "planned"),
        ("coordinator_failover", None, False, "operational"),
        ("assignor_change", None, False, "operational"),
        ("member_left", "poll_timeout", False, "unnecessary_processing"),
        ("member_left", "session_expiry", False, "unnecessary_heartbeat"),
        ("member_left", "deploy", False, "operational"),
        ("member_left", "deploy", True, "planned"),
        ("member_left", "poll_timeout", True, "unnecessary_processing"),
        ("member_left", "scale_in", False, "planned"),
        ("member_left", None, False, "unknown"),
        ("replacement", None, True, "planned"),
        ("static_expired", None, False, "unnecessary_heartbeat"),
        ("static_expired", "poll_timeout", False, "unnecessary_processing"),
        ("leader_rejoin", None, False, "unknown"),
        ("unknown", "deploy", False, "unknown"),
    ],
)
def test_necessity(cause: str, reason: str | None, is_declared: bool, expected: str) -> None:
    assert find_necessity(cause, reason, is_declared_deploy=is_declared) == expected


def gone(slot: str = "a", seconds: float = 0, **fields: Any) -> Departure:
    given: dict[str, Any] = {
        "member_id": f"{slot}-{seconds}",
        "group_instance_id": None,
        "client_id_pattern": "app",
        "place": ("app", "/h"),
        "at": at(seconds),
        "partitions": (("A", 0),),
        "idle_seconds": 3.0,
        "session_seconds": 45.0,
        "rebalance_timeout_seconds": 300.0,
        "commit_interval_seconds": 5.0,
        "was_material": None,
    }
    return Departure(slot, **(given | fields))


def evidence(
    departure: Departure, *others: Departure, slots: int = 10, until: float = 0
) -> dict[str, str]:
    return gather_evidence(departure, others, slots, at(until), PARAMETERS)


@pytest.mark.parametrize(
    ("idle", "expected"),
    [
        (0, "orderly"),
        (10, "orderly"),
        (10.1, "other"),
        (31, "other"),
        (31.5, "session"),
        (66.5, "session"),
        (66.6, "other"),
        (239, "other"),
        (240, "poll_timeout"),
        (345, "poll_timeout"),
        (None, "other"),
    ],
)
def test_idle_time_before_a_member_left(idle: float | None, expected: str) -> None:
    assert evidence(gone(idle_seconds=idle))["idle"] == expected


@pytest.mark.parametrize(
    ("idle", "timeout", "session", "expected"),
    [
        (33, 30, 45, "poll_timeout"),
        (48, 30, 45, "session"),
        (40, 30, 45, "other"),
        (40, 45, 45, "other"),
        (48, 30, None, "session"),
        (13, 30, 10, "session"),
        (3, 30, 10, "orderly"),
    ],
)
def test_the_timeout_that_just_ran_out_is_distinguished_from_the_other_one(
    idle: float, timeout: float, session: float | None, expected: str
) -> None:
    departure = gone(idle_seconds=idle, rebalance_timeout_seconds=timeout, session_seconds=session)
    assert evidence(departure)["idle"] == expected


@pytest.mark.parametrize(
    ("returned", "until", "expected"),
    [
        (None, 599, None),
        (None, 600, "none"),
        ("same_host", 5, "same_host"),
        ("other_host", 900, "other_host"),
    ],
)
def test_no_return_is_known_after_ten_minutes_only(
    returned: str | None, until: float, expected: str | None
) -> None:
    assert evidence(gone(returned=returned), until=until).get("returned") == expected


def test_lag_that_grew_behind_a_silent_member_is_no_evidence() -> None:
    assert "lag" not in evidence(gone(idle_seconds=47.0, was_material=True))
    assert evidence(gone(idle_seconds=None, was_material=True))["lag"] == "material"


@pytest.mark.parametrize(
    ("material", "expected"), [(True, "material"), (False, "not_material"), (None, None)]
)
def test_lag_that_is_not_known_is_no_evidence(material: bool | None, expected: str | None) -> None:
    assert evidence(gone(was_material=material)).get("lag") == expected


@pytest.mark.parametrize(
    ("others", "slots", "expected"),
    [
        ([], 10, None),
        # this one left in order: it did not stumble
        ([gone("b", -60, idle_seconds=310.0)], 10, None),
        ([gone("b", -60), gone("c", -60, idle_seconds=47.0)], 10, None),
        ([gone("a", -60), gone("a", -120)], 10, "same_slot"),
        (
            [gone("b", -60, returned="other_host"), gone("c", -120, returned="same_host")],
            10,
            "each_once",
        ),
        ([gone("b", -60, returned="other_host")], 4, None),
        ([gone("b", -60, returned="other_host"), gone("b", -120, returned="other_host")], 4, None),
        ([gone("b", returned="other_host"), gone("c", returned="other_host")], 4, None),
    ],
)
def test_who_else_leaves_around(others: list[Departure], slots: int, expected: str | None) -> None:
    assert evidence(gone(), *others, slots=slots).get("rotation") == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (gone("b", -60, partitions=(("A", 9),), idle_seconds=310.0), None),
        (gone("b", -60, idle_seconds=310.0), "next_owners"),
        (gone("b", -60, idle_seconds=None), "next_owners"),
        (gone("b", -60), None),
        (gone("b", -60, idle_seconds=47.0), None),
        (gone("b", -1_801, idle_seconds=310.0), None),
    ],
)
def test_owners_that_stumble_one_after_the_other_are_a_chain(
    other: Departure, expected: str | None
) -> None:
    assert evidence(gone(idle_seconds=310.0), other).get("rotation") == expected


@pytest.mark.parametrize(("at_end", "expected"), [(14, "orderly"), (14.1, "other"), (48, "other")])
def test_a_long_join_phase_may_have_waited_for_the_one_that_left(
    at_end: float, expected: str
) -> None:
    assert evidence(gone(idle_seconds=3.0, idle_at_end_seconds=at_end))["idle"] == expected


def test_a_member_that_polls_too_late_leaves_at_once() -> None:
    """Only a static one is silent for a session more."""
    late = gone(idle_seconds=70.0, rebalance_timeout_seconds=30.0)
    assert evidence(late)["idle"] == "other"
    assert evidence(replace(late, group_instance_id="a"))["idle"] == "poll_timeout"


def test_members_that_fall_silent_one_by_one_are_no_deploy() -> None:
    others = [
        gone("b", -60, returned="same_host", idle_seconds=47.0),
        gone("c", -120, returned="other_host"),
    ]
    assert evidence(gone(partitions=()), *others, slots=4).get("rotation") is None


def test_members_that_nobody_replaces_are_no_deploy() -> None:
    others = [gone("b", -60, partitions=()), gone("c", -120, partitions=())]
    assert evidence(gone(), *others, slots=4).get("rotation") is None


@pytest.mark.parametrize(("until", "expected"), [(1_799, None), (1_800, "none")])
def test_that_nobody_else_leaves_is_known_after_half_an_hour_only(
    until: float, expected: str | None
) -> None:
    assert evidence(gone(), until=until).get("rotation") == expected


def test_the_weights_are_whole() -> None:
    assert sum(PRIOR) == pytest.approx(1)
    for kind, levels in LIKELIHOOD.items():
        assert [sum(column) for column in zip(*levels.values(), strict=True)] == pytest.approx(
            [1] * 5
        ), kind


@pytest.mark.parametrize(
    ("idle", "returned", "lag", "rotation", "expected"),
    [
        ("poll_timeout", "same_host", "material", "next_owners", "poll_timeout"),
        ("session", "same_host", "not_material", "none", "session_expiry"),
        ("orderly", "other_host", "not_material", "each_once", "deploy"),
        ("orderly", "same_host", "not_material", "same_slot", "crash"),
        ("orderly", "none", "not_material", "none", "scale_in"),
        ("orderly", "same_host", "not_material", "next_owners", None),
    ],
)
def test_typical_departures(
    idle: str, returned: str, lag: str, rotation: str, expected: str | None
) -> None:
    found = find_posterior({"idle": idle, "returned": returned, "lag": lag, "rotation": rotation})
    assert claim_reason(found, PARAMETERS) == expected


def test_the_posterior_is_prior_times_likelihood() -> None:
    found = find_posterior({"idle": "orderly", "returned": "none"})
    weights = [
        0.2 * 0.05 * 0.2,
        0.2 * 0.1 * 0.2,
        0.3 * 0.85 * 0.05,
        0.1 * 0.4 * 0.25,
        0.2 * 0.85 * 0.95,
    ]
    assert found == pytest.approx(
        {name: each / sum(weights) for name, each in zip(REASONS, weights, strict=True)}
    )


def test_where_no_reason_is_claimed_the_two_best_are_named() -> None:
    found = find_posterior({})
    assert claim_reason(found, PARAMETERS) is None
    assert two_best(found) == ("deploy", "poll_timeout")


def test_several_departures_are_mixed_and_none_have_no_posterior() -> None:
    one, other = find_posterior({"idle": "session"}), find_posterior({"idle": "orderly"})
    assert mix([one, other]) == pytest.approx(
        {name: (one[name] + other[name]) / 2 for name in REASONS}
    )
    assert mix([]) is None
    assert claim_reason(None, PARAMETERS) is None


@given(
    st.fixed_dictionaries(
        {}, optional={kind: st.sampled_from(sorted(each)) for kind, each in LIKELIHOOD.items()}
    )
)
def test_a_posterior_adds_up_to_one(levels: dict[str, str]) -> None:
    assert sum(find_posterior(levels).values()) == pytest.approx(1)


def leave_after(
    idle: float, *, material: bool, static: bool = False, back: float = 20
) -> Rebalance:
    """Member 2 is idle so long before the rebalance at second 1000, and a new one on its host joins
    after it.
    """
    two = replace(TWO, group_instance_id="two" if static else None)
    events = [
        generation(1, 0, [ONE, two]),
        commit("A1", 1_000 - idle, 50),
        commit("A0", 1_000, 50),
        generation(2, 1_001, [member("1", "A0", "A1")]),
        generation(3, 1_001 + back, [ONE, replace(two, member_id="2b")]),
    ]
    partitions = all_facts(["A0", "A1"], -5, material=material)
    closed = run(events, partitions)[0]
    assert len(closed) == 3
    return closed[1].row


def test_a_member_that_polled_too_late() -> None:
    row = leave_after(300, material=True)
    assert (row.cause, row.necessity, row.unread_window_seconds) == (
        "member_left",
        "unnecessary_processing",
        None,
    )
    assert (row.cause_posterior or {})["poll_timeout"] >= 0.7


def test_a_member_whose_session_ran_out() -> None:
    row = leave_after(45, material=False)
    assert (row.cause, row.necessity, row.unread_window_seconds) == (
        "member_left",
        "unnecessary_heartbeat",
        45,
    )


def test_a_static_member_shows_a_poll_timeout_one_session_later() -> None:
    row = leave_after(345, material=True, static=True)
    assert (row.cause, row.necessity, row.unread_window_seconds) == (
        "static_expired",
        "unnecessary_processing",
        45,
    )


def test_a_join_has_no_posterior() -> None:
    row = last_row(generation(1, 0, [ONE]), generation(2, 100, [ONE, TWO]))
    assert (row.cause_posterior, row.necessity, row.unread_window_seconds) == (
        None,
        "planned",
        None,
    )


def test_a_rolling_deploy_is_seen_once_a_part_of_it_is_done() -> None:
    """Four members, one by one, each back on another host after 20 s; the last one shows all
    evidence but its own.
    """
    roster = [member(str(number), f"A{number}", client_id=f"app-{number}") for number in range(4)]
    events: list[Generation | Commit] = [generation(1, 0, roster)]
    number, now = 1, 1_000.0
    for place, old in enumerate(roster):
        staying = [each for each in roster if each.member_id != old.member_id]
        new = replace(old, member_id=f"new-{place}", client_host=f"/new-{place}")
        roster = [*staying, new]
        events += [commit(f"A{each}", now - 1.5, round(now)) for each in range(4)]
        events += [generation(number + 1, now, staying), generation(number + 2, now + 20, roster)]
        number, now = number + 2, now + 45
    closed, state = run(events, all_facts([f"A{each}" for each in range(4)], -5))
    assert [each.row.cause for each in closed] == ["unknown", *["member_left", "member_join"] * 4]
    assert [each.returned for each in state.departures] == ["other_host"] * 4
    last = gather_evidence(
        state.departures[-1], state.departures[:-1], 4, at(now + 600), PARAMETERS
    )
    assert claim_reason(find_posterior(last), PARAMETERS) == "deploy"


def test_the_generation_that_ends_the_waiting_shows_who_returned() -> None:
    """On another host after 15 s: one of a deploy. With nobody coming it may as
    well be a scale-in.
    """

    def leave(*later: Generation) -> Rebalance:
        events = [
            generation(1, 0, [ONE, TWO]),
            commit("A0", 999),
            commit("A1", 999, 50),
            generation(2, 1_001, [ONE]),
        ]
        events += [commit("A0", 1_003), commit("A1", 1_003, 60), *later]
        return run(events, all_facts(["A0", "A1"], -5), until=1_025)[0][1].row

    back = replace(TWO, member_id="2b", client_host="/new")
    assert (leave(generation(3, 1_016, [ONE, back])).necessity, leave().necessity) == (
        "operational",
        "unknown",
    )


def test_idle_partitions_say_nothing_about_their_reader() -> None:
    partitions = {**all_facts(["A0"], 900), **all_facts(["A1"], 900, arrival_rate=0.0)}
    closed = run([generation(1, 0, [ONE, TWO]), generation(2, 1_001, [ONE])], partitions)[0]
    assert [each.idle_seconds for each in closed[1].departures] == [None]


@pytest.mark.parametrize("staying", [[], [ONE]])
def test_a_member_that_gets_nothing_done_polled_when_it_joined(staying: list[MemberFacts]) -> None:
    """Also where it was the last one: a group is empty the moment nobody is left."""
    events = [
        generation(1, 600, [*staying, TWO]),
        commit("A0", 899, 50),
        generation(2, 901, staying),
    ]
    partitions = {**all_facts(["A0"], 590), **all_facts(["A1"], 100)}
    (departure,) = run(events, partitions)[0][1].departures
    assert departure.idle_seconds == pytest.approx(300, abs=1.5)
    assert evidence(departure)["idle"] == "poll_timeout"


def test_who_leaves_no_more_often_than_the_others_is_no_case_of_its_own() -> None:
    own = [gone("a", -60), gone("a", -120)]
    others = [gone(slot, -seconds, idle_seconds=47.0) for slot in "bc" for seconds in (200, 300)]
    assert evidence(gone(), *own, *others[:1], slots=3).get("rotation") == "same_slot"
    assert evidence(gone(), *own, *others, slots=3).get("rotation") is None


def test_a_new_member_takes_the_place_of_one_only() -> None:
    leavers = [member(each, client_id="app", client_host="/h") for each in "12"]
    back = member("3", client_id="app", client_host="/h")
    _, state = run([generation(1, 0, leavers), generation(2, 100, []), generation(3, 130, [back])])
    assert [each.returned for each in state.departures] == ["same_host", None]


def test_a_return_after_ten_minutes_is_none() -> None:
    _, state = run(
        [generation(1, 0, [ONE, TWO]), generation(2, 100, [ONE]), generation(3, 701, [ONE, TWO])]
    )
    assert [each.returned for each in state.departures] == [None]
