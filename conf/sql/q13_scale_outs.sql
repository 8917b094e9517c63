-- Q13 Did adding consumers help (elasticity), and when was it futile?
--
-- Parameters
--   :from            timestamp  30 days before :to  begin
--   :to              timestamp  now                 end
--   :group           text       null                this group only
--   :elasticity_min  number     0.3                 below this it was futile
-- Columns
--   cluster              cluster
--   group                group
--   event_at             when the change was complete
--   members_before       members before
--   members_after        members after
--   consume_rate_before  median of busy windows before, records/s; null: it was not busy
--   consume_rate_after   median of busy windows after, records/s; null: it was not busy
--   elasticity           ln(rate after / before) / ln(members after / before); 1: all of it; null: a side was not busy
--   futile_findings      findings SCALE_OUT_FUTILE that opened within 45 minutes
--   lag_before           lag before, as such a finding says; null: none
--   lag_after            lag when it opened
--   outcome              helped, futile or unknown

with reported as (
    select
        scale_events.cluster, scale_events."group", scale_events.event_at,
        count(distinct findings.finding_id) as findings,
        max(findings.evidence['lag_before_records']) as lag_before,
        max(findings.evidence['lag_records']) as lag_after
    from scale_events
    inner join findings
        on
            scale_events.cluster = findings.cluster and scale_events."group" = findings."group"
            and findings.opened_at >= scale_events.event_at
            and findings.opened_at <= scale_events.event_at + interval '45' minute
    where
        findings.date >= cast(:from as date) and findings.date <= cast(:to as date)
        and scale_events.date >= cast(:from as date)
        and findings.code = 'SCALE_OUT_FUTILE' and findings.event = 'opened'
    group by scale_events.cluster, scale_events."group", scale_events.event_at
)

select
    scale_events.cluster,
    scale_events."group",
    scale_events.event_at,
    scale_events.members_before,
    scale_events.members_after,
    scale_events.consume_rate_before,
    scale_events.consume_rate_after,
    scale_events.elasticity,
    coalesce(reported.findings, 0) as futile_findings,
    reported.lag_before,
    reported.lag_after,
    case
        when reported.findings > 0 or scale_events.elasticity < :elasticity_min then 'futile'
        when scale_events.elasticity is null then 'unknown'
        else 'helped'
    end as outcome
from scale_events
left join reported
    on
        scale_events.cluster = reported.cluster and scale_events."group" = reported."group"
        and scale_events.event_at = reported.event_at
where
    scale_events.date >= cast(:from as date) and scale_events.date <= cast(:to as date)
    and scale_events.event_at >= :from and scale_events.event_at <= :to
    and scale_events.members_after > scale_events.members_before
    and (:group is null or scale_events."group" = :group)
order by scale_events.cluster, scale_events."group", scale_events.event_at
