-- Q6 Which groups are closest to data loss; did any lose records, and how many?
--
-- Parameters
--   :from   timestamp  30 days before :to  begin
--   :to     timestamp  now                 end
--   :limit  number     50                  rows
-- Columns
--   cluster           cluster
--   group             group
--   topic             topic
--   window_end        end of its newest window
--   loss_seconds      until retention reaches an unread record; infinity: not at the current rates; null: unknown
--   headroom_records  fewest records that retention may take first on a partition; null: unknown, or an hour old
--   lost_records      records deleted unread for certain, or ahead of its last position; null: unknown throughout
--   partitions_lost   partitions with such records
--   findings          findings DATA_LOST that opened
--   windows_unknown   windows in which the loss is unknown on all partitions

with evaluated as (
    select
        cluster, "group", topic,
        max(window_start) as window_start,
        count(lost_records) as windows_known,
        count(*) - count(lost_records) as windows_unknown
    from group_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
    group by cluster, "group", topic
),

newest as (
    select evaluated.*, group_windows.window_end, group_windows.loss_seconds
    from evaluated
    inner join group_windows
        on
            evaluated.cluster = group_windows.cluster and evaluated."group" = group_windows."group"
            and evaluated.topic = group_windows.topic and evaluated.window_start = group_windows.window_start
    where group_windows.date >= cast(:from as date) and group_windows.date <= cast(:to as date)
),

-- a group stays at one committed offset while retention passes it: the largest loss at an offset is the loss there
lost_at as (
    select cluster, "group", topic, topic_id, "partition", committed_offset, max(lost_records) as lost
    from lag_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
        and lost_records > 0
    group by cluster, "group", topic, topic_id, "partition", committed_offset
),

lost as (
    select
        cluster, "group", topic,
        sum(lost) as lost_records,
        count(distinct topic_id || '-' || cast("partition" as string)) as partitions_lost
    from lost_at
    group by cluster, "group", topic
),

room as (
    select cluster, "group", topic, window_start, min(headroom_records) as headroom_records
    from lag_windows
    where
        date >= cast(:to as date) - interval '1' day and date <= cast(:to as date)
        and window_start >= :to - interval '1' hour and window_end <= :to
    group by cluster, "group", topic, window_start
),

reported as (
    select cluster, "group", topic, count(distinct finding_id) as findings
    from findings
    where
        date >= cast(:from as date) and date <= cast(:to as date) and "at" >= :from and "at" <= :to
        and code = 'DATA_LOST' and event = 'opened'
    group by cluster, "group", topic
)

select
    newest.cluster,
    newest."group",
    newest.topic,
    newest.window_end,
    newest.loss_seconds,
    room.headroom_records,
    case when newest.windows_known > 0 then coalesce(lost.lost_records, 0) else lost.lost_records end as lost_records,
    case when newest.windows_known > 0 then coalesce(lost.partitions_lost, 0) else lost.partitions_lost end
        as partitions_lost,
    coalesce(reported.findings, 0) as findings,
    newest.windows_unknown
from newest
left join lost
    on newest.cluster = lost.cluster and newest."group" = lost."group" and newest.topic = lost.topic
left join room
    on
        newest.cluster = room.cluster and newest."group" = room."group"
        and newest.topic = room.topic and newest.window_start = room.window_start
left join reported
    on newest.cluster = reported.cluster and newest."group" = reported."group" and newest.topic = reported.topic
order by newest.loss_seconds nulls last, lost_records desc nulls last, newest.cluster, newest."group", newest.topic
limit :limit
