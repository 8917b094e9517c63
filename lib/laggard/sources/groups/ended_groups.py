"""Groups that no broker lists: are they there no more? Only a group's own coordinator can say so.

A listing lacks a group also where its coordinator is not reached, where it is on its way from one
broker to another, or where the right to describe it was taken away. So its absence proves nothing.
The tombstones of a group that ended while the job was down may be gone before the job reads.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from laggard.errors import LaggardError
from laggard.sources.brokers import Brokers, error_name
from laggard.sources.groups.coordinator_answers import DEAD, describe_groups, offset_fetch

GROUP_GONE = "GROUP_ID_NOT_FOUND"
MOST_GROUPS = 1000  # asked about at a time


@dataclass(slots=True)
class Found:
    """Answers on groups that nobody listed; a group in neither of these is there."""

    gone: set[str] = field(default_factory=set)
    # group -> (api, error): nothing is known
    errors: dict[str, tuple[str, str]] = field(default_factory=dict)
    listed: list[dict[str, Any]] = field(default_factory=list)  # all groups of these coordinators


def look_for(brokers: Brokers, groups: Sequence[str]) -> Found:
    """Ask for these groups by name; each deleted one has one definite answer of its coordinator."""
    lookup = Found()
    try:
        brokers.metadata([])  # the coordinator may be a broker that came a moment ago
    except LaggardError:
        return lookup
    request = FindCoordinatorRequest(
        key_type=0, coordinator_keys=list(groups), min_version=4, max_version=5
    )
    response = brokers.ask("find_coordinator", request)
    if isinstance(response, str):
        lookup.errors = dict.fromkeys(groups, ("find_coordinator", response))
        return lookup
    by_coordinator: dict[int, list[str]] = {}
    for coordinator in response.coordinators:
        if error := error_name(coordinator.error_code):
            lookup.errors[coordinator.key] = "find_coordinator", error
        else:
            by_coordinator.setdefault(coordinator.node_id, []).append(coordinator.key)
    unseen = _not_described(brokers, by_coordinator, lookup)
    _keep_without_offsets(brokers, unseen, lookup)
    return lookup


def _not_described(
    brokers: Brokers, by_coordinator: dict[int, list[str]], lookup: Found
) -> dict[int, list[str]]:
    """Return groups that their coordinator knows neither as a classic group nor in its listing."""
    describe = brokers.start(
        "describe_groups", {key: describe_groups(groups) for key, groups in by_coordinator.items()}
    )
    # after it, on the same connection: a coordinator that has loaded its groups lists them, of
    # every type
    listing = brokers.start_list_groups(list(by_coordinator))
    described, (lookup.listed, unlisted) = describe(), listing()
    seen = set(map(itemgetter("group_id"), lookup.listed))
    unseen: dict[int, list[str]] = {}
    for broker, group, is_gone in _answered("describe_groups", described, by_coordinator, lookup):
        if (
            (is_gone or group.group_state == DEAD)
            and group.group_id not in seen
            and broker not in unlisted
        ):
            unseen.setdefault(broker, []).append(group.group_id)
    return unseen


def _keep_without_offsets(brokers: Brokers, unseen: dict[int, list[str]], lookup: Found) -> None:
    """Note groups without offsets as gone.

    The answer also says that the coordinator has not changed meanwhile.
    """
    offsets = brokers.start(
        "offset_fetch", {key: offset_fetch(groups) for key, groups in unseen.items()}
    )()
    for _, group, _ in _answered("offset_fetch", offsets, unseen, lookup):
        if not group.topics:
            lookup.gone.add(group.group_id)


def _answered(
    api: str, responses: Mapping[int, Any], asked: Mapping[int, Sequence[str]], lookup: Found
) -> Iterator[tuple[int, Any, bool]]:
    """Yield broker, answer on a group, and True if the group is gone; others become errors."""
    for broker, response in responses.items():
        if isinstance(response, str):
            lookup.errors |= dict.fromkeys(asked[broker], (api, response))
            continue
        for group in response.groups:
            error = error_name(group.error_code)
            if error in (None, GROUP_GONE):
                yield broker, group, error is not None
            else:
                lookup.errors[group.group_id] = api, str(error)


class Reconcile:
    """Compares groups that may have rows with complete listings, now and then; `seconds` 0: never.

    A round asks about each missing group once, some at each listing. Which of those that were
    listed since the round before have rows is not known here: all are asked about, and those that
    are gone are forgotten.
    """

    def __init__(self, brokers: Brokers, seconds: float, known: Iterable[str]) -> None:
        self._brokers = brokers
        self._seconds = seconds
        self._known = set(known)
        self._gone: set[str] = set()
        self._to_ask: list[str] = []
        self._asked_at: float | None = None

    def ended(self, listed: Collection[str]) -> list[str]:
        """Return groups that this complete listing lacks and whose coordinator reported as gone.

        The coordinator's last report counts.
        """
        if not self._seconds:
            return []
        there, now = set(listed), time.monotonic()
        self._gone -= there
        is_due = self._asked_at is None or now - self._asked_at >= self._seconds
        if is_due and not self._to_ask:
            self._asked_at = now
            self._known -= self._gone  # the job had hours to take them out
            self._gone = set()
            self._to_ask = sorted(self._known - there)
        self._known |= there
        asked, self._to_ask = self._to_ask[:MOST_GROUPS], self._to_ask[MOST_GROUPS:]
        if missing := [group for group in asked if group not in there]:
            self._gone |= look_for(self._brokers, missing).gone
        return sorted(self._gone)
