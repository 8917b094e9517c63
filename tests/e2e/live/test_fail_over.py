"""A broker that coordinates groups of every kind is killed: to their history
nothing has happened.
"""

import signal
from itertools import count
from pathlib import Path

import pytest
from kafka.errors import KafkaError

from e2e.kit import View, wait_until
from e2e.live.members import Member
from e2e.live.newest import Newest
from e2e.live.setup import Setup, start_setup

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.full]
KINDS = ("range", "cooperative", "consumer", "share", "streams")
COLUMNS = (
    "group_type",
    "group_state",
    "members",
    "generation",
    "group_epoch",
    "assignment_epoch",
    "topics",
)


def neighbour(kind: str) -> str:
    """A group's name that the same partition of the offsets topic holds whatever the kind: one
    broker has them all.
    """
    names = (f"{kind}-{number}" for number in count())
    return next(name for name in names if java_hash(name) % 50 == 7)


def java_hash(text: str) -> int:
    """String.hashCode of ASCII text, as Kafka takes its absolute value."""
    value = 0
    for each in text.encode():
        value = (31 * value + each) % 2**32
    return abs(value - 2**32) if value >= 2**31 else value


def facts(view: View) -> dict[str, dict[str, object]]:
    return {group: {name: row[name] for name in COLUMNS} for group, row in view.groups.items()}


def await_fence(setup: Setup, broker: int) -> None:
    """Until then a tool that asks every broker waits for this one."""

    def is_fenced() -> bool:
        try:
            brokers = setup.admin.describe_cluster()["brokers"]
        except KafkaError:  # the one asked is the one that was killed
            return False
        return {each["broker_id"]: each["is_fenced"] for each in brokers}[broker]

    wait_until(is_fenced, 60, f"broker {broker} is out")


def test_groups_of_every_kind_go_on_when_their_coordinator_is_killed(tmp_path: Path) -> None:
    groups = {kind: neighbour(kind) for kind in KINDS}
    with start_setup(tmp_path / "job", nodes=3) as setup:
        scenario = setup.scenario
        scenario.join(
            *(Member(kind, f"{kind}-{name}", groups[kind]) for kind in KINDS for name in ("a", "b"))
        )
        scenario.rest("before")
        before = scenario.moments["before"].view
        assert {row["offsets_partition"] for row in before.groups.values()} == {7}
        [coordinator] = {row["coordinator"] for row in before.groups.values()}
        setup.broker.stop(coordinator, signal.SIGKILL)
        await_fence(setup, coordinator)
        scenario.rest("without it")
        scenario.run.stop()
        after, ticks = scenario.place.view(), scenario.ticks()

    assert coordinator not in {row["coordinator"] for row in after.groups.values()}
    assert facts(scenario.moments["without it"].view) == facts(before), scenario.place.tail()
    for group in groups.values():
        assert Newest(after).generation(group) == Newest(before).generation(group)
    first = before.batch["batch_id"]
    assert all(
        tick.groups.keys() == set(groups.values())
        for tick in ticks
        if tick.batch["batch_id"] >= first
    )
    assert "group_deleted" not in {row["kind"] for row in after.rows("group_events")}
