"""Simulated clusters, each with one fault, as tables that end now.

The simulator gives the bytes of the offsets topic; decoder, `advance` and diagnosis are the job's own, without Spark.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from laggard.tables.arrow import arrow_schema
from laggard.tables.delta import create_tables
from laggard.tables.schemas import TABLES
from scenarios.catalogue import SCENARIOS
from scenarios.judged import diagnose
from scenarios.runs import Recorder, declared, record, simulate
from tables.fixtures import PUBLISHED, batch_row, write_arrow, write_rows

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


@dataclass
class SimulatedRoot:
    """Tables of one cluster, named like its scenario; `troubles` are columns of `batches` that grow with each tick."""

    folder: Path
    scenario: str
    minutes: float  # of the scenario; the newest tick is at its end
    troubles: Mapping[str, Any]
    name: str

    def __post_init__(self) -> None:
        run = simulate(SCENARIOS[self.scenario], SEED)
        end_ms = run.cluster.at_ms(self.minutes)
        polls = [polled for polled in run.simulation.polls if polled.at_ms <= end_ms]
        self.slo = max((each.slo_time_lag_seconds or 0 for each in run.labels.policies.values()), default=0)
        run = replace(
            run, labels=replace(run.labels, minutes=self.minutes), simulation=replace(run.simulation, polls=polls)
        )
        job = Keeper(policies=declared([run.labels]))
        (recorded,) = record([run], job)
        self._retention = run.cluster.brokers.offsets_retention_minutes
        self._ticks = list(zip(job.last, polls[-KEPT_TICKS:], strict=True))
        self._moved_ms = (round(time.time()) - 5) * 1000 - polls[-1].at_ms
        create_tables(str(self.folder))
        judged = diagnose(recorded)
        self._write("findings", judged.findings)
        self._write("group_windows", judged.windows)
        starts = [row["window_start"] for row in judged.windows]
        self._write("finding_state", [{"window_start": max(starts), "group": "", "status": "ok"}])

    def play(self, number: int) -> None:
        """Publish one of the kept ticks."""
        tables, polled = self._ticks[number]
        versions = {name: write_arrow(self.folder, name, self._moved(name, tables[name])) for name in PUBLISHED}
        offsets: Mapping[int, Mapping[str, Any]] = polled.offsets_partitions
        stuck = {part: row for part, row in offsets.items() if row["last_stable_offset"] < row["high_watermark"]}
        at = datetime.fromtimestamp((polled.at_ms + self._moved_ms) / 1000, timezone.utc)
        row = batch_row(
            number + 1, versions, at, cluster=self.name,
            source_from={part: row["last_stable_offset"] for part, row in offsets.items()},
            source_to={part: row["last_stable_offset"] for part, row in offsets.items()},
            source_high_watermark={part: row["high_watermark"] for part, row in offsets.items()},
            source_last_stable_offset={part: row["last_stable_offset"] for part, row in offsets.items()},
            source_log_start_offset=dict.fromkeys(offsets, 0),
            source_coordinator={part: row["coordinator"] for part, row in offsets.items()},
            source_commits_total={part: row["last_stable_offset"] for part, row in offsets.items()},
            source_blocked_since=dict.fromkeys(stuck, at), offsets_retention_minutes=self._retention,
        )  # fmt: skip
        grown = {name: grow(value, number) for name, value in self.troubles.items()}
        write_rows(self.folder, "batches", [row | grown])

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        table = pa.Table.from_pylist([{**row, "batch_id": 1} for row in rows], schema=arrow_schema(TABLES[name]))
        write_arrow(self.folder, name, self._moved(name, table))

    def _moved(self, name: str, table: pa.Table) -> pa.Table:
        """The rows as of now, under the cluster's name."""
        time_column = TABLES[name].time_column
        for place, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                moved = pa.compute.add(table[field.name].cast(pa.int64()), self._moved_ms * 1000).cast(field.type)
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
        return {key: grow(each, number) if isinstance(each, int) else each for key, each in value.items()}
    if isinstance(value, list):  # the count is what comes last
        return [{**each, list(each)[-1]: list(each.values())[-1] * number} for each in value]
    return value * number
