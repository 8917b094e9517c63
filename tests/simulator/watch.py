"""The job run through workloads, with the closed rebalances that no table keeps.

Runs may be watched one beside the other: a tick costs nearly the same for one group as for many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from laggard.rebalance.analytics import follow
from laggard.rebalance.analytics.result import Closed
from simulator.offsets_log import PARTITIONS
from simulator.simulation import Laggard, Polled, Simulation, simulate, ticks

GIVE_UP_MS = 11 * 60_000
Row = dict[str, Any]
History = Mapping[str, list[Row]]  # rows by table


@dataclass(frozen=True)
class Watched:
    """What the job made of one run; `closed` by rebalance id, `late` only because nothing more
    came.
    """

    simulation: Simulation
    history: History
    closed: Mapping[str, Closed]
    late: set[str]


def watch(simulation: Simulation) -> Watched:
    """The job after a workload."""
    job = Laggard()
    closed: dict[str, Closed] = {}
    original = follow.advance

    def listen(*given: Any) -> Any:
        found, state = original(*given)
        closed.update({each.row.rebalance_id: each for each in found})
        return found, state

    with mock.patch.object(follow, "advance", listen):
        for _, polled, records in ticks(simulation):
            job.tick(polled, records)
        in_time = set(closed)
        last = simulation.polls[-1]
        job.tick(replace(last, at_ms=last.at_ms + GIVE_UP_MS), [])
    return Watched(simulation, job.history, closed, closed.keys() - in_time)


def watch_beside(workload: str, seeds: Sequence[int]) -> list[Watched]:
    """These seeds of a workload in one job; each gets the rows of its own groups back, as if it had
    been alone.
    """
    runs = [simulate(workload, seed, mark=f"-{seed}") for seed in seeds]
    all_of_them = watch(_merged(runs))
    return [
        replace(
            all_of_them,
            simulation=run,
            history=_own(all_of_them.history, f"-{run.seed}", number * PARTITIONS),
        )
        for number, run in enumerate(runs)
    ]


def _merged(runs: Sequence[Simulation]) -> Simulation:
    """One cluster with offsets partitions enough that no run's groups share one with another's."""
    records = []
    for number, run in enumerate(runs):
        for written in run.records:
            moved = copy(written)
            moved.partition += number * PARTITIONS
            records.append(moved)
    polls = []
    for polled in zip(*(run.polls for run in runs), strict=True):
        positions = [row for each in polled for row in each.positions]
        offsets_partitions = {
            number * PARTITIONS + part: row
            for number, each in enumerate(polled)
            for part, row in each.offsets_partitions.items()
        }
        polls.append(
            Polled(
                at_ms=polled[0].at_ms, positions=positions, offsets_partitions=offsets_partitions
            )
        )
    return replace(runs[0], records=records, polls=polls)


def _own(history: History, mark: str, first: int) -> dict[str, list[Row]]:
    """The rows of the groups with this mark, their places in the offsets topic as the run wrote
    them.
    """
    return {
        table: [_placed(row, first) for row in rows if (row.get("group") or "").endswith(mark)]
        for table, rows in history.items()
    }


def _placed(row: Row, first: int) -> Row:
    part = row.get("source_partition")
    return row if part is None else {**row, "source_partition": part - first}
