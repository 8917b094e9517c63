"""Simulated clusters, each with one fault, as tables that end now.

The simulator gives the bytes of the offsets topic; decoder, `advance` and diagnosis are the job's
own, without Spark.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import TABLES
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.runs import Recorder, declared, record, simulate
from tables.fixtures import PUBLISHED, batch_row, make_root, write_arrow, write_rows

SEED = 3
KEPT_TICKS = 10  # are written one after the other while Prometheus scrapes, so that counters rise


class Keeper(Recorder):
    """Keeps what the last ticks published."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.last: deque[dict[str, pa.Table]] = deque(maxlen=KEPT_TICKS)

    def keep(self) -> None:
        super().keep()
        self.last.append({name: self.tables[name] for name in PUBLISHED})


@dataclass(frozen=True)
class Seen:
    """All that a job has of a scenario up to a minute."""

    # published, time, offsets partitions
    ticks: list[tuple[dict[str, pa.Table], int, Mapping[int, Mapping[str, Any]]]]
    findings: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    slo: float
    retention: int | None


def simulated(place: tuple[str, float]) -> Seen:
    """Simulate a scenario, and decode, advance and evaluate it up to this minute."""
    scenario, minutes = place
    run = simulate(SCENARIOS[scenario], SEED)
    end_ms = run.cluster.at_ms(minutes)
    polls = [polled for polled in run.simulation.polls if polled.at_ms <= end_ms]
    slo = max((each.slo_time_lag_seconds or 0 for each in run.labels.policies.values()), default=0)
    run = replace(
        run,
        labels=replace(run.labels, minutes=minutes),
        simulation=replace(run.simulation, polls=polls),
    )
    job = Keeper(policies=declared([run.labels]))
    (recorded,) = record([run], job)
    found = diagnose(recorded)
    last = zip(job.last, polls[-KEPT_TICKS:], strict=True)
    ticks = [(tables, polled.at_ms, dict(polled.offsets_partitions)) for tables, polled in last]
    return Seen(
        ticks,
        [*found.findings],
        [*found.windows],
        slo,
        run.cluster.brokers.offsets_retention_minutes,
    )


def simulate_all(places: Iterable[tuple[str, float]]) -> dict[tuple[str, float], Seen]:
    """Each once, on two cores: that is most of the work."""
    wanted = list(dict.fromkeys(places))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return dict(zip(wanted, pool.map(simulated, wanted), strict=True))


@dataclass
class SimulatedRoot:
    """Tables of one cluster; `troubles` are columns of `batches` that grow with each tick, or
    functions of its row.
    """

    folder: Path
    seen: Seen  # the newest tick is at its end
    troubles: Mapping[str, Any]
    name: str
    is_evaluated: bool = True  # by the rules

    def __post_init__(self) -> None:
        self.slo = self.seen.slo
        self._moved_ms = (round(time.time()) - 5) * 1000 - self.seen.ticks[-1][1]
        make_root(self.folder)
        if self.is_evaluated:
            self._write("findings", self.seen.findings)
            self._write("group_windows", self.seen.windows)
            newest = max(row["window_start"] for row in self.seen.windows)
            self._write("finding_state", [{"window_start": newest, "group": "", "status": "ok"}])

    def play(self, number: int) -> None:
        """Publish one of the kept ticks."""
        tables, at_ms, offsets = self.seen.ticks[number]
        versions = {
            name: write_arrow(self.folder, name, self._moved(name, tables[name]))
            for name in PUBLISHED
        }
        stuck = {
            part: row
            for part, row in offsets.items()
            if row["last_stable_offset"] < row["high_watermark"]
        }
        at = datetime.fromtimestamp((at_ms + self._moved_ms) / 1000, timezone.utc)
        stable = {part: row["last_stable_offset"] for part, row in offsets.items()}
        row = batch_row(
            number + 1, versions, at, cluster=self.name,
            source_from=stable,
            source_to=stable,
            source_high_watermark={part: row["high_watermark"] for part, row in offsets.items()},
            source_last_stable_offset=stable,
            source_log_start_offset=dict.fromkeys(offsets, 0),
            source_coordinator={part: row["coordinator"] for part, row in offsets.items()},
            source_commits_total=stable,
            source_blocked_since=dict.fromkeys(stuck, at),
            offsets_retention_minutes=self.seen.retention,
        )  # fmt: skip
        grown = {
            name: value(row, number) if callable(value) else grow(value, number)
            for name, value in self.troubles.items()
        }
        write_rows(self.folder, "batches", [row | grown])

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        table = pa.Table.from_pylist(
            [{**row, "batch_id": 1} for row in rows], schema=arrow_schema(TABLES[name])
        )
        write_arrow(self.folder, name, self._moved(name, table))

    def _moved(self, name: str, table: pa.Table) -> pa.Table:
        """The rows as of now, under the cluster's name."""
        time_column = TABLES[name].time_column
        for place, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                moved = pa.compute.add(
                    table[field.name].cast(pa.int64()), self._moved_ms * 1000
                ).cast(field.type)
                table = table.set_column(place, field, moved)
        constant = {"cluster": pa.array([self.name] * table.num_rows, pa.string())}
        if "date" in table.column_names:
            constant["date"] = table[time_column].cast(pa.date32())
        for column, values in constant.items():
            place = table.schema.get_field_index(column)
            if place >= 0:
                table = table.set_column(place, table.schema.field(place), values)
        return table


def grow(value: Any, number: int) -> Any:
    """A count, or counts in maps and lists, after so many ticks."""
    if isinstance(value, dict):
        return {
            key: grow(each, number) if isinstance(each, int) else each
            for key, each in value.items()
        }
    if isinstance(value, list):  # the count is what comes last
        return [{**each, list(each)[-1]: list(each.values())[-1] * number} for each in value]
    return value * number
