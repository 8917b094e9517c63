-- Q2 For a group at a time: shape of its lag, primary cause, and would adding consumers have helped?
--
-- Parameters
--   :group  text       required          the group
--   :from   timestamp  1 day before :to  how far back its newest window may lie
--   :to     timestamp  now               the time asked about
-- Columns
--   cluster             cluster
--   group               group
--   topic               topic
--   window_end          end of the newest window evaluated by then
--   lag                 sum over partitions; null: a partition is unknown
--   lag_known           sum over the partitions that are known
--   shape               none, single, spread, mixed or concentrated
--   trend               growing, flat, draining, sawtooth or abstain
--   primary_code        code of the primary finding; null: none was open
--   primary_severity    page, warn or info
--   primary_since       since when its condition held
--   primary_confidence  0 to 1
--   would_help          yes, no or unknown
--   scale_verdict       the verdict in full, see docs/diagnosis.md
--   members             members
--   members_desired     advised number of members; null: unknown
--   members_ceiling     members that could get a partition

with evaluated as (
    select *, max(window_end) over (partition by cluster) as newest
    from group_windows
    where
        date >= cast(:from as date) and date <= cast(:to as date)
        and window_start >= :from and window_end <= :to and "group" = :group
),

reported as (
    select
        *, row_number() over (partition by cluster, code order by "at" desc, opened_at desc, seq desc) as age
    from findings
    where
        date >= cast(:from as date) and date <= cast(:to as date)
        and "at" <= :to and "group" = :group and role = 'primary' and event <> 'closed'
)

select
    evaluated.cluster,
    evaluated."group",
    evaluated.topic,
    evaluated.window_end,
    evaluated.lag,
    evaluated.lag_known,
    evaluated.shape,
    evaluated.trend,
    evaluated.primary_code,
    reported.severity as primary_severity,
    reported.started_at as primary_since,
    reported.confidence as primary_confidence,
    case
        when evaluated.scale_verdict like 'YES%' then 'yes'
        when evaluated.scale_verdict like 'NO%' then 'no'
        else 'unknown'
    end as would_help,
    evaluated.scale_verdict,
    evaluated.members,
    evaluated.members_desired,
    evaluated.members_ceiling
from evaluated
left join reported
    on evaluated.cluster = reported.cluster and evaluated.primary_code = reported.code and reported.age = 1
where evaluated.window_end = evaluated.newest
order by evaluated.cluster, evaluated.topic
