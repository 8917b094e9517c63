"""Every panel of every dashboard, declared once: title, kind, unit, queries with legends, help.

The help says how to read the panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import promql
from promql import (
    BURN,
    FINDINGS,
    LATE_SHARE,
    WORST_FIRST,
    happened,
    increase,
    now,
    rate,
    slope,
    states,
    total,
)

GROUP, TOPIC = "{{cluster}} {{group}}", "{{cluster}} {{group}} {{topic}}"
PARTITION = TOPIC + " {{partition}}"
RANGE = "$__range"


@dataclass(frozen=True)
class Panel:
    """A panel; its description is `says` and the HELP of every metric it shows."""

    title: str
    kind: str  # a key of build.KINDS
    unit: str
    queries: tuple[tuple[str, str], ...]  # expression, legend
    says: str
    width: int = 12
    height: int = 8
    threshold: str | None = None  # a key of colours.THRESHOLDS
    states: tuple[str, ...] = ()  # of a lane: what the numbers mean


@dataclass(frozen=True)
class Dashboard:
    """A dashboard.

    Its `variables` come after data source and cluster; with `all_groups` it may show every
    group at once.
    """

    uid: str
    title: str
    says: str
    sections: tuple[tuple[str, tuple[Panel, ...]], ...]
    variables: tuple[str, ...] = ("group", "topic")
    all_groups: bool = False


def _lanes(title: str, name: str, legend: str, says: str, **more: Any) -> Panel:
    """Return lanes of one group or topic each, coloured by the state of a stateset."""
    return Panel(
        title,
        "lanes",
        "none",
        ((states(name), legend),),
        says,
        states=promql.BY_NAME[name].states,
        **more,
    )


# fmt: off
FLEET = Dashboard(
    "laggard-fleet",
    "laggard: fleet",
    "All groups: which one needs attention now.",
    (
        (
            "Now",
            (
                Panel("Age of the data", "stat", "s",
                    ((f"time() - {now('data_timestamp_seconds')}", "{{cluster}}"),),
                    "Read this first: time since the newest poll. Above exporter.max_age_seconds "
                    "(90 s by default) all lag is withheld and the panels below are empty.", 6, 5,
                    "age"),
                Panel("Open findings by severity", "stat", "none",
                    ((f"count by (cluster, severity) ({FINDINGS})", "{{cluster}} {{severity}}"),),
                    "No value means no open finding, or data that is too old (see the age).", 6, 5),
                Panel("Groups by state", "stacked", "none",
                    ((happened(total("cluster, state", now("groups"))), "{{cluster}} {{state}}"),),
                    "If many groups go from Stable to another state at one moment, look for a "
                    "broker or a deploy.", 6, 5),
                Panel("Partitions without a known lag", "stacked", "none",
                    ((happened(total("cluster, status", now("group_partitions", 'status!="ok"'))),
                    "{{cluster}} {{status}}"),),
                    "These have no lag and are not in any sum. no_commit alone is harmless.", 6, 5),
                Panel("Open findings", "table", "none", ((WORST_FIRST, ""),),
                    "role says which one to act on: primary is the cause, the others are its "
                    "symptoms or contribute. Run `laggard explain GROUP` for the evidence; a "
                    "click on a group opens its dashboard.", 24, 9),
            ),
        ),
        (
            "Worst groups",
            (
                Panel("Furthest behind in time", "bars", "s", ((("topk(10, max by (cluster, "
                    f"group) ({now('group_time_lag_known_seconds')}))"), GROUP),),
                    "A lower bound: partitions without a known lag are left out."),
                Panel("Furthest behind in records", "bars", "short",
                    ((f"topk(10, {total('cluster, group', now('group_lag_known_records'))})",
                    GROUP),),
                    "A lower bound. Many records may be seconds of work; compare with the time "
                    "beside it."),
                Panel("Error budget burn, worst groups", "series", "none",
                    ((f"topk(10, {BURN})", GROUP),),
                    "Share of late records over 1 h / what the objective allows: above 1 the "
                    "budget does not last, above 14.4 it is a page. Only groups with "
                    "slo_time_lag_seconds.", threshold="burn"),
                Panel("Nearest to data loss", "table", "s", ((("bottomk(10, "
                    f"{now('group_loss_seconds')} < +Inf)"), ""),),
                    "Time until retention deletes the first unread record, at the current rates."),
                Panel("Committed offsets that expire next", "table", "s",
                    ((f"bottomk(10, {now('group_offsets_expiry_timestamp_seconds')} - time())", ""),
                    ), "Time until the broker may delete the committed offsets of a group without "
                    "members; it then starts by auto.offset.reset."),
                Panel("Rebalances by group", "strip", "none", ((("topk(25, "
                    f"{happened(total('cluster, group', increase('group_rebalances_total')))})"),
                    GROUP),),
                    "Groups without a rebalance have no lane. Many lanes at one moment: a broker;"
                    " one lane all the time: a rebalance storm.", threshold="some"),
            ),
        ),
        ("All partitions", (Panel("Partitions by time lag: $cluster", "heatmap", "s",
        ((total("cluster, le", now("group_time_lag_distribution_seconds")), "{{le}}"),),
        "If the whole band moves up, the capacity is too small or a broker is slow; a few "
            "partitions far above the others are hot or stuck.", 24, 9),)),
    ),
    all_groups=True,
)

GROUP_BOARD = Dashboard(
    "laggard-group",
    "laggard: group",
    "One group: what is wrong, since when, would more consumers help.",
    (
        (
            "What holds now",
            (
                _lanes("State", "group_state", GROUP, "Stable is at work; Empty has no members; "
                    "the others are inside a rebalance.", width=12, height=6),
                _lanes("Would more consumers help?", "group_scale_verdict", GROUP,
                    "YES, NOT_NEEDED, UNKNOWN, or NO with the reason that comes first.", width=12,
                    height=6),
                Panel("Open findings", "table", "none", ((WORST_FIRST, ""),),
                    "role says which one to act on: primary is the cause.", 16, 7),
                Panel("Wanted and present members", "series", "none",
                    ((now("group_desired_consumers"), "wanted " + GROUP),
                    (now("group_members"), "present " + GROUP),
                    (now("group_idle_members"), "idle " + GROUP)),
                    "wanted is absent while the verdict is unknown. Idle members have no "
                    "partition.", 8, 7),
            ),
        ),
        (
            "How far behind",
            (
                Panel("Time lag", "series", "s",
                    ((now("group_time_lag_seconds"), "time lag " + TOPIC),
                    (now("group_time_lag_known_seconds"), "at least " + TOPIC),
                    (now("group_slo_seconds"), "objective " + GROUP)),
                    "Age of the oldest record not yet committed. Where only `at least` is drawn, "
                    "a partition is unknown or older than the history."),
                Panel("Lag", "series", "short",
                    ((now("group_lag_records"), "lag " + TOPIC),
                    (now("group_lag_known_records"), "at least " + TOPIC),
                    (now("group_lag_floor_records"), "floor " + TOPIC)),
                    "Below the floor the lag only shows the commit interval. Where only `at "
                    "least` is drawn, a partition is unknown."),
                Panel("Records in and out per second", "series", "cps",
                    ((total("cluster, group, topic", rate("group_produced_records_total")),
                    "in " + TOPIC),
                    (total("cluster, group, topic", rate("group_consumed_records_total")),
                    "out " + TOPIC)),
                    "In above out: falling behind. Out at 0 with in above 0: nothing is "
                    "committed."),
                Panel("Time to drain, time to loss", "stat", "s",
                    ((now("group_drain_seconds"), "drain " + TOPIC),
                    (now("group_loss_seconds"), "loss " + TOPIC)),
                    "At the current rates. No value: unknown, or the rules are behind."),
            ),
        ),
        (
            "How the lag is distributed over partitions",
            (
                Panel("Partitions by time lag: $cluster", "heatmap", "s",
                    ((total("cluster, le", now("group_time_lag_distribution_seconds")), "{{le}}"),),
                    "All partitions of the chosen groups and topics. One band: all are slow; two "
                    "bands: hot, stuck or one slow member.", 24),
                _lanes("Shape of the lag", "group_lag_shape", TOPIC,
                    "spread: all partitions alike; concentrated: few carry it, and more "
                    "consumers do not help.", height=6),
                _lanes("Trend of the lag", "group_lag_trend", TOPIC,
                    "abstain: too little history, or noise.", height=6),
                Panel("Partitions that carry the lag", "series", "none",
                    ((now("group_lag_effective_partitions"), TOPIC),),
                    "1: one hot or stuck partition; near the number of partitions: evenly spread.",
                    height=7),
                Panel("Lag of the 90th percentile partition", "series", "short",
                    ((f"histogram_quantile(0.9, {now('group_lag_distribution_records')})", TOPIC),),
                    "Interpolated between the bounds of the distribution.", height=7),
            ),
        ),
        (
            "Commits and errors",
            (
                Panel("Share of late records", "series", "percentunit", ((LATE_SHARE, GROUP),),
                    "Over 1 h, of the records that reached the age of slo_time_lag_seconds. "
                    "Empty without a service level.", 8, 7),
                Panel("Records lost, records rewound", "columns", "short",
                    ((increase("group_lost_records_total"), "lost " + TOPIC),
                    (increase("group_rewound_records_total"), "rewound " + TOPIC)),
                    "Lost: certainly deleted before they were read. Rewound: to be read again, "
                    "after a reset or an unclean shutdown.", 8, 7),
                Panel("Commits per second, share without progress", "series", "none",
                    ((rate("group_commits_total"), "commits " + TOPIC),
                    (f"{rate('group_noop_commits_total')} / ({rate('group_commits_total')} > 0)",
                    "no progress " + TOPIC)),
                    "If commits continue with a share near 1 while there is lag, a member is "
                    "alive and stuck on a record.", 8, 7),
            ),
        ),
    ),
)

REBALANCES = Dashboard(
    "laggard-rebalance",
    "laggard: rebalances",
    "Why groups rebalance and what it costs.",
    (
        (
            "How often and why",
            (
                Panel("Rebalances by cause", "columns", "none",
                    ((happened(total("cluster, group, cause", increase("group_rebalances_total"))),
                    GROUP + " {{cause}}"),),
                    "One logical rebalance is all generations that follow each other closely. "
                    "Kafka does not record a cause: it is inferred.", threshold="some"),
                Panel("Share of time in a rebalance", "series", "percentunit",
                    ((now("group_time_in_rebalance_ratio"), GROUP),),
                    "Over the last 10 minutes. Near 1: the group does nothing else."),
                Panel("Members joined, left, replaced", "columns", "none",
                    ((happened(total("cluster, group, change",
                    increase("group_member_changes_total"))), GROUP + " {{change}}"),),
                        "replaced: a member left and another one took its role, as in a deploy "
                    "without static membership."),
                Panel("Generation", "series", "none", ((now("group_generation"), GROUP),),
                    "A staircase: each step is a rebalance; a fall means that the group was "
                    "deleted and recreated."),
            ),
        ),
        (
            "What it costs",
            (
                Panel("Duration of a rebalance, 95th percentile", "series", "s",
                    ((("histogram_quantile(0.95, "
                    f"{total('cluster, group, le', rate('group_rebalance_duration_seconds'))})"),
                    GROUP),),
                    "From the estimated start to the end; gaps where there was no rebalance.", 8),
                Panel("Partitions that moved", "columns", "none",
                    ((increase("group_partitions_moved_total"), "moved " + GROUP),
                    (increase("group_partitions_moved_avoidable_total"), "without need " + GROUP)),
                    "Without need: neither departures nor balance required the move. A sticky "
                    "assignor avoids these.", 8),
                Panel("Moves that took a partition back", "series", "percentunit",
                    ((now("group_ping_pong_ratio"), GROUP),),
                    "Over the last hour; high in crash loops and with an assignor that is not "
                    "sticky.", 8),
                Panel("Stopped partitions by pause: $cluster", "heatmap", "s",
                    ((total("cluster, le", increase("group_rebalance_pause_seconds")), "{{le}}"),),
                    "How long partitions of the chosen groups made no progress around a "
                    "rebalance, by their commits.", 24),
            ),
        ),
        (
            "Membership",
            (
                Panel("Interrupted generations, absorbed restarts", "stat", "none",
                    ((increase("group_interrupted_generations_total", RANGE),
                    "interrupted " + GROUP),
                    (increase("group_static_restarts_absorbed_total", RANGE), "absorbed " + GROUP)),
                    "In the chosen time. Interrupted: a generation that never got an assignment. "
                    "Absorbed: a static member that rejoined without a rebalance.", 8, 7),
                Panel("Imbalance of the assignment", "series", "none",
                    ((now("group_assignment_imbalance_ratio"), GROUP),),
                    "Most partitions of one member / mean over members; 1 is even.", 8, 7),
                Panel("Members", "series", "none",
                    ((now("group_members"), "members " + GROUP),
                    (now("group_static_members"), "static " + GROUP)),
                    "Static members have a group.instance.id and may restart without a rebalance.",
                    8, 7),
                Panel("Protocol and coordinator", "table", "none", ((now("group_info"), ""),),
                    "Type, assignor and coordinating broker; empty if unknown.", 24, 6),
            ),
        ),
    ),
)

PARTITIONS = Dashboard(
    "laggard-partition",
    "laggard: partition",
    "The exported partitions of a group: which one, since when.",
    (
        (
            "Where the lag is",
            (
                Panel("Lag by partition", "heat_strip", "short",
                    ((now("partition_lag_records"), PARTITION),),
                    "One lane per partition. Only exported partitions, the worst of each group "
                    "and topic unless its policy asks for all.", 24, 10),
                Panel("Time lag", "series", "s", ((now("partition_time_lag_seconds"), PARTITION),),
                    "Age of the oldest record not yet committed; a lower bound where the history "
                    "is shorter."),
                Panel("Age of the last commit", "series", "s", ((("time() - "
                    f"{now('partition_commit_timestamp_seconds')}"), PARTITION),),
                    "A line that rises at 1 s per second while records arrive: nothing is "
                    "committed."),
            ),
        ),
        (
            "Why",
            (
                Panel("Records in per second", "series", "cps",
                    ((slope("partition_log_end_offset"), "{{cluster}} {{topic}} {{partition}}"),),
                    "Slope of the log end. One line far above the others: a hot key."),
                Panel("Records out per second", "series", "cps",
                    ((slope("partition_committed_offset"), PARTITION),),
                    "Slope of the committed offset; below 0 is a rewind. 0 beside records in: "
                    "stuck."),
                Panel("Records between the log start and the commit", "series", "short",
                    (((f"{now('partition_committed_offset')} - on (cluster, topic, partition) "
                    f"group_left () {now('partition_log_start_offset')}"), PARTITION),),
                    "Room before retention deletes unread records; below 0 some are lost already."),
                Panel("Status now", "table", "none", ((f"{now('partition_status')} == 1", ""),),
                    "ok has a lag; every other status says why there is none."),
                _lanes("Verdict by Burrow's rules", "group_verdict", TOPIC,
                    "For people who know Burrow. The findings of the diagnosis say more."),
            ),
        ),
    ),
)

OFFSETS = Dashboard(
    "laggard-offsets",
    "laggard: offsets topic",
    "How __consumer_offsets is read, and what blocks it.",
    (
        (
            "Reading",
            (
                Panel("Records not yet read, by offsets partition", "series", "short",
                    ((now("source_lag_records"), "{{cluster}} {{offsets_partition}}"),),
                    "One line that rises alone: its leader does not answer, or an open "
                    "transaction blocks it. All lines: the job is too slow."),
                Panel("Records read per second, by outcome", "stacked", "cps",
                    ((total("cluster, outcome", rate("source_records_total")),
                    "{{cluster}} {{outcome}}"),),
                    "All groups' commits. A rise without more groups: somebody commits each "
                    "record."),
            ),
        ),
        (
            "What it contains",
            (
                Panel("Commits per second, by offsets partition", "series", "cps",
                    ((rate("source_commits_total"), "{{cluster}} {{offsets_partition}}"),),
                    "Of watched groups. One line far above the others: a group that commits each "
                    "record."),
                Panel("Commits per second, by coordinator", "series", "cps",
                    ((total("cluster, coordinator",
                    f"{rate('source_commits_total')} * on (cluster, offsets_partition) "
                    f"group_left (coordinator) {now('source_coordinator')}"),
                    "{{cluster}} {{coordinator}}"),),
                    "A broker far above the others carries the groups that commit most."),
                Panel("Size of the log", "series", "short",
                    ((now("source_log_records"), "{{cluster}} {{offsets_partition}}"),),
                    "A line that only rises: compaction does not run, and a start reads all of "
                    "it."),
                Panel("Live keys per record", "series", "percentunit",
                    ((f"{now('source_live_keys')} / ({now('source_log_records')} > 0)",
                    "{{cluster}} {{offsets_partition}}"),),
                    "Near 0 for days: compaction is behind."),
                Panel("Groups by offsets partition", "series", "none",
                    ((now("source_groups"), "{{cluster}} {{offsets_partition}}"),),
                    "By the hash of their names.", 24),
            ),
        ),
        (
            "Blocked by an open transaction",
            (
                Panel("Blocked records", "series", "short",
                    ((happened(now("source_blocked_records")), "{{cluster}} {{offsets_partition}}"),
                    ), "Groups of these offsets partitions show old commits. Empty is good."),
                Panel("Blocked for", "series", "s", ((("time() - "
                    f"{now('source_blocked_timestamp_seconds')}"),
                    "{{cluster}} {{offsets_partition}}"),),
                    "Longer than transaction.max.timeout.ms: a hanging transaction; find it with "
                    "kafka-transactions.sh find-hanging.", threshold=None),
            ),
        ),
        (
            "Not understood",
            (
                Panel("Dead letters by reason", "columns", "none",
                    ((happened(total("cluster, reason", increase("dead_letters_total"))),
                    "{{cluster}} {{reason}}"),),
                    "Records that could not be decoded; they are in the table dead_letters."),
                Panel("Unknown record types", "table", "none",
                    ((happened(total("cluster, record_type, version",
                    increase("unknown_records_total", RANGE))), ""),),
                        "In the chosen time. They are newer than this release: a newer laggard may "
                    "know them."),
                Panel("Offsets partitions read", "stat", "none",
                    ((now("source_partitions"), "{{cluster}}"),),
                    "50 by default (offsets.topic.num.partitions).", 24, 4),
            ),
        ),
    ),
    variables=(),
)

OWN = "{{instance}}"
PIPELINE = Dashboard(
    "laggard-pipeline",
    "laggard: pipeline",
    "laggard itself: can its numbers be trusted.",
    (
        (
            "Is it serving",
            (
                Panel("Serving data", "stat", "bool_yes_no", ((now("ready"), "{{cluster}}"),),
                    "No: all lag is withheld; the reason is beside it.", 6, 6),
                _lanes("Why not", "not_ready", "{{cluster}}", "none while data is served.",
                    width=12, height=6),
                Panel("Groups in quarantine", "stat", "none",
                    ((now("quarantined_groups"), "{{cluster}}"),),
                    "Their tick failed and their rows are stale; all other groups are published. "
                    "The job's log has the error.", 6, 6, "some"),
            ),
        ),
        (
            "The job",
            (
                Panel("Time of a batch", "series", "s", ((now("batch_seconds"), "{{cluster}}"),),
                    "Above job.tick_seconds, ticks are late.", 8, threshold="batch"),
                Panel("Busy share by stage", "stacked", "percentunit",
                    ((total("cluster, stage", rate("stage_seconds_total")),
                    "{{cluster}} {{stage}}"),), "Seconds per second. A total near 1: no room left.",
                    8),
                Panel("Records of the offsets topic not yet read", "series", "short",
                    ((total("cluster", now("source_lag_records")), "{{cluster}}"),),
                    "The job's own lag. It rises only during a catch-up.", 8),
                Panel("Broker requests per second", "series", "reqps",
                    ((total("cluster, api", rate("polls_total")), "{{cluster}} {{api}}"),),
                    "Flat at 0: no polls.", 8),
                Panel("Mean wait for brokers", "series", "s",
                    (((f"{total('cluster, api', rate('poll_seconds_total'))} / "
                    f"{total('cluster, api', rate('polls_total'))}"), "{{cluster}} {{api}}"),),
                    "Per request. If all rise, the network or the brokers are slow.", 8),
                Panel("Failed broker requests per second", "series", "reqps",
                    ((total("cluster, error", rate("poll_errors_total")), "{{cluster}} {{error}}"),
                    ), "By Kafka's error name.", 8),
                Panel("Gaps in the history", "columns", "none",
                    ((happened(total("cluster, reason", increase("gaps_total"))),
                    "{{cluster}} {{reason}}"),), "Time in which nothing was recorded, by reason.",
                    8),
                Panel("Commits refused, and rows of ended groups", "columns", "none",
                    ((happened(increase("shed_keys_total")), "refused {{cluster}}"),
                    (happened(increase("reconcile_corrections_total")), "removed {{cluster}}")),
                    "Refused: job.max_group_partitions is reached. Removed: a group ended and "
                    "its tombstones were never read.", 8),
                Panel("Age of the newest evaluated window", "series", "s",
                    ((f"time() - {now('findings_timestamp_seconds')}", "{{cluster}}"),),
                    "Findings, shapes and verdicts disappear when the rules are 5 windows behind.",
                    8),
                Panel("Clock of the job: set back, and offset from other "
                    "clocks", "series", "s",
                    ((now("clock_held_seconds"), "held {{cluster}}"),
                    (now("clock_offset_seconds"), "offset {{cluster}}"),
                    (now("clock_skew_seconds"), "brokers {{cluster}}")),
                    "Held above 0: no window is counted until it is 0.", 8),
                Panel("Times a group entered quarantine", "columns", "none",
                    ((increase("quarantines_total"), "{{cluster}}"),),
                    "See also the number of groups now.", 8),
            ),
        ),
        (
            "The exporter",
            (
                Panel("Time to read and render a batch", "series", "s",
                    ((now("exporter_refresh_seconds"), "{{cluster}} {{instance}}"),),
                    "Near half a tick, the exporter falls behind.", 8),
                Panel("Errors and skipped rows", "columns", "none",
                    ((happened(increase("exporter_refresh_errors_total")),
                    "{{cluster}} {{instance}} {{reason}}"),
                    (happened(increase("exporter_rows_skipped_total")),
                    "{{cluster}} {{instance}} {{table}} {{reason}}")),
                    "Checks of the tables that failed, and rows that could not be shown.", 8),
                Panel("Series shown and withheld", "series", "short",
                    ((now("series"), "shown " + OWN),
                    (happened(now("series_withheld")), "withheld {{level}} " + OWN)),
                    "Withheld: metrics.max_series is too small for this fleet.", 8),
                Panel("Requests per second", "series", "reqps",
                    ((happened(rate("http_requests_total")), "{{path}} {{code}} " + OWN),
                    (happened(rate("http_refused_total")), "refused {{reason}} " + OWN)),
                    "Refused connections got no answer.", 8),
                Panel("Open connections", "series", "none", ((now("http_connections"), OWN),),
                    "1024 at most by default: beyond them the one that has been silent longest "
                    "is closed.", 8),
                Panel("Memory", "series", "bytes", ((('max by (instance) '
                    '(process_resident_memory_bytes{instance=~"$exporter"})'), OWN),),
                    "Resident memory of the exporter's process.", 8),
            ),
        ),
    ),
    variables=("exporter",),
)

# fmt: on

DASHBOARDS = (FLEET, GROUP_BOARD, REBALANCES, PARTITIONS, OFFSETS, PIPELINE)

# Panels to add when the exporter has their metrics; a test fails once it has one.
MISSING: dict[str, str] = {}
