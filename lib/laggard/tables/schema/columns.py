"""Parts of a table's declaration, and the columns that several tables share.

Types are Spark DDL. A column is null when its value is not known, never 0; `null` says when that
is. Offsets and counts are records, durations are seconds, timestamps are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from laggard.lag.status import STATUSES


@dataclass(frozen=True, slots=True)
class Column:
    """A column: Spark DDL type, meaning, and when it is null ("" means never)."""

    name: str
    type: str
    comment: str
    null: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its key, and the columns that its writers must produce, in this order."""

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    overwritten: bool = False  # the whole table is replaced each tick; otherwise rows are appended
    time_column: str = ""  # append tables are partitioned by its date
    # the diagnosis writes it after the batch, so no `batches` row names its version
    is_of_diagnosis: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(attrgetter("name"), self.columns))


CLUSTER = Column("cluster", "string", "name of the Kafka cluster, from the configuration")
GROUP = Column("group", "string", "consumer group")
TOPIC = Column("topic", "string", "topic")
TOPIC_ID = Column("topic_id", "string", 'topic id the row belongs to, "" if the broker gives none')
PARTITION = Column("partition", "int", "partition of the topic")
BATCH_ID = Column("batch_id", "bigint", "batch that wrote the row")
DATE = Column("date", "date", "UTC date of the time column; the partition column")
STATUS = Column("status", "string", "ok, or why the row has no lag: " + ", ".join(STATUSES))
AGGREGATE = Column("status", "string", "ok, partial (a committed partition is not ok) or stale")
MEMBERSHIP = Column("status", "string", "ok, partial (some fields could not be derived) or stale")
POLL_ID = Column("poll_id", "bigint", "poll whose log ends the row uses")
COMMIT_INTERVAL = Column(
    "commit_interval_seconds",
    "double",
    "median of the newest gaps between commits",
    "fewer than 3 gaps",
)
REPEAT_COMMITS = Column(
    "repeat_commits",
    "int",
    "commits since the newest progress that repeat the offset, as far as seen live",
    "no commit",
)
LEADER_BROKER = Column(
    "leader_broker", "int", "broker that leads the partition", "no leader, or the poll has no value"
)

EVIDENCE = (
    POLL_ID,
    Column("sampled_at", "timestamp", "time of that poll, by the job's clock"),
    Column(
        "commit_source_partition",
        "int",
        "partition of the offsets topic that holds the commit",
        "no commit, or it was polled",
    ),
    Column(
        "commit_source_offset",
        "bigint",
        "offset of the commit record there; for a polled commit, the poll that first saw it",
        "no commit",
    ),
    Column(
        "commit_timestamp",
        "timestamp",
        "when the coordinator accepted the commit, by its clock",
        "no commit, or it was polled",
    ),
    Column(
        "committed_offset",
        "bigint",
        "next record the group will read",
        "no commit, or a negative one",
    ),
    Column(
        "log_end_offset",
        "bigint",
        "next offset of the log; with isolation read_committed in [[policy]] the last stable "
        "offset, as no record from there on can be read yet (but at least the committed offset, up "
        "to the log's end)",
        "the poll has no value",
    ),
    Column(
        "log_start_offset", "bigint", "first offset of the log, as newest known", "not polled yet"
    ),
    Column(
        "ahead_records",
        "bigint",
        "records by which the commit is ahead of the poll",
        "either end unknown",
    ),
    Column(
        "error",
        "string",
        "Kafka's error name if the poll has no value; NEGATIVE_OFFSET for a commit that leaves the "
        "group without an offset; COMMIT_TRUNCATED for one that the offsets topic lost; "
        "COORDINATOR_NOT_AVAILABLE if the leader of its offsets partition has not answered for a "
        "window; ADVANCE_FAILED for a group in quarantine",
        "no error",
    ),
)
LAG = (
    Column(
        "lag",
        "bigint",
        "log_end_offset - committed_offset, 0 when the commit is ahead of the poll",
        "status is not ok",
    ),
    Column(
        "time_lag_seconds",
        "double",
        "age of the oldest record not yet committed",
        "status is not ok or history too short",
    ),
    Column("time_lag_method", "string", "caught_up or history", "no time lag"),
    Column(
        "time_lag_error_seconds",
        "double",
        "error bound: the gap between the two polls used",
        "no time lag",
    ),
    Column(
        "time_lag_censored",
        "boolean",
        "true: older than the recorded history, so the value is a lower bound",
        "no time lag",
    ),
    Column(
        "lost_records",
        "bigint",
        "log_start_offset - committed_offset if positive; otherwise, in lag_windows, records "
        "certainly lost in the window",
        "status is not ok or below_log_start; or, in lag_windows, the offset passed the log start "
        "and it is unknown what had been read by then",
    ),
)
