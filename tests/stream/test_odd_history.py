"""A group whose recorded rows are odd costs its own evaluation only, and a finding says so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.fluid import NOON, Evaluation, Fluid, Row, tables_of
from laggard.diagnosis.engine import RULE_FAILED, settle_apart
from laggard.diagnosis.history.frames import Memory, from_json
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.signals.cluster import ClusterFrame
from laggard.stream.evaluation import evaluating
from laggard.stream.evaluation.evaluating import check_rows, evaluate_window, writable
from laggard.stream.evaluation.reading import Options, Window
from laggard.tables.schema.schemas import TABLES

WINDOWS, ODD, OTHERS = 10, "odd", 5
OPTIONS = Options("c", 60, Parameters(), lambda *_: Policy())
READ = (
    "lag_windows",
    "group_history",
    "generations",
    "group_members",
    "rebalances",
    "group_events",
)
Change = Callable[[str, list[Row]], list[Row]]


def fluid(group: str, *, is_hot: bool = False) -> Fluid:
    arrival = np.full((6, WINDOWS), 50.0)
    arrival[3, 4:] = 1500.0 if is_hot else 50.0
    return Fluid(arrival, np.full((3, WINDOWS), 1000.0), group=group)


GROUPS = [fluid(f"g{number}", is_hot=number % 2 == 0) for number in range(OTHERS)]
TABLES_OF = {name: rows.to_pylist() for name, rows in tables_of([*GROUPS, fluid(ODD)]).items()}
SCHEMAS = {name: rows.schema for name, rows in tables_of([]).items()}


def evaluate(
    rows: Mapping[str, Any], memories: dict[str, Memory] | None = None, last: int = 6
) -> Evaluation:
    """The last windows of these tables, as the stream evaluates them."""
    evaluation = Evaluation(memories=memories or {})
    for number in range(WINDOWS - last, WINDOWS):
        window = Window(round((NOON + timedelta(minutes=number)).timestamp() * 1000), 1)
        evaluated = evaluate_window(rows, window, evaluation.memories, lambda _: dict, OPTIONS)
        evaluated = [writable(each) for each in evaluated]
        cluster = ClusterFrame("c", window.begin_ms, 60)
        found, findings, evaluation.memories = settle_apart(
            evaluated, cluster, evaluation.memories, Parameters(), check_rows
        )
        evaluation.windows += found
        evaluation.findings += findings
    return evaluation


def tables(change: Change = lambda _, rows: rows) -> dict[str, pa.Table]:
    """All rows, those of the odd group changed."""
    found = {}
    for name, rows in TABLES_OF.items():
        others, own = (
            [row for row in rows if (row["group"] == ODD) == is_own] for is_own in (False, True)
        )
        changed = change(name, [dict(row) for row in own]) if name in READ else own
        found[name] = pa.Table.from_pylist([*others, *changed], schema=SCHEMAS[name])
    return found


def of_others(evaluation: Evaluation) -> tuple[list[str], ...]:
    rows = (evaluation.windows, evaluation.findings)
    memories = {
        group: memory.to_json()
        for group, memory in evaluation.memories.items()
        if group not in (ODD, "")
    }
    return *(
        [str(row) for row in each if row["group"] not in (ODD, None)] for each in rows
    ), sorted(map(str, memories.items()))


EXPECTED = of_others(evaluate(tables()))


def failures(evaluation: Evaluation) -> dict[str, str]:
    return {
        row["subject"]: row["evidence_text"]["error"]
        for row in evaluation.findings
        if row["code"] == RULE_FAILED
    }


def test_the_others_have_findings_to_lose() -> None:
    windows, findings, _ = EXPECTED
    assert len(windows) == 6 * OTHERS
    assert len(findings) >= 3


LONG = 2**63 - 1
EXTREMES: dict[str, list[Any]] = {
    "bigint": [None, LONG, -LONG - 1, -1, 0, 2**53 + 11],
    "int": [None, 2**31 - 1, -(2**31), -1],
    "double": [None, math.nan, math.inf, -math.inf, -1.0, 1e308],
    "string": [None, "", "x" * 32_767, "a\x00\n\x1b[2J\u202e", "Dead"],
    "boolean": [None, True, False],
    # the last two outside the calendar
    "timestamp": [None, NOON - timedelta(days=200_000), LONG, -LONG],
}
COLUMNS = [
    (name, column)
    for name in ("lag_windows", "group_history")
    for column in TABLES[name].columns
    # else it is of no group, or of no window that is evaluated
    if column.name not in ("group", "window_start")
]
CHANGES = [
    (name, column.name, value)
    for name, column in COLUMNS
    for value in EXTREMES.get(column.type, [None])
]


def replaced(table: str, column: str, value: Any) -> Change:
    return lambda name, rows: [row | {column: value} for row in rows] if name == table else rows


def emptied(table: str) -> Change:
    return lambda name, rows: [] if name == table else rows


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4))
def test_odd_values_of_one_group_change_nothing_of_the_others(
    changes: list[tuple[str, str, Any]],
) -> None:
    def change(name: str, rows: list[Row]) -> list[Row]:
        for each in changes:
            rows = replaced(*each)(name, rows)
        return rows

    assert (
        of_others(evaluate(tables(change), last=2))[2] == of_others(evaluate(tables(), last=2))[2]
    )


@pytest.mark.parametrize(
    "change",
    [
        replaced("lag_windows", "partition", -1),
        replaced("lag_windows", "partition", 2**31 - 1),
        replaced("lag_windows", "topic", None),
        replaced("lag_windows", "group", None),
        replaced("group_history", "group", None),
        replaced("group_history", "topic_partitions", [("t", 1), ("t", 2)]),
        replaced("group_history", "state_since", LONG),
        lambda name, rows: rows * 2,
        emptied("group_history"),
        emptied("lag_windows"),
    ],
)
def test_odd_rows_of_one_group_change_nothing_of_the_others(change: Change) -> None:
    assert of_others(evaluate(tables(change))) == EXPECTED


@pytest.mark.parametrize(("stage", "name"), [("layout", "evaluate_groups"), ("findings", "")])
def test_a_group_for_which_a_stage_raises_is_named_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, stage: str, name: str
) -> None:
    is_odd = True
    real_frames, real_check = evaluating.evaluate_groups, check_rows

    def breaks(history: Any, *rest: Any) -> Any:
        for each in real_frames(history, *rest):
            if is_odd and stage == "layout" and each.group == ODD:
                raise OverflowError("no such number")
            yield each

    def refuses(windows: Any, findings: Any, memories: Any) -> None:
        if is_odd and stage == "findings" and any(row["group"] == ODD for row in windows):
            raise pa.ArrowInvalid("no such type")
        real_check(windows, findings, memories)

    monkeypatch.setattr(evaluating, "evaluate_groups", breaks)
    monkeypatch.setitem(globals(), "check_rows", refuses)
    evaluation = evaluate(tables(), last=2)
    assert list(failures(evaluation)) == [stage]
    assert of_others(evaluation)[2] == of_others(evaluate_plainly())[2]
    assert all(row["group"] != ODD for row in evaluation.windows)
    is_odd = False
    after = evaluate(tables(), evaluation.memories, last=1)
    assert [row["group"] for row in after.windows].count(ODD) == 1


def evaluate_plainly() -> Evaluation:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "check_rows", evaluating.check_rows)
        return evaluate(tables(), last=2)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"tracks": [{"code": 1}]}', '{"trends": 3}', '{"busy": {"a": [1]}}']
)
def test_a_memory_that_cannot_be_read_is_begun_again_and_named(text: str) -> None:
    evaluation = evaluate(tables(), {ODD: from_json(text)}, last=1)
    assert list(failures(evaluation)) == ["memory"]
    assert evaluation.memories[ODD].lost == ""
    assert of_others(evaluation)[2] == of_others(evaluate(tables(), last=1))[2]


def test_a_finding_of_a_rule_that_is_no_more_stops_nobody() -> None:
    """A newer version was put back: its rules are in the memory."""
    track = {
        "code": "OF_TOMORROW",
        "topic": "",
        "partitions": [],
        "subject": "",
        "since_ms": 1,
        "opened_ms": 2,
    }
    memory = from_json(json.dumps({"tracks": [track]}))
    for group in (ODD, "", "gone"):
        evaluation = evaluate(tables(), {group: memory}, last=1)
        assert failures(evaluation) == {}
        assert all(
            track.code != "OF_TOMORROW"
            for each in evaluation.memories.values()
            for track in each.tracks
        )


def test_an_open_finding_is_unknown_and_not_over_while_its_group_cannot_be_evaluated() -> None:
    evaluation = evaluate(tables())
    opened = [
        row for row in evaluation.findings if row["group"] == "g0" and row["event"] == "opened"
    ]
    assert opened
    history = tables()

    def policy(_: str, group: str, __: Any) -> Policy:
        if group == "g0":
            raise KeyError("no policy")
        return Policy()

    options = Options("c", 60, Parameters(), policy)
    window = Window(round((NOON + timedelta(minutes=WINDOWS - 1)).timestamp() * 1000), 1)
    evaluated = evaluate_window(history, window, evaluation.memories, lambda _: dict, options)
    cluster = ClusterFrame("c", window.begin_ms, 60)
    _, findings, memories = settle_apart(
        evaluated, cluster, evaluation.memories, Parameters(), check_rows
    )
    assert {row["code"] for row in findings if row["group"] == "g0"} == {RULE_FAILED}
    codes = {track.code: track.missed for track in memories["g0"].tracks}
    assert {row["code"]: codes[row["code"]] for row in opened} == dict.fromkeys(
        (row["code"] for row in opened), 0
    )
