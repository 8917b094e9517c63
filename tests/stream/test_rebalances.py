"""From record bytes to rows of `rebalances` and to what `group_status` says of
them, tick by tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

import encoder
from laggard.rebalance.groups import Listing
from rebalance.modern import CONSUMER as C
from rebalance.modern import UNRELEASED
from stream.simulation import NOON, Record, Simulation, commit, end, generation

Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def synced(
    number: int,
    seconds: float,
    held: Mapping[str, Sequence[int]],
    *,
    sync: float = 1.0,
    **given: Any,
) -> Record:
    """A generation whose record is written at this second, with the partitions of topic t that each
    member holds.
    """
    blobs = {
        member: (
            encoder.subscription({"version": 0, "topics": ["t"], "user_data": None}),
            encoder.assignment(
                {
                    "version": 0,
                    "assigned_partitions": [{"topic": "t", "partitions": list(places)}],
                    "user_data": None,
                }
            ),
        )
        for member, places in held.items()
    }
    hosts = {member: f"/10.0.0.{place}" for place, member in enumerate(held, 1)} | given.pop(
        "hosts", {}
    )
    record = generation(
        number,
        dict.fromkeys(held, ("t",)),
        blobs=blobs,
        hosts=hosts,
        state_ms=round(at(seconds - sync).timestamp() * 1000),
        **given,
    )
    return Record(record.key, record.value, at(seconds))


def committed(offset: int, seconds: float, partition: int = 0) -> Record:
    record = commit(offset, partition=partition, at=at(seconds))
    return Record(record.key, record.value, at(seconds))


def ends(seconds: float) -> list[Row]:
    """Two partitions that get 10 records a second each."""
    return [end(round(10 * seconds), partition=partition) for partition in range(2)]


class Timeline:
    """Ticks of 10 s; both partitions are committed every 5 s and up to date, but for the stops that
    a test makes.
    """

    def __init__(self) -> None:
        self.job = Simulation()
        self.seconds = 0.0

    def tick(self, records: Sequence[Record] = (), *, stopped: bool = False, **given: Any) -> None:
        self.seconds += 10
        if not stopped:
            times = (self.seconds - 7, self.seconds - 2)
            records = [
                *records,
                *(committed(round(10 * when), when, part) for when in times for part in range(2)),
            ]
        ordered = sorted(records, key=lambda each: each.at or NOON)
        self.job.tick(ends(self.seconds), ordered, **given)

    def rest(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()

    @property
    def rows(self) -> list[Row]:
        return self.job.history["rebalances"]

    @property
    def group(self) -> Row:
        return self.job.groups["g"]


@pytest.fixture
def alone() -> Timeline:
    """One member that has read both partitions for two minutes."""
    timeline = Timeline()
    timeline.tick()
    timeline.tick([synced(1, 11, {"a": [0, 1]})])
    timeline.rest(11)
    return timeline


def test_a_second_member_makes_one_row_with_its_cause_moves_and_pauses(alone: Timeline) -> None:
    before = len(alone.rows)
    alone.tick(
        [synced(2, 136, {"a": [0], "b": [1]}), committed(1330, 133), committed(1330, 133, 1)],
        stopped=True,
    )
    alone.tick([committed(1460, 146), committed(1400, 146, 1)], stopped=True)
    alone.rest(4)
    (row,) = alone.rows[before:]
    assert (row["cause"], row["necessity"], row["status"]) == ("member_join", "planned", "ok")
    assert (row["members_before"], row["members_after"], row["joined"]) == (
        1,
        2,
        ["client/10.0.0.2#0"],
    )
    assert (row["moved"], row["necessary"], row["avoidable"]) == (1, 1, 0)
    assert (row["sync_seconds"], row["ended_at"], row["interrupted"]) == (1.0, at(136), 0)
    # 13 s between two commits of which 5 s are the commit interval, on both partitions as range is
    # eager
    assert (
        row["paused_partitions"],
        row["pause_max_seconds"],
        row["paused_partition_seconds"],
    ) == (2, 8.0, 16.0)
    assert row["records_delayed"] == pytest.approx(160, abs=2)
    assert (row["lag_before"], row["lag_after"]) == (0, 60)


def test_who_keeps_a_partition_and_commits_on_does_not_pause_while_another_one_waits() -> None:
    """Of the three commits of a tick only the first and the last are reported, and that there is
    one in between.
    """

    def timed(seconds: float, *records: Record) -> list[Record]:
        return [replace(each, at=at(seconds)) for each in records]

    timeline, both = Timeline(), {"t": [0, 1]}
    timeline.tick()
    timeline.tick(
        timed(
            11,
            C.member("a"),
            C.epoch(1),
            C.target("a", both),
            C.target_epoch(1),
            C.current("a", 1, both),
        )
    )
    timeline.rest(11)
    before = len(timeline.rows)
    targets = [C.target("a", {"t": [0]}), C.target("b", {"t": [1]}), C.target_epoch(2)]
    begun = timed(132, C.member("b"), C.epoch(2), *targets, C.current("b", 2, state=UNRELEASED))
    for second in (130, 140, 150, 160):
        commits = [committed(10 * when, when) for when in (second + 1, second + 5, second + 9)]
        timeline.tick([*(begun if second == 130 else []), *commits], stopped=True)
    timeline.tick(timed(171, C.current("a", 2, {"t": [0]}), C.current("b", 2, {"t": [1]})))
    timeline.rest(4)
    (row,) = timeline.rows[before:]
    assert (row["generations"], row["moved"], row["paused_partitions"]) == ([2], 1, 1)


def test_it_is_counted_once_in_the_group(alone: Timeline) -> None:
    before = dict(alone.group["rebalances_total"])
    alone.tick([synced(2, 136, {"a": [0], "b": [1]})])
    assert dict(alone.group["rebalances_total"]) == before  # its row is not written yet
    assert alone.group["rebalancing_since"] is not None
    alone.rest(6)
    assert (before, dict(alone.group["rebalances_total"])) == (
        {"member_join": 1},
        {"member_join": 2},
    )
    assert dict(alone.group["member_changes_total"])["joined"] == 2
    assert (alone.group["partitions_moved_total"], alone.group["rebalancing_since"]) == (1, None)
    assert (sum(alone.group["rebalance_pause_buckets"]), alone.group["rebalance_pause_sum"]) == (
        2,
        0.0,
    )
    assert alone.group["last_rebalance_at"] == at(136)
    assert sum(alone.group["rebalance_duration_buckets"]) == len(alone.rows)


def test_time_in_rebalance_is_a_share_of_the_time_watched(alone: Timeline) -> None:
    alone.tick([synced(2, 136, {"a": [0], "b": [1]}, sync=6)])
    alone.rest(6)
    row = alone.rows[-1]
    seconds = row["rebalance_seconds"]
    watched = (alone.job.now - alone.group["watched_since"]).total_seconds()
    of_the_first = (alone.rows[0]["ended_at"] - alone.group["watched_since"]).total_seconds()
    assert (seconds, of_the_first) == (6, 1)
    assert alone.group["time_in_rebalance_ratio"] == pytest.approx(
        (seconds + of_the_first) / watched
    )


def test_a_quiet_group_spends_no_time_in_rebalances(alone: Timeline) -> None:
    alone.job.tick(ends(300), seconds=4_000)
    alone.job.tick(ends(300))
    assert (alone.group["time_in_rebalance_ratio"], alone.group["ping_pong"]) == (0.0, None)


def test_waiting_for_a_partition_to_go_on_is_not_time_in_rebalance(alone: Timeline) -> None:
    alone.tick([synced(2, 136, {"a": [0], "b": [1]})], stopped=True)
    for _ in range(12):
        alone.tick(stopped=True)
    assert alone.group["rebalancing_since"] is not None  # no partition has committed again
    assert alone.group["time_in_rebalance_ratio"] < 0.1


def test_a_partition_that_goes_back_counts_as_ping_pong(alone: Timeline) -> None:
    both, hosts = {"a": [0, 1]}, {"a": "/10.0.0.1"}
    for number, seconds in ((2, 136), (4, 336)):
        alone.tick([synced(number, seconds, {"a": [0], "b": [1]}, hosts=hosts)])
        alone.rest(9)
        alone.tick([synced(number + 1, seconds + 100, both, hosts=hosts)])
        alone.rest(9)
    assert alone.group["ping_pong"] == 0.75  # the first of four moves took nothing back


def test_a_generation_that_never_got_an_assignment_is_interrupted(alone: Timeline) -> None:
    alone.tick([synced(4, 136, {"a": [0], "b": [1]})])
    alone.rest(6)
    assert (alone.rows[-1]["interrupted"], alone.group["interrupted_generations_total"]) == (2, 2)


def test_a_coordinator_that_moved_explains_a_rebalance_of_the_same_members(alone: Timeline) -> None:
    alone.tick(listing=Listing({}, {0: 1}, is_fresh=False))
    alone.tick([synced(2, 146, {"a": [0, 1]})], listing=Listing({}, {0: 2}, is_fresh=False))
    alone.rest(6)
    assert alone.rows[-1]["cause"] == "coordinator_failover"
    assert "coordinator_changed" in alone.job.events()


def test_without_a_reason_the_leader_joined_again(alone: Timeline) -> None:
    alone.tick([synced(2, 136, {"a": [0, 1]})])
    alone.rest(6)
    assert (alone.rows[-1]["cause"], alone.rows[-1]["moved"]) == ("leader_rejoin", 0)


def test_history_that_was_not_read_live_is_not_evaluated() -> None:
    job = Simulation()
    job.tick(
        ends(0), [synced(1, 1, {"a": [0, 1]}), synced(7, 100, {"a": [0], "b": [1]})], is_live=False
    )
    job.tick(ends(0), seconds=700)
    job.tick(ends(0))
    assert {row["cause"] for row in job.history["rebalances"]} == {"unknown"}
    assert all(
        row["flags"] == ["bootstrap"] and not row["live_read"] for row in job.history["rebalances"]
    )
    assert all(
        row["paused_partitions"] is None and row["moved"] is None
        for row in job.history["rebalances"]
    )


def test_new_partitions_are_reported_and_explain_the_rebalance_that_hands_them_out(
    alone: Timeline,
) -> None:
    alone.seconds += 10
    alone.job.tick([*ends(alone.seconds), end(0, partition=2)])
    assert "partitions_added" in alone.job.events()
    alone.tick([synced(2, alone.seconds + 5, {"a": [0, 1, 2]})])
    alone.rest(6)
    assert alone.rows[-1]["cause"] == "partitions_added"


def test_members_that_go_and_return_are_events_with_the_time_between(alone: Timeline) -> None:
    gone = generation(2)
    alone.tick([Record(gone.key, gone.value, at(135))])
    alone.rest(2)
    alone.tick([synced(3, 165, {"a": [0, 1]})])
    events = {row["kind"]: row for row in alone.job.history["group_events"]}
    assert "became_empty" in events
    assert events["members_returned"]["seconds"] == 30
