-- Q10 Which groups violate the ratios of timeouts, or have sessions shorter than the absences of their static members?
--
-- Parameters
--   :from               timestamp  30 days before :to  begin
--   :to                 timestamp  now                 end
--   :heartbeat_seconds  number     3                   heartbeat interval: Kafka does not record it, this is the default
-- Columns
--   cluster                    cluster
--   group                      group, by its newest generation
--   members                    members of that generation
--   session_seconds            shortest session timeout; null: not in the record
--   rebalance_timeout_seconds  shortest rebalance timeout (max.poll.interval.ms); null: not in the record
--   is_session_short           session below 3 heartbeats; null: unknown
--   is_session_above_poll      session above the rebalance timeout: hangs are found late; null: unknown
--   static_members             members with a group_instance_id
--   absences                   absences of static members that were seen
--   absence_p95_seconds        95th percentile (nearest rank) of these; null: none seen
--   static_expired             absences that outlasted the session
--   is_session_tight           session below 1.5 x absence_p95_seconds; null: unknown, or no static member

with ordered as (
    select
        *,
        dense_rank() over (
            partition by cluster, "group" order by record_timestamp desc, source_partition, source_offset desc
        ) as age
    from group_members
    where
        date >= cast(:from as date) and date <= cast(:to as date)
        and record_timestamp >= :from and record_timestamp <= :to
),

sessions as (
    select
        cluster, "group",
        count(*) as members,
        min(session_timeout_ms) / 1000.0 as session_seconds,
        min(case when group_instance_id is not null then session_timeout_ms end) / 1000.0 as static_session_seconds,
        min(rebalance_timeout_ms) / 1000.0 as rebalance_timeout_seconds,
        max(session_timeout_ms - rebalance_timeout_ms) > 0 as is_session_above_poll,
        count(group_instance_id) as static_members
    from ordered
    where age = 1
    group by cluster, "group"
),

absences as (
    select
        *,
        row_number() over (partition by cluster, "group" order by seconds nulls last) as place,
        count(seconds) over (partition by cluster, "group") as known
    from group_events
    where
        date >= cast(:from as date) and date <= cast(:to as date) and event_at >= :from and event_at <= :to
        and kind in ('static_replacement', 'static_expired')
),

away as (
    select
        cluster, "group",
        count(*) as absences,
        min(case when place >= 0.95 * known then seconds end) as absence_p95_seconds,
        sum(case when kind = 'static_expired' then 1 else 0 end) as static_expired
    from absences
    group by cluster, "group"
)

select
    sessions.cluster,
    sessions."group",
    sessions.members,
    sessions.session_seconds,
    sessions.rebalance_timeout_seconds,
    sessions.session_seconds < 3 * :heartbeat_seconds as is_session_short,
    sessions.is_session_above_poll,
    sessions.static_members,
    coalesce(away.absences, 0) as absences,
    away.absence_p95_seconds,
    coalesce(away.static_expired, 0) as static_expired,
    sessions.static_session_seconds < 1.5 * away.absence_p95_seconds as is_session_tight
from sessions
left join away on sessions.cluster = away.cluster and sessions."group" = away."group"
order by
    case
        when sessions.session_seconds < 3 * :heartbeat_seconds or sessions.is_session_above_poll
            or sessions.static_session_seconds < 1.5 * away.absence_p95_seconds then 0
        else 1
    end,
    sessions.cluster,
    sessions."group"
