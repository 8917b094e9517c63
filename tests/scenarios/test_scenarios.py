"""A few faults and look-alikes end to end: bytes of the offsets topic → decode → advance → tables →
findings.

All scenarios and many seeds: `make scenarios`.
"""

from __future__ import annotations

from functools import cache

import pytest

from scenarios import recordings
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.runs import Recorded, record, simulate
from scenarios.scoring import Scored, opened, score

FEW = (
    "SC03b",
    "SC06",
    "SC10",
    "SC11",
    "SC20",
    "SC28",
    "SC33",
    "SC52",
    "LA5",
    "LA8",
    "LA13",
    "LA18",
)
SEED = 1


@cache
def recorded() -> dict[str, Recorded]:
    """One job for all of them: their groups lie in one cluster."""
    runs = [simulate(SCENARIOS[name], SEED, place) for place, name in enumerate(FEW)]
    return {each.run.scenario.name: each for each in recordings.recorded(runs)}


@cache
def scored(name: str) -> Scored:
    each = recorded()[name]
    diagnosed = diagnose(each)
    return score(each.run, diagnosed.findings, diagnosed.windows)


@pytest.mark.parametrize("name", FEW)
def test_what_must_open_opens_in_time_and_nothing_else_does(name: str) -> None:
    found = scored(name)
    assert (found.misses, found.false, found.late) == (set(), set(), set())


@pytest.mark.parametrize("name", FEW)
def test_the_cause_is_the_primary_one(name: str) -> None:
    assert scored(name).primary in (True, None), scored(name).primaries


@pytest.mark.parametrize("name", FEW)
def test_whether_more_members_would_help_is_right_in_nearly_all_windows(name: str) -> None:
    found = scored(name)
    assert found.verdicts_right >= 0.9 * found.verdicts, dict(found.wrong_verdicts)


def test_a_replay_gives_the_same_rows() -> None:
    each = recorded()["SC06"]
    one, again = diagnose(each), diagnose(each)
    assert one.findings == again.findings
    assert one.windows == again.windows


@pytest.mark.parametrize("name", ["SC06", "SC11"])
def test_a_job_that_restarts_goes_on_with_the_same_findings(name: str) -> None:
    each = recorded()[name]
    assert diagnose(each, is_restarted=True).findings == diagnose(each).findings


def test_a_run_beside_others_is_recorded_as_if_it_were_alone() -> None:
    alone = record([simulate(SCENARIOS["SC20"], SEED, FEW.index("SC20"))])[0]
    among = recorded()["SC20"]
    for name in ("lag_windows", "generations", "group_members", "group_events"):
        drop = [column for column in ("batch_id",) if column in alone.tables[name].column_names]
        one, other = (each.tables[name].drop_columns(drop).to_pylist() for each in (alone, among))
        assert sorted(map(str, one)) == sorted(map(str, other))


def test_findings_are_folded_by_id_and_keep_their_roles() -> None:
    def row(name: str, event: str, code: str, at: int, role: str) -> dict[str, object]:
        same = {"group": "g", "partitions": [1]}
        return {"finding_id": name, "event": event, "code": code, "at": at, "role": role, **same}

    slow, crash = opened(
        [
            row("a", "opened", "SLOW_MEMBER", 10, "primary"),
            row("b", "opened", "CRASH_LOOP", 15, "suppressed"),
            row("a", "updated", "SLOW_MEMBER", 20, "suppressed"),
            row("a", "closed", "SLOW_MEMBER", 30, "suppressed"),
        ]
    )
    assert [slow.role_at(at) for at in (5, 10, 19, 20, 30)] == [
        "",
        "primary",
        "primary",
        "suppressed",
        "",
    ]
    assert slow.is_shown
    assert not crash.is_shown
