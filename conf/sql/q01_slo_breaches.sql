-- Q1 Which groups broke their time-lag SLO, for how long, and with how many late records?
--
-- Parameters
--   :from       timestamp  1 day before :to  begin
--   :to         timestamp  now               end
--   :objective  number     0.99              share of records that must be read in time
-- Columns
--   cluster               cluster
--   group                 group with an SLO; groups without one are left out
--   is_broken             late_share is above 1 - objective; null: not by what is known, and windows are unknown
--   breach_seconds        length of the windows in which more than that share was late
--   late_records          records not committed at the age of the SLO
--   matured_records       records that reached that age, on partitions for which the late ones are known
--   late_share            late_records / matured_records; null: none matured
--   max_time_lag_seconds  largest time lag; null: none known
--   is_lower_bound        the largest time lag is a lower bound
--   windows               windows with a count
--   windows_unknown       windows in which a partition is left out, as late_records is not known

with per_window as (
    select
        cluster,
        "group",
        window_start,
        max(extract(epoch from window_end) - extract(epoch from window_start)) as seconds,
        sum(late_records) as late,
        sum(case when late_records is not null then matured_records end) as matured,
        count(matured_records) as partitions_with_slo,
        count(case when late_records is null and coalesce(matured_records, 1) > 0 then 1 end) as partitions_unknown,
        max(time_lag_seconds) as time_lag,
        max(case when time_lag_censored then time_lag_seconds end) as censored_lag
    from lag_windows
    where date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
    group by cluster, "group", window_start
),

per_group as (
    select
        cluster,
        "group",
        coalesce(sum(case when late > (1 - :objective) * matured then seconds end), 0) as breach_seconds,
        sum(late) as late_records,
        sum(matured) as matured_records,
        max(time_lag) as max_time_lag_seconds,
        max(censored_lag) = max(time_lag) as is_lower_bound,
        count(late) as windows,
        sum(case when partitions_unknown > 0 then 1 else 0 end) as windows_unknown,
        sum(partitions_with_slo) as windows_with_slo
    from per_window
    group by cluster, "group"
)

select
    cluster,
    "group",
    case
        when late_records > (1 - :objective) * matured_records then true
        when windows_unknown = 0 then false
    end as is_broken,
    breach_seconds,
    late_records,
    matured_records,
    case when matured_records > 0 then late_records * 1.0 / matured_records end as late_share,
    max_time_lag_seconds,
    case when max_time_lag_seconds is not null then coalesce(is_lower_bound, false) end as is_lower_bound,
    windows,
    windows_unknown
from per_group
where windows_with_slo > 0
order by late_records desc nulls last, breach_seconds desc, cluster, "group"
