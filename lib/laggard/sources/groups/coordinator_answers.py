"""Requests to the coordinators of groups, and their answers as the tables of a snapshot."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import OffsetFetchRequest

from laggard.names import NameFilter
from laggard.rebalance.membership.described import describe_classic, describe_consumer
from laggard.sources import protocol
from laggard.sources import snapshot as shapes
from laggard.sources.brokers import as_dict, error_name

DEAD = "Dead"  # the state of a group that is not there


# kafka-python has no types
class ConsumerGroupDescribeRequest(ApiMessage, load_json=protocol):  # type: ignore[misc,call-arg]
    """Ask the coordinator of these groups."""


# kafka-python has no types
class ConsumerGroupDescribeResponse(ApiMessage, load_json=protocol):  # type: ignore[misc,call-arg]
    """Their state and members."""


class Answers:
    """Answers of one round, as they come in."""

    def __init__(self) -> None:
        self.errors: Counter[tuple[str, str]] = Counter()
        # group that was asked -> error, None: its offsets are complete
        self.error_of: dict[str, str | None] = {}
        self._details: dict[str, str] = {}
        self._rows: list[tuple[str, str, int, int | None, int | None, str | None]] = []

    def fail(self, api: str, groups: Iterable[str], error: str) -> None:
        for group in groups:
            self.error_of[group] = error
            self.errors[api, error] += 1

    def take_offsets(self, response: Any) -> None:
        """Take the committed offsets; -1 is none, and a partition with an error is unknown."""
        for group in response.groups:
            if error := error_name(group.error_code):
                self.fail("offset_fetch", [group.group_id], error)
                continue
            self.error_of[group.group_id] = None
            for topic in group.topics:
                for part in topic.partitions:
                    self._take_partition(group.group_id, topic.name, part)

    def _take_partition(self, group: str, topic: str, part: Any) -> None:
        if error := error_name(part.error_code):
            self.errors["offset_fetch", error] += 1
            self._rows.append((group, topic, part.partition_index, None, None, error))
        elif part.committed_offset >= 0:
            epoch = part.committed_leader_epoch
            if epoch < 0:
                epoch = None
            self._rows.append(
                (group, topic, part.partition_index, part.committed_offset, epoch, None)
            )

    def take_classic(self, response: Any) -> None:
        self._take(response, "describe_groups", lambda group: describe_classic(_with_blobs(group)))

    def take_consumer(self, response: Any) -> None:
        self._take(
            response, "consumer_group_describe", lambda group: describe_consumer(as_dict(group))
        )

    def _take(self, response: Any, api: str, describe: Callable[[Any], dict[str, Any]]) -> None:
        for group in response.groups:
            if error := error_name(group.error_code):
                self.errors[api, error] += 1
            elif (group.group_state or "") != DEAD:  # it ended since it was listed
                self._details[group.group_id] = json.dumps(describe(group), separators=(",", ":"))

    def table(self, known: Mapping[str, bool]) -> pa.Table:
        """Return rows of `ANSWERS` for these groups and for all groups that were asked.

        `known` is True for new groups.
        """
        names = list(dict.fromkeys([*known, *self.error_of]))
        return shapes.table_of(
            shapes.ANSWERS,
            names,
            [group in self.error_of for group in names],
            list(map(self.error_of.get, names)),
            list(map(self._details.get, names)),
            [known.get(group, False) for group in names],
        )

    def committed(self, names: NameFilter) -> pa.Table:
        """Return the rows of `COMMITTED` of watched topics."""
        watched = set(filter(names.watches_topic, {row[1] for row in self._rows}))
        rows = [row for row in self._rows if row[1] in watched]
        return shapes.table_of_rows(shapes.COMMITTED, rows)


def _with_blobs(group: Any) -> dict[str, Any]:
    """Return the group as a dict with its binary fields as bytes, which `to_dict` makes texts."""
    described = as_dict(group)
    for member, given in zip(described["members"], group.members, strict=True):
        member["member_metadata"] = given.member_metadata
        member["member_assignment"] = given.member_assignment
    return described


def offset_fetch(groups: Sequence[str]) -> OffsetFetchRequest:
    """Ask for all committed offsets of these groups."""
    asked = [
        OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups
    ]
    # several groups in one request from version 8 on (Kafka 3.0); version 10 has no topic names
    return OffsetFetchRequest(groups=asked, require_stable=False, min_version=8, max_version=9)


def describe_groups(groups: Sequence[str]) -> DescribeGroupsRequest:
    """Ask for members of classic groups."""
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)


def describe_consumers(groups: Sequence[str]) -> ConsumerGroupDescribeRequest:
    """Ask for members of groups of the new protocol."""
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
