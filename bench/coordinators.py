"""Polls of the coordinators: seconds and requests of a round over many groups on one broker.

python bench/coordinators.py 2000 10000
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from laggard.demo.broker import Broker
from laggard.sources.brokers import Brokers
from laggard.sources.poll import Poller, PollOptions
from laggard.sources.snapshot import Snapshot, pack

PARTITIONS, AT_ONCE, POLLS = 10, 200, 5


def commit_for(group: str) -> OffsetCommitRequest:
    """Return an offset on every partition, by a group that nobody joins."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topic.OffsetCommitRequestPartition
    parts = [
        part(
            partition_index=number,
            committed_offset=0,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        for number in range(PARTITIONS)
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic(name="orders", partitions=parts)],
        max_version=8,
    )


def is_refused(answer: Any) -> bool:
    return isinstance(answer, str) or any(part.error_code for part in answer.topics[0].partitions)


def make_groups(servers: str, begin: int, end: int) -> None:
    names = iter([f"group-{number:05}" for number in range(begin, end)])
    with closing(Brokers(servers.split(","), 60)) as brokers:
        brokers.metadata([])
        while part := list(islice(names, AT_ONCE)):
            while part:  # the first look for a coordinator creates the offsets topic
                answers = [
                    (group, brokers.start("offset_commit", {1: commit_for(group)}))
                    for group in part
                ]
                part = [group for group, wait in answers if is_refused(wait()[1])]
                if part:
                    brokers.ask(
                        "find_coordinator",
                        FindCoordinatorRequest(key=part[0], key_type=0, max_version=3),
                    )
                    time.sleep(0.5)


def rounds(servers: str, seconds: float) -> Iterator[tuple[float, Snapshot]]:
    with closing(
        Poller(PollOptions((servers,), ask_groups_seconds=seconds, request_timeout_seconds=30))
    ) as poller:
        for poll_id in range(1, POLLS + 1):
            started = time.monotonic()
            found = poller.poll(poll_id)
            yield time.monotonic() - started, found


def main(sizes: Sequence[int]) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            admin.create_topics([NewTopic("orders", PARTITIONS, 1)])
        print(
            "groups | deadline s | asked in a poll | requests in a poll | s of a poll | MB of a "
            "poll"
        )
        before = 0
        for size in sizes:
            make_groups(servers, before, size)
            before = size
            for seconds in (5.0, 0.5):
                found: list[tuple[float, Any]] = list(rounds(servers, seconds))[1:]
                asked = [sum(each.answers["is_asked"].to_pylist()) for _, each in found]
                sent = [sum(each.requests.values()) for _, each in found]
                took = statistics.median(spent for spent, _ in found)
                size_mb = len(str(pack(found[-1][1]))) / 1e6
                print(
                    f"{size} | {seconds} | {min(asked)} to {max(asked)} | {max(sent)} | "
                    f"{took:.2f} | {size_mb:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [2000])
