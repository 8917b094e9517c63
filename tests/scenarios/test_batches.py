"""SC49: however a batch is cut, and if it is run again or late, tables and findings are those of
the plain run.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

from laggard.lag.tick import Tick
from laggard.stream.tick.advance import Poll
from laggard.stream.tick.advance_stage import shards_of
from laggard.stream.tick.decoded import groups_of
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.runs import Recorded, Recorder, Run, record, simulate
from simulator.offsets_log import Written

SHARDS = 3
STATE = ("partition_status", "group_status")


class InPieces(Recorder):
    """Every offsets partition is decoded apart, the last one first, and every shard of the groups
    advances apart.
    """

    def decode(self, given: list[Written]) -> pa.Table:
        parts = sorted({each.partition for each in given}, reverse=True)
        pieces = [
            super(InPieces, self).decode([each for each in given if each.partition == part])
            for part in parts
        ]
        return pa.concat_tables([super().decode([]), *pieces])

    def advance(self, decoded: pa.Table, poll: Poll, tick: Tick) -> dict[str, pa.Table]:
        state = {name: self.tables[name] for name in STATE}
        found = []
        for shard in range(SHARDS):
            self.tables = {
                **self.tables,
                **{name: _of_shard(rows, shard) for name, rows in state.items()},
            }
            found.append(super().advance(_decoded_of_shard(decoded, shard), poll, tick))
        return {name: pa.concat_tables([each[name] for each in found]) for name in found[0]}


class RunTwice(Recorder):
    """Every batch is computed, lost before it is published, and computed again."""

    def advance(self, decoded: pa.Table, poll: Poll, tick: Tick) -> dict[str, pa.Table]:
        lost = super().advance(decoded, poll, tick)
        again = super().advance(decoded, poll, tick)
        assert {name: rows.equals(lost[name]) for name, rows in again.items()} == dict.fromkeys(
            lost, True
        )
        return again


def _of_shard(rows: pa.Table, shard: int) -> pa.Table:
    return rows.filter(pa.array(shards_of(rows["group"], SHARDS) == shard))


def _decoded_of_shard(decoded: pa.Table, shard: int) -> pa.Table:
    batches = decoded.to_batches()
    own = [
        batch.filter(pa.array(shards_of(groups_of(batch), SHARDS) == shard)) for batch in batches
    ]
    return pa.Table.from_batches(own, decoded.schema)


@cache
def runs() -> tuple[Run, ...]:
    """A scale-out in two generations, and a static member that is away for too long; two groups in
    one cluster.
    """
    return tuple(simulate(SCENARIOS[name], 5, place) for place, name in enumerate(("SC28", "SC20")))


@cache
def recorded(job: type[Recorder]) -> tuple[Recorded, ...]:
    return tuple(record(runs(), job()))


def in_order(rows: list[dict[str, object]]) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.full
@pytest.mark.parametrize("job", [InPieces, pytest.param(RunTwice, marks=pytest.mark.full)])
def test_the_tables_are_those_of_the_plain_run(job: type[Recorder]) -> None:
    for plain, other in zip(recorded(Recorder), recorded(job), strict=True):
        assert plain.tables.keys() == other.tables.keys()
        for name, rows in plain.tables.items():
            assert in_order(rows.to_pylist()) == in_order(other.tables[name].to_pylist()), name
        assert plain.tables["lag_windows"].num_rows
        assert plain.tables["rebalances"].num_rows


@pytest.mark.full
@pytest.mark.parametrize("job", [InPieces, RunTwice])
def test_the_findings_are_those_of_the_plain_run(job: type[Recorder]) -> None:
    for plain, other in zip(recorded(Recorder), recorded(job), strict=True):
        expected = diagnose(plain)
        assert diagnose(other).findings == expected.findings
        assert diagnose(other).windows == expected.windows
