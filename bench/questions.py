"""Seconds of each shipped question over a month of windows of 1,000 partitions.

Groups have these partitions; there is a window a minute.

The tables are written as the job does, compacted as maintenance does, and removed at the end.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from common import report
from question_events import a_day, events_of
from question_rows import columns, frame, names

from laggard.cli.verbs.query.questions import Question, read_questions
from laggard.cli.verbs.query.verb import run_question
from laggard.tables.arrow import arrow_schema
from laggard.tables.delta import Writer, create_tables
from laggard.tables.readers import open_table
from laggard.tables.schema.schemas import TABLES
from laggard.tables.upkeep.compaction import compact

END = datetime(2026, 11, 20, tzinfo=timezone.utc)


def main() -> None:
    """Write the days, then ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--questions", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as root:
        began = time.perf_counter()
        write_tables(root, args.days)
        size = sum(path.stat().st_size for path in Path(root).rglob("*.parquet")) / 1e9
        print(f"{args.days} days written in {time.perf_counter() - began:.0f} s, {size:.2f} GB")
        asked = [
            each
            for name, each in read_questions().items()
            if not args.questions or name in args.questions
        ]
        report("questions", [ask(root, each, args.days) for each in asked])


def ask(root: str, question: Question, days: int) -> dict[str, Any]:
    """Return time over the question's own range, and over everything, cold and then once more."""
    given = {each.name: "group-07" for each in question.parameters if each.default == "required"}
    if question.name == "Q15":
        given |= {"topic": "topic-7", "partition": "3"}
    everything = given | {"from": (END - timedelta(days=days)).isoformat()}
    seconds, cpu, rows = [], 0.0, 0
    for values in (given, everything, everything):
        began, cpu_began = time.perf_counter(), time.process_time()
        rows = run_question(root, question.name, values).num_rows
        seconds.append(time.perf_counter() - began)
        cpu = time.process_time() - cpu_began
    return {
        "question": question.name,
        "default_seconds": seconds[0],
        "whole_seconds": seconds[1],
        "again_seconds": seconds[2],
        "again_cpu_seconds": cpu,  # of all cores: what a busy machine cannot blur
        "rows": rows,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def write_tables(root: str, days: int, event_days: int = 0) -> None:
    """Write a day at a time: several files of lag_windows, in the order of time, which become one.

    Before them so many days of findings, rebalances and deploys only.
    """
    create_tables(root)
    writer = Writer(root, "bench")
    batch = 0
    for day in range(-event_days, days):
        begin = END - timedelta(days=days - day)
        for name, rows in a_day(begin, day) if day >= 0 else events_of(begin, day + event_days):
            for part in _slices(rows, 6 if name == "lag_windows" else 1):
                batch += 1
                writer.write(TABLES[name], part, batch)
            compact(
                root, name, open_table(root, name), (begin + timedelta(days=1)).date().isoformat()
            )
    statuses = [
        {"cluster": "prod", "group": name, "offsets_partition": n % 7}
        for n, name in enumerate(names("group"))
    ]
    writer.write(
        TABLES["group_status"], frame("group_status", len(statuses), columns(statuses)), batch
    )
    versions = {
        name: writer.version(name) for name, table in TABLES.items() if not table.is_of_diagnosis
    }
    tick = {
        "date": END.date(),
        "cluster": "prod",
        "kind": "tick",
        "batch_id": batch,
        "polled_at": END,
    }
    row = [{**tick, "table_versions": versions}]
    writer.write(
        TABLES["batches"], pa.Table.from_pylist(row, schema=arrow_schema(TABLES["batches"])), batch
    )


def _slices(rows: pa.Table, count: int) -> list[pa.Table]:
    step = -(-rows.num_rows // count)
    return [rows.slice(begin, step) for begin in range(0, rows.num_rows, step)]


if __name__ == "__main__":
    main()
