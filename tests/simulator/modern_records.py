"""The records of one KIP-848 group: types 3 to 8, in the order in which a broker writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from simulator import records
from simulator.modern_requests import Mate
from simulator.records import TopicPartition

if TYPE_CHECKING:
    from simulator.coordinator import Coordinator


class ModernRecords:
    """Writes to the group's partition of the offsets topic."""

    def __init__(self, group: str, coordinator: Coordinator) -> None:
        self._group, self._coordinator = group, coordinator

    def epoch(self, epoch: int, metadata_hash: int) -> tuple[int, int]:
        """Partition and offset of the record."""
        return self._write(
            records.of_group(3, self._group, {"epoch": epoch, "metadata_hash": metadata_hash})
        )

    def target_epoch(self, epoch: int) -> None:
        self._write(
            records.of_group(6, self._group, {"assignment_epoch": epoch, "assignment_timestamp": 0})
        )

    def target(self, member_id: str, places: Iterable[TopicPartition]) -> None:
        self._write(
            records.of_member(7, self._group, member_id, {"topic_partitions": self._by_id(places)})
        )

    def current(self, mate: Mate) -> None:
        value = {
            "member_epoch": mate.epoch,
            "previous_member_epoch": mate.previous,
            "state": mate.state,
            "assigned_partitions": self._by_id(mate.assigned),
            "partitions_pending_revocation": self._by_id(mate.revoking),
        }
        self._write(records.of_member(8, self._group, mate.member_id, value))

    def member(self, mate: Mate) -> None:
        beat, classic = mate.beat, mate.classic
        protocols = classic.protocols.items() if classic else ()
        old_data: dict[str, Any] | None = classic and {
            "session_timeout_ms": classic.session_ms,
            "supported_protocols": [
                {"name": name, "metadata": bytes(said)} for name, said in protocols
            ],
        }
        value = {
            "instance_id": beat.instance_id,
            "rack_id": None,
            "client_id": beat.client_id,
            "client_host": beat.host,
            "subscribed_topic_names": beat.topics,
            "subscribed_topic_regex": "",  # what brokers write for none
            "rebalance_timeout_ms": beat.rebalance_ms,
            "server_assignor": None,
            "classic_member_metadata": old_data,
        }
        self._write(records.of_member(5, self._group, mate.member_id, value))

    def gone(self, member_id: str) -> None:
        """A member left: 8, 7, 5."""
        self._write(
            *(records.of_member(number, self._group, member_id, None) for number in (8, 7, 5))
        )

    def tombstones(self, members: Sequence[str]) -> None:
        """The group is no more: 8 per member, 7 per member, 6, 5 per member, 4, 3; type 4 even if
        it never was.
        """
        group = self._group
        self._write(
            *(
                records.of_member(number, group, name, None)
                for number in (8, 7)
                for name in members
            ),
            records.of_group(6, group, None),
            *(records.of_member(5, group, name, None) for name in members),
            *(records.of_group(number, group, None) for number in (4, 3)),
        )

    def _write(self, *batch: records.Record) -> tuple[int, int]:
        return self._coordinator.write(self._group, batch)

    def _by_id(self, places: Iterable[TopicPartition]) -> Sequence[dict[str, Any]]:
        topics = self._coordinator.brokers.topics
        return records.by_topic_id(places, {name: topic.topic_id for name, topic in topics.items()})
