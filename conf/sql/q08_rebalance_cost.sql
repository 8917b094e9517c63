-- Q8 What did rebalances cost: paused partition-seconds, records delayed and replayed, ranked?
--
-- Parameters
--   :from  timestamp  7 days before :to  begin
--   :to    timestamp  now                end
-- Columns
--   rank                      1 is the costliest by paused_partition_seconds; those not known come last
--   cluster                   cluster
--   group                     group
--   rebalances                logical rebalances
--   rebalance_seconds         sum of their durations that are known; null: none is
--   paused_partition_seconds  sum of the pauses of all partitions; null: none known
--   pause_max_seconds         longest pause; null: none known
--   records_delayed           records that arrived in pauses; null: none known
--   records_replayed          records read again; null: none known
--   avoidable                 partitions moved without need; null: none known
--   rebalances_unknown        rebalances whose pauses are unknown and in no sum

with per_group as (
    select
        cluster, "group",
        count(*) as rebalances,
        sum(rebalance_seconds) as rebalance_seconds,
        sum(paused_partition_seconds) as paused_partition_seconds,
        max(pause_max_seconds) as pause_max_seconds,
        sum(records_delayed) as records_delayed,
        sum(records_replayed) as records_replayed,
        sum(avoidable) as avoidable,
        count(*) - count(paused_partition_seconds) as rebalances_unknown
    from rebalances
    where date >= cast(:from as date) and date <= cast(:to as date) and ended_at >= :from and ended_at <= :to
    group by cluster, "group"
)

select
    row_number() over (
        order by paused_partition_seconds desc nulls last, records_delayed desc nulls last, cluster, "group"
    ) as rank,
    *
from per_group
order by rank
