"""A process that was stopped knows it, whoever of its threads runs first again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from laggard.sources.clock import Pulse, Reading, read_clock

WATCH = """
import sys
from laggard.sources.clock import read_clock
from laggard.sources.clock import Pulse
pulse, start = Pulse(), read_clock()
print("ready", flush=True)
sys.stdin.readline()
at_start, now = pulse.longest_since(start), pulse.longest_since(read_clock())
print(at_start.total_seconds(), now.total_seconds(), flush=True)
"""


@pytest.mark.full
def test_a_stopped_process_knows_for_how_long() -> None:
    with subprocess.Popen(
        (sys.executable, "-c", WATCH), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(7)  # that long it is stopped: the fault itself
        process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        longest, later = (float(each) for each in process.stdout.readline().split())
    assert longest >= 6
    assert later == 0 or later >= 6  # its thread may not have run yet: then the pause ends now


class JustPutDown:
    """The pauses of a pulse, read before its thread puts one down and counts from now on."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    def __iter__(self) -> Iterator[tuple[Reading, float]]:
        self._pulse._beat = read_clock()
        return iter(())


def test_a_pause_that_is_put_down_while_it_is_asked_for_is_not_lost() -> None:
    pulse, start = Pulse(), read_clock()
    pulse._beat = replace(start, boot_ms=start.boot_ms - 7000, awake_ms=start.awake_ms - 7000)
    # as a thread that runs in between
    pulse._pauses = JustPutDown(pulse)  # type: ignore[assignment]
    assert pulse.longest_since(start).total_seconds() >= 7


def test_a_process_that_runs_has_no_pause() -> None:
    pulse = Pulse()
    assert pulse.longest_since(read_clock()).total_seconds() == 0


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        (Reading(0, "another boot", 1, 1), True),
        (Reading(0), True),  # of an older job, by the wall clock
        (Reading(2**42), False),
    ],
)
def test_a_poll_of_another_process_is_from_before_the_start(
    earlier: Reading, *, expected: bool
) -> None:
    assert Pulse().began_after(earlier) == expected


def test_a_poll_of_this_process_is_not_from_before_its_start() -> None:
    pulse = Pulse()
    assert not pulse.began_after(read_clock())
    before = Reading(0, pulse.started.boot_id, pulse.started.boot_ms - 1, 0)
    assert pulse.began_after(before)
