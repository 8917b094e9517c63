"""What holds for every shipped question, and how `laggard query` asks them."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from laggard.cli.verbs.query import verb as query
from laggard.cli.verbs.query.questions import REQUIRED, fill, find_question, parse, read_questions
from laggard.errors import NOT_FOUND, USAGE, LaggardError
from questions.kit import answer, ask, at, rebalance, write_tables
from questions_page import PAGE, render
from tables.fixtures import NOW

QUESTIONS = read_questions()
NAMES = [f"Q{number}" for number in range(1, 16)]


def call(root: Path, *words: str, as_json: bool = False) -> int:
    parser = argparse.ArgumentParser()
    query.add_parser(parser.add_subparsers())
    args = parser.parse_args(["query", *words])
    args.json = as_json
    return query.run(args, SimpleNamespace(job=SimpleNamespace(tables=str(root))))


def test_there_are_fifteen_in_their_order() -> None:
    assert list(QUESTIONS) == NAMES


def test_a_question_says_all_that_its_answer_has_and_finds_every_column_it_names(
    tmp_path: Path,
) -> None:
    """DataFusion refuses a column that is in no table; the tables are those the job makes, and
    empty.
    """
    write_tables(tmp_path, {})
    for question in QUESTIONS.values():
        given = {each.name: "nobody" for each in question.parameters if each.default == REQUIRED}
        rows = query.run_question(str(tmp_path), question.name, given)
        assert (question.name, rows.column_names) == (
            question.name,
            [name for name, _ in question.columns],
        )
        assert rows.num_rows == 0


def test_a_question_uses_every_parameter_it_has_and_no_other() -> None:
    for question in QUESTIONS.values():
        body = re.sub(r"--[^\n]*", "", question.sql)
        assert set(re.findall(r"(?<!:):([a-z_]+)", body)) == {
            each.name for each in question.parameters
        }, question.name


def test_the_list_names_every_question_with_its_title(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path, "--list") == 0
    listed = capsys.readouterr().out.splitlines()
    assert [f"  {name}  {each.title}" for name, each in QUESTIONS.items()] == [
        line for line in listed if "  Q" in line
    ]
    assert call(tmp_path, "--list", as_json=True) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert [each["question"] for each in data if "question" in each] == NAMES
    assert len([each for each in data if "view" in each]) == 11


def test_a_question_is_answered_over_the_range_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tables(
        tmp_path, {"rebalances": [rebalance(-1), rebalance(-100), rebalance(-3000, "old")]}
    )
    words = ("--name", "q7", "--format", "csv")
    assert (
        call(tmp_path, *words, "--from", "2026-11-20T10:20", "--to", "2026-11-20T11:00+00:00") == 0
    )
    assert capsys.readouterr().out.splitlines()[1:] == [
        "prod,g,2026-11-20,member_join,1,1,1.0,0.0,0"
    ]
    assert call(tmp_path, *words, "--param", "group=old", as_json=True) == 0
    assert [row["group"] for row in json.loads(capsys.readouterr().out)["data"]] == ["old"]


@pytest.mark.parametrize("group", ["it's", "' or 1=1 --", ":from", 'a"b', "", "null", "required"])
def test_a_name_is_a_value_whatever_it_looks_like(tmp_path: Path, group: str) -> None:
    rows = answer(
        tmp_path,
        "Q7",
        {"rebalances": [rebalance(-1, group), rebalance(-1, "another")]},
        group=group,
    )
    assert [row["group"] for row in rows] == [group]


def test_a_range_that_is_not_said_ends_with_the_newest_tick() -> None:
    sql = fill(QUESTIONS["Q7"], {}, NOW)
    assert "ended_at <= cast('2026-11-20T12:00:00.000000Z' as timestamp)" in sql
    assert "ended_at >= cast('2026-11-13T12:00:00.000000Z' as timestamp)" in sql
    sql = fill(QUESTIONS["Q7"], {"to": "2026-11-10T12:00+02:00"}, NOW)
    assert "ended_at >= cast('2026-11-03T10:00:00.000000Z' as timestamp)" in sql


def test_a_text_that_looks_like_a_parameter_stays(tmp_path: Path) -> None:
    path = tmp_path / "q1_any.sql"
    lines = ["-- Q1 What?", "--", "-- Parameters", "--   :a  text  x  this", "-- Columns",
        "--   b  that", "",
             "select ':a' as b, \":a\", :a, x::a -- :a"]  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    assert (
        fill(parse(path), {"a": "it's"}, NOW).splitlines()[-1]
        == "select ':a' as b, \":a\", 'it''s', x::a -- :a"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "Q2"), "Q2 needs group"),
        (("--name", "Q7", "--param", "team=a"), "Q7 has no parameter 'team'"),
        (("--name", "Q7", "--param", "group"), "--param group has no value"),
        (("--name", "Q7", "--to", "noon"), "'noon' is not a time"),
        (("--name", "Q3", "--param", "limit=1; drop"), "limit must be a number"),
        (("--name", "Q7", "select 1"), "one query, please"),
        (("--param", "team=a", "select 1"), "the query has no :team"),
        (("select :team as team",), "the query needs team"),
        (("-o", "rows.xls", "select 1"), "-o rows.xls: the format is unknown"),
        (("--format", "parquet", "select 1"), "Parquet is not shown on a terminal"),
        ((), "no query given"),
    ],
)
def test_a_wrong_use_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    write_tables(tmp_path, {})
    with pytest.raises(LaggardError) as error:
        call(tmp_path, *words)
    assert (error.value.what, error.value.exit_code) == (said, USAGE)


def test_a_question_that_is_not_there() -> None:
    with pytest.raises(LaggardError) as error:
        find_question("Q16")
    assert error.value.exit_code == NOT_FOUND


def test_one_row_stands_for_the_group_a_name_with_a_quote_included(tmp_path: Path) -> None:
    found = answer(
        tmp_path, "Q8", {"rebalances": [rebalance(-1, "it's")]}, begin=at(-5).isoformat()
    )
    assert [row["group"] for row in found] == ["it's"]
    assert ask(tmp_path, "Q8", to=at(-5).isoformat()) == []


def test_the_page_of_questions_is_what_the_files_say(tmp_path: Path) -> None:
    """If not: make docs."""
    assert PAGE.read_text(encoding="utf-8") == render(tmp_path)
