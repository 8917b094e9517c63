"""Input series and expected outcomes of every alert, worked out by hand; test_promtool.py makes
promtool's tests of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

# labels of the group and the topic that the examples are about
C = 'cluster="eu"'
G = f'{C},group="billing"'
T = f'{G},topic="orders"'
CRITICAL, WARNING, INFO = "critical", "warning", "info"
BILLING = {"cluster": "eu", "group": "billing", "team": "payments", "owner": "ann"}
ORDERS = BILLING | {"topic": "orders"}
OF_BILLING = "First look: laggard explain billing."


@dataclass(frozen=True)
class Gauge:
    """A value while the trouble lasts, when it is over, and just below the threshold."""

    bad: float | None
    good: float | None
    near: float | None = None


@dataclass(frozen=True)
class Counter:
    """What is added in 30 s."""

    bad: float
    good: float = 0
    near: float = 0
    start: float = 100_000


@dataclass(frozen=True)
class Since:
    """A time stamp that lies so many seconds back; ahead where negative."""

    bad: float
    good: float
    near: float


Series = dict[str, Gauge | Counter | Since]


@dataclass(frozen=True)
class Example:
    """Trouble begins at 0; the alert holds from `begins` on and until `clears` after its end, in
    minutes.
    """

    alert: str
    series: Series
    labels: dict[str, str]
    summary: str
    description: str
    dashboard: str
    lasts: float  # minutes that it must hold
    keeps: float
    begins: float = 0
    clears: float = 0.5
    excused: bool = True  # by planned maintenance
    absent_fires: bool = False
    moves: bool = False  # a number in the summary, so that only its first text is known
    severity: str = WARNING
    context: Series = field(default_factory=dict)  # what is as it is all the time
    quiet: tuple[Series, ...] = ()  # changes under which nothing fires
    turns: tuple[Turn, ...] = ()
    # annotations of the group, empty unless series say so
    state: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """Phases one after the other, each in minutes, and does it fire at the end."""

    phases: tuple[tuple[str, float], ...]
    fires: bool = False
    change: Series = field(default_factory=dict)


def finding(code: str, severity: str = "warn", topic: str = "orders") -> str:
    return (
        f'laggard_finding_active{{{G},topic="{topic}",code="{code}",severity="{severity}",'
        f'role="primary"}}'
    )


ON = Gauge(1, None, 0)
OTHER: Series = {finding("OFFSET_REWIND"): Gauge(1, 1, 1)}  # of no concern
TOPIC_PAGE = "?var-cluster=eu&var-group=billing&var-topic=orders"
GROUP_PAGE = "?var-cluster=eu&var-group=billing"
CLUSTER_PAGE = "?var-cluster=eu"
ALWAYS_FRESH: Series = {
    f"laggard_data_timestamp_seconds{{{C}}}": Since(10, 10, 10),
    f"laggard_findings_timestamp_seconds{{{C}}}": Since(70, 70, 70),
    f"laggard_ready{{{C}}}": Gauge(1, 1, 1),
}


def found(alert: str, code: str, lasts: float, keeps: float, summary: str, description: str,
dashboard: str, *, severity: str = WARNING, quiet: tuple[Series, ...] = ()) -> Example:  # fmt: skip
    """An example of an alert that repeats a finding."""
    return Example(
        alert, {finding(code): ON}, ORDERS, f"eu/billing on orders: {summary}",
        f"{description} {OF_BILLING}", dashboard + TOPIC_PAGE,
        lasts, keeps, severity=severity, quiet=quiet, context=OTHER,
    )  # fmt: skip


def burning(bad: float, near: float, *, good: float = 0, matured: float = 3000) -> Series:
    """Late records in 30 s of 3,000 matured ones, with an objective of 0.99."""
    return {
        f"laggard_group_slo_matured_records_total{{{T}}}": Counter(matured, matured, matured),
        f"laggard_group_slo_late_records_total{{{T}}}": Counter(bad, good, near),
        f"laggard_group_slo_objective_ratio{{{G}}}": Gauge(0.99, 0.99, 0.99),
    }


def burn(alert: str, bad: float, near: float, factor: str, times: str, ranges: str, *, lasts: float,
keeps: float, clears: float, severity: str, before: float, short: float,
begins: float = 0.5) -> Example:  # fmt: skip
    return Example(
        alert, burning(bad, near), BILLING,
        f"eu/billing uses its error budget {times} times too fast",
        f"Over {ranges} records came late more than {factor} times as often as the objective "
        f"allows. {OF_BILLING}",
        "laggard-group" + GROUP_PAGE, lasts, keeps, begins=begins, clears=clears, severity=severity,
        moves=True,
        # the same share of 0.08 records a second is a handful
        quiet=(burning(bad * 2.4 / 3000, 0, matured=2.4),),
        turns=(
            # the short range alone is over the threshold: for 5 of 60 minutes and the like
            Turn((("good", before), ("bad", short + lasts))),
            # and the long one alone: three times as late, but no longer
            Turn((("bad", before), ("good", short + keeps + 5)), change=burning(bad * 3, 0)),
        ),
    )  # fmt: skip


LOSS = f"laggard_group_loss_seconds{{{T}}}"
EXPIRY = f"laggard_group_offsets_expiry_timestamp_seconds{{{G}}}"
SHAPE = f'laggard_group_lag_shape{{{T},laggard_group_lag_shape="concentrated"}}'
TREND = f'laggard_group_lag_trend{{{T},laggard_group_lag_trend="growing"}}'
STORM = finding("REBALANCE_STORM", topic="")
BURNING = burning(600, 600, good=600)  # 20 times the budget
LATE = f"laggard_group_slo_late_records_total{{{T}}}"
# late now but not for long, and late for an hour but no longer: no burn. The storm begins with the
# last phase.
HALF_BURNS = (
    Turn((("good", 60), ("near", 5), ("bad", 3)), change=BURNING | {LATE: Counter(600, 0, 600)}),
    Turn((("near", 60), ("good", 8), ("bad", 3)), change=BURNING | {LATE: Counter(0, 0, 600)}),
)


def loss(severity: str, says: str, bad: float, near: float, quiet: float) -> Example:
    warned = {finding("DATA_LOSS_FORECAST"): Gauge(1, 1, 1)}
    return Example(
        "LaggardDataLossNear", {LOSS: Gauge(bad, float("inf"), near)}, ORDERS,
        f"eu/billing on orders loses unread records in {says}",
        "At this rate retention reaches the first unread record then. Raise the topic's "
        f"retention first. {OF_BILLING}",
        "laggard-group" + TOPIC_PAGE, 5, 15, severity=severity, excused=False, context=warned,
        quiet=({LOSS: Gauge(quiet, quiet)},
               {finding("DATA_LOSS_FORECAST"): Gauge(0, 0)},
               {finding("DATA_LOSS_FORECAST"): Gauge(None, None)},
               {finding("DATA_LOSS_FORECAST"): Gauge(None, None),
               finding("DATA_LOSS_FORECAST", "info"): Gauge(1, 1)},
               {finding("DATA_LOSS_FORECAST"): Gauge(None, None),
               finding("DATA_LOST"): Gauge(1, 1)}),
    )  # fmt: skip


def expiry(severity: str, says: str, hours: float, near: float, quiet: float) -> Example:
    warned = {finding("OFFSETS_EXPIRY_FORECAST", topic=""): Gauge(1, 1, 1)}
    return Example(
        "LaggardOffsetsExpireSoon", {EXPIRY: Gauge(hours * 3600, 1e6, near * 3600)}, BILLING,
        f"The brokers delete the offsets of eu/billing in {says}",
        "The group has no members. Once its offsets are gone it starts by auto.offset.reset. "
        f"{OF_BILLING}",
        "laggard-group" + GROUP_PAGE, 10, 30, begins=0.5, severity=severity, moves=True,
        excused=False, context=warned,
        quiet=({EXPIRY: Gauge(quiet * 3600, quiet * 3600)},
               {finding("OFFSETS_EXPIRY_FORECAST", topic=""): Gauge(0, 0)},
               {finding("OFFSETS_EXPIRY_FORECAST", topic=""): Gauge(None, None),
               finding("DATA_LOST", topic=""): Gauge(1, 1)}),
    )  # fmt: skip


def storm(
    severity: str, context: Series, quiet: tuple[Series, ...], turns: tuple[Turn, ...]
) -> Example:
    return Example(
        "LaggardRebalanceStorm", {STORM: ON}, BILLING, "eu/billing: rebalances follow each other",
        "The group rebalances so often that it reads little. "
        f"{OF_BILLING}", "laggard-rebalance?var-cluster=eu&var-group=billing",
        2, 10, severity=severity,
        context={finding("OFFSET_REWIND", topic=""): Gauge(1, 1, 1), **context}, quiet=quiet,
        turns=turns,
        begins=0.5 if context else 0,
    )  # fmt: skip


def source_lag(each: Counter) -> Series:
    return {f'laggard_source_lag_records{{{C},offsets_partition="{n}"}}': each for n in (3, 4)}


def pipeline(alert: str, series: Series, summary: str, description: str, lasts: float, keeps: float,
*, dashboard: str = "laggard-pipeline", severity: str = WARNING,
labels: dict[str, str] | None = None, begins: float = 0, clears: float = 0.5,
context: Series | None = None, quiet: tuple[Series, ...] = (), absent_fires: bool = False,
moves: bool = False) -> Example:  # fmt: skip
    return Example(
        alert, series, {"cluster": "eu"} | (labels or {}), summary, description,
        dashboard + CLUSTER_PAGE, lasts, keeps, begins=begins,
        clears=clears, severity=severity, excused=False, context=context or {}, quiet=quiet,
        absent_fires=absent_fires, moves=moves,
    )  # fmt: skip


EXAMPLES = (
    # the 3 d mean of 100 records/s passes 0.1 with the ninth sample
    # 14.5 × 1 % of 3,000 records; the 1 h and 5 m rates both fall below within a minute of the end
    burn("LaggardSloFastBurn", 435, 429, "14.4", "14.5", "1h and over 5m", lasts=2, keeps=5,
        clears=0.5, severity=CRITICAL, before=60, short=5),
    burn("LaggardSloMediumBurn", 183, 177, "6", "6.1", "6h and over 30m", lasts=5, keeps=10,
        clears=1, severity=CRITICAL, before=360, short=30),
    burn("LaggardSloSlowBurn", 33, 27, "1", "1.1", "3d and over 6h", lasts=60, keeps=60, clears=9,
        severity=WARNING, begins=4.5, before=720, short=360),
    Example(
        "LaggardDataLost", {finding("DATA_LOST", "page"): ON}, ORDERS,
        "eu/billing on orders: records were deleted before the group read them",
        "Retention passed the committed offset. These records are gone for this group. "
        f"{OF_BILLING}",
        "laggard-group" + TOPIC_PAGE, 0, 60, severity=CRITICAL, excused=False, context=ALWAYS_FRESH,
        # compacted topics and groups given up long ago are warn and info; the counter alone counts
        # while rules are behind
        quiet=({finding("DATA_LOST", "page"): Gauge(None, None),
        finding("DATA_LOST", "info"): Gauge(1, 1),
                finding("REBALANCE_STORM", "page"): Gauge(1, 1),
                f"laggard_group_lost_records_total{{{T}}}": Counter(5, 5)},),
    ),
    Example(
        "LaggardDataLost", {f"laggard_group_lost_records_total{{{T}}}": Counter(5, 0)}, ORDERS,
        "eu/billing on orders: records were deleted before the group read them",
        "Retention passed the committed offset. These records are gone for this group. "
        f"{OF_BILLING}",
        "laggard-group" + TOPIC_PAGE, 0, 60, severity=CRITICAL, excused=False, begins=0.5,
        clears=15,
        context=ALWAYS_FRESH | {f"laggard_findings_timestamp_seconds{{{C}}}": Since(400, 400, 400)},
        quiet=({f"laggard_findings_timestamp_seconds{{{C}}}": Since(310, 310, 310)},),
    ),
    loss(CRITICAL, "5h 58m 20s", 21500, 21600, 21600),
    loss(WARNING, "23h 58m 20s", 86300, 86400, 21500),
    expiry(CRITICAL, "23h 49m 30s", 24, 26, 25.5),
    expiry(WARNING, "1d 23h 49m 30s", 48, 50, 23),
    found("LaggardPartitionStalled", "PARTITION_STALLED", 5, 5, "a partition is stalled",
        "Records arrive, the member is there, and its committed offset does not move.",
        "laggard-partition"),
    found("LaggardPoisonPill", "POISON_PILL_SUSPECT", 5, 15, "probably a record that no member "
        "can process", "Members fail one after the other at the same committed offset.",
        "laggard-partition"),
    found("LaggardCommitsStopped", "COMMITS_STOPPED", 5, 5, "commits stopped",
        "The group has members and records arrive, but it commits nothing.", "laggard-group"),
    found("LaggardEmptyWithLag", "EMPTY_WITH_LAG", 10, 5, "no members, and lag",
        "The group has no members and its unread records grow.", "laggard-group",
          quiet=({finding("EMPTY_WITH_LAG"): Gauge(None, None),
          finding("EMPTY_WITH_LAG", "info"): Gauge(1, 1)},)),
    Example(
        "LaggardConcentratedLag", {SHAPE: Gauge(1, 0, 0)}, ORDERS, "eu/billing on orders: lag "
            "grows on a few partitions",
        "More members would not help while a few partitions carry the lag. "
        f"{OF_BILLING}", "laggard-partition" + TOPIC_PAGE, 15, 10,
        context={TREND: Gauge(1, 1, 1), SHAPE.replace("concentrated", "spread"): Gauge(0, 1, 1),
        TREND.replace("growing", "flat"): Gauge(0, 0, 0),
                 f"laggard_group_time_lag_known_seconds{{{T}}}": Gauge(660, 660, 660),
                 f'laggard_group_scale_verdict{{{G},'
                 f'laggard_group_scale_verdict="YES"}}': Gauge(0, 0, 0),
                 f'laggard_group_scale_verdict{{{G},'
                 f'laggard_group_scale_verdict="NO_HOT_PARTITION"}}': Gauge(1, 1, 1),
                 finding("HOT_PARTITION_ARRIVAL"): Gauge(1, 1, 1),
                     finding("SLOW_HOST"): Gauge(0, 0, 0),
                         finding("SLOW_MEMBER").replace("billing", "audit"): Gauge(1, 1, 1)},
        state={"time_lag": "11m 0s", "shape": "concentrated", "trend": "growing",
        "scale_verdict": "NO_HOT_PARTITION"},
        quiet=({TREND: Gauge(0, 0), TREND.replace("growing", "flat"): Gauge(1, 1)},
               {SHAPE: Gauge(0, 0), SHAPE.replace("concentrated", "spread"): Gauge(1, 1)},
               # a member, a host or a stall is to blame; of a member that reads several topics the
               # finding has none
               {finding("SLOW_MEMBER", topic=""): Gauge(1, 1)},
               {finding("PARTITION_STALLED"): Gauge(1, 1)}),
    ),
    found("LaggardCapacityShort", "CAPACITY_SHORTAGE", 15, 15, "more records arrive than its "
        "members can read", "All members are busy and the lag grows.", "laggard-group"),
    found("LaggardSlowMember", "SLOW_MEMBER", 10, 10, "a member or a host is slower than the "
        "others", "It reads less than the others from partitions that receive as much.",
        "laggard-group"),
    found("LaggardSlowMember", "SLOW_HOST", 10, 10, "a member or a host is slower than the "
        "others", "It reads less than the others from partitions that receive as much.",
        "laggard-group"),
    storm(WARNING, {}, (BURNING,), tuple(replace(each, fires=True) for each in HALF_BURNS)),
    storm(CRITICAL, BURNING, ({LATE: Counter(0, 0)},), HALF_BURNS),
    found("LaggardPollTimeoutEviction", "POLL_TIMEOUT_EVICTION", 5, 15,
        "members exceed max.poll.interval.ms",
        "Members take too long between two polls and leave the group.", "laggard-rebalance"),
    found("LaggardCrashLoop", "CRASH_LOOP", 5, 15, "members leave again and again soon after they "
        "joined", "They die or end by themselves, and each time the group rebalances.",
        "laggard-rebalance"),
    found("LaggardRebalanceStuck", "REBALANCE_INCOMPLETE", 5, 10, "a rebalance does not end",
        "Members wait for partitions that nobody gives them.", "laggard-rebalance"),
    found("LaggardRebalanceStuck", "RECONCILE_STUCK", 5, 10, "a rebalance does not end",
        "Members wait for partitions that nobody gives them.", "laggard-rebalance"),
    found("LaggardStaticDuplicate", "STATIC_DUPLICATE", 2, 15,
        "two processes use one group.instance.id",
        "Each joins, fences the other, and the group reads little between.", "laggard-rebalance"),
    found("LaggardPartitionUnowned", "PARTITION_UNOWNED", 5, 5, "nobody was given a partition",
        "The group subscribes to its topic, and no member reads it.", "laggard-partition"),
    found("LaggardTransactionStuck", "LSO_STUCK", 5, 5, "a transaction that hangs hides records",
        "The group reads committed records only and has read all that it may.",
        "laggard-partition"),
    found("LaggardStaticMemberExpired", "STATIC_EXPIRED", 0, 30,
        "a static member was away for too long",
        "It exceeded its session timeout, so the group rebalanced twice.", "laggard-rebalance"),
    *(
        pipeline(
            "LaggardCoordinatorTrouble",
            {f'laggard_finding_active{{{C},group="",topic="",code="{code}",severity="page",'
                f'role="primary"}}': ON},
            "eu: groups of one broker are in trouble together",
            f"Several groups share a broker ({code}). First look: laggard findings --open --code "
            f"{code}.", 2, 10,
            dashboard="laggard-fleet", labels={"code": code},
            context={f'laggard_finding_active{{{C},group="",topic="",code="MONITOR_BLIND",'
                f'severity="page",role="primary"}}': Gauge(1, 1, 1)},
        )
        for code in ("COORDINATOR_CORRELATED", "BROKER_CORRELATED")
    ),
    *(
        pipeline(
            "LaggardGroupsUnwatched",
            {f'laggard_finding_active{{{C},group="",topic="",code="{code}",severity="warn",'
                f'role="note"}}': ON},
            "eu: laggard fails for some groups, and works for all others",
            f"Alerts on these groups may not fire ({code}). First look: laggard findings --open "
            f"--code {code}.", 5, 10, labels={"code": code},
            context={f'laggard_finding_active{{{C},group="",topic="",code="MONITOR_BLIND",'
                f'severity="page",role="primary"}}': Gauge(1, 1, 1)},
        )
        for code in ("GROUP_QUARANTINED", "RULE_FAILED")
    ),
    found("LaggardScaleOutFutile", "SCALE_OUT_FUTILE", 15, 60, "more members did not help",
        "Members were added and the group reads no more than before.", "laggard-group",
        severity=INFO),
    Example(
        "LaggardPartitionsUnknown",
        {f'laggard_group_partitions{{{T},status="no_end_offset"}}': Gauge(2, 0, 0),
            f'laggard_group_partitions{{{T},status="committed_ahead"}}': Gauge(1, 0, 0)},
        ORDERS, "eu/billing on orders: the lag of 3 partitions is unknown",
        "The log end is unknown, lies before the committed offset, or belongs to a recreated "
        f"topic. {OF_BILLING}", "laggard-partition" + TOPIC_PAGE, 10, 5,
        context={f'laggard_group_partitions{{{T},status="ok"}}': Gauge(6, 6, 6)},
    ),
    pipeline("LaggardBlind", {f"laggard_ready{{{C}}}": Gauge(0, 1, 1)}, "laggard does not see eu",
             "No fresh data is served, so no other alert of this cluster can be trusted. First "
             "look: laggard doctor.", 2, 2, severity=CRITICAL),
    # the exporter says ready, and shows old data
    pipeline("LaggardBlind", {f"laggard_data_timestamp_seconds{{{C}}}": Since(910, 10, 890)},
        "laggard does not see eu",
             "No fresh data is served, so no other alert of this cluster can be trusted. First "
             "look: laggard doctor.", 2, 2, severity=CRITICAL,
             context={f"laggard_ready{{{C}}}": Gauge(1, 1, 1)}),
    pipeline("LaggardSourceBlocked", {f'laggard_source_blocked_records{{{C},'
        f'offsets_partition="3"}}': Gauge(7, 0, 0),
        f'laggard_source_blocked_records{{{C},offsets_partition="4"}}': Gauge(1, 0, 0)},
             "eu: 2 partitions of the offsets topic are blocked",
             "An open transaction holds back the commits behind it. First look: laggard findings "
             "--open --code SOURCE_BLOCKED.", 5, 5, dashboard="laggard-offsets"),
    # two partitions, each 5 records more in 30 s: 2 × (50,000 + 22 × 5); it holds from the second
    # sample on, which makes a slope
    pipeline("LaggardSourceFallingBehind", source_lag(Counter(5, -20_000, 0, start=50_001)),
             "eu: laggard is 100.2k records behind the offsets topic, and more each minute",
             "The job reads commits more slowly than clients write them. First look: laggard "
             "doctor.", 10, 5, dashboard="laggard-offsets",
             begins=0.5, moves=True, quiet=(source_lag(Counter(5, 5, start=30_000)),)),
    pipeline("LaggardDeadLetters", {f'laggard_dead_letters_total{{{C},'
        f'reason="truncated"}}': Counter(1)},
             "eu: records of the offsets topic could not be decoded (truncated)",
             'Their groups may show old positions. First look: laggard query "select * from '
             'dead_letters".', 0, 30, dashboard="laggard-offsets",
             labels={"reason": "truncated"}, begins=0.5, clears=15),
    # a batch each 10 s: 2 of 3 batches have an error, or none of two
    pipeline("LaggardPollErrors", {f'laggard_poll_errors_total{{{C},api="list_offsets",'
        f'error="TIMED_OUT"}}': Counter(1, 0, 0.75),
        f'laggard_poll_errors_total{{{C},api="metadata",error="TIMED_OUT"}}': Counter(1, 0, 0.7)},
             "eu: requests to brokers fail with TIMED_OUT",
             "Log ends or group states of some brokers are missing. First look: laggard "
             "doctor.", 10, 5, labels={"error": "TIMED_OUT"}, begins=0.5, moves=True,
             clears=3, context={f"laggard_batches_total{{{C}}}": Counter(3, 3, 3)}),
    # 10.2 s of batch, a batch each 10.5 s: 97.14 % of the time; 9 s of each 10.5 s: 85.7 %. The 10
    # m rate of a new counter comes to 90 % after 9.5 min
    pipeline("LaggardBatchSlow", {f"laggard_batch_seconds{{{C}}}": Gauge(10.2, 2, 9)},
        "eu: the job spends 97.14% of its time in batches",
             "A batch takes about as long as a tick or longer, so data gets older. First look: "
             "laggard doctor.", 10, 5, begins=9.5, clears=1, moves=True,
             context={f"laggard_batches_total{{{C}}}": Counter(30 / 10.5, 30 / 10.5, 30 / 10.5)}),
    pipeline("LaggardRulesBehind",
        {f"laggard_findings_timestamp_seconds{{{C}}}": Since(320, 70, 310)},
        "eu: the diagnosis is behind or does not run",
             "Findings are not served, and alerts made of them cannot fire. First look: laggard "
             "findings --code RULE_FAILED.", 5, 5, absent_fires=True,
             # a job that is not ready has evaluated nothing yet
             quiet=({f"laggard_findings_timestamp_seconds{{{C}}}": Gauge(None, None),
             f"laggard_ready{{{C}}}": Gauge(0, 0)},),
             context={f"laggard_data_timestamp_seconds{{{C}}}": Since(10, 10, 10),
             f"laggard_ready{{{C}}}": Gauge(1, 1, 1)}),
    pipeline("LaggardKeysShed", {f"laggard_shed_keys_total{{{C}}}": Counter(1)},
        "eu: commits on new partitions are refused",
             "The live view has job.max_group_partitions rows, and groups with refused commits "
             "have no lag. First look: laggard doctor.", 0, 60,
             begins=0.5, clears=15),
    pipeline("LaggardGap", {f'laggard_gaps_total{{{C},'
        f'reason="retention"}}': Counter(1)}, "eu: a part of the history is missing (retention)",
             'First look: laggard query "select * from batches where gap_reason is not '
             'null".', 0, 30, severity=INFO, labels={"reason": "retention"}, begins=0.5, clears=15),
    Example("LaggardSeriesShed", {'laggard_series_withheld{level="topics"}': Gauge(90, 0, 0)},
        {"level": "topics"},
          "90 series of level topics are withheld",
          "The body is over metrics.max_series; alerts on these metrics cannot fire. First look: "
          "laggard export --print.", "laggard-pipeline", 15, 15,
          excused=False, quiet=({'laggard_series_withheld{level="topics"}': Gauge(0, 0),
          'laggard_series_withheld{level="partition_offsets"}': Gauge(90, 90),
          'laggard_series_withheld{level="compat"}': Gauge(90, 90)},)),
)  # fmt: skip
