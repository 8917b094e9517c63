"""Ctrl-C ends a verb at once and with 130, also while it is deep inside a library."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import laggard
from demo.processes import comes_true
from laggard.errors import INTERRUPTED
from tables.fixtures import partition_row, write_batch

# a trillion rows to look at
ENDLESS = (
    "select count(*) from partition_status a, partition_status b, partition_status c where a.lag "
    "+ b.lag > c.lag"
)
LIMIT_SECONDS = 120.0  # met only by what hangs, also on a busy machine


def is_at_work(pid: int, printed: Path) -> bool:
    """True once a page is shown, or after more processor time than all imports take (proc(5): utime
    and stime).
    """
    fields = _fields(pid)
    return (
        printed.stat().st_size > 0
        or (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 3
    )


def state_of(pid: int) -> str:
    return _fields(pid)[0]


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


# stopped as by Ctrl-Z: then any thread may get the signal
@pytest.mark.full
@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize("words", [("query", ENDLESS), ("status", "--watch")])
def test_ctrl_c_ends_a_verb_that_would_go_on_for_hours(
    tmp_path: Path, words: tuple[str, ...], *, is_stopped: bool
) -> None:
    write_batch(tmp_path, partitions=[partition_row("g", "t", n) for n in range(10_000)])
    printed = tmp_path / "printed"
    with (
        printed.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "laggard", "--set", f"job.tables={tmp_path}", *words],
            stdout=out,
            stderr=subprocess.PIPE,
            env={**os.environ},
        ) as process,
    ):
        try:
            assert comes_true(lambda: is_at_work(process.pid, printed), LIMIT_SECONDS)
            if is_stopped:
                process.send_signal(signal.SIGSTOP)
                assert comes_true(lambda: state_of(process.pid) == "T", LIMIT_SECONDS)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGCONT)
            _, error = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, b"Traceback" in error) == (INTERRUPTED, False)


def test_little_is_imported_before_the_handlers_are_set() -> None:
    code = (
        "import sys, laggard.__main__; print(*({'typing', 'contextlib', 'pathlib', 're', "
        "'logging'} & {*sys.modules}))"
    )
    # without site, which imports what an editable install needs
    library = str(Path(laggard.__file__).parent.parent)
    begun = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": library},
        capture_output=True,
        text=True,
        check=True,
    )
    assert begun.stdout.split() == []
