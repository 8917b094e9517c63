"""Seconds and CPU-seconds of a warm tick at 1 k, 10 k and 100 k group-partitions, on a real broker.

In each tick a fifth of the groups commits all its partitions. The broker shares the cores; its CPU
is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from common import await_batch, cpu_seconds, report, running_job, write_config
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from laggard.demo.broker import Broker

PARTITIONS = 100
WARM_UP, MEASURED = 6, 6


def main() -> None:
    """Measure each size in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--tick-seconds", type=int, default=5)
    args = parser.parse_args()
    report("tick", [measure(size, args.tick_seconds) for size in args.sizes])


def measure(size: int, tick_seconds: int) -> dict[str, object]:
    """Return medians over the warm ticks of one size."""
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        work = Path(folder)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics([NewTopic("orders", PARTITIONS, 1)])
        groups = [f"group-{number}" for number in range(size // PARTITIONS)]
        commit(admin, groups, 0)
        config = write_config(
            work,
            broker.bootstrap_servers,
            job__tick_seconds=tick_seconds,
        )
        seconds, cpu = [], []
        with running_job(work, config) as job:
            batch = await_batch(work, job, -1, 180)
            for number in range(WARM_UP + MEASURED):
                commit(admin, groups[number % 5 :: 5], number + 1)
                before = cpu_seconds(job.pid)
                batch = await_batch(work, job, batch.batch_id, 60)
                if number >= WARM_UP:
                    seconds.append(sum(dict(batch.values["durations_seconds"]).values()))
                    cpu.append(cpu_seconds(job.pid) - before)
                time.sleep(0.2)
        admin.close()
    return {
        "group_partitions": size,
        "tick_seconds_median": statistics.median(seconds),
        "tick_seconds_max": max(seconds),
        "cpu_seconds_median": statistics.median(cpu),
    }


def commit(admin: KafkaAdminClient, groups: list[str], offset: int) -> None:
    """Commit every partition for each of the groups."""
    offsets = {
        TopicPartition("orders", part): OffsetAndMetadata(offset, "", -1)
        for part in range(PARTITIONS)
    }
    for group in groups:
        until = time.monotonic() + 30  # the first commit makes the broker create its offsets topic
        while True:
            try:
                admin.alter_group_offsets(group, offsets)
                break
            except KafkaError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)


if __name__ == "__main__":
    main()
