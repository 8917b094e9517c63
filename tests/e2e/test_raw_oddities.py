"""Whatever somebody writes into the offsets topic: twenty groups go on exactly, and each oddity is
counted.

It is a shadow topic (`cluster.offsets_topic`), as a malformed record of a known type keeps a broker
from loading the real one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

import encoder
from e2e.kit import Exporter, Place, Row, Run, at, now, produce
from laggard.demo.broker import Broker
from stream.simulation import Record, commit, generation

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.full]

TOPIC, SHADOW, RECORDS = "orders", "shadow-offsets", 500
STEADY = [f"steady-{number:02}" for number in range(20)]
ANY_TIME = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
# Spark's own source fails on the last two, which are no microseconds
OUTSIDE_THE_CALENDAR = (-5, 253_402_300_800_000, 2**63 // 1000 - 1, 2**63 // 1000 + 1, 2**63 - 1)


@dataclass
class Survived:
    place: Place
    partitions: dict[tuple[str, str, int], Row]
    batches: list[Row]
    dead: list[Row]
    samples: dict[str, dict[frozenset[tuple[str, str]], float]]
    odd: int


class Writer:
    """A producer to the shadow topic's only partition."""

    def __init__(self, servers: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=servers, max_request_size=4_000_000)

    def send(self, records: Iterable[Record], timestamp_ms: int | None = None) -> int:
        sent = 0
        for each in records:
            self._producer.send(SHADOW, key=each.key, value=each.value, timestamp_ms=timestamp_ms)
            sent += 1
        self._producer.flush(30)
        return sent

    def close(self) -> None:
        self._producer.close()


def steady(number: int) -> list[Record]:
    """Every group commits; group k is k records ahead of the first."""
    return [
        commit(10 * number + place, group=group, topic=TOPIC, at=now())
        for place, group in enumerate(STEADY)
    ]


def oddities(writer: Writer) -> int:
    """Records that no broker writes, and odd ones that it does; gives how many are no records to
    us.
    """
    broken = [
        Record(b"", b""),
        Record(b"\x00\x01\x00", b"\x00"),
        Record(encoder.commit_key("odd", "\0", 0), b"\x00\x03\x00"),
        # half of a surrogate pair
        Record(b"\x00\x01\x00\x02\xed\xa0\x00\x01t\x00\x00\x00\x00", None),
        commit(5, group="odd", topic=TOPIC, partition=-1),
        commit(None, group="odd", topic=TOPIC, partition=-(2**31)),
        Record(encoder.group_key("odd"), b"\x00\x03" + b"\xff" * 40),
    ]
    sent = writer.send(broken)
    for timestamp_ms in OUTSIDE_THE_CALENDAR:
        writer.send([commit(7, group="timeless", topic=TOPIC)], timestamp_ms)
        sent += writer.send([generation(1, {"m": (TOPIC,)}, group="timeless")], timestamp_ms)
    names = ["", " ", "g\0\n\x1b[31m", '"}{', "\u202ex", "x" * 30_000]
    writer.send(
        commit(offset, group=name, topic=TOPIC) for name in names for offset in (2**63 - 1, -1, 3)
    )
    for place, offset in enumerate((2**63 - 1, 2**53 + 11, -1, -(2**63))):
        writer.send([commit(offset, group="odd", topic=TOPIC, partition=place)])
    return sent


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survived]:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=servers)
        configs = {**ANY_TIME, "retention.ms": "-1"}
        admin.create_topics([NewTopic(TOPIC, 4, 1), NewTopic(SHADOW, 1, 1, topic_configs=configs)])
        admin.close()
        produce(servers, {at(TOPIC, number): RECORDS for number in range(4)})
        place = Place(tmp_path_factory.mktemp("odd") / "job", servers, {"offsets_topic": SHADOW})
        writer, run, exporter = Writer(servers), None, None
        try:
            writer.send(steady(0))
            run = Run(place)
            run.wait_for(lambda batch: batch.kind == "tick", "first tick")
            exporter, odd = Exporter(place), 0
            for number in range(1, 6):
                writer.send(steady(number))
                odd += oddities(writer)
                run.tick_after(now())
            for _ in range(3):  # a commit is proven to be ahead by later polls
                batch = run.tick_after(now())
            samples = exporter.scrape_when_ready(batch.batch_id)
            view = place.view(batch)
            yield Survived(
                place,
                view.partitions,
                place.rows("batches"),
                place.rows("dead_letters"),
                samples,
                odd,
            )
        finally:
            writer.close()
            if exporter:
                exporter.kill()
            if run:
                run.kill()


def test_the_other_groups_are_exact(survived: Survived) -> None:
    found = {
        group: row["lag"] for (group, _, _), row in survived.partitions.items() if group in STEADY
    }
    expected = {group: RECORDS - (50 + place) for place, group in enumerate(STEADY)}
    assert found == expected, survived.place.tail()
    samples = survived.samples["laggard_group_lag_records"]
    assert {
        dict(key)["group"]: value for key, value in samples.items() if dict(key)["group"] in STEADY
    } == expected


def test_the_audit_finds_no_wrong_row_beside_them(survived: Survived) -> None:
    survived.place.audit()


def test_every_oddity_is_counted(survived: Survived) -> None:
    ticks = [row for row in survived.batches if row["kind"] != "gap"]
    assert all(
        row["records"] == row["decoded"] + row["tombstones"] + row["unknown"] + row["dead"]
        for row in ticks
    )
    assert sum(row["dead"] for row in ticks) == survived.odd == len(survived.dead), (
        survived.place.tail()
    )
    assert {row["quarantined_groups"] for row in ticks} == {0}
    reasons = {(row["reason"], row["field"]) for row in survived.dead}
    assert reasons >= {("out_of_range", "partition"), ("out_of_range", "record_timestamp")}


def test_extreme_offsets_are_a_status_each(survived: Survived) -> None:
    rows = {place: row for (group, _, place), row in survived.partitions.items() if group == "odd"}
    assert {place: (row["status"], row["committed_offset"]) for place, row in rows.items()} == {
        0: ("committed_ahead", 2**63 - 1),
        1: ("committed_ahead", 2**53 + 11),
        2: ("no_commit", None),
        3: ("no_commit", None),
    }
    timeless = next(
        row for (group, _, _), row in survived.partitions.items() if group == "timeless"
    )
    assert (timeless["status"], timeless["lag"]) == ("ok", RECORDS - 7)
