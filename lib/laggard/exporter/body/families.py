"""Every metric declared once: name, type, labels, and a HELP with the formula and column."""

from __future__ import annotations

from dataclasses import dataclass

from laggard.diagnosis.signals import significance, trend
from laggard.diagnosis.verdict.reasons import VERDICTS
from laggard.lag.burrow import VERDICTS as VIEWS
from laggard.rebalance.analytics.counters import SECOND_BOUNDS as REBALANCE_BOUNDS
from laggard.tables.freshness import MAX_WINDOWS_BEHIND

C = ("cluster",)
O = (*C, "offsets_partition")  # noqa: E741 - the catalogue's letter
G = (*C, "group")
T = (*G, "topic")
P = (*T, "partition")
K = (*C, "topic")
KP = (*K, "partition")

RECORD_BOUNDS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
SECOND_BOUNDS = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)
GROUP_STATES = (
    "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling",
    "Empty", "Dead", "NotReady", "Unknown",
)  # fmt: skip
SHAPES = (
    significance.NONE,
    significance.SINGLE,
    significance.SPREAD,
    significance.MIXED,
    significance.CONCENTRATED,
)
TRENDS = (trend.GROWING, trend.FLAT, trend.DRAINING, trend.SAWTOOTH, trend.ABSTAIN)
CHANGES = ("joined", "left", "replaced")
REASONS = (
    "starting", "broker_unreachable", "offsets_topic_missing", "catching_up", "stale",
    "auth", "table_missing", "table_unreadable", "clock", "duplicate_cluster",
)  # fmt: skip

# shedding levels, in the order in which they go when the body is over `max_series`
LEVELS = (
    "compat",
    "partition_offsets",
    "partition_lag",
    "distributions",
    "histograms",
    "shape",
    "topics",
    "groups",
)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric as Prometheus sees it; `level` says how early it is shed."""

    name: str
    type: str
    labels: tuple[str, ...]
    help: str
    level: str = ""
    states: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def base_name(self) -> str:
        """Name of the family in OpenMetrics, which keeps the suffix for the sample."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.type, "")
        return self.name.removesuffix(suffix)


_WHILE_FRESH = f"; absent while the rules are more than {MAX_WINDOWS_BEHIND} windows behind."


def _gauge(name: str, labels: tuple[str, ...], text: str, level: str = "") -> Family:
    return Family(f"laggard_{name}", "gauge", labels, text, level)


def _evaluated(
    name: str, labels: tuple[str, ...], text: str, level: str, states: tuple[str, ...] = ()
) -> Family:
    """Declare a metric of the newest evaluated window, exported while that is recent."""
    kind, text = "stateset" if states else "gauge", text.removesuffix(".") + _WHILE_FRESH
    return Family(f"laggard_{name}", kind, labels, text, level, states)


def _counter(name: str, labels: tuple[str, ...], text: str, level: str = "") -> Family:
    return Family(f"laggard_{name}", "counter", labels, text, level)


# fmt: off
# A. Lag now
GROUP_LAG = _gauge("group_lag_records", T,
    "Sum of partition_status.lag over the topic's partitions; absent while a partition that has "
    "a commit is not ok.", "topics")
GROUP_LAG_KNOWN = _gauge("group_lag_known_records", T, "Sum of partition_status.lag over ok "
    "partitions, a lower bound.", "topics")
GROUP_MAX_LAG = _gauge("group_max_lag_records", T, "Maximum of partition_status.lag over ok "
    "partitions; do not sum.", "topics")
GROUP_READABLE = _gauge("group_readable_records", T,
    "Sum of partition_status.readable_records over below_log_start partitions: records that can "
    "still be read, which no lag includes.", "topics")
GROUP_UNCOMMITTED = _gauge("group_uncommitted_records", T,
    "Sum of partition_status.log_end_offset - log_start_offset over no_commit partitions: upper "
    "bound of unread data, not lag; absent while an end is unknown.", "topics")
GROUP_LAG_DISTRIBUTION = Family("laggard_group_lag_distribution_records", "gaugehistogram", T,
    "Number of ok partitions by partition_status.lag, now; no rate() needed.", "distributions",
    bounds=RECORD_BOUNDS)
GROUP_TIME_LAG = _gauge("group_time_lag_seconds", T,
    "Maximum of partition_status.time_lag_seconds, the age of the oldest record not yet "
    "committed; absent while partial, censored or not known; do not sum.", "topics")
GROUP_TIME_LAG_KNOWN = _gauge("group_time_lag_known_seconds", T,
    "Maximum of partition_status.time_lag_seconds over ok partitions, a lower bound if censored; "
    "do not sum.", "topics")
GROUP_TIME_LAG_CENSORED = _gauge("group_time_lag_censored", T,
    "1 if partition_status.time_lag_censored is true for any ok partition: its oldest unread "
    "record is older than the recorded history; do not sum.", "topics")
GROUP_TIME_LAG_ERROR = _gauge("group_time_lag_error_seconds", T,
    "partition_status.time_lag_error_seconds of the partition that gives the maximum; do not sum.",
    "topics")
GROUP_TIME_LAG_DISTRIBUTION = Family("laggard_group_time_lag_distribution_seconds",
    "gaugehistogram", T,
    "Number of ok partitions by partition_status.time_lag_seconds, now; no rate() needed.",
    "distributions", bounds=SECOND_BOUNDS)
GROUP_PARTITIONS = _gauge("group_partitions", (*T, "status"), "Number of partitions by "
    "partition_status.status.", "topics")
GROUP_VERDICT = Family("laggard_group_verdict", "stateset", T,
    "Worst partition_status.verdict, which follows Burrow's rules over the newest 10 commits, "
    "for people who come from Burrow; exactly one is 1; ok only if every partition that has a "
    "commit has a verdict; absent while unknown, as Burrow has no state for that.", "topics", VIEWS)
GROUP_RETENTION_USED = _gauge("group_retention_used_ratio", T,
    "Maximum of partition_status.lag / (log_end_offset - log_start_offset) over ok partitions; "
    "absent for an empty log; do not sum.", "topics")
GROUP_OLDEST_COMMIT = _gauge("group_oldest_commit_timestamp_seconds", T,
    "Minimum of partition_status.commit_timestamp over partitions with lag > 0; do not sum.",
    "topics")
GROUP_NEWEST_COMMIT = _gauge("group_newest_commit_timestamp_seconds", T,
    "Maximum of partition_status.commit_timestamp over all partitions; do not sum.", "topics")
PARTITION_LAG = _gauge("partition_lag_records", P, "partition_status.lag of an exported "
    "partition.", "partition_lag")
PARTITION_TIME_LAG = _gauge("partition_time_lag_seconds", P,
    "partition_status.time_lag_seconds of an exported partition, a lower bound if censored; do "
    "not sum.", "partition_lag")
PARTITION_STATUS = _gauge("partition_status", (*P, "status"), "1 for partition_status.status of "
    "an exported partition.", "partition_lag")
PARTITION_COMMITTED = _gauge("partition_committed_offset", P, "partition_status.committed_offset "
    "of an exported partition; do not sum.", "partition_offsets")
PARTITION_COMMIT_TIMESTAMP = _gauge("partition_commit_timestamp_seconds", P,
    "partition_status.commit_timestamp of an exported partition; do not sum.", "partition_offsets")
PARTITION_LOG_END = _gauge("partition_log_end_offset", KP, "partition_status.log_end_offset: the "
    "poll's answer; do not sum.", "partition_offsets")
PARTITION_LOG_START = _gauge("partition_log_start_offset", KP,
    "partition_status.log_start_offset: the newest known answer; do not sum.", "partition_offsets")

# B. Shape and forecast, of the newest evaluated window
GROUP_LAG_FLOOR = _evaluated("group_lag_floor_records", T,
    "group_windows.floor_records, the sum of 2 x arrival rate x commit interval + 1: lag below "
    "it comes from the commit interval.", "topics")
GROUP_LAG_GINI = _evaluated("group_lag_gini_ratio", T,
    "group_windows.gini: inequality of the lag at commits over partitions, sum((2i - n - 1) x "
    "lag_i) / ((n - 1) x sum(lag)) in ascending order; do not sum.", "shape")
GROUP_LAG_TOP_DECILE = _evaluated("group_lag_top_decile_share_ratio", T,
    "group_windows.top_decile_share: share of the lag that the worst tenth of the partitions, "
    "rounded up, has; do not sum.", "shape")
GROUP_LAG_EFFECTIVE = _evaluated("group_lag_effective_partitions", T,
    "group_windows.n_eff: sum(lag)^2 / sum(lag^2), how many partitions carry the lag; do not sum.",
    "shape")
GROUP_ARRIVAL_SHAPE = _evaluated("group_arrival_shape", T,
    "group_windows.arrival_shape: how arrivals are distributed over partitions; skew shows here "
    "before it shows in lag; exactly one is 1.", "shape", SHAPES)
GROUP_LAG_SHAPE = _evaluated("group_lag_shape", T,
    "group_windows.shape: how lag is distributed over partitions, once the shape has lasted; "
    "exactly one is 1.", "shape", SHAPES)
GROUP_LAG_TREND = _evaluated("group_lag_trend", T,
    "group_windows.trend: Theil-Sen trend of the lag at commits, abstain if there is not enough "
    "history to decide; exactly one is 1.", "shape", TRENDS)
GROUP_LAG_SLOPE = _evaluated("group_lag_slope_records_per_second", T,
    "group_windows.slope: Theil-Sen slope of the lag at commits; absent if the trend abstains.",
    "shape")
GROUP_DRAIN = _evaluated("group_drain_seconds", T,
    "group_windows.drain_seconds: lag / (consume rate - arrival rate), 0 below the floor, +Inf "
    "if never at the current rate; do not sum.", "shape")
GROUP_DRAIN_AT_CAPACITY = _evaluated("group_drain_at_capacity_seconds", T,
    "Experimental: group_windows.drain_at_capacity_seconds, lag / (members x capacity - arrival "
    "rate); absent if the capacity is unknown or not enough; do not sum.", "shape")
GROUP_SLO_BREACH = _evaluated("group_slo_breach_seconds", T,
    "Experimental: group_windows.slo_breach_seconds, time until time lag reaches the service "
    "level; absent without one and without a significant slope; do not sum.", "shape")
GROUP_LOSS = _evaluated("group_loss_seconds", T,
    "group_windows.loss_seconds: time until retention reaches the first unread record, +Inf if "
    "never at the current rate; do not sum.", "shape")

# C. Flow counters
GROUP_PRODUCED = _counter("group_produced_records_total", T,
    "Rise of the log end while the group reads the topic: produced of "
    "group_status.topic_counters.", "topics")
GROUP_CONSUMED = _counter("group_consumed_records_total", T,
    "Rise of the committed offset, which a rewind does not reduce: consumed of "
    "group_status.topic_counters.", "topics")
GROUP_LOST = _counter("group_lost_records_total", T,
    "Records that were certainly deleted before they were read, a lower bound: lost of "
    "group_status.topic_counters.", "topics")
GROUP_COMMITS = _counter("group_commits_total", T, "Commit records: commits of "
    "group_status.topic_counters.", "topics")
GROUP_NOOP_COMMITS = _counter("group_noop_commits_total", T, "Commit records that repeat the "
    "offset: noop_commits of group_status.topic_counters.", "topics")
GROUP_REWINDS = _counter("group_rewinds_total", T, "Times that a committed offset fell: rewinds "
    "of group_status.topic_counters.", "topics")
GROUP_REWOUND = _counter("group_rewound_records_total", T, "Records by which committed offsets "
    "fell: rewound_records of group_status.topic_counters.", "topics")
GROUP_AHEAD = _counter("group_ahead_total", T,
    "Partitions per tick with partition_status.ahead_records > 0, a commit newer than the poll "
    "it is compared with: ahead of group_status.topic_counters.", "topics")

GROUP_SKIPS = _counter("group_skips_total", T,
    "Times that a committed offset jumped over unread records: skips of "
    "group_status.outcome_counters.", "topics")
GROUP_MATURED = _counter("group_slo_matured_records_total", T,
    "Records that reached the age of slo_time_lag_seconds, if it is known whether they were "
    "committed by then: matured of group_status.outcome_counters; absent without a service level.",
    "topics")
GROUP_LATE = _counter("group_slo_late_records_total", T,
    "Matured records that were not committed by then: late of group_status.outcome_counters; "
    "absent without a service level.", "topics")

# D. State and rebalances
GROUP_STATE = Family("laggard_group_state", "stateset", G, "group_status.group_state; exactly one "
    "is 1.", "groups", GROUP_STATES)
GROUP_INFO = Family("laggard_group_info", "info",
    (*G, "group_type", "protocol_type", "assignor", "rebalance_mode", "coordinator"),
    "group_status.group_type, protocol_type, assignor, rebalance_mode and coordinator, empty if "
    "unknown.", "groups")
GROUP_MEMBERS = _gauge("group_members", G, "group_status.members of the newest group "
    "record.", "groups")
GROUP_IDLE_MEMBERS = _gauge("group_idle_members", G, "group_status.idle_members: members without "
    "partitions.", "groups")
GROUP_STATIC_MEMBERS = _gauge("group_static_members", G, "group_status.static_members: members "
    "with a group_instance_id.", "groups")
GROUP_IMBALANCE = _gauge("group_assignment_imbalance_ratio", G,
    "group_status.assignment_imbalance: most partitions of one member / mean over members; do "
    "not sum.", "groups")
GROUP_GENERATION = _gauge("group_generation", G,
    "group_status.generation of the newest group record, or group_status.group_epoch of a modern "
    "group; do not sum.", "groups")
GROUP_GENERATIONS = _counter("group_generations_total", G, "group_status.generations_total: "
    "generations seen to complete.", "groups")
GROUP_INTERRUPTED = _counter("group_interrupted_generations_total", G,
    "group_status.interrupted_generations_total: generations that never got an assignment.",
    "groups")
GROUP_STATIC_RESTARTS = _counter("group_static_restarts_absorbed_total", G,
    "group_status.static_restarts_absorbed_total: static members that rejoined without a "
    "rebalance.", "groups")
GROUP_REBALANCES = _counter("group_rebalances_total", (*G, "cause"),
    "group_status.rebalances_total: logical rebalances by cause.", "groups")
GROUP_MEMBER_CHANGES = _counter("group_member_changes_total", (*G, "change"),
    "group_status.member_changes_total: members that joined, left or were replaced in rebalances.",
    "groups")
GROUP_REBALANCE_DURATION = Family("laggard_group_rebalance_duration_seconds", "histogram", G,
    "Logical rebalances by rebalances.rebalance_seconds, end - estimated start, from "
    "group_status.rebalance_duration_buckets.", "histograms", bounds=REBALANCE_BOUNDS)
GROUP_REBALANCE_PAUSE = Family("laggard_group_rebalance_pause_seconds", "histogram", G,
    "Stopped partitions by first commit after - last commit before - commit interval, at least 0,"
    " from group_status.rebalance_pause_buckets.", "histograms", bounds=REBALANCE_BOUNDS)
GROUP_REBALANCE_RATIO = _gauge("group_time_in_rebalance_ratio", G,
    "group_status.time_in_rebalance_ratio: share of the last 10 minutes inside a rebalance; do "
    "not sum.", "groups")
GROUP_LAST_REBALANCE = _gauge("group_last_rebalance_timestamp_seconds", G,
    "group_status.last_rebalance_at: end of the newest logical rebalance; do not sum.", "groups")
GROUP_MOVED = _counter("group_partitions_moved_total", G, "group_status.partitions_moved_total: "
    "partitions that changed their owner in a rebalance.", "groups")
GROUP_MOVED_AVOIDABLE = _counter("group_partitions_moved_avoidable_total", G,
    "group_status.partitions_moved_avoidable_total: moves that neither departures nor balance "
    "needed.", "groups")
GROUP_PING_PONG = _gauge("group_ping_pong_ratio", G,
    "Experimental: group_status.ping_pong, moves of the last hour that took a partition back / "
    "all moves; do not sum.", "groups")

GROUP_OFFSETS_EXPIRY = _gauge("group_offsets_expiry_timestamp_seconds", G,
    "Earliest time at which the broker may delete committed offsets: "
    "batches.offsets_retention_minutes after group_status.empty_since of a classic group; for "
    "other groups, and for topics that no member subscribes to, after the oldest "
    "partition_status.commit_timestamp; absent if nothing expires or the retention is unknown; do "
    "not sum.", "groups")

# D. Declared by the owners
GROUP_POLICY = Family("laggard_group_policy_info", "info", (*G, "owner", "team"),
    "owner and team that [[policy]] declares for a group of group_status.", "groups")
GROUP_MAINTENANCE = _gauge("group_maintenance", G,
    "1 while [[policy]] plans maintenance of a group of group_status, by the clock of "
    "batches.polled_at.", "groups")
GROUP_SLO = _gauge("group_slo_seconds", G,
    "slo_time_lag_seconds that [[policy]] declares for a group of group_status; absent without "
    "one; do not sum.", "groups")
GROUP_SLO_OBJECTIVE = _gauge("group_slo_objective_ratio", G,
    "slo_objective of a group of group_status that has slo_time_lag_seconds: share of the "
    "records that have to be in time; do not sum.", "groups")

# E. Sizing, of the newest evaluated window
GROUP_DESIRED = _evaluated("group_desired_consumers", G,
    "group_windows.members_desired of two windows in a row; one less than group_windows.members "
    "after an hour in which fewer would be enough, unless a finding is open that forbids scaling "
    "(verdict NO_REBALANCE_FIRST); within min_consumers, max_consumers and members_ceiling; 0 "
    "for an idle group that may scale to zero; absent if the verdict is unknown or the lag "
    "partial.", "groups")
GROUP_SCALE_VERDICT = _evaluated("group_scale_verdict", G, "group_windows.scale_verdict: would "
    "adding consumers help; exactly one is 1.", "groups", VERDICTS)
GROUP_CEILING = _evaluated("group_members_ceiling", G, "group_windows.members_ceiling: consumers "
    "that could get a partition.", "groups")
GROUP_CAPACITY = _evaluated("group_member_capacity_records_per_second", G,
    "group_windows.capacity: records that one busy member consumes: for each member the 75th "
    "percentile of its newest busy windows of 24 hours, then the median over members; absent "
    "until one was busy in enough windows; do not sum.", "groups")

# F. Findings and topics
FINDING_ACTIVE = _evaluated("finding_active", (*T, "code", "severity", "role"),
    "1 for an open finding of findings.finding_id that is not suppressed and has a confidence of "
    "0.3 or more; topic is empty for a finding about the group; topic and group are empty for "
    "one about the cluster.", "groups")
FINDINGS_OPENED = _counter("findings_opened_total", (*C, "code", "severity"),
    "Rows with findings.event opened in the whole table; absent while the rules are more than 5 "
    "windows behind.")
TOPIC_ARRIVAL = _gauge("topic_arrival_records_per_second", K,
    "Sum of topic_windows.arrival_rate over the newest closed window; absent while a partition "
    "lacks it.", "topics")
TOPIC_PARTITIONS = _gauge("topic_partitions", K, "Number of partitions in topic_windows.partition "
    "of the newest closed window.", "topics")
TOPIC_ARRIVAL_GINI = _gauge("topic_arrival_gini_ratio", K,
    "Inequality of topic_windows.arrival_rate over partitions, sum((2i - n - 1) x rate_i) / ((n "
    "- 1) x sum(rate)) in ascending order; absent while a partition lacks it; do not sum.",
    "topics")
TOPIC_RETAINED = _gauge("topic_retained_records", K, "Sum of topic_windows.log_end_offset - "
    "log_start_offset; absent while a partition lacks one.", "topics")

# G. Pipeline
READY = _gauge("ready", C, "1 while the data families are served: the newest poll is fresh, by "
    "batches.clock.")
NOT_READY = Family("laggard_not_ready", "stateset", C,
    "Reason why the data families are not served, or none; from batches.kind and batches.clock; "
    "clock: batches arrive, but their time is far from the clock of this process.",
    states=("none", *REASONS))
DATA_TIMESTAMP = _gauge("data_timestamp_seconds", C, "batches.clock: wall clock of the job at the "
    "newest poll.")
CLOCK_HELD = _gauge("clock_held_seconds", C,
    "batches.polled_at - batches.clock: how far the clock of the job was set back; the time in "
    "rows does not advance and windows are not counted until it is 0.")
CLOCK_SKEW = _gauge("clock_skew_seconds", C,
    "batches.clock_skew_seconds: clock of the brokers - clock of the job, the smallest "
    "difference that explains the times of the newest commits; absent without a commit in the "
    "batch; do not sum.")
BATCH_ID = _gauge("batch_id", C, "batches.batch_id of the newest batch; do not sum.")
BATCHES_TOTAL = _counter("batches_total", C, "batches.batches_total: ticks published so far.")
BATCH_SECONDS = _gauge("batch_seconds", C, "batches.published_at - batches.started_at of the "
    "newest batch.")
STAGE_SECONDS = _counter("stage_seconds_total", (*C, "stage"), "batches.stage_seconds_total: time "
    "spent so far, by stage.")
FINDINGS_TIMESTAMP = _gauge("findings_timestamp_seconds", C,
    "End of the newest window that the rules have evaluated, finding_state.window_start + the "
    "length of a window.")
GROUPS = _gauge("groups", (*C, "state"), "Number of groups by group_status.group_state.")
SOURCE_PARTITIONS = _gauge("source_partitions", C, "Number of offsets partitions in "
    "batches.source_to.")
SOURCE_RECORDS = _counter("source_records_total", (*C, "outcome"), "batches.records_total: "
    "records read so far, by outcome.")
SOURCE_COMMITS = _counter("source_commits_total", O, "batches.source_commits_total: commit "
    "records of watched groups and topics read so far.")
SOURCE_GROUPS = _gauge("source_groups", O, "Number of groups by group_status.offsets_partition, "
    "to which their name hashes.")
SOURCE_LOG = _gauge("source_log_records", O,
    "batches.source_high_watermark - batches.source_log_start_offset: at most so many records, "
    "as compaction removes some of them.")
SOURCE_LIVE_KEYS = _gauge("source_live_keys", O,
    "Number of rows of partition_status with a commit, by group_status.offsets_partition: keys "
    "that compaction would keep; those of group records and of groups not watched are not "
    "counted.")
SOURCE_COORDINATOR = _gauge("source_coordinator", (*O, "coordinator"),
    "1 for the broker of batches.source_coordinator, which leads the offsets partition.")
SOURCE_LAG = _gauge("source_lag_records", O,
    "batches.source_high_watermark - batches.source_to: records that laggard has not read, 0 if "
    "it has read past the poll.")
SOURCE_BLOCKED = _gauge("source_blocked_records", O,
    "batches.source_high_watermark - batches.source_last_stable_offset while frozen by an open "
    "transaction, otherwise 0.")
SOURCE_BLOCKED_TIMESTAMP = _gauge("source_blocked_timestamp_seconds", O,
    "batches.source_blocked_since of a frozen offsets partition; do not sum.")
DEAD_LETTERS = _counter("dead_letters_total", (*C, "reason"), "batches.dead_letters_total: "
    "records that could not be decoded.")
UNKNOWN_RECORDS = _counter("unknown_records_total", (*C, "record_type", "version"),
    "batches.unknown_records_total: records of a type or version not known.")
POLLS = _counter("polls_total", (*C, "api"), "batches.polls_total: broker requests so far.")
POLL_SECONDS = _counter("poll_seconds_total", (*C, "api"), "batches.poll_seconds_total: seconds "
    "spent waiting for answers of brokers so far.")
POLL_ERRORS = _counter("poll_errors_total", (*C, "api", "error"), "batches.poll_errors_total: "
    "failed broker requests so far, by Kafka error name.")
QUARANTINED = _gauge("quarantined_groups", C,
    "batches.quarantined_groups: groups whose tick failed, so that their rows are stale; all "
    "others are published.")
QUARANTINES = _counter("quarantines_total", C, "batches.quarantines_total: times that a group "
    "entered quarantine so far.")
SHED_KEYS = _counter("shed_keys_total", C,
    "batches.shed_keys_total: new partitions refused so far, counted in each tick that saw them, "
    "because partition_status had as many rows as max_group_partitions allows.")
CORRECTIONS = _counter("reconcile_corrections_total", C,
    "batches.reconcile_corrections_total: rows removed so far because their group had ended and "
    "no tombstone of it was read.")
GAPS = _counter("gaps_total", (*C, "reason"), "batches.gaps_total: gap rows so far.")

# H. Exporter itself
BUILD_INFO = Family("laggard_build_info", "info", ("version", "python", "schema_version"),
    "Version that runs; schema_version is a fingerprint of the table declarations.")
REFRESH_SECONDS = _gauge("exporter_refresh_seconds", C, "Duration of the newest load of a batch: "
    "reading and rendering.")
REFRESH_TIMESTAMP = _gauge("exporter_refresh_timestamp_seconds", C,
    "Time of the newest check of the tables without an error.")
CLOCK_OFFSET = _gauge("clock_offset_seconds", C,
    "Clock of the exporter - clock of the job when the newest batch arrived, including the "
    "seconds until the exporter saw it; absent before the first batch.")
REFRESH_ERRORS = _counter("exporter_refresh_errors_total", (*C, "reason"),
    "Checks of the tables that failed, since the exporter started.")
ROWS_SKIPPED = _counter("exporter_rows_skipped_total", (*C, "table", "reason"),
    "Rows of a table that could not be shown, once per batch read, since the exporter started: "
    "key (no usable name or partition), value (not a number, not a text, or outside its range or "
    "the calendar), duplicate, error; sums that would include such a row are absent, all other "
    "series do not change.")
SERIES = _gauge("series", (), "Series in this body.")
SERIES_WITHHELD = _gauge("series_withheld", ("level",),
    "Series left out of this body to keep it under max_series, by shedding level; for compat a "
    "lower bound, as series that cannot fit are not built.")
SERIES_DROPPED = _counter("series_dropped_total", ("reason",), "Series left out of the bodies of "
    "all batches since the exporter started.")
HTTP_REQUESTS = _counter("http_requests_total", ("path", "code"),
    "Requests answered since the exporter started; path is other for a path that laggard does "
    "not have.")
HTTP_REFUSED = _counter("http_refused_total", ("reason",),
    "Connections closed without an answer since the exporter started: slow_reader, connections "
    "(too many), tls (no or failed handshake), client_name (certificate without an allowed name).")
HTTP_CONNECTIONS = _gauge("http_connections", (), "Open connections.")
WEB_CONFIG_CURRENT = _gauge("exporter_web_config_current", (),
    "1 while the newest web-config file is in force, 0 while it is refused and the previous one "
    "stays in force; absent without one.")
WEB_CONFIG_ERRORS = _counter("exporter_web_config_errors_total", (),
    "Changes of the web-config file, or of a file it names, that were refused since the exporter "
    "started; absent without one.")

# fmt: on

FAMILIES = tuple(value for value in list(globals().values()) if isinstance(value, Family))
