"""Count the checked rows of each invariant, keep examples of violations, and related facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc

SAMPLES = 20
INVARIANTS = {  # code to what has to hold
    "I1": "each key is in one row",
    "I2": "windows of a partition follow each other, except across recorded gaps",
    "I3": "produced and consumed are what the offsets moved by",
    "I4": "commits are taken in the order of the offsets topic, and none before it was read",
    "I5": "lag is what the offsets say, and known if and only if status is ok",
    "I6": "sums of groups and topics are those of their partitions",
    "I7": "every record that was read is counted, and none is left out between two batches",
    "I8": "columns that follow from others agree with them",
    "I9": "the exporter shows the batch that it names",
    "I10": "offsets at rest are those that the coordinators hold",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that breaks an invariant: its key, the fault, the expected and the actual value."""

    table: Annotated[str, "table of the row"]
    key: Annotated[Mapping[str, Any], "columns that name the row"]
    what: Annotated[str, "the column, or the fact, that is wrong"]
    expected: Annotated[Any, "value that it should have"]
    found: Annotated[Any, "value that it has"]


@dataclass(slots=True)
class Tally:
    """One invariant so far."""

    code: Annotated[str, "code of the invariant", {"enum": [*INVARIANTS]}] = ""
    rule: Annotated[str, "what has to hold"] = ""
    checked: Annotated[int, "rows, or pairs of rows, that were checked"] = 0
    violations: Annotated[int, "rows that break it"] = 0
    samples: Annotated[list[Violation], "the first rows that break it"] = field(
        default_factory=list
    )
    unchecked: Annotated[
        str, 'reason why it could not be checked; "" if it was, or was not asked for'
    ] = ""

    def add(
        self,
        rows: pa.Table,
        bad: Any,
        table: str,
        key: Sequence[str],
        what: str,
        expected: Any,
        actual: Any,
    ) -> None:
        """Count the rows where `bad` is true and keep the first of them; null is not bad.

        `expected` and `actual` are columns parallel to the rows, or one value for all.
        """
        mask = pc.fill_null(bad, False)
        violations = int(pc.sum(mask).as_py() or 0)
        self.violations += violations
        if not violations or len(self.samples) >= SAMPLES:
            return
        shown = pc.indices_nonzero(mask)[: SAMPLES - len(self.samples)]
        keys = rows.select(list(key)).take(shown).to_pylist()
        sides = [
            side.take(shown).to_pylist()
            if isinstance(side, (pa.Array, pa.ChunkedArray))
            else [side] * len(keys)
            for side in (expected, actual)
        ]
        for named, *values in zip(keys, *sides, strict=True):
            self.samples.append(Violation(table, named, what, *values))

    def refute(
        self, table: str, key: Mapping[str, Any], what: str, expected: Any, actual: Any
    ) -> None:
        """Count one violation."""
        self.violations += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(Violation(table, key, what, expected, actual))


@dataclass(slots=True)
class Totals:
    """Facts of the range that are no violation but matter."""

    batches: Annotated[int, "batches of the range"] = 0
    records: Annotated[int, "records that they read from the offsets topic"] = 0
    unknown_records: Annotated[int, "of these, records of unknown types"] = 0
    reconciled: Annotated[int, "corrections after asking the coordinators"] = 0
    gaps_known_since: Annotated[
        datetime | None,
        "poll of the oldest row of batches, if lag_windows is older; else null",
    ] = None
    ahead: Annotated[int, "rows of lag_windows whose commit is newer than the poll"] = 0
    gap_seconds: Annotated[Counter[str], "seconds that were not watched, by reason"] = field(
        default_factory=Counter
    )
    gaps: Annotated[Counter[str], "gaps by reason"] = field(default_factory=Counter)
    dead_letters: Annotated[Counter[str], "records that could not be decoded, by reason"] = field(
        default_factory=Counter
    )
    statuses: Annotated[Counter[str], "rows of lag_windows by status"] = field(
        default_factory=Counter
    )


@dataclass(frozen=True, slots=True)
class AuditDocument:
    """The document of `laggard audit`; its page is made from it."""

    cluster: Annotated[str, "name of the Kafka cluster"]
    batch_id: Annotated[int, "batch whose versions of the tables were checked"]
    polled_at: datetime
    since: Annotated[datetime | None, "rows from this time on were checked; null: all"]
    invariants: Annotated[list[Tally], "in the order of their codes"]
    facts: Annotated[Totals, "counts that are no violation"]


Tallies = Mapping[str, Tally]


def new_tallies() -> dict[str, Tally]:
    """Make a tally for each invariant, in order."""
    return {code: Tally(code, rule) for code, rule in INVARIANTS.items()}


def differ(left: Any, right: Any) -> Any:
    """Return a mask of rows in which two columns differ.

    Null equals null, and differs from every value.
    """
    is_one_null = pc.xor(pc.is_null(left), pc.is_null(right))
    return pc.or_(is_one_null, pc.fill_null(pc.not_equal(left, right), False))
