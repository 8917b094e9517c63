"""The cap on series holds, and what goes first is always the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from exporter.harness import Exporter, names, series
from laggard.exporter.body.budget import Shedding
from tables.fixtures import NOW, group_row, partition_row, write_batch

GROUPS = 12


def write_groups(root: Path) -> None:
    """Group g0 has no lag; every next one has more."""
    rows = [
        partition_row(f"g{n:02d}", "t", partition, committed_offset=1000 - n)
        for n in range(GROUPS)
        for partition in range(3)
    ]
    write_batch(root, partitions=rows, groups=[group_row(f"g{n:02d}") for n in range(GROUPS)])


@pytest.mark.parametrize("max_series", [1000, 900, 700, 600, 500, 450, 300, 200])
def test_the_body_never_has_more_series_than_the_cap(tmp_path: Path, max_series: int) -> None:
    write_groups(tmp_path)
    exporter = Exporter(tmp_path, max_series=max_series)
    exporter.refresh()
    found = exporter.samples()
    withheld = {
        dict(labels)["level"]: n
        for (name, labels), n in found.items()
        if name == "laggard_series_withheld"
    }
    assert len(found) <= max_series
    assert (
        0
        < sum(withheld.values())
        == found["laggard_series_dropped_total", frozenset({("reason", "max_series")})]
    )


def test_partitions_go_before_distributions_and_groups_with_the_most_lag_stay_longest(
    tmp_path: Path,
) -> None:
    write_groups(tmp_path)
    bodies = {}
    for max_series in (100_000, 1070, 770, 440):
        exporter = Exporter(tmp_path, max_series=max_series)
        exporter.refresh()
        bodies[max_series] = exporter.samples()
    assert {"laggard_partition_lag_records", "laggard_partition_committed_offset"} <= names(
        bodies[100_000]
    )
    assert "laggard_partition_committed_offset" not in names(bodies[1070])
    assert "laggard_group_lag_distribution_records_bucket" in names(bodies[1070])
    assert "laggard_group_lag_distribution_records_bucket" not in names(bodies[770])
    lagging = [
        name
        for name in (f"g{n:02d}" for n in range(GROUPS))
        if series("group_lag_records", group=name, topic="t") in bodies[440]
    ]
    assert lagging == [f"g{n:02d}" for n in range(GROUPS - len(lagging), GROUPS)]
    assert lagging


def test_as_many_levels_return_as_each_of_the_ten_bodies_had_room_for() -> None:
    """One small body among larger ones must not bring back what the next has to withhold again."""
    shedding = Shedding()
    assert shedding.settle(needed=3, relaxed=3) == 3
    assert [
        shedding.settle(needed=0, relaxed=relaxed) for relaxed in (0, 2, 1, 0, 1, 0, 1, 0, 1, 0)
    ] == [3] * 9 + [2]
    assert [shedding.settle(needed=0, relaxed=0) for _ in range(10)] == [2] * 9 + [0]


@pytest.mark.full
def test_a_level_returns_when_ten_bodies_in_a_row_were_well_below_the_cap(tmp_path: Path) -> None:
    """Bodies around the cap must not give a level in one batch and withhold it in the next."""
    batches = iter(range(1, 100))
    exporter = Exporter(tmp_path)

    def body(groups: int) -> set[str]:
        """Names in the next body, when there are so many groups."""
        number = next(batches)
        at = NOW + timedelta(seconds=10 * number)
        rows = [
            partition_row(f"g{n:02d}", "t", partition)
            for n in range(groups)
            for partition in range(3)
        ]
        write_batch(
            tmp_path,
            number,
            at,
            partitions=rows,
            groups=[group_row(f"g{n:02d}") for n in range(groups)],
        )
        exporter.clock.now = at.timestamp() + 1
        exporter.refresh()
        return names(exporter.samples())

    body(11)
    own = 100  # room that is kept for the exporter's own series, and not used in this test
    exporter = Exporter(tmp_path, max_series=len(exporter.samples()) + own)
    offsets, lag = "laggard_partition_committed_offset", "laggard_partition_lag_records"
    assert [offsets in body(groups) for groups in (11, 12, 11)] == [True, False, False]
    assert lag in body(11)
    assert [offsets in body(6) for _ in range(9)] == [False] * 9
    assert offsets not in body(11)
    assert [offsets in body(6) for _ in range(10)] == [False] * 9 + [True]
    assert offsets in body(11)
