"""Laggard's rows against the truth of simulated groups; as a script it prints a table, one line per
workload.

Seeds go in the outer loop: what is interrupted has done as many of every workload.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

from simulator.compare import compare_rebalances
from simulator.simulation import Simulation
from simulator.truth import Generation
from simulator.watch import History, Watched, watch_beside
from simulator.workloads import WORKLOADS

Row = dict[str, Any]
BESIDE = 20  # runs in one job
COLUMNS = {
    "runs": ("runs",),
    "gen r/w": ("generations right", "generations wrong"),
    "rebalances": ("true",),
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


def milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def expected_generations(simulation: Simulation) -> dict[tuple[int, int], Row]:
    """By place in the offsets topic; a static replacement is an event and no generation."""
    return {
        (each.source_partition, each.source_offset): _expected(each)
        for each in simulation.truth.generations
        if each.kind != "replacement"
    }


def _expected(each: Generation) -> Row:
    members = None
    if each.kind != "tombstone":
        members = {name: _member(row) for name, row in each.members.items()}
    return {
        "group": each.group,
        "kind": each.kind,
        "generation": each.generation,
        "record_ms": each.record_ms,
        "protocol_type": each.protocol_type,
        "assignor": each.assignor,
        "leader": each.leader,
        "state_ms": each.state_ms,
        "sync_ms": each.record_ms - each.state_ms
        if each.kind == "sync" and each.state_ms is not None
        else None,
        "members": members,
    }


def _member(row: Row) -> Row:
    return {
        "group_instance_id": row["group_instance_id"],
        "client_id": row["client_id"],
        "client_host": row["client_host"],
        "topics": row["topics"],
        "owned": row["owned"],
        "assigned": row["assigned"],
    }


def _flat(places: list[Row] | None) -> list[tuple[str, int]] | None:
    return None if places is None else sorted((each["topic"], each["partition"]) for each in places)


def found_generations(history: History) -> dict[tuple[int, int], Row]:
    """The rows of `generations` and `group_members`, in the same shape."""
    members: dict[tuple[int, int], dict[str, Row]] = {}
    for row in history["group_members"]:
        if row["generation_kind"] == "classic":
            places = {name: _flat(row[name]) for name in ("owned", "assigned")}
            place = row["source_partition"], row["source_offset"]
            members.setdefault(place, {})[row["member_id"]] = _member(row | places)
    generations = {}
    for row in history["generations"]:
        if row["generation_kind"] == "classic":
            place = row["source_partition"], row["source_offset"]
            sync = row["sync_seconds"]
            sync_ms = None if sync is None else round(sync * 1000)
            generations[place] = {
                "group": row["group"],
                "kind": row["kind"],
                "generation": row["generation"],
                "record_ms": milliseconds(row["record_timestamp"]),
                "protocol_type": row["protocol_type"],
                "assignor": row["assignor"],
                "leader": row["leader"],
                "state_ms": milliseconds(row["state_timestamp"]),
                "sync_ms": sync_ms,
                "members": None if row["kind"] == "tombstone" else members.get(place, {}),
            }
    return generations


def expected_epochs(simulation: Simulation) -> dict[tuple[int, int], Row]:
    """By place; those still open at the end have no row."""
    epochs = {}
    for each in simulation.truth.epochs:
        if each.end_ms is not None and each.end_ms <= simulation.polls[-1].at_ms:
            assigned = {}
            if not each.is_superseded:
                assigned = {name: sorted(held) for name, held in each.assigned.items()}
            epochs[each.source_partition, each.source_offset] = {
                "group": each.group,
                "kind": each.kind,
                "epoch": each.epoch,
                "begin_ms": each.start_ms,
                "stable_ms": None if each.is_superseded or not each.members else each.end_ms,
                "members": each.members.keys(),
                "assigned": assigned,
            }
    return epochs


def found_epochs(history: History) -> dict[tuple[int, int], Row]:
    """The rows of consumer groups in the same shape; who holds what matters only where an epoch
    became stable.
    """
    members: dict[tuple[int, int], Row] = {}
    # who took over from a static member has a row of its own
    heirs: dict[tuple[int, int], dict[str, Row]] = {}
    for row in history["group_members"]:
        if row["generation_kind"] == "epoch":
            place, replaced = (
                (row["source_partition"], row["source_offset"]),
                row["replaced_member_id"],
            )
            if replaced is None:
                members.setdefault(place, {})[row["member_id"]] = _flat(row["assigned"])
            else:
                heirs.setdefault(place, {})[replaced] = row
    took_over_ms = {
        row["member_id"]: milliseconds(row["event_at"])
        for row in history["group_events"]
        if row["kind"] == "static_replacement"
    }
    found = {}
    for row in history["generations"]:
        if row["generation_kind"] == "epoch" and row["kind"] != "tombstone":
            place = row["source_partition"], row["source_offset"]
            stable_ms = milliseconds(row["stable_at"])
            held = dict(members.get(place, {}))
            for replaced, heir in heirs.get(place, {}).items():
                if stable_ms is not None and (took_over_ms[heir["member_id"]] or 0) <= stable_ms:
                    held.pop(replaced)
                    held[heir["member_id"]] = _flat(heir["assigned"])
            found[place] = {
                "group": row["group"],
                "kind": row["kind"],
                "epoch": row["generation"],
                "begin_ms": milliseconds(row["record_timestamp"]),
                "stable_ms": stable_ms,
                "members": members.get(place, {}).keys(),
                "assigned": held if stable_ms is not None else {},
            }
    return found


def compare(simulation: Simulation, history: History) -> tuple[int, list[str]]:
    """Rows that are right, and a sentence for each that is wrong, missing or too many."""
    expected = expected_generations(simulation) | expected_epochs(simulation)
    found = found_generations(history) | found_epochs(history)
    wrong = [
        f"{simulation.workload} seed {simulation.seed} at {place}: {expected.get(place)} is "
        f"{found.get(place)}"
        for place in sorted(expected.keys() | found.keys())
        if expected.get(place) != found.get(place)
    ]
    missing_or_changed = [place for place in expected if expected[place] != found.get(place)]
    return len(expected) - len(missing_or_changed), wrong


def score(workload: str, seeds: Sequence[int]) -> tuple[Counter[str], list[str]]:
    """Counts of these runs, and a sentence for each thing that is wrong."""
    counts, wrong = Counter[str](), list[str]()
    for found, reported in map(_score, watch_beside(workload, seeds)):
        counts += found
        wrong += reported
    return counts, wrong


def _score(run: Watched) -> tuple[Counter[str], list[str]]:
    """Compare one run with both truths."""
    right, wrong = compare(run.simulation, run.history)
    counts, wrong_rebalances = compare_rebalances(run)
    own = Counter({"runs": 1, "generations right": right, "generations wrong": len(wrong)})
    return counts + own, wrong + wrong_rebalances


def table(counts: Mapping[str, Counter[str]]) -> str:
    """One line per workload, and their sum."""
    rows = [(workload, found) for workload, found in counts.items()]
    rows.append(("all", sum(counts.values(), Counter())))
    lines = [f"{'workload':27} " + " ".join(f"{title:>11}" for title in COLUMNS)]
    for workload, found in rows:
        cells = ["/".join(str(found[name]) for name in names) for names in COLUMNS.values()]
        lines.append(f"{workload:27} " + " ".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="runs per workload")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="differences to print")
    parser.add_argument(
        "--out",
        type=Path,
        help="file that is written again after each round: table and differences",
    )
    parser.add_argument("workloads", nargs="*", help="all when none is named")
    asked = parser.parse_args()
    names = asked.workloads or list(WORKLOADS)
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    wrong: list[str] = []
    begun = time.monotonic()
    with ProcessPoolExecutor(asked.processes) as pool:
        for first in range(0, asked.seeds, BESIDE):
            seeds = range(asked.first, asked.first + asked.seeds)[first : first + BESIDE]
            for name, (found, bad) in zip(
                names, pool.map(score, names, [seeds] * len(names)), strict=True
            ):
                counts[name] += found
                wrong += bad
            minutes = (time.monotonic() - begun) / 60
            done = (
                f"{first + len(seeds)} of {asked.seeds} seeds done in {minutes:.1f} min, "
                f"{len(wrong)} differences"
            )
            print(done, file=sys.stderr, flush=True)
            if asked.out is not None:
                asked.out.write_text("\n".join([done, table(counts), *wrong, ""]))
    print("\n".join([table(counts), *wrong[: asked.show]]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
