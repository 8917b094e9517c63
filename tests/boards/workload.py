"""The load of the run: a healthy group and one for each kind of trouble, all on one broker.

python -m boards.workload BOOTSTRAP; SIGUSR1 starts the trouble, SIGTERM ends it.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from functools import partial
from threading import Thread

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

import encoder
from e2e.kit import at, commit_simply, offsets, produce
from laggard.demo.flag import Flag
from laggard.demo.load import Load
from laggard.demo.scenarios import CRASH, HANG, LEAVE, RESTART, SLOW_DOWN, Part, Scenario
from laggard.wire.coordinator import coordinator_partition

HEALTHY = "checkout"
OFFSETS_PARTITIONS = 50
RETENTION = {"payments": "3600000"}  # short enough for a forecast of loss within six hours
WORKLOAD = Scenario(
    "one healthy group, and one for each kind of trouble",
    {"orders": (10,) * 6, "payments": (10,) * 6, "audit": (10, 10)},
    (
        Part(HEALTHY, "orders", members=2),
        Part("billing", "orders", members=2, rate=60, slow_rate=20, script=((0, SLOW_DOWN),)),
        Part("fraud", "payments", members=3, rate=36),
        Part("catalog", "orders", members=3, rate=30, script=((0, RESTART), (12, RESTART), (12, RESTART))),
        Part("shipping", "orders", members=3, script=((0, HANG),)),
        Part("mailer", "audit", script=((0, HANG),)),
        Part("search", "orders", members=3, rate=30, script=((8, CRASH),), repeats=True),
        Part("archive", "audit", script=((0, LEAVE),)),
    ),
    group="billing",
    hot={("payments", 4): 60},
)
GROUPS = [part.group for part in WORKLOAD.parts]


def blocked_group() -> str:
    """A group of an offsets partition that no other one has, so that its transaction holds up nobody else."""
    taken = {coordinator_partition(group, OFFSETS_PARTITIONS) for group in [*GROUPS, "resetter", "traveller"]}
    names = (f"loader-{number}" for number in range(OFFSETS_PARTITIONS))
    return next(name for name in names if coordinator_partition(name, OFFSETS_PARTITIONS) not in taken)


def make_faults(servers: str, stop: Flag, cue: Flag) -> None:
    """Do once what no member does: a rewind, a commit ahead, an open transaction, lost and unreadable records."""
    wait_for_records(servers)
    audit = at("audit", 0)
    commit_simply(servers, "resetter", {audit: 80})
    cue.wait()
    blocked = KafkaProducer(bootstrap_servers=servers, transactional_id="held", transaction_timeout_ms=600_000)
    blocked.init_transactions()
    blocked.begin_transaction()
    blocked.send_offsets_to_transaction(offsets({audit: 5}), blocked_group())
    commit_simply(servers, "resetter", {audit: 10})
    commit_simply(servers, "traveller", {audit: 10**6})
    place = coordinator_partition(HEALTHY, OFFSETS_PARTITIONS)
    # a broker takes records for its internal topics from this client id only, and the client refuses to send any
    writer = KafkaProducer(bootstrap_servers=servers, client_id="__admin_client")
    writer._metadata.topics = partial(writer._metadata.topics, exclude_internal_topics=False)
    for key in (
        encoder.commit_key("odd", "audit", 0),
        b"\x00\x63\x00",
    ):  # a value that ends too soon, a type from later
        writer.send("__consumer_offsets", key=key, value=b"\x00\x03\x00", partition=place)
    writer.flush(30)
    stop.wait(20)  # until the group that left is behind
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_records({at("audit", number): -1 for number in range(2)})  # -1: all of them
    admin.close()


def wait_for_records(servers: str) -> None:
    """Return when the topic is there and has been written to."""
    while True:
        try:
            return produce(servers, {at("audit", 0): 100})
        except KafkaError:  # the topic is not made yet
            time.sleep(1)


def main(servers: str) -> int:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.WARNING)
    stop, cue = Flag(), Flag()

    def end(*_: object) -> None:
        stop.set()
        cue.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, lambda *_: cue.set())
    admin = KafkaAdminClient(bootstrap_servers=servers)
    for topic, milliseconds in RETENTION.items():
        admin.create_topics(
            [NewTopic(topic, len(WORKLOAD.topics[topic]), 1, topic_configs={"retention.ms": milliseconds})]
        )
    admin.close()
    Thread(target=make_faults, args=(servers, stop, cue), daemon=True).start()
    Load(servers, WORKLOAD, stop, cue).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
