"""One of three real brokers is stopped in its tracks: the others' ends come with every tick, and on
time.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from laggard.demo.broker import Broker
from laggard.sources.poll import Poller, PollOptions
from laggard.sources.snapshot import Snapshot

pytestmark = [pytest.mark.broker, pytest.mark.full]

# seconds, and as many for brokers that do not answer: as the defaults are to each other
TICK = 10.0
STOPPED = 2
PARTITIONS = 6


def ends(snapshot: Snapshot, topic: str) -> tuple[set[int], set[int]]:
    """Brokers whose partitions have a known end, and those whose partitions have none."""
    rows = [row for row in snapshot.positions.to_pylist() if row["topic"] == topic]
    assert all((row["log_end_offset"] is None) == (row["error"] is not None) for row in rows)
    known = {row["leader_broker"] for row in rows if row["error"] is None}
    return known, {row["leader_broker"] for row in rows if row["error"] is not None}


def test_the_ticks_of_healthy_leaders_are_on_time() -> None:
    with Broker(nodes=3) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics(
            [NewTopic("single", PARTITIONS, 1), NewTopic("replicated", PARTITIONS, 3)]
        )
        admin.close()
        options = PollOptions(
            tuple(broker.bootstrap_servers.split(",")),
            request_timeout_seconds=TICK,
            window_seconds=10,
            metadata_seconds=2,
            state_poll_seconds=2,
            slo_seconds=(60.0,),
        )
        with closing(Poller(options)) as poller:
            poll_id = 0

            def tick() -> tuple[Snapshot, float]:
                nonlocal poll_id
                poll_id += 1
                started = time.monotonic()
                snapshot = poller.poll(poll_id)
                seconds = time.monotonic() - started
                time.sleep(max(0.0, 2 - seconds))
                return snapshot, seconds

            whole = ({1, 2, 3}, set())
            while not (
                ends(snapshot := tick()[0], "single") == ends(snapshot, "replicated") == whole
            ):
                assert poll_id < 100  # new topics are not listed, and have no leaders, at once
            os.kill(broker.pids[STOPPED], signal.SIGSTOP)
            try:
                ticks = [tick() for _ in range(15)]
            finally:
                os.kill(broker.pids[STOPPED], signal.SIGCONT)
            back = [tick() for _ in range(15)]
    print("seconds of the polls:", *(f"{seconds:.2f}" for _, seconds in ticks))
    assert max(seconds for _, seconds in ticks) < TICK
    assert sorted(seconds for _, seconds in ticks)[-2] < TICK / 2  # only the first waits
    for snapshot, _ in ticks:
        known, unknown = ends(snapshot, "single")
        assert known == {1, 3}
        # the stopped broker, and no leader once the controller has missed it
        assert len(unknown) == 1
    assert ends(ticks[-1][0], "replicated") == ({1, 3}, set())
    assert {row["error"] for row in ticks[-1][0].offsets_partitions.to_pylist()} <= {None}
    assert any(ends(snapshot, "single") == ({1, 2, 3}, set()) for snapshot, _ in back)
