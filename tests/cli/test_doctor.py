"""The doctor: what it says of a machine, a closed port and real tables, and its exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laggard.cli.doctor import checks
from laggard.cli.main import main
from laggard.config import Config
from laggard.config.sections import Cluster, Exporter, Job
from laggard.doctor import runtime, tables
from laggard.doctor.cluster import judge_position, judge_transactions
from laggard.doctor.result import Result, exit_code, run_checks
from laggard.tables.schemas import TABLES
from tables.fixtures import NOW, group_row, partition_row, write_batch, write_rows


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
    settings = [f'cluster.bootstrap_servers=["127.0.0.1:{closed_port()}"]', "cluster.request_timeout_seconds=1"]
    words = [word for setting in settings for word in ("--set", setting)]
    # a process of its own: a client that could not connect leaves its sockets to the garbage collector
    command = [sys.executable, "-m", "laggard", "--json", "doctor", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["v"], answer["ok"]) == (2, 1, False)
    found = {result["check"]: result for result in answer["data"]}
    assert found["brokers"]["level"] == "fail"
    assert "cluster.bootstrap_servers" in found["brokers"]["remedy"]
    assert set(TABLES) <= set(found)


def test_without_a_cluster_it_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 2
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("fail  bootstrap servers: "))
    assert lines[place + 1].startswith("      fix: laggard doctor --set")


def test_a_broken_check_is_a_line_and_the_next_one_runs() -> None:
    def broken() -> list[Result]:
        raise ZeroDivisionError("by zero")

    results = run_checks([("first", broken), ("second", lambda: [Result("ok", "second", "fine")])])
    assert [(result.level, result.check) for result in results] == [("fail", "first"), ("ok", "second")]
    assert results[0].fact == "ZeroDivisionError: by zero"


@pytest.mark.parametrize(("levels", "code"), [([], 0), (["ok"], 0), (["warn", "ok"], 1), (["ok", "fail", "warn"], 2)])
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
    [("127.0.0.1:1", "ok"), ("localhost:1", "ok"), ("[::1]:1", "ok"), ("0.0.0.0:1", "warn"), ("host:1", "warn")],
)
def test_an_exporter_that_others_can_reach_is_a_warning(listen: str, level: str) -> None:
    (result,) = tables.check_listen(Config(exporter=Exporter(listen=listen)))
    assert result.level == level


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


def test_an_old_batch_is_a_warning(tmp_path: Path) -> None:
    write_tables(tmp_path)
    first = next(iter(tables.check_published(config_of(tmp_path), NOW + timedelta(hours=1))))
    assert (first.level, first.fact, first.remedy) == ("warn", "1, 3600 s old", "laggard run")


def test_rows_above_the_newest_batch_are_told(tmp_path: Path) -> None:
    write_tables(tmp_path)
    write_rows(tmp_path, "partition_status", [partition_row("g", "t", 0)])
    last = list(tables.check_published(config_of(tmp_path), NOW))[-1]
    assert (last.level, last.fact) == ("warn", "newer than batch 1: partition_status")


def test_a_table_of_other_columns_is_a_failure_that_lists_them_all(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "group_events"), pa.table({"group": [1], "more": ["x"]}))
    (result,) = tables.check_table(config_of(tmp_path), "group_events")
    assert result.level == "fail"
    assert all(part in result.fact for part in ("missing: event_id", "unexpected: more", "group is int64, not string"))


def test_a_missing_table_is_a_warning_on_a_first_start(tmp_path: Path) -> None:
    (result,) = tables.check_table(config_of(tmp_path), "batches")
    assert (result.level, "laggard run" in result.remedy) == ("warn", True)


def test_a_log_that_starts_after_our_position_is_a_warning() -> None:
    assert judge_position({0: 5, 1: 9}, {0: 5, 1: 9}).level == "ok"
    lost = judge_position({0: 6, 1: 9}, {0: 5, 1: 9})
    assert (lost.level, lost.fact.endswith("offsets partitions 0")) == ("warn", True)


def test_records_behind_an_open_transaction_are_a_warning() -> None:
    assert judge_transactions({0: 5}, {0: 5}).level == "ok"
    blocked = judge_transactions({0: 5, 3: 9}, {0: 5, 3: 2})
    assert (blocked.level, blocked.fact.endswith("3: 7")) == ("warn", True)


def test_spark_is_started_only_for_a_trial() -> None:
    config = Config(cluster=Cluster(bootstrap_servers=("127.0.0.1:1",)))
    assert "trial query" not in dict(checks(config))
    assert "trial query" in dict(checks(config, with_trial=True))
