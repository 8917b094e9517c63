"""A KIP-848 consumer group at its coordinator: epochs, target, reconciliation, and records of types
2 to 8.

Sources: GC/GroupMetadataManager.consumerGroupHeartbeat, KIP-848 (upgrade and downgrade on line).
"""

from __future__ import annotations

import uuid
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from laggard.rebalance.assignors import Member as Assignee
from laggard.rebalance.assignors import assign
from simulator.classic_group import ClassicGroup
from simulator.classic_requests import Peer, Reply, Wish
from simulator.modern_reconcile import reconcile
from simulator.modern_records import ModernRecords
from simulator.modern_requests import (
    LEFT_FOR_NOW,
    STABLE,
    UNRELEASED,
    UNREVOKED,
    Beat,
    Mate,
    beat_of,
)
from simulator.records import TopicPartition
from simulator.truth import Epoch

if TYPE_CHECKING:
    from simulator.coordinator import Coordinator


class ModernGroup:
    """Requests come in as methods; those of members that still speak the classic
    protocol as well.
    """

    def __init__(self, name: str, coordinator: Coordinator, assignor: str) -> None:
        self.name, self._coordinator, self._assignor = name, coordinator, assignor
        self._clock, self._truth = coordinator.clock, coordinator.truth
        self.epoch = self.target_epoch = 0
        self.members: dict[str, Mate] = {}
        self._target: dict[str, list[TopicPartition]] = {}
        self._hash = 0
        self._is_closed = False
        self._records = ModernRecords(name, coordinator)
        self._open: Epoch | None = None

    # the heartbeat of KIP-848

    def beat(self, beat: Beat, reply: Reply) -> None:
        if beat.epoch < 0:
            self._leave(beat)
            reply("", None)
            return
        mate = self.members.get(beat.member_id)
        if mate is None and beat.epoch != 0:
            reply("UNKNOWN_MEMBER_ID", None)
            return
        if mate is not None and beat.epoch not in (0, mate.epoch, mate.previous):
            reply("FENCED_MEMBER_EPOCH", None)
            return
        if mate is None:
            mate = self._admit(beat)
            if mate is None:
                reply("UNRELEASED_INSTANCE_ID", None)
                return
        elif beat.topics != mate.beat.topics:
            mate.beat = replace(mate.beat, topics=beat.topics)
            self._records.member(mate)
            self._bump("subscription_change")
        mate.last_seen = self._clock.now
        self._look_at_topics()
        self._retarget()
        self._reconcile(mate, beat.owned)
        reply("", (mate.epoch, frozenset(mate.assigned)))

    def _admit(self, beat: Beat) -> Mate | None:
        """A new member, or a static one that is back under a new id and takes over the place of the
        old one.
        """
        before = self._held()
        mate = Mate(beat.member_id, beat, last_seen=self._clock.now)
        old = next(
            (each for each in self.members.values() if beat.instance_id and _same(each, beat)), None
        )
        if old is not None and old.epoch != LEFT_FOR_NOW:
            return None
        self._truth.members[beat.member_id] = {
            "slot": beat.slot,
            "host": beat.host,
            "group": self.name,
        }
        if old is None:
            self.members[beat.member_id] = mate
            self._records.member(mate)
            self._bump(beat.reason, joined=beat.slot, before=before)
        else:
            self._bury(old)
            self.members[beat.member_id] = mate
            self._target[beat.member_id] = self._target.pop(old.member_id, [])
            mate.assigned, mate.epoch, mate.previous = old.assigned, old.previous, 0
            self._records.member(mate)
            self._records.target(mate.member_id, self._target.get(mate.member_id, []))
            self._records.current(mate)
            self._truth.replacements.append(
                {
                    "group": self.name,
                    "at_ms": self._clock.now,
                    "old": old.member_id,
                    "new": mate.member_id,
                }
            )
        self._watch(mate)
        return mate

    def _admit_classic(self, wish: Wish) -> Mate:
        before, beat = self._held(), beat_of(wish, wish.member_id, 0)
        mate = Mate(wish.member_id, beat, classic=wish, last_seen=self._clock.now)
        self._truth.members[wish.member_id] = {
            "slot": wish.slot,
            "host": wish.host,
            "group": self.name,
        }
        self.members[wish.member_id] = mate
        self._records.member(mate)
        self._bump("join", joined=wish.slot, before=before)
        self._watch(mate)
        return mate

    def _leave(self, beat: Beat) -> None:
        mate = self.members.get(beat.member_id)
        if mate is None:
            return
        if beat.epoch == LEFT_FOR_NOW:
            mate.previous, mate.epoch = mate.epoch, LEFT_FOR_NOW
            mate.last_seen = self._clock.now
            self._records.current(mate)
        else:
            self._remove(mate, beat.reason)

    def _remove(self, mate: Mate, cause: str) -> None:
        before = self._held()
        self._bury(mate)
        why = self._truth.members[mate.member_id].get("why", cause)
        if self.members and all(each.classic is not None for each in self.members.values()):
            self._truth.trigger(self.name, self._clock.now, cause, before).left.append(
                (mate.beat.slot, why)
            )
            self._downgrade()
        else:
            self._bump(cause, left=(mate.beat.slot, why), before=before)
            self._end_if_stable()

    def _bury(self, mate: Mate) -> None:
        del self.members[mate.member_id]
        self._records.gone(mate.member_id)

    def _watch(self, mate: Mate) -> None:
        def check() -> None:
            if self._is_closed or self.members.get(mate.member_id) is not mate:
                return
            due = mate.last_seen + mate.beat.session_ms
            if due <= self._clock.now:
                self._remove(
                    mate, "session_expiry" if mate.beat.instance_id is None else "static_expiry"
                )
            else:
                self._clock.at(due, check)

        self._clock.at(mate.last_seen + mate.beat.session_ms, check)

    # epochs

    def _bump(
        self,
        cause: str,
        *,
        joined: str | None = None,
        left: tuple[str, str] | None = None,
        before: dict[str, list[TopicPartition]] | None = None,
    ) -> None:
        rebalance = self._truth.trigger(
            self.name, self._clock.now, cause, self._held() if before is None else before
        )
        if joined is not None and joined not in rebalance.joined:
            rebalance.joined.append(joined)
        if left is not None:
            rebalance.left.append(left)
        self.epoch += 1
        self._hash = self._topics_hash()
        if self._open is not None:
            self._open.end_ms, self._open.is_superseded = self._clock.now, True
        self._open = self._write_epoch(cause, "epoch" if self.members else "empty")

    def _write_epoch(self, cause: str, kind: str) -> Epoch:
        members = {each.member_id: each.beat.slot for each in self.members.values()}
        place = self._records.epoch(self.epoch, self._hash)
        epoch = Epoch(
            self.name, self.epoch, self._clock.now, [cause], kind, *place, members=members
        )
        self._truth.epochs.append(epoch)
        return epoch

    def _topics_hash(self) -> int:
        topics = {topic for mate in self.members.values() for topic in mate.beat.topics}
        counts = sorted(
            item for item in self._coordinator.brokers.counts().items() if item[0] in topics
        )
        return zlib.crc32(repr(counts).encode()) + 1

    def _look_at_topics(self) -> None:
        """The broker itself sees that partitions were added."""
        if self.members and self.epoch == self.target_epoch and self._hash != self._topics_hash():
            self._bump("topic_change")

    def _retarget(self) -> None:
        """A new target for a new epoch: one type 7 per member whose share changed,
        then one type 6.
        """
        if self.target_epoch >= self.epoch or not self.members:
            return
        assignees = [
            Assignee(
                name,
                frozenset(mate.beat.topics),
                mate.beat.instance_id,
                tuple(self._target.get(name, ())),
            )
            for name, mate in self.members.items()
        ]
        found = assign(self._assignor, assignees, self._coordinator.brokers.counts())
        before, self._target = self._target, {name: sorted(share) for name, share in found.items()}
        for name, share in self._target.items():
            if before.get(name) != share:
                self._records.target(name, self._target[name])
        self.target_epoch = self.epoch
        self._records.target_epoch(self.epoch)

    def _reconcile(self, mate: Mate, owned: frozenset[TopicPartition] | None) -> None:
        target = set(self._target.get(mate.member_id, ()))
        if reconcile(mate, owned, target, self.target_epoch, self._taken_beside(mate)):
            self._records.current(mate)
            if mate.state == UNREVOKED:
                self._watch_revocation(mate, mate.epoch)
        self._end_if_stable()

    def _taken_beside(self, mate: Mate) -> set[TopicPartition]:
        return {place for each in self.members.values() if each is not mate for place in each.holds}

    def _watch_revocation(self, mate: Mate, epoch: int) -> None:
        """Who does not revoke within its rebalance timeout is evicted."""

        def check() -> None:
            is_living = not self._is_closed and self.members.get(mate.member_id) is mate
            if is_living and (mate.epoch, mate.state) == (epoch, UNREVOKED):
                self._remove(mate, "rebalance_timeout")

        self._clock.after(mate.beat.rebalance_ms, check)

    def _end_if_stable(self) -> None:
        everybody = all(
            mate.state == STABLE and mate.epoch == self.epoch == self.target_epoch
            for mate in self.members.values()
        )
        if self._open is not None and everybody:
            self._open.end_ms = self._clock.now
            self._open.assigned = {
                name: sorted(mate.assigned) for name, mate in self.members.items()
            }
            self._open = None
            self._truth.round_ended(
                self.name, self._clock.now, self.epoch, self._held(), is_complete=True
            )

    def _held(self) -> dict[str, list[TopicPartition]]:
        return {mate.beat.slot: sorted(mate.holds) for mate in self.members.values()}

    # commits, and members that speak the classic protocol

    def refuse_commit(self, member_id: str, epoch: int) -> str:
        mate = self.members.get(member_id)
        if mate is None:
            return "UNKNOWN_MEMBER_ID" if member_id or self.members else ""
        return "" if epoch == mate.epoch else "STALE_MEMBER_EPOCH"

    def join(self, wish: Wish, reply: Reply) -> None:
        """JoinGroup of a member of the old protocol; each gets its own assignment,
        so nobody leads.
        """
        subscription = next(iter(wish.protocols.values()))
        mate = self.members.get(wish.member_id)
        if mate is not None:
            mate.classic, mate.last_seen = wish, self._clock.now
            self._records.member(mate)
            if subscription.topics != mate.beat.topics:
                mate.beat = replace(mate.beat, topics=subscription.topics)
                self._bump("subscription_change")
        elif not wish.member_id:
            raw = self._coordinator.streams(f"member ids {self.name}").randbytes(16)
            reply("MEMBER_ID_REQUIRED", {"member_id": f"{wish.client_id}-{uuid.UUID(bytes=raw)}"})
            return
        elif wish.reason == "join":
            mate = self._admit_classic(wish)
        else:
            reply("UNKNOWN_MEMBER_ID", {})
            return
        self._retarget()
        # an eager member comes without anything
        self._reconcile(mate, frozenset(subscription.owned))
        reported = {
            "member_id": mate.member_id,
            "generation": mate.epoch,
            "protocol": next(iter(wish.protocols)),
        }
        reply("", reported | {"leader": None, "members": {}})

    def sync(self, member_id: str, generation: int, shares: object, reply: Reply) -> None:
        mate = self.members.get(member_id)
        if mate is None:
            reply("UNKNOWN_MEMBER_ID", None)
        elif generation != mate.epoch:
            reply("ILLEGAL_GENERATION", None)
        else:
            reply("", tuple(sorted(mate.assigned)))

    def heartbeat(self, member_id: str, generation: int, reply: Reply) -> None:
        mate = self.members.get(member_id)
        if mate is None:
            reply("UNKNOWN_MEMBER_ID")
        elif generation != mate.epoch:
            reply("ILLEGAL_GENERATION")
        else:
            mate.last_seen = self._clock.now
            self._look_at_topics()
            missing = set(self._target[member_id]) - mate.assigned
            is_released = mate.state == UNRELEASED and bool(missing - self._taken_beside(mate))
            is_behind = mate.epoch < self.epoch or mate.state == UNREVOKED or is_released
            reply("REBALANCE_IN_PROGRESS" if is_behind else "")

    def leave(self, member_id: str, reason: str) -> None:
        if member_id in self.members:
            self._remove(self.members[member_id], reason)

    # from one protocol to the other

    def take_over(self, old: ClassicGroup) -> None:
        """After the tombstone of type 2: 5 per member, 3 with the old generation, 7 per member, 6,
        8 per member.
        """
        self.epoch = self.target_epoch = old.generation
        for name, peer in old.members.items():
            beat = beat_of(peer.wish, name, old.generation)
            mate = Mate(
                name, beat, old.generation, old.generation, STABLE, set(peer.assigned or ()), set()
            )
            mate.classic, mate.last_seen = peer.wish, self._clock.now
            self.members[name] = mate
            self._target[name] = sorted(mate.assigned)
            self._records.member(mate)
        self._hash = self._topics_hash()
        if not self.members:
            self.epoch = self.target_epoch = 0
            return
        upgrade = self._write_epoch("upgrade", "upgrade")
        upgrade.end_ms = self._clock.now  # nobody's share changes
        upgrade.assigned = {name: sorted(mate.assigned) for name, mate in self.members.items()}
        for name in self.members:
            self._records.target(name, self._target[name])
        self._records.target_epoch(self.epoch)
        for mate in self.members.values():
            self._records.current(mate)
            self._watch(mate)

    def _downgrade(self) -> None:
        """The last member of the new protocol is gone: all tombstones, then one type 2 with the
        epoch as generation.
        """
        if self._open is not None:
            self._open.end_ms, self._open.is_superseded = self._clock.now, True
        self.write_tombstones()
        group = ClassicGroup(self.name, self._coordinator)
        peers = {
            name: Peer(name, mate.classic, tuple(self._target.get(name, ())), self._clock.now)
            for name, mate in self.members.items()
            if mate.classic is not None
        }
        self._coordinator.groups[self.name] = group
        group.adopt(peers, self.epoch)

    def reloaded(self, at_ms: int) -> ModernGroup:
        """Every step was written, so another broker goes on from here; sessions start again."""
        for mate in self.members.values():
            mate.last_seen = at_ms
        return self

    # records

    def write_tombstones(self) -> None:
        self._is_closed = True
        self._records.tombstones(list(self.members))


def _same(mate: Mate, beat: Beat) -> bool:
    return mate.beat.instance_id == beat.instance_id
