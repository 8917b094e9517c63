"""The closing questions count as answered when each has a row."""

import sys
from pathlib import Path

import pytest

from laggard.demo.answers import QUESTIONS, Answers, command_of, has_answers, question_lines


def answers(lines: dict[str, list[str]]) -> Answers:
    def unused(*_: object) -> list[str]:
        pytest.fail("only SQL is asked")

    return Answers(unused, unused, lambda tables, sql: lines[sql], unused, unused, unused)


@pytest.mark.parametrize("unanswered", [None, *QUESTIONS])
def test_titles_alone_are_no_answer(unanswered: str | None) -> None:
    lines = {
        sql: ["title"] if question == unanswered else ["title", "row"]
        for question, sql in QUESTIONS.items()
    }
    assert has_answers(answers(lines), "tables") is (unanswered is None)


def test_each_question_is_reported_with_its_command_and_its_answer() -> None:
    lines = question_lines(
        answers({sql: ["title", "row"] for sql in QUESTIONS.values()}),
        "tables",
        "laggard --config x",
    )
    assert [line for line in lines if line in QUESTIONS] == list(QUESTIONS)
    assert lines.count("  row") == len(QUESTIONS)
    assert [line.startswith("  laggard --config x query ") for line in lines[2::6]] == [True] * len(
        QUESTIONS
    )


def test_without_its_tables_it_prints_no_command_that_could_not_work() -> None:
    lines = question_lines(
        answers({sql: ["title", "row"] for sql in QUESTIONS.values()}), "tables", ""
    )
    assert [line for line in lines if "query" in line] == []


def test_the_command_is_one_of_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "laggard"
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    assert command_of(tmp_path / "a b") == "bin/laggard --config 'a b/laggard.toml'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert command_of(Path("/elsewhere")) == "laggard --config /elsewhere/laggard.toml"
    script.unlink()
    assert command_of(tmp_path) == "bin/python -m laggard --config laggard.toml"
