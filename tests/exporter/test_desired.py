"""Consumers to have: what the sizing says, within what the owners allow; unknown
asks for nothing.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laggard.config.policy import Policies, PolicyRule
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules.registry import BLOCKS_SCALING
from laggard.exporter.body.families import GROUP_DESIRED
from laggard.exporter.collectors.sizing import SizingCollector, desired_consumers
from laggard.exporter.evaluated import Evaluated, EvaluatedReader
from laggard.exporter.snapshot import Snapshot
from laggard.tables.published import Batch
from tables.fixtures import NOW, finding_row, window_row, write_evaluated

ASLEEP = {"lag": 0, "arrival_rate": 0.0}
LAZY = Policy(scale_to_zero=True, idle_seconds=600.0)


def desired(policy: Policy | None = None, idle_seconds: float = 0.0, **values: Any) -> int | None:
    """When the window before said the same."""
    rows = [window_row("g", "t", **values)]
    return desired_consumers(rows, policy or Policy(), idle_seconds, [rows])


@pytest.mark.parametrize(
    ("members_desired", "policy", "expected"),
    [
        (3, Policy(), 3),
        (3, Policy(min_consumers=4), 4),
        (3, Policy(max_consumers=2), 2),
        (9, Policy(), 6),  # the ceiling: a seventh would get no partition
        (9, Policy(max_consumers=5), 5),
        (0, Policy(), 1),
        (3, Policy(min_consumers=9), 6),
        (3, Policy(min_consumers=5, max_consumers=4), 4),
    ],
)
def test_policy_and_ceiling_bound_what_the_sizing_says(
    members_desired: int, policy: Policy, expected: int
) -> None:
    assert desired(policy, members_desired=members_desired) == expected


@pytest.mark.parametrize("verdict", ["UNKNOWN", "UNKNOWN_INPUT"])
def test_unknown_is_absent(verdict: str) -> None:
    assert desired(scale_verdict=verdict, members_desired=None) is None


def test_partial_is_absent_also_when_it_is_another_topic() -> None:
    assert desired(status="partial") is None
    rows = [window_row("g", "a"), window_row("g", "b", status="partial")]
    assert desired_consumers(rows, Policy()) is None


def test_a_topic_that_nobody_subscribes_to_any_more_asks_for_nobody() -> None:
    left = window_row("g", "b", status="partial", flags=["left"], lag=None)
    wanted = desired(members_desired=5)
    for rows in (
        [window_row("g", "a", members_desired=5), left],
        [left, window_row("g", "a", members_desired=5)],
    ):
        assert desired_consumers(rows, Policy(), 0.0, [rows]) == wanted == 5


def test_a_group_without_members_is_to_have_the_fewest_allowed() -> None:
    empty = {"scale_verdict": "NO_MEMBERS", "members": 0, "members_desired": 0}
    assert desired(Policy(min_consumers=2), **empty) == 2
    assert desired(Policy(min_consumers=0), **empty) == 0


def test_a_group_that_may_scale_to_zero_is_woken_by_one_record() -> None:
    empty = {"scale_verdict": "NO_MEMBERS", "members": 0, "members_desired": 0, "capacity": None}
    lazy = Policy(scale_to_zero=True, min_consumers=0)
    assert desired(lazy, **empty, lag=1, arrival_rate=0.0) == 1
    assert desired(lazy, **empty, lag=0, arrival_rate=0.1) == 1
    assert desired(lazy, **empty, **ASLEEP) == 0


@pytest.mark.parametrize(("idle_seconds", "expected"), [(600, 0), (599, 2)])
def test_it_sleeps_after_its_idle_time(idle_seconds: float, expected: int) -> None:
    idle = {"scale_verdict": "NOT_NEEDED", "members_desired": 2, **ASLEEP}
    assert desired(LAZY, idle_seconds, **idle) == expected
    assert desired(Policy(), idle_seconds, **idle) == 2


def test_it_does_not_sleep_while_another_topic_has_lag() -> None:
    rows = [
        window_row(
            "g", topic, scale_verdict="NOT_NEEDED", members_desired=2, arrival_rate=0.0, lag=lag
        )
        for topic, lag in (("a", 0), ("b", 5))
    ]
    assert desired_consumers(rows, LAZY, 6000) == 2


def sized(wanted: int | None, members: int = 4, **values: Any) -> list[dict[str, Any]]:
    """Two topics of a group whose members do 10 records/s each and are to be so many."""
    same = {
        "members": members,
        "members_desired": wanted,
        "members_lower_bound": 1,
        "capacity": 10.0,
    }
    return [
        window_row("g", topic, **(same | {"arrival_rate": 7.0} | values)) for topic in ("t", "u")
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([6], 4),  # the first window that wants more
        ([6, 4], 4),
        ([6, 5], 5),  # what both want
        ([5, 6], 5),
        ([6, 6], 6),
        ([6, None], 4),  # of the one before it is not known
    ],
)
def test_more_are_wanted_when_two_windows_say_so(wanted: list[int | None], expected: int) -> None:
    now, *before = (sized(each) for each in wanted)
    assert desired_consumers(now, Policy(), before=before) == expected


def after_hour(
    windows: int = 59, *, is_restless: bool = False, policy: Policy | None = None, **odd: Any
) -> int | None:
    """With so many windows before that are alike, but for the oldest."""
    before = [sized(4) for _ in range(windows - 1)] + [sized(4, **odd)]
    return desired_consumers(sized(4), policy or Policy(), before=before, is_restless=is_restless)


def test_one_less_is_wanted_after_an_hour_in_which_fewer_would_do() -> None:
    assert after_hour() == 3  # 14 of 40 records/s
    assert after_hour(58) == 4
    assert after_hour(policy=Policy(min_consumers=4)) == 4


@pytest.mark.parametrize(
    "odd",
    [
        {"arrival_rate": 8.01},  # 16.02 of 40: more than four tenths
        {"arrival_rate": None},
        {"members_lower_bound": 4},
        {"members_lower_bound": None},
        {"capacity": None},
        {"members": 5},  # the hour begins with the last change
    ],
)
def test_one_window_of_the_hour_in_which_fewer_would_not_do_keeps_them_all(
    odd: dict[str, Any],
) -> None:
    assert after_hour(**odd) == 4
    assert after_hour(arrival_rate=8.0) == 3


def test_nobody_is_sent_away_while_rebalances_are_a_finding() -> None:
    assert after_hour(is_restless=True) == 4
    assert (
        "unless a finding is open that forbids scaling (verdict NO_REBALANCE_FIRST)"
        in GROUP_DESIRED.help
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [*((code, 4) for code in sorted(BLOCKS_SCALING)), ("PARTITION_SKEW", 3), ("IDLE_MEMBERS", 3)],
)
def test_nobody_is_sent_away_while_a_finding_is_open_for_which_the_verdict_sizes_nobody(
    code: str, expected: int
) -> None:
    hour = {"g": [sized(4)] * 59}
    evaluated = Evaluated(NOW.timestamp(), sized(4), before=hour, findings=[finding_row(code, "g")])
    (wanted, *_) = SizingCollector(
        Snapshot(Batch({"cluster": "prod"}, 1), evaluated=evaluated)
    ).collect()
    assert [(each.labels["group"], each.value) for each in wanted.samples] == [("g", expected)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("missing", "expected"), [pytest.param(None, 3, marks=pytest.mark.full), (30, 4)]
)
def test_the_hour_is_read_from_the_tables_window_by_window(
    tmp_path: Path, missing: int | None, expected: int
) -> None:
    reader = EvaluatedReader(str(tmp_path), 60)
    for number in range(60):
        write_evaluated(
            tmp_path, NOW + timedelta(minutes=number), windows=[] if number == missing else sized(4)
        )
        if number in (10, 11, 40):
            reader.read()
    for evaluated in (reader.read(), EvaluatedReader(str(tmp_path), 60).read()):
        assert desired_consumers(sized(4), Policy(), before=evaluated.before["g"]) == expected


def idle_seconds(root: Path, minutes: list[int | None], longest: float = 3600.0) -> float:
    """How long group g is idle when its lag at the end of these minutes was this; None: a minute
    without a row.
    """
    for n, lag in enumerate(minutes):
        rows = (
            []
            if lag is None
            else [window_row("g", "t", lag=lag, arrival_rate=0.0), window_row("g", "u", **ASLEEP)]
        )
        write_evaluated(root, NOW + timedelta(minutes=n), windows=rows)
    return EvaluatedReader(str(root), 60, longest).read().idle_seconds.get("g", 0.0)


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [([0, 0, 0], 180), ([0, 7, 0, 0], 120), ([0, 0, 7], 0), ([0, None, 0, 0], 120)],
)
def test_idle_time_is_what_was_seen_of_it(
    tmp_path: Path, minutes: list[int | None], expected: float
) -> None:
    assert idle_seconds(tmp_path, minutes) == expected


def test_idle_time_is_not_asked_for_where_no_policy_needs_it(tmp_path: Path) -> None:
    assert idle_seconds(tmp_path, [0, 0, 0], longest=0.0) == 0


def test_the_longest_idle_time_of_a_cluster_is_that_of_its_policies() -> None:
    lazy = PolicyRule("a", values={"scale_to_zero": True})
    patient = PolicyRule("b", cluster="prod", values={"idle_seconds": 900.0})
    assert Policies((patient,)).idle_seconds("prod") == 0
    assert Policies((lazy, patient)).idle_seconds("prod") == 900
    assert Policies((lazy, patient)).idle_seconds("test") == 600
