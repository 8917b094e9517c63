"""Cost of a look for a new batch and of a commit, after so many ticks.

The unit is CPU-milliseconds; each value is the median of several.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from common import report
from deltalake import DeltaTable

from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import write_files
from laggard.tables.delta import Writer, create_tables
from laggard.tables.published import newest_batch
from laggard.tables.readers import table_uri
from laggard.tables.schema.schemas import BATCHES

TICKS_PER_DAY = 8_640
SHOTS = 9
LOG_HOURS = 6  # as the tables are made
_KEPT = ("path", "partitionValues", "size")


def build(root: str, ticks: int, *, is_maintained: bool) -> None:
    """Write a `batches` table of so many ticks by its log.

    Only the files of the newest row and of one row of each day exist.
    """
    create_tables(root, (BATCHES,))
    uri = table_uri(root, BATCHES.name)
    log, version = Path(uri, "_delta_log"), 0
    first = datetime.now(timezone.utc) - timedelta(seconds=10 * ticks)
    file, live = None, []
    for number in range(ticks):
        at = first + timedelta(seconds=10 * number)
        is_real = (
            file is None or file.partition_values["date"] != str(at.date()) or number == ticks - 1
        )
        if file is None or is_real:
            rows = [
                {
                    "date": at.date(),
                    "batch_id": number,
                    "kind": "tick",
                    "polled_at": at,
                    "table_versions": {},
                }
            ]
            (file,) = write_files(uri, BATCHES, to_arrow(BATCHES, rows))
        stats = json.loads(file.stats)
        for bound in ("minValues", "maxValues"):
            stats[bound]["batch_id"] = number
        add = {
            "path": file.path if is_real else f"{file.path}-{number}",
            "partitionValues": file.partition_values,
            "size": file.size, "modificationTime": int(1000 * at.timestamp()), "dataChange": True,
            "stats": json.dumps(stats),
        }  # fmt: skip
        live.append(add)
        version += 1
        _write_entry(log, version, [{"add": add}])
        if is_maintained and number % 360 == 359:
            version += 1
            live = _compact(log, version, live, at)
    DeltaTable(uri).create_checkpoint()
    for path in sorted(log.glob("*.json"))[: -LOG_HOURS * 360] if is_maintained else ():
        path.unlink()


def _compact(
    log: Path, version: int, live: list[dict[str, Any]], at: datetime
) -> list[dict[str, Any]]:
    """Write the entry of a compaction of all files to one; gives what is live then."""
    gone = {
        "deletionTimestamp": int(1000 * at.timestamp()),
        "dataChange": False,
        "extendedFileMetadata": True,
    }
    removed = [{"remove": {**gone, **{key: each[key] for key in _KEPT}}} for each in live]
    compacted = {**live[-1], "path": f"{live[-1]['path']}-compacted", "dataChange": False}
    _write_entry(log, version, [*removed, {"add": compacted}])
    return [compacted]


def _write_entry(log: Path, version: int, actions: list[dict[str, Any]]) -> None:
    (log / f"{version:020}.json").write_text(
        "\n".join(map(json.dumps, [{"commitInfo": {}}, *actions]))
    )


def cpu_ms(work: Callable[[], object]) -> float:
    """Return median CPU-milliseconds of a call, all threads together."""
    spent = []
    for _ in range(SHOTS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return 1000 * statistics.median(spent)


def measure(root: str, name: str) -> dict[str, object]:
    """Return one row of the table."""
    writer, uri = Writer(root, "bench"), table_uri(root, BATCHES.name)
    table = DeltaTable(uri)
    number = table.version()

    def commit() -> None:
        nonlocal number
        number += 1
        at = datetime.now(timezone.utc)
        row = {
            "date": at.date(),
            "batch_id": number,
            "kind": "tick",
            "polled_at": at,
            "table_versions": {},
        }
        writer.write(BATCHES, to_arrow(BATCHES, [row]), number)

    commit()
    return {
        "log": name,
        "entries": len(list(Path(uri, "_delta_log").glob("*.json"))),
        "look_ms": cpu_ms(lambda: newest_batch(root)),
        "load_ms": cpu_ms(lambda: DeltaTable(uri)),
        "update_ms": cpu_ms(table.update_incremental),
        "commit_ms": cpu_ms(commit),
    }


def main() -> None:
    """Build the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    ticks = parser.parse_args().days * TICKS_PER_DAY
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, count, is_maintained in (
            ("100 ticks", 100, False),
            (f"{ticks} ticks, maintained", ticks, True),
            (f"{ticks} ticks, not maintained", ticks, False),
        ):
            build(f"{folder}/{name}", count, is_maintained=is_maintained)
            rows.append(measure(f"{folder}/{name}", name))
    report("look_up", rows)


if __name__ == "__main__":
    main()
