"""Ask the coordinators of the groups for what these committed and who their members are, in slices under a deadline.

ListGroups is answered by every broker with the groups that it coordinates, so nobody has to look for coordinators.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from laggard.names import NameFilter
from laggard.rebalance.described import describe_classic, describe_consumer
from laggard.sources import snapshot as shapes
from laggard.sources.brokers import Brokers, error_name
from laggard.sources.protocol.groups import ConsumerGroupDescribeRequest

SLICE = 100  # groups of one coordinator that one request asks for
GROUP_GONE, GROUP_DENIED = "GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED"
_WITHOUT_OFFSETS = "share"  # KIP-932: a share group's progress is not a committed offset
_DESCRIBES = {"consumer": "consumer_group_describe", "classic": "describe_groups"}
Listed = Mapping[str, Mapping[str, Any]]  # group -> its row of `GROUPS`


@dataclass(frozen=True, slots=True)
class Asked:
    """What one round of questions brought: tables of a snapshot."""

    groups: pa.Table
    unlisted: list[int]
    answers: pa.Table
    committed: pa.Table
    pending: int  # groups that were never asked, or brokers that never listed their groups
    errors: Mapping[tuple[str, str], int]  # (api, error) -> groups


class Coordinators:
    """Asks whoever has waited longest first, and remembers which groups there were; `known` are those of before."""

    def __init__(self, brokers: Brokers, names: NameFilter, seconds: float, known: Iterable[str] = ()) -> None:
        self._brokers = brokers
        self._names = names
        self._seconds = seconds
        self._asked_at: dict[str, int] = {}  # group -> round in which it was last asked
        self._missing: dict[str, int] = {}  # group -> listings in a row that lack it, as its coordinator does
        self._round = 0
        self._known = set(known)
        self._was_complete = False

    def ask(self, brokers: Sequence[int]) -> Asked:
        """List the groups of these brokers, then ask as many of them as the time allows."""
        until = time.monotonic() + self._seconds
        self._round += 1
        rows, unlisted = self._brokers.start_list_groups(brokers)()
        listed = {row["group_id"]: row for row in rows if self._names.watches_group(row["group_id"])}
        is_complete = bool(brokers) and not unlisted
        self._was_complete = self._was_complete or is_complete
        answers = _Answers()
        self._missing = {group: count for group, count in self._missing.items() if group not in listed}
        self._known |= listed.keys()
        # what a broker has that does not list its groups is not missing
        if is_complete and (missing := sorted(self._known - listed.keys())):
            self._look_for_missing(brokers, missing, answers)
        self._ask_slices(listed, answers, until)
        pending = sum(group not in self._asked_at for group in listed) + (not self._was_complete)
        return Asked(
            groups=shapes.group_table(listed.values()),
            unlisted=unlisted,
            answers=answers.table(sorted(self._known)),
            committed=answers.committed(self._names),
            pending=pending,
            errors=answers.errors,
        )

    def _look_for_missing(self, brokers: Sequence[int], missing: Sequence[str], answers: _Answers) -> None:
        """Ask all brokers by name for groups that none of them lists.

        A group may be listed no more as our right to describe it was taken away: brokers look at rights first, so each
        of them says so. That a group is gone only its coordinator can say; the others, and one that has just started,
        are not its coordinator. Two complete listings in a row have to lack it: to older brokers a group of the new
        protocol is dead when it is asked for so.
        """
        responses = self._brokers.start("describe_groups", {broker: _describe_groups(missing) for broker in brokers})()
        told = [each for response in responses.values() if not isinstance(response, str) for each in response.groups]
        denied = {each.group_id for each in told if error_name(each.error_code) == GROUP_DENIED}
        gone = {each.group_id for each in told if _is_gone(each)} - denied
        for group in denied:
            answers.fail("describe_groups", [group], GROUP_DENIED)
        for group in missing:
            self._missing[group] = self._missing.get(group, 0) + 1 if group in gone else 0
            if self._missing[group] > 1:
                answers.error_of[group] = GROUP_GONE
                del self._missing[group]
                self._known.discard(group)

    def _ask_slices(self, listed: Listed, answers: _Answers, until: float) -> None:
        waiting = [group for group, row in listed.items() if (row["group_type"] or "").lower() != _WITHOUT_OFFSETS]
        for group in listed.keys() - set(waiting):
            self._asked_at[group] = self._round
        queues: dict[int, deque[str]] = {}
        for group in sorted(waiting, key=lambda name: (self._asked_at.get(name, 0), name)):
            queues.setdefault(listed[group]["coordinator"], deque()).append(group)
        while queues:
            part = {
                broker: [queue.popleft() for _ in range(min(SLICE, len(queue)))] for broker, queue in queues.items()
            }
            queues = {broker: queue for broker, queue in queues.items() if queue}
            pending = [
                self._start(part, "offset_fetch", _offset_fetch, answers.take_offsets, answers),
                *(self._start_describe(part, listed, kind, answers) for kind in _DESCRIBES),
            ]
            for wait in pending:
                wait()
            self._asked_at |= {group: self._round for groups in part.values() for group in groups}
            if time.monotonic() >= until:
                break

    def _start_describe(
        self, part: Mapping[int, Sequence[str]], listed: Listed, kind: str, answers: _Answers
    ) -> Callable[[], None]:
        own = {
            broker: [group for group in groups if (listed[group]["group_type"] or "classic").lower() == kind]
            for broker, groups in part.items()
        }
        request, take = {
            "classic": (_describe_groups, answers.take_classic),
            "consumer": (_describe_consumers, answers.take_consumer),
        }[kind]
        return self._start(own, _DESCRIBES[kind], request, take, None)

    def _start(
        self,
        part: Mapping[int, Sequence[str]],
        api: str,
        request: Callable[[Sequence[str]], Any],
        take: Callable[[Any], None],
        failing: _Answers | None,
    ) -> Callable[[], None]:
        """Ask each broker for its groups; a broker that does not answer fails them where `failing` is given."""
        pending = self._brokers.start(api, {broker: request(groups) for broker, groups in part.items() if groups})

        def wait() -> None:
            for broker, response in pending().items():
                if not isinstance(response, str):
                    take(response)
                elif failing is not None:
                    failing.error_of |= dict.fromkeys(part[broker], response)

        return wait


class _Answers:
    """Answers of one round, as they come in."""

    def __init__(self) -> None:
        self.errors: Counter[tuple[str, str]] = Counter()
        self.error_of: dict[str, str | None] = {}  # group that was asked -> error, None: its offsets are complete
        self._details: dict[str, str] = {}
        self._rows: list[tuple[str, str, int, int | None, int | None, str | None]] = []

    def fail(self, api: str, groups: Iterable[str], error: str) -> None:
        for group in groups:
            self.error_of[group] = error
            self.errors[api, error] += 1

    def take_offsets(self, response: Any) -> None:
        """Committed offsets; -1 is none, and a partition with an error is unknown."""
        for group in response.groups:
            if error := error_name(group.error_code):
                self.fail("offset_fetch", [group.group_id], error)
                continue
            self.error_of[group.group_id] = None
            for topic in group.topics:
                for part in topic.partitions:
                    failed = error_name(part.error_code)
                    if failed:
                        self.errors["offset_fetch", failed] += 1
                    if failed or part.committed_offset >= 0:
                        epoch = part.committed_leader_epoch
                        self._rows.append(
                            (
                                group.group_id,
                                topic.name,
                                part.partition_index,
                                None if failed else part.committed_offset,
                                epoch if epoch >= 0 and not failed else None,
                                failed,
                            )
                        )

    def take_classic(self, response: Any) -> None:
        self._take(response, "describe_groups", lambda group: describe_classic(_with_blobs(group)))

    def take_consumer(self, response: Any) -> None:
        self._take(response, "consumer_group_describe", lambda group: describe_consumer(group.to_dict()))

    def _take(self, response: Any, api: str, describe: Callable[[Any], dict[str, Any]]) -> None:
        for group in response.groups:
            if error := error_name(group.error_code):
                self.errors[api, error] += 1
            elif (group.group_state or "") != "Dead":  # it ended since it was listed
                self._details[group.group_id] = json.dumps(describe(group), separators=(",", ":"))

    def table(self, groups: Iterable[str]) -> pa.Table:
        """Rows of `ANSWERS` for these groups and all that were asked."""
        names = list(dict.fromkeys([*groups, *self.error_of]))
        return shapes.table_of(
            shapes.ANSWERS,
            names,
            [group in self.error_of for group in names],
            [self.error_of.get(group) for group in names],
            [self._details.get(group) for group in names],
        )

    def committed(self, names: NameFilter) -> pa.Table:
        """Rows of `COMMITTED` of watched topics."""
        watched = {topic for topic in {row[1] for row in self._rows} if names.watches_topic(topic)}
        rows = [row for row in self._rows if row[1] in watched]
        columns = zip(*rows, strict=True) if rows else ((),) * len(shapes.COMMITTED)
        return shapes.table_of(shapes.COMMITTED, *columns)


def _with_blobs(group: Any) -> dict[str, Any]:
    """The group as a dict; `to_dict` makes text of bytes."""
    blobs = [
        {"member_metadata": each.member_metadata, "member_assignment": each.member_assignment} for each in group.members
    ]
    found: dict[str, Any] = group.to_dict()
    members = zip(found["members"], blobs, strict=True)
    return found | {"members": [member | given for member, given in members]}


def _is_gone(answer: Any) -> bool:
    """True by the word of the group's coordinator: dead up to version 5 of the request, then by an error."""
    error = error_name(answer.error_code)
    return error == GROUP_GONE or (error is None and answer.group_state == "Dead")


def _offset_fetch(groups: Sequence[str]) -> OffsetFetchRequest:
    asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    # several groups in one request from version 8 on (Kafka 3.0); version 10 has no topic names
    return OffsetFetchRequest(groups=asked, require_stable=False, min_version=8, max_version=9)


def _describe_groups(groups: Sequence[str]) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)


def _describe_consumers(groups: Sequence[str]) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
