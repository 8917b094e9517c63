-- Q14 How clean are the commits: share without progress, rate, load of each offsets partition?
--
-- Parameters
--   :from  timestamp  1 day before :to  begin
--   :to    timestamp  now               end
-- Columns
--   cluster                       cluster
--   group                         group
--   offsets_partition             partition of the offsets topic that holds it; null: not seen
--   coordinator                   broker that leads it; null: unknown
--   commits                       commits
--   noop_commits                  of these, commits that repeat the offset
--   noop_share                    noop_commits / commits; null: no commit
--   commits_per_second            over the time watched
--   seconds                       time watched
--   partition_commits_per_second  of all groups on that offsets partition; null: it is not known
--   partition_groups              groups on it
--   findings                      findings COMMIT_IDLE_CHURN and COMMIT_RATE_HIGH of the group that opened

with windows as (
    select
        cluster, "group", window_start,
        max(extract(epoch from window_end) - extract(epoch from window_start)) as seconds,
        sum(commits) as commits,
        sum(noop_commits) as noop_commits
    from group_windows
    where date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
    group by cluster, "group", window_start
),

summed as (
    select
        cluster, "group",
        sum(commits) as commits,
        sum(noop_commits) as noop_commits,
        sum(case when commits is not null then seconds end) as seconds
    from windows
    group by cluster, "group"
),

rated as (
    select
        summed.*,
        group_status.offsets_partition,
        group_status.coordinator,
        summed.commits / summed.seconds as commits_per_second
    from summed
    left join group_status on summed.cluster = group_status.cluster and summed."group" = group_status."group"
),

reported as (
    select
        cluster, "group",
        count(distinct finding_id) as findings
    from findings
    where
        date >= cast(:from as date) and date <= cast(:to as date) and "at" >= :from and "at" <= :to
        and code in ('COMMIT_IDLE_CHURN', 'COMMIT_RATE_HIGH') and event = 'opened'
    group by cluster, "group"
)

select
    rated.cluster,
    rated."group",
    rated.offsets_partition,
    rated.coordinator,
    rated.commits,
    rated.noop_commits,
    case when rated.commits > 0 then rated.noop_commits * 1.0 / rated.commits end as noop_share,
    rated.commits_per_second,
    rated.seconds,
    case when rated.offsets_partition is not null then sum(rated.commits_per_second) over held end
        as partition_commits_per_second,
    case when rated.offsets_partition is not null then count(*) over held end as partition_groups,
    coalesce(reported.findings, 0) as findings
from rated
left join reported on rated.cluster = reported.cluster and rated."group" = reported."group"
window held as (partition by rated.cluster, rated.offsets_partition)
order by rated.commits_per_second desc nulls last, rated.cluster, rated."group"
