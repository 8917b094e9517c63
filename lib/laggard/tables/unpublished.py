"""Rows that no `batches` row published: the next batch would bring them to light under its own number."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from laggard.tables.readers import table_uri
from laggard.tables.schemas import TABLES


def tables_with_unpublished(root: str, newest_batch_id: int) -> list[str]:
    """Append tables with rows of a batch above the newest published one, by the statistics of their files."""
    # the diagnosis publishes its own tables; status tables are read at the version that `batches` names
    names = [name for name, table in TABLES.items() if not (table.overwritten or table.is_judged or name == "batches")]
    return [name for name in names if _newest_batch(DeltaTable(table_uri(root, name))) > newest_batch_id]


def remove_unpublished(root: str, newest_batch_id: int) -> list[str]:
    """Delete those rows; gives the tables that had some. Needs the writer lock."""
    found = tables_with_unpublished(root, newest_batch_id)
    for name in found:
        DeltaTable(table_uri(root, name)).delete(f"batch_id > {newest_batch_id}")
    return found


def _newest_batch(table: DeltaTable) -> int:
    actions = pa.table(table.get_add_actions(flatten=True))
    if "max.batch_id" not in actions.column_names:
        return -1
    newest = pc.max(actions["max.batch_id"]).as_py()
    return -1 if newest is None else int(newest)
