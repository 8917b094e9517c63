"""Coordinators of a real broker: slices under a deadline, those first that waited longest, and
groups that end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from e2e.kit import wait_until
from laggard.demo.broker import Broker
from laggard.names import NameFilter
from laggard.sources.brokers import Brokers
from laggard.sources.groups.coordinators import SLICE, Asked, Coordinators
from laggard.sources.groups.ended_groups import look_for

pytestmark = [pytest.mark.broker, pytest.mark.full]

GROUPS = [f"group-{number:03}" for number in range(2 * SLICE + 50)]


def commit_for(group: str) -> OffsetCommitRequest:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_leader_epoch=3, committed_metadata=""
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic(name="orders", partitions=[part])],
        max_version=8,
    )


def commit(brokers: Brokers, group: str) -> None:
    """Commit as nobody's member; the first look for a coordinator creates the offsets topic."""

    def is_done() -> bool:
        answer = brokers.ask("offset_commit", commit_for(group), 1)
        if not isinstance(answer, str) and not answer.topics[0].partitions[0].error_code:
            return True
        brokers.ask(
            "find_coordinator", FindCoordinatorRequest(key=group, key_type=0, max_version=3)
        )
        return False

    wait_until(is_done, 60, "a commit", str)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    with Broker() as broker:
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)])
        with closing(Brokers(broker.bootstrap_servers.split(","), 30)) as found:
            found.metadata([])
            for group in GROUPS:
                commit(found, group)
            yield found


def asked(found: Asked) -> list[str]:
    return [row["group"] for row in found.answers.to_pylist() if row["is_asked"]]


def test_a_deadline_cuts_a_round_into_slices_and_nobody_waits_for_ever(brokers: Brokers) -> None:
    coordinators = Coordinators(brokers, NameFilter(), 0.0)
    rounds = [coordinators.ask([1]) for _ in range(4)]
    assert [asked(each) for each in rounds[:2]] == [GROUPS[:SLICE], GROUPS[SLICE : 2 * SLICE]]
    assert set(asked(rounds[2])) == {*GROUPS[2 * SLICE :], *GROUPS[: SLICE - 50]}
    assert [each.pending for each in rounds] == [SLICE + 50, 50, 0, 0]
    assert set(asked(rounds[3])) == {*GROUPS[SLICE - 50 : SLICE], *GROUPS[SLICE : SLICE + 50]}


def test_without_haste_all_groups_give_their_offsets_at_once(brokers: Brokers) -> None:
    found = Coordinators(brokers, NameFilter(groups_ignore=("group-00*",)), 60.0).ask([1])
    names = ("topic", "partition", "committed_offset", "leader_epoch", "error")
    assert asked(found) == GROUPS[10:]
    assert {tuple(row[name] for name in names) for row in found.committed.to_pylist()} == {
        ("orders", 0, 7, 3, None)
    }
    assert (found.pending, found.unlisted, dict(found.errors)) == (0, [], {})


def test_a_group_is_gone_once_its_coordinator_says_so_to_this_process_and_to_the_next(
    brokers: Brokers,
) -> None:
    commit(brokers, "ending")
    here, later = (
        Coordinators(brokers, NameFilter(), 60.0, known)
        for known in (["of before"], ["ending", GROUPS[0]])
    )
    first = here.ask([1])
    with closing(KafkaAdminClient(bootstrap_servers=brokers._bootstrap_servers)) as admin:
        admin.delete_groups(["ending"])
    answers = [first, here.ask([1]), here.ask([1]), later.ask([1])]
    errors = [{row["group"]: row["error"] for row in each.answers.to_pylist()} for each in answers]
    gone, unknown = "GROUP_ID_NOT_FOUND", "not there"
    assert [each.get("ending", unknown) for each in errors] == [None, gone, unknown, gone]
    assert [each.get("of before", unknown) for each in errors] == [gone, unknown, unknown, unknown]
    assert [each[GROUPS[0]] for each in errors] == [None] * 4


def test_groups_that_are_there_are_found_by_name(brokers: Brokers) -> None:
    found = look_for(brokers, [*GROUPS, "never"])
    assert (found.gone, found.errors) == ({"never"}, {})
    assert {row["group_id"] for row in found.listed} >= set(GROUPS)
