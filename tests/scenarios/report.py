"""What the rules find in simulated faults and in their look-alikes, against what is known of them; prints markdown."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

import pyarrow as pa

from scenarios.baselines import METHODS
from scenarios.catalogue import SCENARIOS
from scenarios.compared import compare, own_calls
from scenarios.judged import diagnose
from scenarios.page import NAME, Result, markdown
from scenarios.runs import record_all
from scenarios.scoring import grade, score


def examine(name: str, seeds: Sequence[int], *, is_counterfactual: bool) -> list[Result]:
    """Play, record, judge and score the seeds of one scenario."""
    pa.set_cpu_count(1)
    results = []
    for recorded in record_all(SCENARIOS[name], seeds):
        judged = diagnose(recorded)
        scored = score(recorded.run, judged.findings, judged.windows)
        if is_counterfactual:
            scored.counterfactual = grade(recorded.run, judged.windows)
        calls = {method: judge(recorded) for method, judge in METHODS.items()}
        calls[NAME] = own_calls(recorded, judged.findings, judged.windows)
        compared = [compare(recorded, method, each) for method, each in calls.items()]
        results.append(Result(scored, compared, judged.seconds, judged.group_windows))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="runs per scenario")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="scenarios by name or its beginning")
    parser.add_argument("--counterfactual", action="store_true", help="repeat runs with another number of members")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page there, after each scenario")
    asked = parser.parse_args()
    names = [name for name in SCENARIOS if not asked.only or any(name.startswith(each) for each in asked.only)]
    seeds = range(asked.first, asked.first + asked.seeds)
    results: list[Result] = []
    with ProcessPoolExecutor(asked.processes) as pool:
        tasks = {name: pool.submit(examine, name, seeds, is_counterfactual=asked.counterfactual) for name in names}
        for name, task in tasks.items():
            results += task.result()
            print(f"{name} done", file=sys.stderr, flush=True)
            if asked.write:
                asked.write.write_text(markdown(results))
    print(markdown(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
