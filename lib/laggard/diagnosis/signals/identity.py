"""Instance ids of static members by their records: absences, duplicates, short-lived ids.

A duplicate is an id that two processes use.

Two members of one instance id fence each other in classic groups only; a KIP-848 coordinator
refuses the second (UNRELEASED_INSTANCE_ID), which no record tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.group import Membership
from laggard.diagnosis.signals.rosters import RETURN_SECONDS, Roster
from laggard.diagnosis.signals.statistics import percentile
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
    """Moves of an instance id to another member within ten minutes, with hosts in order."""

    instance_id: str
    flips: int
    hosts: tuple[str, ...]

    @property
    def returns(self) -> bool:
        """True if an id returned to a host that it had left: two processes pull it to and fro."""
        return len(set(self.hosts)) < len(self.hosts) and len(set(self.hosts)) > 1


@dataclass(frozen=True, slots=True)
class Successor:
    """An instance id that never returned, and its successor of the same program.

    The successor is a new id that came in its stead.
    """

    old: str
    new: str
    session_seconds: float
    is_renamed: bool  # the ids do not even begin alike: somebody chose other names


def absences(membership: Membership) -> list[Absence]:
    """Return the absences of static members, ordered by the time of return.

    One that ended in expiry began a session before the generation without the member. Of one that
    the session outlasted only the event tells, from the member's last commit.
    """
    known = membership.rosters
    found = []
    for event in membership.frame.events:
        if event["kind"] == "static_replacement" and event.get("slot"):
            session = _session(known, event["slot"], event["event_at"])
            found.append(
                Absence(
                    event["slot"],
                    event["event_at"],
                    event.get("seconds"),
                    session,
                    is_expired=False,
                )
            )
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
    """Return the 95th percentile of absences in seconds, by nearest rank.

    Return None if no absence has a length.
    """
    lengths = [each.seconds for each in known if each.seconds is not None]
    return percentile(lengths, _ABSENCE_PERCENT) if lengths else None


def find_flips(membership: Membership) -> list[Flips]:
    """Return instance ids whose member changed in the last seconds, with the number of changes."""
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
    """Return ids given up for good, if a successor joined within ten minutes before or after.

    The successor is a new id of the same client id.
    """
    new = _new_ids(membership.rosters)
    found = []
    for left_at, old, program, session in _ids_given_up(membership.rosters):
        away = {
            each: abs((at - left_at).total_seconds())
            for at, each, like in new
            if like == program and each != old
        }
        near = [(seconds, each) for each, seconds in away.items() if seconds <= RETURN_SECONDS]
        if near:
            # each new id stands for one old one; the one that came in closest to the departure
            _, chosen = min(near)
            new = [each for each in new if each[1] != chosen]
            found.append(Successor(old, chosen, session, is_renamed=_stem(old) != _stem(chosen)))
    return found


def _new_ids(known: Sequence[Roster]) -> list[tuple[datetime, str, str]]:
    """Return later ids: when each was first seen, the id, and its program; oldest first."""
    first: dict[str, tuple[datetime, str, str]] = {}
    for index, roster in enumerate(known):
        for each, row in _ids(roster).items():
            first.setdefault(
                each, (roster.at, each, _program(row) if index and roster.is_live else "")
            )
    return sorted(each for each in first.values() if each[2])


def _ids_given_up(known: Sequence[Roster]) -> list[tuple[datetime, str, str, float]]:
    """Return ids absent from the newest roster: end time, the id, its program and session.

    The end time is when the id was given up.
    """
    last: dict[str, tuple[datetime, str, str, float]] = {}
    for before, after in pairwise(known):
        old, still = _ids(before), _ids(after)
        last |= {each: (after.at, each, _program(row), _seconds(row)) for each, row in old.items()}
        last = {each: found for each, found in last.items() if each not in still}
    return sorted(last.values())


def _program(row: Row) -> str:
    return re.sub(r"\d+", "#", row.get("client_id") or "")


def _ids(roster: Roster) -> dict[str, Row]:
    """Return a dict from instance id to its member's row.

    Of several in one epoch, the row that was written last counts.
    """
    static = [row for row in roster.rows if row.get("group_instance_id")]
    return {
        row["group_instance_id"]: row
        for row in sorted(static, key=lambda row: row.get("batch_id") or 0)
    }


def _session(known: Sequence[Roster], instance_id: str, at: datetime) -> float:
    rows = [_ids(each).get(instance_id) for each in known if each.at <= at]
    found = [row for row in rows if row is not None]
    return _seconds(found[-1]) if found else _MODERN_SESSION_SECONDS


def _seconds(row: Row) -> float:
    milliseconds = row.get("session_timeout_ms")
    return _MODERN_SESSION_SECONDS if milliseconds is None else float(milliseconds) / 1000


def _stem(instance_id: str) -> str:
    return re.split(r"[^A-Za-z]", instance_id, maxsplit=1)[0]
