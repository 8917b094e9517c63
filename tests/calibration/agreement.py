"""Where the rows of two runs differ: in what they say, or in times by more than Kafka leaves to
chance.
"""

from __future__ import annotations

from typing import Any

from calibration.members import Workload
from calibration.rows import NAMED, TIMES, Row, Rows

BATCH_SECONDS = 0.25  # a member that is in a batch answers when it is done
MODERN_HEARTBEAT_SECONDS = 5.0  # group.consumer.heartbeat.interval.ms
SYNC_SECONDS = 1.0  # the leader's batch, and what a busy machine adds

# What stays different, and why; of such partitions only the number is compared. Columns that no two
# runs have in common are not among those of `rows`.
DIFFERENCES = {
    (
        "modern",
        "group_members",
        "assigned",
    ): "which of two members alike gets which partition of one that left follows"
    " from the order of a hash of their random ids (UniformHomogeneousAssignmentBuilder)",
}


def differences(workload: Workload, real: Rows, simulated: Rows) -> list[str]:
    """A sentence for each value that is another."""
    found = []
    for table, names in NAMED.items():
        one, other = real[table], simulated[table]
        if len(one) != len(other):
            found.append(f"{table}: {len(one)} rows, {len(other)} simulated")
        for number, (row, twin) in enumerate(zip(one, other, strict=False)):
            for name in names:
                values = [_comparable(workload, table, name, each) for each in (row, twin)]
                if values[0] != values[1]:
                    found.append(f"{table} {number} {name}: {values[0]}, simulated {values[1]}")
    return found


def time_differences(workload: Workload, real: Rows, simulated: Rows) -> list[str]:
    """A sentence for each time that is further off than heartbeats, commits and batches explain."""
    found = []
    for table, names in TIMES.items():
        for number, (row, twin) in enumerate(zip(real[table], simulated[table], strict=False)):
            for name in names:
                one, other = row[name], twin[name]
                limit = tolerance_seconds(workload, name)
                if (one is None) is not (other is None) or (
                    one is not None and abs(one - other) > limit
                ):
                    found.append(
                        f"{table} {number} {name}: {one}, simulated {other}, more than {limit} s "
                        "apart"
                    )
    return found


def tolerance_seconds(workload: Workload, name: str) -> float:
    """A member hears of a rebalance within a heartbeat, answers after its batch, and commits within
    its interval.
    """
    if name == "sync_seconds":
        return SYNC_SECONDS
    settings = workload.settings
    heartbeat = settings.heartbeat_ms / 1000
    if workload.is_modern or workload.is_mixed:
        heartbeat = MODERN_HEARTBEAT_SECONDS
    return heartbeat + (settings.commit_ms or 0) / 1000 + 2 * BATCH_SECONDS


def _comparable(workload: Workload, table: str, name: str, row: Row) -> Any:
    """The value, or what of it no chance decides."""
    value = row[name]
    if (workload.name, table, name) in DIFFERENCES and value is not None:
        return len(value)
    # a partition that stays counts as stopped when its commit comes an interval late, as on a busy
    # machine
    if (
        name == "paused_partitions"
        and row["rebalance_mode"] in ("incremental", "cooperative")
        and value is not None
    ):
        return "all that moved" if value >= (row["moved"] or 0) else value
    return value
