"""The doctor: what it says of a machine, a closed port and real tables, and its exit code."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors.exceptions.base import PySparkException

from exporter import harness as export
from laggard.cli.main import main
from laggard.cli.verbs.doctor import checks, report_lines, summary
from laggard.config import Config
from laggard.config.sections import Cluster, Exporter, Job, Metrics
from laggard.doctor import clock, cluster, rights, runtime, tables, trial
from laggard.doctor.cluster import (
    evaluate_position,
    evaluate_topic_error,
    evaluate_transactions,
    find_unreachable,
)
from laggard.doctor.result import Result, exit_code, run_checks
from laggard.errors import TEMPORARY, LaggardError
from laggard.sources.brokers import Answer
from laggard.sources.snapshot import OFFSETS_PARTITIONS, Snapshot
from laggard.stream.job import session
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import TABLES
from laggard.tables.upkeep.maintenance import write_done
from patience import patient
from tables.fixtures import (
    NOW,
    group_row,
    partition_row,
    window_row,
    write_batch,
    write_evaluated,
    write_rows,
)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def closed_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
    return port


def config_of(root: Path, **sections: Any) -> Config:
    return Config(job=Job(tables=str(root), checkpoint=str(root / "checkpoint")), **sections)


def test_a_closed_port_is_a_failure_with_a_remedy_and_stops_no_other_check() -> None:
    settings = [
        f'cluster.bootstrap_servers=["127.0.0.1:{closed_port()}"]',
        "cluster.request_timeout_seconds=1",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    # a process of its own: a client that could not connect leaves its sockets to the garbage
    # collector
    command = [sys.executable, "-m", "laggard", "--json", "doctor", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["v"], answer["ok"]) == (2, 1, False)
    found = {result["check"]: result for result in answer["data"]}
    assert found["brokers"]["level"] == "fail"
    assert "cluster.bootstrap_servers" in found["brokers"]["remedy"]
    assert {"java", "jars", "batches"} <= set(found)


@pytest.mark.full
def test_a_port_that_takes_connections_and_says_nothing_costs_one_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        words = [
            "--set",
            f'cluster.bootstrap_servers=["{address}"]',
            "--set",
            "cluster.request_timeout_seconds=2",
        ]
        command = [sys.executable, "-m", "laggard", "--json", "doctor", *words]
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        seconds = time.monotonic() - started
    found = {result["check"]: result for result in json.loads(done.stdout)["data"]}
    assert (done.returncode, found["brokers"]["level"]) == (2, "fail")
    assert address in found["brokers"]["fact"]
    assert found["offsets topic"]["fact"] == "not checked, as no broker answered"
    assert seconds < 2 * 2 + patient(3)  # the rest is for the start of Python


def test_addresses_without_a_connection_are_named_with_their_reasons() -> None:
    closed = f"127.0.0.1:{closed_port()}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found = find_unreachable([address, closed, "no-such-host.invalid:9092", f"{'x' * 70}:1"], 5)
    assert (list(found), found[closed]) == (
        [closed, "no-such-host.invalid:9092", f"{'x' * 70}:1"],
        "Connection refused",
    )
    assert all(found.values())


class FakeBrokers:
    """Answers of list_offsets, given beforehand; all at one offset unless an error is given."""

    def __init__(
        self, errors: Mapping[int, str] | None = None, stable: Mapping[int, int] | None = None
    ) -> None:
        self.errors, self.stable = errors or {}, stable or {}

    def list_offsets(
        self, by_leader: Mapping[int, Any], timestamp: int, isolation: int = 0
    ) -> dict[tuple[str, int], Answer]:
        asked = [key for partitions in by_leader.values() for key in partitions]
        offsets = self.stable if isolation else {}
        return {
            key: Answer(None, self.errors[key[1]])
            if key[1] in self.errors
            else Answer(offsets.get(key[1], 5), None)
            for key in asked
        }


def source_of(root: Path, leaders: list[int], brokers: FakeBrokers) -> list[Result]:
    parts = [
        {"partition_index": index, "leader_id": leader} for index, leader in enumerate(leaders)
    ]
    metadata = {"brokers": [], "topics": [{"error_code": 0, "partitions": parts}]}
    # it asks no more of them
    asked = cluster.Cluster(config_of(root), brokers, metadata=metadata)  # type: ignore[arg-type]
    return list(cluster.check_source(asked))


def test_partitions_without_a_leader_are_a_failure_and_the_others_are_evaluated(
    tmp_path: Path,
) -> None:
    results = source_of(tmp_path, [1, -1, 2], FakeBrokers())
    levels = [(result.level, result.check) for result in results]
    assert levels == [
        ("ok", "offsets topic"),
        ("fail", "offsets topic leaders"),
        ("ok", "open transactions"),
    ]
    assert results[1].fact == "no leader for partitions 1"
    # of nothing it does not say that all is well
    assert [result.level for result in source_of(tmp_path, [-1], FakeBrokers())] == ["ok", "fail"]


def test_partitions_whose_ends_nobody_tells_are_a_failure_and_not_all_right(tmp_path: Path) -> None:
    results = source_of(tmp_path, [1, 1], FakeBrokers({1: "KafkaTimeoutError"}))
    assert [(result.level, result.check) for result in results] == [
        ("ok", "offsets topic"),
        ("fail", "offsets topic ends"),
    ]
    assert results[1].fact == "no answer for partitions 1: KafkaTimeoutError"


def test_what_one_broker_does_not_tell_hides_no_trouble_of_the_others(tmp_path: Path) -> None:
    results = source_of(tmp_path, [1, 2], FakeBrokers({1: "KafkaTimeoutError"}, stable={0: 3}))
    assert [(result.level, result.check) for result in results][1:] == [
        ("fail", "offsets topic ends"),
        ("warn", "open transactions"),
    ]


def with_cluster(**values: Any) -> Config:
    return Config(cluster=Cluster(bootstrap_servers=("kafka:9092",), **values))


@pytest.mark.parametrize(
    ("topic", "problem", "level"),
    [
        ("__consumer_offsets", "UNKNOWN_TOPIC_OR_PARTITION", "warn"),
        ("mirrored", "UNKNOWN_TOPIC_OR_PARTITION", "fail"),
        ("__consumer_offsets", "TOPIC_AUTHORIZATION_FAILED", "fail"),
        ("__consumer_offsets", "LEADER_NOT_AVAILABLE", "fail"),
    ],
)
def test_only_a_topic_that_kafka_will_make_may_be_missing(
    topic: str, problem: str, level: str
) -> None:
    result = evaluate_topic_error(with_cluster(offsets_topic=topic), problem)
    assert (result.level, bool(result.remedy)) == (level, True)


NO_TOPIC, NO_GROUP = "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(
    ("watched", "error", "visible", "level"),
    [
        (("*",), None, 0, "ok"),
        (("*",), "UNKNOWN_TOPIC_OR_PARTITION", 3, "ok"),
        (("*",), NO_TOPIC, 3, "warn"),  # others may be hidden
        (("orders-*",), NO_TOPIC, 3, "ok"),  # rights on a prefix are all that is needed
        (("orders-*",), NO_TOPIC, 0, "fail"),
    ],
)
def test_rights_on_topics_are_held_against_what_is_watched(
    watched: tuple[str, ...], error: str | None, visible: int, level: str
) -> None:
    assert rights.evaluate_topics(with_cluster(topics=watched), error, visible).level == level


@pytest.mark.parametrize(
    ("watched", "error", "visible", "is_cluster_allowed", "level"),
    [
        (("*",), None, 0, False, "ok"),
        (("*",), NO_GROUP, 3, True, "ok"),
        (("*",), NO_GROUP, 3, False, "warn"),
        (("team-*",), NO_GROUP, 3, False, "ok"),
        (("team-*",), NO_GROUP, 0, False, "warn"),
        (("*",), "KafkaTimeoutError", 3, True, "warn"),  # not known is not allowed
    ],
)
def test_rights_on_groups_are_held_against_what_is_watched(
    watched: tuple[str, ...], error: str | None, visible: int, is_cluster_allowed: bool, level: str
) -> None:
    config = with_cluster(groups=watched)
    result = rights.evaluate_groups(config, error, visible, is_cluster_allowed=is_cluster_allowed)
    assert result.level == level


def test_a_right_that_could_not_be_tried_is_unknown() -> None:
    config = with_cluster()
    for evaluate in (rights.evaluate_read, rights.evaluate_cluster, rights.evaluate_sparks_groups):
        result = evaluate(config, "KafkaTimeoutError")
        assert (result.level, result.fact) == ("warn", "unknown: KafkaTimeoutError")


def test_the_remedy_of_a_denial_can_be_pasted_into_a_shell() -> None:
    remedy = rights.evaluate_topics(with_cluster(), NO_TOPIC, 0).remedy
    assert remedy == (
        "kafka-acls.sh --bootstrap-server kafka:9092 --add --allow-principal User:ANONYMOUS "
        "--operation Describe --topic '*'"
    )


@pytest.mark.parametrize(
    ("clock_ms", "sent_ms", "received_ms", "level", "fact"),
    [
        (1000, 1000, 1000, "ok", "at most 0.00 s"),
        (1900, 1000, 1010, "ok", "at most 0.90 s"),
        (61_000, 1000, 1100, "warn", "59.90 to 60.00 s ahead of"),
        (1000, 61_000, 61_100, "warn", "60.00 to 60.10 s behind"),
        (3000, 1000, 6000, "warn", "unknown: the answer took 5.00 s"),
        (2500, 1000, 2000, "warn", "unknown"),  # 0.5 to 1.5 s ahead: on either side of the limit
    ],
)
def test_a_clock_is_checked_by_what_it_must_be_off_at_least(
    clock_ms: float, sent_ms: float, received_ms: float, level: str, fact: str
) -> None:
    result = clock.evaluate_clock(1, clock_ms, sent_ms, received_ms)
    assert (result.level, fact in result.fact) == (level, True), result


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Result]]:
    """A trial on a topic of two partitions, one without an answer; Spark reads 5 records, or fails
    so.
    """
    rows = [{"offsets_partition": 0, "last_stable_offset": 5}, {"offsets_partition": 1}]
    snapshot = Snapshot(
        1, 0, offsets_partitions=pa.Table.from_pylist(rows, schema=OFFSETS_PARTITIONS)
    )
    asked: Any = SimpleNamespace(
        config=Config(cluster=Cluster(bootstrap_servers=("unused",))),
        topic={"partitions": [{}, {}]},
    )

    def run(failure: Exception | None = None) -> list[Result]:
        def read(
            _: Any, __: Any, begins: dict[int, int], ends: dict[int, int], ___: Snapshot
        ) -> Any:
            assert (begins, ends) == ({0: 0}, {0: 5})
            if failure is not None:
                raise failure
            return SimpleNamespace(select=lambda _: rows)

        # Spark's source adds a row of nulls; without a plan it would wait for a silent broker
        offsets = [SimpleNamespace(offset=each) for each in (None, *range(5))]
        rows = SimpleNamespace(
            collect=lambda: offsets if planned == [rows] else pytest.fail("not planned")
        )
        planned: list[Any] = []
        ended: list[str] = []
        poller = SimpleNamespace(poll=lambda _: snapshot, close=lambda: ended.append("poller"))
        monkeypatch.setattr(trial, "Poller", lambda _: poller)
        monkeypatch.setattr(
            session, "start_session", lambda *_: SimpleNamespace(stop=lambda: ended.append("spark"))
        )
        monkeypatch.setattr(trial.OffsetsSource, "read", read)
        monkeypatch.setattr(trial.OffsetsSource, "plan", lambda _, frame, __: planned.append(frame))
        try:
            return list(trial.check_trial(asked))
        finally:
            assert ended == ["poller", "spark"]

    return run


def test_a_trial_says_what_it_read_and_who_did_not_answer(
    tried: Callable[..., list[Result]],
) -> None:
    silent, read = tried()
    assert (silent.level, silent.fact) == (
        "warn",
        "the leaders of 1 of 2 partitions did not answer: [1]",
    )
    assert (read.level, read.fact) == ("ok", "Spark read 5 records of 1 partitions in one batch")


def test_a_trial_that_fails_says_why(tried: Callable[..., list[Result]]) -> None:
    with pytest.raises(LaggardError, match="Spark cannot reach a broker") as raised:
        tried(
            PySparkException("Caused by: org.apache.kafka.common.errors.TimeoutException: expired")
        )
    assert raised.value.exit_code == TEMPORARY


def test_without_a_cluster_it_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 2
    lines = capsys.readouterr().out.splitlines()
    place = next(
        number for number, line in enumerate(lines) if line.startswith("fail  bootstrap servers: ")
    )
    assert lines[place + 1].startswith("      fix: laggard doctor --set")


def test_a_broken_check_is_a_line_and_the_next_one_runs() -> None:
    def broken() -> list[Result]:
        raise ZeroDivisionError("by zero")

    results = run_checks([("first", broken), ("second", lambda: [Result("ok", "second", "fine")])])
    assert [(result.level, result.check) for result in results] == [
        ("fail", "first"),
        ("ok", "second"),
    ]
    assert results[0].fact == "ZeroDivisionError: by zero"


@pytest.mark.parametrize(
    ("levels", "code"), [([], 0), (["ok"], 0), (["warn", "ok"], 1), (["ok", "fail", "warn"], 2)]
)
def test_the_worst_line_is_the_exit_code(levels: list[str], code: int) -> None:
    assert exit_code([Result(level, "check", "fact") for level in levels]) == code


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("4.2.0", "==4.2.0", True),
        ("4.2.1", "==4.2.0", False),
        ("2.3.3", ">=2.2,<3", True),
        ("3.0.0", ">=2.2,<3", False),
        ("2.1", ">=2.2,<3", False),
        ("18", ">=18", True),
        ("18.1", "==18", False),
    ],
)
def test_a_version_is_held_against_its_pin(version: str, wanted: str, expected: bool) -> None:
    assert runtime.satisfies(version, wanted) == expected


def test_the_pins_are_those_of_setup_cfg() -> None:
    assert (runtime.pins()["pyspark"], runtime.pins()["pandas"]) == ("==4.2.0", ">=2.2,<3")
    assert set(runtime.pins()) == set(runtime.PINNED)


def test_a_foreign_interpreter_for_workers_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/bin/sh")
    (result,) = runtime.check_workers()
    assert result.level == "warn"


def test_no_java_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (result,) = run_checks([("java", runtime.check_java)])
    assert (result.level, "JAVA_HOME" in result.remedy) == ("fail", True)


@pytest.mark.parametrize(
    ("listen", "level"),
    [
        ("127.0.0.1:1", "ok"),
        ("localhost:1", "ok"),
        ("[::1]:1", "ok"),
        ("0.0.0.0:1", "warn"),
        ("host:1", "warn"),
    ],
)
def test_an_exporter_that_others_can_reach_is_a_warning(listen: str, level: str) -> None:
    (result,) = tables.check_listen(Config(exporter=Exporter(listen=listen)))
    assert result.level == level


@pytest.mark.parametrize(("text", "level"), [("{}\n", "ok"), ("nothing: 1\n", "fail")])
def test_a_web_config_file_that_would_be_refused_is_a_failure(
    tmp_path: Path, text: str, level: str
) -> None:
    (tmp_path / "web.yml").write_text(text, encoding="utf-8")
    config = Config(exporter=Exporter(web_config_file=str(tmp_path / "web.yml")))
    first = run_checks([("exporter.listen", lambda: tables.check_listen(config))])[0]
    assert first.level == level
    assert "web.yml" in first.fact


def test_two_roots_of_one_cluster_are_a_failure_of_the_exporter(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_batch(tmp_path / name, partitions=[])
    config = Config(
        exporter=Exporter(tables=tuple(str(tmp_path / name) for name in ("a", "none", "b")))
    )
    results = list(tables.check_roots(config))
    assert [result.level for result in results] == ["ok", "warn", "fail"]
    assert list(tables.check_roots(Config())) == []


def test_a_root_below_a_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    results = list(tables.check_folders(config_of(tmp_path / "file" / "tables")))
    assert [result.level for result in results] == ["fail", "fail"]


def write_tables(root: Path) -> None:
    for name in TABLES.keys() - {"batches"}:
        write_rows(root, name, [])
    write_batch(root, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])


def test_tables_as_the_job_writes_them_are_all_right(tmp_path: Path) -> None:
    write_tables(tmp_path)
    config = config_of(tmp_path)
    results = [result for name in TABLES for result in tables.check_table(config, name)]
    results += tables.check_published(config, NOW + timedelta(seconds=5))
    assert [result for result in results if result.level != "ok"] == []


def test_groups_in_quarantine_are_named_and_their_partitions_counted(tmp_path: Path) -> None:
    rows = [partition_row("good", "t", 0)]
    rows += [
        partition_row("bad", "t", number, "stale", error="ADVANCE_FAILED") for number in range(3)
    ]
    groups = [group_row("good"), group_row("bad")]
    assert list(tables.check_quarantine(config_of(tmp_path))) == []
    values = {"quarantined_groups": 1, "quarantined": {"bad": "KeyError"}}
    write_batch(tmp_path / "one", partitions=rows, groups=groups, **values)
    (result,) = tables.check_quarantine(config_of(tmp_path / "one"))
    fact = "groups 1, with 3 partitions, of which only old rows are shown (bad: KeyError)"
    assert (result.level, result.fact) == ("warn", fact)
    for number, found in ((0, "no group"), (None, "not counted by the job that wrote the batch")):
        root = tmp_path / str(number)
        write_batch(root, partitions=rows[:1], groups=groups[:1], quarantined_groups=number)
        assert list(tables.check_quarantine(config_of(root))) == [Result("ok", "quarantine", found)]


def test_an_old_batch_is_a_warning(tmp_path: Path) -> None:
    write_tables(tmp_path)
    first = next(iter(tables.check_published(config_of(tmp_path), NOW + timedelta(hours=1))))
    assert (first.level, first.fact, first.remedy) == ("warn", "1, 3600 s old", "laggard run")


def test_rows_above_the_newest_batch_are_reported(tmp_path: Path) -> None:
    root = tmp_path / "of é #1?"
    write_tables(root)
    write_rows(root, "partition_status", [partition_row("g", "t", 0)])
    last = list(tables.check_published(config_of(root), NOW))[-1]
    assert (last.level, last.fact) == ("warn", "newer than batch 1: partition_status")


def test_maintenance_of_a_table_is_no_row_above_the_newest_batch(tmp_path: Path) -> None:
    write_tables(tmp_path)
    table = DeltaTable(str(tmp_path / "partition_status"))
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    table.alter.set_table_properties({"delta.checkpointInterval": "50"})
    last = list(tables.check_published(config_of(tmp_path), NOW))[-1]
    assert (last.level, last.fact) == ("ok", "none")


@pytest.mark.parametrize(("hours", "level"), [(25, "ok"), (27, "warn")])
def test_tables_that_were_not_maintained_for_a_day_are_named(
    tmp_path: Path, hours: int, level: str
) -> None:
    assert list(tables.check_maintained(config_of(tmp_path), NOW)) == []  # a new root
    write_done(str(tmp_path), {"batches": NOW - timedelta(hours=hours), "findings": NOW})
    (result,) = tables.check_maintained(config_of(tmp_path), NOW)
    assert result.level == level
    assert ("batches" in result.fact, "findings" in result.fact) == (level == "warn", False)


def test_a_table_of_other_columns_is_a_failure_that_lists_them_all(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "group_events"), pa.table({"group": [1], "more": ["x"]}))
    (result,) = tables.check_table(config_of(tmp_path), "group_events")
    assert result.level == "fail"
    assert all(
        part in result.fact
        for part in ("missing: event_id", "unexpected: more", "group is int64, not string")
    )


def test_jars_that_were_never_fetched_are_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGGARD_JARS", str(tmp_path / "jars"))
    (result,) = runtime.check_jars()
    assert (result.level, result.is_ahead) == ("warn", True)
    (tmp_path / "jars" / "spark").mkdir(parents=True)  # what is there in part is wrong
    with pytest.raises(LaggardError, match="differ from"):
        list(runtime.check_jars())


def test_columns_that_a_start_adds_are_no_failure(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    whole = arrow_schema(TABLES["group_events"])
    older = pa.schema([field for field in whole if field.name != "event_id"])
    write_deltalake(str(tmp_path / "group_events"), older.empty_table())
    (result,) = tables.check_table(config_of(tmp_path), "group_events")
    assert (result.level, result.is_ahead) == ("warn", True)
    assert result.fact == "of an older laggard; a start adds event_id"


def test_missing_tables_are_one_warning_on_a_first_start(tmp_path: Path) -> None:
    (result,) = (each for name in TABLES for each in tables.check_table(config_of(tmp_path), name))
    assert (result.level, result.check, "laggard run" in result.remedy) == ("warn", "batches", True)


def test_one_missing_table_among_others_is_a_warning(tmp_path: Path) -> None:
    write_tables(tmp_path)
    shutil.rmtree(tmp_path / "deploys")
    (result,) = tables.check_table(config_of(tmp_path), "deploys")
    assert (result.level, result.check) == ("warn", "deploys")


def test_a_log_that_starts_after_our_position_is_a_warning() -> None:
    assert evaluate_position({0: 5, 1: 9}, {0: 5, 1: 9}).level == "ok"
    lost = evaluate_position({0: 6, 1: 9}, {0: 5, 1: 9})
    assert (lost.level, lost.fact.endswith("offsets partitions 0")) == ("warn", True)


def test_records_behind_an_open_transaction_are_a_warning() -> None:
    assert evaluate_transactions({0: 5}, {0: 5}).level == "ok"
    blocked = evaluate_transactions({0: 5, 3: 9}, {0: 5, 3: 2})
    assert (blocked.level, blocked.fact.endswith("3: 7")) == ("warn", True)


def test_spark_is_started_only_for_a_trial() -> None:
    config = Config(cluster=Cluster(bootstrap_servers=("127.0.0.1:1",)))
    assert "trial query" not in dict(checks(config))
    assert "trial query" in dict(checks(config, with_trial=True))


def test_the_page_names_faults_folds_the_rest_and_sums_up() -> None:
    results = [
        Result("ok", "java", "/usr/bin/java"),
        Result("warn", "batches", "no table at data/batches", "laggard run", is_ahead=True),
        Result("warn", "memory", "0.1 GB available", "add memory"),
        Result("warn", "newest batch", "nothing is published yet", "laggard run", is_ahead=True),
        Result("fail", "brokers", "none answered", "start one"),
        Result("ok", "next start", "makes 16 of 16 tables in data"),
        Result("ok", "jars", "all there"),
    ]
    assert [*report_lines(results), summary(results)] == [
        "ok    next start: makes 16 of 16 tables in data",
        "fail  brokers: none answered",
        "      fix: start one",
        "warn  memory: 0.1 GB available",
        "      fix: add memory",
        "later batches: no table at data/batches; newest batch: nothing is published yet",
        "      fix: laggard run",
        "ok    java, jars",
        "1 failure, 1 warning, 2 not yet, 3 ok: laggard cannot run here yet; begin with brokers",
    ]
    assert [line.split(":")[0] for line in report_lines(results[4:], with_all=True)] == [
        "ok    next start",
        "fail  brokers",
        "      fix",
        "ok    jars",
    ]
    assert summary(results[:2]) == "0 failures, 0 warnings, 1 not yet, 1 ok: laggard can run here"


def test_partitions_that_may_keep_their_series_are_counted_beside_them(tmp_path: Path) -> None:
    rows = [partition_row("g", "t", partition, lag=partition) for partition in range(9)]
    write_batch(tmp_path, partitions=rows, groups=[group_row("g")])
    for top, kept in ((3, 3), (6, 3), (9, 0)):
        (result,) = tables.check_series(config_of(tmp_path, metrics=Metrics(partition_top_k=top)))
        # 5 of a partition of the group, 2 of the partition itself
        said = (
            f"; up to {7 * kept} more as the worst partitions change"
            if kept
            else "; room for 100,000"
        )
        assert result.fact.endswith(said)


def test_the_series_of_the_newest_batch_are_held_against_the_cap(tmp_path: Path) -> None:
    rows = [partition_row(f"g{n}", "t", partition) for n in range(12) for partition in range(3)]
    assert list(tables.check_series(config_of(tmp_path))) == []
    write_batch(tmp_path, partitions=rows, groups=[group_row(f"g{n}") for n in range(12)])
    assert [result.level for result in tables.check_series(config_of(tmp_path))] == ["ok"]
    write_evaluated(tmp_path, windows=[window_row(f"g{n}", "t") for n in range(12)])
    (result,) = tables.check_series(config_of(tmp_path))
    exporter = export.Exporter(tmp_path)
    exporter.refresh()
    _, data, _ = exporter.refresher.known
    assert data is not None
    assert result == Result(
        "ok", "series", f"{data.series:,} of groups and topics of cluster prod; room for 100,000"
    )
    (result,) = tables.check_series(config_of(tmp_path, metrics=Metrics(max_series=1000)))
    assert result.level == "warn"
    assert "withheld: 78 of partition_offsets, " in result.fact  # 2 of 36 rows and of 3 partitions
    assert "metrics.max_series" in result.remedy
