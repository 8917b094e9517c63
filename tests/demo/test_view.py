"""The live view: redrawn in place on a terminal, printed now and then elsewhere."""

import os
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO, StringIO
from pathlib import Path

import pytest

from laggard.demo.run import spent
from laggard.demo.view import View


def chunks(terminal: FileIO) -> Iterator[bytes]:
    """All that reaches a terminal whose writer is closed; it arrives in pieces, and its end is an
    error on Linux.
    """
    with suppress(OSError):
        while chunk := terminal.read(1000):
            yield chunk


def test_without_a_terminal_blocks_come_every_ten_seconds(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as out:
        view = View(out)
        view.show(["first"])
        view.show(["too soon"])
        out.seek(0)
        assert out.read() == "first\n\n"


def test_a_terminal_is_redrawn_in_place() -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as out:
        view = View(out)
        view.show(["one", "two"])
        view.show(["three"])
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        printed = b"".join(chunks(terminal)).decode()
    assert printed == "\x1b[Jone\r\ntwo\r\n\x1b[2F\x1b[Jthree\r\n"


def test_a_note_from_a_signal_handler_comes_between_the_pieces_of_another(tmp_path: Path) -> None:
    with (tmp_path / "notes").open("w") as notes:
        view = View(StringIO(), notes)
        notes.write("half a ")  # in the buffer of the stream when the signal comes
        view.note_from_handler("stopping")
        assert (tmp_path / "notes").read_text().endswith("s  stopping\n")
        notes.write("line\n")
    assert (tmp_path / "notes").read_text().endswith("stopping\nhalf a line\n")


@pytest.mark.parametrize(
    ("seconds", "limit", "text"),
    [
        (38.4, 0, "38 s"),
        (29.6, 30, "30 s of 30 s"),
        (38.4, 30, "38 s, waiting for answers to show at the end"),
    ],
)
def test_the_demo_never_counts_beyond_its_seconds(seconds: float, limit: int, text: str) -> None:
    assert spent(seconds, limit) == text
