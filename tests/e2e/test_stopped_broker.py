"""One of three brokers is stopped in its tracks: batches go on without it, and no status changes to
and fro.
"""

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from e2e.kit import START_LIMIT, Place, Run, View, at, commit_simply, now, offsets, wait_until
from laggard.config.load import load_config
from laggard.demo.broker import Broker
from laggard.sources.offsets_topic import OffsetsSource
from laggard.sources.poll_files import PollFiles, offset_in
from laggard.wire.coordinator import coordinator_partition

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.nightly,
]

STOPPED = 2
PARTITIONS = 6
TICKS = 8
Statuses = dict[int, list[str]]


@contextmanager
def committing(servers: str, groups: int) -> Iterator[None]:
    """Groups that commit all the time, on offsets partitions of all brokers, whoever leads them."""
    ended = threading.Event()

    def commit(group: str) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            enable_auto_commit=False,
            request_timeout_ms=3000,
        )
        consumer.assign([at("replicated", 0)])
        for number in itertools.count():
            with suppress(KafkaError):
                consumer.commit(offsets({at("replicated", 0): number % 7}), timeout_ms=3000)
            if ended.wait(0.3):
                break
        consumer.close(autocommit=False)

    threads = [
        threading.Thread(target=commit, args=(f"busy-{number}",), daemon=True)
        for number in range(groups)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(20)


def statuses(place: Place, group: str, first: int, last: int) -> Statuses:
    """What every tick of these batches said of the group's partitions."""
    ticks = [
        row
        for row in place.rows("batches")
        if row["kind"] != "gap" and first <= row["batch_id"] <= last
    ]
    views = [
        View(str(place.tables), row).partitions
        for row in sorted(ticks, key=lambda row: row["batch_id"])
    ]
    return {
        number: [view[group, "single", number]["status"] for view in views]
        for number in range(PARTITIONS)
    }


def changes(found: list[str]) -> list[str]:
    return [status for status, _ in itertools.groupby(found)]


def groups_by_coordinator(admin: KafkaAdminClient) -> tuple[str, str]:
    """Names of a group whose coordinator goes on, and of one whose coordinator is the broker that
    stops.
    """
    [topic] = admin.describe_topics(["__consumer_offsets"])
    leaders = {part["partition_index"]: part["leader_id"] for part in topic["partitions"]}
    names = [f"group-{number}" for number in range(100)]
    on_stopped = {
        name: leaders[coordinator_partition(name, len(leaders))] == STOPPED for name in names
    }
    return next(name for name in names if not on_stopped[name]), next(
        name for name in names if on_stopped[name]
    )


def plan_of_a_killed_batch(place: Place) -> Path:
    """Kill a job after it planned a batch and before that was published: the plan's file."""
    for _ in range(10):
        run = Run(place)
        try:
            # which Spark counts alike, as the checkpoint is the first one
            number = run.tick_after(now()).batch_id
            planned = place.checkpoint / "offsets" / str(number + 1)
            wait_until(
                planned.exists, START_LIMIT, "the next batch is planned", place.tail, every=0.001
            )
        finally:
            run.kill()
        newest = place.newest()
        if newest is not None and newest.batch_id == number:
            return planned
    pytest.fail("every batch was quicker than the kill")


def test_a_start_does_not_wait_for_the_coordinator_that_the_planned_batch_would_ask(
    tmp_path: Path,
) -> None:
    with ExitStack() as running:
        broker = running.enter_context(
            Broker(nodes=3, properties={"offsets.topic.replication.factor": "1"})
        )
        servers = broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=servers)
        running.callback(admin.close)
        admin.create_topics([NewTopic("replicated", 1, 3)])
        commit_simply(servers, "first", {at("replicated", 0): 0})
        place = Place(tmp_path / "job", servers)
        running.enter_context(committing(servers, 12))
        planned = plan_of_a_killed_batch(place)
        snapshot = PollFiles(str(place.checkpoint)).from_offset(offset_in(planned.read_text()))
        source = OffsetsSource.of(load_config(str(place.config), [], {}).cluster)
        group = source.group(snapshot.answering_brokers, snapshot.offsets_partitions)
        [topic] = admin.describe_topics(["__consumer_offsets"])
        leaders = {part["partition_index"]: part["leader_id"] for part in topic["partitions"]}
        stopped = broker.pids[leaders[coordinator_partition(group, len(leaders))]]
        os.kill(stopped, signal.SIGSTOP)
        run = Run(place)
        try:
            number = int(planned.name)
            run.wait_for(lambda batch: batch.batch_id >= number, "the planned batch")
            run.wait_for(lambda batch: batch.batch_id >= number + TICKS, "more ticks")
            code, _ = run.stop()
        finally:
            run.kill()
            os.kill(stopped, signal.SIGCONT)
    assert code == 0, place.tail()
    assert "are left for later: their broker does not answer" in place.log.read_text()


@pytest.mark.parametrize("replicas", [3, 1], ids=["replicated", "no replicas"])
def test_batches_go_on_and_only_what_the_broker_led_is_unknown(
    tmp_path: Path, replicas: int
) -> None:
    with ExitStack() as running:
        properties = {"offsets.topic.replication.factor": str(replicas)}
        broker = running.enter_context(Broker(nodes=3, properties=properties))
        servers = broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=servers)
        running.callback(admin.close)
        admin.create_topics([NewTopic("single", PARTITIONS, 1), NewTopic("replicated", 1, 3)])
        commit_simply(servers, "first", {at("replicated", 0): 0})  # makes the offsets topic
        watched, orphan = groups_by_coordinator(admin)
        for group in (watched, orphan):
            commit_simply(servers, group, {at("single", number): 0 for number in range(PARTITIONS)})
        place = Place(tmp_path / "job", servers)
        run = Run(place)
        running.callback(run.kill)
        run.wait_for(lambda batch: batch.kind == "tick", "first tick")
        running.enter_context(committing(servers, 12))
        run.tick_after(now())
        before = run.wait_for(
            lambda batch: all_ok(place, watched), "all known before the broker stops"
        )
        [topic] = admin.describe_topics(["single"])
        led = {
            part["partition_index"] for part in topic["partitions"] if part["leader_id"] == STOPPED
        }
        os.kill(broker.pids[STOPPED], signal.SIGSTOP)
        try:
            stopped_at, began = now(), time.monotonic()
            run.tick_after(stopped_at)
            first_seconds = time.monotonic() - began
            first = run.wait_for(
                lambda batch: all_unknown(place, watched, led),
                "the broker's partitions are unknown",
            )
            last = run.wait_for(
                lambda batch: batch.batch_id >= first.batch_id + TICKS, "more ticks"
            )
            rest_seconds = time.monotonic() - began - first_seconds
            if replicas == 1:
                run.wait_for(
                    lambda batch: all_stale(place, orphan, led),
                    "commits without a coordinator are unknown",
                )
        finally:
            os.kill(broker.pids[STOPPED], signal.SIGCONT)
        print(
            f"first tick after {first_seconds:.1f} s, then {last.batch_id - first.batch_id} in "
            f"{rest_seconds:.1f} s"
        )
        for group in (watched, orphan):
            run.wait_for(lambda batch, group=group: all_ok(place, group), "everything known again")
        found = statuses(place, watched, before.batch_id, last.batch_id)
        kinds = {
            row["gap_reason"] or row["kind"]
            for row in place.rows("batches")
            if row["batch_id"] >= before.batch_id
        }
    for number, each in found.items():
        assert changes(each) == (["ok", "no_end_offset"] if number in led else ["ok"]), (
            number,
            each,
        )
    assert kinds <= {"tick", "tick_late"}, "nothing was missed, and nobody else's lag was hidden"


def all_unknown(place: Place, group: str, partitions: set[int]) -> bool:
    rows = place.view().partitions
    return all(rows[group, "single", number]["status"] == "no_end_offset" for number in partitions)


def all_stale(place: Place, group: str, led: set[int]) -> bool:
    rows = place.view().partitions
    found = {
        (rows[group, "single", number]["status"], rows[group, "single", number]["error"])
        for number in set(range(PARTITIONS)) - led
    }
    return found == {("stale", "COORDINATOR_NOT_AVAILABLE")}


def all_ok(place: Place, group: str) -> bool:
    rows = place.view().partitions
    return all(rows[group, "single", number]["status"] == "ok" for number in range(PARTITIONS))
