"""A broker that takes requests and answers none costs one poll half the limit, and the polls after
it nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from laggard.sources.brokers import LATEST, Brokers
from laggard.sources.connections import TIMEOUT
from laggard.sources.groups.coordinators import Asked, Coordinators
from laggard.sources.metadata import Partition
from laggard.sources.poll import Poller, PollOptions
from laggard.sources.snapshot import ANSWERS, COMMITTED, GROUPS, Snapshot
from patience import unhurried
from sources.stub_cluster import LOG_END, StubCluster, stub_cluster

ALL = {0, 1, 2}


@pytest.fixture
def cluster() -> Iterator[StubCluster]:
    with stub_cluster() as running:
        yield running


@pytest.fixture
def limit() -> float:
    """Seconds; half of it for one broker, so that a busy machine is not taken for a
    silent broker.
    """
    return unhurried(4.0)


class Polls:
    """Polls one after the other, each with the seconds it took."""

    def __init__(self, cluster: StubCluster, limit: float, **options: Any) -> None:
        self.poller = Poller(
            PollOptions(cluster.addresses, request_timeout_seconds=limit, **options)
        )
        self.number = 0

    def close(self) -> None:
        self.poller.close()

    def next(self) -> tuple[Snapshot, float]:
        self.number += 1
        started = time.monotonic()
        return self.poller.poll(self.number), time.monotonic() - started

    def until_all_answer(self) -> Snapshot:
        for _ in range(100):
            snapshot, _ = self.next()
            # a broker may return in the middle of a poll: that one knows some of its answers
            rows = [*snapshot.positions.to_pylist(), *snapshot.offsets_partitions.to_pylist()]
            if len(rows) == 2 * len(ALL) and not any(row["error"] for row in rows):
                assert answered(snapshot) == ALL
                return snapshot
            time.sleep(0.05)
        pytest.fail("never whole")


def listing_poll(polls: Polls) -> Snapshot:
    """The next poll that asks for groups."""
    while not (snapshot := polls.next()[0]).requests.get("list_groups"):
        time.sleep(0.1)
    return snapshot


def answered(snapshot: Snapshot) -> set[int]:
    """Partitions of the watched topic, hence brokers, whose end is known; the others have the
    time-out's name.
    """
    rows = snapshot.positions.to_pylist()
    assert {row["log_end_offset"] for row in rows} <= {LOG_END, None}
    assert {row["error"] for row in rows if row["log_end_offset"] is None} <= {TIMEOUT}
    of_topic = {row["partition"] for row in rows if row["error"] is None}
    parts = snapshot.offsets_partitions.to_pylist()
    assert {row["offsets_partition"] for row in parts if row["error"] is None} == of_topic
    assert [row["high_watermark"] for row in parts if row["error"] is None] == [LOG_END] * len(
        of_topic
    )
    return of_topic


@pytest.mark.full
def test_a_silent_broker_is_waited_for_once(cluster: StubCluster, limit: float) -> None:
    with closing(
        Polls(cluster, limit, window_seconds=1, metadata_seconds=0, slo_seconds=(60.0, 600.0))
    ) as polls:
        polls.until_all_answer()
        cluster.brokers[1].answering.clear()
        snapshot, first = polls.next()
        assert answered(snapshot) == {0, 2}
        assert limit / 2 <= first < limit
        assert limit / 2 <= sum(snapshot.request_seconds.values()) <= first
        # two windows close: every kind of request is among these polls
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            snapshot, seconds = polls.next()
            assert answered(snapshot) == {0, 2}
            assert seconds < limit / 2
            time.sleep(0.1)
        assert ["list_offsets", TIMEOUT] in [failure[:2] for failure in snapshot.failures]
        cluster.brokers[1].answering.set()
        polls.until_all_answer()


@pytest.mark.full
def test_brokers_that_fall_silent_together_are_waited_for_together(
    cluster: StubCluster, limit: float
) -> None:
    with closing(Polls(cluster, limit, state_poll_seconds=1)) as polls:
        polls.until_all_answer()
        for broker in cluster.brokers[1:]:
            broker.answering.clear()
        snapshot, seconds = polls.next()
        assert answered(snapshot) == {0}
        assert seconds < limit
        snapshot = listing_poll(polls)
        assert [row["group"] for row in snapshot.groups.to_pylist()] == ["of-0"]
        assert snapshot.unlisted_brokers == [1, 2]


@pytest.mark.full
def test_a_cluster_that_is_silent_is_a_poll_without_ends(
    cluster: StubCluster, limit: float
) -> None:
    with closing(Polls(cluster, limit)) as polls:
        polls.until_all_answer()
        for broker in cluster.brokers:
            broker.answering.clear()
        snapshot, seconds = polls.next()
        assert answered(snapshot) == set()
        assert seconds < 1.25 * limit


@pytest.mark.full
def test_a_broker_that_falls_silent_between_two_requests_delays_within_the_same_limit(
    cluster: StubCluster, limit: float
) -> None:
    """It lists offsets in time, each answer late: no round may begin the waiting again."""
    with closing(Polls(cluster, limit, window_seconds=1, slo_seconds=(60.0,))) as polls:
        polls.until_all_answer()
        time.sleep(1)
        cluster.brokers[2].delay = limit / 2 * 0.7
        for _ in range(2):
            _, seconds = polls.next()
            assert seconds < 1.25 * limit


def test_a_slow_broker_is_asked_everything_at_once(cluster: StubCluster, limit: float) -> None:
    # a poll that begins a window asks for more
    with closing(Polls(cluster, limit, window_seconds=10**9)) as polls:
        polls.until_all_answer()
        cluster.brokers[2].asked.clear()
        polls.next()
    # the ends of the topic; stable end, end and start of the offsets partition
    assert cluster.brokers[2].asked.count("ListOffsetsRequest") == 4


@pytest.mark.full
def test_a_silent_bootstrap_address_does_not_keep_a_client_from_the_others(
    cluster: StubCluster, limit: float
) -> None:
    for broker in cluster.brokers[:2]:
        broker.answering.clear()
    brokers = Brokers(cluster.addresses, limit)
    started = time.monotonic()
    assert [topic["name"] for topic in brokers.metadata(["orders"])["topics"]] == ["orders"]
    # at most two that are silent come first, a second each
    assert time.monotonic() - started < limit / 2 + 2
    brokers.close()


@pytest.mark.full
def test_other_clients_wait_for_a_silent_broker_once_too(
    cluster: StubCluster, limit: float
) -> None:
    brokers = Brokers(cluster.addresses, limit)
    brokers.metadata(None)
    cluster.brokers[1].answering.clear()
    led = {number: [("orders", number)] for number in ALL}
    started = time.monotonic()
    for _ in range(3):
        answers = brokers.list_offsets(led, LATEST)
        assert {key[1] for key, answer in answers.items() if answer.error is None} == {0, 2}
        assert answers["orders", 1].error == TIMEOUT
    assert time.monotonic() - started < limit
    brokers.close()


@pytest.mark.full
def test_asking_groups_has_time_of_its_own_and_what_follows_has_no_less(
    cluster: StubCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, found = 2.0, []

    def ask(coordinators: Coordinators, brokers: list[int]) -> Asked:
        time.sleep(1.5 * limit)  # many slices
        _, unlisted = coordinators._brokers.start_list_groups(brokers)()
        found.append(unlisted)
        return Asked(
            GROUPS.empty_table(), unlisted, ANSWERS.empty_table(), COMMITTED.empty_table(), 0, {}
        )

    monkeypatch.setattr(Coordinators, "ask", ask)
    with closing(Polls(cluster, limit, ask_groups_seconds=30.0)) as polls:
        snapshot, _ = polls.next()
    assert found == [[]]
    assert {row["error"] for row in snapshot.positions.to_pylist()} == {None}


def test_a_broker_that_was_frozen_is_not_believed_about_leaders_of_before(
    cluster: StubCluster, limit: float
) -> None:
    """Until it hears of its successors it names itself, and gives the end at which it froze."""
    with closing(Polls(cluster, limit, metadata_seconds=0)) as polls:
        polls.until_all_answer()
        cluster.leaders[2], cluster.brokers[0].leads[2] = (0, 2), LOG_END + 50
        assert end_of(polls.next()[0]) == (0, LOG_END + 50)
        cluster.leaders[2] = (2, 1)
        assert end_of(polls.next()[0]) == (0, LOG_END + 50), "the old leader would give a lower end"
        del cluster.brokers[0].leads[2]
        found = [end_of(polls.next()[0]) for _ in range(2)]
        assert found[-1] == (2, LOG_END), "no epoch is held against a leader that gives no answer"


@pytest.mark.parametrize(
    ("named", "is_believed"),
    [
        (Partition("id", 1, None, 0, 7), True),
        (Partition("id", 2, None, 0, 8), True),
        (Partition("id", 2, None, 0, 6), False),
        (Partition("id", None, "LEADER_NOT_AVAILABLE", 0, 6), False),
        (Partition("id", 2, None, 0, -1), True),  # an old broker that names no epoch
        (Partition("other", 2, None, 0, 0), True),  # recreated
        # recreated in a cluster without ids: it has other replicas
        (Partition("id", 1, None, 0, 0), True),
    ],
)
def test_only_another_leader_of_an_earlier_epoch_is_left_aside(
    named: Partition, *, is_believed: bool
) -> None:
    assert named.succeeds(Partition("id", 1, None, 2, 7)) is is_believed


def end_of(snapshot: Snapshot) -> tuple[int | None, int | None]:
    """Leader and end of partition 2, alike for both topics."""
    [row] = [row for row in snapshot.positions.to_pylist() if row["partition"] == 2]
    [part] = [
        part for part in snapshot.offsets_partitions.to_pylist() if part["offsets_partition"] == 2
    ]
    assert (part["coordinator"], part["last_stable_offset"]) == (
        row["leader_broker"],
        row["log_end_offset"],
    )
    return row["leader_broker"], row["log_end_offset"]
