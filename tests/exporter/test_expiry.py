"""When offsets expire: KIP-211's rules, on what is known of a group."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exporter.harness import Exporter, series
from laggard.exporter.collectors.state import offsets_expiry
from tables.fixtures import NOW, group_row, partition_row, write_batch

NOON = NOW.timestamp()
WEEK = 7 * 86_400
HOUR = timedelta(hours=1)
COMMITS = {"orders": NOON - 50.0, "letters": NOON - 900.0}
EMPTY = {"members": 0, "empty_since": NOW - HOUR, "topics": []}


@pytest.mark.parametrize(
    ("facts", "since"),
    [
        (EMPTY, NOON - 3600),  # classic: since nobody is there, however old the commits are
        (EMPTY | {"empty_since": None}, None),  # nobody saw them go
        (EMPTY | {"group_type": "consumer"}, NOON - 900),
        ({"group_type": "simple", "members": None, "topics": None}, NOON - 900),
        ({"topics": ["letters", "orders"]}, None),
        ({"topics": ["letters"]}, NOON - 50),  # orders is read no more
        ({"topics": None}, None),
        ({"group_type": "share", "members": 0}, None),
        ({"group_type": None, "members": None}, None),
    ],
)
def test_offsets_expire_a_retention_after_what_kept_them_last(
    facts: dict[str, Any], since: float | None
) -> None:
    row = {"group_type": "classic", "members": 2, "empty_since": None, "topics": None} | facts
    assert offsets_expiry(row, COMMITS, WEEK // 60) == (None if since is None else since + WEEK)
    assert offsets_expiry(row, COMMITS, None) is None


def test_the_oldest_commit_of_all_partitions_counts(tmp_path: Path) -> None:
    ages = (50, 900, 20)  # the oldest of them has no lag
    partitions = [
        partition_row(
            "g",
            "orders",
            number,
            commit_timestamp=NOW - timedelta(seconds=age),
            committed_offset=1000,
        )
        for number, age in enumerate(ages)
    ]
    groups = [group_row("g", group_type="simple", members=None), group_row("h", topics=[])]
    write_batch(tmp_path, partitions=partitions, groups=groups, offsets_retention_minutes=60)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    name = "group_offsets_expiry_timestamp_seconds"
    assert (found[series(name, group="g")], found.get(series(name, group="h"))) == (
        NOON - 900 + 3600,
        None,
    )
