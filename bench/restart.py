"""Seconds from the command to the first true lag after a restart, at two offsets topic sizes."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from common import await_batch, report, running_job, write_config
from preload import preload

from laggard.demo.broker import Broker
from laggard.stream.job.session import start_session
from laggard.tables.published import newest_batch

TOPIC = "offsets"


def main() -> None:
    """Start, stop, start again, for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 5_000_000])
    report("restart", [measure(size) for size in parser.parse_args().sizes])


def measure(records: int) -> dict[str, object]:
    """Return first start and restart of one size."""
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        work = Path(folder)
        spark = start_session("local[2]", {})
        preload(spark, broker.bootstrap_servers, TOPIC, records)
        spark.stop()
        config = write_config(work, broker.bootstrap_servers, cluster__offsets_topic=TOPIC)
        seconds, after = [], -1
        for _ in range(2):
            started = time.monotonic()
            with running_job(work, config) as job:
                await_batch(work, job, after, 900)
                seconds.append(time.monotonic() - started)
            # the job may have published another one before it ended
            newest = newest_batch(str(work / "tables"))
            assert newest is not None
            after = newest.batch_id
    return {"records": records, "first_start_seconds": seconds[0], "restart_seconds": seconds[1]}


if __name__ == "__main__":
    main()
