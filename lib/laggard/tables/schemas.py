"""Every table, declared once as plain data: Spark, Arrow and the docs are built from it.

Types are Spark DDL. A column is null when its value is not known, never 0; `null` says when that is.
Offsets and counts are records, durations are seconds, timestamps are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

from laggard.lag.status import STATUSES
from laggard.rebalance.causes import CAUSES


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

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


_CLUSTER = Column("cluster", "string", "name of the Kafka cluster, from the configuration")
_GROUP = Column("group", "string", "consumer group")
_TOPIC = Column("topic", "string", "topic")
_TOPIC_ID = Column("topic_id", "string", 'topic id the row belongs to, "" where the broker gives none')
_PARTITION = Column("partition", "int", "partition of the topic")
_BATCH_ID = Column("batch_id", "bigint", "batch that wrote the row")
_DATE = Column("date", "date", "UTC date of the time column; the partition column")
_STATUS = Column("status", "string", "ok, or why the row has no lag: " + ", ".join(STATUSES))
_AGGREGATE = Column("status", "string", "ok, partial (a committed partition is not ok) or stale")
_MEMBERSHIP = Column("status", "string", "ok, partial (some fields could not be derived) or stale")
_POLL_ID = Column("poll_id", "bigint", "poll whose log ends the row uses")

_EVIDENCE = (
    _POLL_ID,
    Column("sampled_at", "timestamp", "time of that poll, on our clock"),
    Column("commit_source_partition", "int", "partition of the offsets topic that holds the commit", "no commit"),
    Column("commit_source_offset", "bigint", "offset of the commit record there", "no commit"),
    Column("commit_timestamp", "timestamp", "when the coordinator took the commit, on its clock", "no commit"),
    Column("committed_offset", "bigint", "next record the group will read", "no commit"),
    Column("log_end_offset", "bigint", "next offset of the log", "the poll has no value"),
    Column("log_start_offset", "bigint", "first offset of the log, as newest known", "not polled yet"),
    Column(
        "ahead_records", "bigint", "records by which the commit is newer than the poll it meets", "either end unknown"
    ),
    Column("error", "string", "Kafka's error name where the poll has no value", "no error"),
)
_LAG = (
    Column(
        "lag", "bigint", "log_end_offset - committed_offset, 0 when the commit is ahead of the poll", "status is not ok"
    ),
    Column(
        "time_lag_seconds",
        "double",
        "age of the oldest record not yet committed",
        "status is not ok or history too short",
    ),
    Column("time_lag_method", "string", "caught_up or history", "no time lag"),
    Column("time_lag_error_seconds", "double", "error bound: the gap between the two polls used", "no time lag"),
    Column("time_lag_censored", "boolean", "true: older than our history, the value is a lower bound", "no time lag"),
    Column(
        "lost_records",
        "bigint",
        "log_start_offset - committed_offset where positive",
        "status is not ok or below_log_start",
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "Where each group stands on each partition now: the live view, and the state the next tick starts from.",
    ("cluster", "group", "topic", "topic_id", "partition"),
    (
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        _STATUS,
        _BATCH_ID,
        *_EVIDENCE,
        Column("current_topic_id", "string", "topic id of the poll where it is another one", "same id"),
        Column("leader_epoch", "int", "leader epoch at the commit", "the commit has none"),
        *_LAG,
        Column(
            "readable_records",
            "bigint",
            "log_end_offset - max(log_start_offset, committed_offset)",
            "status is not ok or below_log_start",
        ),
        Column("commit_age_seconds", "double", "sampled_at - commit_timestamp", "no commit"),
        Column("commit_interval_seconds", "double", "median of the newest gaps between commits", "fewer than 3 gaps"),
        Column("progressed_at", "timestamp", "time of the newest commit that moved the offset on", "none seen live"),
        Column("arrival_rate", "double", "records/s that arrived since the previous tick", "fewer than two polls"),
        Column(
            "consume_rate", "double", "records/s committed since the previous tick", "fewer than two polls, or a rewind"
        ),
        Column("commit_gaps", "array<int>", "state: newest gaps between commits in milliseconds, at most 20"),
        Column("commit_poll_id", "bigint", "state: poll the commit first met", "no commit"),
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
        Column("window_rewound_records", "bigint", "state: records the committed offset fell by"),
        Column("base_at", "timestamp", "state: last tick of the previous window", "no previous window"),
        Column("base_log_end_offset", "bigint", "state: log end there", "unknown there"),
        Column("base_committed_offset", "bigint", "state: committed offset there", "unknown there"),
    ),
    overwritten=True,
)

# What the fold of group records goes on from; rebalance/folded.py has the same fields. A held source is a topic id, in
# streams groups a subtopology.
_HELD = "array<struct<source:string,partitions:array<int>>>"
_MEMBER = (
    "struct<member_id:string,group_instance_id:string,replaced_member_id:string,client_id:string,client_host:string,"
    "rack:string,session_timeout_ms:int,rebalance_timeout_ms:int,topics:array<string>,regex:string,"
    "server_assignor:string,classic_protocols:array<string>,member_epoch:int,previous_member_epoch:int,"
    f"member_state:string,assigned:{_HELD},pending_revocation:{_HELD},is_told:boolean>"
)
_EPOCH = (
    "struct<number:int,kind:string,source_partition:int,source_offset:bigint,record_timestamp:timestamp,"
    "record_version:int,gap:int,live_read:boolean,assignor:string,joined:array<string>,left:array<string>,replaced:array<string>,"
    "assigned_at:timestamp,is_open:boolean>"
)
_FOLDED = (
    "struct<group_type:string,assignment_epoch:int,topology_epoch:int,validated_topology_epoch:int,generation:int,"
    f"record_timestamp:timestamp,was_type:string,was_number:int,epoch:{_EPOCH},members:array<{_MEMBER}>,"
    "roster:array<struct<member_id:string,group_instance_id:string,client_id:string,client_host:string>>,"
    "regexes:array<struct<regex:string,topics:array<string>>>,"
    "topic_names:array<struct<topic_id:string,topic:string>>,"
    "subtopologies:array<struct<subtopology_id:string,topics:array<string>,has_regex:boolean>>,"
    "departed:array<struct<group_instance_id:string,member_id:string>>>"
)

_TOPIC_COUNTERS = (
    "array<struct<topic:string,produced:bigint,consumed:bigint,lost:bigint,commits:bigint,noop_commits:bigint,"
    "rewinds:bigint,rewound_records:bigint,ahead:bigint>>"
)
_RECENT = "array<struct<started_at:timestamp,ended_at:timestamp,is_written:boolean,moved:int,returned:int>>"


GROUP_STATUS = Table(
    "group_status",
    "State, members and lag of each group now; counters ending in _total never fall.",
    ("cluster", "group"),
    (
        _CLUSTER,
        _GROUP,
        _AGGREGATE,
        _BATCH_ID,
        _POLL_ID,
        Column("sampled_at", "timestamp", "time of that poll, on our clock"),
        Column(
            "group_type",
            "string",
            "classic, consumer, share, streams, or simple (offsets without a group record)",
            "only offsets seen, broker silent",
        ),
        Column("protocol_type", "string", "consumer, connect, ...", "no group record"),
        Column("assignor", "string", "assignor the members agreed on", "no members, or the broker's default"),
        Column(
            "rebalance_mode",
            "string",
            "eager or cooperative, from the assignor; incremental in consumer and streams groups",
            "unknown assignor, share group, or no members",
        ),
        Column("group_state", "string", "Kafka's spelling: Stable, Empty, ... or Unknown"),
        Column("state_source", "string", "admin (the broker said so), record (derived), or none"),
        Column("state_since", "timestamp", "tick at which group_state was first seen"),
        Column("empty_since", "timestamp", "tick at which the members were first seen gone", "members, or not seen go"),
        Column("generation", "int", "generation of the newest group record", "no record of a classic group"),
        Column("group_epoch", "int", "epoch of a consumer, share or streams group", "classic, or no group record"),
        Column("assignment_epoch", "int", "epoch of its newest target assignment", "classic, or none yet"),
        Column("coordinator", "int", "broker that leads the group's offsets partition", "unknown"),
        Column(
            "offsets_partition", "int", "partition of the offsets topic that holds the group", "never seen in a record"
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
            "largest time lag over ok partitions, a lower bound where censored",
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
        Column("last_rebalance_at", "timestamp", "end of the newest logical rebalance", "none seen"),
        Column("coordinator_changed_at", "timestamp", "when another broker was first seen as coordinator", "not seen"),
        Column("partitions_added_at", "timestamp", "when a subscribed topic was first seen to grow", "not seen"),
        Column(
            "time_in_rebalance_ratio",
            "double",
            "share of the last 10 minutes inside a rebalance",
            "not watched so long",
        ),
        Column("ping_pong", "double", "moves of the last hour that took a partition back / all moves", "none moved"),
        Column("generations_total", "bigint", "generations seen to complete"),
        Column("interrupted_generations_total", "bigint", "generations that never got an assignment"),
        Column("static_restarts_absorbed_total", "bigint", "static members that came back without a rebalance"),
        Column("rebalances_total", "map<string,bigint>", "cause to logical rebalances"),
        Column("member_changes_total", "map<string,bigint>", "joined, left, replaced to members"),
        Column("partitions_moved_total", "bigint", "partitions that changed their owner in a rebalance"),
        Column("partitions_moved_avoidable_total", "bigint", "of these, those that balance did not need"),
        Column("rebalance_duration_buckets", "array<bigint>", "rebalances by rebalance_seconds, per bucket"),
        Column("rebalance_duration_sum", "double", "sum of rebalance_seconds"),
        Column("rebalance_pause_buckets", "array<bigint>", "stopped partitions by their pause, per bucket"),
        Column("rebalance_pause_sum", "double", "sum of their pauses in seconds"),
        Column("topic_counters", _TOPIC_COUNTERS, "what each topic brought the group so far"),
        Column("rebalancing_since", "timestamp", "begin of the rebalance whose row is not written yet", "none"),
        Column("watched_since", "timestamp", "first tick since when the group is read live", "catching up"),
        Column("group_record_offset", "bigint", "state: offset of the newest group record folded", "no group record"),
        Column("record_state", "string", "state: group_state by the records alone", "no group record"),
        Column(
            "is_held",
            "boolean",
            "state: the newest records end inside an operation, so members and state are those before it",
            "a row that an older job wrote",
        ),
        Column("folded", _FOLDED, "state: the group as its records leave it, not for users", "no group record"),
        Column(
            "rebalance_state", "string", "state: the rebalance under way and where the last one left the group, as JSON"
        ),
        Column("recent_rebalances", _RECENT, "state: the rebalances of the last hour, the one under way last"),
    ),
    overwritten=True,
)

LAG_WINDOWS = Table(
    "lag_windows",
    "The core history: one row per partition a group has and window; values at the window's last tick.",
    ("cluster", "group", "topic", "topic_id", "partition", "window_start"),
    (
        _DATE,
        _CLUSTER,
        _GROUP,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("window_start", "timestamp", "start of the window, by the poll's clock"),
        Column("window_end", "timestamp", "end of the window, exclusive"),
        _STATUS,
        _BATCH_ID,
        *_EVIDENCE,
        Column("ticks", "int", "ticks in the window"),
        Column("ok_ticks", "int", "ticks with status ok"),
        *_LAG,
        Column("lag_min", "bigint", "smallest lag at a tick", "no ok tick"),
        Column("lag_max", "bigint", "largest lag at a tick", "no ok tick"),
        Column(
            "produced",
            "bigint",
            "rise of the log end since the previous window's last tick",
            "no previous window, gap, or topic recreated",
        ),
        Column("consumed", "bigint", "rise of the committed offset since then", "as produced; also a rewind"),
        Column("arrival_rate", "double", "produced per second", "as produced"),
        Column("consume_rate", "double", "consumed per second", "as consumed"),
        Column("commits", "bigint", "commit records in the window; 0 is measured"),
        Column("noop_commits", "bigint", "of these, commits that repeat the offset"),
        Column("rewound_records", "bigint", "records the committed offset fell by"),
    ),
    time_column="window_start",
)

TOPIC_WINDOWS = Table(
    "topic_windows",
    "Log start, log end and arrival of each watched partition per window, whether or not a group reads it.",
    ("cluster", "topic", "topic_id", "partition", "window_start"),
    (
        _DATE,
        _CLUSTER,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("window_start", "timestamp", "start of the window, by the poll's clock"),
        Column("window_end", "timestamp", "end of the window, exclusive"),
        Column("status", "string", "ok, no_end_offset or topic_missing"),
        _BATCH_ID,
        _POLL_ID,
        Column("ticks", "int", "polls in the window"),
        Column("log_start_offset", "bigint", "first offset of the log", "no value in the window"),
        Column("log_end_offset", "bigint", "next offset of the log at the last poll", "no value in that poll"),
        Column("produced", "bigint", "rise of the log end since the previous window's last poll", "no previous window"),
        Column("arrival_rate", "double", "produced per second", "as produced"),
        Column("leader_broker", "int", "broker that leads the partition", "no leader"),
        Column("error", "string", "Kafka's error name where the poll has no value", "no error"),
    ),
    time_column="window_start",
)

GENERATIONS = Table(
    "generations",
    "One row per generation of a classic group or epoch of another one, its end and its creation included.",
    ("cluster", "group", "generation_kind", "generation", "source_offset"),
    (
        _DATE,
        _CLUSTER,
        _GROUP,
        Column("generation_kind", "string", "classic, or epoch in consumer, share and streams groups"),
        Column("generation", "int", "generation, or group epoch", "tombstone"),
        Column("source_partition", "int", "partition of the offsets topic"),
        Column("source_offset", "bigint", "offset of the group record there, of an epoch that of its begin"),
        Column(
            "record_timestamp",
            "timestamp",
            "when the coordinator wrote it: the end of a classic rebalance, the begin of an epoch",
        ),
        _MEMBERSHIP,
        _BATCH_ID,
        Column(
            "kind",
            "string",
            "sync (members have assignments), empty, create, epoch, tombstone,"
            " upgrade or downgrade (first under the other protocol)",
        ),
        Column("group_type", "string", "classic, consumer, share or streams"),
        Column("protocol_type", "string", "consumer, connect, ...", "tombstone"),
        Column("assignor", "string", "assignor the members agreed on", "no members, or the broker's default"),
        Column(
            "rebalance_mode",
            "string",
            "eager or cooperative, from the assignor; incremental in consumer and streams groups",
            "unknown assignor, share group, or no members",
        ),
        Column("leader", "string", "member that computed the assignment", "no members, or an epoch"),
        Column(
            "state_timestamp",
            "timestamp",
            "when the join phase ended: the latest begin of the rebalance",
            "old record version, before the previous generation's record, or an epoch",
        ),
        Column("sync_seconds", "double", "record_timestamp - state_timestamp", "kind is not sync"),
        Column(
            "generation_gap",
            "int",
            "generations or epochs since the previous record; above 1 some were interrupted",
            "first record, or history read before the live end",
        ),
        Column("member_count", "int", "members", "tombstone"),
        Column("static_count", "int", "members with a group_instance_id", "tombstone"),
        Column("record_version", "int", "version of the record's value", "tombstone"),
        Column("live_read", "boolean", "false: history read while catching up, compaction may have removed records"),
        Column(
            "started_low",
            "timestamp",
            "earliest begin of the rebalance: the previous record, or state_timestamp - longest rebalance timeout",
            "kind is not sync, or no state_timestamp",
        ),
        Column("leader_slot", "string", "slot of the leader", "as leader"),
        Column(
            "assignment_epoch", "int", "epoch of the target assignment when the row was made", "not an epoch, or none"
        ),
        Column(
            "assigned_at",
            "timestamp",
            "when the target assignment had reached the epoch",
            "not an epoch, or superseded before",
        ),
        Column(
            "stable_at",
            "timestamp",
            "when the last member had reached the epoch: the end of the rebalance",
            "not an epoch, superseded before, or no members",
        ),
        Column(
            "joined",
            "array<string>",
            "slots new since the generation before",
            "tombstone, downgrade, first record, or history read before the live end",
        ),
        Column("left", "array<string>", "slots gone since then", "as joined"),
        Column(
            "replaced",
            "array<string>",
            "slots that another member took over: the same slot, or a new one of the same client id pattern",
            "as joined",
        ),
        Column(
            "partitions_assigned",
            "int",
            "partitions that a member has",
            "not a consumer, not decodable, epoch superseded, or tombstone",
        ),
        Column(
            "partitions_unassigned",
            "int",
            "partitions of the subscribed topics that no member has, by the poll's count",
            "as partitions_assigned, a topic not polled, or history read before the live end",
        ),
    ),
    time_column="record_timestamp",
)

_OWNED = "array<struct<topic:string,partition:int>>"
GROUP_MEMBERS = Table(
    "group_members",
    "The members of each generation or epoch and what each was assigned.",
    ("cluster", "group", "generation_kind", "generation", "member_id", "source_offset"),
    (
        _DATE,
        _CLUSTER,
        _GROUP,
        Column("generation_kind", "string", "classic, or epoch in consumer, share and streams groups"),
        Column("generation", "int", "generation, or group epoch"),
        Column("member_id", "string", "id the coordinator gave the member"),
        Column("source_partition", "int", "partition of the offsets topic"),
        Column("source_offset", "bigint", "offset of the group record there, of an epoch that of its begin"),
        Column("record_timestamp", "timestamp", "when the coordinator wrote it, as in generations"),
        _MEMBERSHIP,
        _BATCH_ID,
        Column("group_instance_id", "string", "static member's own id", "not static"),
        Column("client_id", "string", "client id", "its record was not read"),
        Column("client_host", "string", "address the member connected from", "its record was not read"),
        Column("rack", "string", "rack the member announced", "none announced"),
        Column(
            "session_timeout_ms",
            "int",
            "session timeout",
            "the broker's setting: member does not speak classic protocol",
        ),
        Column("rebalance_timeout_ms", "int", "rebalance timeout", "old record version, or share group"),
        Column("is_leader", "boolean", "this member computed the assignment", "an epoch: the coordinator does"),
        Column(
            "topics",
            "array<string>",
            "subscribed topics, those of a resolved expression included",
            "not a consumer, not decodable, or an expression not resolved",
        ),
        Column(
            "assigned",
            _OWNED,
            "partitions it has; empty: nothing; a topic whose id is not known is null, and status partial",
            "not a consumer, or not decodable; in an epoch: not told anything yet",
        ),
        Column(
            "owned",
            _OWNED,
            "partitions it said it held when it joined",
            "subscription below version 1, not decodable, or an epoch",
        ),
        Column(
            "own_generation",
            "int",
            "generation it said it was in when it joined",
            "subscription below version 2, none, or an epoch",
        ),
        Column(
            "subscription_version",
            "int",
            "version of its subscription",
            "not a consumer or Connect worker, not decodable, or an epoch",
        ),
        Column(
            "slot", "string", "its place in the group: instance id, or client id with host and number, or member id"
        ),
        Column("replaced_member_id", "string", "member of the same instance id that it took over from", "none"),
        Column("regex", "string", "topic expression it subscribes to", "none, or classic"),
        Column(
            "pending_revocation",
            _OWNED,
            "partitions it has to give up; of a cooperative assignor: owned and no longer assigned",
            "other assignor, share group, as assigned, or as owned",
        ),
        Column("member_epoch", "int", "epoch it has reached; -2: a static member away for now", "classic, or none yet"),
        Column("previous_member_epoch", "int", "epoch it came from", "classic, or none yet"),
        Column(
            "member_state",
            "string",
            "Stable, Unrevoked… (has to revoke) or Unreleased… (waits for others), or Unknown",
            "classic, or none yet",
        ),
        Column(
            "classic_protocols",
            "array<string>",
            "assignors it supports, of a classic member in a consumer group",
            "any other member",
        ),
    ),
    time_column="record_timestamp",
)

REBALANCES = Table(
    "rebalances",
    "One row per logical rebalance, written once: generations that follow each other closely are one, and it is over"
    " when every partition it stopped has committed again, or 10 minutes after its end.",
    ("cluster", "group", "rebalance_id"),
    (
        _DATE,
        _CLUSTER,
        _GROUP,
        Column("rebalance_id", "string", "hash of its first generation: the same rebalance has the same id"),
        _MEMBERSHIP,
        _BATCH_ID,
        Column("started_low", "timestamp", "earliest begin that the records allow", "no state timestamp"),
        Column("started_high", "timestamp", "latest begin that the records allow", "no state timestamp"),
        Column(
            "started_est",
            "timestamp",
            "begin: exact for epochs, else by the last commits of those who stay",
            "no state timestamp",
        ),
        Column("ended_at", "timestamp", "record time of the last generation; of an epoch, when it was Stable"),
        Column("rebalance_seconds", "double", "ended_at - started_est", "no begin"),
        Column(
            "join_seconds", "double", "from started_est to the end of the first join phase", "no begin, or an epoch"
        ),
        Column("sync_seconds", "double", "sum of its sync phases", "no state timestamp, or an epoch"),
        Column("generations", "array<int>", "its generations or epochs"),
        Column("interrupted", "int", "generations in it that never got an assignment", "not read live"),
        Column("rebalance_mode", "string", "eager, cooperative or incremental", "unknown assignor, or no members"),
        Column("assignor", "string", "assignor of its last generation", "no members, or the broker's default"),
        Column("cause", "string", "what began it: " + ", ".join(CAUSES)),
        Column("necessity", "string", "planned, operational, unnecessary_heartbeat, unnecessary_processing or unknown"),
        Column(
            "cause_posterior",
            "map<string,double>",
            "why members left: poll_timeout, session_expiry, deploy, crash, scale_in",
            "nobody left",
        ),
        Column("joined", "array<string>", "slots that are new", "not known before"),
        Column("left", "array<string>", "slots that are gone", "not known before"),
        Column("replaced", "array<string>", "slots taken over by another member", "not known before"),
        Column("members_before", "int", "members before", "not known before"),
        Column("members_after", "int", "members after"),
        Column("leader", "string", "member that computed the assignment", "no members, or an epoch"),
        Column("straggler_slot", "string", "slot that the join phase waited for in vain", "none"),
        Column("partitions", "int", "partitions assigned after", "not comparable"),
        Column(
            "moved", "int", "partitions that changed their slot", "subscriptions differ, or an assignment is unknown"
        ),
        Column("necessary", "int", "moves that departures and balance need", "as moved"),
        Column("avoidable", "int", "moved beyond necessary", "as moved"),
        Column("moved_ratio", "double", "moved / partitions", "as moved"),
        Column("efficiency", "double", "necessary / moved", "as moved, or nothing moved"),
        Column("stateful", "boolean", "moves restore state: Kafka Streams", "no assignor"),
        Column("paused_partitions", "int", "partitions with traffic that it stopped", "none has traffic"),
        Column("pause_p50_seconds", "double", "median pause", "none has traffic, or not known so far up"),
        Column("pause_p95_seconds", "double", "95th percentile", "as the median"),
        Column("pause_max_seconds", "double", "longest pause", "as the median"),
        Column("paused_partition_seconds", "double", "sum of pauses", "a pause is unknown"),
        Column("records_delayed", "bigint", "records that arrived in the pauses", "a pause or rate is unknown"),
        Column("records_replayed", "bigint", "records committed before and read again", "a pause is unknown"),
        Column("replay_bound", "bigint", "most records read again: read since the last commits", "a rate is unknown"),
        Column("lag_before", "bigint", "sum of lag at the last commits before", "a partition is unknown"),
        Column("lag_after", "bigint", "sum of lag at the first commits after", "a partition is unknown"),
        Column(
            "unread_window_seconds",
            "double",
            "session timeout of those who left without a word",
            "nobody did, or unknown",
        ),
        Column("coordinator", "int", "broker that led the group's offsets partition", "unknown"),
        Column("live_read", "boolean", "false: read from history that compaction may have thinned out"),
        Column(
            "flags",
            "array<string>",
            "what limits the row: bootstrap, old_record, skew, partial, pause_unknown, merge_limit",
        ),
    ),
    time_column="ended_at",
)

GROUP_EVENTS = Table(
    "group_events",
    "What happened to groups and their offsets, beside rebalances.",
    ("cluster", "event_id"),
    (
        _DATE,
        _CLUSTER,
        Column("event_id", "string", "hash of group, kind and source position: the same event has the same id"),
        Column("group", "string", "consumer group"),
        Column(
            "kind",
            "string",
            "group_created, group_deleted, group_type_changed, became_empty, members_returned, offset_rewind,"
            " offset_deleted, static_replacement, static_expired, partitions_added, coordinator_changed,"
            " topic_recreated",
        ),
        Column("event_at", "timestamp", "time of the record, or of the poll where no record tells"),
        _MEMBERSHIP,
        _BATCH_ID,
        Column("topic", "string", "topic", "the whole group"),
        Column("topic_id", "string", "topic id", "the whole group"),
        Column("partition", "int", "partition", "the whole group"),
        Column("member_id", "string", "member", "not a member's event"),
        Column("slot", "string", "slot of the member", "not a member's event"),
        Column("seconds", "double", "how long: absence of a static member, time without members", "no duration"),
        Column("detail", "map<string,string>", "from and to of what changed", "nothing of the kind"),
        Column("from_offset", "bigint", "committed offset before", "not an offset event"),
        Column("to_offset", "bigint", "committed offset after", "not an offset event, or deleted"),
        Column("records", "bigint", "records rewound", "not a rewind"),
        Column("source_partition", "int", "partition of the offsets topic", "seen in a poll"),
        Column("source_offset", "bigint", "offset of the record there", "seen in a poll"),
    ),
    time_column="event_at",
)

DEAD_LETTERS = Table(
    "dead_letters",
    "Records of the offsets topic that could not be decoded, at most 1000 a batch; all are counted in batches.",
    ("cluster", "source_partition", "source_offset"),
    (
        _DATE,
        _CLUSTER,
        Column("source_partition", "int", "partition of the offsets topic"),
        Column("source_offset", "bigint", "offset of the record there"),
        Column("record_timestamp", "timestamp", "time of the record"),
        _BATCH_ID,
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
    "One row per tick, written last: it publishes the tick and names the version of every table. Gaps are rows too.",
    ("cluster", "batch_id", "kind", "gap_seq"),
    (
        _DATE,
        _CLUSTER,
        _BATCH_ID,
        Column(
            "kind",
            "string",
            "tick, backfill (still catching up: rows are stale), or gap (time or records not observed)",
        ),
        Column("gap_seq", "int", "0, or the number of the gap row within the batch"),
        Column("poll_id", "bigint", "poll of the tick", "no poll in this batch"),
        Column("polled_at", "timestamp", "time of the poll: the tick's now"),
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
        Column("table_versions", "map<string,bigint>", "table to the Delta version this tick published", "gap"),
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
        Column("gap_from", "timestamp", "last time observed before", "not a gap"),
        Column("gap_to", "timestamp", "first time observed after", "not a gap"),
        Column("gap_from_offset", "bigint", "first offset not read", "not a gap of records"),
        Column("gap_to_offset", "bigint", "first offset read after", "not a gap of records"),
        Column("gap_reason", "string", "job_down, tick_late, records_removed or offsets_topic_recreated", "not a gap"),
    ),
    time_column="polled_at",
)

TABLES = {
    table.name: table
    for table in (
        PARTITION_STATUS, GROUP_STATUS, LAG_WINDOWS, TOPIC_WINDOWS, GENERATIONS,
        GROUP_MEMBERS, REBALANCES, GROUP_EVENTS, DEAD_LETTERS, BATCHES,
    )
}  # fmt: skip
