"""Groups asked in slices: everybody gets a turn, and a group is gone only by the word of its own
coordinator.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from laggard.names import NameFilter
from laggard.sources.connections import TIMEOUT
from laggard.sources.groups import coordinators
from laggard.sources.groups.coordinators import NEVER, Asked, Coordinators

LOADING, NO_COORDINATOR, NOT_COORDINATOR, NO_GROUP, DENIED = 14, 15, 16, 69, 30
GONE, REFUSED = "GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED"


@dataclass
class Cluster:
    """What brokers answer about groups, as `Brokers` gives it; `groups`: the broker that
    coordinates each.
    """

    groups: dict[str, int]
    names: set[str] = field(default_factory=set)  # that exist, without a coordinator
    # group -> code of every answer about it by name
    errors: dict[str, int] = field(default_factory=dict)
    most_slices: int = 1000  # requests for offsets that the deadline leaves time for
    seconds: float = 0.0  # of a request for offsets
    silent: frozenset[int] = frozenset()
    falls_silent: frozenset[int] = frozenset()  # at the first question for offsets
    # from listings, as the right to describe is missing
    hidden: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)

    def metadata(self, topics: Sequence[str]) -> dict[str, Any]:
        assert topics == []
        return {}

    def start_list_groups(
        self, brokers: Iterable[int]
    ) -> Callable[[], tuple[list[dict[str, Any]], list[int]]]:
        kept = [each for each in brokers if each not in self.silent]
        rows = [
            {
                "group_id": group,
                "group_state": "Stable",
                "protocol_type": "consumer",
                "group_type": "Classic",
            }
            | {"coordinator": broker}
            for group, broker in self.groups.items()
            if broker in kept and group not in self.hidden
        ]
        return lambda: (rows, [each for each in brokers if each in self.silent])

    def ask(self, api: str, request: Any) -> Any:
        assert api == "find_coordinator"
        self.requests[api] += 1
        found = []
        for group in request.coordinator_keys:
            code = self.errors.get(group, 0) or (NO_COORDINATOR if group in self.names else 0)
            found.append(
                SimpleNamespace(key=group, node_id=self.groups.get(group, 1), error_code=code)
            )
        return SimpleNamespace(coordinators=found)

    def start(self, api: str, requests: Mapping[int, Any]) -> Callable[[], dict[int, Any]]:
        self.requests[api] += len(requests)
        return lambda: {
            broker: self._answer(api, broker, request) for broker, request in requests.items()
        }

    def _answer(self, api: str, broker: int, request: Any) -> Any:
        if broker in self.silent:
            return TIMEOUT
        if api == "offset_fetch":
            if broker in self.falls_silent:
                self.silent |= {broker}
                return TIMEOUT
            self.most_slices -= 1
            if self.most_slices < 0:
                return TIMEOUT
            time.sleep(self.seconds)
            self.asked += [each.group_id for each in request.groups]
            found = [
                SimpleNamespace(
                    group_id=each.group_id, error_code=self._code(each.group_id, broker), topics=[]
                )
                for each in request.groups
            ]
        else:
            found = [
                SimpleNamespace(
                    group_id=group,
                    error_code=self._code(group, broker) or NO_GROUP,
                    group_state="",
                    members=[],
                )
                for group in request.groups
            ]
        return SimpleNamespace(groups=found)

    def _code(self, group: str, broker: int) -> int:
        return self.errors.get(group, 0) or (
            NOT_COORDINATOR if self.groups.get(group, broker) != broker else 0
        )


def poller(
    cluster: Cluster,
    names: NameFilter | None = None,
    known: Iterable[str] = (),
    seconds: float = 9.0,
) -> Any:
    return Coordinators(cluster, names or NameFilter(), seconds, known)  # type: ignore[arg-type]


def groups_of(number: int, brokers: int = 3) -> dict[str, int]:
    return {f"g{index:04}": 1 + index % brokers for index in range(number)}


def errors_of(asked: Asked) -> dict[str, str]:
    return {row["group"]: row["error"] for row in asked.answers.to_pylist() if row["error"]}


def test_every_group_gets_its_turn_where_a_deadline_cuts_rounds_off() -> None:
    cluster = Cluster(groups_of(2000))
    asker, pending = poller(cluster), []
    for _ in range(7):
        cluster.most_slices = 3
        asked = asker.ask([1, 2, 3])
        pending.append(asked.pending)
        assert errors_of(asked) == {}  # nobody failed
    assert pending == [1700, 1400, 1100, 800, 500, 200, 0]
    assert Counter(cluster.asked).keys() == cluster.groups.keys()


def test_a_round_ends_with_its_own_time() -> None:
    cluster = Cluster(groups_of(900), seconds=0.05)
    asker = poller(cluster, seconds=0.01)
    for number in range(3):
        assert asker.ask([1, 2, 3]).pending == 600 - 300 * number
    assert Counter(cluster.asked) == dict.fromkeys(cluster.groups, 1)


def test_groups_of_a_broker_that_falls_silent_keep_their_turn_and_hold_up_nobody() -> None:
    cluster = Cluster(groups_of(600), falls_silent=frozenset([3]))
    asker = poller(cluster)
    asked = asker.ask([1, 2, 3])
    assert len(cluster.asked) == 400
    assert set(errors_of(asked).values()) == {TIMEOUT}
    assert {cluster.groups[group] for group in errors_of(asked)} == {3}
    assert asked.pending == 200
    cluster.silent = cluster.falls_silent = frozenset()
    assert asker.ask([1, 2, 3]).pending == 0


def test_after_a_restart_those_are_asked_first_that_waited_longest() -> None:
    cluster = Cluster(groups_of(400, 1), most_slices=1)
    asker = poller(cluster, known=sorted(cluster.groups, reverse=True))
    asker.ask([1])
    assert cluster.asked == sorted(cluster.groups, reverse=True)[:100]


def test_a_group_that_its_coordinator_does_not_know_is_gone_at_once() -> None:
    cluster = Cluster({"stays": 1, "ends": 2})
    asker = poller(cluster)
    asker.ask([1, 2])
    del cluster.groups["ends"]
    asked = asker.ask([1, 2])
    assert (errors_of(asked), asked.pending) == ({"ends": GONE}, 0)
    assert errors_of(asker.ask([1, 2])) == {}


def test_a_group_that_ended_while_the_job_was_down_is_gone_in_its_first_poll() -> None:
    asked = poller(Cluster({"stays": 1}), known=["stays", "ended"]).ask([1])
    assert (errors_of(asked), asked.pending) == ({"ended": GONE}, 0)


@pytest.mark.parametrize("poll_again", [1, 2, 3])
def test_groups_of_an_offsets_partition_without_a_leader_are_not_gone(poll_again: int) -> None:
    cluster = Cluster(groups_of(30))
    asker = poller(cluster)
    asker.ask([1, 2, 3])
    cluster.names = {group for group, broker in cluster.groups.items() if broker == 3}
    cluster.groups = {group: broker for group, broker in cluster.groups.items() if broker != 3}
    for _ in range(poll_again):
        asked = asker.ask([1, 2])  # metadata names the third broker no more
    assert errors_of(asked) == dict.fromkeys(sorted(cluster.names), "COORDINATOR_NOT_AVAILABLE")


def test_groups_that_moved_to_a_broker_unknown_so_far_are_asked_there() -> None:
    cluster = Cluster({"a": 1, "b": 2})
    asker = poller(cluster)
    asker.ask([1, 2])
    cluster.groups["b"] = 3
    asked = asker.ask([1, 2])
    assert errors_of(asked) == {}
    assert asked.groups.to_pylist()[0]["coordinator"] == 3
    assert cluster.asked[-2:].count("b") == 1


@pytest.mark.parametrize("code", [LOADING, NOT_COORDINATOR, DENIED])
def test_a_coordinator_that_cannot_say_proves_nothing(code: int) -> None:
    cluster = Cluster({"a": 1})
    asker = poller(cluster, known=["a", "b"])
    cluster.errors["b"] = code
    for _ in range(3):
        (error,) = errors_of(asker.ask([1])).values()
        assert error != GONE


def test_a_group_that_may_not_be_described_is_refused_after_a_restart_too() -> None:
    cluster = Cluster({"a": 1, "secret": 1}, errors={"secret": DENIED}, hidden={"secret"})
    for asker in (poller(cluster, known=["a", "secret"]), poller(cluster, known=["a", "secret"])):
        assert errors_of(asker.ask([1])) == {"secret": REFUSED}


def test_a_group_that_is_not_watched_any_more_is_not_asked_for() -> None:
    cluster = Cluster({"a": 1, "console-1": 1})
    asked = poller(
        cluster, NameFilter(groups_ignore=("console-*",)), known=["a", "console-1", "console-2"]
    ).ask([1])
    assert asked.answers["group"].to_pylist() == ["a"]
    assert cluster.requests["find_coordinator"] == 0


def test_groups_of_a_broker_that_does_not_list_them_are_not_looked_for() -> None:
    cluster = Cluster(groups_of(30))
    asker = poller(cluster)
    asker.ask([1, 2, 3])
    cluster.silent = frozenset([3])
    asked = asker.ask([1, 2, 3])
    assert (errors_of(asked), asked.unlisted, cluster.requests["find_coordinator"]) == ({}, [3], 0)


def test_a_first_answer_that_is_an_error_is_waited_for_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster({"a": 1, "b": 1}, errors={"b": LOADING})
    assert [asker.ask([1]).pending for asker in [poller(cluster)] * 3] == [1, 1, 1]
    monkeypatch.setattr(coordinators, "FIRST_ANSWERS_SECONDS", -1.0)
    assert poller(cluster).ask([1]).pending == 0
    cluster.errors["b"] = DENIED
    monkeypatch.undo()
    assert poller(cluster).ask([1]).pending == 0


def test_a_broker_that_never_lists_its_groups_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster({"a": 1, "b": 2}, silent=frozenset([2]))
    asker = poller(cluster)
    assert asker.ask([1, 2]).pending == 1
    monkeypatch.setattr(coordinators, "FIRST_ANSWERS_SECONDS", -1.0)
    assert poller(cluster).ask([1, 2]).pending == 0


def test_a_new_group_is_asked_before_all_others() -> None:
    cluster = Cluster(groups_of(100, 1))
    asker = poller(cluster)
    asker.ask([1])
    cluster.groups["z"] = 1
    cluster.most_slices = 1
    asker.ask([1])
    assert (cluster.asked[100], NEVER < 0) == ("z", True)


def new_groups(asked: Asked) -> list[str]:
    return [row["group"] for row in asked.answers.to_pylist() if row["is_new"]]


def test_a_group_is_new_where_a_complete_listing_lacked_it() -> None:
    cluster = Cluster({"a": 1, "b": 2}, errors={"a": LOADING}, silent=frozenset([2]))
    asker = poller(cluster)
    assert new_groups(asker.ask([1, 2])) == []
    cluster.silent = frozenset()
    assert new_groups(asker.ask([1, 2])) == []  # it may have been there before
    cluster.groups["c"] = 1
    cluster.errors = {}
    assert new_groups(asker.ask([1, 2])) == ["c"]
    del cluster.groups["a"]
    asker.ask([1, 2])
    cluster.groups["a"] = 1
    assert new_groups(asker.ask([1, 2])) == ["a", "c"]


def test_a_group_that_its_coordinator_lists_after_the_brokers_did_not_is_not_new() -> None:
    cluster = Cluster({"a": 1, "b": 3, "moved": 3})
    asked = poller(cluster, known=["moved"]).ask([1, 2])  # metadata does not name the third broker
    assert (asked.answers["group"].to_pylist(), new_groups(asked)) == (["a", "b", "moved"], [])
