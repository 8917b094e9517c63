"""A poll as a value: it survives the streaming offset, unchanged."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from laggard.sources import snapshot as shapes
from laggard.sources.offsets_topic import READ_TO, positions_in
from laggard.sources.poll_files import PollFiles, offset_in
from laggard.sources.snapshot import Snapshot, pack, unpack
from stream.simulation import ID_A, end

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OFFSET = st.none() | st.integers(0, 2**62)
POSITION = st.fixed_dictionaries(
    {
        "topic": TEXT,
        "topic_id": st.sampled_from(["", ID_A]),
        "partition": st.integers(0, 9999),
        "log_end_offset": OFFSET,
        "log_start_offset": OFFSET,
        "leader_broker": st.none() | st.integers(0, 9),
        "error": st.none() | TEXT,
    }
)


@given(st.lists(POSITION, max_size=8), st.integers(0, 2**40))
def test_a_snapshot_survives_json(rows: list[dict[str, Any]], polled_at_ms: int) -> None:
    given_snapshot = Snapshot(
        poll_id=7,
        polled_at_ms=polled_at_ms,
        requests={"metadata": 2},
        failures=[["list_offsets", "TIMEOUT", 1]],
        positions=pa.Table.from_pylist(rows, schema=shapes.POSITIONS),
    )
    assert unpack(json.loads(json.dumps(pack(given_snapshot)))) == given_snapshot


def test_every_table_of_a_snapshot_survives() -> None:
    moment = datetime(2026, 11, 20, tzinfo=timezone.utc)
    full = Snapshot(
        poll_id=1,
        polled_at_ms=2,
        positions=pa.Table.from_pylist([end(5)], schema=shapes.POSITIONS),
        offsets_partitions=pa.Table.from_pylist(
            [{"offsets_partition": 3, "blocked_since": moment}, {"offsets_partition": 4}],
            schema=shapes.OFFSETS_PARTITIONS,
        ),
        groups=pa.Table.from_pylist([{"group": "g", "group_state": None}], schema=shapes.GROUPS),
        closed=pa.Table.from_pylist(
            [{"topic": "t", "produced": 3, "config_known": True}], schema=shapes.CLOSED
        ),
        probes=pa.Table.from_pylist(
            [{"slo_seconds": 0.5, "topic": "t", "offset": 3}], schema=shapes.PROBES
        ),
        offsets_retention_minutes=10_080,
    )
    assert unpack(pack(full)) == full


def test_a_poll_of_an_older_version_has_no_value_in_newer_columns() -> None:
    packed = pack(Snapshot(1, 2, positions=pa.Table.from_pylist([end(5)], schema=shapes.POSITIONS)))
    older = pack(
        Snapshot(1, 2, positions=pa.Table.from_pylist([end(5)], schema=shapes.POSITIONS.remove(7)))
    )
    for offset in (packed, older):
        positions = unpack(offset).positions
        assert positions.schema == shapes.POSITIONS
        assert positions["last_stable_offset"].to_pylist() == [None]


def test_empty_tables_take_no_room() -> None:
    assert set(pack(Snapshot(1, 2))).isdisjoint(
        {"positions", "offsets_partitions", "groups", "closed"}
    )


WAL = 'v1\n{"batchWatermarkMs":0}\n%s\n'


def test_poll_and_positions_are_found_in_the_write_ahead_log() -> None:
    wanted = Snapshot(
        poll_id=3, polled_at_ms=4, positions=pa.Table.from_pylist([end(5)], schema=shapes.POSITIONS)
    )
    offset = offset_in(WAL % json.dumps(pack(wanted) | {READ_TO: {"1": 42, "0": 7}}))
    assert PollFiles("unused").from_offset(offset) == wanted
    assert positions_in(offset) == {0: 7, 1: 42}
    assert offset_in(WAL % "-") == {}
