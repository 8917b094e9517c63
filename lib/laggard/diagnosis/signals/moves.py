"""Members and partitions by their records: moves to and fro, assignors that change, members behind, instance ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.group import Membership
from laggard.diagnosis.signals.rosters import RETURN_SECONDS, Roster
from laggard.rebalance.parameters import DEFAULTS

TopicPartition = tuple[str, int]
# the coordinator evicts a member that has not revoked within its rebalance timeout
_EXPIRED_SHARE = fixed("expired_share", 0.9, "of the rebalance timeout")
_AVOIDABLE_AMONG = fixed("avoidable_among", 5, "newest rebalances")
_PING_PONG_SECONDS = fixed("ping_pong_seconds", 1800.0, "s")
# what moved before that time is no longer counted as a move to and fro
_PING_PONG_MEMORY_SECONDS = fixed("ping_pong_memory_seconds", DEFAULTS.ping_pong_seconds, "s before these")
_ASSIGNOR_SECONDS = fixed("assignor_seconds", 3600.0, "s in which the assignor changed")


@dataclass(frozen=True, slots=True)
class PingPong:
    """Moves within a time, and those that took a partition back to the slot it had just come from."""

    moves: int
    returns: int
    rebalances: int  # with returns
    partitions: tuple[TopicPartition, ...]  # that returned

    @property
    def index(self) -> float:
        return self.returns / self.moves if self.moves else 0.0


@dataclass(frozen=True, slots=True)
class Avoidable:
    """Moves of the newest rebalances with known moves."""

    rebalances: int
    moved: int
    avoidable: int
    is_stateful: bool
    assignor: str
    causes: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.avoidable / self.moved if self.moved else 0.0


@dataclass(frozen=True, slots=True)
class Behind:
    """A KIP-848 member that did not reach its epoch in time."""

    slot: str  # "" where no record names it yet
    seconds: float
    member_state: str
    pending: int  # partitions it has to give up
    timeout_seconds: float


def find_ping_pong(membership: Membership) -> PingPong:
    """Returns among the moves of the last seconds; a member that keeps its id keeps what it has, whatever its slot.

    Moves in a deploy do not count.
    """
    end = membership.frame.now
    last: dict[TopicPartition, tuple[str, str]] = {}
    owner: dict[TopicPartition, tuple[str, str]] = {}
    here: set[str] = set()
    moves, returned, times = 0, [], set()
    for roster in membership.rosters:
        age = (end - roster.at).total_seconds()
        held = _held(roster) if age < _PING_PONG_SECONDS + _PING_PONG_MEMORY_SECONDS else None
        if held is None:
            continue
        is_near = roster.is_live and age < _PING_PONG_SECONDS
        is_near = is_near and not membership.is_in_deploy(roster.at)
        for place, now in held.items():
            was = owner.get(place, now)
            owner[place] = now
            is_restart = was[1] == now[1] and now[0] not in here  # a number in a slot may go to a neighbour
            if was[0] == now[0] or is_restart:
                continue
            is_return = last.get(place) == (now[1], was[1])
            last[place] = (was[1], now[1])
            moves += is_near
            if is_near and is_return:
                returned.append(place)
                times.add(roster.at)
        here = {row["member_id"] for row in roster.rows}
    return PingPong(moves, len(returned), len(times), tuple(sorted(set(returned))))


def find_avoidable(frame: GroupFrame) -> Avoidable:
    """Of the newest live rebalances whose moves are known."""
    known = [
        row
        for row in frame.rebalances
        if row.get("live_read") and row.get("moved") is not None and row["members_before"]
    ]
    known = sorted(known, key=lambda row: row["ended_at"])[-_AVOIDABLE_AMONG:]
    return Avoidable(
        rebalances=len(known),
        moved=sum(row["moved"] for row in known),
        avoidable=sum(row["avoidable"] for row in known),
        is_stateful=any(row.get("stateful") for row in known),
        assignor=next((row["assignor"] for row in reversed(known) if row["assignor"]), ""),  # none if nobody is left
        causes=tuple(row["cause"] for row in known),
    )


def assignor_changes(frame: GroupFrame) -> list[tuple[datetime, str, str]]:
    """Return the times of changes of the assignor, with the one before and after."""
    end = frame.now
    found = []
    before: str | None = None
    for row in frame.live_generations:
        now = row.get("assignor")
        if not now or row["kind"] != "sync":
            continue
        if before is not None and before != now and (end - row["record_timestamp"]).total_seconds() < _ASSIGNOR_SECONDS:
            found.append((row["record_timestamp"], before, now))
        before = now
    return found


def without_common_assignor(members: Sequence[Row]) -> list[Row]:
    """Classic members of a KIP-848 group, if no assignor is supported by them all."""
    classic = [row for row in members if row.get("classic_protocols")]
    common = set.intersection(*(set(row["classic_protocols"]) for row in classic)) if classic else {""}
    return [] if common else classic


def find_behind(membership: Membership, seconds: float) -> list[Behind]:
    """Members that kept an epoch from being Stable for about their rebalance timeout, which is when they are evicted.

    The rows of an epoch come when it is over; before that only the group's state tells that somebody is behind.
    """
    frame = membership.frame
    epochs = [row for row in frame.live_generations if row["generation_kind"] == "epoch"]
    following = {row["generation"]: later["record_timestamp"] for row, later in pairwise(epochs)}
    superseded = {row["generation"] for row in epochs if row.get("stable_at") is None and row["kind"] == "epoch"}
    rosters = [each for each in membership.rosters if each.generation_kind == "epoch"]
    found: dict[str, Behind] = {}
    for roster in rosters:
        until = following.get(roster.generation)
        if roster.generation not in superseded or until is None or (frame.now - until).total_seconds() >= seconds:
            continue
        lasted = (until - roster.at).total_seconds()
        found |= {row["slot"]: _behind(row, lasted) for row in roster.rows if _blocks(row, lasted)}
    return [found[slot] for slot in sorted(found)] or _not_named_yet(frame, rosters)


def _timeout_seconds(row: Row) -> float:
    return float(row.get("rebalance_timeout_ms") or 0) / 1000


def _blocks(row: Row, lasted: float) -> bool:
    """True if a member kept its epoch open until it is evicted for it; one that waits for others is not to blame."""
    own = _timeout_seconds(row)
    return row.get("member_state") == "UnrevokedPartitions" and own > 0 and lasted >= _EXPIRED_SHARE * own


def _behind(row: Row, lasted: float) -> Behind:
    pending = len(row.get("pending_revocation") or ())
    return Behind(row["slot"], lasted, row["member_state"], pending, _timeout_seconds(row))


def _not_named_yet(frame: GroupFrame, rosters: Sequence[Roster]) -> list[Behind]:
    """Somebody, while the group has been reconciling for longer than the longest timeout."""
    timeout = max((_timeout_seconds(row) for roster in rosters for row in roster.rows), default=0.0)
    since = frame.fact.get("rebalancing_since") or frame.fact.get("state_since")
    if frame.fact.get("group_state") != "Reconciling" or since is None or not timeout:
        return []
    lasted = (frame.now - since).total_seconds()
    return [Behind("", lasted, "Reconciling", 0, timeout)] if lasted > timeout else []


def _held(roster: Roster) -> dict[TopicPartition, tuple[str, str]] | None:
    """Partition to member id and slot; None while an assignment is open or not decodable."""
    if roster.generation_kind == "epoch" and any(row.get("member_state") != "Stable" for row in roster.rows):
        return None
    if any(row.get("assigned") is None for row in roster.rows):
        return None
    return {
        (place["topic"], place["partition"]): (row["member_id"], row["slot"])
        for row in roster.rows
        for place in row["assigned"]
        if place["topic"] is not None
    }


# Two members of one instance id fence each other in classic groups only; a KIP-848 coordinator refuses the second
# (UNRELEASED_INSTANCE_ID), which no record tells.
# Kafka's default of group.consumer.session.timeout.ms; is not recorded
_MODERN_SESSION_SECONDS = fixed("modern_session_seconds", DEFAULTS.modern_session_seconds, "s")
_ABSENCE_PERCENT = fixed("absence_percent", 95, "percentile of absences")
_FLIPS_SECONDS = fixed("flips_seconds", 600.0, "s")


@dataclass(frozen=True, slots=True)
class Absence:
    """A static member that left and rejoined; `seconds` is an upper bound, None unknown."""

    instance_id: str
    back_at: datetime
    seconds: float | None
    session_seconds: float
    is_expired: bool  # its session ran out, so that the group rebalanced


@dataclass(frozen=True, slots=True)
class Flips:
    """Times within ten minutes that an instance id went over to another member, and the hosts in order."""

    instance_id: str
    flips: int
    hosts: tuple[str, ...]

    @property
    def returns(self) -> bool:
        """True if an id returned to a host that it had left: two processes pull it to and fro."""
        return len(set(self.hosts)) < len(self.hosts) and len(set(self.hosts)) > 1


@dataclass(frozen=True, slots=True)
class Successor:
    """An instance id that never returned, and the new one of the same program that came in its stead."""

    old: str
    new: str
    left_at: datetime
    session_seconds: float
    is_renamed: bool  # the ids do not even begin alike: somebody chose other names


def absences(membership: Membership) -> list[Absence]:
    """Absences by the time of return.

    One that ended in expiry began a session before the generation without the member. Of one that the session outlasted
    only the event tells, from the member's last commit.
    """
    known = membership.rosters
    found = []
    for event in membership.frame.events:
        if event["kind"] == "static_replacement" and event.get("slot"):
            session = _session(known, event["slot"], event["event_at"])
            found.append(Absence(event["slot"], event["event_at"], event.get("seconds"), session, is_expired=False))
    gone: dict[str, tuple[datetime, float]] = {}
    for before, after in pairwise(known):
        old, new = _ids(before), _ids(after)
        for each in sorted(new.keys() & gone.keys()):
            at, session = gone.pop(each)
            away = (after.at - at).total_seconds()
            if away <= RETURN_SECONDS:
                found.append(Absence(each, after.at, away + session, session, is_expired=True))
        if after.is_live:
            gone |= {each: (after.at, _seconds(old[each])) for each in old.keys() - new.keys()}
    return sorted(found, key=lambda each: (each.back_at, each.instance_id))


def absence_p95_seconds(known: list[Absence]) -> float | None:
    """95th percentile by nearest rank; None if no absence has a length."""
    lengths = sorted(each.seconds for each in known if each.seconds is not None)
    return lengths[max(0, -(-_ABSENCE_PERCENT * len(lengths) // 100) - 1)] if lengths else None


def find_flips(membership: Membership) -> list[Flips]:
    """Instance ids that changed their member in the last seconds, with how often."""
    end = membership.frame.now
    holder: dict[str, tuple[str, str]] = {}
    counts: dict[str, int] = {}
    hosts: dict[str, list[str]] = {}
    for roster in membership.rosters:
        is_near = roster.is_live and (end - roster.at).total_seconds() < _FLIPS_SECONDS
        for each, row in _ids(roster).items():
            now = (row["member_id"], row.get("client_host") or "")
            was = holder.get(each)
            holder[each] = now
            if was is None or was[0] == now[0] or not is_near:
                continue
            counts[each] = counts.get(each, 0) + 1
            path = hosts.setdefault(each, [was[1]])
            path += [now[1]] if path[-1] != now[1] else []
    return [Flips(each, counts[each], tuple(hosts[each])) for each in sorted(counts)]


def find_successors(membership: Membership) -> list[Successor]:
    """Ids given up for good while a new one of the same client id came within ten minutes, before or after."""
    known = membership.rosters
    first: dict[str, tuple[datetime, str]] = {}
    last: dict[str, tuple[datetime, str, float]] = {}
    for index, roster in enumerate(known):
        for each, row in _ids(roster).items():
            program = re.sub(r"\d+", "#", row.get("client_id") or "")
            if each not in first:
                first[each] = (roster.at, program if index and roster.is_live else "")  # there from the begin: not new
            after = known[index + 1] if index + 1 < len(known) else None
            if after is not None and each not in _ids(after):
                last[each] = (after.at, program, _seconds(row))
            else:
                last.pop(each, None)
    new = sorted((at, each, program) for each, (at, program) in first.items() if program)
    found = []
    for old, (at, program, session) in sorted(last.items(), key=lambda each: (each[1][0], each[0])):
        fits = [each for each in new if each[2] == program and abs((each[0] - at).total_seconds()) <= RETURN_SECONDS]
        fits = [each for each in fits if each[1] != old]
        if fits:
            # each new id stands for one old one; the one that came in closest to the departure
            chosen = min(fits, key=lambda each: (abs((each[0] - at).total_seconds()), each[1]))
            new.remove(chosen)
            found.append(Successor(old, chosen[1], at, session, is_renamed=_stem(old) != _stem(chosen[1])))
    return found


def _ids(roster: Roster) -> dict[str, Row]:
    """Instance id to its member's row; of several in one epoch the one that was written last."""
    static = [row for row in roster.rows if row.get("group_instance_id")]
    return {row["group_instance_id"]: row for row in sorted(static, key=lambda row: row.get("batch_id") or 0)}


def _session(known: Sequence[Roster], instance_id: str, at: datetime) -> float:
    rows = [_ids(each).get(instance_id) for each in known if each.at <= at]
    found = [row for row in rows if row is not None]
    return _seconds(found[-1]) if found else _MODERN_SESSION_SECONDS


def _seconds(row: Row) -> float:
    milliseconds = row.get("session_timeout_ms")
    return _MODERN_SESSION_SECONDS if milliseconds is None else float(milliseconds) / 1000


def _stem(instance_id: str) -> str:
    return re.split(r"[^A-Za-z]", instance_id, maxsplit=1)[0]
