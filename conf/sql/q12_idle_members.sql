-- Q12 How many replica-hours did idle members waste, and which groups are candidates for scaling on lag?
--
-- Parameters
--   :from        timestamp  7 days before :to  begin
--   :to          timestamp  now                end
--   :busy_share  number     0.1                a group whose members are busy less than this is a candidate
-- Columns
--   cluster          cluster
--   group            group
--   hours            hours with known members
--   hours_unknown    hours in which the members are not known
--   member_hours     members x hours; null: never known
--   idle_hours       of these, of members without partitions; null: never known
--   waiting_hours    of these, of members with too little to do; null: never known
--   busy_share       share of the member hours in which members were busy; null: never known
--   members          members now
--   members_desired  advised number of members, by the newest verdict; null: unknown
--   is_candidate     at least 2 members, known for 80 % of the time, and busy_share below the limit; null: unknown

-- values of a group are in the rows of each of its topics: they are taken once, not summed
with facts as (
    select
        cluster, "group", window_start,
        max(extract(epoch from window_end) - extract(epoch from window_start)) as seconds,
        max(members) as members,
        max(idle_members) as idle_members,
        max(busy_share) as busy_share,
        max(members_desired) as members_desired
    from group_windows
    where date >= cast(:from as date) and date <= cast(:to as date) and window_start >= :from and window_end <= :to
    group by cluster, "group", window_start
),

ordered as (
    select *, row_number() over (partition by cluster, "group" order by window_start desc) as age
    from facts
),

summed as (
    select
        cluster, "group",
        coalesce(sum(case when members is not null then seconds end), 0) / 3600 as hours,
        coalesce(sum(case when members is null then seconds end), 0) / 3600 as hours_unknown,
        sum(members * seconds) / 3600 as member_hours,
        sum(idle_members * seconds) / 3600 as idle_hours,
        sum((1 - busy_share) * members * seconds) / 3600 as waiting_hours,
        sum(busy_share * members * seconds) / 3600 as busy_hours,
        max(case when age = 1 then members end) as members,
        max(case when age = 1 then members_desired end) as members_desired
    from ordered
    group by cluster, "group"
),

shares as (
    select
        *,
        case when busy_hours + waiting_hours > 0 then busy_hours / (busy_hours + waiting_hours) end as busy_share
    from summed
)

select
    cluster,
    "group",
    hours,
    hours_unknown,
    member_hours,
    idle_hours,
    waiting_hours,
    busy_share,
    members,
    members_desired,
    case
        when hours >= 4 * hours_unknown then members >= 2 and busy_share < :busy_share
    end as is_candidate
from shares
order by idle_hours desc nulls last, waiting_hours desc nulls last, cluster, "group"
