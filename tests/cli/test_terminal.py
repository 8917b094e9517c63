"""On a terminal: color, what fits, a live screen that is left in order; a pipe gets plain text."""

from __future__ import annotations

import fcntl
import io
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from laggard.answers.text.words import aligned, short, width
from laggard.cli.text.table import Table
from laggard.cli.text.terminal import fitted, waiting
from laggard.errors import INTERRUPTED, OK, TEMPORARY, USAGE
from patience import patient
from tables.fixtures import NOW, group_row, partition_row, write_batch

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
HOME = "\x1b[H"
SHOW_CURSOR = "\x1b[?25h"
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDE = "決済🚚"


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int) -> None:
        self.process = process
        self._ours = ours
        self.printed = ""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, text: str, after: int = 0) -> int:
        """Read until a text is there; the place behind it."""
        until = time.monotonic() + patient(60)
        while text not in self.printed[after:] and time.monotonic() < until:
            self._read()
        assert text in self.printed[after:], self.printed[after:]
        return self.printed.index(text, after) + len(text)

    def end(self) -> int:
        """Read until the process is gone; its exit code."""
        while self._read():
            pass
        return self.process.wait(patient(60))

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 0.1)[0]:
            return self.process.poll() is None
        with suppress(OSError):  # its end is an error on Linux
            if piece := os.read(self._ours, 65_536):
                self.printed += piece.decode(errors="replace")
                return True
        return False


@contextmanager
def terminal(*words: str, columns: int = 80, rows: int = 12, **env: str) -> Iterator[Terminal]:
    """Run `laggard` on a terminal that it can be interrupted from."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = ["setsid", "--ctty", sys.executable, "-m", "laggard", *words]
    environment = {
        name: each
        for name, each in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment | {"TERM": "xterm-256color"} | env,
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            os.close(ours)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("tables")
    names = [WIDE, *(f"group-{number:02}" for number in range(30))]
    partitions = [partition_row(name, "orders", 0) for name in names]
    write_batch(root, at=NOW, partitions=partitions, groups=[group_row(name) for name in names])
    return f'job.tables="{root}"'


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watch_fits_the_screen_follows_its_size_and_gives_it_back(
    tables: str, number: signal.Signals
) -> None:
    with terminal("status", "--watch", "--set", tables, columns=70, rows=10) as shown:
        entered = shown.wait_for(ENTER)
        first = shown.wait_for("… and ", entered)
        shown.wait_for("does the job run", first)
        page = CONTROLS.sub("", shown.printed[entered:].rpartition(HOME)[2]).replace("\r", "")
        assert (len(page.splitlines()), max(map(width, page.splitlines()))) == (10, 70)
        assert "too narrow for: " in page
        shown.resize(60, 20)
        more = shown.wait_for("and 16 more", first)
        if number == signal.SIGINT:
            shown.press(b"\x03")
        else:
            shown.process.send_signal(number)
        code = shown.end()
        assert code == (INTERRUPTED if number == signal.SIGINT else -number)
        assert LEAVE in shown.printed[more:]
        assert SHOW_CURSOR in shown.printed[more:]
        assert "Traceback" not in shown.printed


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "env", "is_colored"),
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False)],
)
def test_color_is_for_those_who_want_it(
    tables: str, words: tuple[str, ...], env: dict[str, str], is_colored: bool
) -> None:
    with terminal("doctor", "--set", tables, *words, columns=200, rows=50, **env) as shown:
        shown.end()
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]m", shown.printed)) is is_colored


def test_a_pipe_gets_plain_text(tables: str) -> None:
    command = [sys.executable, "-m", "laggard", "status", "--set", tables]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(60))
    assert (done.returncode, "\x1b" in done.stdout, len(done.stdout.splitlines())) == (
        OK,
        False,
        33,
    )


@pytest.mark.parametrize(
    "words", [("--json", "statsu"), ("--json", "query", "select 1 as a", "--from", "noon")]
)
def test_a_reader_that_has_gone_leaves_the_error(tables: str, words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "laggard", "--set", tables, *words]
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=patient(60)
    )
    os.close(write)
    assert done.returncode == USAGE
    assert done.stderr.startswith("laggard: ")
    assert "Broken" not in done.stderr


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_full_disk_is_named(tables: str, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "laggard", "status", "--set", tables, *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=patient(60),
        )
    assert done.returncode == TEMPORARY
    what, cause, fix = done.stderr.splitlines()[-3:]
    assert what == "laggard: there is no room to write"
    assert cause.startswith("cause: standard output: ")
    assert fix.startswith("fix: ")


def test_wide_letters_take_two_columns() -> None:
    assert [width(each) for each in ("ab", "決済", "🚚", "e\u0301")] == [2, 4, 2, 1]
    thai, korean, thumb = "\u0e1b\u0e35\u0e48\u0e01", "\u1100\u1161\u11a8", "\U0001f44d\U0001f3fd"
    assert [width(each) for each in (thai, korean, thumb)] == [2, 2, 2]
    lines = aligned([("決済", "1"), ("abc", "22")], [False, True])
    assert lines == ["決済   1", "abc   22"]
    assert (width(short("決" * 40)), short("決" * 40)[-1]) == (47, "…")


def test_a_narrow_table_leaves_columns_out_and_names_them() -> None:
    table = Table(
        "a sentence",
        ("GROUP", "HEALTH", "SHAPE"),
        [("checkout", "page", "spread"), ("mail", "ok", "none")],
        set(),
        0,
        ("SHAPE",),
    )
    assert [line.plain.rstrip() for line in fitted(table, 18)] == [
        "a sentence",
        "GROUP     HEALTH",
        "checkout  page",
        "mail      ok",
        "too narrow for: S…",
    ]
    assert [str(span.style) for span in fitted(table, 80)[2].spans if span.style] == [
        "bold red",
        "bold red",
    ]
    assert [line.plain.rstrip() for line in fitted(table, 80, 4)][2:] == [
        "checkout  page    spread",
        "… and 1 more",
    ]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_read_shows_its_time_on_a_terminal_and_takes_it_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with waiting(after_seconds=0.01):
        until = time.monotonic() + patient(10)
        while (
            "laggard: reading the tables, 0 s; Ctrl-C ends it" not in screen.getvalue()
            and time.monotonic() < until
        ):
            time.sleep(0.01)
        assert screen.getvalue().startswith("\r\x1b[Klaggard: reading the tables, ")
    assert screen.getvalue().endswith("ends it\r\x1b[K")


SHORT = [(Screen(), False, 60.0), (Screen(), True, 0.0), (io.StringIO(), False, 0.0)]


@pytest.mark.parametrize(("screen", "is_quiet", "after"), SHORT)
def test_a_short_read_a_pipe_and_quiet_show_nothing(
    monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, is_quiet: bool, after: float
) -> None:
    monkeypatch.setattr(sys, "stderr", screen)
    with waiting(is_quiet=is_quiet, after_seconds=after):
        pass
    assert screen.getvalue() == ""
