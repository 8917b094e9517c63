"""Rules D53 to D59: subscriptions, instance ids, timeouts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diagnosis.rebalance_rows import NOW, WINDOWS, Life, at, pods, series
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules import clients, identity
from laggard.diagnosis.rules.registry import rules_of
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.signals.group import Signals

BY_CODE = {rule.code: rule for rule in (*rules_of(identity), *rules_of(clients))}
A, B = pods(1, 2)
IDS = ("s-0", "s-1", "s-2")


def evaluate(code: str, signals: Signals) -> list[Observation]:
    found: list[Observation] = BY_CODE[code].check(signals)
    assert {each.code for each in found} <= {code}
    return found


def session(seconds: float, heartbeat: float = 0.0) -> list[float]:
    life = Life(session=seconds).generation(10, A, B)
    return [
        each.confidence
        for each in evaluate(
            "TIMEOUT_RATIO", life.signals(policy=Policy(heartbeat_seconds=heartbeat))
        )
    ]


def test_a_session_holds_three_heartbeats() -> None:
    assert session(45, 3) == []
    assert session(6, 2) == []
    assert session(6, 3) == [0.9]


def test_heartbeats_that_nobody_declared_leave_doubt() -> None:
    assert session(9) == []
    assert session(8.9) == [0.4]
    assert session(6) == [0.2]


def test_a_modern_member_has_no_session_of_its_own() -> None:
    life = Life(kind="epoch").generation(10, A, of_member={A: {"session_timeout_ms": None}})
    assert evaluate("TIMEOUT_RATIO", life.signals()) == []


def tight(gap: float, timeout: float, consumed: float = 100.0) -> list[Observation]:
    life = Life(timeout=timeout).generation(10, A, B)
    return evaluate("TIMEOUT_TIGHT", life.signals(topics=[series(interval=gap, consumed=consumed)]))


def test_batches_that_fill_four_fifths_of_the_poll_interval_are_tight() -> None:
    (found,) = tight(420, 480)
    assert (found.state, found.evidence["ratio"], found.subject) == (
        "holds",
        0.875,
        "poll_interval",
    )
    assert tight(240, 300) == []
    assert len(tight(250, 300)) == 1


def test_partitions_that_are_stalled_and_too_few_gaps_say_nothing_of_batches() -> None:
    assert tight(420, 480, consumed=0.0) == []
    life = Life(timeout=480).generation(10, A, B)
    few = np.where(np.arange(WINDOWS) < 9, 420.0, np.nan)
    assert (
        evaluate("TIMEOUT_TIGHT", life.signals(topics=[series(interval=few, consumed=100.0)])) == []
    )


def test_commits_rarer_than_any_poll_come_from_a_timer() -> None:
    (found,) = tight(600, 300)
    assert (found.state, found.guards) == ("fails", {"no_timer_commits": "fail"})


@pytest.mark.parametrize(("seconds", "expected"), [(45, []), (44, ["static"]), (30, ["static"])])
def test_a_session_outlasts_the_longest_restarts_by_half(
    seconds: float, expected: list[str]
) -> None:
    life = Life(session=seconds).generation(10, *IDS)
    for number, away in enumerate((20.0, 25.0, 30.0)):
        life.static_return(1000 + 100 * number, IDS[number], "new", "/10.0.0.1", away=away)
    assert [each.subject for each in evaluate("TIMEOUT_TIGHT", life.signals())] == expected


def test_absences_of_unknown_length_say_nothing_of_the_session() -> None:
    life = Life(session=6).generation(10, *IDS).static_return(1000, "s-0", "new", "/10.0.0.1")
    assert evaluate("TIMEOUT_TIGHT", life.signals()) == []


def test_subscriptions_may_differ_for_half_an_hour() -> None:
    life = Life().generation(1800, A, B, of_member={B: {"topics": ["payments"]}})
    assert evaluate("SUBSCRIPTION_DIVERGENT", life.signals(NOW)) == []
    (found,) = evaluate("SUBSCRIPTION_DIVERGENT", life.signals(NOW + 60))
    assert (found.evidence["differ_seconds"], found.evidence_text["topics"]) == (
        1860,
        "orders | payments",
    )


def test_a_static_member_that_outstayed_its_session_is_named_with_its_absence() -> None:
    life = Life().generation(10, *IDS).generation(3045, *IDS[:2]).generation(3070, *IDS)
    (found,) = evaluate("STATIC_EXPIRED", life.signals())
    assert (found.subject, found.severity) == ("s-2", "warn")
    assert (found.evidence["absence_seconds"], found.evidence["session_timeout_seconds"]) == (
        70,
        45,
    )
    assert evaluate("STATIC_EXPIRED", life.signals(3070 + 1800)) == []


def test_static_members_that_are_evicted_again_and_again_were_not_restarted() -> None:
    life = Life().generation(10, *IDS)
    for second, gone in ((2400, "s-0"), (2600, "s-2"), (2800, "s-2")):
        life.generation(second, *[each for each in IDS if each != gone]).generation(
            second + 20, *IDS
        )
    assert {each.subject for each in evaluate("STATIC_EXPIRED", life.signals(2700))} == {
        "s-0",
        "s-2",
    }
    assert evaluate("STATIC_EXPIRED", life.signals()) == []


def test_a_member_that_was_taken_away_did_not_expire() -> None:
    assert (
        evaluate("STATIC_EXPIRED", Life().generation(10, *IDS).generation(3045, *IDS[:2]).signals())
        == []
    )


def duplicate(*hosts: str, **columns: Any) -> list[Observation]:
    life = Life().generation(10, *IDS)
    for number, host in enumerate(hosts):
        life.static_return(3100 + 60 * number, "s-0", f"m{number}", host)
    return evaluate("STATIC_DUPLICATE", life.signals(**columns))


def test_an_id_that_flips_between_two_hosts_is_used_twice() -> None:
    (found,) = duplicate("/b", "/10.0.0.1", "/b")
    assert (found.subject, found.severity, found.confidence) == ("s-0", "warn", 0.9)
    assert found.evidence_text["hosts"] == "/10.0.0.1, /b, /10.0.0.1, /b"
    assert duplicate("/b", "/10.0.0.1", "/b", is_material=True)[0].severity == "page"


def test_a_rolling_restart_and_a_pod_that_crashes_on_its_host_are_no_duplicates() -> None:
    assert duplicate("/b") == []
    assert duplicate("/b", "/10.0.0.1") == []
    assert duplicate("/10.0.0.1", "/10.0.0.1", "/10.0.0.1") == []


def test_a_pod_that_lands_on_a_new_host_each_time_may_be_a_duplicate() -> None:
    assert [each.confidence for each in duplicate("/b", "/c", "/d")] == [0.6]


def unstable(*names: str) -> list[Observation]:
    now = list(IDS)
    life = Life().generation(10, *now)
    for number, name in enumerate(names):
        life.generation(1000 + 200 * number, *now, name)
        now[number % len(now)] = name
        life.generation(1045 + 200 * number, *now)
    return evaluate("STATIC_ID_UNSTABLE", life.signals())


def test_three_restarts_under_new_ids_are_unstable_ids() -> None:
    (found,) = unstable("s-7f9c", "s-a1b2", "s-33d0", "s-9e9e")
    assert (found.state, found.evidence["restarts"]) == ("holds", 4)
    assert (found.evidence["unread_seconds_each"], found.evidence["unread_seconds"]) == (45, 180)
    assert unstable("s-7f9c", "s-a1b2") == []


def test_names_that_somebody_changed_are_a_migration() -> None:
    assert [each.guards for each in unstable("orders-0", "orders-1", "orders-2")] == [
        {"not_renamed_once": "fail"}
    ]


def row(day: float, **columns: Any) -> dict[str, Any]:
    begin = at(NOW - 86_400 * day)
    known = {
        "started_at": begin,
        "ended_at": begin,
        "is_spike": True,
        "static_share": 0.0,
        "lag_record_seconds": 500.0,
    }
    return known | columns


def used(*deploys: dict[str, Any], slots: tuple[str, ...] = (A, B)) -> list[float]:
    signals = Life().generation(10, *slots).signals(deploys=deploys)
    return [each.evidence["lag_record_seconds"] for each in evaluate("STATIC_NOT_USED", signals)]


def test_two_costly_deploys_a_week_without_instance_ids_are_worth_a_note() -> None:
    assert used(row(1), row(3), row(6)) == [1500.0]
    assert used(row(1)) == []
    assert used(row(1), row(7.1)) == []
    assert used(row(1), row(2, is_spike=False)) == []
    assert used(row(1), row(2), slots=IDS) == []


def test_one_deploy_is_counted_once_though_the_frame_holds_it_as_well() -> None:
    signals = Life().generation(10, A, B).signals(deploys=[row(1), row(1)])
    assert evaluate("STATIC_NOT_USED", replace(signals, topics=())) == []
