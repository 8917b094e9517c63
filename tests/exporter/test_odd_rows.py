"""One odd row costs its own series only: those of every other group are the same bytes, and it is
counted by name.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.harness import Exporter, series
from laggard.answers.history import GroupSeries, gaps_between
from laggard.cli.main import main
from laggard.cli.verbs.query.notes import known_groups
from laggard.errors import OK
from laggard.exporter.body.render import TEXT, render_data
from laggard.exporter.evaluated import Evaluated, evaluated_rows
from laggard.exporter.options import Selection
from laggard.exporter.snapshot import Read, Snapshot, make_snapshot
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.odd_rows import REASONS, SIFTED, Skipped
from laggard.tables.published import Batch
from laggard.tables.schema.schemas import BATCHES, GROUP_STATUS, GROUP_WINDOWS, TABLES
from tables.fixtures import (
    NOW,
    batch_row,
    finding_row,
    group_row,
    make_root,
    partition_row,
    topic_row,
    window_row,
    write_arrow,
    write_batch,
    write_evaluated,
    write_rows,
)
from tables.odd import odd_arrays

ODD, SOUND = "odd", ("a", "b", "z")
START = NOW - timedelta(minutes=1)
COUNTERS = {
    "produced": 5,
    "consumed": 4,
    "lost": 0,
    "commits": 2,
    "noop_commits": 1,
    "rewinds": 0,
    "rewound_records": 0,
}
OUTCOMES = {"skips": 1, "matured": 9, "late": 2}


def rows_of(group: str) -> dict[str, list[dict[str, Any]]]:
    """Two rows of each table for a group, and a topic of the same name."""
    buckets = [1] * 11
    place = {
        "date": NOW.date(),
        "cluster": "prod",
        "batch_id": 1,
        "window_start": START,
        "window_end": NOW,
    }
    return {
        "partition_status": [partition_row(group, group, n) for n in range(2)],
        "group_status": [
            group_row(
                group,
                topic_counters=[{"topic": group, **COUNTERS, "ahead": 0}],
                outcome_counters=[{"topic": group, **OUTCOMES}],
                rebalances_total={"unknown": 1},
                member_changes_total={"joined": 1},
                rebalance_duration_buckets=buckets,
                rebalance_duration_sum=3.0,
                last_rebalance_at=NOW,
            )
        ],
        "topic_windows": [topic_row(group, n) for n in range(2)],
        "group_windows": [{**window_row(group, group), **place}],
        "findings": [{**finding_row("LAG_GROWING", group), **place, "at": NOW}],
    }


def tables(*groups: str) -> dict[str, pa.Table]:
    every = [rows_of(group) for group in groups]
    sifted = {}
    for name in SIFTED:
        rows = [row for of_group in every for row in of_group[name]]
        sifted[name] = pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[name]))
    return sifted


def body_of(read: dict[str, pa.Table]) -> tuple[list[str], Skipped]:
    """Lines of the data families of one snapshot, and what it skipped."""
    skipped = Skipped()
    batch = Batch(batch_row(1, {}), 0)
    base = make_snapshot(batch, Read(*(read[name] for name in SIFTED[:3])), Selection(), skipped)
    evaluated = Evaluated(
        NOW.timestamp(),
        evaluated_rows(read["group_windows"], "group_windows", skipped),
        findings=evaluated_rows(read["findings"], "findings", skipped),
    )
    snapshot = Snapshot(
        base.batch, base.group_topics, base.partitions, base.groups, base.topics, evaluated
    )
    data = render_data(snapshot, 100_000, skipped)
    return data.heads[TEXT].plain.decode().splitlines(), skipped


def lines_of(lines: list[str], groups: tuple[str, ...]) -> list[str]:
    wanted = tuple(f'{label}="{group}"' for label in ("group", "topic") for group in groups)
    return [line for line in lines if any(each in line for each in wanted)]


SOUND_LINES = lines_of(body_of(tables(*SOUND))[0], SOUND)


@st.composite
def odd_rows(draw: st.DrawFn) -> tuple[str, pa.Table]:
    """A table, and its rows of the odd group with some values replaced."""
    name = draw(st.sampled_from(SIFTED))
    rows = tables(ODD)[name]
    for column in draw(
        st.lists(st.sampled_from(sorted(rows.column_names)), min_size=1, max_size=4, unique=True)
    ):
        index = rows.column_names.index(column)
        odd = draw(st.sampled_from(odd_arrays(rows.schema.field(column).type)))
        rest = rows[column].combine_chunks().slice(1)
        rows = rows.set_column(
            index, rows.schema.field(column).with_nullable(True), pa.chunked_array([odd, rest])
        )
    return name, rows


@given(odd=odd_rows(), place=st.integers(0, 2))
def test_the_series_of_all_other_groups_are_the_same_bytes(
    odd: tuple[str, pa.Table], place: int
) -> None:
    name, rows = odd
    whole = tables(*SOUND, ODD)
    sound = tables(*SOUND)[name]
    cut = place * len(sound) // 2
    whole[name] = pa.concat_tables(
        [sound.slice(0, cut), rows, sound.slice(cut)], promote_options="permissive"
    )
    lines, skipped = body_of(whole)
    assert lines_of(lines, SOUND) == SOUND_LINES
    assert not [
        line for line in lines if not line.startswith("#") and line.endswith((" NaN", " None"))
    ]
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines), "a series comes twice"
    assert {reason for _, reason in skipped.counts} <= set(REASONS)


def test_a_partition_with_an_odd_number_makes_its_topic_partial_and_no_other(
    tmp_path: Path,
) -> None:
    rows = [
        partition_row("g", "t", 0),
        partition_row("g", "t", 1, lag=-5),
        partition_row("g", "u", 0),
    ]
    write_batch(tmp_path, partitions=rows, groups=[group_row("g")])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert series("group_lag_records", group="g", topic="t") not in found
    assert found[series("group_lag_known_records", group="g", topic="t")] == 100
    assert found[series("group_lag_records", group="g", topic="u")] == 100
    assert series("partition_lag_records", group="g", topic="t", partition=1) not in found
    skipped = series("exporter_rows_skipped_total", table="partition_status", reason="value")
    assert found[skipped] == 1


def test_what_is_skipped_is_published_at_0_from_the_start_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_batch(tmp_path, 1, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    name = "laggard_exporter_rows_skipped_total"
    zeros = {key: value for key, value in exporter.samples().items() if key[0] == name}
    assert len(zeros) == len(SIFTED) * len(REASONS)
    assert set(zeros.values()) == {0}
    counters = [{"topic": "t", **COUNTERS}] * 2
    for batch_id in (2, 3):
        groups = [group_row("g"), group_row("twice", topic_counters=counters)]
        write_batch(tmp_path, batch_id, partitions=[partition_row("g", "t", 0)], groups=groups)
        with caplog.at_level(logging.WARNING, "laggard.exporter"):
            exporter.refresh()
    found = exporter.samples()
    assert found[series("exporter_rows_skipped_total", table="group_status", reason="value")] == 2
    assert found[series("group_members", group="twice")] == 2
    said = (
        "1 row of group_status skipped (value), the first of group 'twice': topic_counters has a "
        "topic twice or one without a name; laggard_exporter_rows_skipped_total counts on"
    )
    assert [record.getMessage() for record in caplog.records] == [said]


def test_status_names_what_it_skips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [partition_row("g\x1b", "t", 0), partition_row("g\x1b", "t", 1, lag=-5)]
    write_batch(tmp_path, partitions=rows, groups=[group_row("g\x1b", lag=None)])
    assert main(["status", "--set", f"job.tables={tmp_path}"]) == OK
    shown = capsys.readouterr()
    assert (
        "1 row of partition_status skipped (value), the first of group 'g\\x1b', topic 't', "
        "partition 1" in shown.err
    )
    assert "≥ 100" in shown.out


def test_odd_rows_of_the_rules_cost_no_lag(tmp_path: Path) -> None:
    write_batch(tmp_path, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])
    windows = [
        window_row("g", "t"),
        window_row("g", "u", slope=float("nan")),
        {**window_row("h", "t"), "topic": None},
    ]
    write_evaluated(
        tmp_path,
        windows=windows,
        findings=[finding_row("LAG_GROWING", "g"), finding_row("LAG_GROWING", "h")],
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert series("group_lag_records", group="g", topic="t") in found
    assert found[series("group_lag_slope_records_per_second", group="g", topic="t")] == 1.5
    assert series("group_lag_slope_records_per_second", group="g", topic="u") not in found


def test_an_odd_batch_row_does_not_end_the_thread(tmp_path: Path) -> None:
    write_batch(tmp_path, 1, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    odd = {"polled_at": NOW + timedelta(seconds=1), "unknown_records_total": [None]}
    write_batch(
        tmp_path, 2, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")], **odd
    )
    exporter.refresh()
    assert series("group_lag_records", group="g", topic="t") in exporter.samples()


def test_a_name_that_is_no_text_is_skipped_in_real_tables(tmp_path: Path) -> None:
    write_batch(tmp_path, 1, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])
    rows = tables("g", ODD)["partition_status"]
    names = pa.chunked_array(
        [pa.array([b"g", b"g", b"\xed\xa0\x80", b"\xff"], pa.binary()).view(pa.string())]
    )
    rows = rows.set_column(rows.column_names.index("group"), "group", names)
    versions = {
        "partition_status": write_arrow(tmp_path, "partition_status", rows),
        "group_status": 0,
        "topic_windows": 0,
    }
    write_rows(tmp_path, "batches", [batch_row(2, versions)])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert found[series("group_lag_records", group="g", topic="g")] == 200
    assert found[series("exporter_rows_skipped_total", table="partition_status", reason="key")] == 2


def test_an_odd_name_in_the_windows_costs_no_other_group_its_history(tmp_path: Path) -> None:
    start = NOW - timedelta(minutes=1)
    place = {"date": start.date(), "window_start": start, "max_time_lag_seconds": 10.0}
    rows = to_arrow(GROUP_WINDOWS, [{**window_row(name, "t"), **place} for name in "gh"])
    names = pa.chunked_array([pa.array([b"g", b"\xff"], pa.binary()).view(pa.string())])
    rows = rows.set_column(rows.column_names.index("group"), "group", names)
    make_root(tmp_path)
    write_arrow(tmp_path, "group_windows", rows)
    history = GroupSeries(str(tmp_path), 60).upto(NOW)
    assert {group: seen[-1] for group, seen in history.items()} == {"g": (10.0, False)}


def test_a_gap_whose_reason_is_no_text_is_still_a_gap(tmp_path: Path) -> None:
    gap = {"kind": "gap", "gap_from": NOW - timedelta(minutes=9), "gap_to": NOW}
    rows = to_arrow(BATCHES, [batch_row(1, {}, **gap)])
    names = pa.chunked_array([pa.array([b"\xff"], pa.binary()).view(pa.string())])
    rows = rows.set_column(rows.column_names.index("gap_reason"), "gap_reason", names)
    make_root(tmp_path)
    batch = Batch({}, write_arrow(tmp_path, "batches", rows))
    (found,) = gaps_between(str(tmp_path), batch, NOW - timedelta(hours=1), NOW)
    assert (found["gap_from"], found["gap_reason"]) == (gap["gap_from"], None)


def test_a_query_knows_the_groups_beside_one_whose_name_is_no_text(tmp_path: Path) -> None:
    rows = to_arrow(GROUP_STATUS, [group_row("g"), group_row("h")])
    names = pa.chunked_array([pa.array([b"g", b"\xff"], pa.binary()).view(pa.string())])
    rows = rows.set_column(rows.column_names.index("group"), "group", names)
    make_root(tmp_path)
    version = write_arrow(tmp_path, "group_status", rows)
    batch = Batch({"table_versions": {"group_status": version}}, 0)
    assert known_groups(str(tmp_path), batch) == {"g"}
