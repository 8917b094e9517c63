"""The closing questions count as answered when each has a row."""

import pytest

from laggard.demo.answers import QUESTIONS, Answers, has_answers, question_lines


def answers(lines: dict[str, list[str]]) -> Answers:
    def unused(*_: object) -> list[str]:
        pytest.fail("only SQL is asked")

    return Answers(unused, unused, lambda tables, sql: lines[sql], unused)


@pytest.mark.parametrize("unanswered", [None, *QUESTIONS])
def test_titles_alone_are_no_answer(unanswered: str | None) -> None:
    lines = {sql: ["title"] if question == unanswered else ["title", "row"] for question, sql in QUESTIONS.items()}
    assert has_answers(answers(lines), "tables") is (unanswered is None)


def test_each_question_is_reported_with_its_command_and_its_answer() -> None:
    told = question_lines(answers({sql: ["title", "row"] for sql in QUESTIONS.values()}), "tables")
    assert [line for line in told if line in QUESTIONS] == list(QUESTIONS)
    assert told.count("  row") == len(QUESTIONS)
    assert [line.startswith("  laggard query ") for line in told[2::6]] == [True] * len(QUESTIONS)
