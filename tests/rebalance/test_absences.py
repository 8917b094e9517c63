"""How long static members were away: from the last commit on their partitions to the record that
has them back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import encoder
from laggard.wire.decode import decode
from rebalance.lives import STATIC_LIFE
from rebalance.modern import folded, timed
from simulator.score import milliseconds
from simulator.simulation import recall, run_through_laggard
from stream.simulation import NOON, Record, Simulation, commit, end, generation

TOPICS = [end(100), end(100, partition=1), end(100, partition=2)]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def record_of(seconds: float, member: str, *held: int, instance: str = "one") -> Record:
    """The group's first generation, by a member with these partitions."""
    subscription = encoder.subscription({"version": 0, "topics": ["t"], "user_data": None})
    partitions = [{"topic": "t", "partitions": list(held)}] if held else []
    given = encoder.assignment({"version": 0, "assigned_partitions": partitions, "user_data": None})
    record = generation(
        1, {member: ("t",)}, static={member: instance}, blobs={member: (subscription, given)}
    )
    return Record(record.key, record.value, at(seconds))


def committed(seconds: float, partition: int) -> Record:
    record = commit(round(seconds), partition=partition, at=at(seconds))
    return Record(record.key, record.value, at(seconds))


def away(*ticks: list[Record]) -> list[float | None]:
    """The absences that a job tells which reads these records tick by tick."""
    job = Simulation()
    job.tick(TOPICS)
    for records in ticks:
        job.tick(TOPICS, records)
    return [
        row["seconds"] for row in job.history["group_events"] if row["kind"] == "static_replacement"
    ]


LIFE = [
    record_of(0, "a", 0, 1),
    committed(5, 0),
    committed(8, 1),
    committed(20, 2),  # not its own
    record_of(30, "b", 0, 1),
    committed(31, 0),
]


@pytest.mark.parametrize("cut", range(len(LIFE) + 1))
def test_an_absence_began_with_the_last_commit_wherever_a_tick_ends(cut: int) -> None:
    assert away(LIFE[:cut], LIFE[cut:]) == [30.0 - 8.0]


def test_each_absence_is_measured_from_the_commits_before_it() -> None:
    life = [
        record_of(0, "a", 0),
        committed(5, 0),
        record_of(10, "b", 0),
        committed(30, 0),
        record_of(37, "c", 0),
    ]
    assert away(life) == [5.0, 7.0]


@pytest.mark.parametrize(
    "life",
    [
        [record_of(0, "a"), committed(5, 0), record_of(10, "b")],  # it has no partitions
        [record_of(0, "a", 0), record_of(10, "b", 0)],  # they never had a commit
        [
            record_of(0, "a", 0),
            committed(5, 0),
            record_of(51, "b", 0),
        ],  # longer than its session of 45 s: they were idle
    ],
)
def test_an_absence_that_no_commit_tells_is_not_known(life: list[Record]) -> None:
    assert away(life) == [None]


def test_a_member_of_a_consumer_group_had_what_its_last_record_said() -> None:
    job = folded(timed([*STATIC_LIFE[:5], commit(7, partition=1, at=at(5)), *STATIC_LIFE[5:11]]))
    (event,) = (row for row in job.history["group_events"] if row["kind"] == "static_replacement")
    assert (event["event_at"], event["seconds"]) == (at(10), 5.0)


@pytest.mark.parametrize(
    "workload", ["static_restart", "static_duplicate", "modern_static_restart"]
)
def test_absences_are_those_that_a_search_in_the_records_finds(workload: str) -> None:
    simulation = recall(workload, 1)
    job = run_through_laggard(simulation)
    commits = [(each, decode(each.record.key, each.record.value)) for each in simulation.records]
    found: list[tuple[float | None, float | None]] = []
    for event in (
        row for row in job.history["group_events"] if row["kind"] == "static_replacement"
    ):
        held = held_by(job.history["group_members"], event)
        times = [
            outcome.value["commit_timestamp"]
            for each, outcome in commits
            if outcome.record_type in (0, 1)
            and outcome.key is not None
            and outcome.value is not None
            and each.offset < event["source_offset"]
            and (outcome.key["topic"], outcome.key["partition"]) in held
        ]
        seconds = (milliseconds(event["event_at"]) - max(times)) / 1000 if times else None
        found.append((event["seconds"], seconds if seconds is not None and seconds <= 45 else None))
    assert [record_of for record_of, _ in found] == [expected for _, expected in found]
    assert any(record_of is not None for record_of, _ in found)


def held_by(members: list[dict[str, Any]], event: dict[str, Any]) -> set[tuple[str, int]]:
    rows = [row for row in members if row["member_id"] == event["member_id"]]
    return {(each["topic"], each["partition"]) for each in rows[0]["assigned"]}
