"""What Kafka's own tools say about groups, commits and group records."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from laggard.demo.broker import Broker

GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
# ms; by default 5 s, and then it prints no line
DESCRIBE = ("--describe", "--all-groups", "--timeout", "60000")
DUMP_TOOL = "kafka.tools.DumpLogSegments"
_BATCH = re.compile(
    r"baseOffset: .* producerId: (-?\d+) .* isTransactional: (true|false) isControl: (true|false)"
)
_RECORD = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*?headerKeys: \[\] (.*)$")


@dataclass(frozen=True)
class Described:
    """One line of `kafka-consumer-groups --describe`; None stands for its dash."""

    current_offset: int | None
    log_end_offset: int | None
    lag: int | None


@dataclass(frozen=True)
class Dumped:
    """One record of the offsets topic; a tombstone has no data."""

    partition: int
    offset: int
    time_ms: int
    type: int
    key: dict[str, Any]
    data: dict[str, Any] | None


def describe_groups(broker: Broker) -> dict[tuple[str, str, int], Described]:
    """CURRENT-OFFSET, LOG-END-OFFSET and LAG of every group's partitions."""
    return read_description(
        broker.run_tool(GROUP_TOOL, "--bootstrap-server", broker.bootstrap_servers, *DESCRIBE)
    )


def read_description(text: str) -> dict[tuple[str, str, int], Described]:
    """What `kafka-consumer-groups --describe` printed, by group, topic and partition."""
    found = {}
    for words in (line.split() for line in text.splitlines()):
        if len(words) < 6 or words[0] == "GROUP":
            continue
        numbers = [None if word == "-" else int(word) for word in words[3:6]]
        found[words[0], words[1], int(words[2])] = Described(*numbers)
    return found


def dump_offsets_topic(broker: Broker) -> list[Dumped]:
    """Every record a read_committed reader may see, in order per partition."""
    files = sorted(broker.work_dir.glob("node-*/data/__consumer_offsets-*/*.log"))
    names = ",".join(str(file) for file in files if file.stat().st_size)
    text = broker.run_tool(DUMP_TOOL, "--offsets-decoder", "--files", names)
    found: list[Dumped] = []
    partition, producer, is_transactional = -1, -1, False
    open_transactions: dict[tuple[int, int], list[Dumped]] = {}
    for line in text.splitlines():
        if line.startswith("Dumping "):
            partition = int(line.rpartition("/__consumer_offsets-")[2].partition("/")[0])
        elif batch := _BATCH.match(line):
            producer, is_transactional = int(batch[1]), batch[2] == "true"
        elif record := _RECORD.match(line):
            body = record[3]
            if body.startswith("endTxnMarker: "):
                ended = open_transactions.pop((partition, producer), [])
                found += ended if body.startswith("endTxnMarker: COMMIT") else []
                continue
            one = _record(partition, int(record[1]), int(record[2]), body)
            (
                open_transactions.setdefault((partition, producer), [])
                if is_transactional
                else found
            ).append(one)
    return sorted(found, key=lambda each: (each.partition, each.offset))


def _record(partition: int, offset: int, time_ms: int, body: str) -> Dumped:
    key_text, _, payload = body.removeprefix("key: ").partition(" payload: ")
    key = json.loads(key_text)
    data = None if payload == "<DELETE>" else json.loads(payload)["data"]
    return Dumped(partition, offset, time_ms, int(key["type"]), key["data"], data)


def generations(dumped: Iterable[Dumped]) -> list[Dumped]:
    """Group records that tell a generation, or the end of the group.

    A static member that joins again, as one does that a busy machine kept from its heartbeats, has
    the record written once more under the same generation (KIP-345): that is an event.
    """
    found, newest = [], dict[str, Any]()
    for record in dumped:
        if record.type == 2:
            reported = (
                None
                if record.data is None
                else (record.data["generation"], bool(record.data["members"]))
            )
            if reported is None or reported != newest.get(record.key["group"]):
                found.append(record)
            newest[record.key["group"]] = reported
    return found
