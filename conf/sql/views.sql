-- Views that `laggard query` knows, each in the SQL that DataFusion, DuckDB, Spark and Trino share; docs/views.md.
-- A row is what was watched: a time without observation (view gaps) has none, and a sum says how much is unknown.

-- lag_hourly  Lag of each group on each topic by hour: median, 95th percentile, largest.
--   cluster               cluster
--   date                  UTC date
--   group                 group
--   topic                 topic
--   hour_start            start of the hour
--   windows               windows watched
--   windows_unknown       of these, windows in which the lag is not fully known
--   lag_p50               lag that half of the known windows do not exceed; null: never known
--   lag_p95               the same for 95 % of them
--   lag_max               largest known lag
--   max_time_lag_seconds  largest known time lag; null: never known
--   is_lower_bound        the largest time lag is a lower bound; null: none known
create view lag_hourly as
with placed as (
    select
        *,
        date_trunc('hour', window_start) as hour_start,
        row_number() over (
            partition by cluster, "group", topic, date_trunc('hour', window_start) order by lag asc nulls last
        ) as place,
        count(lag) over (partition by cluster, "group", topic, date_trunc('hour', window_start)) as known
    from group_windows
)

select
    cluster,
    date,
    "group",
    topic,
    hour_start,
    count(*) as windows,
    count(*) - max(known) as windows_unknown,
    min(case when place >= 0.5 * known then lag end) as lag_p50,
    min(case when place >= 0.95 * known then lag end) as lag_p95,
    max(lag) as lag_max,
    max(max_time_lag_seconds) as max_time_lag_seconds,
    coalesce(max(case when time_lag_censored then max_time_lag_seconds end), -1) = max(max_time_lag_seconds)
        as is_lower_bound
from placed
group by cluster, date, "group", topic, hour_start;

-- state_seconds  Seconds of each day that a group was in each state of Kafka.
--   cluster                       cluster
--   date                          UTC date
--   group                         group
--   windows                       windows watched
--   stable_seconds                Stable
--   preparing_rebalance_seconds   PreparingRebalance
--   completing_rebalance_seconds  CompletingRebalance
--   assigning_seconds             Assigning
--   reconciling_seconds           Reconciling
--   empty_seconds                 Empty
--   dead_seconds                  Dead
--   not_ready_seconds             NotReady
--   unknown_seconds               watched, but the state is Unknown
create view state_seconds as
select
    cluster,
    date,
    "group",
    count(*) as windows,
    coalesce(sum(state_seconds['Stable']), 0) as stable_seconds,
    coalesce(sum(state_seconds['PreparingRebalance']), 0) as preparing_rebalance_seconds,
    coalesce(sum(state_seconds['CompletingRebalance']), 0) as completing_rebalance_seconds,
    coalesce(sum(state_seconds['Assigning']), 0) as assigning_seconds,
    coalesce(sum(state_seconds['Reconciling']), 0) as reconciling_seconds,
    coalesce(sum(state_seconds['Empty']), 0) as empty_seconds,
    coalesce(sum(state_seconds['Dead']), 0) as dead_seconds,
    coalesce(sum(state_seconds['NotReady']), 0) as not_ready_seconds,
    coalesce(sum(state_seconds['Unknown']), 0) as unknown_seconds
from group_history
group by cluster, date, "group";

-- worst_groups  All groups now, worst first: by the severity of open findings, then by time lag, then by lag.
--   place                 1 is the worst
--   cluster               cluster
--   group                 group
--   severity              worst severity of its open findings; null: none is open
--   primary_code          code of its primary finding; null: none
--   group_state           state
--   max_time_lag_seconds  largest known time lag; null: none known
--   lag                   lag; null: not fully known
--   lag_known             of partitions whose lag is known; null: none
--   partitions_unknown    partitions whose lag is not known
create view worst_groups as
with aged as (
    select *, row_number() over (partition by cluster, finding_id order by seq desc) as age
    from findings
),

opened as (
    select
        cluster,
        "group",
        min(case severity when 'page' then 1 when 'warn' then 2 else 3 end) as severity,
        min(case when role = 'primary' then code end) as primary_code
    from aged
    where age = 1 and event <> 'closed' and role <> 'suppressed'
    group by cluster, "group"
)

select
    row_number() over (
        order by
            coalesce(opened.severity, 4), group_status.max_time_lag_seconds desc nulls last,
            group_status.lag_known desc nulls last, group_status.cluster, group_status."group"
    ) as place,
    group_status.cluster,
    group_status."group",
    case opened.severity when 1 then 'page' when 2 then 'warn' when 3 then 'info' end as severity,
    opened.primary_code,
    group_status.group_state,
    group_status.max_time_lag_seconds,
    group_status.lag,
    group_status.lag_known,
    group_status.partitions_unknown
from group_status
left join opened on group_status.cluster = opened.cluster and group_status."group" = opened."group";

-- slo_daily  Records of each day that reached the age of the SLO, and those not read by then. Groups with an SLO only.
--   cluster          cluster
--   date             UTC date
--   group            group
--   matured_records  records that reached the age of the SLO, on partitions for which the late ones are known; null: none
--   late_records     of these, records not committed by then
--   late_share       late_records / matured_records; null: none matured
--   burn             late_share / 0.01: above 1 the default objective of 99 % is missed
--   windows_unknown  windows of a partition whose records are left out, as late_records is not known
create view slo_daily as
with summed as (
    select
        cluster,
        date,
        "group",
        sum(case when late_records is not null then matured_records end) as matured_records,
        sum(late_records) as late_records,
        count(case when late_records is null and coalesce(matured_records, 1) > 0 then 1 end) as windows_unknown,
        count(matured_records) as windows_with_slo
    from lag_windows
    group by cluster, date, "group"
)

select
    cluster,
    date,
    "group",
    matured_records,
    late_records,
    case when matured_records > 0 then cast(late_records as double) / matured_records end as late_share,
    case when matured_records > 0 then cast(late_records as double) / matured_records / 0.01 end as burn,
    windows_unknown
from summed
where windows_with_slo > 0;

-- rebalance_cost  Cost of the rebalances of each group and day, by cause.
--   cluster                   cluster
--   date                      UTC date
--   group                     group
--   cause                     cause
--   rebalances                logical rebalances
--   rebalance_seconds         their length; null: never known
--   paused_partition_seconds  sum of the pauses of all partitions; null: never known
--   pause_max_seconds         longest pause of a partition; null: never known
--   records_delayed           records that arrived in the pauses; null: never known
--   records_replayed          records read twice; null: never known
--   moved                     partitions moved; null: never known
--   avoidable                 of these, moves that balance did not need; null: never known
--   rebalances_unknown        rebalances whose pauses are not known: the sums leave them out
create view rebalance_cost as
select
    cluster,
    date,
    "group",
    cause,
    count(*) as rebalances,
    sum(rebalance_seconds) as rebalance_seconds,
    sum(paused_partition_seconds) as paused_partition_seconds,
    max(pause_max_seconds) as pause_max_seconds,
    sum(records_delayed) as records_delayed,
    sum(records_replayed) as records_replayed,
    sum(moved) as moved,
    sum(avoidable) as avoidable,
    count(*) - count(paused_partition_seconds) as rebalances_unknown
from rebalances
group by cluster, date, "group", cause;

-- deploy_impact  Each rolling replacement of a group's members, and what it cost.
--   cluster                   cluster
--   date                      UTC date
--   group                     group
--   started_at                first change of the members
--   ended_at                  last change
--   rebalance_mode            eager, cooperative or incremental; null: unknown
--   replaced                  members replaced
--   static_share              of these, share that rejoined without a rebalance
--   rebalances                rebalances during it
--   paused_partition_seconds  sum of the pauses; null: those of a rebalance are not known
--   lag_before                largest lag shortly before; null: unknown
--   lag_added                 largest lag during it above lag_before; null: unknown
--   lag_seconds               lag above lag_before, in seconds of arrivals, summed over time; null: unknown
--   recovery_seconds          from the last change until lag was down again; null: not yet, or unknown
create view deploy_impact as
with paused as (
    select
        deploys.cluster,
        deploys."group",
        deploys.started_at,
        count(rebalances.paused_partition_seconds) as known,
        sum(rebalances.paused_partition_seconds) as seconds
    from deploys
    inner join rebalances
        on
            deploys.cluster = rebalances.cluster and deploys."group" = rebalances."group"
            and rebalances.ended_at >= deploys.started_at
            and array_contains(deploys.rebalance_ids, rebalances.rebalance_id)
    group by deploys.cluster, deploys."group", deploys.started_at
)

select
    deploys.cluster,
    deploys.date,
    deploys."group",
    deploys.started_at,
    deploys.ended_at,
    deploys.rebalance_mode,
    deploys.replaced,
    deploys.static_share,
    deploys.rebalances,
    case
        when deploys.rebalances = 0 then 0
        when paused.known = deploys.rebalances then paused.seconds
    end as paused_partition_seconds,
    deploys.lag_before,
    deploys.peak_lag - deploys.lag_before as lag_added,
    deploys.lag_seconds,
    deploys.recovery_seconds
from deploys
left join paused
    on
        deploys.cluster = paused.cluster and deploys."group" = paused."group"
        and deploys.started_at = paused.started_at;

-- ownership_at  Member that had each partition, from when to when: where owned_from <= t and t < owned_until.
--   cluster      cluster
--   group        group
--   topic        topic
--   topic_id     topic id
--   partition    partition
--   owned_from   start of the first window in a row with this owner
--   owned_until  end of the last of them
--   owner        member; null: no member, or not known
--   slot         its identity in the group
--   client_id    its client id
--   client_host  address it connected from
create view ownership_at as
with compared as (
    select
        *,
        case
            when
                lag(window_end) over earlier = window_start
                and coalesce(lag(owner) over earlier, '') = coalesce(owner, '')
                then 0
            else 1
        end as is_first
    from lag_windows
    window earlier as (partition by cluster, "group", topic, topic_id, "partition" order by window_start)
),

numbered as (
    select
        *,
        sum(is_first) over (
            partition by cluster, "group", topic, topic_id, "partition" order by window_start
            rows between unbounded preceding and current row
        ) as stretch
    from compared
)

select
    cluster,
    "group",
    topic,
    topic_id,
    "partition",
    min(window_start) as owned_from,
    max(window_end) as owned_until,
    max(owner) as owner,
    max(slot) as slot,
    max(client_id) as client_id,
    max(client_host) as client_host
from numbered
group by cluster, "group", topic, topic_id, "partition", stretch;

-- data_loss_risk  Newest window of each group and topic: how near retention is to unread records.
--   cluster             cluster
--   group               group
--   topic               topic
--   window_end          end of that window
--   is_current          it is the newest of the cluster; false: the group has not been seen on the topic since
--   loss_seconds        until retention reaches an unread record; infinity: not at these rates; null: unknown
--   headroom_records    fewest records that retention may still take on a partition; null: unknown
--   lost_records        records deleted unread for certain in it, or ahead of its last position; null: unknown
--   partitions_lost     partitions on which there are some; those with an unknown loss do not count
--   partitions_unknown  partitions whose headroom is not known
create view data_loss_risk as
with aged as (
    select
        *,
        row_number() over (partition by cluster, "group", topic order by window_start desc) as age,
        max(window_start) over (partition by cluster) as newest
    from group_windows
),

held as (
    -- rows of a topic before it was recreated stand in the same window, and their offsets are not those of its log
    select
        cluster,
        "group",
        topic,
        window_start,
        min(case when status in ('ok', 'below_log_start') then headroom_records end) as headroom_records,
        count(case when lost_records > 0 then 1 end) as partitions_lost,
        count(*) - count(case when status in ('ok', 'below_log_start') then headroom_records end) as partitions_unknown
    from lag_windows
    group by cluster, "group", topic, window_start
)

select
    aged.cluster,
    aged."group",
    aged.topic,
    aged.window_end,
    aged.window_start = aged.newest as is_current,
    aged.loss_seconds,
    held.headroom_records,
    aged.lost_records,
    held.partitions_lost,
    held.partitions_unknown
from aged
left join held
    on
        aged.cluster = held.cluster and aged."group" = held."group" and aged.topic = held.topic
        and aged.window_start = held.window_start
where aged.age = 1;

-- idle_capacity  Hours of members that had nothing to do, by group and day.
--   cluster         cluster
--   date            UTC date
--   group           group
--   hours           hours with known members
--   hours_unknown   hours watched in which the members are not known
--   member_hours    members x hours; null: never known
--   idle_hours      of these, of members without partitions; null: never known
--   waiting_hours   of these, of members with too little to read; null: never known
create view idle_capacity as
with facts as (
    -- equal on each topic of the group: taken once. A window is shorter than a day, so the times of day are enough
    select
        cluster,
        date,
        "group",
        window_start,
        max(
            cast(extract(hour from window_end) - extract(hour from window_start) as double)
            + case when extract(hour from window_end) < extract(hour from window_start) then 24 else 0 end
            + cast(extract(minute from window_end) - extract(minute from window_start) as double) / 60
            + cast(extract(second from window_end) - extract(second from window_start) as double) / 3600
        ) as hours,
        max(members) as members,
        max(idle_members) as idle_members,
        max(busy_share) as busy_share
    from group_windows
    group by cluster, date, "group", window_start
)

select
    cluster,
    date,
    "group",
    coalesce(sum(case when members is not null then hours end), 0) as hours,
    coalesce(sum(case when members is null then hours end), 0) as hours_unknown,
    sum(members * hours) as member_hours,
    sum(idle_members * hours) as idle_hours,
    sum((1 - busy_share) * members * hours) as waiting_hours
from facts
group by cluster, date, "group";

-- commit_hygiene  Commits of each group, topic and day, and those that moved nothing.
--   cluster                      cluster
--   date                         UTC date
--   group                        group
--   topic                        topic
--   windows                      windows of a partition
--   windows_unknown              of these, windows whose commits are not known
--   commits                      commits; null: never known
--   noop_commits                 of these, commits that repeat the offset
--   noop_share                   noop_commits / commits; null: no commit
--   max_commit_interval_seconds  longest usual gap between commits of a partition; null: too few commits
--   rewound_records              records below the log end that committed offsets fell by; null: never known
create view commit_hygiene as
select
    cluster,
    date,
    "group",
    topic,
    count(*) as windows,
    count(*) - count(commits) as windows_unknown,
    sum(commits) as commits,
    sum(noop_commits) as noop_commits,
    case when sum(commits) > 0 then cast(sum(noop_commits) as double) / sum(commits) end as noop_share,
    max(commit_interval_seconds) as max_commit_interval_seconds,
    sum(rewound_records) as rewound_records
from lag_windows
group by cluster, date, "group", topic;

-- gaps  Times without observation: no table has rows of them, and they count as neither good nor bad.
--   cluster          cluster
--   date             UTC date of the tick that found it
--   gap_from         last time observed before the gap; null: only records are missing
--   gap_to           first time observed after the gap
--   reason           why
--   scope            all, or one partition of the offsets topic
--   gap_from_offset  first offset of it not read; null: not a gap of records
--   gap_to_offset    first offset read after the gap
create view gaps as
select
    cluster,
    date,
    gap_from,
    gap_to,
    gap_reason as reason,
    gap_scope as scope,
    gap_from_offset,
    gap_to_offset
from batches
where kind = 'gap';
