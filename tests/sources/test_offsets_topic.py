"""How far a batch reads the offsets topic: all that a poll saw, no more than allowed, and nothing
of silent brokers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.sources import log_ends
from laggard.sources.log_ends import LogEndsReader
from laggard.sources.offsets_topic import (
    READ_TO,
    OffsetsSource,
    Piece,
    begin_positions,
    is_read,
    next_positions,
    positions_in,
    rounds,
    unanswered,
)
from laggard.sources.poll import PollOptions
from laggard.sources.poll_files import PollFiles
from laggard.sources.snapshot import OFFSETS_PARTITIONS, Snapshot
from laggard.wire.coordinator import coordinator_partition
from patience import examples

OFFSET = st.integers(0, 5000)


def parts_of(ends: dict[int, int | None], starts: dict[int, int | None] | None = None) -> pa.Table:
    rows = [
        {
            "offsets_partition": number,
            "last_stable_offset": end,
            "log_start_offset": (starts or {}).get(number),
        }
        for number, end in ends.items()
    ]
    return pa.Table.from_pylist(rows, schema=OFFSETS_PARTITIONS)


@settings(max_examples=examples(800))
@given(
    st.dictionaries(
        st.integers(0, 9), st.tuples(st.none() | OFFSET, st.none() | OFFSET, st.none() | OFFSET)
    ),
    st.integers(1, 3000),
)
def test_batch_after_batch_reads_everything_once_and_never_more_than_its_share(
    drawn: dict[int, tuple[int | None, int | None, int | None]], most: int
) -> None:
    ends = {number: end for number, (_, end, _) in drawn.items()}
    starts = {
        number: None if start is None or end is None else min(start, end)
        for number, (start, end, _) in drawn.items()
    }
    parts = parts_of(ends, starts)
    first = {number: position for number, (_, _, position) in drawn.items() if position is not None}
    positions, read = dict(first), dict.fromkeys(ends, 0)
    for _ in range(60_000):
        after = next_positions(positions, parts, most)
        begins = begin_positions(positions, after, parts)
        records = {number: max(0, end - begins[number]) for number, end in after.items()}
        assert sum(records.values()) <= most + len(parts)
        for number, end in ends.items():
            assert end is not None or after.get(number) == positions.get(number), (
                "no answer: not read"
            )
            assert end is None or after[number] <= end
            read[number] += records.get(number, 0)
        positions = after
        if is_read(positions, parts):
            break
        assert sum(records.values()) > 0, "a backlog always shrinks"
    assert is_read(positions, parts)
    for number, end in ends.items():
        if end is not None:
            assert positions[number] == end
            assert read[number] == max(0, end - max(first.get(number, 0), starts[number] or 0))


def test_a_position_above_the_end_falls_to_it() -> None:
    parts = parts_of({0: 90, 1: 5})
    assert next_positions({0: 100, 1: 5, 7: 3}, parts, 10) == {0: 90, 1: 5, 7: 3}


def test_what_a_poll_does_not_tell_is_not_read_and_not_waited_for() -> None:
    parts = parts_of({0: 9, 1: None, 2: None})
    assert next_positions({0: 4, 1: 6}, parts, 100) == {0: 9, 1: 6}
    assert unanswered(parts) == {1, 2}
    assert is_read({0: 9, 1: 6}, parts)
    assert not is_read({0: 8, 1: 6}, parts)


@given(st.sets(st.integers(0, 49), max_size=49), st.lists(st.sampled_from("abc"), min_size=1))
def test_the_group_that_spark_asks_for_has_a_coordinator_that_answers(
    silent: set[int], names: list[str]
) -> None:
    source = OffsetsSource(tuple(names), "__consumer_offsets", 10)
    parts = parts_of({number: None if number in silent else 1 for number in range(50)})
    group = source.group(names, parts)
    assert coordinator_partition(group, 50) not in silent
    assert group == source.group(names, parts), "executors keep their consumers by it"
    assert group.startswith("spark-kafka-source-"), "the prefix that the README asks rights for"
    own = coordinator_partition(group, 50)
    if len(silent) < 49:
        since = source.group(names, parts, frozenset([own]))
        assert coordinator_partition(since, 50) not in silent | {own}, (
            "its coordinator answered the poll only"
        )
    assert source.group(names, parts, frozenset(range(50))), "nothing is read, so nobody is asked"


class Polls:
    """Stands in for the brokers: polls that see these ends one after the other."""

    def __init__(self, *ends: dict[int, int | None]) -> None:
        self.ends = list(ends)

    def poll(self, poll_id: int) -> Snapshot:
        return Snapshot(poll_id, 1000 * poll_id, offsets_partitions=parts_of(self.ends.pop(0)))


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(*ends: dict[int, int | None], most: int = 10) -> LogEndsReader:
        polls = Polls(*ends)
        monkeypatch.setattr(log_ends, "Poller", lambda _: polls)
        first = {"poll_id": 6, READ_TO: {"0": 5}}
        return LogEndsReader(PollOptions(("unused",)), PollFiles("unused"), most, first)

    return make


def ask(reader: LogEndsReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, limit=None)  # type: ignore[arg-type]  # it is not looked at


def test_each_trigger_polls_and_goes_on_where_the_offset_before_ended(reader: Any) -> None:
    source = reader({0: 8, 1: 4}, {0: 8, 1: 4})
    first = ask(source, source.initialOffset())
    assert (first["poll_id"], positions_in(first)) == (7, {0: 8, 1: 4})
    second = ask(source, first)
    assert (second["poll_id"], positions_in(second)) == (8, {0: 8, 1: 4})


def test_catching_up_ends_with_the_batch_that_reads_to_the_end_of_its_poll(reader: Any) -> None:
    source = reader({0: 20}, {0: 28}, {0: 30}, most=10)
    source.prepareForTriggerAvailableNow()
    offsets = [source.initialOffset()]
    while (following := ask(source, offsets[-1])) != offsets[-1]:
        offsets.append(following)
    assert [positions_in(each)[0] for each in offsets] == [5, 15, 25, 30]
    assert [each["poll_id"] for each in offsets] == [6, 7, 8, 9]


@settings(max_examples=examples(400))
@given(
    st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 30), st.integers(0, 40))),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(1, 9)), max_size=6),
)
def test_the_rounds_and_the_pieces_are_every_record_once_and_in_order(
    ranges: dict[int, tuple[int, int]], drawn: list[tuple[int, int, int]]
) -> None:
    begins = {number: begin for number, (begin, _) in ranges.items()}
    ends = {number: end for number, (_, end) in ranges.items()}
    pieces: list[Piece] = []
    for number, begin, length in drawn:  # as they come: of what Spark is still to read
        read = [each[number] for each in rounds(begins, ends, pieces) if number in each]
        if any(low <= begin < high for low, high in read):
            end = next(high for low, high in read if low <= begin < high)
            pieces.append(Piece(number, begin, min(end, begin + length), pa.table({})))
    found = rounds(begins, ends, pieces)
    for number, (begin, end) in ranges.items():
        read = [each[number] for each in found if number in each]
        assert read == sorted(read)
        offsets = [offset for low, high in read for offset in range(low, high)]
        offsets += [
            offset
            for each in pieces
            if each.partition == number
            for offset in range(each.begin, each.end)
        ]
        assert sorted(offsets) == list(range(begin, end))
    assert all(found)
