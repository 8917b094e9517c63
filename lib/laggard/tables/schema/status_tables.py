"""Tables overwritten each tick: the live view, and the state from which the next tick starts."""

from __future__ import annotations

from laggard.lag.burrow import COMMITS, VERDICTS
from laggard.tables.schema.columns import (
    AGGREGATE,
    BATCH_ID,
    CLUSTER,
    COMMIT_INTERVAL,
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

PARTITION_STATUS = Table(
    "partition_status",
    "Position of each group on each partition now: the live view, and the state that the next "
    "tick starts from.",
    ("cluster", "group", "topic", "topic_id", "partition"),
    (
        CLUSTER,
        GROUP,
        TOPIC,
        TOPIC_ID,
        PARTITION,
        STATUS,
        BATCH_ID,
        *EVIDENCE,
        Column(
            "answered_at",
            "timestamp",
            "tick at which the coordinator last gave the offsets of the group (cluster.source = "
            '"admin")',
            "the offsets topic is read, or no answer yet",
        ),
        Column(
            "current_topic_id", "string", "topic id of the poll if it is another one", "same id"
        ),
        Column("leader_epoch", "int", "leader epoch at the commit", "the commit has none"),
        *LAG,
        Column(
            "readable_records",
            "bigint",
            "log_end_offset - max(log_start_offset, committed_offset)",
            "status is not ok or below_log_start",
        ),
        Column("commit_age_seconds", "double", "sampled_at - commit_timestamp", "no commit"),
        COMMIT_INTERVAL,
        Column(
            "progressed_at",
            "timestamp",
            "time of the newest commit that moved the offset on, or of the poll that saw it",
            "none seen live",
        ),
        REPEAT_COMMITS,
        LEADER_BROKER,
        Column(
            "arrival_rate",
            "double",
            "records/s that arrived since the previous tick",
            "fewer than two polls",
        ),
        Column(
            "consume_rate",
            "double",
            "records/s committed since the previous tick",
            "fewer than two polls, or a rewind",
        ),
        Column(
            "verdict",
            "string",
            f"Burrow's view of the newest {COMMITS} commits: {', '.join(VERDICTS)}",
            "status is not ok, or fewer commits seen live",
        ),
        Column(
            "rated",
            "struct<commits:int,since_rewind:int,since_level:int,since_fall:int,lag:bigint>",
            f"state: of at most {COMMITS} commits those seen, those since the offset fell, since "
            "the lag was 0 and since it fell, and the lag at the newest",
            "a row that an older job wrote",
        ),
        Column(
            "rewound_from",
            "bigint",
            f"state: committed offset that a rewind among the newest {COMMITS} commits left",
            "none, or a commit has reached it again",
        ),
        Column(
            "pace",
            "struct<rate:double,jump_from:bigint,jump_to:bigint,jump_seconds:double,"
            "jump_excess:bigint,owed:bigint,"
            "lost:bigint>",
            "state: records/s that the group read while it was behind; its fastest jump of the "
            "window, until the log start is polled; records that are lost and were counted as "
            "consumed; and those lost in the window",
            "a row that an older job wrote",
        ),
        Column(
            "commit_gaps",
            "array<int>",
            "state: newest gaps between commits in milliseconds, at most 20",
        ),
        Column(
            "commit_poll_id",
            "bigint",
            "state: first poll that the commit was compared with",
            "no commit",
        ),
        Column(
            "end_points",
            "array<struct<log_end_offset:bigint,at:timestamp>>",
            "state: log ends seen since the committed offset, at most 32",
        ),
        Column("window_start", "timestamp", "state: window the accumulators belong to"),
        Column("window_ticks", "int", "state: ticks in the window"),
        Column("window_ok_ticks", "int", "state: ticks with status ok"),
        Column("window_lag_min", "bigint", "state: smallest lag in the window", "no ok tick"),
        Column("window_lag_max", "bigint", "state: largest lag in the window", "no ok tick"),
        Column("window_commits", "bigint", "state: commits in the window"),
        Column("window_noop_commits", "bigint", "state: commits that repeat the offset"),
        Column(
            "window_rewound_records",
            "bigint",
            "state: records the committed offset fell by; a lower bound if polled",
        ),
        Column(
            "window_lag_envelope",
            "bigint",
            "state: smallest lag at a commit of the window",
            "no commit so far",
        ),
        Column(
            "base_at", "timestamp", "state: last tick of the previous window", "no previous window"
        ),
        Column("base_answered_at", "timestamp", "state: answered_at there", "as answered_at"),
        Column("base_log_end_offset", "bigint", "state: log end there", "unknown there"),
        Column("base_committed_offset", "bigint", "state: committed offset there", "unknown there"),
        Column(
            "probe_offset",
            "bigint",
            "state: first offset not older than the service level",
            "none, or not reported",
        ),
        Column(
            "window_matured_records",
            "bigint",
            "state: matured_records of the window",
            "as in lag_windows",
        ),
        Column(
            "window_late_records",
            "bigint",
            "state: late_records of the window",
            "as in lag_windows",
        ),
    ),
    overwritten=True,
)

# What the fold of group records goes on from; rebalance/membership/folded.py has the same fields.
# A held source is a topic id, in streams groups a subtopology.
_HELD = "array<struct<source:string,partitions:array<int>>>"
_MEMBER = (
    "struct<member_id:string,group_instance_id:string,replaced_member_id:string,client_id:string,"
    "client_host:string,"
    "rack:string,session_timeout_ms:int,rebalance_timeout_ms:int,topics:array<string>,regex:string,"
    "server_assignor:string,classic_protocols:array<string>,member_epoch:int,"
    "previous_member_epoch:int,"
    f"member_state:string,assigned:{_HELD},pending_revocation:{_HELD},is_told:boolean>"
)
_EPOCH = (
    "struct<number:int,kind:string,source_partition:int,source_offset:bigint,"
    "record_timestamp:timestamp,"
    "record_version:int,gap:int,live_read:boolean,assignor:string,joined:array<string>,"
    "left:array<string>,replaced:array<string>,"
    "assigned_at:timestamp,is_open:boolean>"
)
_FOLDED = (
    "struct<group_type:string,assignment_epoch:int,topology_epoch:int,"
    "validated_topology_epoch:int,generation:int,"
    f"record_timestamp:timestamp,was_type:string,was_number:int,epoch:{_EPOCH},"
    f"members:array<{_MEMBER}>,"
    "roster:array<struct<member_id:string,group_instance_id:string,client_id:string,"
    "client_host:string>>,"
    "regexes:array<struct<regex:string,topics:array<string>>>,"
    "topic_names:array<struct<topic_id:string,topic:string>>,"
    "subtopologies:array<struct<subtopology_id:string,topics:array<string>,has_regex:boolean>>,"
    "departed:array<struct<group_instance_id:string,member_id:string>>>"
)

_TOPIC_COUNTERS = (
    "array<struct<topic:string,produced:bigint,consumed:bigint,lost:bigint,commits:bigint,"
    "noop_commits:bigint,"
    "rewinds:bigint,rewound_records:bigint,ahead:bigint>>"
)
_OUTCOME_COUNTERS = "array<struct<topic:string,skips:bigint,matured:bigint,late:bigint>>"
_RECENT = (
    "array<struct<started_at:timestamp,ended_at:timestamp,is_written:boolean,moved:int,"
    "returned:int>>"
)


GROUP_STATUS = Table(
    "group_status",
    "State, members and lag of each group now; counters ending in _total never fall.",
    ("cluster", "group"),
    (
        CLUSTER,
        GROUP,
        AGGREGATE,
        BATCH_ID,
        POLL_ID,
        Column("sampled_at", "timestamp", "time of that poll, by the job's clock"),
        Column(
            "group_type",
            "string",
            "classic, consumer, share, streams, or simple (offsets without a group record)",
            "only offsets seen, broker silent",
        ),
        Column("protocol_type", "string", "consumer, connect, ...", "no group record"),
        Column(
            "assignor",
            "string",
            "assignor the members agreed on",
            "no members, or the broker's default",
        ),
        Column(
            "rebalance_mode",
            "string",
            "eager or cooperative, from the assignor; incremental in consumer and streams groups",
            "unknown assignor, share group, or no members",
        ),
        Column("group_state", "string", "Kafka's spelling: Stable, Empty, ... or Unknown"),
        Column("state_source", "string", "admin (the broker said so), record (derived), or none"),
        Column(
            "state_since",
            "timestamp",
            "tick since which group_state is known to hold: no other state or generation since, "
            "and no gap",
        ),
        Column(
            "empty_since",
            "timestamp",
            "first tick at which the group had no members",
            "it has members, or their departure was not seen",
        ),
        Column(
            "generation",
            "int",
            "generation of the newest group record",
            "no record of a classic group",
        ),
        Column(
            "group_epoch",
            "int",
            "epoch of a consumer, share or streams group",
            "classic, or no group record",
        ),
        Column(
            "assignment_epoch",
            "int",
            "epoch of its newest target assignment",
            "classic, or none yet",
        ),
        Column("coordinator", "int", "broker that leads the group's offsets partition", "unknown"),
        Column(
            "offsets_partition",
            "int",
            "partition of the offsets topic that holds the group",
            "not seen in any record",
        ),
        Column("members", "int", "members, by the newest group records", "no group record"),
        Column("static_members", "int", "members with a group_instance_id", "no group record"),
        Column(
            "idle_members",
            "int",
            "members without partitions, in streams groups without an active task",
            "no group record, or not decodable",
        ),
        Column(
            "topics",
            "array<string>",
            "subscribed topics, those of resolved expressions included, sorted",
            "no group record, not decodable, or an expression not resolved",
        ),
        Column("lag", "bigint", "sum over partitions", "partial"),
        Column("lag_known", "bigint", "sum over ok partitions", "no ok partition"),
        Column(
            "max_time_lag_seconds",
            "double",
            "largest time lag over ok partitions, a lower bound if censored",
            "none known",
        ),
        Column("partitions_total", "int", "partitions with a row in partition_status"),
        Column("partitions_ok", "int", "partitions with status ok"),
        Column("partitions_no_commit", "int", "assigned or subscribed partitions never committed"),
        Column("partitions_unknown", "int", "all others"),
        Column(
            "assignment_imbalance",
            "double",
            "most partitions of one member / mean over members",
            "no partition assigned",
        ),
        Column(
            "last_rebalance_at", "timestamp", "end of the newest logical rebalance", "none seen"
        ),
        Column(
            "generation_at",
            "timestamp",
            "record_timestamp of its newest row in generations",
            "no row yet",
        ),
        Column(
            "roster_at",
            "timestamp",
            "record_timestamp of its newest rows in group_members",
            "as generation_at",
        ),
        Column(
            "coordinator_changed_at",
            "timestamp",
            "when another broker was first seen as coordinator",
            "not seen",
        ),
        Column(
            "partitions_added_at",
            "timestamp",
            "when a subscribed topic was first seen with more partitions",
            "not seen",
        ),
        Column(
            "time_in_rebalance_ratio",
            "double",
            "share of the last 10 minutes inside a rebalance",
            "not watched for 10 minutes",
        ),
        Column(
            "ping_pong",
            "double",
            "moves of the last hour that took a partition back / all moves",
            "none moved",
        ),
        Column("generations_total", "bigint", "generations seen to complete"),
        Column(
            "interrupted_generations_total", "bigint", "generations that never got an assignment"
        ),
        Column(
            "static_restarts_absorbed_total",
            "bigint",
            "static members that rejoined without a rebalance",
        ),
        Column("rebalances_total", "map<string,bigint>", "cause to logical rebalances"),
        Column("member_changes_total", "map<string,bigint>", "joined, left, replaced to members"),
        Column(
            "partitions_moved_total", "bigint", "partitions that changed their owner in a rebalance"
        ),
        Column(
            "partitions_moved_avoidable_total",
            "bigint",
            "of these, moves that balance did not need",
        ),
        Column(
            "rebalance_duration_buckets",
            "array<bigint>",
            "rebalances by rebalance_seconds, per bucket",
        ),
        Column("rebalance_duration_sum", "double", "sum of rebalance_seconds"),
        Column(
            "rebalance_pause_buckets",
            "array<bigint>",
            "stopped partitions by their pause, per bucket",
        ),
        Column("rebalance_pause_sum", "double", "sum of their pauses in seconds"),
        Column(
            "topic_counters",
            _TOPIC_COUNTERS,
            "counters of each topic of the group so far; rewinds and rewound_records are lower "
            "bounds if polled",
        ),
        Column(
            "outcome_counters",
            _OUTCOME_COUNTERS,
            "per topic so far: committed offsets that skipped unread records, records that reached "
            "the age of slo_time_lag_seconds, and those of them not committed by then",
        ),
        Column(
            "commit_gaps_total",
            "bigint",
            "gaps between two commits of a partition, seen live and under 6 hours",
        ),
        Column("commit_gap_ms_total", "bigint", "sum of these gaps in milliseconds"),
        Column(
            "commit_gap_squares_total",
            "bigint",
            "sum of their squares in ms²: how even the commits are",
        ),
        Column(
            "rebalancing_since",
            "timestamp",
            "begin of the rebalance whose row is not written yet",
            "none",
        ),
        Column(
            "watched_since",
            "timestamp",
            "first tick since which the group is read live, without a window that no tick observed",
            "catching up",
        ),
        Column(
            "shed_keys",
            "bigint",
            "at least so many partitions of the group have no row, as the table was full: above "
            "0 its lag is partial",
            "a row that an older job wrote",
        ),
        Column(
            "window_state_seconds",
            "map<string,double>",
            "state: seconds of the window so far in each group_state",
        ),
        Column(
            "group_record_offset",
            "bigint",
            "state: offset of the newest group record folded",
            "no group record",
        ),
        Column(
            "record_state", "string", "state: group_state by the records alone", "no group record"
        ),
        Column(
            "is_held",
            "boolean",
            "state: the newest records end inside an operation, so members and state are those "
            "before it",
            "a row that an older job wrote",
        ),
        Column(
            "refused",
            "array<struct<topic:string,partition:int>>",
            "state: partitions of shed_keys with a commit, up to 1000; an empty topic stands for "
            "more",
            "a row that an older job wrote",
        ),
        Column(
            "folded",
            _FOLDED,
            "state: the group as its records leave it, not for users",
            "no group record",
        ),
        Column(
            "rebalance_state",
            "string",
            "state: the rebalance under way and where the last one left the group, as JSON",
            "none yet, or a row that an older job wrote",
        ),
        Column(
            "recent_rebalances",
            _RECENT,
            "state: the rebalances of the last hour, the one under way last",
        ),
        Column(
            "error",
            "string",
            "ADVANCE_FAILED: the group's tick failed, so it is in quarantine and its rows are the "
            "last that are known; otherwise Kafka's error name if the request for the group's "
            "offsets failed",
            "no error",
        ),
    ),
    overwritten=True,
)
