"""Rows behind `laggard explain`: of one group, from the tables of one published batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from difflib import get_close_matches
from operator import itemgetter
from shlex import quote

from pyarrow.dataset import Expression, field

from laggard.answers.evaluated import Diagnosis, read_diagnosis
from laggard.answers.explain.then import group_of_then, group_then, partitions_then
from laggard.answers.reading import Row, published_batch, read_newest_of, read_where
from laggard.answers.text.times import When
from laggard.answers.text.words import UNKNOWN, listed
from laggard.errors import NOT_FOUND, LaggardError
from laggard.escape import escape_label
from laggard.lag.status import KNOWN_STATUSES
from laggard.rebalance.groups import generation_or_epoch
from laggard.tables.published import Batch
from laggard.tables.schema.schemas import GROUP_MEMBERS, GROUP_STATUS, PARTITION_STATUS, REBALANCES

GROUP_COLUMNS = (
    "group", "status", "group_type", "protocol_type", "group_state", "state_source", "state_since",
    "empty_since",
    "generation", "group_epoch", "coordinator", "offsets_partition", "assignor", "rebalance_mode",
    "members",
    "static_members", "idle_members", "assignment_imbalance", "topics", "lag", "lag_known",
    "max_time_lag_seconds",
    "partitions_total", "partitions_ok", "partitions_no_commit", "partitions_unknown",
    "rebalances_total",
    "member_changes_total", "interrupted_generations_total", "static_restarts_absorbed_total",
    "partitions_moved_total",
    "partitions_moved_avoidable_total", "time_in_rebalance_ratio", "ping_pong", "last_rebalance_at",
    "rebalancing_since", "watched_since", "is_held",
)  # fmt: skip
PARTITION_COLUMNS = (
    "topic", "partition", "status", "lag", "time_lag_seconds", "time_lag_error_seconds",
    "time_lag_censored",
    "committed_offset", "log_end_offset", "log_start_offset", "commit_timestamp", "lost_records",
    "readable_records",
    "verdict",
)  # fmt: skip
MEMBER_COLUMNS = (
    "generation_kind", "generation", "record_timestamp", "source_offset", "batch_id", "member_id",
    "slot",
    "client_id", "client_host", "group_instance_id", "replaced_member_id", "is_leader",
    "member_epoch", "member_state",
    "assigned", "pending_revocation",
)  # fmt: skip
REBALANCE_COLUMNS = tuple(
    name for name in REBALANCES.names if name not in {"date", "cluster", "group", "batch_id"}
)
_NEAR = 5
_FIRST = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Explained:
    """One group of a batch, or of a window of the past with the batch that closed it.

    Members and rebalances are None if the tables cannot have any.
    """

    batch: Batch
    group: Row
    partitions: list[Row]  # worst first
    members: list[Row] | None  # of the newest generation or epoch that has rows
    rebalances: list[Row] | None  # newest first
    # client and host of slots that are only an id, as far as rows were read
    names: Mapping[str, str]
    diagnosis: Diagnosis
    topic: str | None = None  # the one that is shown; None: all
    since: datetime | None = None  # from when on rebalances and findings are shown
    past: list[Row] | None = None  # findings that opened or ended since then

    @property
    def bad_partitions(self) -> list[Row]:
        """Those that have a commit and no known lag."""
        return [row for row in self.partitions if row["status"] not in KNOWN_STATUSES]


def read_group(
    root: str,
    name: str,
    limit: int,
    when: When | None = None,
    window_seconds: int = 60,
    since: When | None = None,
    of: Batch | None = None,
) -> Explained:
    """Return a group's rows now or at a moment, from the newest batch or another.

    `name` may be as `status` prints it.

    At most `limit` rebalances, none that ended before `since`.
    """
    batch = of or published_batch(root)
    if when is None:
        group = _named(
            name,
            lambda only: read_where(root, batch, GROUP_STATUS.name, GROUP_COLUMNS, only),
            batch,
        )
        only = field("group") == group["group"]
        partitions = read_where(root, batch, PARTITION_STATUS.name, PARTITION_COLUMNS, only)
    else:
        at = when(batch.polled_at)
        group = _named(name, lambda only: group_then(root, batch, at, only), batch)
        partitions = partitions_then(root, batch, group, PARTITION_COLUMNS)
        batch = replace(
            batch,
            values={
                **batch.values,
                "batch_id": group["batch_id"],
                "polled_at": group["window_end"],
            },
        )
        group = group_of_then(group, partitions, GROUP_COLUMNS)
    until = None if when is None else batch.polled_at
    members = _read_members(root, batch, group, until)
    begin = None if since is None else since(batch.polled_at)
    return Explained(
        batch,
        group,
        sorted(partitions, key=_badness),
        _newest_members(members, group),
        read_rebalances(root, batch, group, limit, until, begin),
        _names(members or ()),
        read_diagnosis(root, group["group"], batch.polled_at, window_seconds),
        since=begin,
    )


def _named(name: str, read: Callable[[Expression | None], list[Row]], batch: Batch) -> Row:
    """Return the row of a group by its exact name, else by its name as `status` prints it."""
    rows = read(field("group") == name)
    if not rows:
        names = sorted({row["group"] for row in read(None)})
        spelled = [full for full in names if escape_label(full) == name]
        if not spelled:
            raise no_such_group(name, names, batch)
        rows = read(field("group") == spelled[0])
    return rows[0]


def _read_members(root: str, batch: Batch, group: Row, until: datetime | None) -> list[Row] | None:
    """Return the rows of the dates up to the newest date with rows.

    Return None if the tables cannot have any rows.
    """
    if group["members"] is None or GROUP_MEMBERS.name not in batch.table_versions:
        return None
    rows = read_newest_of(
        root, batch, GROUP_MEMBERS.name, MEMBER_COLUMNS, group["group"], bool, until
    )
    return [row for row in rows if until is None or row["batch_id"] <= batch.batch_id]


def _newest_members(rows: list[Row] | None, group: Row) -> list[Row] | None:
    """Return the newest row of each member.

    Members that another member took over from within the epoch are left out.
    """
    if not rows or not group["members"]:
        return rows and []
    last = _last_rows(rows)
    number = generation_or_epoch(group)
    if number is not None and any(row["generation"] > number for row in last.values()):
        return []  # of an earlier group of this name
    gone = {row["replaced_member_id"] for row in last.values()}
    return [row for member_id, row in sorted(last.items()) if member_id not in gone]


def _last_rows(rows: list[Row]) -> dict[str, Row]:
    """Map each member of the newest record to its last row."""
    # the offset tells a group from an earlier one of its name, whose numbers began at 1 as well
    age = itemgetter("record_timestamp", "source_offset")
    newest = max(map(age, rows))
    return {
        row["member_id"]: row
        for row in sorted(rows, key=itemgetter("batch_id"))
        if age(row) == newest
    }


def _names(rows: Iterable[Row]) -> dict[str, str]:
    """Return names for members whose slot is the member id, with the id's end.

    The end is added because several members may share a host.
    """
    return {
        row["slot"]: f"{row['client_id']} on {(row['client_host'] or UNKNOWN).removeprefix('/')} "
        f"(…{row['slot'][-6:]})"
        for row in rows
        if row["slot"] == row["member_id"] and row["client_id"] is not None
    }


def read_rebalances(
    root: str,
    batch: Batch,
    group: Row,
    limit: int,
    until: datetime | None = None,
    since: datetime | None = None,
) -> list[Row] | None:
    """Return the newest rebalances of a group; None if the tables cannot have any."""
    if REBALANCES.name not in batch.table_versions:
        return None
    counts = group["rebalances_total"]
    wanted = limit if counts is None else min(limit, sum(counts.values()))
    if not wanted:
        return []

    begin = since or _FIRST

    def is_enough(rows: list[Row]) -> bool:
        return len(rows) >= wanted or any(row["ended_at"] < begin for row in rows)

    rows = read_newest_of(
        root, batch, REBALANCES.name, REBALANCE_COLUMNS, group["group"], is_enough, until
    )
    # beyond what the group counts are those of an earlier group of its name
    newest = sorted(rows, key=itemgetter("ended_at"), reverse=True)[:wanted]
    return [row for row in newest if row["ended_at"] >= begin]


def _badness(row: Row) -> tuple[float, int, str, int]:
    seconds, lag = row["time_lag_seconds"], row["lag"]
    if seconds is None:
        seconds = -1.0
    if lag is None:
        lag = -1
    return (-seconds, -lag, row["topic"], row["partition"])


def no_such_group(name: str, names: list[str], batch: Batch) -> LaggardError:
    """Return the error about a group that is not there, with near names."""
    unique = near_names(name, names)
    cause = f"none of the {len(names)} groups of batch {batch.batch_id} has this name"
    fix = "laggard status"
    if unique:
        cause += f"; near: {listed(unique)}"
        fix = f"laggard explain {quote(escape_label(unique[0]))}"
    return LaggardError(
        f'no group "{escape_label(name)}"', cause=cause, fix=fix, exit_code=NOT_FOUND
    )


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the few names that contain the name or differ little from it."""
    by_folded = {known.casefold(): known for known in sorted(names)}
    near = [known for folded, known in by_folded.items() if name.casefold() in folded]
    near += [by_folded[folded] for folded in get_close_matches(name.casefold(), by_folded, n=_NEAR)]
    return list(dict.fromkeys(near))[:_NEAR]
