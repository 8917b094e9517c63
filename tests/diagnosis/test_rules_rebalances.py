"""Rules D40 to D50: what holds, what its guards veto, what the advice says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from diagnosis.rebalance_rows import NOW, Life, at, pods, rolled, series
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules import assignment, clients, evictions, identity, rebalances, scaling
from laggard.diagnosis.rules.registry import rules_of
from laggard.diagnosis.rules.rule import Observation, Rule
from laggard.diagnosis.signals.group import Signals

ALL_RULES = (
    *rules_of(evictions),
    *rules_of(rebalances),
    *rules_of(assignment),
    *rules_of(clients),
    *rules_of(identity),
    *rules_of(scaling),
)
BY_CODE = {rule.code: rule for rule in ALL_RULES}
ALL = pods(1, 2, 3, 4)


def evaluate(code: str, signals: Signals) -> list[Observation]:
    found: list[Observation] = BY_CODE[code].check(signals)
    assert {each.code for each in found} <= {code}
    return found


def states(code: str, signals: Signals) -> list[str]:
    return [each.state for each in evaluate(code, signals)]


def evicted(reason: str, times: tuple[float, ...] = (3000, 3200), **of_row: Any) -> Life:
    """Another member is evicted each time, and back a minute later on its host."""
    life = Life(timeout=60).generation(10, *ALL)
    for number, second in enumerate(times):
        rest = [each for each in ALL if each != ALL[number % 4]]
        life.generation(second, *rest, of_row={"cause_posterior": {reason: 0.8}} | of_row)
        life.generation(second + 60, *ALL)
    return life


def test_every_rule_has_its_number_and_a_code_of_its_own() -> None:
    numbers = [rule.number for rule in ALL_RULES]
    wanted = {14, *range(40, 61), *range(70, 77)}
    assert sorted(numbers) == sorted(f"D{number}" for number in wanted)
    assert len(BY_CODE) == len(ALL_RULES)


def test_two_poll_timeouts_hold_and_one_does_not() -> None:
    (found,) = evaluate("POLL_TIMEOUT_EVICTION", evicted("poll_timeout").signals())
    assert (found.state, found.evidence["departures"], found.evidence["slots"]) == ("holds", 2, 2)
    assert found.evidence["rebalance_timeout_seconds"] == 60
    assert evaluate("POLL_TIMEOUT_EVICTION", evicted("poll_timeout", (3000,)).signals()) == []
    assert evaluate("POLL_TIMEOUT_EVICTION", evicted("session_expiry").signals()) == []
    # where rounds are cut short nobody commits, and silence says nothing
    assert evaluate("POLL_TIMEOUT_EVICTION", evicted("poll_timeout", interrupted=2).signals()) == []


def test_a_later_departure_with_another_reason_falsifies_poll_timeouts() -> None:
    life = evicted("poll_timeout").generation(
        3500, *ALL[:3], of_row={"cause_posterior": {"deploy": 0.9}}
    )
    assert evaluate("POLL_TIMEOUT_EVICTION", life.signals())[0].is_falsified
    assert not evaluate("POLL_TIMEOUT_EVICTION", evicted("poll_timeout").signals())[0].is_falsified


def test_advice_on_poll_timeouts_goes_from_heartbeats_to_the_sink_not_to_the_session() -> None:
    rule = BY_CODE["POLL_TIMEOUT_EVICTION"]
    order = ("heartbeats", "max.poll.records", "max.poll.interval.ms", "sink")
    assert len(rule.advice) == len(order)
    assert all(word in line for word, line in zip(order, rule.advice, strict=True))
    assert "session" not in " ".join((*rule.advice, *rule.mistakes, rule.says)).lower()


def position(rule: Rule, word: str) -> int:
    return next(number for number, line in enumerate(rule.advice) if word in line)


def test_the_advice_on_storms_puts_decoupling_after_static_and_cooperative() -> None:
    rule = BY_CODE["REBALANCE_STORM"]
    assert (
        position(rule, "static")
        == position(rule, "cooperative")
        < position(rule, "KIP-848")
        < position(rule, "decouple")
    )


@pytest.mark.parametrize("code", ["POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "REBALANCE_STORM"])
def test_advice_on_departures_names_lines_to_look_for(code: str) -> None:
    text = " ".join(BY_CODE[code].advice)
    for line in (
        "sending LeaveGroup request",
        "Attempt to heartbeat failed since group is",
        "maybe rebalancing",
    ):
        assert line in text


def test_the_advice_on_deploys_is_in_the_order_of_effect() -> None:
    rule = BY_CODE["DEPLOY_LAG_SPIKE"]
    words = ("static", "session timeout", "cooperative", "smaller batches")
    assert [position(rule, word) for word in words] == [0, 1, 2, 3]


def test_eager_and_cooperative_are_joined_in_two_rolls() -> None:
    assert "two rolling restarts" in " ".join(BY_CODE["ASSIGNOR_FLAP"].advice)
    assert "two rolling restarts" in " ".join(BY_CODE["EAGER_LARGE_GROUP"].advice)


def test_session_expiries_hold_unless_pods_were_killed() -> None:
    assert states("SESSION_EVICTION", evicted("session_expiry").signals()) == ["holds"]
    life = Life().generation(10, *ALL)
    life.generation(3000, *ALL[1:], *pods(11), of_row={"cause_posterior": {"session_expiry": 0.8}})
    life.generation(
        3400, *ALL[2:], *pods(11, 12), of_row={"cause_posterior": {"session_expiry": 0.8}}
    )
    (found,) = evaluate("SESSION_EVICTION", life.signals())
    assert (found.state, found.guards["same_host"]) == ("fails", "fail")


@pytest.mark.parametrize(("seconds", "expected"), [((3000, 3000), []), ((3000, 3400), ["holds"])])
def test_members_that_are_lost_together_are_one_loss(
    seconds: Sequence[int], expected: list[str]
) -> None:
    life = Life().generation(10, *ALL)
    left = {
        second: ALL[2:] if seconds[0] == seconds[1] else ALL[at + 1 :]
        for at, second in enumerate(seconds)
    }
    for second, rest in left.items():
        life.generation(second, *rest, of_row={"cause_posterior": {"session_expiry": 0.8}})
    assert states("SESSION_EVICTION", life.signals()) == expected


@pytest.mark.parametrize(("rounds", "expected"), [(1, []), (2, ["holds"])])
def test_static_members_that_a_deploy_kept_away_beyond_their_sessions_were_not_evicted(
    rounds: int, expected: Sequence[str]
) -> None:
    """Asked long after the deploy; one round after the other at the same pace is none."""
    ids = [f"s-{number}" for number in range(6)]
    life, expired = (
        Life().generation(10, *ids),
        {"cause": "static_expired", "cause_posterior": {"session_expiry": 0.8}},
    )
    for number, gone in enumerate(ids * rounds):
        second = 2000 + 100 * number
        life.generation(second, *[each for each in ids if each != gone], of_row=expired).generation(
            second + 20, *ids
        )
    assert states("SESSION_EVICTION", life.signals()) == expected


def test_one_member_that_dies_again_and_again_is_no_session_eviction() -> None:
    life = Life(session=10).generation(10, *ALL)
    for second in (3000, 3060, 3120):
        life.generation(second, *ALL[:3], of_row={"cause_posterior": {"session_expiry": 0.8}})
        life.generation(second + 20, *ALL)
    assert evaluate("SESSION_EVICTION", life.signals())[0].guards["several_members"] == "fail"
    (loop,) = evaluate("CRASH_LOOP", life.signals())
    assert (loop.state, loop.subject, loop.evidence["departures"]) == ("holds", "app/10.0.0.4", 3)


@pytest.mark.parametrize(
    ("others", "expected"), [((), "holds"), ((2700,), "holds"), ((2700, 2900), "fails")]
)
def test_a_member_evicted_twice_in_a_row_where_others_are_evicted_too_is_no_crash_loop(
    others: Sequence[float], expected: str
) -> None:
    """Four departures of one place, and so many of another whose members live long."""
    life, expired = (
        Life(session=10).generation(10, *ALL),
        {"cause_posterior": {"session_expiry": 0.8}},
    )
    out = [(second, ALL[3]) for second in (3000, 3100, 3200, 3300)] + [
        (second, ALL[1]) for second in others
    ]
    for second, gone in sorted(out):
        life.generation(second, *[each for each in ALL if each != gone], of_row=expired)
        life.generation(second + 15, *ALL)
    (loop,) = evaluate("CRASH_LOOP", life.signals())
    assert (loop.subject, loop.state) == ("app/10.0.0.4", expected)
    if expected == "fails":
        assert loop.guards["not_the_others"] == "fail"
        assert states("SESSION_EVICTION", life.signals()) == ["holds"]


def restarted(*times: float, gone: int, stopped: float = 0.0) -> Life:
    """The last of four members leave at these times and are back 20 s later; at the end of all
    everybody leaves.
    """
    history = Life().generation(10, *ALL)
    for second in times:
        history.generation(second, *ALL[: len(ALL) - gone]).generation(second + 20, *ALL)
    return history.generation(stopped) if stopped else history


@pytest.mark.parametrize("last", [3110.0, 3300.0, 3590.0])
@pytest.mark.parametrize("gone", [1, 3, 4])
def test_a_group_that_was_stopped_has_no_crash_loop(gone: int, last: float) -> None:
    """After restarts of one member, of most members with their host, or of all; one that was a loop
    is not over yet.
    """
    history = restarted(2900, 2970, 3040, gone=gone, stopped=last)
    found = states("CRASH_LOOP", history.signals(member_count=0, state="Empty"))
    assert found == (["holds"] if gone == 1 and last == 3590 else [])


@pytest.mark.parametrize(
    ("gone", "expected"), [(1, ["holds"]), (2, ["holds"] * 2), (3, []), (4, [])]
)
def test_three_restarts_of_a_host_with_most_members_are_no_crash_loop(
    gone: int, expected: list[str]
) -> None:
    """Of two of four that leave together one of the three others leaves too."""
    assert states("CRASH_LOOP", restarted(3000, 3070, 3140, gone=gone).signals()) == expected


@pytest.mark.parametrize("gone", [3, 4])
def test_members_that_leave_together_after_three_short_lives_are_one_crash_loop(gone: int) -> None:
    (found,) = evaluate("CRASH_LOOP", restarted(3000, 3070, 3140, 3210, gone=gone).signals())
    assert (found.state, found.subject, found.evidence["departures"]) == ("holds", "", 4)


def test_an_empty_group_is_in_a_crash_loop_if_its_members_had_rejoined() -> None:
    history = restarted(3000, 3070, 3140, gone=4, stopped=3210)
    assert states("CRASH_LOOP", history.signals(now=3240, member_count=0, state="Empty")) == [
        "abstains"
    ]
    history.generation(3230, *ALL).generation(3280)
    assert states("CRASH_LOOP", history.signals(now=3300, member_count=0, state="Empty")) == [
        "holds"
    ]


def test_a_single_member_that_restarts_again_and_again_is_a_crash_loop_until_given_up() -> None:
    history = Life().generation(10, ALL[0])
    for second in (2900, 2970, 3040):
        history.generation(second).generation(second + 20, ALL[0])
    assert states("CRASH_LOOP", history.signals()) == ["holds"]
    history.generation(3100)
    assert states("CRASH_LOOP", history.signals(now=3160, member_count=0, state="Empty")) == [
        "holds"
    ]
    assert states("CRASH_LOOP", history.signals(now=3230, member_count=0, state="Empty")) == []


def test_members_of_one_place_that_leave_together_are_one_departure() -> None:
    home = ("worker/10.0.0.9#0", "worker/10.0.0.9#1")
    history = Life().generation(10, *ALL, *home)
    for second in (3000, 3070):
        history.generation(second, *ALL).generation(second + 20, *ALL, *home)
    assert evaluate("CRASH_LOOP", history.signals()) == []


def test_lives_of_a_poll_interval_are_no_crash_loop() -> None:
    life = Life(timeout=60).generation(10, *ALL)
    for second in (3000, 3085, 3170):
        life.generation(second, *ALL[:3]).generation(second + 20, *ALL)
    (found,) = evaluate("CRASH_LOOP", life.signals())
    assert (found.state, found.guards["not_poll_timeout"]) == ("fails", "fail")


def stormy(**of_row: Any) -> Life:
    life = Life().generation(10, *ALL)
    for second in range(3060, 3600, 90):
        life.generation(second, *ALL, of_row=of_row)
    return life


def test_a_storm_holds_with_its_causes() -> None:
    (found,) = evaluate("REBALANCE_STORM", stormy().signals())
    assert (found.state, found.severity) == ("holds", "warn")
    assert (found.evidence["rebalances"], found.evidence["cause_leader_rejoin_rebalances"]) == (
        6,
        6,
    )
    assert found.evidence_text["cause"] == "leader_rejoin"
    assert BY_CODE["REBALANCE_STORM"].open_after == 2


def test_a_storm_pages_while_the_objective_burns() -> None:
    burning = series(matured=100.0, late=2.0)
    assert evaluate("REBALANCE_STORM", stormy().signals(topics=[burning]))[0].severity == "page"
    assert (
        evaluate("REBALANCE_STORM", stormy().signals(topics=[series(matured=100.0, late=1.0)]))[
            0
        ].severity
        == "warn"
    )


def test_a_storm_of_a_group_that_is_static_and_cooperative_needs_decoupling() -> None:
    life = Life().generation(10, "s-1", "s-2")
    for second in range(3060, 3600, 90):
        life.generation(second, "s-1", "s-2")
    assert (
        "escalation"
        in evaluate("REBALANCE_STORM", life.signals(fact={"rebalance_mode": "cooperative"}))[
            0
        ].evidence_text
    )
    assert (
        "escalation"
        not in evaluate("REBALANCE_STORM", life.signals(fact={"rebalance_mode": "eager"}))[
            0
        ].evidence_text
    )


def test_a_deploy_is_no_storm_and_neither_is_declared_maintenance() -> None:
    life = rolled()
    for now in (3400, 3600, 3800):  # on the way, in the quiet after it, and when its veto is over
        assert evaluate("REBALANCE_STORM", life.signals(now)) == []
    assert states("REBALANCE_STORM", stormy().signals(policy=Policy(in_maintenance=True))) == [
        "fails"
    ]


def test_fail_overs_of_the_coordinator_are_no_storm() -> None:
    assert (
        evaluate("REBALANCE_STORM", stormy(cause="coordinator_failover").signals())[0].guards[
            "few_failovers"
        ]
        == "fail"
    )


@pytest.mark.parametrize("group_type", ["share", "simple"])
def test_groups_without_evaluated_members_get_no_rule_of_members(group_type: str) -> None:
    life = stormy()
    life.members += evicted("poll_timeout").members
    signals = life.signals(fact={"group_type": group_type})
    assert [
        each
        for rule in (
            *rules_of(evictions),
            *rules_of(rebalances),
            *rules_of(identity),
            *rules_of(clients),
            *rules_of(assignment),
        )
        for each in rule.check(signals)
    ] == []


def test_connect_workers_are_evaluated_by_their_rebalances_but_not_by_assignments() -> None:
    signals = stormy().signals(fact={"protocol_type": "connect"})
    assert states("REBALANCE_STORM", signals) == ["holds"]
    life = Life().generation(10, *ALL[:2], of_member={ALL[0]: {"topics": ["payments"]}})
    assert evaluate("SUBSCRIPTION_DIVERGENT", life.signals(fact={"protocol_type": "connect"})) == []
    assert states("SUBSCRIPTION_DIVERGENT", life.signals()) == ["holds"]


def test_history_from_before_the_live_end_is_evaluated_by_no_rule() -> None:
    life = Life(live_read=False).generation(10, *ALL)
    for second in range(3060, 3600, 60):
        life.generation(
            second, *ALL[:3], generation_gap=3, of_row={"cause_posterior": {"poll_timeout": 0.9}}
        )
        life.generation(
            second + 20, *ALL, of_row={"straggler_slot": ALL[0], "moved": 10, "avoidable": 10}
        )
    assert [each.code for rule in ALL_RULES for each in rule.check(life.signals())] == []


def test_generations_without_an_assignment_hold_once_it_is_two_rebalances_that_had_them() -> None:
    history = Life().generation(10, *ALL).generation(2000, *ALL, generation_gap=3)
    assert evaluate("REBALANCE_INCOMPLETE", history.signals()) == []
    history.generation(3400, *ALL, generation_gap=2)
    # one generation in ten minutes
    assert evaluate("REBALANCE_INCOMPLETE", history.signals()) == []
    history.generation(3450, *ALL, generation_gap=2)
    (found,) = evaluate("REBALANCE_INCOMPLETE", history.signals())
    assert (
        found.evidence["interrupted_generations"],
        found.evidence["interrupted_rebalances"],
    ) == (2, 3)
    assert (
        evaluate("REBALANCE_INCOMPLETE", history.signals(now=3400 + 600)) == []
    )  # of the first ten minutes have passed


@pytest.mark.parametrize(("second", "state", "expected"), [
    (3470, "Stable", []), (3490, "Stable", ["holds"]), (3470, "PreparingRebalance", ["holds"]),
])  # fmt: skip
def test_one_rebalance_with_rounds_cut_short_holds_until_the_group_is_at_rest(
    second: float, state: str, expected: list[str]
) -> None:
    history = Life().generation(10, *ALL).generation(second, *ALL, generation_gap=13, start=1700)
    assert states("REBALANCE_INCOMPLETE", history.signals(state=state)) == expected


@pytest.mark.parametrize("has_row", [True, False])
@pytest.mark.parametrize(("gone", "gap"), [(0, 12), (1, 3), (3, 2)])
def test_a_stable_group_whose_rebalance_ended_is_not_incomplete(
    gone: int, gap: int, *, has_row: bool
) -> None:
    history = (
        Life().generation(10, *ALL).generation(3400, *ALL[gone:], row=has_row, generation_gap=gap)
    )
    assert evaluate("REBALANCE_INCOMPLETE", history.signals()) == []


@pytest.mark.parametrize("has_row", [True, False])
def test_members_that_start_one_after_another_are_not_incomplete(*, has_row: bool) -> None:
    history = Life().generation(10, *ALL).generation(3000)
    for number in range(1, 5):
        history.generation(3200 + 25 * number, *ALL[:number], row=has_row, generation_gap=2)
    assert evaluate("REBALANCE_INCOMPLETE", history.signals()) == []


def test_a_group_that_prepares_for_longer_than_its_timeout_and_two_minutes_is_incomplete() -> None:
    life = Life(timeout=60).generation(10, *ALL)
    late = {"state_since": at(NOW - 181)}
    assert states("REBALANCE_INCOMPLETE", life.signals(state="PreparingRebalance", fact=late)) == [
        "holds"
    ]
    assert evaluate("REBALANCE_INCOMPLETE", life.signals(state="Stable", fact=late)) == []
    in_time = {"state_since": at(NOW - 179)}
    assert (
        evaluate("REBALANCE_INCOMPLETE", life.signals(state="PreparingRebalance", fact=in_time))
        == []
    )


def straggling(join: float, interval: float = 5.0, **fact: Any) -> list[Observation]:
    life = (
        Life()
        .generation(10, *ALL)
        .generation(3000, *ALL[:3], start=3000 - join, of_row={"straggler_slot": ALL[3]})
    )
    return evaluate(
        "REBALANCE_STRAGGLER", life.signals(topics=[series(interval=interval)], fact=fact)
    )


def test_a_straggler_is_named_unless_its_join_took_one_heartbeat_and_batch() -> None:
    (found,) = straggling(300)
    assert (found.state, found.subject, found.evidence["join_seconds"]) == ("holds", ALL[3], 300)
    assert straggling(300, interval=297)[0].guards == {
        "longer_than_a_batch": "fail",
        "coordinator_settled": "pass",
    }
    assert straggling(300, interval=296)[0].state == "holds"


def test_a_coordinator_that_moved_explains_a_long_join() -> None:
    [found] = straggling(300, coordinator_changed_at=at(2900))
    assert found.guards["coordinator_settled"] == "fail"


def test_a_member_stuck_in_reconciliation_is_named() -> None:
    life = Life(kind="epoch", timeout=60).generation(100, "a", "b")
    stuck = {
        "member_state": "UnrevokedPartitions",
        "pending_revocation": [{"topic": "orders", "partition": 1}],
    }
    life.generation(3000, "a", "b", "c", start=3000, stable_at=None, of_member={"b": stuck})
    life.generation(3062, "a", "c", start=3060)
    (found,) = evaluate("RECONCILE_STUCK", life.signals(fact={"group_type": "consumer"}))
    assert (found.subject, found.evidence["pending_revocation_partitions"]) == ("b", 1)


def test_one_change_of_assignor_is_a_plan_and_two_are_a_flap() -> None:
    life = Life().generation(10, *ALL).generation(3000, *ALL, assignor="cooperative-sticky")
    assert evaluate("ASSIGNOR_FLAP", life.signals()) == []
    life.generation(3300, *ALL)
    assert (
        evaluate("ASSIGNOR_FLAP", life.signals())[0].evidence_text["assignors"]
        == "cooperative-sticky, range"
    )
