"""Quarantine: a group whose tick raises is set aside; other groups are published without it.

The groups of a shard are advanced together. Where that raises they are halved until those that
raise are alone. These keep their last rows as `stale` (`quarantined_rows.py`) and are tried again,
apart from the others, at the next tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import of_groups
from laggard.lag.positions import ADVANCE_FAILED
from laggard.stream.tick.decoded import Batch, values_of

MAX_RUNS = 100  # of `advance` in one tick and shard; what still raises then is set aside together
MAX_MESSAGE = 200
MAX_NAMED = 20  # groups that a `batches` row and the log name
log = logging.getLogger("laggard.job")

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Input of `advance` for some groups: rows of the status tables, and the read batch."""

    partition_status: pa.Table
    group_status: pa.Table
    batch: Batch

    @property
    def groups(self) -> list[str]:
        """All groups that it names."""
        batch = self.batch
        tables = (self.partition_status, self.group_status, batch.commits, batch.edges)
        groups = {*batch.answers.groups, *batch.refused}
        for table in tables:
            groups.update(pc.unique(table["group"]).to_pylist())
        groups.update(map(itemgetter("group"), chain(batch.records, batch.rewinds)))
        return sorted(groups)

    def of(self, groups: Collection[str]) -> Inputs:
        """Return a copy with these groups only."""
        wanted = set(groups)
        batch = replace(
            self.batch,
            commits=of_groups(self.batch.commits, wanted),
            edges=of_groups(self.batch.edges, wanted),
            records=[row for row in self.batch.records if row["group"] in wanted],
            rewinds=[row for row in self.batch.rewinds if row["group"] in wanted],
            answers=self.batch.answers.of(wanted),
            refused=values_of(wanted, self.batch.refused),
        )
        return Inputs(
            of_groups(self.partition_status, wanted), of_groups(self.group_status, wanted), batch
        )


@dataclass(frozen=True, slots=True)
class Failed:
    """A group whose tick raised. `is_new`: the tick before did not."""

    group: str
    exception: str  # class name
    message: str  # its first line, in ASCII
    is_new: bool

    @classmethod
    def of(cls, group: str, error: Exception, *, is_new: bool) -> Failed:
        first = next(iter(str(error).splitlines()), "")
        return cls(group, type(error).__name__, ascii(first)[1:-1][:MAX_MESSAGE], is_new)


@dataclass(frozen=True, slots=True)
class Settled:
    """The rows of all groups whose tick ran, the groups whose did not, and those that run again."""

    tables: Tables
    failed: Sequence[Failed]
    recovered: Sequence[str]


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Number of groups in quarantine after a tick, number of new ones, and some by name."""

    groups: int = 0
    entered: int = 0
    named: tuple[Failed, ...] = ()

    @classmethod
    def of(cls, failed: Sequence[Failed]) -> Quarantine:
        return cls(len(failed), sum(map(attrgetter("is_new"), failed)), _first(failed))

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Quarantine:
        """Build a quarantine from the dict that `asdict` gives."""
        named = tuple(Failed(**group) for group in values["named"])
        return cls(values["groups"], values["entered"], named)

    def __add__(self, other: Quarantine) -> Quarantine:
        named = _first((*self.named, *other.named))
        return Quarantine(self.groups + other.groups, self.entered + other.entered, named)

    def columns(self) -> dict[str, Any]:
        """Return the columns of `batches` about the quarantine."""
        return {
            "quarantined_groups": self.groups,
            "quarantined": {failure.group: failure.exception for failure in self.named},
        }

    def log(self) -> None:
        """Log one line per group that came into quarantine, none while it stays."""
        new = list(filter(attrgetter("is_new"), self.named))
        for failure in new:
            log.error(
                "group %s is in quarantine: its tick failed with %s: %s; its rows are stale, all "
                "others are published",
                ascii(failure.group), failure.exception, failure.message,
            )  # fmt: skip
        if self.entered > len(new):
            log.error(
                "%d more groups are in quarantine: table group_events names them",
                self.entered - len(new),
            )


def _first(failed: Iterable[Failed]) -> tuple[Failed, ...]:
    """Return the failed groups, the new ones first, at most `MAX_NAMED`."""
    return tuple(sorted(failed, key=lambda failure: not failure.is_new)[:MAX_NAMED])


def advance_apart(inputs: Inputs, run: Callable[[Inputs], Tables]) -> Settled:
    """Run a tick over all groups, and those that raise apart from the others.

    `run` gives rows per table, ready to be written. An error that comes without any group as well
    is raised: no group is to blame. So is want of memory.
    """
    rows: Any = inputs.group_status.filter(pc.equal(inputs.group_status["error"], ADVANCE_FAILED))
    quarantined = set(rows["group"].to_pylist())
    parts = [inputs]
    if quarantined:
        parts = [inputs.of(set(inputs.groups) - quarantined), inputs.of(quarantined)]
    results: list[Tables] = []
    failed: dict[str, Failed] = {}
    runs = 0
    while parts:
        part = parts.pop()
        try:
            runs += 1
            results.append(run(part))
        except Exception as error:
            if _is_of_no_group(error, part, run, is_first=runs == 1):
                raise
            groups = part.groups
            if len(groups) == 1 or runs >= MAX_RUNS:
                for group in groups:
                    failed[group] = Failed.of(group, error, is_new=group not in quarantined)
            else:
                half = len(groups) // 2
                parts += [part.of(groups[:half]), part.of(groups[half:])]
    if not results:  # the tables are there even when no group is
        results = [run(inputs.of(()))]
    recovered = sorted(quarantined - failed.keys())
    return Settled(join(results), [failed[group] for group in sorted(failed)], recovered)


def join(results: Sequence[Tables]) -> Tables:
    """Join the rows of all parts, per table."""
    if len(results) == 1:
        return results[0]
    parts: dict[str, list[pa.Table]] = {}
    for tables in results:
        for name, table in tables.items():
            parts.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _is_of_no_group(
    error: Exception, part: Inputs, run: Callable[[Inputs], Tables], *, is_first: bool
) -> bool:
    """Return True if memory ran out, or the error comes without any group as well.

    The first group shows this.
    """
    if isinstance(error, MemoryError) or not part.groups:
        return True
    try:
        if is_first:
            run(part.of(()))
    except Exception:  # noqa: BLE001 - the caller raises the first one
        return True
    return False
