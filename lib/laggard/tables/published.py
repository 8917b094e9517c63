"""Published batches: rows of `batches`, the newest row, and its version of each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from laggard.tables import log
from laggard.tables.data_files import read_files
from laggard.tables.readers import batch_bounds, newest_date, open_table, read_declared, table_uri
from laggard.tables.schema.schemas import BATCHES

TICK = "tick"
BACKFILL = "backfill"
_LOOK_BACK = 20  # entries of the log: those of maintenance have no row


@dataclass(frozen=True, slots=True)
class Batch:
    """One row of `batches` that publishes a tick; `values` holds all its columns, maps as dicts."""

    values: Mapping[str, Any]
    version: int  # version of `batches` the row was read at

    @property
    def cluster(self) -> str:
        return str(self.values["cluster"])

    @property
    def batch_id(self) -> int:
        return int(self.values["batch_id"])

    @property
    def kind(self) -> str:
        return str(self.values["kind"])

    @property
    def polled_at(self) -> datetime:
        moment: datetime = self.values["polled_at"]
        return moment

    @property
    def clock_at(self) -> datetime:
        """Return the wall clock of the job's machine at the poll.

        `polled_at` waits for it where it was set back.
        """
        clock = self.values.get("clock")
        moment: datetime = clock["wall"] if clock else self.polled_at
        return moment

    @property
    def table_versions(self) -> Mapping[str, int]:
        return self.values["table_versions"] or {}


def newest_batch(root: str) -> Batch | None:
    """Return the newest published tick or backfill; None while nothing is published.

    By the newest entries of the Delta log, at a cost that does not grow. Where these do not say (a
    table that was rewritten, or is damaged), the table is loaded and the files' statistics choose
    which files are read.
    """
    try:
        newest = _newest_in_log(table_uri(root, BATCHES.name))
    # loading names what is wrong
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        newest = None
    if newest is not None:
        return newest
    table = open_table(root, BATCHES.name)
    for bound in batch_bounds(table):
        row = _newest_row(table, root, f"batch_id >= {bound}")
        if row is not None:
            return Batch(row, table.version())
    predicate = newest_date(table)  # files without statistics
    row = None
    if predicate:
        row = _newest_row(table, root, predicate)
    if not row:
        return None
    return Batch(row, table.version())


def _newest_in_log(uri: str) -> Batch | None:
    newest = log.newest_version(uri)
    for version in range(newest, max(newest - _LOOK_BACK, -1), -1):
        for path, partition in log.read_added(uri, version).items():
            row = _newest_of(read_files(BATCHES, [path], is_whole=True))
            if row is not None:
                return Batch(row | {"date": date.fromisoformat(partition["date"])}, newest)
    return None


def has_batch_where(root: str, column: str, value: str) -> bool:
    """Return True if a batch with this value was ever published."""
    rows = read_declared(open_table(root, BATCHES.name), root, BATCHES.name, [column])
    return bool(pc.any(pc.equal(rows[column], value)).as_py())


def newest_of_checkpoints(root: str) -> dict[str, int]:
    """Return the newest batch that each checkpoint has published."""
    wanted = ["checkpoint_id", "batch_id", "kind"]
    rows = _published(read_declared(open_table(root, BATCHES.name), root, BATCHES.name, wanted))
    newest = rows.group_by("checkpoint_id").aggregate([("batch_id", "max")])
    return dict(
        zip(newest["checkpoint_id"].to_pylist(), newest["batch_id_max"].to_pylist(), strict=True)
    )


def newest_of_topic(root: str, topic_id: str, checkpoint_id: str) -> dict[int, int]:
    """Return the positions to which another checkpoint's newest batch read this offsets topic.

    The result is {} if none did.
    """
    table = open_table(root, BATCHES.name)
    rows = _published(
        read_declared(table, root, BATCHES.name, ["kind", "batch_id", "checkpoint_id", "origin"])
    )
    batch_ids = []
    for row in rows.to_pylist():
        is_of_topic = (row["origin"] or {}).get("offsets_topic_id") == topic_id
        if is_of_topic and row["checkpoint_id"] != checkpoint_id:
            batch_ids.append(row["batch_id"])
    newest = None
    if batch_ids:
        newest = _newest_row(table, root, f"batch_id = {max(batch_ids)}")
    if not newest:
        return {}
    return dict(newest["source_to"] or {})


def _newest_row(table: DeltaTable, root: str, predicate: str) -> dict[str, Any] | None:
    return _newest_of(read_declared(table, root, BATCHES.name, BATCHES.names, predicate))


def _newest_of(rows: pa.Table) -> dict[str, Any] | None:
    rows = _published(rows)
    if not rows.num_rows:
        return None
    newest = rows.take(pc.select_k_unstable(rows, k=1, sort_keys=[("batch_id", "descending")]))
    return dict.fromkeys(BATCHES.names) | dict(newest.to_pylist(maps_as_pydicts="strict")[0])


def _published(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.is_in(rows["kind"], pa.array([TICK, BACKFILL])))
