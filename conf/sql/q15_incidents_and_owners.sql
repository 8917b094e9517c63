-- Q15 Which incidents were cluster-wide (one broker, coordinator or topic), and who owned a partition at a time?
--
-- Parameters
--   :from       timestamp  1 day before :to  begin
--   :to         timestamp  now               end, and the time whose owner is asked for
--   :topic      text       null              topic of the partition whose owner is asked for
--   :partition  number     null              the partition
--   :groups     number     3                 groups that make a topic's trouble an incident
-- Columns
--   cluster      cluster
--   kind         cluster (a finding about the cluster), topic (one code in several groups), or owner
--   code         what was found; of an owner the status of the partition
--   name         broker or other subject, topic, or slot of the owner; null: none, or not known
--   group        group that the owner belongs to
--   groups       groups in which it showed; null: the finding does not say
--   rebalances   rebalances of groups of that coordinator in that time; null: it names none
--   started_at   since when; of an owner the window
--   ended_at     until when; null: open
--   severity     page, warn or info
--   member_id    member that owned it; null: no member, or not known
--   client_host  address it connected from

with opened as (
    select *
    from findings
    where
        date >= cast(:from as date) and date <= cast(:to as date) and "at" >= :from and "at" <= :to and event = 'opened'
),

closed as (
    select cluster, finding_id, max(closed_at) as closed_at
    from findings
    where
        date >= cast(:from as date) and date <= cast(:to as date) and "at" >= :from and "at" <= :to and event = 'closed'
    group by cluster, finding_id
),

of_cluster as (
    select
        opened.cluster, opened.finding_id, opened.code, opened.subject, opened.severity, opened.started_at,
        opened.evidence['groups'] as groups,
        closed.closed_at,
        opened.coordinator,
        count(rebalances.rebalance_id) as rebalances
    from opened
    left join closed on opened.cluster = closed.cluster and opened.finding_id = closed.finding_id
    left join rebalances
        on
            opened.cluster = rebalances.cluster and opened.coordinator = rebalances.coordinator
            and rebalances.date >= cast(:from as date) and rebalances.date <= cast(:to as date)
            and rebalances.ended_at >= opened.started_at
            and rebalances.ended_at <= coalesce(closed.closed_at, :to)
    where opened."group" is null
    group by
        opened.cluster, opened.finding_id, opened.code, opened.subject, opened.severity, opened.started_at,
        opened.evidence['groups'], closed.closed_at, opened.coordinator
),

-- the same code on the same topic, none opening more than ten minutes after the one before
of_topics as (
    select
        opened.*,
        closed.closed_at as ended_at,
        lag(opened.opened_at) over (partition by opened.cluster, opened.topic, opened.code order by opened.opened_at)
            as previous
    from opened
    left join closed on opened.cluster = closed.cluster and opened.finding_id = closed.finding_id
    where opened."group" is not null and opened.topic is not null
),

numbered as (
    select
        *,
        sum(case when opened_at <= previous + interval '10' minute then 0 else 1 end)
            over (partition by cluster, topic, code order by opened_at) as incident
    from of_topics
),

owned as (
    select *, row_number() over (partition by cluster, "group", topic, "partition" order by window_start desc) as age
    from lag_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_start <= :to
        and topic = coalesce(:topic, '') and "partition" = coalesce(:partition, -1)
),

answers as (
    select
        cluster, 'cluster' as kind, code, subject as name, cast(null as string) as "group",
        cast(groups as bigint) as groups,
        case when coordinator is not null then rebalances end as rebalances,
        started_at, closed_at as ended_at, severity,
        cast(null as string) as member_id, cast(null as string) as client_host
    from of_cluster
    union all
    select
        cluster, 'topic', code, topic, cast(null as string), count(distinct "group"), cast(null as bigint),
        min(started_at), case when count(ended_at) = count(*) then max(ended_at) end,
        case min(case severity when 'page' then 1 when 'warn' then 2 else 3 end)
            when 1 then 'page' when 2 then 'warn' else 'info'
        end,
        cast(null as string), cast(null as string)
    from numbered
    group by cluster, topic, code, incident
    having count(distinct "group") >= :groups
    union all
    select
        cluster, 'owner', status, slot, "group", cast(null as bigint), cast(null as bigint),
        window_start, window_end, cast(null as string), owner, client_host
    from owned
    where age = 1
)

select *
from answers
order by cluster, kind, started_at, code, name, "group"
