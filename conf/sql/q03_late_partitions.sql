-- Q3 Which partitions gathered the most late records, and what is their share of the arrivals (hot keys)?
--
-- Parameters
--   :from   timestamp  30 days before :to  begin
--   :to     timestamp  now                 end
--   :group  text       null                this group only
--   :limit  number     20                  rows
-- Columns
--   cluster                  cluster
--   group                    group
--   topic                    topic
--   topic_id                 topic id
--   partition                partition
--   late_records             records not committed at the age of the SLO
--   late_share               of the late records of the group on the topic
--   produced                 records that arrived on the partition; null: unknown throughout
--   arrival_share            of the topic's arrivals; well above 1 / partitions: look for a hot key
--   partitions               partitions of the topic with known arrivals
--   windows_late             windows with late records
--   windows_arrival_unknown  windows in which the partition's arrivals are unknown

with late as (
    select
        cluster, "group", topic, topic_id, "partition",
        sum(late_records) as late_records,
        count(*) as windows_late
    from lag_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and late_records > 0 and (:group is null or "group" = :group)
    group by cluster, "group", topic, topic_id, "partition"
),

arrived as (
    select
        cluster, topic, topic_id, "partition",
        sum(produced) as produced,
        count(*) - count(produced) as windows_arrival_unknown
    from topic_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
    group by cluster, topic, topic_id, "partition"
),

shares as (
    select
        *,
        sum(produced) over (partition by cluster, topic, topic_id) as produced_topic,
        count(produced) over (partition by cluster, topic, topic_id) as partitions
    from arrived
)

select
    late.cluster,
    late."group",
    late.topic,
    late.topic_id,
    late."partition",
    late.late_records,
    late.late_records * 1.0 / sum(late.late_records) over (
        partition by late.cluster, late."group", late.topic, late.topic_id
    ) as late_share,
    shares.produced,
    case when shares.produced_topic > 0 then shares.produced * 1.0 / shares.produced_topic end as arrival_share,
    shares.partitions,
    late.windows_late,
    shares.windows_arrival_unknown
from late
left join shares
    on
        late.cluster = shares.cluster and late.topic = shares.topic
        and late.topic_id = shares.topic_id and late."partition" = shares."partition"
order by late.late_records desc, late.cluster, late."group", late.topic, late."partition"
limit :limit
