"""Recording rules, alerts and inhibitions, declared once.

rule_files.py writes the files for Prometheus and Alertmanager.

Several replicas of the exporter serve the same numbers under different instances. So every
expression takes `max by` of the metric's own labels first, of rates too: a maximum of counters
falls when the replica that is ahead ends, and a rate over it would count that fall as a reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from laggard.diagnosis.rules.registry import ALERT_CODES

CRITICAL, WARNING, INFO = "critical", "warning", "info"
HOUR = 3600
WINDOWS = ("5m", "30m", "1h", "6h", "3d")
# of the error budget: 2 % in 1 h, 5 % in 6 h, 10 % in 3 d
FAST_BURN, MEDIUM_BURN, SLOW_BURN = 14.4, 6, 1
MATURED_PER_SECOND = 0.1  # below it a burn is made of a handful of records
# three of the longest ticks; laggard_ready knows the tick that is configured and is sooner
BLIND_SECONDS = 900
# five windows of the default length, after which the exporter drops findings
RULES_BEHIND_SECONDS = 300
BUSY_RATIO = 0.9
FALLING_BEHIND_RECORDS = 100_000

# Wanted, and not written, as the exporter lacks the metric or nobody could act on it.
LEFT_OUT: Mapping[str, str] = MappingProxyType({
    "corrections": "rows of ended groups are removed by themselves: a panel shows "
        "laggard_reconcile_corrections_total",
    "unknown record types": "the only cure is a newer laggard: a panel shows "
        "laggard_unknown_records_total",
    "deploys": "a deploy is no trouble by itself, and the diagnosis hides the storm that it "
        "explains",
})  # fmt: skip

# Causes, symptoms and findings about laggard itself that no alert repeats; docs/runbooks/README.md
# has the same lines. Hygiene and events have none: the first can wait for a working day, the others
# are over when they are seen.
CODES_LEFT_OUT: Mapping[str, str] = MappingProxyType({
    "MONITOR_BLIND": "`LaggardBlind`, `LaggardPollErrors` and `LaggardPartitionsUnknown` fire on "
        "the same poll, and sooner",
    "SOURCE_BLOCKED": "`LaggardSourceBlocked` watches the position itself, also while the rules "
        "are behind",
    "SHARED_SINK": "the members are slow, which `LaggardCapacityShort` and `LaggardSlowMember` "
        "report; `laggard explain` names the sink",
    "TIME_LAG_SLO_BREACH": "`LaggardSloFastBurn`, `LaggardSloMediumBurn` and `LaggardSloSlowBurn` "
        "also take into account how many records are late, and for how long",
    "AT_PARTITION_CEILING": "is found only together with `CAPACITY_SHORTAGE`, which "
        "`LaggardCapacityShort` reports",
    "CAPACITY_BURST": "drains by itself; `LaggardSloFastBurn` fires if it takes too long",
    "HOT_PARTITION_ARRIVAL": "`LaggardConcentratedLag`, once its lag grows",
    "COSTLY_PARTITION": "`LaggardConcentratedLag`, once its lag grows",
    "OFFSET_BEYOND_END": "`LaggardPartitionsUnknown`: its lag is unknown",
    "REBALANCE_STRAGGLER": "is over when it is found; `LaggardRebalanceStorm` fires if it happens "
        "again and again",
    "ASSIGNOR_FLAP": "`LaggardRebalanceStorm`, which it causes",
    "SESSION_EVICTION": "`LaggardRebalanceStorm` if partitions stop being read, `LaggardCrashLoop` "
        "if it is always the same member",
    "STATIC_ID_UNSTABLE": "matters only at deploys; `LaggardRebalanceStorm` covers what it costs "
        "there",
    "DEPLOY_LAG_SPIKE": "drains after the deploy; `LaggardSloFastBurn` fires if it takes too long",
    "SCALE_OSCILLATION": "`LaggardRebalanceStorm` if partitions stop being read; otherwise only "
        "the autoscaler's settings need a change",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """A recording rule."""

    name: str
    expr: str


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert; its expression joins the clauses in order.

    So a test can leave each clause out.
    """

    name: str
    severity: str
    clauses: tuple[str, ...]
    lasts: str  # `for`
    keeps: str  # `keep_firing_for`
    labels: tuple[str, ...]  # those of its series, without team and owner
    dashboard: str
    summary: str
    description: str

    @property
    def expr(self) -> str:
        return "\n".join(self.clauses)


C, G, T = ("cluster",), ("cluster", "group"), ("cluster", "group", "topic")
BY_T = "cluster, group, topic"
UNPLANNED = "unless on (cluster, group) (laggard_group_maintenance == 1)"
# `{{ with }}`: findings about a whole group have no topic
GROUP = "{{ $labels.cluster }}/{{ $labels.group }}"
TOPIC = GROUP + "{{ with $labels.topic }} on {{ . }}{{ end }}"
EXPLAIN = "First look: laggard explain {{ $labels.group }}."


def finding(codes: str, by: str = BY_T, severity: str = "") -> str:
    """Return True for each open finding of these codes, by the labels that are wanted."""
    code = f'code=~"{codes}"' if "|" in codes else f'code="{codes}"'
    return f"max by ({by}) (laggard_finding_active{{{code}{severity}}}) > 0"


def _open(alert: str, by: str = BY_T, severity: str = "") -> str:
    """Return True for each open finding that the alert repeats."""
    return finding("|".join(ALERT_CODES[alert]), by, severity)


def _rate(metric: str, window: str) -> str:
    return f"sum by (cluster, group) (max by ({BY_T}) (rate({metric}[{window}])))"


def _slo_records(window: str) -> tuple[Record, ...]:
    matured, late = (
        f"group:laggard_slo_matured:rate{window}",
        f"group:laggard_slo_late:ratio_rate{window}",
    )
    return (
        Record(matured, _rate("laggard_group_slo_matured_records_total", window)),
        Record(late, f"{_rate('laggard_group_slo_late_records_total', window)} / ({matured} > 0)"),
        Record(
            f"group:laggard_slo_burn:rate{window}",
            f"{late} / on (cluster, group) (1 - max by (cluster, group) "
            "(laggard_group_slo_objective_ratio))",
        ),
    )


RECORDS: tuple[Record, ...] = (
    *(record for window in WINDOWS for record in _slo_records(window)),
    Record("group:laggard_lag_known_records:sum", f"sum by (cluster, group) (max by ({BY_T}) "
        "(laggard_group_lag_known_records))"),
    Record("group:laggard_time_lag_known_seconds:max", "max by (cluster, group) "
        "(laggard_group_time_lag_known_seconds)"),
    Record("topic:laggard_lag_records:p90", f"histogram_quantile(0.9, max by ({BY_T}, le) "
        "(laggard_group_lag_distribution_records_bucket))"),
    Record("topic:laggard_lag_known_records:deriv10m", f"max by ({BY_T}) "
        "(deriv(laggard_group_lag_known_records[10m]))"),
    Record("group:laggard_rebalances:rate10m",
        "sum by (cluster, group) (max by (cluster, group, cause) "
        "(rate(laggard_group_rebalances_total[10m])))"),
    Record("cluster:laggard_rebalances:rate10m", "sum by (cluster) "
        "(group:laggard_rebalances:rate10m)"),
    Record("cluster:laggard_data_age:seconds", "time() - max by (cluster) "
        "(laggard_data_timestamp_seconds)"),
)  # fmt: skip

_RULES_LAG = (
    "max by (cluster) (laggard_data_timestamp_seconds) - max by (cluster) "
    "(laggard_findings_timestamp_seconds)"
)


def _burn(long: str, short: str, factor: float) -> tuple[str, ...]:
    return (
        f"group:laggard_slo_burn:rate{long} > {factor}",
        f"and group:laggard_slo_burn:rate{short} > {factor}",
        f"and group:laggard_slo_matured:rate{long} > {MATURED_PER_SECOND}",
        UNPLANNED,
    )


def _slo(
    name: str, severity: str, long: str, short: str, factor: float, lasts: str, keeps: str
) -> Alert:
    return Alert(
        name, severity, _burn(long, short, factor), lasts, keeps, G, "laggard-group",
        f"{GROUP} uses its error budget {{{{ $value | humanize }}}} times too fast",
        f"Over {long} and over {short} records came late more than {factor} times as often as "
        f"the objective allows. {EXPLAIN}",
    )  # fmt: skip


def _found(name: str, lasts: str, keeps: str, says: str, meaning: str, *, severity: str = WARNING,
only: str = "", dashboard: str = "laggard-group") -> Alert:  # fmt: skip
    """Return an alert that repeats a finding of the diagnosis.

    The diagnosis has already examined the causes.
    """
    return Alert(
        name, severity, (_open(name, severity=only), UNPLANNED), lasts, keeps, T, dashboard,
        f"{TOPIC}: {says}", f"{meaning} {EXPLAIN}",
    )  # fmt: skip


def _loss_near(severity: str, clauses: tuple[str, ...]) -> Alert:
    return Alert(
        "LaggardDataLossNear", severity,
        # the forecast alone is short on any topic with a short retention; the finding asks for
        # growing lag or a stall
        (*clauses, "and on (cluster, group, topic) " + _open("LaggardDataLossNear",
        severity=',severity!="info"')),
        "5m", "15m", T, "laggard-group",
        f"{TOPIC} loses unread records in {{{{ $value | humanizeDuration }}}}",
        "At this rate retention reaches the first unread record then. Raise the topic's "
        f"retention first. {EXPLAIN}",
    )  # fmt: skip


def _expiry(severity: str, clauses: tuple[str, ...]) -> Alert:
    return Alert(
        "LaggardOffsetsExpireSoon", severity,
        # topics that a group no longer subscribes to expire too, which is no trouble: the finding
        # asks for an empty group whose topics still receive records, and ends with the brokers'
        # sweep
        (*clauses, "and on (cluster, group) (" + _open("LaggardOffsetsExpireSoon",
        by="cluster, group") + ")"),
        "10m", "30m", G, "laggard-group",
        f"The brokers delete the offsets of {GROUP} in {{{{ $value | humanizeDuration }}}}",
        "The group has no members. Once its offsets are gone it starts by auto.offset.reset. "
        f"{EXPLAIN}",
    )  # fmt: skip


_LOSS = f"min by ({BY_T}) (laggard_group_loss_seconds)"
_LEFT = "min by (cluster, group) (laggard_group_offsets_expiry_timestamp_seconds) - time()"
_STORM = _open("LaggardRebalanceStorm")
# causes of lag on a few partitions that have an alert of their own
_NOT_BY_RECORDS = (
    "PARTITION_STALLED|POISON_PILL_SUSPECT|SLOW_MEMBER|SLOW_HOST|REBALANCE_STORM"
    "|POLL_TIMEOUT_EVICTION|CRASH_LOOP"
    "|PARTITION_UNOWNED|LSO_STUCK"
)
_BURNS = (
    f"on (cluster, group) (group:laggard_slo_burn:rate1h > {FAST_BURN} and "
    f"group:laggard_slo_burn:rate5m > {FAST_BURN})"
)


def _storm(severity: str, how: str) -> Alert:
    return Alert(
        "LaggardRebalanceStorm", severity, (_STORM, f"{how} {_BURNS}", UNPLANNED), "2m", "10m", T,
        "laggard-rebalance",
        f"{TOPIC}: rebalances follow each other", "The group rebalances so often that it reads "
            f"little. {EXPLAIN}",
    )  # fmt: skip


ALERTS: tuple[Alert, ...] = (
    _slo("LaggardSloFastBurn", CRITICAL, "1h", "5m", FAST_BURN, "2m", "5m"),
    _slo("LaggardSloMediumBurn", CRITICAL, "6h", "30m", MEDIUM_BURN, "5m", "10m"),
    _slo("LaggardSloSlowBurn", WARNING, "3d", "6h", SLOW_BURN, "1h", "1h"),
    Alert(
        "LaggardDataLost", CRITICAL,
        (
            # The finding knows compacted topics and groups that were given up long ago, and sees a
            # loss that a new series begins with, which increase() does not. The counter speaks
            # while the rules are behind.
            _open("LaggardDataLost", severity=',severity="page"'),
            f"or max by ({BY_T}) (increase(laggard_group_lost_records_total[15m])) > 0",
            f"unless on (cluster) ({_RULES_LAG} <= {RULES_BEHIND_SECONDS})",
        ),
        "0m", "1h", T, "laggard-group",
        f"{TOPIC}: records were deleted before the group read them",
        f"Retention passed the committed offset. These records are gone for this group. {EXPLAIN}",
    ),
    _loss_near(CRITICAL, (f"{_LOSS} < {6 * HOUR}",)),
    _loss_near(WARNING, (f"{_LOSS} < {24 * HOUR}", f"and {_LOSS} >= {6 * HOUR}")),
    _expiry(CRITICAL, (f"{_LEFT} < {24 * HOUR}",)),
    _expiry(WARNING, (f"{_LEFT} < {48 * HOUR}", f"and {_LEFT} >= {24 * HOUR}")),
    _found("LaggardPartitionStalled", "5m", "5m", "a partition is stalled",
        "Records arrive, the member is there, and its committed offset does not move.",
        dashboard="laggard-partition"),
    _found("LaggardPoisonPill", "5m", "15m", "probably a record that no member can "
        "process", "Members fail one after the other at the same committed offset.",
        dashboard="laggard-partition"),
    _found("LaggardCommitsStopped", "5m", "5m", "commits stopped", "The group has members and "
        "records arrive, but it commits nothing.", dashboard="laggard-group"),
    _found("LaggardEmptyWithLag", "10m", "5m", "no members, and lag",
        "The group has no members and its unread records grow.", only=',severity!="info"'),
    Alert(
        "LaggardConcentratedLag", WARNING,
        (
            (f'max by ({BY_T}) (laggard_group_lag_shape{{laggard_group_lag_shape="concentrated"}}) '
            '== 1'),
            (f'and max by ({BY_T}) (laggard_group_lag_trend{{laggard_group_lag_trend="growing"}}) '
            '== 1'),
            # keys and records are not to blame there, and the alert on the cause says who is
            f"unless on (cluster, group) ({finding(_NOT_BY_RECORDS, by='cluster, group')})",
            UNPLANNED,
        ),
        "15m", "10m", T, "laggard-partition",
        f"{TOPIC}: lag grows on a few partitions",
        f"More members would not help while a few partitions carry the lag. {EXPLAIN}",
    ),
    _found("LaggardCapacityShort", "15m", "15m", "more records arrive than its members can "
        "read", "All members are busy and the lag grows."),
    _found("LaggardSlowMember", "10m", "10m", "a member or a host is slower than the "
        "others", "It reads less than the others from partitions that receive as much."),
    _storm(WARNING, "unless"),
    _storm(CRITICAL, "and"),
    _found("LaggardPollTimeoutEviction", "5m", "15m", "members exceed max.poll.interval.ms",
        "Members take too long between two polls and leave the group.",
        dashboard="laggard-rebalance"),
    _found("LaggardCrashLoop", "5m", "15m", "members leave again and again soon after they "
        "joined", "They die or end by themselves, and each time the group rebalances.",
        dashboard="laggard-rebalance"),
    _found("LaggardRebalanceStuck", "5m", "10m", "a rebalance does not end",
        "Members wait for partitions that nobody gives them.", dashboard="laggard-rebalance"),
    _found("LaggardStaticDuplicate", "2m", "15m", "two processes use one group.instance.id",
        "Each joins, fences the other, and the group reads little between.",
        dashboard="laggard-rebalance"),
    _found("LaggardPartitionUnowned", "5m", "5m", "nobody was given a partition",
        "The group subscribes to its topic, and no member reads it.",
        dashboard="laggard-partition"),
    _found("LaggardTransactionStuck", "5m", "5m", "a transaction that hangs hides records",
        "The group reads committed records only and has read all that it may.",
        dashboard="laggard-partition"),
    _found("LaggardStaticMemberExpired", "0m", "30m", "a static member was away for too long",
        "It exceeded its session timeout, so the group rebalanced twice.",
        dashboard="laggard-rebalance"),
    Alert(
        "LaggardCoordinatorTrouble", WARNING,
        (_open("LaggardCoordinatorTrouble", by="cluster, code"),),
        "2m", "10m", ("cluster", "code"), "laggard-fleet",
        "{{ $labels.cluster }}: groups of one broker are in trouble together",
        "Several groups share a broker ({{ $labels.code }}). First look: laggard findings --open "
        "--code {{ $labels.code }}.",
    ),
    _found("LaggardScaleOutFutile", "15m", "1h", "more members did not help",
        "Members were added and the group reads no more than before.", severity=INFO),
    Alert(
        "LaggardPartitionsUnknown", WARNING,
        (
            (f'sum by ({BY_T}) (max by ({BY_T}, status) '
            f'(laggard_group_partitions{{status=~"no_end_offset|committed_ahead'
            f'|topic_recreated"}})) > 0'),
            UNPLANNED,
        ),
        "10m", "5m", T, "laggard-partition",
        f"{TOPIC}: the lag of {{{{ $value }}}} partitions is unknown",
        "The log end is unknown, lies before the committed offset, or belongs to a recreated "
        f"topic. {EXPLAIN}",
    ),
    Alert(
        "LaggardBlind", CRITICAL,
        (
            "max by (cluster) (laggard_ready) == 0",
            f"or cluster:laggard_data_age:seconds > {BLIND_SECONDS}",
        ),
        "2m", "2m", C, "laggard-pipeline",
        "laggard does not see {{ $labels.cluster }}",
        "No fresh data is served, so no other alert of this cluster can be trusted. First look: "
        "laggard doctor.",
    ),
    Alert(
        "LaggardExporterAbsent", CRITICAL,
        (
            # another exporter may still be there: a cluster that was served within six hours is
            # missed by its name
            ("max by (cluster) (max_over_time(laggard_ready[6h])) == 1 unless on (cluster) max by "
            "(cluster) (laggard_ready)"),
            "or on () absent(laggard_build_info)",
        ),
        "5m", "0m", C, "laggard-pipeline",
        "Prometheus gets no metrics of laggard{{ with $labels.cluster }} for {{ . }}{{ end }}",
        "The exporter does not run, or Prometheus does not reach it. First look: laggard export "
        "--check.",
    ),
    Alert(
        "LaggardSourceBlocked", WARNING,
        (("count by (cluster) (max by (cluster, offsets_partition) "
            "(laggard_source_blocked_records) > 0)"),),
        "5m", "5m", C, "laggard-offsets",
        "{{ $labels.cluster }}: {{ $value }} partitions of the offsets topic are blocked",
        "An open transaction holds back the commits behind it. First look: laggard findings "
        "--open --code SOURCE_BLOCKED.",
    ),
    Alert(
        "LaggardSourceFallingBehind", WARNING,
        (
            ("sum by (cluster) (max by (cluster, offsets_partition) (laggard_source_lag_records)) "
            f"> {FALLING_BEHIND_RECORDS}"),
            ("and sum by (cluster) (max by (cluster, offsets_partition) "
            "(deriv(laggard_source_lag_records[10m]))) > 0"),
        ),
        "10m", "5m", C, "laggard-offsets",
        "{{ $labels.cluster }}: laggard is {{ $value | humanize }} records behind the offsets "
        "topic, and more each minute",
        "The job reads commits more slowly than clients write them. First look: laggard doctor.",
    ),
    Alert(
        "LaggardDeadLetters", WARNING,
        ("max by (cluster, reason) (increase(laggard_dead_letters_total[15m])) > 0",),
        "0m", "30m", ("cluster", "reason"), "laggard-offsets",
        "{{ $labels.cluster }}: records of the offsets topic could not be decoded ({{ "
        "$labels.reason }})",
        'Their groups may show old positions. First look: laggard query "select * from '
        'dead_letters".',
    ),
    Alert(
        "LaggardPollErrors", WARNING,
        (
            # in more than every second batch, whatever the tick is
            ("sum by (cluster, error) (max by (cluster, api, error) "
            "(rate(laggard_poll_errors_total[10m])))"),
            ("> on (cluster) group_left () 0.5 * max by (cluster) "
            "(rate(laggard_batches_total[10m]))"),
        ),
        "10m", "5m", ("cluster", "error"), "laggard-pipeline",
        "{{ $labels.cluster }}: requests to brokers fail with {{ $labels.error }}",
        "Log ends or group states of some brokers are missing. First look: laggard doctor.",
    ),
    Alert(
        "LaggardBatchSlow", WARNING,
        (
            # no tick in it: a batch that is shorter than the tick leaves a pause, a longer one is
            # followed at once
            ("max by (cluster) (avg_over_time(laggard_batch_seconds[10m])) * max by (cluster) "
            "(rate(laggard_batches_total[10m]))"),
            f"> {BUSY_RATIO}",
        ),
        "10m", "5m", C, "laggard-pipeline",
        "{{ $labels.cluster }}: the job spends {{ $value | humanizePercentage }} of its time in "
        "batches",
        "A batch takes about as long as a tick or longer, so data gets older. First look: "
        "laggard doctor.",
    ),
    Alert(
        "LaggardRulesBehind", WARNING,
        (
            f"{_RULES_LAG} > {RULES_BEHIND_SECONDS}",
            ("or max by (cluster) (laggard_ready) == 1 unless on (cluster) max by (cluster) "
            "(laggard_findings_timestamp_seconds)"),
        ),
        "5m", "5m", C, "laggard-pipeline",
        "{{ $labels.cluster }}: the diagnosis is behind or does not run",
        "Findings are not served, and alerts made of them cannot fire. First look: laggard "
        "findings --code RULE_FAILED.",
    ),
    Alert(
        "LaggardGroupsUnwatched", WARNING, (_open("LaggardGroupsUnwatched", by="cluster, code"),),
        "5m", "10m", ("cluster", "code"), "laggard-pipeline",
        "{{ $labels.cluster }}: laggard fails for some groups, and works for all others",
        "Alerts on these groups may not fire ({{ $labels.code }}). First look: laggard findings "
        "--open --code {{ $labels.code }}.",
    ),
    Alert(
        "LaggardGap", INFO,
        ("max by (cluster, reason) (increase(laggard_gaps_total[15m])) > 0",),
        "0m", "30m", ("cluster", "reason"), "laggard-pipeline",
        "{{ $labels.cluster }}: a part of the history is missing ({{ $labels.reason }})",
        'First look: laggard query "select * from batches where gap_reason is not null".',
    ),
    Alert(
        "LaggardKeysShed", WARNING,
        ("max by (cluster) (increase(laggard_shed_keys_total[15m])) > 0",),
        "0m", "1h", C, "laggard-pipeline",
        "{{ $labels.cluster }}: commits on new partitions are refused",
        "The live view has job.max_group_partitions rows, and groups with refused commits have "
        "no lag. First look: laggard doctor.",
    ),
    Alert(
        "LaggardSeriesShed", WARNING,
        ('max by (level) (laggard_series_withheld{level!~"compat|partition_offsets"}) > 0',),
        "15m", "15m", ("level",), "laggard-pipeline",
        "{{ $value }} series of level {{ $labels.level }} are withheld",
        "The body is over metrics.max_series; alerts on these metrics cannot fire. First look: "
        "laggard export --print.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inhibition:
    """A rule that mutes `targets` with the same labels `equal` while a `source` alert fires.

    Alertmanager then sends none of these targets.
    """

    source: tuple[str, ...]  # matchers
    targets: tuple[str, ...]
    equal: tuple[str, ...]


INHIBITIONS: tuple[Inhibition, ...] = (
    Inhibition(
        ('alertname="LaggardBlind"',),
        ('alertname=~"Laggard.+"', 'alertname!~"LaggardBlind|LaggardExporterAbsent"'),
        C,
    ),
    # a page of a group that burns its objective is never hidden by a warning
    Inhibition(
        ('alertname="LaggardCoordinatorTrouble"',),
        ('alertname="LaggardRebalanceStorm"', 'severity="warning"'),
        C,
    ),
    # partitions that one broker leads: their groups can do nothing about it
    Inhibition(
        ('alertname="LaggardCoordinatorTrouble"', 'code="BROKER_CORRELATED"'),
        ('alertname="LaggardConcentratedLag"',),
        C,
    ),
    Inhibition(
        ('alertname="LaggardRebalanceStorm"',),
        ('alertname=~"LaggardCapacityShort|LaggardConcentratedLag|LaggardSlowMember"',),
        G,
    ),
    Inhibition(
        ('alertname="LaggardPartitionStalled"',), ('alertname="LaggardConcentratedLag"',), G
    ),
    # a warning is kept for a while after the critical alert of the same name has begun
    Inhibition(
        ('alertname=~"Laggard.+"', 'severity="critical"'),
        ('alertname=~"Laggard.+"', 'severity="warning"'),
        ("alertname", *T),
    ),
)
