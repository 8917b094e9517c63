"""A cluster that hides the offsets topic: the job asks the coordinators, and its lag is that of
Kafka's own tool.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)

from e2e.kit import START_LIMIT, WINDOW, Place, Run, at, commit_simply, now, produce, wait_until
from e2e.oracle import describe_groups
from e2e.secured import Secured, secured
from laggard.demo.node import TOOL_JVM
from laggard.errors import DENIED
from laggard.ivy import find_java
from laggard.sources.login.spark_security import URLS_PROPERTY
from laggard.tables.schema.admin_source import EMPTY, UNKNOWN
from patience import patient

pytestmark = [
    pytest.mark.in_order,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
]

USER = "polling"
# of docs/admin-source.md
RIGHTS = (("TOPIC", "*", "DESCRIBE", "LITERAL"), ("GROUP", "*", "DESCRIBE", "LITERAL"))
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def deny(cluster: Secured, kind: str, name: str) -> ACL:
    """Take every right on one topic or group, which counts more than what is allowed."""
    where = ResourcePattern(ResourceType[kind], name, ACLResourcePatternType.LITERAL)
    rule = ACL(f"User:{USER}", "*", ACLOperation.ALL, ACLPermissionType.DENY, where)
    with closing(KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
        admin.create_acls([rule])
    return rule


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(
        tmp_path_factory.mktemp("hidden"), dict.fromkeys(("plain", "scram", "key", "client"), "pw")
    ) as found:
        with closing(KafkaAdminClient(bootstrap_servers=found.admin)) as admin:
            admin.create_topics([NewTopic("orders", 2, 1), NewTopic("letters", 2, 1)])
        produce(found.admin, {at("orders", 0): 10, at("orders", 1): 10, at("letters", 0): 4})
        commit_simply(found.admin, "simple", {at("orders", 0): 7, at("orders", 1): 1})
        commit_simply(found.admin, "ending", {at("orders", 0): 5})
        found.set_scram("pw", USER)
        found.grant(f"User:{USER}", *RIGHTS)
        deny(found, "TOPIC", "__consumer_offsets")
        yield found


@pytest.fixture(scope="module")
def members(cluster: Secured) -> Iterator[None]:
    """A member of a classic group, and one of a group of the new protocol."""
    folder = cluster.folder
    (folder / "modern").write_text(
        "group.protocol=consumer\nclient.id=modern-client\nenable.auto.commit=true\n"
    )
    options = {
        "bootstrap-server": cluster.admin,
        "topic": "letters",
        "group": "modern",
        "command-config": str(folder / "modern"),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    console = subprocess.Popen(
        [
            find_java(),
            *TOOL_JVM,
            "-cp",
            cluster.broker.java_class_path,
            CONSOLE,
            *words,
            "--from-beginning",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    classic = KafkaConsumer(
        "orders", bootstrap_servers=cluster.admin, group_id="classic", client_id="classic-client",
        auto_offset_reset="earliest", enable_auto_commit=False, session_timeout_ms=45_000,
    )  # fmt: skip
    try:
        wait_until(lambda: classic.poll(500) or classic.assignment(), 60, "an assignment", str)
        classic.commit()
        yield
    finally:
        console.kill()
        console.wait()
        classic.close()


@pytest.fixture(scope="module")
def place(cluster: Secured, tmp_path_factory: pytest.TempPathFactory) -> Place:
    settings = cluster.settings("SCRAM-SHA-512") | {"security.username": USER}
    settings["security.password_file"] = str(cluster.secret(USER, "pw"))
    servers = settings.pop("bootstrap_servers")
    return Place(
        tmp_path_factory.mktemp("admin") / "place", servers, {"source": "admin", **settings}
    )


@pytest.fixture(scope="module")
def job(place: Place, members: None) -> Iterator[Run]:
    run = Run(place)
    try:
        yield run
    finally:
        run.kill()


def laggard(place: Place, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "laggard", *words, "--config", str(place.config)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=patient(120), check=False
    )
    return done.returncode, done.stdout + done.stderr


def lags(place: Place) -> dict[Any, tuple[int | None, int | None, int | None]]:
    names = ("committed_offset", "log_end_offset", "lag")
    rows = place.view().partitions
    return {key: tuple(row[name] for name in names) for key, row in rows.items()}


def test_the_job_says_how_to_do_without_the_topic(place: Place) -> None:
    code, output = laggard(place, "run", "--once", "--set", 'cluster.source="offsets_topic"')
    assert (code, 'or set cluster.source = "admin"' in output) == (DENIED, True), output


def test_the_doctor_asks_for_the_rights_that_count(place: Place) -> None:
    _, output = laggard(place, "doctor", "--json")
    lines = {line["check"]: line for line in json.loads(output.partition("\n")[0])["data"]}
    assert [
        lines[name]["level"] for name in ("coordinators", "Describe topics", "Describe groups")
    ] == ["ok"] * 3
    assert [name for name in lines if "__consumer_offsets" in name or "spark-kafka" in name] == []


def test_lag_is_that_of_kafkas_own_tool(cluster: Secured, place: Place, job: Run) -> None:
    described = describe_groups(cluster.broker)
    job.tick_after(now())

    def known() -> bool:
        nonlocal described
        described = {
            key: each
            for key, each in describe_groups(cluster.broker).items()
            if each.current_offset is not None
        }
        return lags(place) == {
            key: (each.current_offset, each.log_end_offset, each.lag)
            for key, each in described.items()
        }

    wait_until(
        known,
        START_LIMIT,
        "the lag of the tool",
        lambda: f"{described}\n{lags(place)}\n{place.tail()}",
    )
    assert {key[0] for key in described} == {"simple", "ending", "classic", "modern"}


def test_states_members_and_owners_are_known(place: Place, job: Run) -> None:
    clients = {"classic-client", "modern-client"}
    job.wait_for(
        lambda batch: clients <= {row["client_id"] for row in place.view(batch).windows},
        "windows with owners",
    )
    names = ("group_type", "group_state", "state_source", "members", "topics", "coordinator")
    groups = place.view().groups
    assert {
        name: [groups[name][each] for each in names] for name in ("simple", "classic", "modern")
    } == {
        "simple": ["simple", "Empty", "admin", None, None, 1],
        "classic": ["classic", "Stable", "admin", 1, ["orders"], 1],
        "modern": ["consumer", "Stable", "admin", 1, ["letters"], 1],
    }
    assert {groups["modern"][name] is not None for name in ("group_epoch", "assignment_epoch")} == {
        True
    }
    owners = {
        (row["group"], row["topic"], row["client_id"])
        for row in place.view().windows
        if row["owner"]
    }
    assert owners == {
        ("classic", "orders", "classic-client"),
        ("modern", "letters", "modern-client"),
    }


def test_columns_are_null_as_the_page_says(place: Place, job: Run) -> None:
    job.wait_for(lambda batch: batch.table_versions["lag_windows"] > 2, "windows")
    for name, columns in UNKNOWN.items():
        rows = place.rows(name)
        for column in columns:
            outer, _, inner = column.partition(".")
            values = {
                repr([each[inner] for each in row[outer]] if inner else row[outer]) for row in rows
            }
            assert {value for value in values if value.strip("[]None, ")} == set(), (name, column)
    assert {name: len(place.rows(name)) for name in EMPTY} == dict.fromkeys(EMPTY, 0)


def test_the_exporter_shows_lag_and_no_number_of_commits(place: Place, job: Run) -> None:
    job.tick_after(now())
    code, scrape = laggard(place, "export", "--print")
    assert code == 0, scrape[-2000:]
    assert re.search(r'laggard_group_lag_records\{[^}]*group="simple"[^}]*\} 12\.0', scrape), (
        scrape[-3000:]
    )
    for name in ("group_commits", "group_noop_commits", "group_generations", "group_rebalances"):
        assert not re.search(rf"(?m)^laggard_{name}_total\{{", scrape), name


def test_a_group_that_is_deleted_ends(cluster: Secured, place: Place, job: Run) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
        admin.delete_groups(["ending"])
    job.wait_for(lambda batch: "ending" not in place.view(batch).groups, "the group is gone")
    kinds = sorted(row["kind"] for row in place.rows("group_events") if row["group"] == "ending")
    assert kinds == ["group_deleted", "offset_deleted"]


def test_a_group_that_may_not_be_described_any_more_stays_and_gets_stale(
    cluster: Secured, place: Place, job: Run
) -> None:
    rule = deny(cluster, "GROUP", "simple")

    def is_stale(batch: Any) -> bool:
        rows = [row for key, row in place.view(batch).partitions.items() if key[0] == "simple"]
        return [(row["status"], row["error"]) for row in rows] == [
            ("stale", "GROUP_AUTHORIZATION_FAILED")
        ] * 2

    job.wait_for(is_stale, "stale rows", START_LIMIT + 4 * WINDOW)
    with closing(KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
        admin.delete_acls([rule])
    job.wait_for(lambda batch: place.view(batch).groups["simple"]["lag"] == 12, "lag again")
    assert [row["kind"] for row in place.rows("group_events") if row["group"] == "simple"] == []


def test_a_topic_that_may_not_be_described_any_more_deletes_no_offset(
    cluster: Secured, place: Place, job: Run
) -> None:
    rule = deny(cluster, "TOPIC", "letters")
    job.wait_for(
        lambda batch: (
            {
                row["status"]
                for key, row in place.view(batch).partitions.items()
                if key[1] == "letters"
            }
            == {"no_end_offset"}
        ),
        "no log end",
    )
    job.tick_after(now())
    offsets = [
        row["committed_offset"]
        for key, row in place.view().partitions.items()
        if key[:2] == ("modern", "letters")
    ]
    with closing(KafkaAdminClient(bootstrap_servers=cluster.admin)) as admin:
        admin.delete_acls([rule])
    assert 4 in offsets
    assert [row["kind"] for row in place.rows("group_events") if row["group"] == "modern"] == []


def test_a_broker_that_is_restarted_loses_nothing(
    cluster: Secured, place: Place, job: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as at its first start: the broker refuses to read the keys of tokens from a URL that it was
    # not allowed
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-D{URLS_PROPERTY}={cluster.tokens.keys.as_uri()}")
    cluster.broker.stop(1)
    cluster.broker.start(1)
    commit_simply(cluster.admin, "simple", {at("orders", 0): 9, at("orders", 1): 9})
    job.wait_for(
        lambda batch: place.view(batch).groups.get("simple", {}).get("lag") == 2,
        "lag after the restart",
    )
    assert [
        row["kind"] for row in place.rows("group_events") if row["kind"].endswith("deleted")
    ].count("group_deleted") == 1


def test_the_audit_finds_no_wrong_row_and_agrees_with_the_coordinators(
    place: Place, job: Run
) -> None:
    checked = place.audit("--live")
    assert {code for code, rows in checked.items() if not rows} == {"I4", "I9"}
