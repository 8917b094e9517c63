"""A classic group at its coordinator: states, generations, timers, and the record of each
generation.

Sources: GC/GroupMetadataManager and GC/classic/ClassicGroup, KIP-134 (initial delay), KIP-345
(static members), KIP-394 (member id first), KIP-814 (a static leader that returns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simulator import records
from simulator.classic_records import GroupRecord
from simulator.classic_requests import Peer, Reply, Wish
from simulator.classic_roster import Roster
from simulator.records import TopicPartition
from simulator.truth import Generation

if TYPE_CHECKING:
    from simulator.coordinator import Coordinator

INITIAL_DELAY_MS = 3000  # group.initial.rebalance.delay.ms
FORGOTTEN_MS = 30_000  # after a fail-over members ask again within a heartbeat
EMPTY, PREPARING, COMPLETING, STABLE = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
)


@dataclass
class _Persisted:
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_ms: int = -1
    peers: dict[str, Peer] = field(default_factory=dict)


class ClassicGroup:
    """Requests come in as methods and are answered through `reply`, at once or when
    the phase ends.
    """

    def __init__(self, name: str, coordinator: Coordinator) -> None:
        self.name, self._coordinator = name, coordinator
        self._clock, self._truth = coordinator.clock, coordinator.truth
        self.state, self.state_ms = EMPTY, self._clock.now
        self.generation = 0
        self.protocol: str | None = None
        self.leader: str | None = None
        self._roster = Roster()
        self._pending: set[str] = set()  # were given their id and have not returned with it
        self._phase = 0  # timers of an earlier phase find another number and do nothing
        self._was_empty = self._has_newcomer = self._is_closed = False
        self._persisted = _Persisted()

    @property
    def members(self) -> dict[str, Peer]:
        return self._roster.peers

    # requests

    def join(self, wish: Wish, reply: Reply) -> None:
        if wish.member_id in self._pending:
            self._pending.discard(wish.member_id)
            self._add(wish.member_id, wish, reply)
        elif wish.member_id:
            self._rejoin(wish, reply)
        elif wish.instance_id is None:
            member_id = self._new_id(wish.client_id)
            self._pending.add(member_id)
            self._clock.after(wish.session_ms, lambda: self._drop_pending(member_id))
            reply("MEMBER_ID_REQUIRED", {"member_id": member_id})
        elif (old := self._roster.static(wish.instance_id)) is not None:
            self._replace(old, self._new_id(wish.instance_id), wish, reply)
        else:
            self._add(self._new_id(wish.instance_id), wish, reply)

    def sync(
        self,
        member_id: str,
        generation: int,
        shares: Mapping[str, Sequence[TopicPartition]] | None,
        reply: Reply,
    ) -> None:
        error = self._check(member_id, generation)
        if error or self.state in (EMPTY, PREPARING):
            reply(error or "REBALANCE_IN_PROGRESS", None)
            return
        peer = self.members[member_id]
        peer.last_seen = self._clock.now
        if self.state == STABLE:
            reply("", peer.assigned or ())
            return
        peer.syncing = reply
        if member_id == self.leader and shares is not None:
            for each in self.members.values():
                each.assigned = (
                    tuple(shares[each.member_id]) or None if each.member_id in shares else None
                )
            self._complete_sync()

    def heartbeat(self, member_id: str, generation: int, reply: Reply) -> None:
        error = self._check(member_id, generation)
        if not error:
            self.members[member_id].last_seen = self._clock.now
            error = "REBALANCE_IN_PROGRESS" if self.state == PREPARING else ""
        reply(error)

    def leave(self, member_id: str, reason: str) -> None:
        """LeaveGroup; static members never send it."""
        self._pending.discard(member_id)
        if member_id in self.members:
            self._remove(member_id, reason)

    def refuse_commit(self, member_id: str, generation: int) -> str:
        if not member_id and generation < 0:  # an admin's reset needs an empty group
            return "" if self.state == EMPTY else "UNKNOWN_MEMBER_ID"
        error = self._check(member_id, generation)
        if not error:
            self.members[member_id].last_seen = self._clock.now
            error = "REBALANCE_IN_PROGRESS" if self.state == COMPLETING else ""
        return error

    # members

    def _check(self, member_id: str, generation: int) -> str:
        if member_id not in self.members:
            return self._roster.why_unknown(member_id)
        return "" if generation == self.generation else "ILLEGAL_GENERATION"

    def _new_id(self, prefix: str) -> str:
        raw = self._coordinator.streams(f"member ids {self.name}").randbytes(16).hex()
        return f"{prefix}-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"

    def _add(self, member_id: str, wish: Wish, reply: Reply) -> None:
        if self.members and not self._roster.common() & wish.protocols.keys():
            reply("INCONSISTENT_GROUP_PROTOCOL", {})
            return
        before = self._roster.held()
        peer = self.members[member_id] = Peer(
            member_id, wish, last_seen=self._clock.now, joining=reply
        )
        self._has_newcomer = True
        self._truth.members[member_id] = {"slot": wish.slot, "host": wish.host, "group": self.name}
        self._prepare(wish.reason, joined=wish.slot, before=before)
        self._watch(peer)

    def _rejoin(self, wish: Wish, reply: Reply) -> None:
        if error := self._check(wish.member_id, self.generation):
            reply(error, {})
            return
        peer = self.members[wish.member_id]
        before, peer.wish = peer.wish, wish
        peer.last_seen = self._clock.now
        is_unchanged = before.protocols == wish.protocols
        # a leader that joins again has seen other topics
        is_follower = wish.member_id != self.leader
        if is_unchanged and (self.state == COMPLETING or (self.state == STABLE and is_follower)):
            reply("", self._joined(peer))
        else:
            peer.joining = reply
            self._prepare(wish.reason)

    def _replace(self, old: Peer, member_id: str, wish: Wish, reply: Reply) -> None:
        """A static member is back under a new id; the old id is fenced from now on."""
        old.answer("FENCED_INSTANCE_ID")
        peer = Peer(member_id, wish, old.assigned, self._clock.now)
        self._roster.replace(old.member_id, peer)
        if self.leader == old.member_id:
            self.leader = member_id
        self._truth.members[member_id] = {"slot": wish.slot, "host": wish.host, "group": self.name}
        self._watch(peer)
        if self.state == STABLE and self._roster.vote() == self.protocol:
            self._write("replacement", self.state_ms)
            self._truth.replacements.append(
                {
                    "group": self.name,
                    "at_ms": self._clock.now,
                    "old": old.member_id,
                    "new": member_id,
                }
            )
            # the coordinator tells a returning leader to skip the assignment
            reply("", self._joined(peer) | {"leader": None})
        else:
            peer.joining = reply
            self._prepare("static_return")

    def _remove(self, member_id: str, cause: str) -> None:
        peer = self.members[member_id]
        before = self._roster.held()
        del self.members[member_id]
        peer.answer("UNKNOWN_MEMBER_ID")
        if self.leader == member_id:
            self.leader = next(
                (each.member_id for each in self.members.values() if each.joining), None
            )
            self.leader = self.leader or next(iter(self.members), None)
        why = self._truth.members[member_id].get("why", cause)
        self._prepare(cause, left=(peer.wish.slot, why), before=before)

    def _watch(self, peer: Peer) -> None:
        def check() -> None:
            if self._is_closed or self.members.get(peer.member_id) is not peer:
                return
            if peer.joining is not None or peer.syncing is not None:  # a member that waits is alive
                peer.last_seen = self._clock.now
            due = peer.last_seen + peer.wish.session_ms
            if due <= self._clock.now:
                self._remove(
                    peer.member_id,
                    "session_expiry" if peer.wish.instance_id is None else "static_expiry",
                )
            else:
                self._clock.at(due, check)

        self._clock.at(peer.last_seen + peer.wish.session_ms, check)

    def _drop_pending(self, member_id: str) -> None:
        if member_id in self._pending and not self._is_closed:
            self._pending.discard(member_id)
            self._complete_join_if_ready()

    # phases

    def _prepare(
        self,
        cause: str,
        *,
        joined: str | None = None,
        left: tuple[str, str] | None = None,
        before: dict[str, list[TopicPartition]] | None = None,
    ) -> None:
        held = self._roster.held() if before is None else before
        rebalance = self._truth.trigger(self.name, self._clock.now, cause, held)
        if joined is not None and joined not in rebalance.joined:
            rebalance.joined.append(joined)
        if left is not None:
            rebalance.left.append(left)
        if self.state == PREPARING:
            self._complete_join_if_ready()
            return
        # a sync phase that is cut short: its generation leaves no record
        for peer in self.members.values():
            if peer.syncing is not None:
                peer.syncing("REBALANCE_IN_PROGRESS", None)
                peer.syncing = None
        self._was_empty = self.state == EMPTY
        self._enter(PREPARING)
        timeout = self._roster.rebalance_ms()
        if self._was_empty:
            self._has_newcomer = False
            self._wait_for_more(INITIAL_DELAY_MS, max(0, timeout - INITIAL_DELAY_MS))
        else:
            self._after(timeout, self._complete_join)
            self._complete_join_if_ready()

    def _wait_for_more(self, delay_ms: int, left_ms: int) -> None:
        """An empty group waits, and waits again as long as members keep arriving (KIP-134)."""

        def over() -> None:
            if self._has_newcomer and left_ms > 0:
                self._has_newcomer = False
                self._wait_for_more(min(INITIAL_DELAY_MS, left_ms), max(0, left_ms - delay_ms))
            else:
                self._complete_join()

        self._after(delay_ms, over)

    def _complete_join_if_ready(self) -> None:
        everybody = not self._pending and all(
            peer.joining is not None for peer in self.members.values()
        )
        if self.state == PREPARING and not self._was_empty and everybody:
            self._complete_join()

    def _complete_join(self) -> None:
        peers = self.members.values()
        if peers and all(
            peer.joining is None and peer.wish.instance_id is not None for peer in peers
        ):
            # static members alone: wait for one of them
            self._after(self._roster.rebalance_ms(), self._complete_join)
            return
        for peer in list(self.members.values()):
            if peer.joining is None and peer.wish.instance_id is None:
                del self.members[peer.member_id]
                why = self._truth.members[peer.member_id].get("why", "rejoin_timeout")
                self._truth.left(self.name, peer.wish.slot, why)
        if self.leader not in self.members or self.members[self.leader].joining is None:
            self.leader = next(
                (peer.member_id for peer in self.members.values() if peer.joining is not None), None
            )
        self.generation += 1
        if not self.members:
            self.protocol = None
            self._enter(EMPTY)
            self._write("empty", self.state_ms)
            self._truth.round_ended(
                self.name, self._clock.now, self.generation, {}, is_complete=True
            )
            return
        self.protocol = self._roster.vote()
        if self._persisted.protocol not in (None, self.protocol):
            self._truth.trigger(self.name, self._clock.now, "assignor_change", self._roster.held())
        self._enter(COMPLETING)
        for peer in self.members.values():
            peer.last_seen = self._clock.now
            if peer.joining is not None:
                joining, peer.joining = peer.joining, None
                joining("", self._joined(peer))
        self._after(self._roster.rebalance_ms(), self._drop_those_without_sync)

    def _drop_those_without_sync(self) -> None:
        """Members that were given the generation and never came for their assignment."""
        for late in [peer.member_id for peer in self.members.values() if peer.syncing is None]:
            self._remove(late, "sync_timeout")

    def _complete_sync(self) -> None:
        self._write("sync", self.state_ms)
        held = self._roster.held()
        # cooperative: an owner was asked to give something up, so another round follows
        protocol = self.protocol or ""
        must_revoke = any(
            set(peer.wish.protocols[protocol].owned) - set(peer.assigned or ())
            for peer in self.members.values()
        )
        self._truth.round_ended(
            self.name, self._clock.now, self.generation, held, is_complete=not must_revoke
        )
        self._enter(STABLE)
        for peer in self.members.values():
            if peer.syncing is not None:
                syncing, peer.syncing = peer.syncing, None
                syncing("", peer.assigned or ())

    def _enter(self, state: str) -> None:
        self.state, self.state_ms = state, self._clock.now
        self._phase += 1

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        phase = self._phase

        def run() -> None:
            if self._phase == phase and not self._is_closed:
                action()

        self._clock.after(delay_ms, run)

    def _joined(self, peer: Peer) -> dict[str, Any]:
        everybody = (
            {name: each.wish for name, each in self.members.items()}
            if peer.member_id == self.leader
            else {}
        )
        return {
            "member_id": peer.member_id,
            "generation": self.generation,
            "protocol": self.protocol,
            "leader": self.leader,
            "members": everybody,
        }

    # what is written, and what is left of it after a fail-over

    def write_created(self) -> None:
        """The first JoinGroup of a new group: generation 0, no protocol type."""
        self._write("create", self.state_ms)

    def write_tombstones(self) -> None:
        partition, offset = self._coordinator.write(
            self.name, [records.classic_group(self.name, None)]
        )
        self._truth.generations.append(
            Generation(self.name, "tombstone", self._clock.now, partition, offset)
        )

    def close(self) -> None:
        """Another protocol takes the group over."""
        self._is_closed = True
        self._answer_all("REBALANCE_IN_PROGRESS")
        self.write_tombstones()

    def _forget_what_was_under_way(self) -> None:
        if not self._is_closed and self.state in (EMPTY, STABLE):
            self._truth.abandon(self.name)

    def _answer_all(self, error: str) -> None:
        for peer in self.members.values():
            peer.answer(error)

    def adopt(self, peers: dict[str, Peer], generation: int) -> None:
        """The members that a modern group leaves; the next thing that happens is a rebalance."""
        self._roster.peers, self.generation = peers, generation
        self.state, self.state_ms = STABLE, self._clock.now
        self.protocol, self.leader = self._roster.vote(), next(iter(peers))
        self._write("downgrade", self.state_ms)
        for peer in peers.values():
            self._watch(peer)
        self._prepare("leave")

    def reloaded(self, at_ms: int) -> ClassicGroup:
        """The group as another broker reads it from the topic: what was not written never happened.

        Sessions start again when it has been read.
        """
        self._is_closed = True
        self._answer_all("NOT_COORDINATOR")
        fresh = ClassicGroup(self.name, self._coordinator)
        kept = self._persisted
        fresh.generation, fresh.protocol, fresh.leader = kept.generation, kept.protocol, kept.leader
        fresh.state, fresh.state_ms = STABLE if kept.peers else EMPTY, kept.state_ms
        fresh._persisted = kept
        self._clock.at(at_ms + FORGOTTEN_MS, fresh._forget_what_was_under_way)
        for name, peer in kept.peers.items():
            fresh.members[name] = Peer(name, peer.wish, peer.assigned, at_ms)
            fresh._watch(fresh.members[name])
        return fresh

    def _write(self, kind: str, state_ms: int) -> None:
        reported = GroupRecord(
            self.name, kind, self.generation, self.protocol, self.leader if self.members else None,
            state_ms,
            list(self.members.values()),
        )  # fmt: skip
        version = self._coordinator.group_version
        place = self._coordinator.write(
            self.name, [records.classic_group(self.name, reported.value(), version)]
        )
        self._truth.generations.append(reported.truth(self._clock.now, *place, version))
        kept = {name: Peer(name, peer.wish, peer.assigned) for name, peer in self.members.items()}
        self._persisted = _Persisted(
            self.generation, self.protocol, reported.leader, state_ms, kept
        )
