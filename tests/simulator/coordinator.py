"""The broker side of groups: who serves which group, commits, transactions, fail-over.

Source: GC/GroupCoordinatorService and OffsetMetadataManager of Kafka 4.x, from their description in
the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from simulator import records
from simulator.broker import Brokers
from simulator.classic_group import ClassicGroup
from simulator.clock import Clock, Streams
from simulator.modern_group import ModernGroup
from simulator.modern_requests import Beat
from simulator.offsets_log import OffsetsLog, partition_of
from simulator.records import TopicPartition
from simulator.truth import Truth

Reply = Callable[..., None]  # an error name or "", then whatever the answer carries
TRANSACTION_TIMEOUT_MS = 60_000


@dataclass
class _Pending:
    group: str
    offsets: Mapping[TopicPartition, int]
    source_offsets: Mapping[TopicPartition, int]


class Coordinator:
    """All groups of the cluster; a partition of the offsets topic that moves is not served for a
    while.
    """

    def __init__(self, clock: Clock, streams: Streams, brokers: Brokers, truth: Truth) -> None:
        self.clock, self.streams, self.brokers, self.truth = clock, streams, brokers, truth
        self.log = OffsetsLog(clock)
        self.groups: dict[str, ClassicGroup | ModernGroup] = {}
        # -> committed offset, record's offset
        self.committed: dict[tuple[str, str, int], tuple[int, int]] = {}
        self.refusing: set[str] = set()  # groups whose commits come to nothing
        self.assignor = "uniform"  # of KIP-848 groups
        self.commit_version, self.group_version = 4, 3  # as Kafka 4.1 and later write them
        self._loading: dict[int, int] = {}  # offsets partition -> served again at
        self._pending: dict[int, _Pending] = {}  # producer id -> its transaction
        self._producers = 0

    def serves(self, group: str) -> bool:
        return self.clock.now >= self._loading.get(partition_of(group), 0)

    def write(self, group: str, batch: Iterable[records.Record]) -> tuple[int, int]:
        """Append records of a group as one; partition and offset of the first."""
        written = self.log.append(partition_of(group), batch)
        return written[0].partition, written[0].offset

    # groups

    def classic(self, name: str) -> ClassicGroup | ModernGroup:
        """The group that a JoinGroup finds; a new or an empty modern one becomes classic."""
        found = self.groups.get(name)
        if isinstance(found, ModernGroup) and not found.members:
            found.write_tombstones()
            found = None
        if found is None:
            found = self.groups[name] = ClassicGroup(name, self)
            if not any(key[0] == name for key in self.committed):
                found.write_created()
        return found

    def beat(self, group: str, beat: Beat, reply: Reply) -> None:
        """ConsumerGroupHeartbeat; the first one of a member makes the group, or converts a classic
        one (KIP-848).
        """
        found = self.groups.get(group)
        if not self.serves(group):
            reply("NOT_COORDINATOR", None)
        elif isinstance(found, ModernGroup):
            found.beat(beat, reply)
        elif beat.epoch != 0:
            reply("UNKNOWN_MEMBER_ID", None)
        else:
            self.groups[group] = fresh = ModernGroup(group, self, self.assignor)
            if found is not None:
                found.close()
                fresh.take_over(found)
            fresh.beat(beat, reply)

    def ask(self, group: str, reply: Reply) -> ClassicGroup | ModernGroup | None:
        """The group for a request about a known member; answers by itself where there is none."""
        if not self.serves(group):
            reply("NOT_COORDINATOR")
            return None
        found = self.groups.get(group)
        if found is None:
            reply("UNKNOWN_MEMBER_ID")
        return found

    # offsets

    def commit(
        self,
        group: str,
        member_id: str,
        generation: int,
        offsets: Mapping[TopicPartition, int],
        reply: Reply,
    ) -> None:
        error = self._refuse_commit(group, member_id, generation)
        if not error and offsets:
            self.store(group, offsets)
        reply(error)

    def store(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Write commits, or tombstones for None, without asking who commits."""
        found = self.groups.get(group)
        ids = None
        if isinstance(found, ModernGroup) and self.commit_version >= 4:
            ids = {name: topic.topic_id for name, topic in self.brokers.topics.items()}
        batch = records.commits(
            group, offsets, self.clock.now, version=self.commit_version, ids=ids
        )
        for written in self.log.append(partition_of(group), batch):
            key, offset = written.record.commit, written.record.committed_offset
            assert key is not None
            if offset is None:
                self.committed.pop(key, None)
            else:
                self.committed[key] = (offset, written.offset)

    def fetch(self, group: str, places: Iterable[TopicPartition], reply: Reply) -> None:
        """OffsetFetch: what is committed, None if nothing is."""
        if not self.serves(group):
            reply("NOT_COORDINATOR")
            return
        found = {place: self.committed.get((group, *place)) for place in places}
        reply("", {place: None if held is None else held[0] for place, held in found.items()})

    def commit_in_transaction(
        self,
        group: str,
        member_id: str,
        generation: int,
        offsets: Mapping[TopicPartition, int],
        reply: Reply,
    ) -> None:
        """TxnOffsetCommit: pending until the marker; an open transaction is aborted after its
        timeout.
        """
        error = self._refuse_commit(group, member_id, generation)
        if error:
            reply(error, None)
            return
        self._producers += 1
        producer_id = self._producers
        batch = records.commits(group, offsets, self.clock.now, version=self.commit_version)
        written = self.log.append(partition_of(group), batch, producer_id)
        places = {each.record.commit[1:]: each.offset for each in written if each.record.commit}
        self._pending[producer_id] = _Pending(group, dict(offsets), places)
        self.clock.after(
            TRANSACTION_TIMEOUT_MS, lambda: self.end_transaction(producer_id, is_committed=False)
        )
        reply("", producer_id)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """A pending value counts only if its record is newer than the stored one
        (OffsetMetadataManager).
        """
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return
        self.log.end_transaction(
            partition_of(pending.group), producer_id, is_committed=is_committed
        )
        for place, offset in pending.offsets.items() if is_committed else ():
            at = pending.source_offsets[place]
            key = (pending.group, *place)
            held = self.committed.get(key)
            if held is None or at > held[1]:
                self.committed[key] = (offset, at)

    def _refuse_commit(self, group: str, member_id: str, generation: int) -> str:
        if not self.serves(group):
            return "NOT_COORDINATOR"
        if group in self.refusing:
            return "INVALID_COMMIT_OFFSET_SIZE"
        found = self.groups.get(group)
        if found is None:
            return "" if not member_id else "UNKNOWN_MEMBER_ID"
        return found.refuse_commit(member_id, generation)

    # the cluster

    def fail_over(self, offsets_partition: int, load_ms: int) -> None:
        """The partition's leader is gone; another one reads it and serves from what was written."""
        self._loading[offsets_partition] = self.clock.now + load_ms
        self.log.elect(offsets_partition)
        for name, group in list(self.groups.items()):
            if partition_of(name) == offsets_partition:
                self.groups[name] = group.reloaded(self._loading[offsets_partition])

    def topic_deleted(self, name: str) -> None:
        """Tombstones for every group that has offsets there."""
        gone: dict[str, dict[TopicPartition, int | None]] = {}
        for group, topic, partition in self.committed:
            if topic == name:
                gone.setdefault(group, {})[topic, partition] = None
        for group, offsets in sorted(gone.items()):
            self.store(group, offsets)
        self.truth.topic_deleted(name)

    def sweep(self, retention_ms: int) -> None:
        """The periodic expiry: offsets of classic groups that have been empty for so long, and then
        the group.
        """
        for name, group in list(self.groups.items()):
            is_over = (
                self.clock.now - group.state_ms > retention_ms
                if isinstance(group, ClassicGroup)
                else False
            )
            if is_over and not group.members and any(key[0] == name for key in self.committed):
                self.delete_group(name)

    def delete_group(self, name: str) -> None:
        """DeleteGroups of an empty group: its offsets, then the group."""
        tombstones = {
            (topic, partition): None
            for group, topic, partition in list(self.committed)
            if group == name
        }
        self.store(name, tombstones)
        self.groups.pop(name).write_tombstones()
