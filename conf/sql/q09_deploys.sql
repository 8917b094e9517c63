-- Q9 What did each deploy cost: rebalances, peak lag, lag-seconds, recovery; and before and after a switch of mode?
--
-- Parameters
--   :from   timestamp  30 days before :to  begin
--   :to     timestamp  now                 end
--   :group  text       null                this group only
-- Columns
--   cluster              cluster
--   group                group
--   started_at           first change of its members
--   ended_at             last change
--   rebalances           logical rebalances
--   replaced             members replaced
--   rebalance_mode       eager, cooperative or incremental; null: unknown
--   static_share         share of the replaced that rejoined without a rebalance
--   is_switch            the mode, or whether members are static, is another than before; null: first, or unknown
--   paused_seconds       paused partition-seconds; null: those of a rebalance are unknown
--   lag_before           largest lag in the ten windows before; null: unknown
--   peak_lag             largest lag during it; null: unknown
--   lag_record_seconds   lag above lag_before, summed over time; null: unknown
--   lag_seconds          the same / arrival rate; null: unknown
--   recovery_seconds     from the last change until lag was down again; null: not yet, or unknown
--   lag_seconds_earlier  lag_seconds of the deploy before; null: none, or unknown

with paused as (
    select
        deploys.cluster,
        deploys."group",
        deploys.started_at,
        count(rebalances.paused_partition_seconds) as known,
        sum(rebalances.paused_partition_seconds) as paused_seconds
    from deploys
    inner join rebalances
        on
            deploys.cluster = rebalances.cluster and deploys."group" = rebalances."group"
            and array_contains(deploys.rebalance_ids, rebalances.rebalance_id)
    where deploys.date >= cast(:from as date) and rebalances.date >= cast(:from as date)
    group by deploys.cluster, deploys."group", deploys.started_at
)

select
    deploys.cluster,
    deploys."group",
    deploys.started_at,
    deploys.ended_at,
    deploys.rebalances,
    deploys.replaced,
    deploys.rebalance_mode,
    deploys.static_share,
    deploys.rebalance_mode <> lag(deploys.rebalance_mode) over earlier
    or (deploys.static_share > 0) <> (lag(deploys.static_share) over earlier > 0) as is_switch,
    case
        when deploys.rebalances = 0 then 0
        when paused.known = deploys.rebalances then paused.paused_seconds
    end as paused_seconds,
    deploys.lag_before,
    deploys.peak_lag,
    deploys.lag_record_seconds,
    deploys.lag_seconds,
    deploys.recovery_seconds,
    lag(deploys.lag_seconds) over earlier as lag_seconds_earlier
from deploys
left join paused
    on
        deploys.cluster = paused.cluster and deploys."group" = paused."group"
        and deploys.started_at = paused.started_at
where
    deploys.date >= cast(:from as date) and deploys.date <= cast(:to as date)
    and deploys.started_at >= :from and deploys.ended_at <= :to and (:group is null or deploys."group" = :group)
window earlier as (partition by deploys.cluster, deploys."group" order by deploys.started_at)
order by deploys.cluster, deploys."group", deploys.started_at
