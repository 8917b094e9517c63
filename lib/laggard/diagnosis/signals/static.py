"""Static members: how long they were away, whether two share an instance id, whether ids outlive a restart.

Two members of one id fence each other in classic groups only; a KIP-848 coordinator refuses the second
(UNRELEASED_INSTANCE_ID), which no record tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.membership import Membership
from laggard.diagnosis.signals.rosters import RETURN_SECONDS, Roster
from laggard.rebalance.parameters import DEFAULTS

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
