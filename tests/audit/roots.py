"""Real Delta tables of a simulated cluster, as the job would write them, and the same with one
value changed.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.schema.schemas import BATCHES, TABLES
from simulator.simulation import Laggard, recall, ticks
from tables.fixtures import Row, batch_row, write_arrow


def write_root(root: Path, workload: str, seed: int) -> None:
    """Take a workload through the job, and write all rows with a row of `batches` for each tick."""
    job, batches = Laggard(), []
    source = dict.fromkeys(range(50), 0)
    for number, polled, records in ticks(recall(workload, seed)):
        job.tick(polled, records)
        read_to = source | {
            each.partition: each.offset + 1
            for each in sorted(records, key=lambda each: each.offset)
        }
        counts = Counter(
            "tombstones" if each.record.value is None else "decoded" for each in records
        )
        at = datetime.fromtimestamp(polled.at_ms / 1000, timezone.utc)
        outcomes = {
            "decoded": counts["decoded"],
            "tombstones": counts["tombstones"],
            "records": len(records),
        }
        ends = {"source_from": source, "source_to": read_to}
        batches.append(batch_row(number + 1, {}, at, **outcomes, **ends))
        source = read_to
    versions = {}
    for name, table in TABLES.items():
        if table.overwritten and name in job.tables:
            versions[name] = write_arrow(root, name, job.tables[name])
        elif job.history.get(name):
            versions[name] = write_arrow(root, name, to_arrow(table, job.history[name]))
    closed_to = max((row["window_start"] for row in job.history["lag_windows"]), default=None)
    batches[-1] |= {"table_versions": versions, "windows_closed_to": closed_to}
    write_arrow(root, BATCHES.name, to_arrow(BATCHES, batches))


def change(root: Path, to: Path, name: str, edit: Callable[[list[Row]], Any]) -> None:
    """Copy the tables, with the rows of one edited in place."""
    shutil.copytree(root, to)
    rows = DeltaTable(str(root / name)).to_pyarrow_table().to_pylist(maps_as_pydicts="strict")
    edit(rows)
    shutil.rmtree(to / name)
    write_arrow(to, name, pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[name])))
