"""The core questions over habits of groups that the scenarios leave alone; prints a line per habit
and fault.

Each habit is tried healthy, short of capacity, with a hot partition, a slow member, a stalled
partition, and with a burst that drains by itself. A verdict is right by what the simulated members
can do, not by what the rules say.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

from laggard.diagnosis.signals.statistics import lower_median
from scenarios.cluster import ScenarioCluster
from scenarios.diagnosed import diagnose
from scenarios.labels import ALARMS, YES, Scenario
from scenarios.runs import Recorder, Run, record, simulate
from scenarios.scoring import milliseconds, opened
from scenarios.swept import FAULTS, Cell, Habit
from simulator.cluster import MINUTE, SECOND
from simulator.member_modern import ModernMember
from simulator.producer import Rate, daily


def _bursty(period: int, share: float) -> Rate:
    """All of a period's records in its first part."""
    return lambda ms: 1 / share if ms % (period * SECOND) < share * period * SECOND else 0.0


def _two_topics(cluster: ScenarioCluster, rates: Sequence[Rate]) -> tuple[str, ...]:
    name = f"{cluster.main}-rare"
    cluster.rates([lambda ms, rate=rate: rate(ms) / 100 for rate in rates], name)
    return (name,)


def _markers(cluster: ScenarioCluster, _: Sequence[Rate]) -> tuple[str, ...]:
    cluster.brokers.topics[cluster.main].ends_in_marker = True
    return ()


def _compacted(cluster: ScenarioCluster, _: Sequence[Rate]) -> tuple[str, ...]:
    cluster.brokers.topics[cluster.main].cleanup_policy = "compact"
    return ()


def _every(seconds: int) -> dict[str, Any]:
    return {"commit_ms": seconds * SECOND}


SIZES = ((1, 1), (3, 1), (3, 3), (7, 3), (12, 1), (50, 1), (50, 12), (50, 50))
MOSTLY = 0.8  # of the windows right: the cell is right
HABITS = (
    Habit("as ever"),
    *(Habit(f"commit {each} s", config=_every(each), slow_unit=max(1, each / 100)) for each in (1,
    30, 60, 130, 300)),
    *(Habit(f"{parts} on {members}", parts=parts, members=members) for parts, members in SIZES),
    Habit("window 30 s, tick 10 s", tick_seconds=10, window_seconds=30),
    Habit("window 60 s, tick 10 s", tick_seconds=10),
    Habit("window 60 s, tick 15 s", tick_seconds=15),
    Habit("window 300 s", window_seconds=300, slow_unit=4),
    Habit("cooperative", config={"assignors": ("cooperative-sticky",)}),
    Habit("KIP-848", kind=ModernMember),
    Habit("0.1 records/s", capacity=0.6, config={"max_records": 5}),
    Habit("1 record/s", capacity=6.0, config={"max_records": 20}),
    Habit("50,000 records/s", capacity=300_000.0, config={"max_records": 500_000}),
    Habit("batch each minute", wave=_bursty(60, 0.2)),
    Habit("batch each 5 min", wave=_bursty(300, 0.3)),
    Habit("diurnal", wave=daily(1, 0.15, 6 * 60 * MINUTE)),
    Habit("two topics", prepare=_two_topics),
    Habit("transactional producers", prepare=_markers),
    Habit("commit per batch", config={"commit_ms": 0, "batch_ms": (1000, 5000),
        "max_records": 2000}),
    Habit("compacted", costs=(0.6, 1.0), prepare=_compacted),
)  # fmt: skip


def lines_of(cells: Sequence[Cell], seeds: Sequence[int]) -> Iterator[str]:
    """Lines of cells that are recorded in one job: same ticks and windows."""
    runs: list[tuple[Cell, Run]] = []
    for seed in seeds:
        for each in cells:
            cell = Cell(each.habit, each.fault)
            scenario = Scenario(f"{cell.habit.name}, {cell.fault}", "", cell.workload)
            # of two runs with one seed the topics would have one id
            own = 10 * seed + FAULTS.index(cell.fault)
            runs.append((cell, simulate(scenario, own, len(runs), 1000 * cell.habit.tick_seconds)))
    recordings = record([run for _, run in runs], Recorder(cells[0].habit.window_seconds))
    for (cell, run), recorded in zip(runs, recordings, strict=True):
        found = diagnose(recorded)
        yield line(cell, run, found.windows, found.findings)


def line(
    cell: Cell,
    run: Run,
    windows: Sequence[Mapping[str, Any]],
    findings: Sequence[Mapping[str, Any]],
) -> str:
    """What was found in one run, and whether it is right."""
    begin, end = cell.span
    if cell.fault == "burst":
        begin, end = cell.over + 6 * cell.habit.slow_unit, run.labels.minutes
    cluster, counts = run.cluster, Counter[str]()
    verdicts, desired = Counter[str](), []
    for row in windows:
        at_ms = milliseconds(row["window_start"]) or 0
        if row["topic"] != cluster.main or not cluster.at_ms(begin) <= at_ms < cluster.at_ms(end):
            continue
        verdict = str(row["scale_verdict"])
        verdicts[verdict] += 1
        desired += [row["members_desired"]] if verdict in YES else []
        is_right = cell.right(row, at_ms - cluster.at_ms(0))
        not_right = "unknown" if verdict.startswith("UNKNOWN") else "wrong"
        counts["right" if is_right else not_right] += 1
    shown = {each.code for each in opened(findings) if each.is_shown}
    must, may = cell.codes()
    missed, false = must and not must & shown, (shown & ALARMS) - must - may
    drain = cell.drain_error(cluster, windows)
    total = sum(counts.values())
    failed = "wrong" if counts["wrong"] >= counts["unknown"] else "unknown"
    grade = "right" if counts["right"] >= MOSTLY * total else failed
    said = ", ".join(f"{name} {count}" for name, count in verdicts.most_common())
    marks = ["MISSED"] * bool(missed) + [f"FALSE {','.join(sorted(false))}"] * bool(false)
    marks += [f"drain x{drain:.2f}"] if drain is not None else []
    marks += [f"n {lower_median(desired):.0f}"] if desired else []
    return (
        f"{cell.habit.name:24} {cell.fault:9} {run.seed:2} {grade:8} {counts['right']}/{total}  "
        f"{said} | {','.join(sorted(shown))} | {' '.join(marks)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        metavar="HABIT",
        help="habits by the beginning of their name",
    )
    parser.add_argument("--faults", nargs="*", default=FAULTS, choices=FAULTS)
    asked = parser.parse_args()
    habits = [
        each
        for each in HABITS
        if not asked.only or any(each.name.startswith(name) for name in asked.only)
    ]
    cells = [Cell(habit, fault) for habit in habits for fault in asked.faults if habit.can(fault)]
    for _, alike in groupby(cells, lambda each: each.habit):
        for text in lines_of(list(alike), range(asked.first, asked.first + asked.seeds)):
            print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
