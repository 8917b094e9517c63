"""What people see of the newest batch: `laggard status` and `laggard query`."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laggard.answers.groups import ClusterGroups, groups_of, read_snapshot
from laggard.answers.text.words import duration
from laggard.cli.verbs import status
from laggard.cli.verbs.query import verb as query
from laggard.config import Config
from laggard.config.sections import Job
from laggard.errors import NOT_FOUND, TEMPORARY, USAGE, LaggardError
from laggard.tables.schema.schemas import TABLES
from tables.fixtures import batch_row, group_row, partition_row, topic_row, write_batch, write_rows

UNEVALUATED = "; health and verdict unknown: the rules have not evaluated it"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    partitions = [
        partition_row("billing", "orders", 0, committed_offset=1000),
        partition_row("billing", "orders", 1),
        partition_row("audit", "orders", 0, time_lag_seconds=3900.0),
        partition_row("audit", "orders", 1, "no_end_offset"),
        partition_row("quiet\x1b[2J", "orders", 0, "no_commit"),
    ]
    groups = [
        group_row("billing"),
        group_row("audit", lag=None, max_time_lag_seconds=3900.0, status="partial"),
        group_row(
            "quiet\x1b[2J",
            members=None,
            generation=None,
            lag=None,
            lag_known=None,
            max_time_lag_seconds=None,
            group_state="Unknown",
        ),
    ]
    write_batch(
        tmp_path,
        42,
        partitions=partitions,
        groups=groups,
        topics=[topic_row("orders", n) for n in range(2)],
    )
    write_rows(tmp_path, "group_status", [group_row("not-published")])
    return tmp_path


def groups_at(root: Path) -> ClusterGroups:
    return groups_of(read_snapshot(str(root)), str(root), 60)


def call(verb: Any, root: Path, *words: str, as_json: bool = False) -> int:
    parser = argparse.ArgumentParser()
    verb.add_parser(parser.add_subparsers())
    args = parser.parse_args([verb.__name__.removesuffix(".verb").split(".")[-1], *words])
    args.json = as_json
    args.no_color = False
    return int(verb.run(args, replace(Config(), job=Job(tables=str(root)))))


def test_status_shows_the_worst_group_first_with_unknown_and_lower_bounds_as_such(
    tables: Path,
) -> None:
    assert status.status_lines(groups_at(tables)) == [
        f"prod: batch 42, 2026-11-20 12:00:00 UTC, 3 groups{UNEVALUATED}",
        "GROUP         STATE    MEMBERS      LAG    TIME LAG  WORST PARTITION  GENERATION  DATA",
        "audit         Stable         2    ≥ 100  ≥ 1 h 05 m  orders-0                  7  partial",
        "billing       Stable         2      100        10 s  orders-1                  7  ok",
        r"quiet\x1b[2J  Unknown  unknown  unknown     unknown  -                   unknown  ok",
    ]


def test_the_generation_of_a_modern_group_is_its_epoch(tmp_path: Path) -> None:
    write_batch(tmp_path, groups=[group_row("modern", generation=None, group_epoch=12)])
    groups = groups_at(tmp_path)
    assert groups.groups["modern"]["generation"] == 12
    assert status.status_lines(groups)[0].endswith(f", 1 group{UNEVALUATED}")


def test_status_limits_filters_and_warns_of_old_data(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(status, tables, "--limit", "1") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == "… and 2 more"
    assert "old" in shown.err
    call(status, tables, "--group", "bil*", as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["v"], answer["ok"], [group["group"] for group in answer["data"]["groups"]]) == (
        1,
        True,
        ["billing"],
    )
    with pytest.raises(LaggardError) as error:
        call(status, tables, "--group", "nobody")
    assert error.value.exit_code == NOT_FOUND


def test_status_says_that_there_is_nothing_yet(tmp_path: Path) -> None:
    write_rows(tmp_path, "batches", [])
    with pytest.raises(LaggardError) as empty:
        call(status, tmp_path)
    write_rows(tmp_path, "batches", [batch_row(1, {}, kind="backfill")])
    with pytest.raises(LaggardError) as catching_up:
        call(status, tmp_path)
    assert [empty.value.exit_code, catching_up.value.exit_code] == [TEMPORARY, TEMPORARY]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 m 00 s"),
        (185, "3 m 05 s"),
        (3840, "1 h 04 m"),
        (97200, "1 d 03 h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_query_sees_only_published_rows(tables: Path) -> None:
    rows = query.run_query(str(tables), 'select "group" from group_status order by 1')
    assert rows["group"].to_pylist() == ["audit", "billing", "quiet\x1b[2J"]


def test_a_query_joins_tables_and_reads_the_batches(tables: Path) -> None:
    sql = (
        'select "group", count(*) as n from group_status join partition_status using ("group") '
        "group by 1 order by 1"
    )
    assert query.run_query(str(tables), sql).to_pylist()[0] == {"group": "audit", "n": 2}
    assert query.run_query(str(tables), "select batch_id from batches").to_pylist() == [
        {"batch_id": 42}
    ]


def test_query_prints_aligned_text_csv_or_json(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = 'select "group", generation, topics from group_status order by 1 desc limit 2'
    printed = {}
    for name in ("table", "csv", "json"):
        call(query, tables, "--format", name, sql)
        printed[name] = capsys.readouterr().out
    assert printed["table"].splitlines() == [
        "group         generation  topics",
        r"quiet\x1b[2J        null  []",
        "billing                7  []",
    ]
    assert printed["csv"].splitlines() == [
        "group,generation,topics",
        "quiet\x1b[2J,,[]",
        "billing,7,[]",
    ]
    assert json.loads(printed["json"])["data"][1] == {
        "group": "billing",
        "generation": 7,
        "topics": [],
    }


def test_a_value_that_python_cannot_hold_costs_no_other(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = "arrow_cast(9223372036854775807, 'Timestamp(Microsecond, None)')"
    sql = (
        f"select 1 as n, {far} as at union all select 2, arrow_cast(0, 'Timestamp(Microsecond, "
        "None)') order by n"
    )
    for name in ("table", "csv", "json"):
        call(query, tables, "--format", name, sql)
        printed = capsys.readouterr().out
        assert "<9223372036854775807 us since 1970>" in printed
        assert ("1970-01-01T00:00:00" if name == "json" else "1970-01-01 00:00:00") in printed


@pytest.mark.parametrize(
    "sql",
    [
        "drop table batches",
        "copy batches to 'x.csv'",
        "",
        "select nope from batches",
        "selec 1",
    ],
)
def test_a_query_that_is_wrong_or_writes_is_refused_in_three_lines(tables: Path, sql: str) -> None:
    with pytest.raises(LaggardError) as error:
        call(query, tables, sql)
    assert error.value.exit_code == USAGE
    assert len(str(error.value).splitlines()) <= 3


def test_the_list_names_every_table_and_column_with_its_comment() -> None:
    lines = query.list_lines()
    for table in TABLES.values():
        assert any(line.startswith(f"{table.name}: ") for line in lines)
    assert len([line for line in lines if line.startswith("  ")]) == sum(
        len(table.columns) for table in TABLES.values()
    )
