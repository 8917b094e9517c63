"""Every table, declared as plain data: Spark, Arrow and the docs are built from it."""

from __future__ import annotations

from laggard.tables.schema.batch_tables import BATCHES, DEAD_LETTERS
from laggard.tables.schema.columns import Column, Table
from laggard.tables.schema.diagnosis_tables import (
    DEPLOYS,
    FINDING_STATE,
    FINDINGS,
    GROUP_WINDOWS,
    SCALE_EVENTS,
)
from laggard.tables.schema.rebalance_tables import (
    GENERATIONS,
    GROUP_EVENTS,
    GROUP_MEMBERS,
    REBALANCES,
)
from laggard.tables.schema.status_tables import GROUP_STATUS, PARTITION_STATUS
from laggard.tables.schema.window_tables import GROUP_HISTORY, LAG_WINDOWS, TOPIC_WINDOWS

TABLES = {
    table.name: table
    for table in (
        PARTITION_STATUS, GROUP_STATUS, LAG_WINDOWS, GROUP_HISTORY, TOPIC_WINDOWS, GENERATIONS,
        GROUP_MEMBERS,
        REBALANCES, GROUP_EVENTS, GROUP_WINDOWS, FINDINGS, DEPLOYS, SCALE_EVENTS,
        FINDING_STATE, DEAD_LETTERS, BATCHES,
    )
}  # fmt: skip

# have a commit every tick
EACH_TICK = {BATCHES.name, *(name for name, table in TABLES.items() if table.overwritten)}

__all__ = [
    "BATCHES",
    "DEAD_LETTERS",
    "DEPLOYS",
    "EACH_TICK",
    "FINDINGS",
    "FINDING_STATE",
    "GENERATIONS",
    "GROUP_EVENTS",
    "GROUP_HISTORY",
    "GROUP_MEMBERS",
    "GROUP_STATUS",
    "GROUP_WINDOWS",
    "LAG_WINDOWS",
    "PARTITION_STATUS",
    "REBALANCES",
    "SCALE_EVENTS",
    "TABLES",
    "TOPIC_WINDOWS",
    "Column",
    "Table",
]
