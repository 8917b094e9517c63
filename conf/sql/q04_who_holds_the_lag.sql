-- Q4 Which member, host or broker explains most of the lag?
--
-- Parameters
--   :from   timestamp  1 hour before :to  begin
--   :to     timestamp  now                end
--   :group  text       null               this group only
-- Columns
--   cluster             cluster
--   group               group
--   factor              member (its slot), host or broker
--   name                which one; null: nobody owned the partition, or it is not known
--   mean_lag            lag of the partitions it had, per window of the partition known longest
--   lag_share           of the group's lag that is known
--   partition_share     of the group's partitions: it explains something where lag_share is well above
--   partitions          partitions it had, those with unknown lag left out
--   partitions_unknown  partitions whose lag was unknown in some window

with per_partition as (
    select
        cluster, "group", topic, "partition", slot, client_host, leader_broker,
        sum(case when status = 'ok' then lag end) as lag_sum,
        sum(case when status = 'ok' then 1 else 0 end) as windows_known,
        sum(case when status = 'ok' then 0 else 1 end) as windows_unknown
    from lag_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and status <> 'no_commit' and (:group is null or "group" = :group)
    group by cluster, "group", topic, "partition", slot, client_host, leader_broker
),

counted as (
    select *, sum(windows_known) over (partition by cluster, "group", topic, "partition") as windows_there
    from per_partition
),

watched as (
    select *, max(windows_there) over (partition by cluster, "group") as windows
    from counted
),

named as (
    select
        watched.*,
        factors.factor,
        case factors.factor
            when 'member' then slot
            when 'host' then client_host
            else cast(leader_broker as string)
        end as name
    from watched
    cross join (values ('member'), ('host'), ('broker')) as factors (factor)
),

summed as (
    select
        cluster, "group", factor, name,
        sum(lag_sum) as lag_sum,
        max(windows) as windows,
        sum(windows_known) as partition_windows,
        count(distinct case when windows_known > 0 then topic || '-' || cast("partition" as string) end) as partitions,
        count(distinct case when windows_unknown > 0 then topic || '-' || cast("partition" as string) end)
            as partitions_unknown
    from named
    group by cluster, "group", factor, name
)

select
    summed.cluster,
    summed."group",
    summed.factor,
    summed.name,
    case when summed.windows > 0 then summed.lag_sum * 1.0 / summed.windows end as mean_lag,
    case when sum(summed.lag_sum) over whole > 0 then summed.lag_sum * 1.0 / sum(summed.lag_sum) over whole end
        as lag_share,
    case
        when sum(summed.partition_windows) over whole > 0
            then summed.partition_windows * 1.0 / sum(summed.partition_windows) over whole
    end as partition_share,
    summed.partitions,
    summed.partitions_unknown
from summed
window whole as (partition by summed.cluster, summed."group", summed.factor)
order by summed.cluster, summed."group", lag_share desc nulls last, summed.factor, summed.name
