"""Why a rebalance happened, as far as a reader of all records can know it: the structural cause,
and the reasons.

A member that came and went between two records left no trace, and neither did a round that was cut
short: what remains then is "unknown".
"""

from __future__ import annotations

from collections.abc import Sequence

from simulator.logical import Logical, Record, name_of, roster

RETURN_MS = 600_000
# whoever falls silent is evicted by its session, whatever it died of (GroupCoordinator: "heartbeat
# expiration")
_REASONS = {
    "scale_in": {"scale_in"},
    "close": {"scale_in"},
    "deploy": {"deploy"},
    "leave": {"scale_in"},
    "slow_batch": {"poll_timeout"},
    "poll_interval": {"poll_timeout"},
    "rejoin_timeout": {"poll_timeout"},  # the rebalance timeout is the poll interval
    "rebalance_timeout": {"poll_timeout"},
    "freeze": {"session_expiry"},
    "session_expiry": {"session_expiry"},
    "static_expiry": {"session_expiry"},
    "crash": {"crash", "session_expiry"},
    "crash_loop": {"crash", "session_expiry"},
}


def expected_cause(logical: Logical, earlier: Sequence[Logical], *, grew: bool) -> str:
    """The first of the list that happened and shows in records; `earlier` are the group's
    rebalances before.

    `grew`: a topic got partitions within five minutes before. Whatever began the rebalance that
    hands them out, they stand first in the list.
    """
    was, now = _who(logical, logical.prior), _who(logical, logical.records[-1])
    if "coordinator_move" in logical.causes and was.keys() == now.keys():
        return "coordinator_failover"
    old = {place for held in logical.before.values() for place in held}
    new = {place for held in logical.after.values() for place in held}
    if new - old and ("topic_change" in logical.causes or grew):
        return "partitions_added"
    for cause in ("subscription_change", "assignor_change"):
        if cause in logical.causes and was:
            return cause
    return _of_members(logical, was, now, earlier)


def _who(logical: Logical, record: Record | None) -> dict[str, str]:
    """What stays the same as long as it is the same member -> slot; a static one only as long as it
    is not evicted.
    """
    left = {slot for slot, _ in logical.left}
    return {
        member_id if slot in left else name_of(member_id, slot): slot
        for member_id, slot in roster(record).items()
    }


def _of_members(
    logical: Logical, was: dict[str, str], now: dict[str, str], earlier: Sequence[Logical]
) -> str:
    """Who came and who went, if it shows: name -> slot before and after."""
    # a KIP-848 member rejoins under the id it had; a static one that a record lacks was evicted
    lacking = {slot for slot in was.values() if _is_static(slot)} & _missing(logical)
    came = (
        {slot for name, slot in now.items() if name not in was} | (lacking & {*now.values()})
    ) & logical.joined
    went = ({slot for name, slot in was.items() if name not in now} | lacking) & {
        slot for slot, _ in logical.left
    }
    # it was evicted and has rejoined
    is_back = came <= went and all(_is_static(slot) for slot in came)
    if came and went and not is_back:
        return "replacement"
    if went:
        return "static_expired" if all(_is_static(slot) for slot in went) else "member_left"
    if came:
        near = [each for each in earlier if logical.end_ms - each.end_ms <= RETURN_MS]
        gone = {slot for each in near for slot, _ in each.left if _is_static(slot)}
        return "static_return" if came <= gone else "member_join"
    is_hidden = bool(logical.joined or logical.left or logical.interrupted)
    # only the leader of a classic group can ask for a round that changes nothing, and a KIP-848
    # group has none
    return "leader_rejoin" if logical.is_classic and not is_hidden else "unknown"


def _missing(logical: Logical) -> set[str]:
    """Slots of the last record before that one of the rebalance's own lacks."""
    rosters = [set(roster(record).values()) for record in logical.records]
    return set(roster(logical.prior).values()) - set.intersection(*rosters)


def right_reasons(logical: Logical, later: Sequence[Logical]) -> set[str]:
    """Reasons that hold for every member that left; `later` are the group's rebalances from this
    one on.

    A static one is always evicted by its session (KIP-345). One that is stopped while another is
    started soon after is replaced, whatever that is called.
    """
    came = any(each.joined for each in later if each.start_ms - logical.end_ms <= RETURN_MS)
    found = []
    for slot, why in logical.left:
        reasons = set(_REASONS.get(why, ()))
        reasons |= {"session_expiry"} if _is_static(slot) else set()
        reasons |= {"deploy"} if came and "scale_in" in reasons else set()
        found.append(reasons)
    return set.intersection(*found) if found else set()


def _is_static(slot: str) -> bool:
    return "@" not in slot
