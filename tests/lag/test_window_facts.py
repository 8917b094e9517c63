"""What a window says beyond its counts: the trough of the sawtooth, how long nothing moved, who had
the partition.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import encoder
from stream.simulation import (
    ID_B,
    NOON,
    Record,
    Simulation,
    commit,
    end,
    generation,
    group_tombstone,
)

Row = dict[str, Any]


def windows(job: Simulation) -> list[Row]:
    rows = job.history["lag_windows"]
    return sorted(rows, key=lambda row: (row["window_start"], row["topic"], row["partition"]))


def at(seconds: float) -> Any:
    return NOON + timedelta(seconds=seconds)


# the envelope


def sawtooth(job: Simulation, *, behind: int, rate: int = 100) -> None:
    """Two minutes of a topic that gets so many records a second; every 5 s a commit stays so many
    records behind.
    """
    job.tick([end(rate * 10)], [commit(0, at=at(1))])
    for second in range(20, 130, 10):
        commits = [commit(rate * each - behind, at=at(each)) for each in (second - 7, second - 2)]
        job.tick([end(rate * second)], commits)


@pytest.mark.parametrize("behind", [0, 1, 37, 600])
def test_the_envelope_is_the_trough_of_the_sawtooth_whatever_lag_the_ticks_see(behind: int) -> None:
    job = Simulation()
    sawtooth(job, behind=behind)
    (row,) = windows(job)
    assert row["lag_envelope"] == behind
    assert row["lag_min"] == behind + 2 * 100  # two seconds after the newest commit


def test_the_envelope_is_the_smallest_over_first_and_last_commits() -> None:
    job = Simulation()
    job.tick([end(1000)], [commit(900, at=at(5))])
    # 70 s: the window's first
    job.tick([end(1600)], [commit(1000, at=at(60)), commit(1200, at=at(65))], seconds=60)
    job.tick([end(2600)], [commit(1700, at=at(75)), commit(1800, at=at(80))])
    job.tick([end(2600)], seconds=60)
    (row,) = windows(job)
    # the log end rises from 1000 at 10 s to 1600 at 70 s, then to 2600 at 80 s: 500, 350, 400 and
    # 800 behind
    assert row["lag_envelope"] == 350


def test_a_commit_outside_of_the_gap_between_two_polls_counts_at_its_border() -> None:
    job = Simulation()
    job.tick([end(1000)], [commit(900)])
    job.tick([end(1600)], [commit(950, at=at(-500))], seconds=60)
    job.tick([end(1600)], seconds=60)
    job.tick([end(1900)], [commit(1000, at=at(5000))])
    job.tick([end(1900)], seconds=60)
    assert [row["lag_envelope"] for row in windows(job)] == [1000 - 950, 1900 - 1000]


def test_a_commit_ahead_of_the_polls_has_no_lag() -> None:
    job = Simulation()
    job.tick([end(1000)], [commit(900)])
    job.tick([end(1600)], [commit(1650, at=at(70))], seconds=60)
    job.tick([end(1700)], seconds=60)
    assert windows(job)[0]["lag_envelope"] == 0


def test_without_a_commit_or_a_log_end_there_is_no_envelope() -> None:
    job = Simulation()
    job.tick([end(1000)], [commit(900)])
    job.tick([end(1600)], seconds=60)  # a window without a commit
    job.tick([end(error="LEADER_NOT_AVAILABLE")], seconds=60)
    job.tick([end(1700)], [commit(1000, at=at(135))])  # the log end before is not known
    job.tick([end(1700)], seconds=60)
    assert [row["lag_envelope"] for row in windows(job)] == [None, None]


def test_another_topic_of_the_name_starts_again() -> None:
    job = Simulation()
    job.tick([end(1000)], [commit(900)])
    job.tick([end(1000)], seconds=60)
    job.tick([end(50, topic_id=ID_B)], [commit(10, topic_id=ID_B, at=at(75))])
    job.tick([end(50, topic_id=ID_B)], seconds=60)
    assert windows(job)[-1]["lag_envelope"] is None


# frozen, repeats, headroom


def test_a_stall_lasts_from_what_came_after_the_newest_progress_until_it_ends() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(100, at=at(10))])
    frozen, repeats = [], []
    # from 70 s on a record a second arrives, which nobody reads; the position is repeated
    for minute in range(1, 5):
        job.tick([end(100 + 60 * (minute - 1))], [commit(100, at=at(60 * minute + 5))], seconds=60)
        frozen.append(job.row["time_lag_seconds"])
        repeats.append(job.row["repeat_commits"])
    job.tick([end(340)], [commit(200, at=at(305)), commit(200, at=at(306))], seconds=60)
    job.tick([end(400)], [commit(400, at=at(368))], seconds=60)
    job.tick([end(400)], seconds=60)
    rows = windows(job)
    assert repeats == [1, 2, 3, 4]
    assert [row["repeat_commits"] for row in rows] == [1, 2, 3, 4, 1, 0]
    # caught up at 70 s; then the first unread record is from 70 s; the progress of 305 s was seen
    # at 310 s
    assert [row["frozen_seconds"] for row in rows] == [0.0, 60.0, 120.0, 180.0, 5.0, 0.0]
    assert frozen == [0.0, 60.0, 120.0, 180.0]


def test_a_stall_is_never_longer_than_what_is_unread_is_old() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(100, at=at(0))])
    for _ in range(5):
        job.tick([end(100)], seconds=60)  # nothing to read: no progress for five minutes
    job.tick([end(150)])
    job.tick([end(150)], seconds=60)
    last = windows(job)[-1]
    assert (last["lag"], last["frozen_seconds"]) == (50, last["time_lag_seconds"])
    assert last["frozen_seconds"] <= 10


def test_what_is_not_known_to_be_stalled_is_unknown() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100, start=70)], seconds=60)
    job.tick([end(100)], seconds=60)
    (row,) = windows(job)
    assert (row["status"], row["frozen_seconds"], row["headroom_records"]) == (
        "below_log_start",
        None,
        -20,
    )


def test_headroom_is_what_retention_may_still_take() -> None:
    job = Simulation()
    job.tick([end(100), end(100, partition=1)], [commit(50), commit(60, partition=1)])
    job.tick([end(100, start=20), end(100, partition=1)], seconds=60)
    job.tick([end(100), end(100, partition=1)], seconds=60)
    assert [row["headroom_records"] for row in windows(job)] == [30, None]


# owners


def blobs(**held: list[int]) -> dict[str, tuple[bytes, bytes]]:
    """Member id to subscription and assignment of partitions of t."""
    return {
        member: (
            encoder.subscription({"version": 0, "topics": ("t",), "user_data": None}),
            encoder.assignment(
                {
                    "version": 0,
                    "assigned_partitions": [{"topic": "t", "partitions": parts}],
                    "user_data": None,
                }
            ),
        )
        for member, parts in held.items()
    }


def assigned(number: int, **held: list[int]) -> Record:
    return generation(number, dict.fromkeys(held, ("t",)), blobs=blobs(**held), hosts=HOSTS)


HOSTS = {"m1": "/10.0.0.1", "m2": "/10.0.0.2", "m3": "/10.0.0.3"}


def owners(job: Simulation) -> list[tuple[Any, ...]]:
    names = ("partition", "owner", "slot", "client_host", "generation")
    return [tuple(row[name] for name in names) for row in windows(job)]


def test_each_window_names_who_had_the_partition_at_its_end() -> None:
    job, ends = Simulation(), [end(100, partition=part) for part in range(3)]
    commits = [commit(5, partition=part) for part in range(3)]
    job.tick(ends, [assigned(1, m1=[0, 1]), *commits])
    job.tick(ends, seconds=60)
    job.tick(ends, [assigned(2, m1=[0], m2=[1, 2])], seconds=60)
    job.tick(ends, [generation(3)], seconds=60)
    job.tick(ends, [group_tombstone()], seconds=60)
    job.tick(ends, seconds=60)
    one, two = "client/10.0.0.1#0", "client/10.0.0.2#0"
    nobody = [(part, None, None, None, None) for part in range(3)]
    assert owners(job) == [
        *[(0, "m1", one, "/10.0.0.1", 1), (1, "m1", one, "/10.0.0.1", 1), nobody[2]],
        *[
            (0, "m1", one, "/10.0.0.1", 2),
            (1, "m2", two, "/10.0.0.2", 2),
            (2, "m2", two, "/10.0.0.2", 2),
        ],
        *nobody,
        *nobody,
    ]
    slots = {
        (row["generation"], row["member_id"]): row["slot"] for row in job.history["group_members"]
    }
    assert {
        (row["generation"], row["owner"]): row["slot"] for row in windows(job) if row["owner"]
    } == slots
    assert {row["client_id"] for row in windows(job) if row["owner"]} == {"client"}


def test_a_partition_that_is_let_go_within_a_window_still_says_who_had_it() -> None:
    job = Simulation()
    job.tick([end(100)], [assigned(1, m1=[0]), commit(5), commit(5, group="other")])
    job.tick([end(100)], seconds=60)
    job.tick([end(100)], [generation(2, {"m1": ("another",)}), commit(None)])
    assert [(row["group"], row["owner"]) for row in windows(job)] == [("g", "m1")]


def test_who_leads_a_partition_is_the_last_poll_s_word() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(5)])
    job.tick([end(100)], seconds=60)
    job.tick([end(error="LEADER_NOT_AVAILABLE")], seconds=60)
    job.tick([end(100)], seconds=60)
    assert [row["leader_broker"] for row in windows(job)] == [1, None]
