"""Recorded history of a group whose records flow like water: rates and capacities in, rows of the
tables out.

A member gives its capacity to its partitions in proportion to what they need; commits come at an
even pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from laggard.diagnosis.engine import evaluate_group, settle
from laggard.diagnosis.history.frames import Memory
from laggard.diagnosis.history.layout import LISTS, History, rows_of
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.signals.cluster import ClusterFrame
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.schema import schemas

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)
Row = dict[str, Any]


@dataclass
class Fluid:
    """One group on one topic; `arrival` [partitions, windows], `capacity` [members, windows] in
    records/s.
    """

    arrival: np.ndarray[Any, Any]
    capacity: np.ndarray[Any, Any]
    seed: int = 1
    group: str = "billing"
    interval: float = 5.0
    noise: float = 0.02  # of the rates
    facts: Row = field(default_factory=dict)  # columns of group_history that differ
    # [partitions, windows] True while the owner reads nothing of it
    paused: np.ndarray[Any, Any] | None = None
    lag_rows: list[Row] = field(default_factory=list)
    fact_rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = np.random.default_rng(self.seed)
        partitions, windows = self.arrival.shape
        members = self.capacity.shape[0]
        owner = (
            [row * members // partitions for row in range(partitions)]
            if members
            else [None] * partitions
        )
        backlog, end = np.zeros(partitions), np.full(partitions, 1e6)
        committed, frozen = end.copy(), np.zeros(partitions)
        paused = np.zeros_like(self.arrival, bool) if self.paused is None else self.paused
        for window in range(windows):
            produced = np.maximum(
                0,
                self.arrival[:, window]
                * 60
                * (1 + self.noise * chance.standard_normal(partitions)),
            )
            done = np.zeros(partitions)
            for member in range(members):
                mine = [
                    row
                    for row in range(partitions)
                    if owner[row] == member and not paused[row, window]
                ]
                wanted = backlog[mine] + produced[mine]
                share = min(1.0, self.capacity[member, window] * 60 / max(wanted.sum(), 1e-9))
                done[mine] = wanted * share
            backlog, end = backlog + produced - done, end + produced
            moved = done > 0
            committed = np.where(moved, end - backlog, committed)
            # since its last commit
            waiting = self.arrival[:, window] * self.interval * chance.random(partitions)
            frozen = np.where(moved | (backlog == 0), 0.0, frozen + 60)
            begin = NOON + timedelta(minutes=window)
            for row in range(partitions):
                lag = backlog[row] + (waiting[row] if moved[row] else 0)
                self.lag_rows.append(
                    self._lag_row(
                        begin,
                        row,
                        owner[row],
                        lag,
                        backlog[row],
                        end[row],
                        produced[row],
                        done[row],
                        frozen[row],
                    )
                )
            self.fact_rows.append(self._fact_row(begin, members, partitions))

    def _lag_row(
        self, begin: datetime, row: int, owner: int | None, lag: float, envelope: float, end: float,
        produced: float,
        done: float, frozen: float,
    ) -> Row:  # fmt: skip
        rate = max(self.arrival[row, -1], 1e-9)
        lag_envelope, commits = (
            (round(envelope), round(60 / self.interval)) if done > 0 else (None, 0)
        )
        of_owner = dict.fromkeys(("owner", "slot", "client_id", "client_host"))
        if owner is not None:
            of_owner |= {
                "owner": f"m{owner}-id",
                "slot": f"app/10.0.0.{owner}#0",
                "client_id": "app",
                "client_host": f"/10.0.0.{owner}",
            }
        return {
            **_same(begin, self.group),
            "topic": "orders", "topic_id": "id", "partition": row, "status": "ok",
            "committed_offset": round(end - lag), "log_end_offset": round(end),
            "log_start_offset": 0,
            "lag": round(lag), "lag_min": round(envelope),
            "lag_max": round(envelope + rate * self.interval),
            "lag_envelope": lag_envelope, "time_lag_seconds": lag / rate,
            "time_lag_error_seconds": 10.0, "time_lag_censored": False, "lost_records": 0,
            "produced": round(produced), "consumed": round(done), "arrival_rate": produced / 60,
            "consume_rate": done / 60, "commits": commits, "noop_commits": 0,
            "rewound_records": 0, "commit_interval_seconds": self.interval,
            "frozen_seconds": frozen,
            "repeat_commits": 0, **of_owner, "generation": 7, "leader_broker": row % 3,
        }  # fmt: skip

    def _fact_row(self, begin: datetime, members: int, partitions: int) -> Row:
        state, empty_since, topics = (
            ("Stable", None, ["orders"]) if members else ("Empty", NOON, [])
        )
        return {
            **_same(begin, self.group),
            "status": "ok", "group_type": "classic", "protocol_type": "consumer",
            "assignor": "range",
            "rebalance_mode": "eager", "group_state": state, "state_source": "record",
            "empty_since": empty_since, "generation": 7, "coordinator": 1,
            "offsets_partition": 3,
            "members": members, "static_members": 0, "idle_members": max(0, members - partitions),
            "topics": topics, "topic_partitions": {"orders": partitions},
            "time_in_rebalance_ratio": 0.0, "watched_since": NOON - timedelta(days=1),
        } | self.facts  # fmt: skip

    def tables(self) -> dict[str, pa.Table]:
        """All append tables that windows are evaluated by."""
        return tables_of([self])


def tables_of(groups: Sequence[Fluid]) -> dict[str, pa.Table]:
    """The same for several groups of one cluster."""
    lag = [row for each in groups for row in each.lag_rows]
    facts = [row for each in groups for row in each.fact_rows]
    names = ("topic_windows", "rebalances", "generations", "group_members", "group_events")
    empty = {name: arrow_schema(schemas.TABLES[name]).empty_table() for name in names}
    return empty | {
        "lag_windows": to_arrow(schemas.LAG_WINDOWS, lag),
        "group_history": to_arrow(schemas.TABLES["group_history"], facts),
    }


def _same(begin: datetime, group: str) -> Row:
    end = begin + timedelta(minutes=1)
    return {
        "date": begin.date(), "cluster": "c", "group": group, "window_start": begin,
        "window_end": end,
        "batch_id": 1, "sampled_at": end, "ticks": 6, "ok_ticks": 6, "poll_id": 1,
    }  # fmt: skip


@dataclass
class Evaluation:
    """What the engine said window by window."""

    windows: list[Row] = field(default_factory=list)  # rows of group_windows
    findings: list[Row] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)

    def open_codes(self, group: str | None = "billing") -> set[str]:
        """Codes of the findings that are open at the end and shown."""
        newest: dict[str, Row] = {}
        for row in self.findings:
            newest[row["finding_id"]] = row
        return {
            row["code"]
            for row in newest.values()
            if row["event"] != "closed" and row["role"] != "suppressed" and row["group"] == group
        }

    def last(self, group: str = "billing") -> Row:
        return [row for row in self.windows if row["group"] == group][-1]


def evaluate(
    tables: dict[str, pa.Table],
    policy: Policy | None = None,
    first: int = 0,
    evaluation: Evaluation | None = None,
) -> Evaluation:
    """Evaluate every window of the tables from the first on."""
    evaluation = evaluation or Evaluation()
    starts = sorted(
        {round(at.timestamp() * 1000) for at in tables["group_history"]["window_start"].to_pylist()}
    )
    parameters = Parameters()
    history = History(
        tables, starts[0], starts[-1], window_seconds=60, look_back=parameters.look_back_windows
    )
    lists = {name: rows_of(tables[name]) for name in (*LISTS, "deploys") if name in tables}
    for begin in starts[first:]:
        frames = history.frames(
            begin,
            1,  # all rows are of one batch
            lists,
            cluster="c",
            policy=lambda *_: policy or Policy(),
            baseline=lambda group, windows=tuple(evaluation.windows): (
                lambda: {"orders": [row for row in windows if row["group"] == group]}
            ),
        )
        evaluated = [
            evaluate_group(each, evaluation.memories.get(each.group, Memory()), parameters)
            for each in frames
        ]
        rows, findings, evaluation.memories = settle(
            evaluated, ClusterFrame("c", begin, 60), evaluation.memories, parameters
        )
        evaluation.windows += rows
        evaluation.findings += findings
    return evaluation
