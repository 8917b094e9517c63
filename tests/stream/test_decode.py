"""The decode stage: every record ends in exactly one count, and nothing that is read is lost or
fails.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
from laggard.names import NameFilter
from laggard.stream.tick.decode import decode_records
from laggard.stream.tick.decoded import COLUMNS, KINDS, SCHEMA, groups_of, of_kind
from laggard.stream.tick.rare_rows import HEAD_BYTES, MAX_DEAD_LETTERS
from rebalance.modern import CONSUMER, SHARE, STREAMS, Kind
from stream.simulation import (
    ID_A,
    NOON,
    RECORDS,
    Record,
    commit,
    decoded,
    generation,
    group_tombstone,
    rows_of,
)

OUTCOMES = {"record", "tombstone", "unsupported", "malformed"}
VALID = st.sampled_from(
    [
        commit(5),
        commit(None),
        commit(7, topic_id=ID_A),
        generation(1, {"m": ("t",)}),
        group_tombstone(),
        generation(0),
        CONSUMER.member("m"),
        CONSUMER.current("m", 1, {"t": [0]}),
        STREAMS.current("m", 1, {"0": [0]}),
        *SHARE.gone("m"),
    ]
)
GARBAGE = st.builds(Record, st.none() | st.binary(max_size=24), st.none() | st.binary(max_size=40))
# a whole key, and a value cut or changed at any byte
DAMAGED = st.builds(
    lambda record, cut, tail: Record(record.key, (record.value or b"")[:cut] + tail),
    VALID,
    st.integers(0, 80),
    st.binary(max_size=8),
)
TYPED = st.builds(
    lambda kind, rest: Record(encoder.i16(kind) + rest, rest),
    st.integers(0, 25),
    st.binary(max_size=20),
)


@settings(max_examples=200)
@given(st.lists(VALID | GARBAGE | DAMAGED | TYPED, max_size=30))
def test_every_record_is_counted_exactly_once(records: list[Record]) -> None:
    rows = rows_of(decoded(records))
    counts = [row for row in rows if row["kind"] == "count"]
    assert sum(row["records"] for row in counts) == len(records)
    assert {row["outcome"] for row in counts} <= OUTCOMES
    dead = sum(row["records"] for row in counts if row["outcome"] == "malformed")
    assert sum(row["kind"] == "dead_letter" for row in rows) == dead


@given(st.lists(VALID | GARBAGE, max_size=20))
def test_a_key_comes_out_once_with_its_newest_record(records: list[Record]) -> None:
    rows = [row for row in rows_of(decoded(records, 100)) if row["kind"] == "commit"]
    newest = {
        record.key: 100 + place
        for place, record in enumerate(records)
        if record.key == commit(5).key
    }
    assert [row["source_offset"] for row in rows] == list(newest.values())


def test_a_commit_row_carries_what_the_record_says() -> None:
    (row,) = (
        row
        for row in rows_of(decoded([commit(7, topic_id=ID_A)], 3, partition=9))
        if row["kind"] == "commit"
    )
    expected = {
        "group": "g",
        "topic": "t",
        "partition": 0,
        "topic_id": ID_A,
        "source_partition": 9,
        "source_offset": 3,
        "record_timestamp": NOON,
        "committed_offset": 7,
        "leader_epoch": 5,
        "commit_timestamp": NOON,
        "is_deleted": False,
        "commits": 1,
    }
    assert {name: row[name] for name in expected} == expected


def test_a_tombstone_row_has_no_offset() -> None:
    (row,) = (row for row in rows_of(decoded([commit(7), commit(None)])) if row["kind"] == "commit")
    assert (row["is_deleted"], row["committed_offset"], row["commit_timestamp"]) == (
        True,
        None,
        None,
    )
    assert row["first_committed_offset"] == 7


def test_groups_nobody_watches_are_counted_and_give_no_row() -> None:
    records = [commit(5, group="a"), commit(5, group="b"), generation(1, {"m": ("t",)}, group="b")]
    table = decoded_with(records, NameFilter(groups=("a",)))
    assert [row["group"] for row in table if row["kind"] != "count"] == ["a"]
    assert sum(row["records"] for row in table if row["kind"] == "count") == 3


def test_each_partition_of_a_watched_group_and_topic_gives_a_row_and_none_of_another() -> None:
    places = list(product("ab", ("t", "u"), (0, 1)))
    records = [commit(5, group=group, topic=topic, partition=part) for group, topic, part in places]
    table = decoded_with(records, NameFilter(groups=("a",), topics_ignore=("u",)))
    found = [
        (row["group"], row["topic"], row["partition"]) for row in table if row["kind"] == "commit"
    ]
    assert found == [("a", "t", 0), ("a", "t", 1)]


@pytest.mark.parametrize("kind", [CONSUMER, SHARE, STREAMS], ids=lambda kind: kind.name)
def test_records_of_every_kind_of_group_are_rows_in_the_order_of_the_log(kind: Kind) -> None:
    records = [
        kind.member("a"),
        kind.epoch(1),
        kind.target("a", {}),
        kind.target_epoch(1),
        kind.current("a", 1),
    ]
    rows = [
        row
        for row in rows_of(decoded([*records, *kind.gone("a")], 7))
        if row["kind"] == "group_record"
    ]
    assert [(row["group"], row["source_offset"]) for row in rows] == [
        ("g", 7 + place) for place in range(8)
    ]
    assert [json.loads(row["detail"])["is_tombstone"] for row in rows] == [False] * 5 + [True] * 3


def test_a_record_of_a_modern_group_that_is_cut_short_is_a_dead_letter_and_no_row() -> None:
    whole = CONSUMER.current("a", 1, {"t": [0]})
    rows = rows_of(decoded([Record(whole.key, (whole.value or b"")[:-1])]))
    assert [row["kind"] for row in rows] == ["dead_letter", "count"]


def test_modern_groups_nobody_watches_give_no_row() -> None:
    rows = decoded_with([CONSUMER.member("a"), CONSUMER.epoch(1)], NameFilter(groups=("other",)))
    assert [row["kind"] for row in rows] == ["count", "count"]


def decoded_with(records: list[Record], names: NameFilter) -> list[dict[str, Any]]:
    import pyarrow as pa

    columns = [
        pa.array([0] * len(records), pa.int32()),
        pa.array(range(len(records)), pa.int64()),
        pa.array([NOON] * len(records), pa.timestamp("us", tz="UTC")),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
    ]
    table = pa.table(columns, schema=RECORDS)
    return rows_of(pa.Table.from_batches(decode_records(table, names), SCHEMA))


def test_a_dead_letter_keeps_the_head_and_the_sum_of_the_whole() -> None:
    (row,) = (
        row
        for row in rows_of(decoded([Record(commit(5).key, b"\0\1" + b"x" * 999)]))
        if row["kind"] == "dead_letter"
    )
    assert (row["value_bytes"], len(row["head_hex"]), len(row["sha256"])) == (
        1001,
        2 * HEAD_BYTES,
        64,
    )


def test_dead_letters_are_kept_to_a_limit_and_counted_beyond_it() -> None:
    rows = rows_of(decoded([Record(b"\0", b"")] * (MAX_DEAD_LETTERS + 5)))
    assert sum(row["kind"] == "dead_letter" for row in rows) == MAX_DEAD_LETTERS
    assert [row["records"] for row in rows if row["kind"] == "count"] == [MAX_DEAD_LETTERS + 5]


@pytest.mark.parametrize("rows", [0, 1])
def test_rows_of_polls_are_no_records(rows: int) -> None:
    polls = (
        RECORDS.empty_table()
        if not rows
        else RECORDS.empty_table().from_pylist([{}], schema=RECORDS)
    )
    assert list(decode_records(polls, NameFilter())) == []


def test_a_rewind_inside_a_batch_is_a_row_with_both_offsets() -> None:
    (row,) = (
        row for row in rows_of(decoded([commit(50), commit(20)], 8)) if row["kind"] == "rewind"
    )
    found = (row["from_offset"], row["to_offset"], row["records"], row["source_offset"])
    assert found == (50, 20, 30, 9)


def test_rows_name_their_group_and_keep_the_columns_of_their_kind() -> None:
    rows = decoded(
        [commit(50), commit(20), generation(1, {"m": ("t",)}), commit(21), Record(b"", b"")]
    )
    batches = {
        kind: batch
        for batch in rows.to_batches()
        for kind in KINDS
        if batch[kind].null_count < batch.num_rows
    }
    groups = {kind: set(groups_of(batch).to_pylist()) for kind, batch in batches.items()}
    assert {kind for kind, found in groups.items() if found == {"g"}} == {
        "commit",
        "edge",
        "rewind",
        "group_record",
    }
    assert {kind for kind, found in groups.items() if found == {None}} == {"dead_letter", "count"}
    assert {kind: of_kind(rows, kind).schema for kind in KINDS} == COLUMNS
    assert sum(of_kind(rows, kind).num_rows for kind in KINDS) == rows.num_rows
