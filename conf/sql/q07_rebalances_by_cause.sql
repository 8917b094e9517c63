-- Q7 Rebalances of each group and day by cause: what share came from changes of membership, what share was unnecessary?
--
-- Parameters
--   :from   timestamp  7 days before :to  begin
--   :to     timestamp  now                end
--   :group  text       null               this group only
-- Columns
--   cluster            cluster
--   group              group
--   date               UTC date of the end
--   cause              what began it, or unknown
--   rebalances         logical rebalances of this cause
--   rebalances_of_day  of all causes
--   membership_share   of the day's rebalances with a known cause, those because members joined, left or were replaced
--   unnecessary_share  of the day's rebalances with a known necessity, those that only a timeout began
--   necessity_unknown  rebalances of the day whose necessity is unknown

with per_cause as (
    select
        cluster, "group", date, cause,
        count(*) as rebalances,
        sum(case when cause = 'unknown' then 0 else 1 end) as known,
        sum(case
            when cause in ('member_join', 'member_left', 'replacement', 'static_expired', 'static_return') then 1
            else 0
        end) as of_membership,
        sum(case when necessity = 'unknown' then 1 else 0 end) as necessity_unknown,
        sum(case when necessity in ('unnecessary_heartbeat', 'unnecessary_processing') then 1 else 0 end) as unnecessary
    from (
        select cluster, "group", date, coalesce(cause, 'unknown') as cause, coalesce(necessity, 'unknown') as necessity
        from rebalances
        where
            date >= cast(:from as date) and date <= cast(:to as date) and ended_at >= :from and ended_at <= :to
            and (:group is null or "group" = :group)
    ) as named
    group by cluster, "group", date, cause
),

per_day as (
    select
        *,
        sum(rebalances) over of_day as rebalances_of_day,
        sum(known) over of_day as known_of_day,
        sum(of_membership) over of_day as membership_of_day,
        sum(unnecessary) over of_day as unnecessary_of_day,
        sum(necessity_unknown) over of_day as necessity_unknown_of_day
    from per_cause
    window of_day as (partition by cluster, "group", date)
)

select
    cluster,
    "group",
    date,
    cause,
    rebalances,
    rebalances_of_day,
    case when known_of_day > 0 then membership_of_day * 1.0 / known_of_day end as membership_share,
    case
        when rebalances_of_day > necessity_unknown_of_day
            then unnecessary_of_day * 1.0 / (rebalances_of_day - necessity_unknown_of_day)
    end as unnecessary_share,
    necessity_unknown_of_day as necessity_unknown
from per_day
order by date desc, rebalances_of_day desc, cluster, "group", rebalances desc, cause
