"""Rows of `rebalances` against the truth of simulated groups; as a script it prints a table, one line per story."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

from laggard.rebalance import follow
from laggard.rebalance.result import Closed
from simulator.compare import compare_rebalances
from simulator.play import Laggard, Played, play, ticks
from simulator.stories import STORIES

GIVE_UP_MS = 11 * 60_000
COLUMNS = {
    "true": ("true",),
    "rows right": ("row right",),
    "miss": ("missing",),
    "more": ("invented",),
    "start": ("start right", "start wrong"),
    "bounds": ("bounds right", "bounds wrong"),
    "sync": ("sync right", "sync wrong"),
    "cause r/u/w": ("cause right", "cause unknown", "cause wrong"),
    "reason r/w/o": ("reason right", "reason wrong", "reason open"),
    "moved": ("moved right", "moved wrong"),
    "pause": ("pause right", "pause wrong"),
    "in ci": ("pause near",),
    "rank": ("rank right", "rank wrong"),
}  # a column of the table -> what it counts


def watch(played: Played) -> tuple[Laggard, dict[str, Closed], set[str]]:
    """The job after a story, what it closed by rebalance id, and which of that only because nothing more came."""
    job = Laggard()
    closed: dict[str, Closed] = {}
    original = follow.advance

    def listen(*given: Any) -> Any:
        found, state = original(*given)
        closed.update({each.row.rebalance_id: each for each in found})
        return found, state

    with mock.patch.object(follow, "advance", listen):
        for _, polled, records in ticks(played):
            job.tick(polled, records)
        in_time = set(closed)
        last = played.polls[-1]
        job.tick(replace(last, at_ms=last.at_ms + GIVE_UP_MS), [])
    return job, closed, closed.keys() - in_time


def score(story: str, seeds: Iterable[int]) -> tuple[str, Counter[str], list[str]]:
    """Story, counts, and what is wrong."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in seeds:
        played = play(story, seed)
        found, bad = compare_rebalances(played, *watch(played))
        counts += found
        counts["runs"] += 1
        wrong += bad
    return story, counts, wrong


def line(story: str, counts: Counter[str]) -> str:
    cells = ["/".join(str(counts[name]) for name in names) for names in COLUMNS.values()]
    return f"{story:27} {counts['runs']:4} " + " ".join(
        f"{cell:>{max(11, len(title))}}" for title, cell in zip(COLUMNS, cells, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="runs per story")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="differences to print")
    parser.add_argument("stories", nargs="*", help="all when none is named")
    asked = parser.parse_args()
    names = asked.stories or list(STORIES)
    total: Counter[str] = Counter()
    failures: list[str] = []
    print(f"{'story':27} {'runs':>4} " + " ".join(f"{title:>{max(11, len(title))}}" for title in COLUMNS))
    with ProcessPoolExecutor(asked.processes) as pool:
        for story, counts, wrong in pool.map(
            score, names, [range(asked.first, asked.first + asked.seeds)] * len(names)
        ):
            print(line(story, counts), flush=True)
            total += counts
            failures += wrong
    print(line("all", total))
    print("\n".join(failures[: asked.show]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
