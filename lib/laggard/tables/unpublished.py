"""Rows that no `batches` row published, which the next batch would publish under its number.

The tables of the diagnosis have such rows as well: those of a window whose row of `finding_state`
was not written.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import CommitFailedError

from laggard.tables.lease import Lease, fenced, signed
from laggard.tables.readers import load_table, table_uri
from laggard.tables.schema.schemas import FINDING_STATE, TABLES

_TRIES = 3


def tables_with_unpublished(root: str, newest_batch_id: int) -> list[str]:
    """Return append tables with rows of a batch above the newest published one.

    The check uses the statistics of their files.
    """
    return list(_find(root, newest_batch_id))


def remove_unpublished(root: str, newest_batch_id: int, lease: Lease | None) -> list[str]:
    """Delete those rows; gives the tables that had some. Needs the writer lock, and its lease."""
    bounds = _find(root, newest_batch_id)
    for name, bound in bounds.items():
        _delete(table_uri(root, name), f"batch_id > {bound}", lease)
    return list(bounds)


def _delete(uri: str, predicate: str, lease: Lease | None) -> None:
    """Delete the rows, again if a compaction replaced their files meanwhile."""
    for tries_left in reversed(range(_TRIES)):
        delta = load_table(uri)
        try:
            with fenced(delta, lease):
                delta.delete(predicate, commit_properties=signed(lease))
        except CommitFailedError:
            if not tries_left:
                raise
        else:
            return


def _find(root: str, newest_batch_id: int) -> dict[str, int]:
    """Return a dict from table with unpublished rows to its newest published batch id."""
    # a window's rows carry the batch that closed it; its state is written last
    state = _batches(root, FINDING_STATE.name)
    bounds = {}
    for name, table in TABLES.items():
        batch_ids = _batches(root, name)
        if not batch_ids or table.overwritten or name == "batches":
            continue  # status tables are read at the version that `batches` names
        bound = newest_batch_id
        if table.is_of_diagnosis:
            # without states the first window was cut off, or all states are past their retention
            if state:
                bound = min(bound, max(state))
            elif min(batch_ids) == max(batch_ids):
                bound = -1
            else:
                bound = max(batch_ids)
        if max(batch_ids) > bound:
            bounds[name] = bound
    return bounds


def _batches(root: str, name: str) -> set[int]:
    """Return the least and largest batch id of a table's files; none without statistics."""
    actions = pa.table(load_table(table_uri(root, name)).get_add_actions(flatten=True))
    if "max.batch_id" not in actions.column_names:
        return set()
    return {pc.min(actions["min.batch_id"]).as_py(), pc.max(actions["max.batch_id"]).as_py()} - {
        None
    }
