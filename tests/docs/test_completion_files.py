"""Completion and the texts of --help are those of the parser."""

from __future__ import annotations

import sys

import pytest

from completion_files import COMPLETION, HELP, completion, help_texts
from laggard.cli.parser import SHELLS

WRITE = "python docs/build/completion_files.py writes the files"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_completion_of_a_shell_is_that_of_the_parser(shell: str) -> None:
    assert (COMPLETION / f"laggard.{shell}").read_text(encoding="utf-8") == completion(shell), WRITE


@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="argparse writes usage otherwise from 3.13 on"
)
def test_the_texts_of_help_are_the_golden_ones() -> None:
    assert help_texts() == HELP.read_text(encoding="utf-8"), WRITE
