"""Records/s of decoding and compaction beside a raw scan by the same source.

It also measures the job's cold start.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from common import await_batch, cpu_seconds, report, running_job, write_config
from preload import PARTITIONS, preload

from laggard.demo.broker import Broker
from laggard.names import NameFilter
from laggard.sources.offsets_topic import READ_OPTIONS
from laggard.stream.job.session import start_session
from laggard.stream.tick.decode import decode_stage
from laggard.stream.tick.decoded import DECODED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "offsets"
BATCH = 500_000


def main() -> None:
    """Preload, scan and decode in turns, then let the job catch up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    records = parser.parse_args().records
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        spark = start_session("local[2]", {})
        preload(spark, broker.bootstrap_servers, TOPIC, records)
        rows = []
        for number in range(rounds):
            for name, run in (("raw scan", scan), ("decode and compact", decode)):
                seconds, cpu = timed(spark, broker.bootstrap_servers, records, run)
                rows.append(
                    {
                        "what": name,
                        "round": number + 1,
                        "records_per_second": records / seconds,
                        "cpu_seconds": cpu,
                    }
                )
        best = {
            name: max(float(str(row["records_per_second"])) for row in rows if row["what"] == name)
            for name in ("raw scan", "decode and compact")
        }
        spark.stop()
        rows.append(whole_job(Path(folder), broker.bootstrap_servers, records))
    report("catch_up", rows)
    print(
        "decode and compact / raw scan, best rounds: "
        f"{best['decode and compact'] / best['raw scan']:.1%}"
    )


def timed(spark: SparkSession, bootstrap: str, records: int, run: object) -> tuple[float, float]:
    """Return seconds and CPU-seconds over all records in batches of a tick's size.

    The CPU-seconds do not count the broker.
    """
    step = BATCH // PARTITIONS
    each = records // PARTITIONS
    started, cpu = time.monotonic(), cpu_seconds(os.getpid())
    broker_cpu = _broker_cpu()
    for start in range(0, each, step):
        frame = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("assign", json.dumps({TOPIC: list(range(PARTITIONS))}))
            .options(**READ_OPTIONS)
            .option(
                "startingOffsets",
                json.dumps({TOPIC: {str(part): start for part in range(PARTITIONS)}}),
            )
            .option(
                "endingOffsets",
                json.dumps(
                    {TOPIC: {str(part): min(start + step, each) for part in range(PARTITIONS)}}
                ),
            )
            .load()
            .select("partition", "offset", "timestamp", "key", "value")
        )
        run(frame)  # type: ignore[operator]
    return time.monotonic() - started, cpu_seconds(os.getpid()) - cpu - (_broker_cpu() - broker_cpu)


def _broker_cpu() -> float:
    return sum(
        cpu_seconds(int(entry.name))
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and b"kafka.Kafka" in _command(entry)
    )


def _command(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


def scan(frame: DataFrame) -> None:
    """Read every byte and keep nothing."""
    frame.coalesce(2).selectExpr("sum(length(key) + length(value))").collect()


def decode(frame: DataFrame) -> None:
    """Do what a tick does with its records before anything is joined."""
    frame.coalesce(2).mapInArrow(decode_stage(NameFilter(), with_edges=False), DECODED).selectExpr(
        "sum(commit.commits)"
    ).collect()


def whole_job(work: Path, bootstrap: str, records: int) -> dict[str, object]:
    """Measure from the command to the first caught-up tick, JVM start included."""
    config = write_config(work, bootstrap, cluster__offsets_topic=TOPIC)
    started = time.monotonic()
    with running_job(work, config) as job:
        await_batch(work, job, -1, 600)
        seconds, cpu = time.monotonic() - started, cpu_seconds(job.pid)
    return {
        "what": "whole job, cold",
        "round": 1,
        "records_per_second": records / seconds,
        "cpu_seconds": cpu,
    }


if __name__ == "__main__":
    main()
