"""Workloads run by Java consumers on a real broker, all at the same time, and the records and polls
they leave.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from calibration.clients import Clients, RealDriver
from calibration.members import PARTITIONS, RATE, Execution, Workload
from calibration.workloads import WARM_UPS, WORKLOADS
from laggard.demo.broker import Broker
from laggard.sources.poll import Poller, PollOptions
from patience import patient
from simulator.offsets_log import Record, Written
from simulator.simulation import Polled, Simulation
from simulator.truth import Truth

TICK_SECONDS, STEP_SECONDS = 2.0, 0.05
READ_SECONDS = 30
OFFSETS_TOPIC = "__consumer_offsets"


def run_on_kafka(broker: Broker, folder: Path) -> Simulation:
    """All workloads at the same time, with one poll series."""
    with ExitStack() as stack:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        stack.callback(admin.close)
        admin.create_topics(
            [NewTopic(workload.name, PARTITIONS, 1) for workload in (*WARM_UPS, *WORKLOADS)]
        )
        clients, doomed = (
            Clients(broker, folder / f"{name}.log") for name in ("clients", "doomed")
        )
        stack.callback(clients.kill)
        stack.callback(doomed.kill)
        poller = Poller(
            PollOptions((broker.bootstrap_servers,), metadata_seconds=1, state_poll_seconds=0)
        )
        stack.callback(poller.close)
        driver = RealDriver(clients, doomed, admin)
        _execute(WARM_UPS, driver, None)
        clients.tell("produce", PARTITIONS, RATE, *(workload.name for workload in WORKLOADS))
        polls = _execute(WORKLOADS, driver, poller)
    return Simulation("real", 0, _read(broker, polls[-1].offsets_partitions), polls, Truth())


def _execute(
    workloads: Collection[Workload], driver: RealDriver, poller: Poller | None
) -> list[Polled]:
    """Run them to the end, side by side, and return the polls of that time."""
    # what the first one finds is history and no event
    polls = [] if poller is None else [_poll(poller, 1)]
    due = time.monotonic() + TICK_SECONDS
    executions = [Execution(workload, driver, time.monotonic()) for workload in workloads]
    while True:
        driver.check()
        now = time.monotonic()
        executions = [each for each in executions if not each.is_over(now)]
        if poller is not None and (now >= due or not executions):
            polls.append(_poll(poller, len(polls) + 1))
            due += TICK_SECONDS
        if not executions:
            return polls
        time.sleep(STEP_SECONDS)


def _poll(poller: Poller, number: int) -> Polled:
    found = poller.poll(number)
    assert not found.failures
    ends = {row["offsets_partition"]: row for row in found.offsets_partitions.to_pylist()}
    return Polled(found.polled_at_ms, found.positions.to_pylist(), ends)


def _read(broker: Broker, ends: Mapping[int, Mapping[str, int]]) -> list[Written]:
    """The offsets topic up to the last poll."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, isolation_level="read_committed"
    )
    until = {
        TopicPartition(OFFSETS_TOPIC, part): row["last_stable_offset"] for part, row in ends.items()
    }
    consumer.assign(list(until))
    consumer.seek_to_beginning()
    found: list[Written] = []
    limit = time.monotonic() + patient(READ_SECONDS)
    while any(consumer.position(place) < end for place, end in until.items()):
        assert time.monotonic() < limit, "the offsets topic could not be read in time"
        for records in consumer.poll(timeout_ms=500).values():
            found += [
                Written(each.partition, each.offset, each.timestamp, Record(each.key, each.value))
                for each in records
            ]
    consumer.close()
    return found
