"""What the rules find in simulated faults and in their look-alikes, against what is known of them;
prints markdown.

In parts, with more seeds for the look-alikes and fewer for a day that is long; the page is of all
runs in the file:
    report.py --keep runs.jsonl --seeds 40 --only healthy
    report.py --keep runs.jsonl --seeds 20 --without healthy SC59
    report.py --keep runs.jsonl --seeds 2 --only SC59
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

import pyarrow as pa

from scenarios import kept
from scenarios.baselines import METHODS
from scenarios.catalogue import SCENARIOS
from scenarios.compared import compare, own_calls
from scenarios.diagnosed import diagnose
from scenarios.forecasts import forecasts
from scenarios.kept import Key
from scenarios.page import NAME, Result, markdown
from scenarios.published import publish
from scenarios.recordings import record_all
from scenarios.runs import parts, size_of
from scenarios.scoring import grade, score


def examine(name: str, seeds: Sequence[int], *, is_counterfactual: bool) -> list[Result]:
    """Simulate, record, evaluate and score seeds of one scenario."""
    pa.set_cpu_count(1)
    # all that is made lives until the end, and to look through it takes a third of the time
    gc.disable()
    results = []
    for recorded in record_all(SCENARIOS[name], seeds):
        diagnosed = diagnose(recorded)
        scored = score(recorded.run, diagnosed.findings, diagnosed.windows)
        if is_counterfactual:
            scored.counterfactual = grade(recorded.run, diagnosed.windows)
        calls = {method: decide(recorded) for method, decide in METHODS.items()}
        calls[NAME] = own_calls(recorded, diagnosed.findings, diagnosed.windows)
        compared = [compare(recorded, method, each) for method, each in calls.items()]
        forecast = forecasts(recorded, diagnosed.windows)
        results.append(
            Result(scored, compared, diagnosed.seconds, diagnosed.group_windows, forecast)
        )
    gc.collect()
    return results


def chosen(asked: Sequence[str], without: Sequence[str] = ()) -> list[str]:
    """Scenarios by name, by a name's beginning or by a glob of it; `healthy` are the look-alikes;
    none: all.
    """

    def fits(name: str, patterns: Sequence[str]) -> bool:
        healthy = "healthy" in patterns and SCENARIOS[name].is_healthy
        return healthy or any(fnmatchcase(name, f"{each}*") for each in patterns)

    return [
        name for name in SCENARIOS if (not asked or fits(name, asked)) and not fits(name, without)
    ]


def tasks(
    names: Iterable[str], seeds: Iterable[int], known: Collection[Key]
) -> list[tuple[str, list[int]]]:
    """What is left to do, the longest first so that no process waits for another's last one."""
    left = {name: [seed for seed in seeds if (name, seed) not in known] for name in names}
    found = [(name, part) for name, own in left.items() for part in parts(SCENARIOS[name], own)]
    sizes = {name: size_of(SCENARIOS[name]) for name in left}
    return sorted(found, key=lambda task: -sizes[task[0]] * len(task[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=5, help="runs per scenario; 0: only what is known"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    which = "scenarios by name, its beginning or a glob; healthy: the look-alikes"
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help=which)
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help="all but these")
    parser.add_argument(
        "--counterfactual", action="store_true", help="repeat runs with another number of members"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="add each run there as a line, and do none twice"
    )
    parser.add_argument(
        "--add", type=Path, nargs="*", default=[], metavar="FILE", help="runs kept elsewhere"
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="also write the page there and its CSV, after each part",
    )
    asked = parser.parse_args()
    results = kept.read([*asked.add, *([asked.keep] if asked.keep else [])])
    known = {kept.key_of(each) for each in results}
    seeds = range(asked.first, asked.first + asked.seeds)
    left = tasks(chosen(asked.only, asked.without), seeds, known)
    with ProcessPoolExecutor(asked.processes) as pool:
        pending = {
            pool.submit(examine, name, part, is_counterfactual=asked.counterfactual): (name, part)
            for name, part in left
        }
        for done in as_completed(pending):
            name, part = pending[done]
            results += done.result()
            if asked.keep:
                with asked.keep.open("a") as file:
                    file.writelines(kept.to_line(each) + "\n" for each in done.result())
            print(f"{name}, {len(part)} runs from seed {part[0]} done", file=sys.stderr, flush=True)
            if asked.write:
                publish(asked.write, markdown(kept.in_order(results)))
    print(markdown(kept.in_order(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
