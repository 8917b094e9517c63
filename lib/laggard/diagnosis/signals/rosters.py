"""Members of a group after each of its records, and the changes between the records.

The changes are departures, returns, crash loops and evictions.

A place is what a member's successor has in common with it: its instance id, else its client id and
host. The slot of a classic member is its place with a number; the slot of a KIP-848 member is its
member id, which no successor has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.statistics import is_most
from laggard.rebalance.analytics.posterior import Posterior, share_reasons
from laggard.rebalance.parameters import DEFAULTS

EVICTION_REASONS = ("poll_timeout", "session_expiry", "crash")
RETURN_SECONDS = fixed(
    "return_seconds", DEFAULTS.return_seconds, "s until a member rejoins: a return"
)
# the interval is not recorded
HEARTBEAT_SECONDS = fixed(
    "heartbeat_seconds", DEFAULTS.heartbeat_seconds, "s, the Java consumer's default"
)
_POLL_SHARE = fixed(
    "poll_share",
    DEFAULTS.poll_timeout_share,
    "of the rebalance timeout: idle so long before it left",
)
# twice the default session: a short session must not hide a member that dies each minute
_CRASH_MIN_SECONDS = fixed("crash_min_seconds", 90.0, "s, a shorter life is one that ended early")
_CRASH_SESSIONS = fixed("crash_sessions", 2, "sessions, likewise")
_SERIES_DEPARTURES = fixed(
    "series_departures", 5, "departures without a claimed reason, from which evidence adds up"
)
_AWAY_TIMES = fixed(
    "away_times", 3, "times the longest absence before: a back-off doubles, a stop lasts"
)
_NEVER = datetime.max.replace(tzinfo=timezone.utc)
_AWAY_MIN_SECONDS = fixed(
    "away_min_seconds", 120.0, "s, an absence up to here may end like those before"
)


@dataclass(frozen=True, slots=True)
class Roster:
    """The members of a group as one of its records leaves them."""

    at: datetime
    generation_kind: str
    generation: int
    source_offset: int
    rows: tuple[Row, ...]  # of its members
    is_live: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Places taken and given up by one record.

    A restarted place was given up and taken again in it.
    """

    at: datetime
    joined: tuple[str, ...]
    left: tuple[str, ...]
    restarted: tuple[str, ...]
    before: int  # members before
    after: int
    generation: int | None = None  # None: a static member's return, no rebalance
    returned: tuple[str, ...] = ()  # of those that joined, whose departure was a fault


@dataclass(frozen=True, slots=True)
class CrashLoop:
    """A place, or most of a group, that members leave again and again soon after they joined.

    A lifetime is from the record of joining to that of leaving. `places` are those of one client on
    one host: one that restarts before its old member is missed gets a place beside it.
    """

    home: str  # an instance id, or client and host; "" for members that leave with most others
    places: frozenset[str]
    departures: tuple[datetime, ...]
    lifetimes_seconds: tuple[float, ...]
    is_given_up: bool  # nobody has taken it for much longer than each time before
    has_returned: bool  # it was one already when members last took it


@dataclass(frozen=True, slots=True)
class Eviction:
    """A departure whose reason the posterior claims."""

    slot: str
    at: datetime
    posterior: float
    rebalance_id: str
    # it rejoined on another host, or (false) on its own, in the same rebalance
    is_elsewhere: bool | None


def rosters_of(frame: GroupFrame) -> tuple[Roster, ...]:
    """Return rosters in log order.

    `is_live` is false for a record that was read while catching up.
    """
    by_record: dict[tuple[str, int, int], list[Row]] = {}
    for row in frame.members:
        by_record.setdefault(
            (row["generation_kind"], row["generation"], row["source_offset"]), []
        ).append(row)
    history = {
        (row["generation_kind"], row["generation"], row["source_offset"])
        for row in frame.generations
        if not row.get("live_read")
    }
    found = [
        Roster(rows[0]["record_timestamp"], *key, tuple(rows), is_live=key not in history)
        for key, rows in by_record.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.at, each.source_offset)))


def current_members(frame: GroupFrame, known: Sequence[Roster]) -> tuple[Row, ...]:
    """Return the rows of the newest roster.

    There are none if the group has no members or no roster is known.
    """
    if not known or frame.fact.get("members") == 0:
        return ()
    newest = frame.live_generations
    if (
        newest
        and newest[-1]["kind"] in {"empty", "tombstone"}
        and newest[-1]["record_timestamp"] >= known[-1].at
    ):
        return ()
    return known[-1].rows


def places_of(frame: GroupFrame) -> Mapping[str, str]:
    """Return a dict from slot to member identity, for every slot that has a row."""
    return {row["slot"]: _place(row) for row in frame.members}


def pattern(place: str) -> str:
    """Return the client id of a member identity without the numbers of program instances.

    These numbers distinguish instances of one program.
    """
    return re.sub(r"\d+", "#", place.split("/", 1)[0])


def slots_in(row: Row, *names: str) -> set[str]:
    """Return slots that a record has in these columns, such as those that left."""
    return {slot for name in names for slot in row[name] or ()}


def _gone_in_downgrade(known: Sequence[Roster], row: Row) -> set[str]:
    """Return slots of members that did not move to the classic protocol.

    The members that moved keep their member ids.
    """
    number = next(
        (n for n, each in enumerate(known) if each.source_offset == row["source_offset"]), 0
    )
    if not number:
        return set()
    stayed = {member["member_id"] for member in known[number].rows}
    return {
        member["slot"] for member in known[number - 1].rows if member["member_id"] not in stayed
    }


def changes_of(
    frame: GroupFrame, known: Sequence[Roster], place_of: Mapping[str, str]
) -> tuple[Change, ...]:
    """Return the changes by live records, oldest first.

    They are generations, and static members that rejoined within one generation.
    """
    found = []
    members = 0
    for row in frame.generations:
        before, members = members, row["member_count"] or 0
        is_downgrade = row["kind"] == "downgrade"
        is_known = row["joined"] is not None or is_downgrade
        if row.get("live_read") and is_known and row["kind"] != "create":
            left = _gone_in_downgrade(known, row) if is_downgrade else slots_in(row, "left")
            found.append(
                Change(
                    at=row["record_timestamp"],
                    joined=_named(slots_in(row, "joined"), place_of),
                    left=_named(left, place_of),
                    restarted=_named(slots_in(row, "replaced") - left, place_of),
                    before=members + len(left) if is_downgrade else before,
                    after=members,
                    generation=row["generation"],
                )
            )
    return tuple(
        sorted(
            [*found, *_static_returns(frame)], key=lambda each: (each.at, each.generation is None)
        )
    )


def _static_returns(frame: GroupFrame) -> list[Change]:
    return [
        Change(event["event_at"], (), (), (event["slot"],), 0, 0)
        for event in frame.events
        if event["kind"] == "static_replacement" and event.get("slot")
    ]


@dataclass(frozen=True, slots=True)
class _End:
    """A place that was left, and how long it had been taken; None not known."""

    at: datetime
    seconds: float | None
    place: str
    is_own: bool  # most others stayed


def find_crash_loops(
    frame: GroupFrame,
    changes: Sequence[Change],
    place_of: Mapping[str, str],
    parameters: Parameters,
) -> list[CrashLoop]:
    """Return member identities that left three times within 30 minutes.

    Their lives were mostly shorter than two sessions.

    Members of a place that leave together are one departure. One in which most others leave too is
    not its own: their host, or all of the application, was restarted. Where that ends three short
    lives they all are one crash loop.
    """
    end = frame.now
    limit = max(_CRASH_SESSIONS * longest_seconds(frame, "session_timeout_ms"), _CRASH_MIN_SECONDS)
    ends, away, absences = _lives(
        changes, end - timedelta(seconds=parameters.deploy_horizon_seconds)
    )
    # of one client and host alone, and with most others
    loops: dict[bool, list[CrashLoop]] = {True: [], False: []}
    for home, near in sorted(ends.items()):
        own = [each for each in near if each.is_own]
        is_alone = _is_loop(own, limit, parameters.crash_times - 1, parameters)
        # the first restart of a host follows a long life, so two more are two short ones, and a
        # third is a loop
        chosen, least = (
            (own, parameters.crash_times - 1) if is_alone else (near, parameters.crash_times)
        )
        if not _is_loop(chosen, limit, least, parameters):
            continue
        left_at = away.get(home, _NEVER)
        usual = max(_AWAY_MIN_SECONDS, _AWAY_TIMES * max(absences.get(home, ()), default=0.0))
        loop = CrashLoop(
            home,
            _places(home, chosen, place_of),
            tuple(dict.fromkeys(each.at for each in chosen)),
            _short(chosen, limit),
            is_given_up=(end - left_at).total_seconds() > usual,
            has_returned=_is_loop(
                [each for each in chosen if each.at < left_at], limit, least, parameters
            ),
        )
        loops[is_alone].append(loop)
    return [*loops[True], _as_one(loops[False])] if loops[False] else loops[True]


def longest_seconds(frame: GroupFrame, timeout: str) -> float:
    """Return the longest of the members' timeouts by a column in ms; 0 if none is recorded."""
    return max((row.get(timeout) or 0 for row in frame.members), default=0) / 1000


def _places(home: str, ends: Iterable[_End], place_of: Mapping[str, str]) -> frozenset[str]:
    left = {each.place for each in ends}
    return frozenset(each for each in left.union(place_of.values()) if _home(each) == home)


def _lives(
    changes: Sequence[Change], begin: datetime
) -> tuple[dict[str, list[_End]], dict[str, datetime], dict[str, list[float]]]:
    """Return by client and host: lives ended since `begin`, times of leaving, and past absences.

    The time of leaving is the moment since when the place is empty; absences are in seconds.
    """
    taken: dict[str, datetime] = {}
    ends: dict[str, list[_End]] = {}
    away: dict[str, datetime] = {}
    absences: dict[str, list[float]] = {}
    recent = [change for change in changes if change.at > begin]
    members = 0
    for change in changes:
        members = max(members, change.before)
        for place in (*change.left, *change.restarted):
            since = taken.pop(place, None)
            lifetime = None if since is None else (change.at - since).total_seconds()
            if change.at > begin:
                is_own = not _is_with_most_others(change, _home(place), members, recent)
                ends.setdefault(_home(place), []).append(_End(change.at, lifetime, place, is_own))
        members = members if change.generation is None else change.after
        away |= {_home(place): change.at for place in change.left}
        for place in (*change.joined, *change.restarted):
            taken[place] = change.at
            if (left_at := away.pop(_home(place), None)) is not None:
                absences.setdefault(_home(place), []).append((change.at - left_at).total_seconds())
    return ends, away, absences


def _short(ends: Iterable[_End], limit: float) -> tuple[float, ...]:
    return tuple(each.seconds for each in ends if each.seconds is not None and each.seconds < limit)


def _is_loop(ends: Sequence[_End], limit: float, least: int, parameters: Parameters) -> bool:
    """Return True if a member left often enough with enough short lives.

    The short lives must also be more than the others.
    """
    short, known = len(_short(ends, limit)), sum(each.seconds is not None for each in ends)
    departures = len({each.at for each in ends})
    return departures >= parameters.crash_times and short >= least and is_most(short, known)


def _as_one(loops: Sequence[CrashLoop]) -> CrashLoop:
    """Return crash loops of members that leave together as one loop of the group.

    Times are those of the loop that left most.
    """
    most = max(loops, key=lambda each: len(each.departures))
    return replace(
        most,
        home="",
        places=frozenset().union(*(each.places for each in loops)),
        is_given_up=all(each.is_given_up for each in loops),
        has_returned=any(each.has_returned for each in loops),
    )


def _is_with_most_others(change: Change, home: str, members: int, recent: Sequence[Change]) -> bool:
    """Return True if most members of other identities left within a heartbeat.

    That is before they could react to a change.

    Who leaves later may have taken over partitions, and may leave because of what is in them.
    """
    near = [
        each for each in recent if abs((each.at - change.at).total_seconds()) <= HEARTBEAT_SECONDS
    ]
    gone = {place for each in near for place in (*each.left, *each.restarted)}
    own = sum(_home(place) == home for place in gone)
    return is_most(len(gone) - own, members - own)


@dataclass(frozen=True, slots=True)
class Series:
    """Departures without a claimed reason each: their shared reasons and posteriors.

    The posteriors are by rebalance, given these reasons.
    """

    mixture: Posterior = field(default_factory=dict)
    posteriors: Mapping[str, Posterior] = field(default_factory=dict)

    def posterior(self, rebalance: Row) -> Posterior:
        """Return the probability of each reason of a rebalance.

        If it belongs to the series, it is treated as one of the series.
        """
        return self.posteriors.get(
            rebalance["rebalance_id"], dict(rebalance["cause_posterior"] or {})
        )


def find_series(frame: GroupFrame, parameters: Parameters) -> Series:
    """Return the last half hour's departures if most of them have no claimed reason; else none.

    There must be at least five without a reason.

    Members that leave again and again for reasons that no single departure tells leave for reasons
    that they share.
    """
    begin = frame.now - timedelta(seconds=parameters.deploy_horizon_seconds)
    rows = {
        row["rebalance_id"]: dict(row["cause_posterior"])
        for row in frame.live_rebalances
        if row["cause_posterior"] and begin < row["ended_at"] <= frame.now
    }
    open_ = {
        key: each for key, each in rows.items() if max(each.values()) < parameters.cause_posterior
    }
    if len(open_) < _SERIES_DEPARTURES or not is_most(len(open_), len(rows)):
        return Series()
    mixture, found = share_reasons(list(rows.values()))
    return Series(
        mixture, {key: each for key, each in zip(rows, found, strict=True) if key in open_}
    )


def find_evictions(
    frame: GroupFrame, known: Sequence[Roster], reason: str, parameters: Parameters, series: Series
) -> tuple[Eviction, ...]:
    """Return departures with this claimed reason, found alone or as part of a series.

    The reason is one of `EVICTION_REASONS`.

    Who was not in the group for a poll interval did not exceed it, whatever its partitions look
    like. While rounds are cut short nobody commits: who falls silent then may have died in one of
    them.
    """
    found: list[Eviction] = []
    for row in frame.live_rebalances:
        claimed = series.posterior(row).get(reason, 0.0)
        if row["ended_at"] > frame.now or claimed < parameters.cause_posterior:
            continue
        if reason == "poll_timeout" and row.get("interrupted"):
            continue
        left, replaced = slots_in(row, "left"), slots_in(row, "replaced")
        for slot in sorted(left | replaced):
            if reason != "poll_timeout" or not _was_within_poll_interval(known, row, slot):
                is_elsewhere = slot in left if slot in replaced else None
                found.append(
                    Eviction(slot, row["ended_at"], claimed, row["rebalance_id"], is_elsewhere)
                )
    return tuple(found)


def _was_within_poll_interval(known: Sequence[Roster], rebalance: Row, slot: str) -> bool:
    """Return True if a leaving member had joined too recently to exceed its poll interval.

    Return False if unknown.
    """
    member = next((row for row in _rows_before(known, rebalance) if row["slot"] == slot), Row())
    own, timeout = member.get("member_id"), member.get("rebalance_timeout_ms")
    if not own or not timeout:
        return False
    first = next(each for each in known if own in {row.get("member_id") for row in each.rows})
    seconds = (rebalance["ended_at"] - first.at).total_seconds()
    # else it may have been there before
    return first is not known[0] and bool(seconds < _POLL_SHARE * timeout / 1000)


def _rows_before(known: Sequence[Roster], rebalance: Row) -> Sequence[Row]:
    """Return members of the newest roster before a rebalance."""
    before = [each for each in known if each.generation < min(rebalance["generations"] or (0,))]
    return before[-1].rows if before else ()


def subscriptions_differ_since(known: Sequence[Roster]) -> datetime | None:
    """Return the time since which members subscribe to different topics.

    Return None if they do not differ, or if that is unknown.
    """
    since = None
    for roster in known:
        topics = {
            tuple(sorted(row["topics"])) for row in roster.rows if row.get("topics") is not None
        }
        since = (since or roster.at) if len(topics) > 1 else None
    return since


def _home(place: str) -> str:
    """Return the client and host of a member identity."""
    return re.sub(r"#\d+$", "", place)


def _place(row: Mapping[str, object]) -> str:
    if row.get("group_instance_id"):
        return str(row["group_instance_id"])
    if row["generation_kind"] == "epoch" and row.get("client_id"):
        return f"{row['client_id']}{row.get('client_host') or ''}"
    return str(row["slot"])


def _named(slots: Iterable[str], place_of: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(place_of.get(slot, slot) for slot in slots))
