-- Q11 How much do partitions go back and forth, and move without need, by assignor?
--
-- Parameters
--   :from  timestamp  30 days before :to  begin
--   :to    timestamp  now                 end
-- Columns
--   cluster             cluster
--   assignor            assignor after the rebalance; null: no members, or the broker's default
--   groups              groups with a rebalance
--   rebalances          logical rebalances
--   rebalances_unknown  of these, those whose moves are unknown and in no sum
--   moved               partitions that changed their slot; null: none known
--   avoidable           of these, moves that departures and balance did not need
--   avoidable_share     avoidable / moved; null: nothing moved
--   moved_ratio         mean share of a group's partitions that a rebalance moved
--   max_ping_pong       largest share of an hour's moves that took a partition back; null: none moved
--   groups_ping_pong    groups in which that reached 0.3

with moves as (
    select
        cluster, assignor,
        count(distinct "group") as groups,
        count(*) as rebalances,
        count(*) - count(moved) as rebalances_unknown,
        sum(moved) as moved,
        sum(avoidable) as avoidable,
        avg(moved_ratio) as moved_ratio
    from rebalances
    where date >= cast(:from as date) and date <= cast(:to as date) and ended_at >= :from and ended_at <= :to
    group by cluster, assignor
),

returns as (
    select
        cluster, assignor,
        max(ping_pong) as max_ping_pong,
        count(distinct case when ping_pong >= 0.3 then "group" end) as groups_ping_pong
    from group_history
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and ping_pong is not null
    group by cluster, assignor
)

select
    moves.cluster,
    moves.assignor,
    moves.groups,
    moves.rebalances,
    moves.rebalances_unknown,
    moves.moved,
    moves.avoidable,
    case when moves.moved > 0 then moves.avoidable * 1.0 / moves.moved end as avoidable_share,
    moves.moved_ratio,
    returns.max_ping_pong,
    coalesce(returns.groups_ping_pong, 0) as groups_ping_pong
from moves
left join returns
    on
        moves.cluster = returns.cluster
        and (moves.assignor = returns.assignor or (moves.assignor is null and returns.assignor is null))
order by avoidable desc nulls last, moves.cluster, moves.assignor
