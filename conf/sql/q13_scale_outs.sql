-- Q13 Did adding consumers help (elasticity), and when was it futile?
--
-- A scale-out is a run of rebalances, none longer than the gap after the one before, that leaves more members.
--
-- Parameters
--   :from            timestamp  30 days before :to  begin
--   :to              timestamp  now                 end
--   :group           text       null                this group only
--   :gap_seconds     number     600                 longest time between two rebalances of a change
--   :elasticity_min  number     0.3                 below this it was futile
-- Columns
--   cluster              cluster
--   group                group
--   started_at           begin of the first rebalance
--   ended_at             end of the last
--   members_before       members before
--   members_after        members after
--   consume_rate_before  lower median of the ten windows before, of those with lag to work off, records/s
--   consume_rate_after   the same of the ten windows after
--   elasticity           ln(rate after / before) / ln(members after / before); 1: all of it; null: not busy on a side
--   lag_before           lag in the window before; null: unknown
--   lag_after            lag in the tenth window after; null: unknown, or not yet
--   futile_findings      findings SCALE_OUT_FUTILE that opened within 45 minutes
--   outcome              helped, futile or unknown

with changes as (
    select
        *,
        lag(ended_at) over (partition by cluster, "group" order by ended_at, rebalance_id) as previous_end
    from rebalances
    where
        date >= cast(:from as date) and date <= cast(:to as date) and ended_at >= :from and ended_at <= :to
        and (:group is null or "group" = :group)
),

numbered as (
    select
        *,
        sum(case
            when extract(epoch from coalesce(started_est, ended_at)) - extract(epoch from previous_end) <= :gap_seconds
                then 0
            else 1
        end) over (partition by cluster, "group" order by ended_at, rebalance_id) as change
    from changes
),

placed as (
    select
        *,
        row_number() over (partition by cluster, "group", change order by ended_at, rebalance_id) as place,
        row_number() over (partition by cluster, "group", change order by ended_at desc, rebalance_id desc) as from_end
    from numbered
),

scale_outs as (
    select *
    from (
        select
            cluster, "group", change,
            min(coalesce(started_est, ended_at)) as started_at,
            max(ended_at) as ended_at,
            max(case when place = 1 then members_before end) as members_before,
            max(case when from_end = 1 then members_after end) as members_after
        from placed
        group by cluster, "group", change
    ) as net
    where members_after > members_before and members_before > 0
),

windows as (
    select
        cluster, "group", window_start, window_end,
        cast(floor(extract(epoch from window_start) / 3600) as bigint) as hour,
        case when count(lag) = count(*) then sum(lag) end as lag,
        case when count(consume_rate) = count(*) then sum(consume_rate) end as consume_rate,
        max(partitions_material) > 0 as is_busy
    from group_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and (:group is null or "group" = :group)
    group by cluster, "group", window_start, window_end
),

-- hours only make the join with windows cheap
hours as (
    select distinct hour
    from windows
),

change_hours as (
    select scale_outs.*, hours.hour
    from scale_outs
    inner join hours
        on
            (hours.hour + 1) * 3600 > extract(epoch from scale_outs.started_at) - 3600
            and hours.hour * 3600 <= extract(epoch from scale_outs.ended_at) + 3600
),

sided as (
    select
        scale_outs.cluster, scale_outs."group", scale_outs.change,
        windows.window_end <= scale_outs.started_at as is_before,
        abs(extract(epoch from windows.window_start) - extract(epoch from scale_outs.ended_at)) as seconds_away,
        windows.lag,
        case when windows.is_busy then windows.consume_rate end as rate
    from change_hours as scale_outs
    inner join windows
        on
            scale_outs.cluster = windows.cluster and scale_outs."group" = windows."group"
            and scale_outs.hour = windows.hour
            and (windows.window_end <= scale_outs.started_at or windows.window_start >= scale_outs.ended_at)
            and windows.window_start >= scale_outs.started_at - interval '1' hour
            and windows.window_start <= scale_outs.ended_at + interval '1' hour
),

near as (
    select
        *,
        row_number() over (partition by cluster, "group", change, is_before order by seconds_away) as distance
    from sided
),

ranked as (
    select
        *,
        row_number() over (partition by cluster, "group", change, is_before order by rate nulls last) as place,
        count(rate) over (partition by cluster, "group", change, is_before) as known
    from near
    where distance <= 10
),

measured as (
    select
        cluster, "group", change,
        max(case when is_before and 2 * place in (known, known + 1) then rate end) as consume_rate_before,
        max(case when not is_before and 2 * place in (known, known + 1) then rate end) as consume_rate_after,
        max(case when is_before and distance = 1 then lag end) as lag_before,
        max(case when not is_before and distance = 10 then lag end) as lag_after
    from ranked
    group by cluster, "group", change
),

told as (
    select scale_outs.cluster, scale_outs."group", scale_outs.change, count(distinct findings.finding_id) as findings
    from scale_outs
    inner join findings
        on
            scale_outs.cluster = findings.cluster and scale_outs."group" = findings."group"
            and findings.opened_at >= scale_outs.ended_at
            and findings.opened_at <= scale_outs.ended_at + interval '45' minute
    where
        findings.date >= cast(:from as date) and findings.date <= cast(:to as date)
        and findings.code = 'SCALE_OUT_FUTILE' and findings.event = 'opened'
    group by scale_outs.cluster, scale_outs."group", scale_outs.change
),

judged as (
    select
        scale_outs.*,
        measured.consume_rate_before,
        measured.consume_rate_after,
        case
            when measured.consume_rate_before > 0 and measured.consume_rate_after > 0
                then ln(measured.consume_rate_after / measured.consume_rate_before)
                    / ln(scale_outs.members_after * 1.0 / scale_outs.members_before)
        end as elasticity,
        measured.lag_before,
        measured.lag_after,
        coalesce(told.findings, 0) as futile_findings
    from scale_outs
    left join measured
        on
            scale_outs.cluster = measured.cluster and scale_outs."group" = measured."group"
            and scale_outs.change = measured.change
    left join told
        on
            scale_outs.cluster = told.cluster and scale_outs."group" = told."group"
            and scale_outs.change = told.change
)

select
    cluster,
    "group",
    started_at,
    ended_at,
    members_before,
    members_after,
    consume_rate_before,
    consume_rate_after,
    elasticity,
    lag_before,
    lag_after,
    futile_findings,
    case
        when futile_findings > 0 or elasticity < :elasticity_min then 'futile'
        when elasticity is null then 'unknown'
        else 'helped'
    end as outcome
from judged
order by cluster, "group", started_at
