"""Tables of the diagnosis: evaluated windows, findings, and its memory between windows."""

from __future__ import annotations

from laggard.tables.schema.columns import BATCH_ID, CLUSTER, DATE, GROUP, TOPIC, Column, Table

_WINDOW = (
    Column("window_start", "timestamp", "start of the window, by the poll's clock"),
    Column("window_end", "timestamp", "end of the window, exclusive"),
)
_NO_LAG = "fewer than 2 partitions known, or no lag"

GROUP_WINDOWS = Table(
    "group_windows",
    "One row per group, topic and window: sums, shape, trend, forecasts, sizing. The columns from "
    "group_state on are facts of the group, equal on each of its topics and not to be summed.",
    ("cluster", "group", "topic", "window_start"),
    (
        DATE,
        CLUSTER,
        GROUP,
        TOPIC,
        *_WINDOW,
        Column("status", "string", "ok, or partial: a committed partition is not ok"),
        BATCH_ID,
        Column("lag", "bigint", "sum over partitions", "partial"),
        Column("lag_known", "bigint", "sum over ok partitions", "no ok partition"),
        Column("lag_max", "bigint", "largest lag of a partition", "no ok partition"),
        Column(
            "lag_envelope", "bigint", "sum of the newest lags at a commit", "no partition has one"
        ),
        Column(
            "floor_records",
            "double",
            "sum of 2 x arrival rate x commit interval + 1: lag below it is not significant",
            "no rate",
        ),
        Column("partitions_total", "int", "partitions of the group in the window"),
        Column("partitions_ok", "int", "of these, partitions with status ok"),
        Column("partitions_no_commit", "int", "partitions never committed"),
        Column("partitions_unknown", "int", "all others"),
        Column("partitions_material", "int", "partitions whose lag is above their floor"),
        Column("partitions_stalled", "int", "stalled partitions, with records to read"),
        Column("produced", "bigint", "records that arrived in the window", "a partition has a gap"),
        Column(
            "consumed",
            "bigint",
            "records committed in the window",
            "a partition has a gap or a rewind",
        ),
        Column(
            "arrival_rate", "double", "mean over the newest windows, records/s", "not known yet"
        ),
        Column(
            "consume_rate", "double", "mean over the newest windows, records/s", "not known yet"
        ),
        Column(
            "catch_up_ratio",
            "double",
            "consume_rate / arrival_rate",
            "nothing arrives, or a rate is not known",
        ),
        Column("commits", "bigint", "commits in the window"),
        Column("noop_commits", "bigint", "of these, commits that repeat the offset"),
        Column(
            "matured_records",
            "bigint",
            "records that reached the age of the SLO, on partitions with a known late_records",
            "as late_records",
        ),
        Column(
            "late_records",
            "bigint",
            "of these, records not committed by then",
            "no SLO, or unknown on all partitions",
        ),
        Column(
            "lost_records",
            "bigint",
            "records certainly deleted before the group read them, on partitions where this is "
            "known",
            "unknown on all partitions",
        ),
        Column(
            "max_time_lag_seconds", "double", "largest time lag of an ok partition", "none known"
        ),
        Column("p50_time_lag_seconds", "double", "median over ok partitions", "none known"),
        Column("time_lag_censored", "boolean", "the largest is a lower bound", "none known"),
        Column(
            "gini", "double", "inequality of lag over partitions, 0 even, 1 all on one", _NO_LAG
        ),
        Column("n_eff", "double", "effective number of partitions that carry lag", _NO_LAG),
        Column("rho", "double", "n_eff / partitions", _NO_LAG),
        Column("top1_share", "double", "share of the worst partition", _NO_LAG),
        Column("top_decile_share", "double", "share of the worst tenth", _NO_LAG),
        Column("entropy", "double", "entropy of the shares / its maximum", _NO_LAG),
        Column(
            "top_partitions",
            "array<int>",
            "fewest partitions that hold 70 % of the lag, worst first",
        ),
        Column(
            "shape_raw",
            "string",
            "none, single, spread, mixed or concentrated, by this window alone",
        ),
        Column("shape", "string", "the same, once it has lasted"),
        Column("arrival_shape", "string", "shape of the arrival rates"),
        Column("growth_shape", "string", "shape of the growth of lag"),
        Column(
            "trend",
            "string",
            "growing, flat, draining, sawtooth, or abstain: not enough history to decide",
        ),
        Column("slope", "double", "Theil-Sen slope of the lag at commits, records/s", "abstain"),
        Column("slope_low", "double", "lower end of its 95 % interval", "abstain"),
        Column("slope_high", "double", "upper end", "abstain"),
        Column("trend_p", "double", "Mann-Kendall, two-sided", "abstain"),
        Column("trend_points", "int", "points that the trend is computed from"),
        Column("in_step", "boolean", "slopes of the partitions are alike", "fewer than 2 known"),
        Column(
            "slope_iqr",
            "double",
            "interquartile range of slope / arrival rate over partitions",
            "as in_step",
        ),
        Column(
            "drain_seconds",
            "double",
            "lag / (consume_rate - arrival_rate), slowest member; 0 below the floor; infinity: "
            "not at these rates",
            "a rate is not known",
        ),
        Column("drain_low_seconds", "double", "by the upper end of the slope", "abstain"),
        Column("drain_high_seconds", "double", "by the lower end of the slope", "abstain"),
        Column(
            "drain_at_capacity_seconds",
            "double",
            "lag / (members x capacity - arrival rate)",
            "capacity not known",
        ),
        Column(
            "loss_seconds",
            "double",
            "time until retention reaches the first unread record; infinity: not at these rates",
            "an input is not known",
        ),
        Column(
            "slo_breach_seconds",
            "double",
            "time until time lag reaches the SLO",
            "no SLO, or no significant slope",
        ),
        Column(
            "sub_cause",
            "string",
            "of lag that is spread: steady, capacity_down, arrival_up or both",
            "no baseline",
        ),
        Column("group_state", "string", "as in group_history", "not known"),
        Column("members", "int", "members", "no membership known"),
        Column("idle_members", "int", "members without partitions", "no membership known"),
        Column(
            "capacity",
            "double",
            "records/s of one member: 75th percentile of its busy windows, the median over members",
            "no member was busy long enough",
        ),
        Column("capacity_members", "int", "members whose capacity is known"),
        Column("busy_share", "double", "share of the members that are busy", "no membership known"),
        Column("rebalances", "int", "logical rebalances that ended in the window"),
        Column("generations", "int", "generations or epochs of the window"),
        Column(
            "time_in_rebalance_ratio",
            "double",
            "share of the last 10 minutes inside a rebalance",
            "not watched for 10 minutes",
        ),
        Column(
            "churn",
            "double",
            "members that joined or left in the window / members",
            "no membership known",
        ),
        Column(
            "scale_verdict",
            "string",
            "would adding consumers help? One code, see docs/diagnosis.md",
        ),
        Column("scale_reason", "map<string,double>", "the numbers that decided it"),
        Column("members_desired", "int", "advised number of members", "the verdict is unknown"),
        Column("members_packed", "int", "members that any assignment needs", "capacity not known"),
        Column("members_lower_bound", "int", "load / capacity of a member", "capacity not known"),
        Column(
            "members_ceiling", "int", "members that could get a partition", "no membership known"
        ),
        Column("primary_code", "string", "code of the primary finding", "none is open"),
        Column(
            "primary_evidence",
            "map<string,double>",
            "numbers of the primary finding in this window, as in findings.evidence",
            "none is open, it is about the cluster, or the window does not show it",
        ),
        Column(
            "unseen_findings",
            "map<string,string>",
            "open findings, also of the cluster, that this window does not show, by id: `gone` if "
            "their condition does not hold or their rule is muted, `unknown` if an input is "
            "missing",
        ),
        Column("flags", "array<string>", "limits of the evaluation"),
    ),
    time_column="window_start",
    is_of_diagnosis=True,
)

FINDINGS = Table(
    "findings",
    "What the rules found, as a log: a finding is opened, updated and closed.",
    ("cluster", "finding_id", "seq"),
    (
        DATE,
        CLUSTER,
        Column("group", "string", "consumer group", "the finding is about the cluster"),
        Column(
            "finding_id",
            "string",
            "hash of cluster, group, code, scope and begin: the same in every replay",
        ),
        Column("seq", "int", "number of the row within the finding, from 0"),
        Column("at", "timestamp", "end of the window that was evaluated"),
        Column("event", "string", "opened, updated or closed"),
        BATCH_ID,
        Column("status", "string", "ok"),
        Column("rule", "string", "number of the rule"),
        Column(
            "rule_version",
            "int",
            "hash of the rule's declaration and all thresholds: changes with either",
        ),
        Column("code", "string", "what was found, see docs/diagnosis.md"),
        Column("class", "string", "meta, symptom, cause, hygiene or event"),
        Column("severity", "string", "page, warn or info"),
        Column("role", "string", "primary, contributing, suppressed, symptom or note"),
        Column("primary_finding_id", "string", "finding that explains this one", "itself, or none"),
        Column(
            "episode_id",
            "string",
            "episode of the group's trouble that it belongs to",
            "a note, or about the cluster",
        ),
        Column("topic", "string", "topic", "the finding is about the whole group"),
        Column("partitions", "array<int>", "partitions named"),
        Column("subject", "string", "member, host or broker named", "none"),
        Column("scope", "string", "cluster, group, topic, partition, member, host or broker"),
        Column("started_at", "timestamp", "begin of the first window in which the condition held"),
        Column("opened_at", "timestamp", "end of the window in which it opened"),
        Column("closed_at", "timestamp", "end of the window in which it closed", "open"),
        Column("close_reason", "string", "cleared, falsified, retired or unknown", "open"),
        Column("confidence", "double", "0 to 1"),
        Column("evidence", "map<string,double>", "numbers by name, the unit in the name"),
        Column("evidence_text", "map<string,string>", "names and texts"),
        Column("guards", "map<string,string>", "pass, fail or unknown, by guard"),
        Column("falsifier", "string", "what would prove it wrong"),
        Column("coordinator", "int", "broker whose log mentions the group", "unknown"),
        Column(
            "params",
            "map<string,double>",
            "thresholds that the rule names, and `thresholds_hash` over all thresholds in force",
        ),
    ),
    time_column="at",
    is_of_diagnosis=True,
)

DEPLOYS = Table(
    "deploys",
    "One row per completed rolling replacement of a group's members, with its cost.",
    ("cluster", "group", "started_at"),
    (
        DATE,
        CLUSTER,
        GROUP,
        Column("started_at", "timestamp", "first change of the members"),
        Column("ended_at", "timestamp", "last change"),
        Column("status", "string", "ok"),
        BATCH_ID,
        Column("batches", "int", "batches of members; departures at the same time are one batch"),
        Column("slots", "int", "members before"),
        Column("replaced", "int", "members replaced"),
        Column("static_share", "double", "of these, share that rejoined without a rebalance"),
        Column("rebalances", "int", "logical rebalances in it"),
        Column("rebalance_ids", "array<string>", "their rows in rebalances, as far as written"),
        Column("rebalance_mode", "string", "eager, cooperative or incremental", "unknown"),
        Column(
            "lag_before",
            "double",
            "largest lag of the ten windows before",
            "a window around it is not known",
        ),
        Column("peak_lag", "double", "largest lag during it", "as lag_before"),
        Column(
            "lag_record_seconds",
            "double",
            "lag above lag_before, summed over time",
            "as lag_before",
        ),
        Column(
            "lag_seconds",
            "double",
            "the same / arrival rate before it",
            "as lag_before, or nothing arrived",
        ),
        Column(
            "recovery_seconds", "double", "from the last change until lag is down again", "not yet"
        ),
        Column("is_spike", "boolean", "lag rose by more than the commit intervals explain"),
    ),
    time_column="started_at",
    is_of_diagnosis=True,
)

SCALE_EVENTS = Table(
    "scale_events",
    "One row per net change of a group's members, half an hour after it, with its effect.",
    ("cluster", "group", "event_at"),
    (
        DATE,
        CLUSTER,
        GROUP,
        Column("event_at", "timestamp", "when the change was complete"),
        Column("status", "string", "ok"),
        BATCH_ID,
        Column("members_before", "int", "members before"),
        Column("members_after", "int", "members after"),
        Column(
            "consume_rate_before",
            "double",
            "median of busy windows before, records/s",
            "it was not busy",
        ),
        Column(
            "consume_rate_after",
            "double",
            "median of busy windows after, records/s",
            "it was not busy",
        ),
        Column(
            "elasticity",
            "double",
            "change of ln consume_rate / change of ln members",
            "a side was not busy",
        ),
    ),
    time_column="event_at",
    is_of_diagnosis=True,
)

FINDING_STATE = Table(
    "finding_state",
    "State that the engine keeps from window to window, by group that has some; not for users.",
    ("cluster", "group", "window_start"),
    (
        DATE,
        CLUSTER,
        Column("group", "string", 'consumer group, "" for the cluster'),
        _WINDOW[0],
        BATCH_ID,
        Column("status", "string", "ok"),
        Column("state", "string", "JSON"),
    ),
    time_column="window_start",
    is_of_diagnosis=True,
)
