"""laggard decode: one line out for each line in."""

import io
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vectors
from laggard.cli.main import main
from laggard.cli.verbs.decode import BAD_INPUT, answers
from laggard.errors import OK

TOMBSTONE = {"key_hex": "0001000a746573742d67726f757000066f726465727300000003", "value_hex": None}
TOMBSTONE_ANSWER = {
    "outcome": "tombstone",
    "key": {"group": "test-group", "topic": "orders", "partition": 3},
}


def as_line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def as_hex(raw: bytes | None) -> str | None:
    return None if raw is None else raw.hex()


def decode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: bytes
) -> tuple[int, list[Any]]:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    code = main(["decode"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_golden_vector_is_answered_in_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        as_line({"key_hex": as_hex(each.key), "value_hex": as_hex(each.value)})
        for each in vectors.RECORDS
    ]
    code, answered = decode(monkeypatch, capsys, b"".join(lines))
    assert code == OK
    assert [each.expect for each in vectors.RECORDS] == answered


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"x", "Expecting value"),
        (b"", "Expecting value"),
        (b"[]", "expected an object with key_hex and value_hex"),
        (b'{"key_hex": null}', "value_hex is missing"),
        (b'{"value_hex": null}', "key_hex is missing"),
        (b'{"key_hex": 1, "value_hex": null}', "key_hex: expected a string of hex digits or null"),
        (b'{"key_hex": "0", "value_hex": null}', "key_hex: non-hexadecimal number found"),
        (b'{"key_hex": "zz", "value_hex": null}', "key_hex: non-hexadecimal number found"),
        (b"\xff", "'utf-8' codec can't decode"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: bytes, error: str
) -> None:
    code, answered = decode(
        monkeypatch, capsys, as_line(TOMBSTONE) + line + b"\n" + as_line(TOMBSTONE)
    )
    assert code == BAD_INPUT
    assert [answer["outcome"] for answer in answered] == ["tombstone", "invalid_input", "tombstone"]
    assert answered[1]["error"].startswith("line 2: ")
    assert error in answered[1]["error"]


def test_no_input_is_no_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decode(monkeypatch, capsys, b"") == (OK, [])


@given(st.lists(st.one_of(st.binary(), st.just(as_line(TOMBSTONE)))))
def test_any_input_gets_one_answer_per_line(lines: list[bytes]) -> None:
    answered = list(answers(lines))
    assert len(answered) == len(lines)
    assert all(
        a == TOMBSTONE_ANSWER
        for line, a in zip(lines, answered, strict=True)
        if line == as_line(TOMBSTONE)
    )
    assert all("\n" not in json.dumps(answer) for answer in answered)
