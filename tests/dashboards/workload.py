"""The load of the run: a healthy group and one for each kind of trouble, all on one broker.

python -m dashboards.workload BOOTSTRAP; SIGUSR1 starts the trouble, SIGTERM ends it.
"""

from __future__ import annotations

import itertools
import logging
import signal
import sys
import time
from functools import partial
from threading import Thread

from kafka import KafkaConsumer, KafkaProducer
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
        Part(
            "catalog",
            "orders",
            members=3,
            rate=30,
            script=((0, RESTART), (12, RESTART), (12, RESTART)),
        ),
        Part("shipping", "orders", members=3, script=((0, HANG),)),
        Part("search", "orders", members=3, rate=30, script=((13, CRASH),), repeats=True),
        Part("archive", "audit", script=((0, LEAVE),)),
        Part("reporting", "orders", script=((0, LEAVE),)),
    ),
    group="billing",
    hot={("payments", 4): 60},
)
SILENT, REWOUND, AHEAD = "mailer", "resetter", "traveller"  # groups that no part has
GROUPS = [*(part.group for part in WORKLOAD.parts), SILENT, REWOUND, AHEAD]


def free_places() -> list[int]:
    """Partitions of the offsets topic that no group has.

    A broker fails a group's coordinator for good when it meets a record there that it cannot read,
    and an open transaction holds up all groups of its partition: such trouble has a place to
    itself.
    """
    taken = {coordinator_partition(group, OFFSETS_PARTITIONS) for group in GROUPS}
    return [number for number in range(OFFSETS_PARTITIONS) if number not in taken]


def group_at(place: int) -> str:
    """A group that this partition of the offsets topic has."""
    names = (f"loader-{number}" for number in itertools.count())
    return next(name for name in names if coordinator_partition(name, OFFSETS_PARTITIONS) == place)


def fall_silent(servers: str, stop: Flag, cue: Flag) -> None:
    """Read on without a commit from the cue on; more than a poll interval of
    silence is a finding.
    """
    consumer = KafkaConsumer(
        "orders", group_id=SILENT, client_id=SILENT, bootstrap_servers=servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False, heartbeat_interval_ms=1000, session_timeout_ms=10_000,
        max_poll_interval_ms=20_000,
    )  # fmt: skip
    while not stop.is_set():
        try:
            consumer.poll(timeout_ms=500)
            if not cue.is_set():
                consumer.commit()
        except KafkaError:  # a rebalance came first, or the broker is not ready
            stop.wait(0.5)
    consumer.close(autocommit=False)


def make_faults(servers: str, stop: Flag, cue: Flag) -> None:
    """Do once what no member does: a rewind, a commit ahead, an open transaction, lost and
    unreadable records.
    """
    wait_for_records(servers)
    audit = at("audit", 0)
    Thread(target=fall_silent, args=(servers, stop, cue), daemon=True).start()
    unread, held, *_ = free_places()
    cue.wait()
    commit_simply(servers, REWOUND, {audit: 80})
    commit_simply(servers, AHEAD, {audit: 10**6})
    blocked = KafkaProducer(
        bootstrap_servers=servers, transactional_id="held", transaction_timeout_ms=600_000
    )
    blocked.init_transactions()
    blocked.begin_transaction()
    blocked.send_offsets_to_transaction(offsets({audit: 5}), group_at(held))
    # a broker takes records for its internal topics from this client id only, and the client
    # refuses to send any
    writer = KafkaProducer(bootstrap_servers=servers, client_id="__admin_client")
    writer._metadata.topics = partial(writer._metadata.topics, exclude_internal_topics=False)
    for key in (
        encoder.commit_key("odd", "audit", 0),
        b"\x00\x63\x00",
    ):  # a value that ends too soon, a type from later
        writer.send("__consumer_offsets", key=key, value=b"\x00\x03\x00", partition=unread)
    writer.flush(30)
    stop.wait(10)  # until the commit of 80 is in the tables
    commit_simply(servers, REWOUND, {audit: 10})
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
            [
                NewTopic(
                    topic,
                    len(WORKLOAD.topics[topic]),
                    1,
                    topic_configs={"retention.ms": milliseconds},
                )
            ]
        )
    admin.close()
    Thread(target=make_faults, args=(servers, stop, cue), daemon=True).start()
    Load(servers, WORKLOAD, stop, cue).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
