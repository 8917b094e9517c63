"""What `[metrics]` and policies choose: partitions and distributions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from exporter.harness import Exporter
from laggard.answers.groups import worst_partitions
from laggard.diagnosis.parameters import Policy
from laggard.exporter.options import Selection
from tables.fixtures import NOW, group_row, partition_row, window_row, write_batch, write_evaluated

DISTRIBUTION = "laggard_group_lag_distribution_records_bucket"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    partitions = [partition_row(group, "t", n) for group in ("a", "b") for n in range(5)]
    write_batch(
        tmp_path, partitions=partitions, groups=[group_row("a", ping_pong=0.5), group_row("b")]
    )
    write_evaluated(tmp_path, windows=[window_row("a", "t")])
    return tmp_path


def shown(exporter: Exporter, name: str) -> dict[str, int]:
    """Series of a family by group."""
    exporter.refresh()
    groups = [dict(labels)["group"] for each, labels in exporter.samples() if each == name]
    return {group: groups.count(group) for group in sorted(set(groups))}


def test_all_partitions_of_chosen_groups_have_series(root: Path) -> None:
    lag = "laggard_partition_lag_records"
    assert shown(Exporter(root, partition_top_k=1), lag) == {"a": 1, "b": 1}
    policies = {"a": Policy(export_partitions="all")}
    assert shown(Exporter(root, partition_top_k=1, policies=policies), lag) == {"a": 5, "b": 1}


def test_no_partition_of_a_group_has_series_where_its_policy_says_none(root: Path) -> None:
    exporter = Exporter(
        root,
        policies={"a": Policy(export_partitions="none"), "b": Policy(export_partitions="all")},
    )
    assert shown(exporter, "laggard_partition_lag_records") == {"b": 5}
    assert shown(exporter, "laggard_group_lag_records") == {"a": 1, "b": 1}
    snapshot, _, _ = exporter.refresher.known
    assert snapshot is not None
    assert worst_partitions(snapshot)["a"]["partition"] == 0


def test_a_partition_keeps_its_series_for_ten_minutes_after_it_was_near_the_worst(
    tmp_path: Path,
) -> None:
    exporter, batches = Exporter(tmp_path, partition_top_k=1), iter(range(1, 9))

    def kept(seconds: int, *lags: int) -> list[str]:
        """Partitions with series, when their lags are these."""
        at = NOW + timedelta(seconds=seconds)
        rows = [
            partition_row("a", "t", n, committed_offset=1000 - lag) for n, lag in enumerate(lags)
        ]
        write_batch(tmp_path, next(batches), at, partitions=rows, groups=[group_row("a")])
        exporter.clock.now = at.timestamp() + 1
        exporter.refresh()
        lag = "laggard_partition_lag_records"
        return sorted(
            dict(labels)["partition"] for each, labels in exporter.samples() if each == lag
        )

    assert kept(0, 90, 80, 70, 60) == ["0"]
    assert kept(10, 80, 90, 70, 60) == ["0", "1"]
    assert kept(2000, 80, 90, 70, 60) == ["0", "1"], (
        "second of the worst: twice as many as are exported"
    )
    assert kept(2010, 10, 90, 70, 60) == ["0", "1"]
    assert kept(2599, 10, 90, 70, 60) == ["0", "1"]
    assert kept(2600, 10, 90, 70, 60) == ["1"]
    assert kept(2610, 10, 80, 90, 60) == ["1", "2"]
    assert kept(2620, 10, 60, 80, 90) == ["2", "3"], (
        "at most one more than are exported, the worse one"
    )


@pytest.mark.parametrize(
    ("globs", "expected"), [(("*",), {"a": 10, "b": 10}), (("b",), {"b": 10}), ((), {})]
)
def test_only_chosen_groups_have_distributions(
    root: Path, globs: tuple[str, ...], expected: dict[str, int]
) -> None:
    assert shown(Exporter(root, selection=Selection(distributions=globs)), DISTRIBUTION) == expected
