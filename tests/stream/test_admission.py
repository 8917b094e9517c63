"""A full table refuses new partitions and says so; groups that ended unseen leave it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.harness import Key
from laggard.sources.groups import ended_groups
from laggard.sources.groups.ended_groups import Reconcile
from laggard.stream.tick import admission
from laggard.stream.tick.advance_stage import State
from laggard.tables.schema.schemas import PARTITION_STATUS
from sources.test_coordinators import DENIED, Cluster
from stream.simulation import Record, commit, end, generation
from stream.whole_batch import Given, WholeBatches

ENDS = [end(1000, partition=number, start=0) for number in range(4)]


def tick(job: WholeBatches, *records: Record) -> dict[str, Any]:
    rows: list[Given] = [
        (each.key, each.value, round(job.now.timestamp() * 1000)) for each in records
    ]
    return job.tick(ENDS, rows)


def key(name: str, **labels: object) -> Key:
    return f"laggard_{name}", frozenset(
        {"cluster": "prod", **{each: str(value) for each, value in labels.items()}}.items()
    )


def groups(job: WholeBatches) -> dict[str, tuple[int, str, int | None]]:
    rows = job.rows("group_status")
    return {each["group"]: (each["shed_keys"], each["status"], each["lag"]) for each in rows}


def test_new_partitions_are_refused_at_the_cap_and_known_ones_go_on(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path, most_rows=3)
    tick(job, commit(900, group="old"))
    row = tick(
        job,
        *(commit(10, group="new", partition=number) for number in range(4)),
        commit(990, group="old"),
    )
    assert row["shed_keys_total"] == 2
    held = {
        (each["group"], each["partition"]): each["lag"] for each in job.rows("partition_status")
    }
    assert held == {("old", 0): 10, ("new", 0): 990, ("new", 1): 990}
    for _ in range(2):  # also in a tick that refuses none
        assert groups(job) == {"new": (2, "partial", None), "old": (0, "ok", 10)}
        assert {each["group"]: each["lag_known"] for each in job.rows("group_status")} == {
            "new": 1980,
            "old": 10,
        }
        found = job.scrape()
        assert found[key("shed_keys_total")] == 2
        assert found[key("group_lag_known_records", group="new", topic="t")] == 1980
        assert key("group_lag_records", group="new", topic="t") not in found
        assert found[key("group_lag_records", group="old", topic="t")] == 10
        tick(job)


def test_a_group_is_whole_again_once_all_that_was_refused_has_a_row_or_is_deleted(
    tmp_path: Path,
) -> None:
    job = WholeBatches(tmp_path, most_rows=3)
    tick(job, commit(900, group="old"))
    for _ in range(2):  # refused twice, counted once
        tick(job, *(commit(10, group="new", partition=number) for number in range(4)))
    assert groups(job)["new"] == (2, "partial", None)
    job.most_rows = 1000
    job.start()
    tick(job, commit(1000, group="new", partition=2))
    assert groups(job)["new"] == (1, "partial", None)
    tick(job, commit(None, group="new", partition=3))
    assert groups(job)["new"] == (0, "ok", 1980)
    assert job.scrape()[key("group_lag_records", group="new", topic="t")] == 1980


def test_a_group_of_which_all_is_refused_is_there_and_is_not_whole_when_room_is_made(
    tmp_path: Path,
) -> None:
    job = WholeBatches(tmp_path, most_rows=1)
    tick(job, commit(900, group="old"))
    tick(job, *(commit(10, group="new", partition=number) for number in range(4)))
    assert groups(job) == {"old": (0, "ok", 100), "new": (4, "partial", None)}
    job.most_rows = 1000
    job.start()
    tick(job, commit(20, group="new"))
    assert groups(job)["new"] == (3, "partial", None)
    assert key("group_lag_records", group="new", topic="t") not in job.scrape()


def test_a_group_whose_refused_offsets_are_all_deleted_is_gone(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path, most_rows=1)
    tick(job, commit(900, group="old"), commit(10, group="new", partition=1))
    assert groups(job)["new"] == (1, "partial", None)
    tick(job, commit(None, group="new", partition=1))
    assert groups(job).keys() == {"old"}


def test_a_group_with_more_refused_partitions_than_are_named_stays_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST_NAMED", 2)
    job = WholeBatches(tmp_path, most_rows=1)
    tick(job, commit(900, group="old"))
    tick(job, *(commit(10, group="new", partition=number) for number in range(4)))
    assert groups(job)["new"] == (3, "partial", None)  # at least
    job.most_rows = 1000
    job.start()
    tick(job, *(commit(10, group="new", partition=number) for number in range(4)))
    assert groups(job)["new"] == (1, "partial", None)


def test_a_group_that_was_refused_and_lives_is_not_taken_out(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path, most_rows=1)
    tick(job, commit(900, group="old"), commit(10, group="new", partition=1))
    job.ended = ["new"]
    tick(job, commit(20, group="new", partition=1))  # refused, but somebody commits
    assert groups(job)["new"] == (1, "partial", None)
    tick(job)
    assert groups(job).keys() == {"old"}


def test_partitions_that_members_want_are_refused_as_well_and_made_once_there_is_room(
    tmp_path: Path,
) -> None:
    job = WholeBatches(tmp_path, most_rows=3)
    tick(job, commit(900, group="old"))
    row = tick(job, *(generation(1, {"m": ("t",)}, group=f"g{number}") for number in range(2)))
    assert (len(job.rows("partition_status")), row["shed_keys_total"]) == (3, 6)
    assert groups(job) == {
        "g0": (2, "partial", None),
        "g1": (4, "partial", None),
        "old": (0, "ok", 100),
    }
    # a tombstone makes no row either
    row = tick(job, commit(None, group="g1"), commit(10, group="g0", partition=3))
    assert (len(job.rows("partition_status")), row["shed_keys_total"]) == (3, 10)
    job.most_rows = 1000
    job.start()
    row = tick(job)  # a partition that was refused with its commit is not one without a commit
    assert groups(job) == {"g0": (1, "partial", None), "g1": (0, "ok", None), "old": (0, "ok", 100)}
    assert (len(job.rows("partition_status")), row["shed_keys_total"]) == (7, 10)
    tick(job, commit(10, group="g0", partition=3))
    assert groups(job)["g0"] == (0, "ok", 990)


def test_as_many_groups_without_partitions_are_kept_as_the_cap_allows_rows(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path, most_rows=3)
    tick(job, *(commit(900, group="old", partition=number) for number in range(3)))
    row = tick(job, *(commit(10, group=f"g{number}") for number in range(9)))
    assert (groups(job).keys(), row["shed_keys_total"]) == (
        {"old", *(f"g{number}" for number in range(5))},
        9,
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 100))
def test_shards_share_the_room_that_is_there(rows: list[int], room: int) -> None:
    state = State("", {}, len(rows), {"partition_status": room})
    each = [state.room(PARTITION_STATUS, shard) for shard in range(len(rows))]
    assert sum(each) == room
    assert max(each) - min(each) <= 1  # whatever rows a shard has


def test_rows_of_a_group_that_ended_unseen_are_removed_and_counted(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path)
    tick(
        job,
        commit(900, group="gone"),
        commit(900, group="alive"),
        generation(1, {"m": ("t",)}, group="gone"),
    )
    before = sum(each["group"] == "gone" for each in job.rows("partition_status"))
    job.ended = ["gone", "alive", "never seen"]
    row = tick(job, commit(950, group="alive"))  # it was made again since
    assert row["reconcile_corrections_total"] == before + 1
    assert {
        each["group"] for name in ("partition_status", "group_status") for each in job.rows(name)
    } == {"alive"}
    assert job.scrape()[key("reconcile_corrections_total")] == before + 1


def test_only_groups_that_their_coordinator_does_not_know_have_ended() -> None:
    cluster = Cluster({"there": 1, "hidden": 1}, hidden={"hidden"}, errors={"hidden": DENIED})
    asked_now = Reconcile(cluster, 3600, ["there", "hidden", "gone"])  # type: ignore[arg-type]
    assert asked_now.ended(["there"]) == ["gone"]
    asked = cluster.requests["find_coordinator"]
    assert asked_now.ended(["there"]) == ["gone"]  # the job may not have been able to take it out
    assert asked_now.ended(["there", "gone"]) == []
    # ended again: its tombstones will be read, or it is asked for in an hour
    assert asked_now.ended(["there"]) == []
    assert cluster.requests["find_coordinator"] == asked == 1


def test_each_missing_group_has_its_turn_and_those_that_are_gone_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_groups, "MOST_GROUPS", 2)
    hidden = {"a1", "a2", "a3"}  # first in the alphabet, and nobody may describe them
    cluster = Cluster(dict.fromkeys(hidden, 1), hidden=hidden, errors=dict.fromkeys(hidden, DENIED))
    asked = Reconcile(cluster, 1e-9, [*hidden, "gone"])  # type: ignore[arg-type]
    assert asked.ended([]) == []
    assert asked.ended([]) == ["gone"]
    for number in range(9):
        asked.ended([f"console-{number}"])
    rounds = [set(asked.ended([])) for _ in range(20)]
    assert set().union(*rounds) >= {"console-8"}
    assert asked._known == hidden  # else it grows with every group ever listed


@pytest.mark.parametrize(("seconds", "expected"), [(0, []), (1, ["gone"])])
def test_it_can_be_turned_off(seconds: float, expected: list[str]) -> None:
    assert Reconcile(Cluster({}), seconds, ["gone"]).ended([]) == expected  # type: ignore[arg-type]
