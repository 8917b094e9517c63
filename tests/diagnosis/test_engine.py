"""The engine over whole histories: what opens, what it is called, what it does not say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import Evaluation, Fluid, evaluate, tables_of
from laggard.diagnosis import engine
from laggard.diagnosis.findings.tracks import advance_tracks
from laggard.diagnosis.history.frames import Track, from_json
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.rules.rule import Observation, Rule
from laggard.diagnosis.signals.group import Signals
from patience import some

WINDOWS, BREAK = 75, 40


def rates(value: float, partitions: int = 12) -> np.ndarray[Any, Any]:
    return np.full((partitions, WINDOWS), float(value))


def capacities(value: float = 600.0, members: int = 4) -> np.ndarray[Any, Any]:
    return np.full((members, WINDOWS), float(value))


def short(seed: int = 1) -> Fluid:
    arrival = rates(100)
    arrival[:, BREAK:] = 220
    return Fluid(arrival, capacities(), seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_group_has_no_findings(seed: int) -> None:
    evaluation = evaluate(Fluid(rates(100), capacities(), seed).tables())
    assert evaluation.findings == []
    assert {row["scale_verdict"] for row in evaluation.windows} == {"NOT_NEEDED"}
    assert {row["shape"] for row in evaluation.windows} == {"none"}
    drains = {
        "drain_seconds",
        "drain_at_capacity_seconds",
        "drain_low_seconds",
        "drain_high_seconds",
    }
    assert {row[name] for row in evaluation.windows for name in drains} <= {None, 0.0}
    assert {row["drain_seconds"] for row in evaluation.windows} == {0.0}


def test_too_few_members_for_the_arrivals_is_a_shortage_and_more_would_help() -> None:
    evaluation = evaluate(short().tables())
    assert evaluation.open_codes() == {"CAPACITY_SHORTAGE"}
    last = evaluation.last()
    assert (last["shape"], last["trend"], last["scale_verdict"]) == ("spread", "growing", "YES")
    assert last["capacity"] == pytest.approx(600, rel=0.05)
    assert last["members_desired"] > 4
    assert last["primary_code"] == "CAPACITY_SHORTAGE"
    opened = next(row for row in evaluation.findings if row["event"] == "opened")
    by_end = {row["window_end"]: row for row in evaluation.windows}
    assert (
        by_end[opened["at"]]["primary_evidence"] == opened["evidence"] != last["primary_evidence"]
    )
    assert {
        row["primary_evidence"] is None
        for row in evaluation.windows
        if row["window_end"] < opened["at"]
    } == {True}


def test_a_finding_keeps_the_thresholds_of_the_policy_by_which_its_rule_decided() -> None:
    evaluation = evaluate(
        short().tables(), policy=Policy(drain_target_seconds=600.0, slo_objective=0.999)
    )
    [*found, last] = [row for row in evaluation.findings if row["code"] == "CAPACITY_SHORTAGE"]
    assert {row["params"]["drain_target_seconds"] for row in (*found, last)} == {600.0}
    [other] = {
        row["rule_version"]
        for row in evaluate(short().tables()).findings
        if row["code"] == last["code"]
    }
    assert last["rule_version"] != other


@pytest.mark.parametrize(("partitions", "members"), [(4, 1), (4, 2), (12, 4)])
def test_a_new_group_with_a_hot_partition_is_to_add_nobody(partitions: int, members: int) -> None:
    arrival = np.full((partitions, 20), 10.0)
    arrival[2] = 900.0
    evaluation = evaluate(Fluid(arrival, np.full((members, 20), 600.0)).tables())
    verdicts = [row["scale_verdict"] for row in evaluation.windows]
    assert set(verdicts) <= {"NOT_NEEDED", "UNKNOWN", "NO_HOT_PARTITION"}
    assert verdicts[10:] == ["NO_HOT_PARTITION"] * len(verdicts[10:])
    wanted = [
        row["members_desired"] for row in evaluation.windows if row["members_desired"] is not None
    ]
    assert set(wanted) == {members}


@pytest.mark.examples
@pytest.mark.parametrize("seed", some(range(3)))
@pytest.mark.parametrize(
    ("arrival", "members", "code"),
    [
        ([900, 50, 50, 50], 2, "HOT_PARTITION_ARRIVAL"),
        ([900, 20, 20, 20, 20, 20], 3, "HOT_PARTITION_ARRIVAL"),
        ([300, 300, 300, 300], 2, "CAPACITY_SHORTAGE"),
        ([400, 300, 250, 350, 300, 250], 3, "CAPACITY_SHORTAGE"),
    ],
)
def test_the_causes_of_a_new_group_are_those_of_its_verdict(
    arrival: list[float], members: int, code: str, seed: int
) -> None:
    """More arrives than all members do; one partition alone may account for it, which takes a while
    to know.
    """
    flow = Fluid(np.outer(arrival, np.ones(30)), np.full((members, 30), 500.0), seed)
    evaluation = evaluate(flow.tables())
    primary = {row["code"] for row in evaluation.findings if row["role"] == "primary"}
    shortage = {row["code"] for row in evaluation.findings} & {"CAPACITY_SHORTAGE"}
    assert (primary, shortage) == ({code}, {code} & {"CAPACITY_SHORTAGE"})
    expected = {"YES", "YES_PARTIAL"} if code == "CAPACITY_SHORTAGE" else {"NO_HOT_PARTITION"}
    assert evaluation.last()["scale_verdict"] in expected


def test_one_hot_partition_is_named_and_more_members_would_not_help() -> None:
    arrival = rates(50)
    arrival[7, BREAK:] = 900
    evaluation = evaluate(Fluid(arrival, capacities()).tables())
    (opened,) = [
        row for row in evaluation.findings if row["event"] == "opened" and row["role"] == "primary"
    ]
    assert (opened["code"], opened["partitions"]) == ("HOT_PARTITION_ARRIVAL", [7])
    assert evaluation.last()["scale_verdict"] == "NO_HOT_PARTITION"
    assert evaluation.last()["members_desired"] == 4


def test_a_member_that_hangs_is_one_finding_about_the_member() -> None:
    capacity = capacities()
    capacity[3, BREAK:] = 0
    evaluation = evaluate(Fluid(rates(100), capacity).tables())
    (opened,) = [row for row in evaluation.findings if row["event"] == "opened"]
    assert (opened["code"], opened["subject"], opened["scope"]) == (
        "PARTITION_STALLED",
        "app/10.0.0.3#0",
        "member",
    )
    assert evaluation.last()["scale_verdict"] == "NO_STALLED"


def test_a_group_without_members_is_empty_and_not_slow() -> None:
    evaluation = evaluate(Fluid(rates(100), capacities(members=0)).tables())
    assert evaluation.open_codes() == {"EMPTY_WITH_LAG"}
    assert evaluation.last()["scale_verdict"] == "NO_MEMBERS"


def test_two_groups_are_evaluated_apart() -> None:
    healthy = Fluid(rates(100), capacities(), group="healthy")
    evaluation = evaluate(tables_of([short(), healthy]))
    assert {row["group"] for row in evaluation.findings} == {"billing"}
    assert evaluation.last("healthy")["scale_verdict"] == "NOT_NEEDED"


def test_a_finding_closes_five_windows_after_its_condition_ended() -> None:
    arrival = rates(50)
    arrival[7, 10:30] = 900
    arrival[7, 30:] = 0
    evaluation = evaluate(Fluid(arrival, capacities()).tables())
    events = [
        (row["event"], row["code"])
        for row in evaluation.findings
        if row["code"] == "HOT_PARTITION_ARRIVAL"
    ]
    assert events == [("opened", "HOT_PARTITION_ARRIVAL"), ("closed", "HOT_PARTITION_ARRIVAL")]
    opened, closed = (row for row in evaluation.findings if row["code"] == "HOT_PARTITION_ARRIVAL")
    assert opened["finding_id"] == closed["finding_id"]
    assert (opened["seq"], closed["seq"]) == (0, 1)
    assert (opened["closed_at"], closed["closed_at"]) == (None, closed["at"])
    assert closed["close_reason"] == "cleared"
    states = {
        row["window_end"]: row["unseen_findings"].get(closed["finding_id"])
        for row in evaluation.windows
    }
    ends = [closed["at"] - number * timedelta(seconds=60) for number in (4, 3, 2, 1)]
    assert {end: state for end, state in states.items() if state} == dict.fromkeys(ends, "gone")


def rows_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    return evaluation.findings


def test_a_restart_goes_on_with_the_same_ids_and_opens_nothing_twice() -> None:
    tables = short().tables()
    whole = evaluate(tables)
    first = evaluate({**tables, "group_history": tables["group_history"].slice(0, BREAK + 12)})
    written = {group: memory.to_json() for group, memory in first.memories.items()}
    resumed = replace(first, memories={group: from_json(text) for group, text in written.items()})
    assert rows_of(evaluate(tables, first=BREAK + 12, evaluation=resumed)) == rows_of(whole)
    assert resumed.windows == whole.windows


def test_a_rule_that_fails_is_reported_and_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: Signals) -> list[Any]:
        raise ZeroDivisionError("of course")

    broken = Rule("D99", "ARRIVAL_SKEW", "hygiene", says="", is_not="", falsifier="", check=breaks)
    monkeypatch.setattr(engine, "RULES", (broken, *engine.RULES))
    evaluation = evaluate(short().tables())
    failed = [
        row
        for row in evaluation.findings
        if row["code"] == engine.RULE_FAILED and row["event"] == "opened"
    ]
    assert [(row["subject"], row["evidence_text"]["error"]) for row in failed] == [
        ("ARRIVAL_SKEW", "ZeroDivisionError: of course")
    ]
    assert "CAPACITY_SHORTAGE" in evaluation.open_codes()


def test_a_window_names_what_it_cannot_see(monkeypatch: pytest.MonkeyPatch) -> None:
    before = evaluate(short().tables())
    [found] = [
        row
        for row in before.findings
        if row["code"] == "CAPACITY_SHORTAGE" and row["event"] == "opened"
    ]
    assert not any(row["unseen_findings"] for row in before.windows)
    rule = BY_CODE["CAPACITY_SHORTAGE"]

    def lacks(signals: Signals) -> list[Any]:
        if signals.frame.now_ms / 1000 <= found["at"].timestamp():
            return rule.check(signals)
        return [Observation(rule.code, abstains=True)]

    monkeypatch.setattr(engine, "RULES", [replace(rule, check=lacks)])
    first = next(
        row for row in evaluate(short().tables()).windows if row["window_end"] > found["at"]
    )
    assert first["unseen_findings"] == {found["finding_id"]: "unknown"}


def test_a_rule_that_looks_once_in_a_while_finds_nothing_gone_in_between() -> None:
    rule = replace(BY_CODE["CAPACITY_SHORTAGE"], open_after=1, close_after=6, looks_every=3)
    tracks, states = [Track(rule.code, "", (), "", 0, opened_ms=60_000)], []
    for number in range(7):
        found = [Observation(rule.code)] if number == 0 else []
        end_ms = (number + 2) * 60_000
        [step] = advance_tracks(
            tracks, found, {rule.code: rule}, end_ms - 60_000, end_ms, Parameters()
        )
        tracks, states = [step.track], [*states, (step.unseen, step.closed)]
    assert states == [("", "")] * 3 + [("gone", "")] * 3 + [("", "cleared")]


def test_every_open_code_is_in_the_catalogue_once() -> None:
    codes = [rule.code for rule in engine.RULES]
    assert len(codes) == len(set(codes))
    for rule in engine.RULES:
        assert rule.says
        assert all(hasattr(engine.Parameters(), name) for name in rule.thresholds), rule.code


def test_a_group_that_cannot_be_evaluated_is_reported_and_the_others_are_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(frame: Any, *rest: Any) -> Any:
        if frame.group == "odd":
            raise IndexError("no such window")
        return real(frame, *rest)

    real = engine.signals_of
    monkeypatch.setattr(engine, "signals_of", breaks)
    evaluation = evaluate(tables_of([short(), Fluid(rates(100), capacities(), group="odd")]))
    assert evaluation.open_codes("odd") == {engine.RULE_FAILED}
    assert evaluation.open_codes() == {"CAPACITY_SHORTAGE"}


def test_a_batch_for_everybody_does_not_hide_that_one_member_is_slow() -> None:
    """Each sixth window brings more than a minute's work to all, and the others are done with it in
    the next.
    """
    minutes = np.arange(80)
    arrival = np.where(minutes % 6 == 0, 250.0, 100.0) * np.ones((12, 1))
    capacity = np.full((4, 80), 600.0)
    capacity[2, 50:] = 300.0  # of 375 that arrive
    evaluation = evaluate(Fluid(arrival, capacity).tables())
    assert "SLOW_MEMBER" in evaluation.open_codes()
    assert {row["scale_verdict"] for row in evaluation.windows[65:]} == {"NO_UNHEALTHY_MEMBER"}
