"""Partitions that go to and fro, moves that balance did not need, assignors that change, members that stay behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.membership import Membership
from laggard.diagnosis.signals.rosters import Roster
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
    frame, end = membership.frame, membership.frame.now
    epochs = [row for row in frame.live_generations if row["generation_kind"] == "epoch"]
    following = {row["generation"]: later["record_timestamp"] for row, later in pairwise(epochs)}
    superseded = {row["generation"] for row in epochs if row.get("stable_at") is None and row["kind"] == "epoch"}
    found: dict[str, Behind] = {}
    timeout = 0.0
    for roster in membership.rosters:
        until = following.get(roster.generation)
        for row in roster.rows if roster.generation_kind == "epoch" else ():
            timeout = max(timeout, (row.get("rebalance_timeout_ms") or 0) / 1000)
            if roster.generation not in superseded or until is None or (end - until).total_seconds() >= seconds:
                continue
            lasted = (until - roster.at).total_seconds()
            own = (row.get("rebalance_timeout_ms") or 0) / 1000
            # one that waits for others is not to blame
            blocks = row.get("member_state") == "UnrevokedPartitions"
            if blocks and own and lasted >= _EXPIRED_SHARE * own:
                pending = len(row.get("pending_revocation") or ())
                found[row["slot"]] = Behind(row["slot"], lasted, row["member_state"], pending, own)
    since = frame.fact.get("rebalancing_since") or frame.fact.get("state_since")
    if frame.fact.get("group_state") == "Reconciling" and since is not None and timeout and not found:
        lasted = (end - since).total_seconds()
        if lasted > timeout:
            found[""] = Behind("", lasted, "Reconciling", 0, timeout)
    return [found[slot] for slot in sorted(found)]


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
