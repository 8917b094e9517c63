"""History of groups: generations, members, rebalances and events."""

from __future__ import annotations

from laggard.rebalance.analytics.causes import CAUSES
from laggard.tables.schema.columns import BATCH_ID, CLUSTER, DATE, GROUP, MEMBERSHIP, Column, Table

GENERATIONS = Table(
    "generations",
    "One row per generation of a classic group or epoch of another one, including its creation "
    "and its end.",
    ("cluster", "group", "generation_kind", "generation", "source_offset"),
    (
        DATE,
        CLUSTER,
        GROUP,
        Column(
            "generation_kind", "string", "classic, or epoch in consumer, share and streams groups"
        ),
        Column("generation", "int", "generation, or group epoch", "tombstone"),
        Column("source_partition", "int", "partition of the offsets topic"),
        Column(
            "source_offset",
            "bigint",
            "offset of the group record there; for an epoch, of the record that began it",
        ),
        Column(
            "record_timestamp",
            "timestamp",
            "when the coordinator wrote it: the end of a classic rebalance, the begin of an epoch",
        ),
        MEMBERSHIP,
        BATCH_ID,
        Column(
            "kind",
            "string",
            "sync (members have assignments), empty, create, epoch, tombstone,"
            " upgrade or downgrade (first under the other protocol)",
        ),
        Column("group_type", "string", "classic, consumer, share or streams"),
        Column("protocol_type", "string", "consumer, connect, ...", "tombstone"),
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
        Column(
            "leader", "string", "member that computed the assignment", "no members, or an epoch"
        ),
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
        Column(
            "live_read",
            "boolean",
            "false: history read while catching up, compaction may have removed records",
        ),
        Column(
            "started_low",
            "timestamp",
            "earliest begin of the rebalance: the previous record, or state_timestamp - longest "
            "rebalance timeout",
            "kind is not sync, or no state_timestamp",
        ),
        Column("leader_slot", "string", "slot of the leader", "as leader"),
        Column(
            "assignment_epoch",
            "int",
            "epoch of the target assignment when the row was made",
            "not an epoch, or none",
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
        Column("left", "array<string>", "slots that left since then", "as joined"),
        Column(
            "replaced",
            "array<string>",
            "slots that another member took over: the same slot, or a new one of the same client "
            "id pattern",
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
        DATE,
        CLUSTER,
        GROUP,
        Column(
            "generation_kind", "string", "classic, or epoch in consumer, share and streams groups"
        ),
        Column("generation", "int", "generation, or group epoch"),
        Column("member_id", "string", "id the coordinator gave the member"),
        Column("source_partition", "int", "partition of the offsets topic"),
        Column(
            "source_offset",
            "bigint",
            "offset of the group record there; for an epoch, of the record that began it",
        ),
        Column("record_timestamp", "timestamp", "when the coordinator wrote it, as in generations"),
        MEMBERSHIP,
        BATCH_ID,
        Column("group_instance_id", "string", "group.instance.id of a static member", "not static"),
        Column("client_id", "string", "client id", "its record was not read"),
        Column(
            "client_host", "string", "address the member connected from", "its record was not read"
        ),
        Column("rack", "string", "rack the member announced", "none announced"),
        Column(
            "session_timeout_ms",
            "int",
            "session timeout",
            "the broker's setting applies: the member does not use the classic protocol",
        ),
        Column(
            "rebalance_timeout_ms", "int", "rebalance timeout", "old record version, or share group"
        ),
        Column(
            "is_leader",
            "boolean",
            "this member computed the assignment",
            "an epoch: the coordinator does",
        ),
        Column(
            "topics",
            "array<string>",
            "subscribed topics, those of a resolved expression included",
            "not a consumer, not decodable, or an expression not resolved",
        ),
        Column(
            "assigned",
            _OWNED,
            "partitions it has; empty: nothing; a topic whose id is not known is null, and "
            "status partial",
            "not a consumer, or not decodable; in an epoch: no assignment received yet",
        ),
        Column(
            "owned",
            _OWNED,
            "partitions that it reported to hold when it joined",
            "subscription below version 1, not decodable, or an epoch",
        ),
        Column(
            "own_generation",
            "int",
            "generation that it reported when it joined",
            "subscription below version 2, none, or an epoch",
        ),
        Column(
            "subscription_version",
            "int",
            "version of its subscription",
            "not a consumer or Connect worker, not decodable, or an epoch",
        ),
        Column(
            "slot",
            "string",
            "its identity in the group: instance id, or client id with host and number, or "
            "member id",
        ),
        Column(
            "replaced_member_id",
            "string",
            "member of the same instance id that it took over from",
            "none",
        ),
        Column("regex", "string", "topic expression it subscribes to", "none, or classic"),
        Column(
            "pending_revocation",
            _OWNED,
            "partitions it has to give up; of a cooperative assignor: owned and no longer assigned",
            "other assignor, share group, as assigned, or as owned",
        ),
        Column(
            "member_epoch",
            "int",
            "epoch it has reached; -2: a static member away for now",
            "classic, or none yet",
        ),
        Column("previous_member_epoch", "int", "epoch that it had before", "classic, or none yet"),
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
    "One row per logical rebalance, written once: generations that follow each other closely are "
    "one, and it is over when every partition it stopped has committed again, or 10 minutes after "
    "its end.",
    ("cluster", "group", "rebalance_id"),
    (
        DATE,
        CLUSTER,
        GROUP,
        Column(
            "rebalance_id",
            "string",
            "hash of its first generation: the same rebalance has the same id",
        ),
        MEMBERSHIP,
        BATCH_ID,
        Column(
            "started_low",
            "timestamp",
            "earliest begin that the records allow",
            "no state timestamp",
        ),
        Column(
            "started_high", "timestamp", "latest begin that the records allow", "no state timestamp"
        ),
        Column(
            "started_est",
            "timestamp",
            "begin: exact for epochs, otherwise by the last commits of the members that stay",
            "no state timestamp",
        ),
        Column(
            "ended_at",
            "timestamp",
            "record time of the last generation; of an epoch, when it was Stable",
        ),
        Column(
            "rebalance_seconds",
            "double",
            "ended_at - started_est",
            "no begin, or one after the end",
        ),
        Column(
            "join_seconds",
            "double",
            "from started_est to the end of the first join phase",
            "no begin, or an epoch",
        ),
        Column(
            "sync_seconds", "double", "sum of its sync phases", "no state timestamp, or an epoch"
        ),
        Column("generations", "array<int>", "its generations or epochs"),
        Column(
            "interrupted", "int", "generations in it that never got an assignment", "not read live"
        ),
        Column(
            "rebalance_mode",
            "string",
            "eager, cooperative or incremental",
            "unknown assignor, or no members",
        ),
        Column(
            "assignor",
            "string",
            "assignor of its last generation",
            "no members, or the broker's default",
        ),
        Column("cause", "string", "what began it: " + ", ".join(CAUSES)),
        Column(
            "necessity",
            "string",
            "planned, operational, unnecessary_heartbeat, unnecessary_processing or unknown",
        ),
        Column(
            "cause_posterior",
            "map<string,double>",
            "why members left: poll_timeout, session_expiry, deploy, crash, scale_in",
            "no member left",
        ),
        Column("joined", "array<string>", "slots that are new", "not known before"),
        Column("left", "array<string>", "slots that left", "not known before"),
        Column(
            "replaced", "array<string>", "slots taken over by another member", "not known before"
        ),
        Column("members_before", "int", "members before", "not known before"),
        Column("members_after", "int", "members after"),
        Column(
            "leader", "string", "member that computed the assignment", "no members, or an epoch"
        ),
        Column(
            "straggler_slot",
            "string",
            "slot that the join phase waited for until the timeout",
            "none",
        ),
        Column("partitions", "int", "partitions assigned after", "not comparable"),
        Column(
            "moved",
            "int",
            "partitions that changed their slot",
            "subscriptions differ, or an assignment is unknown",
        ),
        Column("necessary", "int", "moves that departures and balance need", "as moved"),
        Column("avoidable", "int", "moves beyond the necessary ones", "as moved"),
        Column("moved_ratio", "double", "moved / partitions", "as moved"),
        Column("efficiency", "double", "necessary / moved", "as moved, or nothing moved"),
        Column("stateful", "boolean", "true if moves restore state: Kafka Streams", "no assignor"),
        Column(
            "paused_partitions",
            "int",
            "partitions with traffic that it stopped",
            "none has traffic",
        ),
        Column(
            "pause_p50_seconds",
            "double",
            "median pause",
            "none has traffic, or that pause is unknown",
        ),
        Column("pause_p95_seconds", "double", "95th percentile", "as the median"),
        Column("pause_max_seconds", "double", "longest pause", "as the median"),
        Column("paused_partition_seconds", "double", "sum of pauses", "a pause is unknown"),
        Column(
            "records_delayed",
            "bigint",
            "records that arrived in the pauses",
            "a pause or rate is unknown",
        ),
        Column(
            "records_replayed",
            "bigint",
            "records committed before and read again",
            "a pause is unknown",
        ),
        Column(
            "replay_bound",
            "bigint",
            "at most so many records are read again: those read since the last commits",
            "a rate is unknown",
        ),
        Column(
            "lag_before",
            "bigint",
            "sum of lag at the last commits before",
            "a partition is unknown",
        ),
        Column(
            "lag_after", "bigint", "sum of lag at the first commits after", "a partition is unknown"
        ),
        Column(
            "unread_window_seconds",
            "double",
            "session timeout of members that left without notice",
            "no member did, or unknown",
        ),
        Column("coordinator", "int", "broker that led the group's offsets partition", "unknown"),
        Column(
            "live_read",
            "boolean",
            "false: read from history, from which compaction may have removed records",
        ),
        Column(
            "flags",
            "array<string>",
            "limits of the row: bootstrap, old_record, skew, partial, pause_unknown, merge_limit",
        ),
    ),
    time_column="ended_at",
)

GROUP_EVENTS = Table(
    "group_events",
    "Events of groups and their offsets, other than rebalances.",
    ("cluster", "event_id"),
    (
        DATE,
        CLUSTER,
        Column(
            "event_id",
            "string",
            "hash of group, kind and source position: the same event has the same id",
        ),
        Column("group", "string", "consumer group", "an event of the cluster"),
        Column(
            "kind",
            "string",
            "group_created, group_deleted, group_type_changed, became_empty, members_returned, "
            "offset_rewind, offset_skip, offset_deleted, static_replacement, static_expired, "
            "partitions_added, coordinator_changed, topic_recreated, offsets_topic_changed, "
            "quarantined, quarantine_ended",
        ),
        Column(
            "event_at",
            "timestamp",
            "time of the record, or of the poll if there is no record of it",
        ),
        MEMBERSHIP,
        BATCH_ID,
        Column("topic", "string", "topic", "the whole group"),
        Column("topic_id", "string", "topic id", "the whole group"),
        Column("partition", "int", "partition", "the whole group"),
        Column("member_id", "string", "member", "not a member's event"),
        Column("slot", "string", "slot of the member", "not a member's event"),
        Column(
            "seconds",
            "double",
            "duration: absence of a static member since its last commit (an upper bound), time "
            "without members",
            "no duration, or a member without commits within its session",
        ),
        Column(
            "detail",
            "map<string,string>",
            "from and to of what changed, with names if several can",
            "no such change",
        ),
        Column("from_offset", "bigint", "committed offset before", "not an offset event"),
        Column("to_offset", "bigint", "committed offset after", "not an offset event, or deleted"),
        Column("records", "bigint", "records rewound or skipped", "neither"),
        Column("source_partition", "int", "partition of the offsets topic", "seen in a poll"),
        Column("source_offset", "bigint", "offset of the record there", "seen in a poll"),
    ),
    time_column="event_at",
)
