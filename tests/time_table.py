"""Where the time of a run went, printed by runs that also write JUnit XML."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import pytest

LIVE = {"broker", "spark"}
SIMULATED = ("tests/scenarios/", "tests/simulator/", "tests/calibration/")


class TimeTable:
    """Seconds and tests of each part; with several workers their seconds are added up."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._collected = 0.0
        self._seconds: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        self._collected = time.monotonic() - self._started

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        self._collected = time.monotonic() - self._started

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = part_of(report.nodeid, report.keywords)
        self._seconds[part] += report.duration
        self._tests[part] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        linted = os.environ.get("LINT_SECONDS")
        lines = [f"lint       {linted:>6} s"] if linted else []
        lines.append(f"collect    {self._collected:6.0f} s")
        for part in ("unit", "simulated", "live"):
            seconds, tests = self._seconds[part], self._tests[part]
            lines.append(f"{part:10} {seconds:6.0f} s of all workers, {tests:,} tests")
        lines.append(f"in all     {time.monotonic() - self._started:6.0f} s without lint")
        terminalreporter.section("where the time went")
        for line in lines:
            terminalreporter.line(line)


def part_of(nodeid: str, keywords: Any) -> str:
    """Return live (a JVM), simulated (a recorded cluster) or unit."""
    if LIVE & set(keywords):
        return "live"
    return "simulated" if nodeid.startswith(SIMULATED) else "unit"
