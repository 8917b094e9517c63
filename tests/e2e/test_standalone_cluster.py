"""The job on a Spark cluster, submitted as docs/deploy.md says: it writes the rows that it writes
in local mode.
"""

import os
import shlex
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.bucket import ROOT, BucketPlace
from e2e.kit import (
    START_LIMIT,
    Members,
    Place,
    Row,
    at,
    commit_in_transaction,
    commit_simply,
    produce,
    wait_until,
)  # fmt: skip
from e2e.standalone import (
    DRIVER_ADDRESS,
    Cluster,
    command_of_page,
    copy_checkout,
    environment,
    make_bare_interpreter,
    readme_command,
    standalone_cluster,
    start,
)  # fmt: skip
from laggard import storage
from laggard.demo.broker import Broker
from laggard.jars import jars_dir
from laggard.rebalance.parameters import RebalanceParameters
from laggard.stream.job.session import DEFAULTS, FIXED, submitted_settings
from laggard.stream.job.source_positions import RECORDS_PER_READER
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.lock import writer_lock
from laggard.tables.readers import open_table
from laggard.tables.schema.schemas import GROUP_EVENTS, TABLES
from s3 import S3Server

TOPICS = {"orders": 4, "payments": 2}
RECORDS = 40
LIMIT = 2 * START_LIMIT  # seven JVMs share the cores
COMPARED = ("partition_status", "group_status", "generations", "group_members")
# Two runs poll at two moments. Of these columns only is compared whether the value is known.
OF_THE_MOMENT = {
    "sampled_at",
    "commit_age_seconds",  # counted from the poll
    "time_lag_seconds",
    "max_time_lag_seconds",
    "state_since",
    "window_state_seconds",
    "empty_since",
    "watched_since",
}


@dataclass
class Both:
    """The same history, read in local mode and on the cluster."""

    cluster: Place
    spark: Cluster
    # by table, read before another test runs the job once more
    local_rows: dict[str, dict[Any, Row]]
    cluster_rows: dict[str, dict[Any, Row]]


@dataclass(frozen=True)
class Past:
    """A broker with every kind of group, where nothing happens any more."""

    servers: str
    # on the monotonic clock: from then on no record can join a rebalance of the groups
    settled_at: float


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    """A broker of its own: other tests' traffic would move what two runs one after the other must
    see alike.
    """
    with Broker() as broker:
        address = broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=address)
        admin.create_topics([NewTopic(name, number, 1) for name, number in TOPICS.items()])
        admin.close()
        members = Members(address)
        try:
            longest_join = make_groups(address, members)
            yield Past(address, monotonic() + longest_rest(longest_join))
        finally:
            members.close()


def longest_rest(join_seconds: float) -> float:
    """Seconds after the last record of a group from which its rebalance is over, as no other one
    can belong to it.

    `join_seconds`: at least as long as the sync phase, which makes the rest longer.
    """
    limits = RebalanceParameters()
    return limits.settle_gaps * max(limits.merge_seconds, limits.merge_sync_times * join_seconds)


def make_groups(servers: str, members: Members) -> float:
    """Every kind of group, and nothing that goes on by itself; gives the seconds of the longest
    join.
    """
    longest = 0.0

    def join(group: str, topic: str, name: str, **options: Any) -> list[KafkaConsumer]:
        nonlocal longest
        begun = monotonic()
        joined = members.join(group, topic, name, **options)
        longest = max(longest, monotonic() - begun)
        return joined

    produce(
        servers,
        {at(topic, number): RECORDS for topic, count in TOPICS.items() for number in range(count)},
    )
    # nobody polls while the two runs last: on a slow machine a member would be evicted from its
    # group between them
    patient: dict[str, Any] = {"max_poll_interval_ms": 3_600_000}
    consumers = join("live", "orders", "live-a", **patient)
    consumers += join("live", "orders", "live-b", **patient)
    for consumer in consumers:
        members.commit(consumer, dict.fromkeys(consumer.assignment(), 13))
    [static] = join("static", "payments", "static-a", group_instance_id="static-1", **patient)
    members.commit(static, {at("payments", 1): RECORDS})  # its other partition is never committed
    [gone] = join("empty", "payments", "empty-a")
    members.commit(gone, {at("payments", 0): 5})
    members.leave(gone)
    commit_simply(servers, "simple", {at("payments", 0): 7, at("orders", 3): RECORDS})
    commit_in_transaction(servers, "transactional", {at("orders", 1): 7}, abort=False)
    commit_in_transaction(servers, "transactional", {at("orders", 1): 9}, abort=True)
    commit_in_bulk(servers)
    return longest


def commit_in_bulk(servers: str) -> None:
    """So many commits that more than one task has to read them: half a minute by requests, so we
    write the records.
    """
    # a broker takes records for its internal topics from this client id only
    with closing(
        KafkaProducer(bootstrap_servers=servers, client_id="__admin_client", linger_ms=20)
    ) as producer:
        # and the client refuses to send any
        producer._metadata.topics = partial(
            producer._metadata.topics, exclude_internal_topics=False
        )
        groups, number = 50, RECORDS_PER_READER + 1000
        for each in range(number):
            group, offset = each % groups, each * RECORDS // number
            name = f"bulk-{group:02d}".encode()
            key = struct.pack(f">hh{len(name)}sh6si", 1, len(name), name, 6, b"orders", group % 4)
            value = struct.pack(">hqihq", 3, offset, 0, 0, 1_700_000_000_000 + each)
            producer.send("__consumer_offsets", value, key, partition=group)
        producer.flush(60)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("standalone")
    with standalone_cluster(folder, make_bare_interpreter(folder / "bare")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def both(past: Past, spark: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("both")
    local, cluster = Place(folder / "local", past.servers), Place(folder / "cluster", past.servers)
    run(local, readme_command("laggard doctor"))
    # A rebalance gets its row once its group has come to rest: it would be under way for the first
    # run to poll, and over for the second.
    sleep(max(0.0, past.settled_at - monotonic()))
    run(local, f"{readme_command('laggard run')} --once")
    copy_checkout(cluster.folder)
    run(cluster, command_of_page("make zip"))
    shutil.rmtree(cluster.folder / "lib")  # from here on laggard is in the zip and nowhere else
    job = spark.submit(cluster.folder, "--once")
    try:
        assert job.wait(LIMIT) == 0, job.tail()
    finally:
        job.end()
    rows = [{name: by_key(place, name) for name in COMPARED} for place in (local, cluster)]
    return Both(cluster, spark, *rows)


def run(place: Place, command: str) -> None:
    """A command of the README in the folder of a place, whose laggard.toml it finds by itself."""
    # doctor warns of what is normal before the first run
    expected = (0, 1) if command == readme_command("laggard doctor") else (0,)
    env = os.environ | environment(Path(os.environ["PYSPARK_PYTHON"]), "127.0.0.1")
    child = start(["bash", "-c", command], place.folder, place.log, env)
    try:
        assert child.wait(LIMIT) in expected, child.tail()
    finally:
        child.end()


def comparable(name: str, row: Row) -> Row:
    """The row without the moment of its run, and with the moments inside a value
    taken out as well.
    """
    kept: dict[str, Any] = {
        column: (value is not None if column in OF_THE_MOMENT else value)
        for column, value in row.items()
    }
    if name == "partition_status":
        kept["end_points"] = [point["log_end_offset"] for point in row["end_points"]]
    return kept


def by_key(place: Place, name: str) -> dict[Any, Row]:
    rows = place.view().rows(name)
    found = {
        tuple(row[column] for column in TABLES[name].key): comparable(name, row) for row in rows
    }
    assert len(found) == len(rows)
    return found


def real(test: Callable[..., None]) -> Callable[..., None]:
    """The marks of a test that needs the cluster; what is only computed goes without."""
    for mark in (pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.nightly):
        test = mark(test)
    return test


@real
@pytest.mark.parametrize("name", COMPARED)
def test_a_cluster_writes_the_rows_of_local_mode(both: Both, name: str) -> None:
    local, cluster = both.local_rows[name], both.cluster_rows[name]
    # else it depends on the poll's moment
    assert all(row.get("rebalancing_since") is None for row in local.values())
    assert cluster.keys() == local.keys()
    different = {
        (key, column): (local[key][column], value)
        for key, row in cluster.items()
        for column, value in row.items()
        if value != local[key][column]
    }
    assert different == {}
    assert {key[1] for key in local} >= {"live", "static", "empty"}


@pytest.fixture(scope="module")
def in_bucket(
    both: Both, past: Past, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BucketPlace]:
    """The same job on the same cluster, whose nodes share no folder but the one of
    the access keys.
    """
    folder, before = tmp_path_factory.mktemp("bucket"), storage.settings()
    with S3Server(folder / "s3") as server:
        storage.use(server.settings)
        place = BucketPlace.of(folder / "job", past.servers, server)
        copy_checkout(place.folder)
        shutil.copytree(both.cluster.folder / "dist", place.folder / "dist")
        shutil.rmtree(place.folder / "lib")
        job = both.spark.submit(place.folder, "--once")
        try:
            assert job.wait(LIMIT) == 0, job.tail()
        finally:
            job.end()
        yield place
    storage.use(before)


@real
@pytest.mark.parametrize("name", COMPARED)
def test_a_cluster_without_a_shared_disk_writes_the_same_rows_to_a_bucket(
    both: Both, in_bucket: BucketPlace, name: str
) -> None:
    assert by_key(in_bucket, name) == both.local_rows[name]


@pytest.fixture(scope="module")
def in_cluster_mode(
    both: Both, in_bucket: BucketPlace, past: Past, tmp_path_factory: pytest.TempPathFactory
) -> BucketPlace:
    """Tables of its own in the same bucket, by a driver that a worker runs."""
    folder = tmp_path_factory.mktemp("cluster mode")
    place = BucketPlace.of(folder / "job", past.servers, in_bucket.server, "s3://lags/cluster mode")
    shutil.copytree(in_bucket.folder / "jobs", place.folder / "jobs")
    shutil.copy(in_bucket.folder / "dist" / "laggard.zip", place.folder)
    (place.folder / ".jars").symlink_to(jars_dir())
    command = command_of_page("--deploy-mode cluster").replace(
        "/opt/laggard", shlex.quote(str(place.folder))
    )
    # one worker has the driver, so there is one executor
    more = (
        "--driver-memory 600m --conf spark.cores.max=1 --conf "
        "spark.standalone.submit.waitAppCompletion=true"
    )
    command = command.replace("--deploy-mode", f"{more} --deploy-mode") + " --once"
    job = both.spark.run(place.folder, command)
    try:
        assert job.wait(LIMIT) == 0, job.tail() + both.spark.driver_logs()
    finally:
        job.end()
    return place


@real
@pytest.mark.parametrize("name", COMPARED)
def test_a_driver_on_a_worker_writes_the_same_rows_to_a_bucket(
    both: Both, in_cluster_mode: BucketPlace, name: str
) -> None:
    assert by_key(in_cluster_mode, name) == both.local_rows[name]


@real
def test_spark_refuses_cluster_mode_to_python_programs_on_a_standalone_cluster(both: Both) -> None:
    job = both.spark.submit(both.cluster.folder, "--once", deploy_mode="cluster")
    try:
        assert job.wait(LIMIT) == 1
    finally:
        job.end()
    assert "not supported for python applications on standalone clusters" in job.printed()


@real
def test_the_executors_compact_a_bucket_beside_a_job(both: Both, in_bucket: BucketPlace) -> None:
    writer, at_noon = Writer(ROOT, "of the test"), datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
    for day in (at_noon, at_noon + timedelta(days=1)):
        for number in range(3):
            row = {"date": day.date(), "group": f"g{number}", "event_at": day, "batch_id": -1}
            writer.write(
                GROUP_EVENTS, to_arrow(GROUP_EVENTS, [row]), writer.version(GROUP_EVENTS.name)
            )
    before = in_bucket.rows(GROUP_EVENTS.name)
    with writer_lock(ROOT):  # as a job has it
        job = both.spark.submit(in_bucket.folder, job="maintain_tables")
        try:
            assert job.wait(LIMIT) == 0, job.tail()
        finally:
            job.end()
    dates = pa.table(open_table(ROOT, GROUP_EVENTS.name).get_add_actions(flatten=True))[
        "partition.date"
    ].to_pylist()
    assert [dates.count(at_noon.date() + timedelta(days=day)) for day in (0, 1)] == [1, 1]
    assert sorted(map(str, in_bucket.rows(GROUP_EVENTS.name))) == sorted(map(str, before))


@real
def test_every_group_is_compared(both: Both) -> None:
    groups = {key[1] for key in both.local_rows["partition_status"]}
    assert {"live", "static", "empty", "simple", "transactional", "bulk-00", "bulk-49"} <= groups


@real
def test_the_zip_is_the_only_laggard_the_cluster_has(both: Both) -> None:
    env = environment(both.spark.python, "127.0.0.1")
    look = "import kafka, pyspark, importlib.util; print(importlib.util.find_spec('laggard'))"
    found = subprocess.run(
        [str(both.spark.python), "-c", look], env=env, cwd=both.spark.folders[0],
        capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert found.stdout == "None\n"
    assert all(list(folder.glob("app-*/*/laggard.zip")) for folder in both.spark.folders)


@real
def test_both_workers_take_part_and_reach_the_driver_where_it_is(both: Both) -> None:
    for log in both.spark.executor_logs():
        assert "Finished task" in log
        assert f"spark://CoarseGrainedScheduler@{DRIVER_ADDRESS}:" in log


@real
def test_nothing_is_left_when_spark_submit_is_stopped(both: Both) -> None:
    """The signal reaches spark-submit's JVM only; the driver's Python is its child and must not
    live on.

    In local mode, which starts sooner: who stops whom is the same.
    """
    before = both.cluster.newest()
    assert before is not None
    job = both.spark.submit(both.cluster.folder, master="local[2]")
    try:
        wait_until(
            lambda: both.cluster.view().batch["batch_id"] > before.batch_id,
            LIMIT,
            "a batch",
            job.tail,
        )
        job.terminate()
        wait_until(
            lambda: job.process.poll() is not None and not job.has_group(),
            30,
            "end of the job",
            job.tail,
        )
    finally:
        job.end()
    with writer_lock(str(both.cluster.tables)):
        pass  # the next start is not refused


def test_under_spark_submit_only_what_the_job_depends_on_is_fixed() -> None:
    optional, fixed = next(iter(DEFAULTS)), next(iter(FIXED))
    given = {
        "spark.master": "spark://master:7077",
        optional: "given",
        fixed: "given",
        "spark.jars": "given",
    }
    added = submitted_settings(given, {"spark.executor.memory": "3g"})
    assert optional not in added
    assert added[fixed] == FIXED[fixed]
    assert added["spark.executor.memory"] == "3g"
    # executors on other machines must find the driver; jars and master are spark-submit's to say
    assert {
        "spark.driver.host",
        "spark.driver.bindAddress",
        "spark.jars",
        "spark.master",
    } & added.keys() == set()


def test_under_spark_submit_in_local_mode_no_port_is_open_to_others() -> None:
    assert (
        submitted_settings({"spark.master": "local[4]"}, {})["spark.driver.bindAddress"]
        == "127.0.0.1"
    )
