"""Compare findings of another evaluation with those that are stored, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from laggard.cli.published import Row, is_asked, shown_rows
from laggard.cli.words import count, moment, short
from laggard.tables.arrow import to_arrow
from laggard.tables.evaluated import read_between
from laggard.tables.schemas import FINDINGS

_SHOWN = 20
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of `findings` that differs between the two sides.

    If both sides have the row, it names the columns that differ.
    """

    side: str  # stored, replayed or both
    at: datetime
    group: str | None
    code: str
    event: str
    finding_id: str
    seq: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows that are equal, and what is not."""

    equal: int
    differences: Sequence[Difference]

    @property
    def is_equal(self) -> bool:
        return not self.differences

    def lines(self) -> list[str]:
        """Return the comparison as text."""
        if self.is_equal:
            return [f"equal to what is stored: {count(self.equal, 'row')}"]
        lines = [
            (
                f"not what is stored: {count(len(self.differences), 'row')} differ, {self.equal} "
                "are equal"
            )
        ]
        lines += [f"  {_line(each)}" for each in self.differences[:_SHOWN]]
        more = len(self.differences) - _SHOWN
        return [*lines, f"  … and {more} more"] if more > 0 else lines

    def to_data(self) -> dict[str, Any]:
        """Return the comparison as data."""
        return {
            "is_equal": self.is_equal,
            "equal": self.equal,
            "differences": [asdict(each) for each in self.differences],
        }


def stored_findings(
    root: str, begin_ms: int, end_ms: int, window_seconds: int, glob: str
) -> list[Row]:
    """Return rows of the windows that begin from `begin_ms` to `end_ms`.

    A finding's time is the end of its window.
    """
    first, last = (
        datetime.fromtimestamp(ms / 1000 + window_seconds, timezone.utc)
        for ms in (begin_ms, end_ms)
    )
    rows = shown_rows(
        read_between(root, FINDINGS.name, FINDINGS.names, first, last),
        FINDINGS.name,
        FINDINGS.names,
    )
    return [row for row in rows if is_asked(row, glob)]


def compare(stored: Iterable[Row], replayed: Sequence[Row]) -> Comparison:
    """Compare row by row, by finding and number.

    The replayed rows are compared as the table would hold them.
    """
    before, after = (
        _by_key(stored),
        _by_key(to_arrow(FINDINGS, replayed).to_pylist(maps_as_pydicts="strict")),
    )
    differences, equal = [], 0
    for key in before.keys() | after.keys():
        if key not in before:
            differences.append(_difference("replayed", after[key]))
        elif key not in after:
            differences.append(_difference("stored", before[key]))
        # by their texts: unknown is equal to unknown
        elif columns := tuple(
            name for name in FINDINGS.names if repr(before[key][name]) != repr(after[key][name])
        ):
            differences.append(_difference("both", after[key], columns))
        else:
            equal += 1
    return Comparison(
        equal,
        sorted(differences, key=lambda each: (each.at, each.group or "", each.code, each.seq)),
    )


def _by_key(rows: Iterable[Row]) -> dict[Key, Row]:
    return {(row["finding_id"], row["seq"]): row for row in rows}


def _difference(side: str, row: Row, columns: tuple[str, ...] = ()) -> Difference:
    return Difference(
        side,
        row["at"],
        row["group"],
        row["code"],
        row["event"],
        row["finding_id"],
        row["seq"],
        columns,
    )


def _line(each: Difference) -> str:
    what = (
        f"{moment(each.at)} {each.event} {each.code} of "
        f"{'the cluster' if each.group is None else short(each.group)}"
    )
    if each.side == "both":
        return f"≠ {what}: {', '.join(each.columns)}"
    return f"{'-' if each.side == 'stored' else '+'} {what}: only {each.side}"
