"""Laggard's rows against the truth of simulated groups; as a script it prints a table: story, runs, right, wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

from simulator.play import Laggard, Played, play, run_through_laggard
from simulator.stories import STORIES
from simulator.truth import Generation

Row = dict[str, Any]


def milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def expected_generations(played: Played) -> dict[tuple[int, int], Row]:
    """By place in the offsets topic; a static replacement is an event and no generation."""
    return {
        (each.source_partition, each.source_offset): _expected(each)
        for each in played.truth.generations
        if each.kind != "replacement"
    }


def _expected(each: Generation) -> Row:
    return {
        "group": each.group,
        "kind": each.kind,
        "generation": each.generation,
        "record_ms": each.record_ms,
        "protocol_type": each.protocol_type,
        "assignor": each.assignor,
        "leader": each.leader,
        "state_ms": each.state_ms,
        "sync_ms": each.record_ms - each.state_ms if each.kind == "sync" and each.state_ms is not None else None,
        "members": None if each.kind == "tombstone" else {name: _member(row) for name, row in each.members.items()},
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


def found_generations(job: Laggard) -> dict[tuple[int, int], Row]:
    """The rows of `generations` and `group_members`, in the same shape."""
    members: dict[tuple[int, int], dict[str, Row]] = {}
    for row in job.history["group_members"]:
        if row["generation_kind"] == "classic":
            places = {name: _flat(row[name]) for name in ("owned", "assigned")}
            place = row["source_partition"], row["source_offset"]
            members.setdefault(place, {})[row["member_id"]] = _member(row | places)
    return {
        (row["source_partition"], row["source_offset"]): {
            "group": row["group"],
            "kind": row["kind"],
            "generation": row["generation"],
            "record_ms": milliseconds(row["record_timestamp"]),
            "protocol_type": row["protocol_type"],
            "assignor": row["assignor"],
            "leader": row["leader"],
            "state_ms": milliseconds(row["state_timestamp"]),
            "sync_ms": None if row["sync_seconds"] is None else round(row["sync_seconds"] * 1000),
            "members": None
            if row["kind"] == "tombstone"
            else members.get((row["source_partition"], row["source_offset"]), {}),
        }
        for row in job.history["generations"]
        if row["generation_kind"] == "classic"
    }


def expected_epochs(played: Played) -> dict[tuple[int, int], Row]:
    """By place; those still open at the end have no row."""
    return {
        (each.source_partition, each.source_offset): {
            "group": each.group,
            "kind": each.kind,
            "epoch": each.epoch,
            "begin_ms": each.start_ms,
            "stable_ms": None if each.is_superseded or not each.members else each.end_ms,
            "members": each.members.keys(),
            "assigned": {} if each.is_superseded else {name: sorted(held) for name, held in each.assigned.items()},
        }
        for each in played.truth.epochs
        if each.end_ms is not None and each.end_ms <= played.polls[-1].at_ms
    }


def found_epochs(job: Laggard) -> dict[tuple[int, int], Row]:
    """The rows of consumer groups in the same shape; who holds what matters only where an epoch became stable."""
    members: dict[tuple[int, int], Row] = {}
    for row in job.history["group_members"]:
        # who took over from a static member after the epoch was told has a row of its own
        if row["generation_kind"] == "epoch" and row["replaced_member_id"] is None:
            place = row["source_partition"], row["source_offset"]
            members.setdefault(place, {})[row["member_id"]] = _flat(row["assigned"])
    found = {}
    for row in job.history["generations"]:
        if row["generation_kind"] == "epoch" and row["kind"] != "tombstone":
            place = row["source_partition"], row["source_offset"]
            stable_ms = milliseconds(row["stable_at"])
            found[place] = {
                "group": row["group"],
                "kind": row["kind"],
                "epoch": row["generation"],
                "begin_ms": milliseconds(row["record_timestamp"]),
                "stable_ms": stable_ms,
                "members": members.get(place, {}).keys(),
                "assigned": members.get(place, {}) if stable_ms is not None else {},
            }
    return found


def compare(played: Played, job: Laggard) -> tuple[int, list[str]]:
    """Rows that are right, and a sentence for each that is wrong, missing or too many."""
    expected = expected_generations(played) | expected_epochs(played)
    found = found_generations(job) | found_epochs(job)
    wrong = [
        f"{played.story} seed {played.seed} at {place}: {expected.get(place)} is {found.get(place)}"
        for place in sorted(expected.keys() | found.keys())
        if expected.get(place) != found.get(place)
    ]
    missing_or_changed = [place for place in expected if expected[place] != found.get(place)]
    return len(expected) - len(missing_or_changed), wrong


def score(story: str, seeds: Iterable[int]) -> tuple[str, int, int, list[str]]:
    """Story, runs, right rows, and what is wrong."""
    runs = right = 0
    wrong: list[str] = []
    for seed in seeds:
        played = play(story, seed)
        good, bad = compare(played, run_through_laggard(played))
        runs, right = runs + 1, right + good
        wrong += bad
    return story, runs, right, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="runs per story")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("stories", nargs="*", help="all when none is named")
    asked = parser.parse_args()
    names = asked.stories or list(STORIES)
    failures: list[str] = []
    print(f"{'story':26} {'runs':>5} {'right':>7} {'wrong':>6}")
    with ProcessPoolExecutor(asked.processes) as pool:
        for story, runs, right, wrong in pool.map(score, names, [range(asked.seeds)] * len(names)):
            print(f"{story:26} {runs:5} {right:7} {len(wrong):6}", flush=True)
            failures += wrong
    print("\n".join(failures[:10]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
