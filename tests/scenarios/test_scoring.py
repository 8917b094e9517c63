from __future__ import annotations

from typing import Any

import pytest

from scenarios.catalogue import SCENARIOS
from scenarios.cluster import ScenarioCluster
from scenarios.labels import Expect, Labels, Must, Scenario
from scenarios.runs import Run, envelope_later
from scenarios.scoring import DOES_NOT_HELP, HELPS, Scored, score
from simulator.simulation import Simulation
from simulator.truth import Truth

Row = dict[str, Any]
LABELS = Labels(
    40,
    must=(Must("SLOW_MEMBER", 20, within=5, partitions=frozenset({1, 2})),),
    may=frozenset({"CRASH_LOOP"}),
    never=frozenset({"PING_PONG"}),
    primary=frozenset({"SLOW_MEMBER"}),
    expects=(Expect(25, 35, frozenset({"NO_UNHEALTHY_MEMBER"})),),
)


def made(findings: list[Row], windows: list[Row] | None = None) -> Scored:
    cluster = ScenarioCluster(0)
    run = Run(
        Scenario("SC00", "made up", lambda _: LABELS),
        0,
        LABELS,
        cluster,
        Simulation("SC00", 0, [], [], Truth()),
    )
    for row in windows or []:
        row["group"] = cluster.name()
        row["window_start"] = cluster.at_ms(row["window_start"])
    for row in findings:
        row["at"] = cluster.at_ms(row["at"])
    return score(run, findings, windows or [])


def finding(
    code: str, minute: float, role: str = "primary", partitions: tuple[int, ...] = (1,)
) -> Row:
    same = {"group": "g", "partitions": list(partitions)}
    return {
        "finding_id": f"{code} {minute}",
        "event": "opened",
        "code": code,
        "at": minute,
        "role": role,
        **same,
    }


def test_a_finding_in_time_on_the_right_partitions_is_a_hit_with_its_delay() -> None:
    found = made([finding("SLOW_MEMBER", 23)])
    assert (found.hits, found.misses, found.late, found.false) == (
        {"SLOW_MEMBER": 3.0},
        set(),
        set(),
        set(),
    )
    assert found.primary is True


def test_a_late_finding_is_a_hit_and_late() -> None:
    found = made([finding("SLOW_MEMBER", 26)])
    assert found.hits == {"SLOW_MEMBER": 6.0}
    assert found.late == {"SLOW_MEMBER"}


@pytest.mark.parametrize(
    "opened",
    [
        pytest.param([], id="nothing"),
        pytest.param([finding("SLOW_MEMBER", 23, partitions=(7,))], id="other partitions"),
        pytest.param([finding("SLOW_MEMBER", 23, role="suppressed")], id="never shown"),
    ],
)
def test_what_is_not_shown_where_it_must_be_is_missed(opened: list[Row]) -> None:
    assert made(opened).misses == {"SLOW_MEMBER"}


def test_a_finding_long_before_its_cause_is_false_and_no_hit() -> None:
    found = made([finding("SLOW_MEMBER", 10)])
    assert (found.misses, found.false) == ({"SLOW_MEMBER"}, {"SLOW_MEMBER"})


def test_alarms_nobody_allowed_are_false_and_notes_only_where_they_are_forbidden() -> None:
    codes = ("HOT_PARTITION_ARRIVAL", "CRASH_LOOP", "PING_PONG", "IDLE_MEMBERS")
    found = made(
        [finding("SLOW_MEMBER", 21), *(finding(code, 25, "contributing") for code in codes)]
    )
    assert found.false == {"HOT_PARTITION_ARRIVAL", "PING_PONG"}


def test_another_primary_for_most_of_the_time_is_wrong() -> None:
    found = made([finding("SLOW_MEMBER", 21, "contributing"), finding("CRASH_LOOP", 21)])
    assert (found.primary, found.primaries) == (False, ("CRASH_LOOP",))


def test_verdicts_are_counted_in_whole_windows_of_their_time() -> None:
    rows: list[Row] = [
        {"window_start": minute, "scale_verdict": "YES" if minute == 30 else "NO_UNHEALTHY_MEMBER"}
        for minute in range(20, 40)
    ]
    found = made([], rows)
    assert (found.verdicts_right, found.verdicts, found.wrong_verdicts) == (9, 10, {"YES": 1})


@pytest.mark.full
def test_more_members_help_in_a_shortage_and_not_with_a_hot_partition() -> None:
    short = 95.0
    shortage = envelope_later(SCENARIOS["SC01"], 1, short, 12) / envelope_later(
        SCENARIOS["SC01"], 1, short, None
    )
    assert shortage <= HELPS
    hot = envelope_later(SCENARIOS["SC03b"], 1, 30, 6) / envelope_later(
        SCENARIOS["SC03b"], 1, 30, None
    )
    assert hot >= DOES_NOT_HELP
