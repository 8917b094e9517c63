"""One broker and one history that all tests read: a first run, a kill and a stop under traffic, a
run after each.
"""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import (
    MAX_AGE,
    Exporter,
    Members,
    Place,
    Row,
    Run,
    Traffic,
    View,
    at,
    commit_in_transaction,
    commit_simply,
    commit_with_retention,
    now,
    produce,
    wait_until,
)  # fmt: skip
from e2e.oracle import Described, Dumped, describe_groups, dump_offsets_topic
from laggard.demo.broker import Broker
from laggard.stream.job.identity import identity_path
from laggard.tables.schema.schemas import TABLES
from laggard.tables.upkeep.maintenance import read_done, write_done

TOPICS = {"orders": 4, "payments": 2, "quiet": 2, "doomed": 1, "shadow": 3}
RECORDS = 40
# of group odd, by partition of orders: a broker takes any int64
ODD_COMMITS = (2**63 - 1, 2**53 + 11, -1, 3)
LONG_AGO = datetime(2000, 1, 1, tzinfo=timezone.utc)
EXPIRES_AFTER = 15.0  # seconds; some ticks also on a busy machine


@dataclass
class Paused:
    """What was seen while no group committed and no producer sent."""

    place: Place
    view: View
    described: dict[tuple[str, str, int], Described]
    dumped: list[Dumped]
    topic_deleted_at: datetime
    # partition_status of every tick since a topic was deleted
    statuses: list[dict[tuple[str, str, int], Row]]
    scraped: dict[str, Any]
    scraped_view: View
    second_job: tuple[int, str, float]
    expiring: str  # group whose commit was seen to expire
    # rows that `laggard audit` checked while job, exporter and coordinators were asked
    audited: dict[str, int]


@dataclass
class Resumed:
    """What was seen after the job was killed in a batch, stopped by SIGTERM, and started without a
    checkpoint.
    """

    place: Place
    traffic: Traffic
    stopped: tuple[int | None, float]
    stopped_again: tuple[int | None, float]
    killed_after: Row  # the newest `batches` row when the job was killed
    last_before: Row  # and when it was stopped
    view: View
    batches: list[Row]
    described: dict[tuple[str, str, int], Described]
    dumped: list[Dumped]
    # least age of data, samples
    scrapes_while_down: list[tuple[float, dict[str, Any]]] = field(default_factory=list)


@dataclass
class World:
    """The running parts that the phases hand on."""

    broker: Broker
    place: Place
    members: Members
    traffic: Traffic
    run: Run | None = None
    exporter: Exporter | None = None


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker(properties={"offsets.retention.check.interval.ms": "1000"}) as running:
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap_servers)
        admin.create_topics([NewTopic(name, number, 1) for name, number in TOPICS.items()])
        admin.close()
        yield running


@pytest.fixture(scope="session")
def world(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    servers = broker.bootstrap_servers
    place = Place(tmp_path_factory.mktemp("e2e") / "main", servers)
    members = Members(servers)
    traffic = Traffic(servers, "counted", [at("orders", number) for number in range(4)], first=1)
    running = World(broker, place, members, traffic)
    try:
        yield running
    finally:
        traffic.pause()
        if running.exporter:
            running.exporter.kill()
        if running.run:
            running.run.kill()
        members.close()


@pytest.fixture(scope="session")
def paused(world: World) -> Paused:
    broker, place, servers = world.broker, world.place, world.broker.bootstrap_servers
    _make_groups(world)
    world.run = run = Run(place)
    run.wait_for(lambda batch: batch.kind == "tick", "first tick")
    # ends and rewinds of what the job has seen
    world.exporter = Exporter(place)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_groups(["leaving"])
    topic_deleted_at = now()
    admin.delete_topics(["doomed"])
    admin.close()
    commit_in_transaction(servers, "transactional", {at("orders", 1): 11}, abort=True)
    expiring = _await_expiring_commit(world, run)
    second_job = place.exit_of()
    # commits are counted from a key's first whole window on
    counted = [("counted", "orders", number) for number in range(4)]

    def are_counted(batch: Any) -> bool:
        partitions = place.view(batch).partitions
        return all(partitions[key]["window_start"] is not None for key in counted)

    run.wait_for(are_counted, "windows of the counted group")
    world.traffic.start()
    run.wait_for(lambda batch: _window_count(place, batch) >= 2, "two closed windows", 60)
    world.traffic.pause()
    run.wait_for(
        lambda batch: expiring not in place.view(batch).groups, "its end", 2 * EXPIRES_AFTER
    )
    batch = run.tick_after(now())
    described, dumped = describe_groups(broker), dump_offsets_topic(broker)
    statuses = _statuses_since(place, topic_deleted_at)
    scraped = world.exporter.scrape_when_ready()
    [scraped_id] = scraped.get("laggard_batch_id", {(): -1.0}).values()
    scraped_row = next(
        row
        for row in place.rows("batches")
        if row["batch_id"] == scraped_id and row["kind"] == "tick"
    )
    scraped_view = View(str(place.tables), scraped_row)
    audited = place.audit("--live", "--url", world.exporter.url.removesuffix("/metrics"))
    return Paused(
        place, place.view(batch), described, dumped, topic_deleted_at, statuses, scraped,
        scraped_view, second_job,
        expiring, audited,
    )  # fmt: skip


@pytest.fixture(scope="session")
def resumed(world: World, paused: Paused) -> Resumed:
    place, traffic = world.place, world.traffic
    assert world.run is not None
    assert world.exporter is not None
    before = now()
    traffic.start()
    world.run.tick_after(before)
    killed_after = world.run.kill_in_a_batch()
    world.run = Run(place)
    world.run.wait_for(
        lambda batch: batch.batch_id > killed_after["batch_id"] + 2, "ticks after the kill"
    )
    stopped = world.run.stop()
    last_before = place.view().batch
    scrapes: list[tuple[float, dict[str, Any]]] = []
    # as where it lay on a container's own disk
    shutil.rmtree(place.checkpoint)
    Path(identity_path(str(place.checkpoint))).unlink()

    def is_silent() -> bool:
        age = (now() - last_before["polled_at"]).total_seconds()
        scrapes.append((age, world.exporter.scrape() if world.exporter else {}))
        return age > MAX_AGE + 2

    wait_until(is_silent, 30, "data older than the limit")
    # maintenance is due at the first tick
    write_done(str(place.tables), dict.fromkeys(TABLES, LONG_AGO))
    world.run = run = Run(place)
    run.wait_for(
        lambda batch: batch.batch_id > last_before["batch_id"] + 2, "ticks after the restart"
    )
    run.tick_after(now())
    wait_until(
        lambda: LONG_AGO not in read_done(str(place.tables)).values(), 60, "maintenance", place.tail
    )
    traffic.pause()
    quiet_from = now()
    run.tick_after(quiet_from)
    windows = _window_count(place, place.newest())
    batch = run.wait_for(
        lambda found: _window_count(place, found) >= windows + 1, "one more window", 60
    )
    described, dumped = describe_groups(world.broker), dump_offsets_topic(world.broker)
    view = place.view(batch)
    # the rules follow the ticks at their own pace
    wait_until(
        lambda: _evaluated_to(place) > last_before["polled_at"],
        60,
        "the rules after the stop",
        place.tail,
    )
    stopped_again = run.stop()
    return Resumed(
        place, traffic, stopped, stopped_again, killed_after, last_before, view,
        place.rows("batches"), described,
        dumped, scrapes,
    )  # fmt: skip


def _await_expiring_commit(world: World, run: Run) -> str:
    """Commit what will expire, as another group when a busy job was too late to see it; gives the
    one that it saw.
    """
    committed_at, number = 0.0, 0

    def is_seen(batch: Any) -> bool:
        nonlocal committed_at, number
        is_there = f"expiring-{number}" in world.place.view(batch).groups
        if not is_there and time.monotonic() - committed_at > EXPIRES_AFTER:
            committed_at, number = time.monotonic(), number + 1
            commits = {at("orders", 2): 5}
            commit_with_retention(
                world.broker.bootstrap_servers, f"expiring-{number}", commits, EXPIRES_AFTER
            )
        return is_there

    run.wait_for(is_seen, "a commit that will expire")
    return f"expiring-{number}"


def _make_groups(world: World) -> None:
    servers, members = world.broker.bootstrap_servers, world.members
    counts = {
        at(topic, number): RECORDS
        for topic, count in TOPICS.items()
        if topic != "shadow"
        for number in range(count)
    }
    produce(servers, counts)
    [live_a] = members.join("live", "orders", "live-a")
    members.join("live", "orders", "live-b", session_timeout_ms=90_000)
    [other] = members.join(
        "other", "payments", "other-a", session_timeout_ms=120_000, group_instance_id="other-1"
    )
    # its other partitions are never committed
    members.commit(live_a, {min(live_a.assignment()): 13})
    members.commit(other, {at("payments", 1): RECORDS})
    for group in ("empty", "leaving"):
        [consumer] = members.join(group, "payments", f"{group}-a")
        members.commit(consumer, {at("payments", 0): 5})
        members.leave(consumer)
    commit_simply(servers, "simple", {at("payments", 0): 7, at("orders", 3): RECORDS})
    for number, offset in enumerate(ODD_COMMITS):
        commit_simply(servers, "odd", {at("orders", number): offset})
    commit_simply(servers, "of-doomed", {at("doomed", 0): 3})
    commit_simply(servers, "counted", {at("orders", number): 1 for number in range(4)})
    commit_in_transaction(servers, "transactional", {at("orders", 1): 7}, abort=False)
    commit_in_transaction(servers, "transactional", {at("orders", 1): 9}, abort=True)
    commit_in_transaction(servers, "only-aborted", {at("orders", 2): 9}, abort=True)


def _evaluated_to(place: Place) -> datetime:
    """Begin of the newest window that the rules have evaluated."""
    return max((row["window_start"] for row in place.rows("finding_state")), default=LONG_AGO)


def _window_count(place: Place, batch: Any) -> int:
    """Windows of the counted group's first partition."""
    rows = place.view(batch).windows
    return sum((row["group"], row["partition"]) == ("counted", 0) for row in rows)


def _statuses_since(place: Place, moment: datetime) -> list[dict[tuple[str, str, int], Row]]:
    ticks = [
        row for row in place.rows("batches") if row["kind"] == "tick" and row["polled_at"] > moment
    ]
    return [
        View(str(place.tables), row).partitions
        for row in sorted(ticks, key=lambda row: row["batch_id"])
    ]
