-- Q9 What did each deploy cost: rebalances, peak lag, lag-seconds, recovery; and before and after a switch of mode?
--
-- A deploy is a run of rebalances, none longer than the gap after the one before, in which members were replaced or
-- left as in a deploy, and after which there are as many members as before, or a tenth more or less.
--
-- Parameters
--   :from         timestamp  30 days before :to  begin
--   :to           timestamp  now                 end
--   :group        text       null                this group only
--   :gap_seconds  number     1800                longest time between two rebalances of a deploy, and for recovery
-- Columns
--   cluster             cluster
--   group               group
--   started_at          begin of its first rebalance
--   ended_at            end of its last
--   rebalances          logical rebalances
--   members             members after it
--   rebalance_mode      eager, cooperative or incremental; null: unknown
--   static_members      members with a group_instance_id after it; null: unknown
--   is_switch           mode, or whether members are static, is another than before; null: first, or unknown
--   paused_seconds      paused partition-seconds; null: a rebalance's are unknown
--   lag_before          largest lag in the ten minutes before; null: unknown
--   peak_lag            largest lag from its begin until it recovered; null: unknown
--   lag_record_seconds  lag above lag_before, summed over time until it recovered; null: unknown
--   recovery_seconds    from its end until lag was at most 1.25 x lag_before; null: not within the gap, or unknown
--   cost_before         lag_record_seconds of the deploy before; null: none, or unknown

with replaced as (
    select
        *,
        lag(ended_at) over (partition by cluster, "group" order by ended_at, rebalance_id) as previous_end
    from rebalances
    where
        date >= cast(:from as date) and date <= cast(:to as date) and ended_at >= :from and ended_at <= :to
        and (:group is null or "group" = :group)
        and (cause = 'replacement' or cause_posterior['deploy'] >= 0.7 or cardinality(replaced) > 0)
),

numbered as (
    select
        *,
        sum(case
            when extract(epoch from coalesce(started_est, ended_at)) - extract(epoch from previous_end) <= :gap_seconds
                then 0
            else 1
        end) over (partition by cluster, "group" order by ended_at, rebalance_id) as deploy
    from replaced
),

placed as (
    select
        *,
        row_number() over (partition by cluster, "group", deploy order by ended_at, rebalance_id) as place,
        row_number() over (partition by cluster, "group", deploy order by ended_at desc, rebalance_id desc) as from_end
    from numbered
),

deploys as (
    select
        cluster, "group", deploy,
        min(coalesce(started_est, ended_at)) as started_at,
        max(ended_at) as ended_at,
        count(*) as rebalances,
        max(case when place = 1 then members_before end) as members_before,
        max(case when from_end = 1 then members_after end) as members,
        max(case when from_end = 1 then rebalance_mode end) as rebalance_mode,
        case when count(paused_partition_seconds) = count(*) then sum(paused_partition_seconds) end as paused_seconds
    from placed
    group by cluster, "group", deploy
),

lags as (
    select
        cluster, "group", window_start, window_end,
        cast(floor(extract(epoch from window_start) / 3600) as bigint) as hour,
        case when count(lag) = count(*) then sum(lag) end as lag
    from group_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and (:group is null or "group" = :group)
    group by cluster, "group", window_start, window_end
),

-- hours only make the joins with windows cheap
hours as (
    select distinct hour
    from lags
),

deploy_hours as (
    select deploys.cluster, deploys."group", deploys.deploy, deploys.started_at, deploys.ended_at, hours.hour
    from deploys
    inner join hours
        on
            (hours.hour + 1) * 3600 > extract(epoch from deploys.started_at) - 600
            and hours.hour * 3600 <= extract(epoch from deploys.ended_at) + :gap_seconds
),

around as (
    select
        deploys.cluster, deploys."group", deploys.deploy, deploys.started_at, deploys.ended_at,
        lags.window_start, lags.window_end, lags.lag,
        max(case when lags.window_end <= deploys.started_at then lags.lag end)
            over (partition by deploys.cluster, deploys."group", deploys.deploy) as lag_before
    from deploy_hours as deploys
    inner join lags
        on
            deploys.cluster = lags.cluster and deploys."group" = lags."group" and deploys.hour = lags.hour
            and lags.window_start >= deploys.started_at - interval '10' minute
            and extract(epoch from lags.window_start) <= extract(epoch from deploys.ended_at) + :gap_seconds
),

recovered as (
    select
        *,
        min(case when window_start >= ended_at and lag <= 1.25 * lag_before then window_end end)
            over (partition by cluster, "group", deploy) as recovered_at
    from around
),

costs as (
    select
        cluster, "group", deploy,
        max(lag_before) as lag_before,
        max(lag) as peak_lag,
        max(extract(epoch from recovered_at) - extract(epoch from ended_at)) as recovery_seconds,
        case
            when count(lag) = count(*) and max(lag_before) is not null
                then sum(case when lag > lag_before then lag - lag_before else 0 end
                    * (extract(epoch from window_end) - extract(epoch from window_start)))
        end as lag_record_seconds
    from recovered
    where window_end > started_at and (recovered_at is null or window_end <= recovered_at)
    group by cluster, "group", deploy
),

facts as (
    select
        cluster, "group", window_start, window_end, static_members,
        cast(floor(extract(epoch from window_start) / 3600) as bigint) as hour
    from group_history
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and (:group is null or "group" = :group)
),

statics as (
    select
        deploys.cluster, deploys."group", deploys.deploy, facts.static_members,
        row_number() over (
            partition by deploys.cluster, deploys."group", deploys.deploy order by facts.window_start
        ) as place
    from deploy_hours as deploys
    inner join facts
        on
            deploys.cluster = facts.cluster and deploys."group" = facts."group" and deploys.hour = facts.hour
            and facts.window_end > deploys.ended_at
            and extract(epoch from facts.window_start) <= extract(epoch from deploys.ended_at) + :gap_seconds
),

described as (
    select
        deploys.*,
        statics.static_members,
        costs.lag_before,
        costs.peak_lag,
        costs.lag_record_seconds,
        costs.recovery_seconds,
        deploys.rebalance_mode
        || case when statics.static_members > 0 then ', static' when statics.static_members = 0 then '' end as style
    from deploys
    left join costs
        on
            deploys.cluster = costs.cluster and deploys."group" = costs."group" and deploys.deploy = costs.deploy
    left join statics
        on
            deploys.cluster = statics.cluster and deploys."group" = statics."group"
            and deploys.deploy = statics.deploy and statics.place = 1
    where abs(deploys.members - deploys.members_before) <= 0.1 * deploys.members_before
)

select
    cluster,
    "group",
    started_at,
    ended_at,
    rebalances,
    members,
    rebalance_mode,
    static_members,
    style <> lag(style) over earlier as is_switch,
    paused_seconds,
    lag_before,
    peak_lag,
    lag_record_seconds,
    recovery_seconds,
    lag(lag_record_seconds) over earlier as cost_before
from described
window earlier as (partition by cluster, "group" order by started_at)
order by cluster, "group", started_at
