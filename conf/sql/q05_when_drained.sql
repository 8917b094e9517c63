-- Q5 When will a group have drained, and how good were its past forecasts?
--
-- Parameters
--   :group  text       required            the group
--   :from   timestamp  30 days before :to  begin of the forecasts that are checked
--   :to     timestamp  now                 the time asked about
-- Columns
--   cluster             cluster
--   group               group
--   topic               topic
--   window_end          end of the newest window
--   lag_known           lag of the partitions that are known
--   drain_seconds       until it is drained; infinity: not at the current rates; null: unknown
--   drain_low_seconds   at the earliest
--   drain_high_seconds  at the latest
--   drained_at          when that is; null: never, or unknown
--   forecasts           past forecasts that came to their end before a gap or an unknown partition did
--   forecasts_open      past forecasts whose end was not seen
--   error_ratio         lower median of seconds it took / seconds forecast; 1 is perfect
--   forecasts_bounded   of the forecasts, those with both bounds
--   inside_share        of these, the share that ended within them

with windows as (
    select
        cluster, "group", topic, window_start, window_end, lag_known, partitions_material,
        drain_seconds, drain_low_seconds, drain_high_seconds,
        case
            when
                partitions_unknown > 0
                or lag(window_end) over (partition by cluster, "group", topic order by window_start) <> window_start
                then 1
            else 0
        end as is_blind
    from group_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date)
        and window_start >= :from and window_end <= :to and "group" = :group
),

counted as (
    select
        *,
        sum(is_blind) over (partition by cluster, "group", topic order by window_start) as blind,
        row_number() over (partition by cluster, "group", topic order by window_start desc) as age
    from windows
),

ends as (
    select
        *,
        min(case when partitions_material = 0 and is_blind = 0 then window_end end) over following as drained_end,
        min(case when partitions_material = 0 and is_blind = 0 then blind end) over following as drained_blind
    from counted
    window following as (
        partition by cluster, "group", topic order by window_start rows between 1 following and unbounded following
    )
),

forecasts as (
    select
        cluster, "group", topic, drain_seconds, drain_low_seconds, drain_high_seconds,
        case
            when drained_blind = blind then extract(epoch from drained_end) - extract(epoch from window_end)
        end as took
    from ends
    where partitions_material > 0 and drain_seconds > 0 and drain_seconds < cast('infinity' as double)
),

ranked as (
    select
        *,
        row_number() over (partition by cluster, "group", topic order by took / drain_seconds nulls last) as place,
        count(took) over (partition by cluster, "group", topic) as evaluated
    from forecasts
),

quality as (
    select
        cluster, "group", topic,
        count(took) as forecasts,
        count(*) - count(took) as forecasts_open,
        max(case when 2 * place in (evaluated, evaluated + 1) then took / drain_seconds end) as error_ratio,
        count(took + drain_low_seconds + drain_high_seconds) as forecasts_bounded,
        avg(case when took >= drain_low_seconds and took <= drain_high_seconds then 1.0
                 when took + drain_low_seconds + drain_high_seconds is not null then 0.0 end) as inside_share
    from ranked
    group by cluster, "group", topic
)

select
    ends.cluster,
    ends."group",
    ends.topic,
    ends.window_end,
    ends.lag_known,
    ends.drain_seconds,
    ends.drain_low_seconds,
    ends.drain_high_seconds,
    case
        when ends.drain_seconds < 1e9
            then ends.window_end + cast(cast(cast(ends.drain_seconds as bigint) as string) || ' seconds' as interval)
    end as drained_at,
    coalesce(quality.forecasts, 0) as forecasts,
    coalesce(quality.forecasts_open, 0) as forecasts_open,
    quality.error_ratio,
    coalesce(quality.forecasts_bounded, 0) as forecasts_bounded,
    quality.inside_share
from ends
left join quality
    on ends.cluster = quality.cluster and ends."group" = quality."group" and ends.topic = quality.topic
where ends.age = 1
order by ends.cluster, ends.topic
