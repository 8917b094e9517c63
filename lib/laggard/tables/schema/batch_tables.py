"""Tables about the job's work: its batches, and the records it could not decode."""

from __future__ import annotations

from laggard.tables.schema.columns import BATCH_ID, CLUSTER, DATE, Column, Table

JOB_DOWN = "job_down"
TICK_LATE = "tick_late"
CATCHING_UP = "catching_up"  # batches that read what had been written while nobody read
CLOCK = "clock"  # the clock was set, or the machine was suspended
RECORDS_REMOVED = "records_removed"
LOG_TRUNCATED = "log_truncated"
OFFSETS_TOPIC_RECREATED = "offsets_topic_recreated"
SOURCE_CHANGED = "source_changed"  # cluster.source is another one
GAP_REASONS = (
    JOB_DOWN, TICK_LATE, CATCHING_UP, CLOCK, RECORDS_REMOVED, LOG_TRUNCATED,
    OFFSETS_TOPIC_RECREATED, SOURCE_CHANGED,
)  # fmt: skip
# keys of the maps below: an exporter shows each from 0 on, so that the first rise is seen
OUTCOMES = ("decoded", "tombstone", "unknown", "dead")
STAGES = ("poll", "decode", "advance", "publish")
APIS = (
    "metadata", "list_offsets", "list_groups", "describe_configs", "find_coordinator",
    "describe_groups",
    "consumer_group_describe", "offset_fetch",
)  # fmt: skip

DEAD_LETTERS = Table(
    "dead_letters",
    "Records of the offsets topic that could not be decoded, at most 1000 a batch; all are "
    "counted in batches.",
    ("cluster", "source_partition", "source_offset"),
    (
        DATE,
        CLUSTER,
        Column("source_partition", "int", "partition of the offsets topic"),
        Column("source_offset", "bigint", "offset of the record there"),
        Column(
            "record_timestamp",
            "timestamp",
            "time of the record",
            "outside the calendar; date is then the tick's",
        ),
        BATCH_ID,
        Column("record_type", "int", "first two bytes of the key", "key unreadable"),
        Column("reason", "string", "what is wrong: truncated, bad_length, ..."),
        Column("field", "string", "field at which decoding stopped", "before the first field"),
        Column("key_bytes", "bigint", "size of the key", "null key"),
        Column("value_bytes", "bigint", "size of the value", "null value"),
        Column("key_hex", "string", "first 256 bytes of the key in hex", "null key"),
        Column("head_hex", "string", "first 256 bytes of the value in hex", "null value"),
        Column("sha256", "string", "SHA-256 of the value", "null value"),
    ),
    time_column="record_timestamp",
)

BATCHES = Table(
    "batches",
    "One row per tick, written last: it publishes the tick and names the version of every table. "
    "Gaps are rows too.",
    ("cluster", "batch_id", "kind", "gap_seq"),
    (
        DATE,
        CLUSTER,
        BATCH_ID,
        Column(
            "kind",
            "string",
            "tick, backfill (still catching up: rows are stale), or gap (time or records not "
            "observed)",
        ),
        Column("gap_seq", "int", "0, or the number of the gap row within the batch"),
        Column("poll_id", "bigint", "poll of the tick", "no poll in this batch"),
        Column("polled_at", "timestamp", "time of the poll: the tick's now; never goes back"),
        Column("started_at", "timestamp", "when the batch began"),
        Column("published_at", "timestamp", "when this row was written"),
        Column("checkpoint_id", "string", "identity of the checkpoint that wrote it"),
        Column("source_from", "map<int,bigint>", "offsets partition to first offset read", "gap"),
        Column("source_to", "map<int,bigint>", "offsets partition to next offset to read", "gap"),
        Column(
            "source_high_watermark",
            "map<int,bigint>",
            "offsets partition to its high watermark in the poll",
            "gap, or no poll",
        ),
        Column(
            "source_last_stable_offset",
            "map<int,bigint>",
            "offsets partition to its last stable offset in the poll",
            "gap, or no poll",
        ),
        Column(
            "source_blocked_since",
            "map<int,timestamp>",
            "offsets partitions frozen by an open transaction, and since when",
            "gap, or no poll",
        ),
        Column("records", "bigint", "records read = decoded + tombstones + unknown + dead", "gap"),
        Column("decoded", "bigint", "records decoded", "gap"),
        Column("tombstones", "bigint", "tombstones", "gap"),
        Column("unknown", "bigint", "records of a type or version not known", "gap"),
        Column("dead", "bigint", "records that could not be decoded", "gap"),
        Column(
            "table_versions",
            "map<string,bigint>",
            "table to the Delta version this tick published",
            "gap",
        ),
        Column(
            "durations_seconds",
            "map<string,double>",
            "stage to seconds: poll, advance (decoding included), publish",
            "gap",
        ),
        Column("batches_total", "bigint", "ticks published so far", "gap"),
        Column("records_total", "map<string,bigint>", "outcome to records so far", "gap"),
        Column("dead_letters_total", "map<string,bigint>", "reason to dead letters so far", "gap"),
        Column(
            "unknown_records_total",
            "array<struct<record_type:int,version:int,records:bigint>>",
            "records of unknown type or version so far",
            "gap",
        ),
        Column("polls_total", "map<string,bigint>", "api to broker requests so far", "gap"),
        Column(
            "poll_errors_total",
            "array<struct<api:string,error:string,errors:bigint>>",
            "failed broker requests so far",
            "gap",
        ),
        Column("gaps_total", "map<string,bigint>", "reason to gap rows so far", "gap"),
        Column("stage_seconds_total", "map<string,double>", "stage to seconds so far", "gap"),
        Column("gap_scope", "string", "all, or one offsets partition", "not a gap"),
        Column("gap_from", "timestamp", "last time observed before the gap", "not a gap"),
        Column("gap_to", "timestamp", "first time observed after the gap", "not a gap"),
        Column("gap_from_offset", "bigint", "first offset not read", "not a gap of records"),
        Column(
            "gap_to_offset", "bigint", "first offset read after the gap", "not a gap of records"
        ),
        Column(
            "gap_reason",
            "string",
            " or ".join([", ".join(GAP_REASONS[:-1]), GAP_REASONS[-1]]),
            "not a gap",
        ),
        Column(
            "offsets_retention_minutes",
            "bigint",
            "offsets.retention.minutes of a broker, requested every ten minutes",
            "gap, or not reported",
        ),
        Column(
            "clock",
            "struct<wall:timestamp,boot_id:string,boot_ms:bigint,awake_ms:bigint>",
            "clocks of the job's machine at the poll: wall clock (before polled_at while time is "
            "held), and time since that boot with suspended time and without it",
            "gap, or a row of an older job",
        ),
        Column(
            "windows_closed_to",
            "timestamp",
            "state: start of the newest window that has rows",
            "gap, or none yet",
        ),
        Column(
            "quarantined_groups",
            "int",
            "groups in quarantine after the tick: error ADVANCE_FAILED",
            "gap",
        ),
        Column(
            "quarantined",
            "map<string,string>",
            "at most 20 of these groups, each to the class of its exception",
            "gap",
        ),
        Column(
            "quarantines_total", "bigint", "times that a group entered quarantine so far", "gap"
        ),
        Column(
            "origin",
            "struct<cluster_id:string,offsets_topic_id:string,window_seconds:int>",
            "what was read: from it and source_to a lost checkpoint is rebuilt",
            "gap, or a row of an older job",
        ),
        Column(
            "source_log_start_offset",
            "map<int,bigint>",
            "offsets partition to its log start in the poll",
            "gap, or no poll",
        ),
        Column(
            "source_coordinator",
            "map<int,int>",
            "offsets partition to the broker that leads it, which coordinates its groups",
            "gap, or no poll",
        ),
        Column(
            "source_commits_total",
            "map<int,bigint>",
            "offsets partition to commit records read so far, of watched groups and topics",
            "gap, or a row of an older job",
        ),
        Column(
            "poll_seconds_total",
            "map<string,double>",
            "api to seconds spent waiting for answers of brokers so far",
            "gap, or a row of an older job",
        ),
        Column(
            "clock_skew_seconds",
            "double",
            "brokers' clock - the job's: the smallest difference that explains the times of this "
            "batch's commits",
            "gap, or no commit",
        ),
        Column(
            "shed_keys_total",
            "bigint",
            "new partitions refused so far, counted in each tick that saw them, because "
            "partition_status had job.max_group_partitions rows",
            "gap, or a row of an older job",
        ),
        Column(
            "reconcile_corrections_total",
            "bigint",
            "rows removed so far of groups that their coordinator did not know any more, though "
            "no tombstone was read",
            "gap, or a row of an older job",
        ),
    ),
    time_column="polled_at",
)
