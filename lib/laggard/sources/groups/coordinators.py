"""Ask the groups' coordinators for committed offsets and members, in slices under a deadline.

ListGroups is answered by every broker with the groups that it coordinates, so nobody has to look
for coordinators, but for those of groups that are listed no more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from laggard.names import NameFilter
from laggard.sources import snapshot as shapes
from laggard.sources.brokers import Brokers
from laggard.sources.connections import TIMEOUT
from laggard.sources.groups.coordinator_answers import (
    Answers,
    describe_consumers,
    describe_groups,
    offset_fetch,
)
from laggard.sources.groups.ended_groups import GROUP_GONE, look_for

SLICE = 100  # groups of one coordinator that one request asks for
LOOKS = 1000  # groups that nobody lists, looked for in a poll
FIRST_ANSWERS_SECONDS = 120.0  # then a coordinator that does not answer is not waited for
NEVER = -(1 << 62)  # a turn before all others
GROUP_DENIED = "GROUP_AUTHORIZATION_FAILED"
_WITHOUT_OFFSETS = "share"  # KIP-932: a share group's progress is not a committed offset
_DESCRIBES = {"consumer": "consumer_group_describe", "classic": "describe_groups"}
Listed = Mapping[str, Mapping[str, Any]]  # group -> its row of `GROUPS`


@dataclass(frozen=True, slots=True)
class Asked:
    """Tables of a snapshot that one round of questions brought."""

    groups: pa.Table
    unlisted: list[int]
    answers: pa.Table
    committed: pa.Table
    pending: int  # groups that have not answered yet, or brokers that never listed their groups
    errors: Mapping[tuple[str, str], int]  # (api, error) -> groups


@dataclass(slots=True)
class _Known:
    """A group that was listed, or has rows."""

    turn: int = NEVER  # round in which it was last asked; below 1: before this process
    coordinator: int | None = None  # broker that listed it last
    is_settled: bool = False  # it answered in full, or refused for good
    has_failed: bool = False  # at its last turn
    is_new: bool = False  # a complete listing lacked it, so its first offset is not older than that


class Coordinators:
    """Client of the coordinators that asks the longest-waiting group first.

    `known`: groups that have rows, longest waiting first.
    """

    def __init__(
        self, brokers: Brokers, names: NameFilter, seconds: float, known: Iterable[str] = ()
    ) -> None:
        self._brokers = brokers
        self._names = names
        self._seconds = seconds
        watched = list(filter(names.watches_group, known))
        self._known = {group: _Known(turn) for turn, group in enumerate(watched, -len(watched))}
        self._round = 0
        self._was_complete = False
        self._patient_until: float | None = None

    def ask(self, brokers: Sequence[int]) -> Asked:
        """List the groups of these brokers, then ask as many of them as the time allows."""
        until = time.monotonic() + self._seconds
        self._patient_until = self._patient_until or time.monotonic() + FIRST_ANSWERS_SECONDS
        self._round += 1
        rows, unlisted = self._brokers.start_list_groups(brokers)()
        listed = self._watched(rows)
        is_complete = bool(brokers) and not unlisted
        answers = Answers()
        if len(unlisted) < len(brokers):  # else nobody answers
            listed = self._look_for_missing(listed, unlisted, answers)
        self._was_complete = self._was_complete or is_complete
        self._ask_slices(listed, answers, until)
        self._note(answers)
        is_new = {group: self._known[group].is_new for group in sorted(self._known)}
        return Asked(
            groups=shapes.group_table(listed.values()),
            unlisted=unlisted,
            answers=answers.table(is_new),
            committed=answers.committed(self._names),
            pending=self._pending(listed),
            errors=answers.errors,
        )

    def _watched(self, rows: Iterable[Mapping[str, Any]]) -> Listed:
        listed = {
            row["group_id"]: row for row in rows if self._names.watches_group(row["group_id"])
        }
        for group, row in listed.items():
            known = self._known.setdefault(group, _Known(is_new=self._was_complete))
            known.coordinator = row["coordinator"]
            known.is_settled = known.is_settled or has_no_offsets(row["group_type"])
        return listed

    def _look_for_missing(
        self, listed: Listed, unlisted: Sequence[int], answers: Answers
    ) -> Listed:
        """Ask for known groups that no broker lists; return all listed groups.

        Groups listed by a coordinator found here are included.
        """
        missing = [
            group
            for group, known in self._known.items()
            # such a broker lists it, once it answers
            if group not in listed and known.coordinator not in unlisted
        ]
        missing = sorted(missing, key=self._turn)[:LOOKS]
        if not missing:
            return listed
        lookup = look_for(self._brokers, missing)
        for group in missing:
            self._known[group].turn = self._round
        for group, (api, error) in lookup.errors.items():
            answers.fail(api, [group], error)
        answers.error_of |= dict.fromkeys(sorted(lookup.gone), GROUP_GONE)
        return {**self._watched(lookup.listed), **listed}

    def _turn(self, group: str) -> tuple[int, str]:
        return self._known[group].turn, group

    def _ask_slices(self, listed: Listed, answers: Answers, until: float) -> None:
        queues = self._queues(listed)
        while queues:
            part: dict[int, list[str]] = {}
            for broker, queue in queues.items():
                part[broker] = [queue.popleft() for _ in range(min(SLICE, len(queue)))]
            was_silent, failures = self._brokers.silent, dict[int, str]()
            pending = [
                self._start(part, "offset_fetch", offset_fetch, answers.take_offsets, failures),
                *(self._start_describe(part, listed, kind, answers) for kind in _DESCRIBES),
            ]
            for wait in pending:
                wait()
            self._give_up(failures, was_silent, part, queues, answers)
            for group in chain.from_iterable(part.values()):
                # also after an error: it must not keep others from theirs
                self._known[group].turn = self._round
            queues = {broker: queue for broker, queue in queues.items() if queue}
            if time.monotonic() >= until:
                break

    def _give_up(
        self,
        failures: Mapping[int, str],
        was_silent: frozenset[int],
        part: dict[int, list[str]],
        queues: dict[int, deque[str]],
        answers: Answers,
    ) -> None:
        """Leave the rest of the groups of coordinators that did not answer to the next poll."""
        for broker, error in failures.items():
            rest = queues.pop(broker)
            if error == TIMEOUT and broker not in self._brokers.silent - was_silent:
                del part[broker]  # nothing was sent, so nobody had a turn
            # not merely the end of the poll's own time
            if error != TIMEOUT or broker in self._brokers.silent:
                answers.error_of |= dict.fromkeys([*part.get(broker, ()), *rest], error)

    def _queues(self, listed: Listed) -> dict[int, deque[str]]:
        """Return the groups with offsets by coordinator, longest-waiting groups first."""
        queues: dict[int, deque[str]] = {}
        for group in sorted(listed, key=self._turn):
            if not has_no_offsets(listed[group]["group_type"]):
                queues.setdefault(listed[group]["coordinator"], deque()).append(group)
        return queues

    def _start_describe(
        self, part: Mapping[int, Sequence[str]], listed: Listed, kind: str, answers: Answers
    ) -> Callable[[], None]:
        own: dict[int, list[str]] = {}
        for broker, groups in part.items():
            for group in groups:
                if (listed[group]["group_type"] or "classic").lower() == kind:
                    own.setdefault(broker, []).append(group)
        request, take = {
            "classic": (describe_groups, answers.take_classic),
            "consumer": (describe_consumers, answers.take_consumer),
        }[kind]
        return self._start(own, _DESCRIBES[kind], request, take, {})

    def _start(
        self,
        part: Mapping[int, Sequence[str]],
        api: str,
        request: Callable[[Sequence[str]], Any],
        take: Callable[[Any], None],
        failures: dict[int, str],
    ) -> Callable[[], None]:
        """Ask each broker for its groups; brokers that do not answer go into `failures`."""
        requests = {broker: request(groups) for broker, groups in part.items() if groups}
        pending = self._brokers.start(api, requests)

        def wait() -> None:
            for broker, response in pending().items():
                if isinstance(response, str):
                    failures[broker] = response
                else:
                    take(response)

        return wait

    def _note(self, answers: Answers) -> None:
        """Keep of the answers what later polls need."""
        for group, error in answers.error_of.items():
            if error == GROUP_GONE:
                del self._known[group]
                continue
            known = self._known[group]
            known.has_failed = error not in (None, GROUP_DENIED)
            known.is_settled = known.is_settled or not known.has_failed

    def _pending(self, listed: Listed) -> int:
        """Count groups to wait for, but no group forever.

        A group that failed at first would be taken for new later.

        Groups that nobody lists count until they were looked for once.
        """
        is_patient = time.monotonic() < (self._patient_until or 0.0)
        pending = int(is_patient and not self._was_complete)
        for group, known in self._known.items():
            if known.is_settled:
                continue
            if is_patient:
                pending += group in listed or known.turn < 1
            else:
                pending += group in listed and not known.has_failed
        return pending


def has_no_offsets(group_type: str | None) -> bool:
    """Return True if groups of this type commit no offsets."""
    return (group_type or "").lower() == _WITHOUT_OFFSETS
