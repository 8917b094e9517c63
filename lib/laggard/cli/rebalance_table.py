"""The table of `laggard status --rebalances`, and what both tables of `status` share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from laggard.answers.reading import published_batch, title_of
from laggard.answers.rebalances import RebalanceLine, cells, read_lines
from laggard.cli.text.table import Table
from laggard.cli.text.terminal import warn_if_old
from laggard.tables.published import Batch

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from laggard.config import Config

# for people, and as data: the table is cut by --limit when it is shown
Page = tuple[Table, dict[str, Any]]
_TITLES = (
    "GROUP", "REBALANCES", "LAST END", "CAUSE", "TOOK", "LONGEST PAUSE", "MOVED", "AVOIDABLE",
    "LAST 10 MIN",
)  # fmt: skip


_LEAST = ("AVOIDABLE", "TOOK", "MOVED")


_RIGHT = {"REBALANCES", "TOOK", "LONGEST PAUSE", "MOVED", "AVOIDABLE", "LAST 10 MIN"}


def content_of(cluster: str, batch: Batch, groups: Sequence[DataclassInstance]) -> dict[str, Any]:
    """Return the lines of groups as `--json` prints them."""
    return {
        "cluster": cluster,
        "batch_id": batch.batch_id,
        "polled_at": batch.polled_at.isoformat(),
        "groups": [asdict(line) for line in groups],
    }


def read_page(args: argparse.Namespace, config: Config) -> Page:
    """Read the table of `status --rebalances`, and the same as data."""
    batch = published_batch(config.job.tables)
    warn_if_old(batch, config)
    lines = read_lines(config.job.tables, batch, args.group)
    table = table_of(title_of(batch, len(lines)), lines, args.limit)
    return table, content_of(batch.cluster, batch, lines)


def table_of(title: str, lines: Sequence[RebalanceLine], limit: int) -> Table:
    """Return the table of the groups, in the given order, below its title."""
    return Table(title, _TITLES, [cells(line) for line in lines], _RIGHT, limit, _LEAST)
