"""The doctor at real brokers: a new cluster, one in use, one that denies us everything, and one
that is half gone.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import at, commit_simply, now, offsets
from laggard.config import Config
from laggard.config.sections import Cluster as ClusterSection
from laggard.config.sections import Job, Metrics
from laggard.demo.broker import Broker
from laggard.demo.node import free_ports
from laggard.doctor import clock
from laggard.doctor.cluster import Cluster
from laggard.doctor.coordinators import check_estimate
from laggard.doctor.result import Result
from laggard.sources.brokers import Brokers
from laggard.stream.job.identity import identity_path
from laggard.tables.schema.schemas import TABLES
from patience import patient
from tables.fixtures import group_row, partition_row, write_batch, write_rows

pytestmark = [pytest.mark.broker, pytest.mark.e2e, pytest.mark.full]

TIMEOUT_SECONDS = 30  # for a busy machine; no test of a broker that answers takes as long
TOO_LONG, ASK_TIMES = "unknown: the answer took", 10
OFFSETS_TOPIC = "__consumer_offsets"
ADMIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin" user_admin="admin";'
)
# Clients without a password may do nothing; the node itself talks to its controller as a super
# user.
DENYING = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "false",
    "super.users": "User:admin",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": ADMIN,
}


@dataclass(frozen=True)
class Report:
    """What one run of the command said."""

    code: int
    output: str
    seconds: float

    @cached_property
    def answer(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.output)
        return parsed

    @cached_property
    def lines(self) -> dict[str, dict[str, str]]:
        return {line["check"]: line for line in self.answer["data"]}

    def levels(self, *checks: str) -> list[str]:
        return [self.lines[check]["level"] for check in checks]


def ask(folder: Path, servers: str, *words: str, json_wanted: bool = True) -> Report:
    """One run; one more where a busy machine took so long that the clock is not known, as its
    remedy says.
    """
    settings = [
        f"cluster.bootstrap_servers={json.dumps(servers.split(','))}",
        f"cluster.request_timeout_seconds={TIMEOUT_SECONDS}",
        f'job.tables="{folder / "tables"}"',
        f'job.checkpoint="{folder / "checkpoint"}"',
        'job.master="local[2]"',
        "exporter.max_age_seconds=86400",
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    command = [
        sys.executable,
        "-m",
        "laggard",
        *(["--json"] if json_wanted else []),
        "doctor",
        *options,
        *words,
    ]
    for _ in range(ASK_TIMES):
        started = time.monotonic()
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, check=False, cwd=folder
        )
        report = Report(done.returncode, done.stdout, time.monotonic() - started)
        if TOO_LONG not in report.output:
            break
    return report


def commit(servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic("orders", 2, 1)])
    admin.close()
    commit_simply(servers, "g", {at("orders", 0): 0, at("orders", 1): 0})


def write_tables(folder: Path, cluster_id: str) -> None:
    for name in TABLES.keys() - {"batches"}:
        write_rows(folder / "tables", name, [])
    rows = {"partitions": [partition_row("g", "t", 0)], "groups": [group_row("g")]}
    origin = {"cluster_id": cluster_id, "offsets_topic_id": "before", "window_seconds": 60}
    write_batch(folder / "tables", at=now(), **rows, origin=origin)


@dataclass(frozen=True)
class Seen:
    """One cluster: while nobody had committed, and afterwards, with the tables of a
    job beside it.
    """

    servers: str
    folder: Path
    new: Report
    used: Report


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("doctor")
    with Broker() as running:
        new = ask(folder, running.bootstrap_servers)
        commit(running.bootstrap_servers)
        write_tables(folder, new.lines["brokers"]["fact"].split()[1].rstrip(","))
        yield Seen(running.bootstrap_servers, folder, new, ask(folder, running.bootstrap_servers))


def test_a_new_cluster_lacks_the_offsets_topic_which_is_a_warning_and_stays_so(seen: Seen) -> None:
    topic = seen.new.lines["offsets topic"]
    assert (seen.new.code, topic["level"]) == (1, "warn")
    assert f"{OFFSETS_TOPIC} does not exist yet" in topic["fact"]
    assert "Kafka creates it" in topic["remedy"]
    assert "fail" not in {line["level"] for line in seen.new.answer["data"]}
    assert seen.new.levels(f"Read {OFFSETS_TOPIC}", "Describe groups", clock.CHECK) == ["ok"] * 3


def test_series_are_estimated_from_committed_offsets_until_there_is_a_batch(
    seen: Seen, tmp_path: Path
) -> None:
    # other tests of this cluster, in whatever order, make groups of their own
    section = ClusterSection(
        bootstrap_servers=(seen.servers,), groups=("g",), request_timeout_seconds=TIMEOUT_SECONDS
    )
    with closing(Brokers.of(section)) as brokers:

        def estimate(root: Path, max_series: int = 100_000) -> list[Result]:
            config = Config(
                cluster=section, job=Job(tables=str(root)), metrics=Metrics(max_series=max_series)
            )
            asked = Cluster(config, brokers, metadata=brokers.metadata([OFFSETS_TOPIC]))
            return list(check_estimate(asked))

        (found,) = estimate(tmp_path)
        sizes = "groups 1, topics of groups 1, their partitions 2"
        # 87 of the group, 85 and 4 of its topic, 5 and 2 of each partition, 8 of each of the 50
        # offsets partitions
        assert (found.level, found.fact) == ("ok", f"about 590 ({sizes}); room for 100,000")
        (found,) = estimate(tmp_path, 589)
        assert (found.level, "metrics.max_series" in found.remedy) == ("warn", True)
        assert estimate(seen.folder / "tables") == []  # the batch there is counted


def test_no_question_creates_the_offsets_topic(tmp_path: Path) -> None:
    with Broker() as running:
        assert ask(tmp_path, running.bootstrap_servers).levels("offsets topic") == ["warn"]
        time.sleep(1)
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap_servers)
        topics = admin.list_topics()
        admin.close()
        assert list(topics) == []


def test_a_cluster_in_use_is_reported_with_its_facts_and_all_is_well(seen: Seen) -> None:
    options = seen.used.lines
    assert [line for line in seen.used.answer["data"] if line["level"] != "ok"] == []
    assert seen.used.code == 0
    admin = KafkaAdminClient(bootstrap_servers=seen.servers)
    cluster_id = admin.describe_cluster()["cluster_id"]
    admin.close()
    assert options["brokers"]["fact"] == f"cluster {cluster_id}, 1 broker"
    assert (
        options["advertised listeners"]["fact"]
        == f"a connection to each broker: 1 at {seen.servers}"
    )
    assert options["offsets topic"]["fact"] == f"{OFFSETS_TOPIC} has 50 partitions"
    assert options["Describe topics"]["fact"].endswith("that we see: 1")
    assert options["Describe groups"]["fact"].endswith("that we see: 1")
    assert options["position"]["level"] == "ok"


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_it_says_what_a_start_would_make_and_makes_nothing(seen: Seen, tmp_path: Path) -> None:
    report = ask(tmp_path, seen.servers)
    assert report.code == 1  # what the first start makes is missing
    makes = f"makes {len(TABLES)} of {len(TABLES)} tables in {tmp_path}/tables"
    assert (
        report.lines["next start"]["fact"]
        == f"{makes}; begins with a new checkpoint {tmp_path}/checkpoint"
    )
    assert files_of(tmp_path) == set()


def test_a_start_over_tables_goes_on_after_their_newest_batch(seen: Seen) -> None:
    before = files_of(seen.folder)
    report = ask(seen.folder, seen.servers, json_wanted=False)
    assert report.code == 0
    assert report.output.startswith("ok    next start: makes a new checkpoint")
    assert ", and goes on after batch 1; what commits are read from is another one" in report.output
    assert files_of(seen.folder) == before


def test_what_a_start_would_refuse_is_a_failure(seen: Seen, tmp_path: Path) -> None:
    write_tables(tmp_path, "of-another-cluster")
    report = ask(tmp_path, seen.servers)
    assert (report.code, report.lines["next start"]["level"]) == (2, "fail")
    assert "was 'of-another-cluster'" in report.lines["next start"]["fact"]


def test_the_json_has_one_shape_and_a_remedy_for_all_but_ok(seen: Seen) -> None:
    for report in (seen.new, seen.used):
        assert list(report.answer) == ["v", "ok", "data"]
        assert (report.answer["v"], report.answer["ok"]) == (1, report.code == 0)
        for line in report.answer["data"]:
            assert list(line) == ["level", "check", "fact", "remedy", "is_ahead"]
            assert all(isinstance(line[name], str) for name in list(line)[:-1])
            assert bool(line["remedy"]) == (line["level"] != "ok")


def test_the_text_says_the_same_as_the_json(seen: Seen) -> None:
    text = ask(seen.folder, seen.servers, "--all", json_wanted=False)
    assert f"ok    offsets topic: {OFFSETS_TOPIC} has 50 partitions\n" in text.output
    assert text.code == 0


def test_a_wrong_address_fails_with_its_reason_within_the_time_limit(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    report = ask(tmp_path, address)
    brokers = report.lines["brokers"]
    assert (report.code, brokers["level"]) == (2, "fail")
    assert f"{address}: Connection refused" in brokers["fact"]
    assert "cluster.bootstrap_servers" in brokers["remedy"]
    # not asked is not ok
    assert report.levels("offsets topic", "rights", clock.CHECK) == ["warn"] * 3
    # of which the start of Python and its packages may take most
    assert report.seconds < patient(15)


def test_another_cluster_than_the_checkpoint_s_is_a_failure(seen: Seen, tmp_path: Path) -> None:
    path = Path(identity_path(str(tmp_path / "checkpoint")))
    path.write_text(json.dumps({"cluster_id": "of-another-cluster"}))
    report = ask(tmp_path, seen.servers)
    assert (report.code, report.lines["cluster id"]["level"]) == (2, "fail")
    assert "of-another-cluster" in report.lines["cluster id"]["fact"]


def test_a_topic_that_kafka_does_not_make_is_a_failure(seen: Seen, tmp_path: Path) -> None:
    report = ask(tmp_path, seen.servers, "--set", 'cluster.offsets_topic="mirrored"')
    assert (report.code, report.lines["offsets topic"]["level"]) == (2, "fail")
    assert "cluster.offsets_topic" in report.lines["offsets topic"]["remedy"]


def test_a_transaction_that_stays_open_is_a_warning(seen: Seen) -> None:
    producer = KafkaProducer(bootstrap_servers=seen.servers, transactional_id="slow")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction(offsets({at("orders", 0): 0}), "of-slow")
    try:
        line = ask(seen.folder, seen.servers).lines["open transactions"]
    finally:
        producer.abort_transaction()
        producer.close()
    assert line["level"] == "warn"
    assert "kafka-transactions.sh" in line["remedy"]


@pytest.mark.parametrize(("shift", "side"), [(0.0, ""), (3600.0, "behind"), (-3600.0, "ahead of")])
def test_a_wrong_clock_is_reported_with_its_side(seen: Seen, shift: float, side: str) -> None:
    brokers = Brokers([seen.servers], TIMEOUT_SECONDS)
    config = Config(cluster=ClusterSection(bootstrap_servers=(seen.servers,)))
    brokers.metadata([])  # the first request also connects
    for _ in range(ASK_TIMES):
        (line,) = clock.check_clock(Cluster(config, brokers, clock=lambda: time.time() + shift))
        if TOO_LONG not in line.fact:
            break
    brokers.close()
    assert (line.level, side in line.fact) == ("warn" if shift else "ok", True)
    assert not shift or "3600." in line.fact or "3599." in line.fact


@pytest.mark.spark
def test_the_trial_reads_the_topic_and_says_how_much_of_it(seen: Seen) -> None:
    report = ask(seen.folder, seen.servers, "--trial")
    line = report.lines["trial query"]
    assert line["level"] == "ok", line
    found = re.fullmatch(r"Spark read (\d+) records of 50 partitions in one batch", line["fact"])
    # two commits, and whatever the other tests committed
    assert found is not None, line
    assert int(found[1]) >= 2


def test_a_broker_that_is_gone_is_named_while_the_other_answers(tmp_path: Path) -> None:
    # the controller would soon see that the broker is gone, and no longer name it
    with Broker(nodes=2, properties={"broker.session.timeout.ms": "600000"}) as running:
        first, second = running.bootstrap_servers.split(",")
        running.stop(2, signal.SIGKILL)
        report = ask(tmp_path, running.bootstrap_servers)
    listeners, addresses = report.lines["advertised listeners"], report.lines["bootstrap addresses"]
    assert report.code == 2
    assert listeners["fact"] == f"no connection to broker 2 at {second}: Connection refused"
    assert "advertised.listeners" in listeners["remedy"]
    assert addresses["level"] == "warn"
    assert second in addresses["fact"]
    assert first not in addresses["fact"]


class Warden:
    """Hands out rights on a cluster that denies them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = (broker.work_dir / "node-1" / "server.properties").read_text()
        self._controller = settings.partition("CONTROLLER://")[2].split()[0]
        self._login = broker.work_dir / "admin.properties"
        self._login.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={ADMIN}\n"
        )

    def run(self, command: str) -> None:
        """A remedy of the doctor as it stands, but for the way to a broker that lets us in."""
        words = shlex.split(command)
        assert words[:2] == ["kafka-acls.sh", "--bootstrap-server"]
        way = ["--bootstrap-controller", self._controller, "--command-config", str(self._login)]
        self._broker.run_tool("org.apache.kafka.tools.AclCommand", *way, *words[3:])


def test_denied_rights_are_named_and_the_remedies_give_them(tmp_path: Path) -> None:
    rights = [
        f"Read {OFFSETS_TOPIC}",
        "Describe groups spark-kafka-source-*",
        "Describe topics",
        "Describe groups",
        "Describe cluster",
        clock.CHECK,
    ]
    with Broker(properties=DENYING) as running:
        servers, warden = running.bootstrap_servers, Warden(running)
        denied = ask(tmp_path, servers)
        start = f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:ANONYMOUS"
        warden.run(f"{start} --operation All --topic orders --group g")
        commit(servers)
        warden.run(f"{start} --operation Describe --topic {OFFSETS_TOPIC}")
        described = ask(tmp_path, servers)
        for command in sorted(
            {line["remedy"] for line in denied.answer["data"] if "kafka-acls" in line["remedy"]}
        ):
            warden.run(command)
        allowed = ask(tmp_path, servers)

    assert denied.code == 2
    assert denied.levels("brokers", "offsets topic", *rights) == [
        "ok",
        "fail",
        "fail",
        "fail",
        "fail",
        *["warn"] * 3,
    ]
    assert (
        "Describe is denied to User:ANONYMOUS (TOPIC_AUTHORIZATION_FAILED)"
        in denied.lines["offsets topic"]["fact"]
    )
    assert "(GROUP_AUTHORIZATION_FAILED)" in denied.lines["Describe groups"]["fact"]
    assert "(CLUSTER_AUTHORIZATION_FAILED)" in denied.lines["Describe cluster"]["fact"]
    assert denied.lines[clock.CHECK]["fact"].startswith("unknown: ")

    # what may be described may not be read yet, and what is seen is not all
    assert described.levels("offsets topic", *rights) == ["ok", "fail", "fail", *["warn"] * 4]
    assert "that we see: 1, others may be hidden" in described.lines["Describe topics"]["fact"]

    assert allowed.levels("offsets topic", *rights) == ["ok"] * 7
    assert allowed.code == 1  # no tables yet
