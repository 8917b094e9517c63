"""The words of the diagnosis: every verdict and every rule has some, and each
number has its unit.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laggard.answers.text.diagnosis_words import (
    CLAUSES,
    GUARDS,
    advice,
    avoid,
    clause,
    evidence_words,
    quantity,
    says,
    spoken,
    verdict_sentence,
)
from laggard.diagnosis import rules
from laggard.diagnosis.rules.registry import RULES
from laggard.diagnosis.verdict.reasons import VERDICTS

Row = dict[str, Any]
RULE_FILES = [
    file
    for file in sorted(Path(rules.__path__[0]).glob("*.py"))
    if file.name != "rule.py"  # which declares what follows
]
RESULTS = {"PASS", "FAIL", "UNKNOWN"}
CHECKS = {"guard", "passes", "no_deploy", "no_maintenance"}  # functions that give a result


def window(verdict: str, members: int | None = 3, desired: int | None = 3, **numbers: float) -> Row:
    return {
        "scale_verdict": verdict,
        "scale_reason": numbers,
        "members": members,
        "members_desired": desired,
    }


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_begins_with_its_answer(verdict: str) -> None:
    answer = {
        "YES": "Yes: ",
        "YES_PARTIAL": "In part: ",
        "UNKNOWN": "Not known: ",
        "UNKNOWN_INPUT": "Not known: ",
    }
    assert verdict_sentence(window(verdict)).startswith(answer.get(verdict, "No: "))
    helps = {"YES": "would help", "YES_PARTIAL": "would help, but not enough"}
    if verdict.startswith("NO_") and verdict != "NO_MEMBERS":
        assert clause(verdict) == "adding consumers would NOT help"
    else:
        assert helps.get(verdict, "") in clause(verdict)


def test_a_verdict_of_a_newer_job_is_shown_by_its_code() -> None:
    assert clause("NO_SUCH_THING") == "adding consumers would NOT help"
    assert verdict_sentence(window("NO_SUCH_THING")) == "NO_SUCH_THING."
    assert set(CLAUSES) <= set(VERDICTS)


HOT = window(
    "NO_HOT_PARTITION", hot_partitions=2, hot_arrival_rate=1500.0, best_capacity_rate=1000.0
)
WANDERS = (
    "No: one after the other, 3 partitions got more than the best member does, which is 506 "
    "records/s, and a partition has one owner."
)
STALLED = "of the worst topic's lag is on partitions that are stalled or belong to nobody."


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            window("YES", 3, 6, drain_at_desired_seconds=300.0, drain_at_members_seconds=math.inf),
            "Yes: 3 → 6 members. Drain time with them: 5 m 00 s.",
        ),
        # a sentence whose number is not known is left out, an answer never is
        (window("YES", 3, 6), "Yes: 3 → 6 members."),
        (window("NO_STALLED", stalled_lag_ratio=0.994), f"No: 99.4 % {STALLED}"),
        (window("NO_STALLED"), f"No: unknown {STALLED}"),
        (
            window("NO_BROKER", explained_ratio=0.75),
            "No: 75.0 % of the lag is on the broker's side.",
        ),
        (
            window("NO_BROKER", hidden_lag_ratio=0.75),
            "No: 75.0 % of the worst topic's lag waits for a transaction that is still open.",
        ),
        (
            window("NO_REBALANCE_FIRST", time_in_rebalance_ratio=0.25),
            (
                "No: its rebalances come first. Each stops partitions, and more members mean more "
                "of them."
            ),
        ),
        (window("NOT_NEEDED", row=2), "No: its consumers are enough."),
        (window("NO_HOT_PARTITION", hot_partitions=3, best_capacity_rate=506.0), WANDERS),
        (
            window("NOT_NEEDED", 5, 3, row=16),
            "No: 3 members are enough for this load, 5 are there. Look at how it is balanced.",
        ),
        (
            window("NO_IDLE", 4, 4, members_ceiling=12),
            (
                "No: not even 12 members, the most that can get a partition, can read what "
                "arrives. Make each faster."
            ),
        ),
        (
            window("UNKNOWN", 3, None, arrival_windows_needed=10),
            (
                "Not known: whether one partition gets more than a member can do shows only after "
                "10 windows."
            ),
        ),
        (
            window("UNKNOWN", 3, None, busy_windows_needed=5, shape_known=1),
            "Not known: what one member can do is only seen when it is busy for 5 windows.",
        ),
        (
            window("UNKNOWN", 3, None, busy_windows_needed=5, shape_known=0, capacity_rate=10.0),
            (
                "Not known: the distribution of the lag over the partitions has not lasted long "
                "enough to be named."
            ),
        ),
        (
            window("NOT_NEEDED", 3, 3, size_known=0, row=2),
            (
                "Not so far: hardly more is unread than arrives in a window. How many consumers it "
                "needs is not known yet."
            ),
        ),
        (
            window("UNKNOWN", None, None, members_known=0),
            "Not known: offsets are committed, but the readers are not recorded.",
        ),
    ],
)
def test_the_numbers_that_decided_are_in_the_sentence(row: Row, sentence: str) -> None:
    assert verdict_sentence(row) == sentence


def test_several_hot_partitions_are_counted() -> None:
    expected = (
        "No: 2 partitions get up to 1,500 records/s, the best member does 1,000 records/s, and a "
        "partition has one"
    )
    assert verdict_sentence(HOT) == f"{expected} owner."


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.number}-{rule.code}")
def test_every_rule_reads_as_sentences(rule: Any) -> None:
    row = {"code": rule.code, "evidence_text": {}}
    window = {
        "scale_verdict": "YES",
        "members_desired": 3,
        "members_ceiling": 6,
        "drain_seconds": 60.0,
    }
    found = [
        says(row),
        *advice(row, window),
        *avoid(row, {}),
        f"Wrong if {spoken(rule.falsifier)}.",
    ]
    assert [text for text in found if not re.fullmatch(r"[A-Z].*[^.]\.", text)] == []
    # columns read as words; a setting is written as it is typed
    assert {name for text in found for name in re.findall(r"\w+_\w+", text)} <= {"hot_standby"}


@pytest.mark.parametrize(
    "rule", [each for each in RULES if each.mistakes], ids=lambda rule: rule.code
)
def test_a_mistake_reads_do_not_and_a_verb(rule: Any) -> None:
    for text in avoid({"code": rule.code}, {}):
        assert re.match(r"Do not (?!.*\bAvoid\b)[a-z]+(?<!ing) ", text), text


@pytest.mark.parametrize(
    ("kind", "first", "number"),
    [
        ("silent", "Take a thread dump of the owner", 2),
        ("repeating", "Read the record at that offset", 2),
        (None, "Silent: take a thread dump", 4),
    ],
)
def test_advice_is_that_for_the_kind_of_stall(kind: str | None, first: str, number: int) -> None:
    text = advice(
        {"code": "PARTITION_STALLED", "evidence_text": {"kind": kind} if kind else {}}, {}
    )
    assert text[0].startswith(first)
    assert len(text) == number


def test_advice_has_the_numbers_of_the_window() -> None:
    row = {"code": "CAPACITY_SHORTAGE", "evidence_text": {}}
    short = {"scale_verdict": "YES_PARTIAL", "members_desired": 6, "members_ceiling": 12}
    assert advice(row, short)[0] == "Add members up to 6; never more than 12."


def test_no_advice_asks_for_what_the_verdict_denies() -> None:
    row = {"code": "CAPACITY_SHORTAGE", "evidence_text": {}}
    for verdict in ("NO_DOWNSTREAM", "UNKNOWN"):
        window = {"scale_verdict": verdict, "members_desired": 3, "members_ceiling": 12}
        assert advice(row, window)[0] == "Write to the sink in larger batches."
    burst = {"code": "CAPACITY_BURST", "evidence_text": {}}
    assert "Wait for 4 m 00 s." in advice(burst, {"drain_seconds": 240.0})
    assert not any("Wait" in text for text in advice(burst, {"drain_seconds": math.inf}))


def test_no_mistake_is_what_the_verdict_advises() -> None:
    """What is forbidden for some partitions only is no contradiction, as long as the window shows
    their finding.
    """

    def mistakes(code: str, verdict: str, **unseen: str) -> list[str]:
        row = {"code": code, "finding_id": "a"}
        return avoid(row, {"scale_verdict": verdict, "unseen_findings": unseen or None})

    of_any = "Do not add members: they would stay idle."
    of_some = "Do not add consumers for these partitions: a partition has one owner per group."
    assert mistakes("AT_PARTITION_CEILING", "NO_IDLE") == [of_any]
    assert mistakes("AT_PARTITION_CEILING", "YES_PARTIAL") == []
    for verdict, unseen, is_shown in (
        ("YES", {}, True),
        ("YES", {"b": "gone"}, True),
        ("YES", {"a": "gone"}, False),
        ("YES_PARTIAL", {"a": "unknown"}, False),
        ("NO_HOT_PARTITION", {"a": "gone"}, True),
    ):
        assert (of_some in mistakes("HOT_PARTITION_ARRIVAL", verdict, **unseen)) == is_shown


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_only_members_for_a_part_of_the_group_may_be_a_mistake_where_more_help(rule: Any) -> None:
    row, window = {"code": rule.code, "finding_id": "a"}, {"scale_verdict": "YES"}
    left = avoid(row, window)
    about = [text for text in left if re.search(r"\badd (more )?(consumers|members)\b", text)]
    assert [
        text
        for text in about
        if not re.search("for (these|a stalled) partition|to that host", text)
    ] == []
    assert avoid(row, window | {"unseen_findings": {"a": "gone"}}) == []
    assert all(
        re.search(r"\badd (more )?(consumers|members)\b", text, re.IGNORECASE)
        for text in rule.not_more
    )


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("drain_seconds", 4.25, "4.2 s"),
        ("drain_seconds", 3700.0, "1 h 01 m"),
        ("drain_seconds", math.inf, "never at the current rate"),
        ("lag_record_seconds", 1_490_400.0, "1,490,400 records × s"),
        ("explained_ratio", 0.915, "91.5 %"),
        ("share", 0.5, "50.0 %"),
        ("imbalance_ratio", 2.5, "2.5"),
        ("arrival_rate", 1234567.8, "1,234,568 records/s"),
        ("arrival_rate", 0.1234, "0.123 records/s"),
        ("lag_records", 12.0, "12 records"),
        ("replica_hours", 36.5, "36.5 h"),
        ("members", 3.0, "3"),
    ],
)
def test_a_number_has_the_unit_of_its_name(name: str, value: float, text: str) -> None:
    assert quantity(name, value) == text


def test_evidence_leaves_out_what_is_empty_and_no_name_steers_the_terminal() -> None:
    assert (
        evidence_words({"evidence": {"lag_record_seconds": 8.0}, "evidence_text": {}})
        == "lag over time 8 records × s"
    )
    row = {
        "evidence": {"frozen_seconds": 90.0, "p": 0.00123},
        "evidence_text": {
            "owner": "a\x1b[2Jb",
            "sub_cause": "",
            "empty_since": "2026-11-20 12:00:00+00:00",
        },
    }
    text = evidence_words(row)
    assert text.startswith("frozen 1 m 30 s, p 0.00123, owner a")
    assert text.endswith("b, empty since 2026-11-20 12:00:00 UTC")
    assert "\x1b" not in text
    assert evidence_words(row, 1) == "frozen 1 m 30 s"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("n_eff_partitions", "effective partitions 1"),
        ("slope_iqr_ratio", "spread of the slope 100.0 %"),
        ("owners_put_out", "evicted owners 1"),
    ],
)
def test_no_evidence_is_named_by_a_short_form(name: str, words: str) -> None:
    assert evidence_words({"evidence": {name: 1.0}, "evidence_text": {}}) == words


NUMBERS = {"members_desired", "members_ceiling", "drain_seconds"}  # advice gives their values


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_no_text_of_a_rule_has_the_name_of_a_column_in_place_of_words(rule: Any) -> None:
    texts = (rule.says, rule.is_not, rule.falsifier, *rule.advice, *rule.mistakes)
    named = {name for text in texts for name in re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", text)}
    assert named <= NUMBERS | {"hot_standby"}  # a key that is typed as it is
    assert len(rule.falsifier.split()) > 2
    assert not [text for text in avoid({"code": rule.code}, {}) if "avoid" in text.lower()]


def guard_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield calls of functions that give the result of a guard."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CHECKS:
            yield node


def keys_of(tree: ast.AST) -> dict[ast.Call, str]:
    """Return the key that each of these calls has in a dict."""
    calls = set(guard_calls(tree))
    items = [
        (key, value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
    ]
    return {
        value: key.value
        for key, value in items
        if isinstance(value, ast.Call) and value in calls and isinstance(key, ast.Constant)
    }


def test_a_guard_checks_something_and_its_key_has_one_sense_and_words() -> None:
    senses: dict[str, set[str]] = {}
    odd = []
    for file in RULE_FILES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        keys = keys_of(tree)
        for call in guard_calls(tree):
            text = ast.unparse(call)
            senses.setdefault(keys.get(call, "without a key"), set()).add(text)
            if all(isinstance(value, ast.Constant) for value in call.args):
                odd.append(f"{file.name}:{call.lineno}: {text} is constant")
        odd += [
            f"{file.name}:{node.lineno}: {node.id} without a check"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id in RESULTS
        ]
    odd += [f"{key}: {sorted(checks)}" for key, checks in senses.items() if len(checks) > 1]
    assert odd == []
    assert senses.keys() == GUARDS.keys()
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", key) for key in GUARDS)
