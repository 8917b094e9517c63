"""Records of the offsets topic as a coordinator writes them, through the tests' own encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import encoder
from simulator.offsets_log import Record

TopicPartition = tuple[str, int]
GROUP_VERSION = 3  # what current brokers write (GroupCoordinatorRecordHelpers)


@dataclass(frozen=True)
class Subscription:
    """What a member says when it joins; `previous` is what sticky hides in its user data."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    previous: tuple[TopicPartition, ...] | None = None
    version: int = 3

    def __bytes__(self) -> bytes:
        user_data = (
            None
            if self.previous is None
            else _by_topic_bytes(self.previous) + encoder.i32(self.generation)
        )
        return encoder.subscription(
            {
                "version": self.version,
                "topics": self.topics,
                "user_data": user_data,
                "owned_partitions": by_topic(self.owned),
                "generation_id": self.generation,
                "rack_id": None,
            }
        )

    def wants_the_same(self, other: Subscription) -> bool:
        """Equal bytes are what the coordinator looks at; a follower that repeats them causes no
        rebalance.
        """
        return replace(self) == replace(other)


def by_topic(places: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": held} for topic, held in found.items()]


def _by_topic_bytes(places: Iterable[TopicPartition]) -> bytes:
    parts = [
        encoder.string(each["topic"])
        + encoder.array([encoder.i32(place) for place in each["partitions"]])
        for each in by_topic(places)
    ]
    return encoder.array(parts)


def assignment(places: Iterable[TopicPartition]) -> bytes:
    return encoder.assignment(
        {"version": 3, "assigned_partitions": by_topic(places), "user_data": None}
    )


def commits(  # v3 up to Kafka 4.0, v4 since 4.1
    group: str,
    offsets: Mapping[TopicPartition, int | None],
    now_ms: int,
    *,
    version: int = 4,
    ids: Mapping[str, str] | None = None,
) -> list[Record]:
    """A commit of each partition in order, or its tombstone where the offset is None; `ids` of
    topics to tell.
    """
    now, found = encoder.i64(now_ms), []
    for place, offset in sorted(offsets.items()):
        value = None
        if offset is not None:
            before, between, after = _around(version, ids and ids.get(place[0]))
            value = before + encoder.i64(offset) + between + now + after
        key = (group, *place)
        found.append(Record(_commit_key(*key), value, key, offset))
    return found


def commit(group: str, place: TopicPartition, offset: int | None, now_ms: int) -> Record:
    """One of them."""
    return commits(group, {place: offset}, now_ms)[0]


# half of a run's time would be spent on encoding commits that differ little
_commit_key = cache(encoder.commit_key)


@cache
def _around(version: int, topic_id: str | None) -> list[bytes]:
    """What stands before, between and after the offset and the time of a commit."""
    mark = 0x7E57_7E57_7E57_7E57
    fields = {
        "offset": mark,
        "leader_epoch": 0,
        "metadata": "",
        "commit_timestamp": mark,
        "expire_timestamp": -1,
    }
    return encoder.commit_value(version, fields | {"topic_id": topic_id}).split(encoder.i64(mark))


def classic_group(
    group: str, value: Mapping[str, Any] | None, version: int = GROUP_VERSION
) -> Record:
    return Record(
        encoder.group_key(group),
        None if value is None else encoder.group_value(version, dict(value)),
    )


def of_group(record_type: int, group: str, value: Mapping[str, Any] | None) -> Record:
    """A record of a KIP-848 group as a whole: types 3, 4 and 6."""
    key = encoder.record_key(record_type, {"group_id": group})
    return Record(key, None if value is None else encoder.record_value(record_type, 0, dict(value)))


def of_member(
    record_type: int, group: str, member_id: str, value: Mapping[str, Any] | None
) -> Record:
    """A record of one member of a KIP-848 group: types 5, 7 and 8."""
    key = encoder.record_key(record_type, {"group_id": group, "member_id": member_id})
    if value is None:
        return Record(key, None)
    # brokers write the tag of type 5 for every member, as an explicit null
    return Record(key, encoder.record_value(record_type, 0, dict(value), all_tags=record_type == 5))


def by_topic_id(
    places: Iterable[TopicPartition], ids: Mapping[str, str]
) -> Sequence[dict[str, Any]]:
    return [
        {
            "topic_id": ids[each["topic"]],
            "partitions": each["partitions"],
            "assignment_epochs": None,
        }
        for each in by_topic(place for place in places if place[0] in ids)
    ]
