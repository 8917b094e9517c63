"""Whatever lies in the offsets topic: every record has one outcome, no batch fails, and rows can be
written.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import encoder
import layouts
import made_up
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.sources.snapshot import Snapshot
from laggard.stream.tick.advance_stage import _dead_letters
from laggard.stream.tick.decode import decode_records
from laggard.stream.tick.decoded import SCHEMA as DECODED
from laggard.stream.tick.decoded import of_kind, read_batch
from laggard.tables.data_files import read_files, write_files
from laggard.tables.schema import schemas
from patience import examples
from stream.simulation import NOON, RECORDS, Record, Simulation, commit, end, generation

Given = tuple[bytes | None, bytes | None, int]  # key, value, record timestamp in ms
ENDS = [end(1000, topic=topic, partition=number) for topic in ("t", "u") for number in range(2)]
NOON_MS = round(NOON.timestamp() * 1000)
YEAR_10000_MS = 253_402_300_800_000
MOST_MS = (2**63 - 1) // 1000  # beyond it Spark has no timestamp either


def decoded(rows: Iterable[Given], first_offset: int = 0) -> pa.Table:
    given = list(rows)
    table = pa.table(
        [
            pa.array([0] * len(given), pa.int32()),
            pa.array(range(first_offset, first_offset + len(given)), pa.int64()),
            pa.array([at * 1000 for _, _, at in given], pa.timestamp("us", tz="UTC")),
            pa.array([key for key, _, _ in given], pa.binary()),
            pa.array([value for _, value, _ in given], pa.binary()),
        ],
        schema=RECORDS,
    )
    return pa.Table.from_batches(decode_records(table, NameFilter()), DECODED)


def tick_of(job: Simulation) -> Tick:
    return job._tick(Snapshot(0, 0).positions, (), (), None, is_live=True)


def written(folder: Path, tables: dict[str, pa.Table]) -> None:
    """Write every table's files, which checks what the tables' constraints check, and read them
    back.
    """
    for name, rows in tables.items():
        (folder / name).mkdir(exist_ok=True)
        files = write_files(str(folder / name), schemas.TABLES[name], rows)
        if schemas.TABLES[name].overwritten:
            read = read_files(
                schemas.TABLES[name], [str(folder / name / file.path) for file in files]
            )
            assert read.equals(rows.select(read.column_names)), name


def counted(rows: pa.Table) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in of_kind(rows, "count").to_pylist():
        found[row["outcome"]] = found.get(row["outcome"], 0) + row["records"]
    return found


def dead(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["reason"], row["field"]) for row in of_kind(rows, "dead_letter").to_pylist()]


def raw(record: Record, at_ms: int = NOON_MS) -> Given:
    return record.key, record.value, at_ms


@pytest.mark.parametrize("partition", [-1, -(2**31)])
@pytest.mark.parametrize("offset", [5, None])
def test_a_commit_of_a_negative_partition_is_a_dead_letter(
    partition: int, offset: int | None
) -> None:
    rows = decoded([raw(commit(offset, partition=partition)), raw(commit(7))])
    assert dead(rows) == [("out_of_range", "partition")]
    assert counted(rows) == {"record": 1, "malformed": 1}
    assert [row["committed_offset"] for row in of_kind(rows, "commit").to_pylist()] == [7]


@pytest.mark.parametrize("at_ms", [-1, YEAR_10000_MS, MOST_MS, -MOST_MS])
def test_a_record_timestamp_outside_the_calendar_fails_nothing(at_ms: int, tmp_path: Path) -> None:
    rows = decoded(
        [raw(commit(9), at_ms), raw(commit(7), at_ms), raw(generation(1, {"m": ("t",)}), at_ms)]
    )
    assert dead(rows) == [("out_of_range", "record_timestamp")]
    job = Simulation()
    job.tick(ENDS, [commit(5)])
    job.next_offset = 0
    tables = job.tick(
        ENDS,
        batch=read_batch(decoded([raw(commit(5)), raw(commit(9), at_ms), raw(commit(7), at_ms)])),
    )
    assert job.row["committed_offset"] == 7
    assert "offset_rewind" in job.events()
    letters = _dead_letters(of_kind(rows, "dead_letter"), tick_of(job))
    assert letters["date"].to_pylist() == [job.now.date()]
    written(tmp_path, {**tables, "dead_letters": letters})


def test_a_record_that_the_decoder_fails_on_is_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("too deep")

    for target in (
        "laggard.wire.columnar.join_value",
        "laggard.stream.tick.rare_rows.describe_generation",
    ):
        with monkeypatch.context() as patched:
            patched.setattr(target, fail)
            rows = decoded([raw(generation(1)), raw(commit(7))])
        assert dead(rows) == [("decoder_failed", None)], target
        assert counted(rows) == {"record": 1, "malformed": 1}


def test_a_commit_on_a_partition_that_the_topic_does_not_have_adds_no_partitions() -> None:
    job = Simulation()
    for _ in range(2):
        job.tick(ENDS, [generation(1, {"m": ("t",)}), commit(5)])
    for _ in range(3):
        job.tick(ENDS, [commit(5, partition=2**31 - 1)])
    assert "partitions_added" not in job.events()
    assert {row["status"] for row in job.rows if row["partition"] > 1} == {"topic_missing"}


INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [-1, 0, 1, 2**53 + 11, 2**63 - 1, -(2**63)]
)
TIMES = st.sampled_from([NOON_MS, NOON_MS + 1000, -1, 0, YEAR_10000_MS]) | st.integers(
    -MOST_MS, MOST_MS
)
NAMES = st.sampled_from(["g", "h", "", " ", "g\0", "t", "u", '"\n\\', "‮x", "ä" * 300])


@st.composite
def records(draw: st.DrawFn) -> Given:
    at_ms = draw(TIMES)
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return (
            draw(st.none() | st.binary(max_size=40)),
            draw(st.none() | st.binary(max_size=40)),
            at_ms,
        )
    if kind < 6:
        key = encoder.commit_key(
            draw(NAMES), draw(NAMES), draw(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2))
        )
        fields = {
            "offset": draw(INT64), "leader_epoch": draw(st.integers(-(2**31), 2**31 - 1)),
            "metadata": draw(NAMES),
            "commit_timestamp": draw(INT64 | TIMES), "expire_timestamp": draw(INT64),
            "topic_id": draw(st.none() | made_up.UUID),
        }  # fmt: skip
        version = draw(st.integers(0, 4))
        return key, draw(st.none() | st.just(encoder.commit_value(version, fields))), at_ms
    number = draw(st.sampled_from(sorted(layouts.KEYS)))
    key_fields = {
        name: draw(NAMES if name in ("group", "group_id") else strategy)
        for name, strategy in _keys(number)
    }
    key = encoder.record_key(number, key_fields)
    places = [place for place in layouts.VALUES if place[0] == number]
    if not places or draw(st.integers(0, 3)) == 0:
        return key, None, at_ms
    version = draw(st.sampled_from(places))[1]
    return key, encoder.record_value(number, version, draw(made_up.VALUES[number, version])), at_ms


def _keys(number: int) -> Iterable[tuple[str, st.SearchStrategy[Any]]]:
    layout = layouts.KEYS[number]
    assert isinstance(layout, dict)
    return [(name, made_up.values_of(kind)) for name, kind in layout.items()]


@pytest.mark.full
@pytest.mark.examples
@settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.lists(records(), max_size=6), min_size=1, max_size=4))
def test_any_records_fail_no_batch_and_leave_rows_that_can_be_written(
    tmp_path: Path, ticks: list[list[Given]]
) -> None:
    job = Simulation(window_seconds=20)
    job.tick(
        ENDS,
        [generation(1, {"m": ("t", "u")}), commit(5), commit(6, topic="u"), commit(7, group="h")],
    )
    first = 1_000_000
    for given_records in ticks:
        rows = decoded(given_records, first)
        assert sum(counted(rows).values()) == len(given_records)
        first += len(given_records)
        tables = job.tick(ENDS, batch=read_batch(rows))
        tables["dead_letters"] = _dead_letters(of_kind(rows, "dead_letter"), tick_of(job))
        written(tmp_path, {name: table for name, table in tables.items() if table.num_rows})
