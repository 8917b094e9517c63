from __future__ import annotations

import pyarrow as pa
import pytest

from laggard.stream.evaluation.diagnose import of_shard

GROUPS = ["billing", "orders", None, "audit", "billing", None, "search", "orders"]


@pytest.mark.parametrize("is_dictionary", [False, True])
def test_every_row_is_in_one_shard_and_a_group_in_one_only(is_dictionary: bool) -> None:
    names = pa.array(GROUPS, pa.string())
    rows = pa.table(
        {
            "group": names.dictionary_encode() if is_dictionary else names,
            "number": range(len(GROUPS)),
        }
    )
    parts = [of_shard(rows, shard, 3).to_pylist() for shard in range(3)]
    assert sorted(row["number"] for part in parts for row in part) == list(range(len(GROUPS)))
    for group in {*GROUPS}:
        assert sum(any(row["group"] == group for row in part) for part in parts) == 1
    # without a group: the first
    assert all(any(row["number"] == number for row in parts[0]) for number in (2, 5))
    assert [of_shard(batch, 0, 3).num_rows for batch in rows.to_batches()] == [len(parts[0])]
