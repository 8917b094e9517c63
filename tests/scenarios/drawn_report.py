"""Simulate clusters drawn at random, diagnose and score them, and print the section of
docs/scenarios.md about them.

drawn_report.py --seeds 200 --keep FILE             200 clusters; those that FILE has are not
simulated again drawn_report.py --seeds 0 --keep FILE --write PAGE  write the section of what FILE
has into the page
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

import pyarrow as pa

from scenarios.drawn_page import section
from scenarios.drawn_runs import simulate_drawn
from scenarios.drawn_score import DrawnScore, score_drawn
from scenarios.published import publish

AT_ONCE = 16  # seeds that are recorded side by side


def to_line(score: DrawnScore) -> str:
    """One score as JSON, without a line's end."""
    return json.dumps(vars(score))


def from_line(line: str) -> DrawnScore:
    """The score of a line that JSON made of it."""
    row: dict[str, Any] = json.loads(line)
    counters = {
        name: Counter(row[name])
        for name in ("right", "after_delay", "wrong", "late", "misses", "false", "where")
    }
    return DrawnScore(**{**row, **counters})


def read(file: Path | None) -> list[DrawnScore]:
    """Scores that were kept."""
    return (
        [from_line(line) for line in file.read_text().splitlines()]
        if file and file.exists()
        else []
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds", type=int, default=16, help="number of clusters; 0: only what is kept"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="add each score there as a line, and simulate none twice",
    )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write the section into this page and its CSV"
    )
    asked = parser.parse_args()
    pa.set_cpu_count(1)
    scores, began = read(asked.keep), time.monotonic()
    known = {each.seed for each in scores}
    left = [seed for seed in range(asked.first, asked.first + asked.seeds) if seed not in known]
    for place in range(0, len(left), AT_ONCE):
        for drawn in simulate_drawn(left[place : place + AT_ONCE]):
            scores.append(score_drawn(drawn))
            if asked.keep:
                with asked.keep.open("a") as file:
                    file.write(to_line(scores[-1]) + "\n")
        done = min(place + AT_ONCE, len(left))
        print(
            f"{done} of {len(left)} clusters, {time.monotonic() - began:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    scores.sort(key=lambda each: each.seed)
    if asked.write:
        publish(asked.write, section(scores))
    print(section(scores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
