"""Compaction: a large file in place of many small ones, written in spare time, committed here.

delta-rs refuses none of two compactions of the same files at once, and afterwards each row is
there twice. So a commit of ours goes onto the very version in which all files that it replaces
were seen, or it fails and looks again
(docs/decisions/0015-maintenance-and-compaction.md).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from laggard import files, storage
from laggard.errors import TEMPORARY, LaggardError
from laggard.tables.data_files import DataFile, merge_files, remove_partial_files
from laggard.tables.lease import awake_seconds
from laggard.tables.readers import table_uri

if TYPE_CHECKING:
    from pyspark import SparkContext

_WANTED_BYTES = 100_000_000
_SMALL_BYTES = _WANTED_BYTES // 2
_TRIES = 20  # each is lost to a commit in between; the ticks commit every few seconds
_MARK = {"laggard": "compaction"}


@dataclass(frozen=True, slots=True)
class Merge:
    """Files of one date of a table to become one; all that a task needs to know."""

    root: str
    table: str
    schema: pa.Schema  # the table's own: a later release may have added columns
    date: str
    paths: tuple[str, ...]

    def carry_out(self) -> DataFile:
        """Write the new file, which belongs to no version yet."""
        return merge_files(
            table_uri(self.root, self.table), self.schema, self.paths, {"date": self.date}
        )


CarryOut = Callable[[Sequence[Merge]], Iterable[DataFile]]


def carry_out_here(merges: Sequence[Merge]) -> Iterable[DataFile]:
    """Merge one after the other in this process: the ticks need the other cores."""
    return (merge.carry_out() for merge in merges)


def carry_out_on(context: SparkContext) -> CarryOut:
    """Merge side by side on Spark's executors, without a connector.

    They need laggard and the store's settings.
    """
    chosen = storage.settings()

    def carry_out(merge: Merge) -> DataFile:
        storage.use(chosen)
        return merge.carry_out()

    return lambda merges: context.parallelize(merges, len(merges)).map(carry_out).collect()


def compact(
    root: str,
    name: str,
    delta: DeltaTable,
    before: str,
    carry_out: CarryOut = carry_out_here,
    max_seconds: float = 1800.0,
) -> None:
    """Merge the small files of each date before this one; a failing date stops no other.

    Its failure is raised.

    A file that is not committed after `max_seconds` is given up: it is half as old as what VACUUM
    deletes.
    """
    errors = []
    remove_partial_files(table_uri(root, name))
    for merges in plan(root, name, delta, before).values():
        try:
            until = awake_seconds() + max_seconds
            for merge, file in zip(merges, carry_out(merges), strict=True):
                _replace(delta, merge, file, until)
        except Exception as error:  # noqa: BLE001 - raised at the end
            errors.append(error)
    if errors:
        raise errors[0]


def plan(root: str, name: str, delta: DeltaTable, before: str) -> dict[str, list[Merge]]:
    """Return the merges of each date that has more than one small file, oldest date first."""
    small = defaultdict(list)
    schema = pa.schema(delta.schema().to_arrow())
    for action in _files(delta).values():
        if action["size_bytes"] < _SMALL_BYTES and str(action["partition.date"]) < before:
            small[str(action["partition.date"])].append(action)
    planned: dict[str, list[Merge]] = {}
    for date in sorted(small):
        packs = [pack for pack in _packed(small[date]) if len(pack) > 1]
        if packs:
            planned[date] = []
            for pack in packs:
                paths = tuple(map(itemgetter("path"), pack))
                planned[date].append(Merge(root, name, schema, date, paths))
    return planned


def _packed(actions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return files in the order they were written, in groups of the wanted size."""
    packs: list[list[dict[str, Any]]] = [[]]
    size = 0
    for action in sorted(actions, key=lambda add: (add["modification_time"], add["path"])):
        if size + action["size_bytes"] > _WANTED_BYTES:
            packs.append([])
            size = 0
        packs[-1].append(action)
        size += action["size_bytes"]
    return packs


def _files(delta: DeltaTable) -> dict[str, dict[str, Any]]:
    files = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    return {file["path"]: file for file in files}


def _replace(delta: DeltaTable, merge: Merge, file: DataFile, until: float) -> None:
    """Commit the new file for the old ones, if all of these are still there, and it is, too."""
    uri = f"{table_uri(merge.root, merge.table)}/{file.path}"
    for _ in range(_TRIES):
        delta.update_incremental()
        known = _files(delta)
        gone = [path for path in merge.paths if path not in known]
        if gone:
            raise LaggardError(
                f"{merge.table} of {merge.date} was compacted or deleted by another process "
                "meanwhile",
                cause=f"{gone[0]} is no longer in the table",
                fix="none needed: nothing was changed, and what is left is done the next time",
                exit_code=TEMPORARY,
            )
        if awake_seconds() > until or not files.exists(uri):
            raise LaggardError(
                f"{merge.table} of {merge.date} is not compacted",
                cause="it took so long that another process's VACUUM may delete the new file",
                fix="none needed: it is done the next time",
                exit_code=TEMPORARY,
            )
        try:
            delta.create_write_transaction(
                [
                    AddAction(**asdict(file), data_change=False),
                    *(_removal(known[path]) for path in merge.paths),
                ],
                mode="append",
                schema=delta.schema(),
                partition_by=["date"],
                commit_properties=CommitProperties(custom_metadata=_MARK, max_commit_retries=0),
            )
        except CommitFailedError:
            continue
        delta.update_incremental()  # VACUUM deletes what the version at hand does not name
        return
    raise LaggardError(
        f"{merge.table} of {merge.date} is not compacted",
        cause=f"{_TRIES} times another commit came first",
        fix="none needed: it is done the next time",
        exit_code=TEMPORARY,
    )


def _removal(action: dict[str, Any]) -> RemoveAction:
    return RemoveAction(
        path=action["path"],
        data_change=False,
        deletion_timestamp=int(time.time() * 1000),
        size=action["size_bytes"],
        partition_values={"date": str(action["partition.date"])},
    )
