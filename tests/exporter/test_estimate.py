"""Series of a cluster, estimated before there is a batch, against those of a body."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from exporter.harness import Exporter
from laggard.diagnosis.parameters import Policy
from laggard.exporter.body.budget import Estimate, estimate_series
from laggard.exporter.options import Selection
from tables.fixtures import group_row, partition_row, window_row, write_batch, write_evaluated

KEYS = list(product(("a", "b"), ("t", "u"), range(12)))


DEFAULT = Selection()


def estimate(selection: Selection = DEFAULT, **policies: Policy) -> Estimate:
    return estimate_series("ab", KEYS, 50, selection, lambda group: policies.get(group, Policy()))


def test_every_series_is_counted_once() -> None:
    found = estimate()
    # 2 groups, 4 group-topics, 10 of 12 partitions of each, those of a topic once, 2 topics, 50
    # offsets partitions
    assert found == Estimate(2 * 87 + 4 * 85 + 40 * 5 + 20 * 2 + 2 * 4 + 50 * 8, 2, 4, 40)


@pytest.mark.parametrize(
    ("selection", "more"),
    [
        (Selection(partition_top_k=12), 4 * 2 * 5 + 2 * 2 * 2),
        (Selection(distributions=("b",)), -2 * 24),
        (Selection(compat=("burrow", "kminion")), 48 * 4),
    ],
)
def test_what_is_selected_counts(selection: Selection, more: int) -> None:
    assert estimate(selection).series - estimate().series == more


def test_policies_decide_about_partitions() -> None:
    some = estimate(a=Policy(export_partitions="all"), b=Policy(export_partitions="none"))
    assert some.partitions == 24


def test_a_body_has_nearly_as_many_as_were_estimated(tmp_path: Path) -> None:
    groups, pairs = ("a", "b"), list(product(("a", "b"), ("t", "u")))
    write_batch(
        tmp_path,
        partitions=[partition_row(*key) for key in KEYS],
        groups=[group_row(group, topics=["t", "u"]) for group in groups],
    )
    write_evaluated(tmp_path, windows=[window_row(*pair) for pair in pairs])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    shown = sum(any(name == "group" for name, _ in labels) for _, labels in exporter.samples())
    logs = sum(
        name in ("laggard_partition_log_end_offset", "laggard_partition_log_start_offset")
        for name, _ in exporter.samples()
    )
    estimated = estimate_series(groups, KEYS, 0, Selection(), lambda _: Policy())
    # the fixture has no service level, no counters of topics and no windows of topics
    assert 0.7 * estimated.series < shown + logs <= estimated.series
