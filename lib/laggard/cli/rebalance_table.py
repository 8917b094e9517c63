"""The table of `laggard status --rebalances`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from laggard.answers.document import name_of
from laggard.answers.reading import Row
from laggard.answers.rebalances import RebalanceLine, cells, order
from laggard.answers.text.times import at_time
from laggard.answers.text.words import count
from laggard.cli.text.table import Table
from laggard.escape import escape_label, printable_lines

_TIMES = ("last_rebalance_at", "rebalancing_since")
_TITLES = (
    "GROUP", "REBALANCES", "LAST END", "CAUSE", "TOOK", "LONGEST PAUSE", "MOVED", "AVOIDABLE",
    "LAST 10 MIN",
)  # fmt: skip
_LEAST = ("AVOIDABLE", "TOOK", "MOVED")
_RIGHT = {"REBALANCES", "TOOK", "LONGEST PAUSE", "MOVED", "AVOIDABLE", "LAST 10 MIN"}


def table_of(title: str, lines: Sequence[RebalanceLine], limit: int) -> Table:
    """Return the table of the groups, in the given order, below its title."""
    return Table(title, _TITLES, [cells(line) for line in lines], _RIGHT, limit, _LEAST)


def lines_of(rows: Sequence[Row]) -> list[RebalanceLine]:
    """Return the groups of a document, the one that rebalances most of the time first.

    Print on standard error the names of groups whose rebalances cannot be read.
    """
    lines, lost = [], []
    for row in rows:
        group, facts = name_of(row, "group"), row["rebalances"]
        if facts is None:
            lost.append(group)
            continue
        times = {name: None if facts[name] is None else at_time(facts[name]) for name in _TIMES}
        lines.append(RebalanceLine(group=group, **(facts | times)))
    if lost:
        names = printable_lines(", ".join(map(escape_label, sorted(lost)[:10])))
        groups = count(len(lost), "group")
        print(
            f"laggard: {groups} left out, as the rows of their rebalances cannot be read: {names}",
            file=sys.stderr,
        )
    return sorted(lines, key=order)
