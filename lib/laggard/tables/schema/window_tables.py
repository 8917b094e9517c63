"""History by window."""

from __future__ import annotations

from laggard.tables.schema.columns import (
    AGGREGATE,
    BATCH_ID,
    CLUSTER,
    COMMIT_INTERVAL,
    DATE,
    EVIDENCE,
    GROUP,
    LAG,
    LEADER_BROKER,
    PARTITION,
    POLL_ID,
    REPEAT_COMMITS,
    STATUS,
    TOPIC,
    TOPIC_ID,
    Column,
    Table,
)
from laggard.tables.schema.status_tables import GROUP_STATUS

LAG_WINDOWS = Table(
    "lag_windows",
    "The core history: one row per partition of a group and window; values at the window's last "
    "tick.",
    ("cluster", "group", "topic", "topic_id", "partition", "window_start"),
    (
        DATE,
        CLUSTER,
        GROUP,
        TOPIC,
        TOPIC_ID,
        PARTITION,
        Column("window_start", "timestamp", "start of the window, by the poll's clock"),
        Column("window_end", "timestamp", "end of the window, exclusive"),
        STATUS,
        BATCH_ID,
        *EVIDENCE,
        Column("ticks", "int", "ticks in the window"),
        Column("ok_ticks", "int", "ticks with status ok"),
        *LAG,
        Column("lag_min", "bigint", "smallest lag at a tick", "no ok tick"),
        Column("lag_max", "bigint", "largest lag at a tick", "no ok tick"),
        Column(
            "produced",
            "bigint",
            "rise of the log end since the previous window's last tick",
            "no previous window, gap, or topic recreated",
        ),
        Column(
            "consumed",
            "bigint",
            "rise of the committed offset since then",
            "as produced; also a rewind, a rise by more than the log end, a rise that may include "
            "deleted records, or, if commits are polled, no answer in the window",
        ),
        Column("arrival_rate", "double", "produced per second", "as produced"),
        Column("consume_rate", "double", "consumed per second", "as consumed"),
        Column("commits", "bigint", "commit records in the window; 0 is measured"),
        Column("noop_commits", "bigint", "of these, commits that repeat the offset"),
        Column(
            "rewound_records",
            "bigint",
            "records below the log end that the committed offset fell by; a lower bound if polled",
        ),
        Column(
            "lag_envelope",
            "bigint",
            "smallest lag at a commit, its log end interpolated between two polls: lower edge of "
            "the sawtooth",
            "no commit in the window lies between two known log ends",
        ),
        COMMIT_INTERVAL,
        Column(
            "frozen_seconds",
            "double",
            "how long records have been unread without progress: the shorter of the time since the "
            "newest progress and time_lag_seconds; 0 without lag",
            "status is not ok, or neither is known",
        ),
        REPEAT_COMMITS,
        Column(
            "headroom_records",
            "bigint",
            "committed_offset - log_start_offset: records that retention can delete before it "
            "reaches unread ones",
            "no commit, or log start unknown",
        ),
        Column(
            "owner",
            "string",
            "member that has the partition, by the newest group record",
            "no member has it, or not known",
        ),
        Column("slot", "string", "its identity in the group, as in group_members", "as owner"),
        Column("client_id", "string", "its client id", "as owner, or its record was not read"),
        Column("client_host", "string", "address it connected from", "as client_id"),
        Column(
            "generation",
            "int",
            "generation, or epoch of the assignment, that gave it the partition",
            "as owner",
        ),
        LEADER_BROKER,
        Column(
            "matured_records",
            "bigint",
            "records that became older than slo_time_lag_seconds between the first polls of the "
            "previous window and of this one",
            "no service level, planned maintenance, or no such poll",
        ),
        Column(
            "late_records",
            "bigint",
            "of these, records not committed at this window's first tick",
            "as matured_records; no commit; or the group commits too seldom: slo < 2 commit "
            "intervals + a tick",
        ),
    ),
    time_column="window_start",
)

TOPIC_WINDOWS = Table(
    "topic_windows",
    "Log start, log end and arrival of each watched partition per window, whether or not a group "
    "reads it.",
    ("cluster", "topic", "topic_id", "partition", "window_start"),
    (
        DATE,
        CLUSTER,
        TOPIC,
        TOPIC_ID,
        PARTITION,
        Column("window_start", "timestamp", "start of the window, by the poll's clock"),
        Column("window_end", "timestamp", "end of the window, exclusive"),
        Column("status", "string", "ok, no_end_offset or topic_missing"),
        BATCH_ID,
        POLL_ID,
        Column("ticks", "int", "polls in the window"),
        Column("log_start_offset", "bigint", "first offset of the log", "no value in the window"),
        Column(
            "log_end_offset",
            "bigint",
            "next offset of the log at the last poll",
            "no value in that poll",
        ),
        Column(
            "produced",
            "bigint",
            "rise of the log end since the previous window's last poll",
            "no previous window",
        ),
        Column("arrival_rate", "double", "produced per second", "as produced"),
        LEADER_BROKER,
        Column("error", "string", "Kafka's error name if the poll has no value", "no error"),
        Column(
            "last_stable_offset",
            "bigint",
            "last stable offset: no transaction before it is open; at most log_end_offset; from "
            "the next window's first poll",
            "no value in that poll",
        ),
        Column(
            "max_record_timestamp",
            "timestamp",
            "time of the newest record, by its producer's or broker's clock; from that poll",
            "no record, or no value in that poll (brokers before 3.0)",
        ),
        Column("replicas_offline", "int", "replicas on brokers that are down", "not reported"),
        Column(
            "retention_seconds",
            "double",
            "retention.ms of the topic",
            "unlimited; or unknown, see config_known",
        ),
        Column(
            "retention_bytes",
            "bigint",
            "retention.bytes of the topic",
            "unlimited; or unknown, see config_known",
        ),
        Column(
            "cleanup_policy",
            "string",
            "cleanup.policy of the topic: delete, compact or both",
            "unknown",
        ),
        Column("config_known", "boolean", "true if laggard may read the topic's configuration"),
    ),
    time_column="window_start",
)

_OF_STATUS = (
    "sampled_at", "group_type", "protocol_type", "assignor", "rebalance_mode", "group_state",
    "state_source",
    "state_since", "empty_since", "generation", "group_epoch", "assignment_epoch", "coordinator",
    "offsets_partition",
    "members", "static_members", "idle_members", "topics", "lag", "lag_known", "partitions_total",
    "partitions_ok",
    "partitions_no_commit", "partitions_unknown", "assignment_imbalance", "time_in_rebalance_ratio",
    "ping_pong",
    "last_rebalance_at", "rebalancing_since", "coordinator_changed_at", "generations_total",
    "interrupted_generations_total", "rebalances_total", "member_changes_total",
    "partitions_moved_total",
    "partitions_moved_avoidable_total", "static_restarts_absorbed_total", "watched_since",
    "generation_at", "roster_at",
    "commit_gaps_total", "commit_gap_ms_total", "commit_gap_squares_total",
)  # fmt: skip

GROUP_HISTORY = Table(
    "group_history",
    "State, members and lag of each group per window: its row of group_status at the window's "
    "last tick.",
    ("cluster", "group", "window_start"),
    (
        DATE,
        CLUSTER,
        GROUP,
        Column("window_start", "timestamp", "start of the window, by the poll's clock"),
        Column("window_end", "timestamp", "end of the window, exclusive"),
        AGGREGATE,
        BATCH_ID,
        *(column for column in GROUP_STATUS.columns if column.name in _OF_STATUS),
        Column(
            "state_seconds",
            "map<string,double>",
            "seconds of the window in each group_state, each from the tick that saw it to the "
            "next; their sum is less than the window if it was not watched throughout",
        ),
        Column(
            "topic_partitions",
            "map<string,int>",
            "partitions of each subscribed topic by the first poll after the window; a topic not "
            "polled is left out",
            "topics unknown",
        ),
    ),
    time_column="window_start",
)
