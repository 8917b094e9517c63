"""The state of a group as a column: what is written is what is read, and the table declares just
that.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest

from laggard.rebalance.facts import Identity
from laggard.rebalance.membership.folded import Epoch, Folded, Member
from laggard.rebalance.membership.group_facts import KEPT
from laggard.tables.arrow import arrow_schema
from laggard.tables.data_files import read_files, write_files
from laggard.tables.schema import schemas
from rebalance.lives import LIVES
from rebalance.modern import folded
from stream.simulation import Record

STRUCT = arrow_schema(schemas.GROUP_STATUS).field("folded").type


def names(struct: pa.StructType) -> set[str]:
    return {field.name for field in struct}


def test_the_table_declares_every_field_of_the_state() -> None:
    assert names(STRUCT) == {field.name for field in fields(Folded)}
    assert names(STRUCT.field("epoch").type) == {field.name for field in fields(Epoch)}
    assert names(STRUCT.field("members").type.value_type) == {
        field.name for field in fields(Member)
    }
    assert names(STRUCT.field("roster").type.value_type) == {
        field.name for field in fields(Identity)
    }


def test_every_fact_that_is_kept_is_a_column() -> None:
    assert set(KEPT) <= set(schemas.GROUP_STATUS.names)


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_the_state_survives_its_file(life: list[Record], tmp_path: Path) -> None:
    for length in range(1, len(life), 4):
        rows = folded(life[:length]).tables["group_status"]
        (file,) = write_files(str(tmp_path), schemas.GROUP_STATUS, rows)
        read = read_files(schemas.GROUP_STATUS, [str(tmp_path / file.path)])
        assert read.to_pylist() == rows.to_pylist()
        (state,) = read["folded"].to_pylist()
        assert Folded.from_row(state).to_row() == state
