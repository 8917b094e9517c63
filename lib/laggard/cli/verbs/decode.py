"""laggard decode: records of the offsets topic in hex, one JSON object per line in and out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from laggard.cli.text.envelope import json_answer
from laggard.errors import OK
from laggard.wire.decode import decode, to_json

if TYPE_CHECKING:
    from laggard.config import Config

BAD_INPUT = 65


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb, which has no options of its own."""
    shape = '{"key_hex": "0001...", "value_hex": "0003..."}, null for no bytes'
    subparsers.add_parser(
        "decode",
        help="decode records",
        description=f"Decode records from standard input, one a line: {shape}.",
    )


def run(args: argparse.Namespace, _config: Config) -> int:
    """Print an answer for every line; a line that is no record in hex gives exit code 65.

    The lines after it are still answered.
    """
    code, kept = OK, []
    for answer in answers(sys.stdin.buffer):
        if answer["outcome"] == "invalid_input":
            code = BAD_INPUT
        if args.json:
            kept.append(answer)
        else:
            print(json.dumps(answer))
    if args.json:
        print(json_answer(kept, is_ok=code == OK))
    return code


def answers(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Describe the kind of each line."""
    for number, line in enumerate(lines, start=1):
        try:
            yield _answer(line)
        except (ValueError, RecursionError) as error:
            yield {"outcome": "invalid_input", "error": f"line {number}: {error}"}


def _answer(line: bytes) -> dict[str, Any]:
    record = json.loads(line.decode())
    if not isinstance(record, dict):
        raise ValueError("expected an object with key_hex and value_hex")
    return to_json(decode(_bytes(record, "key_hex"), _bytes(record, "value_hex")))


def _bytes(record: dict[str, Any], name: str) -> bytes | None:
    if name not in record:
        raise ValueError(f"{name} is missing")
    text = record[name]
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{name}: expected a string of hex digits or null")
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
