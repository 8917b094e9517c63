"""At every tick of the scenario: no unexpected group appears, none is lost, and no living group is
reported as gone.
"""

from itertools import groupby
from typing import Any

import pytest

from e2e.kit import Row, View
from e2e.live.conftest import RESTLESS, Lived
from e2e.live.members import ENDING, FIRST, LATE, SIMPLE
from laggard.rebalance.analytics.counters import STATE
from laggard.tables.schema.schemas import GROUP_STATUS

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.full]
OF_THE_TICK = {
    "batch_id",
    "poll_id",
    "sampled_at",
    "state_source",
    "max_time_lag_seconds",
    "folded",
}
SINCE_THE_START = {
    "state_since", "empty_since", "watched_since", "rebalancing_since", "rebalance_state",
    "window_state_seconds",
    "last_rebalance_at", "time_in_rebalance_ratio", "ping_pong", "topic_counters",
    "coordinator_changed_at",
    "partitions_added_at", "outcome_counters", "generation_at", "roster_at", "commit_gaps_total",
    "commit_gap_ms_total", "commit_gap_squares_total", *STATE,
}  # fmt: skip
LIVE_ONLY = {"generation_gap", "joined", "left", "replaced", "live_read", "partitions_unassigned"}
BEREFT = {"bereft-consumer", "bereft-share"}  # of a topic that is gone the records have the id only
GROUPS = {each.group for each in FIRST} | set(SIMPLE) | {LATE.group}


def sequence(lived: Lived, group: str, name: str) -> list[Any]:
    """Values of a column of group_status from tick to tick, repeats left out."""
    values = [tick.groups[group][name] for tick in lived.ticks if group in tick.groups]
    return [value for value, _ in groupby(values)]


def events(lived: Lived, *kinds: str) -> list[Row]:
    return [row for row in lived.last.rows("group_events") if row["kind"] in kinds]


def test_every_record_of_the_broker_is_read(lived: Lived) -> None:
    ticks = [row for row in lived.batches if row["kind"] != "gap"]
    assert sum(row["unknown"] + row["dead"] for row in ticks) == 0, lived.place.tail()
    assert all(row["records"] == row["decoded"] + row["tombstones"] for row in ticks)


def test_there_is_no_group_but_those_of_the_scenario(lived: Lived) -> None:
    assert {group for tick in lived.ticks for group in tick.groups} == GROUPS
    assert {key[0] for tick in lived.ticks for key in tick.partitions} <= GROUPS


def test_a_group_once_seen_stays_until_it_is_deleted(lived: Lived) -> None:
    for group in GROUPS:
        is_there = [group in tick.groups for tick in lived.ticks]
        shape = [value for value, _ in groupby(is_there)]
        assert shape in (
            ([True, False], [False, True, False]) if group in ENDING else ([True], [False, True])
        ), group


def test_only_the_deleted_groups_are_reported_as_deleted_and_once_each(lived: Lived) -> None:
    assert sorted(row["group"] for row in events(lived, "group_deleted")) == sorted(ENDING), (
        lived.place.tail()
    )


def test_a_group_is_reported_as_created_once_if_it_is_new(lived: Lived) -> None:
    created = [row["group"] for row in events(lived, "group_created")]
    assert len(set(created)) == len(created)
    assert LATE.group in created


@pytest.mark.parametrize("group", ["online", "offline", "restless"])
def test_a_group_that_changes_its_protocol_has_one_type_or_the_other(
    lived: Lived, group: str
) -> None:
    types = sequence(lived, group, "group_type")
    assert set(types) <= {"classic", "consumer"}
    assert types[-1] == "classic"
    if group != "restless":  # between two ticks it may have been both, and back
        assert types == ["classic", "consumer", "classic"]


def test_no_other_group_changes_its_type(lived: Lived) -> None:
    types = {
        group: sequence(lived, group, "group_type")
        for group in GROUPS - {"online", "offline", "restless"}
    }
    assert all(len(found) == 1 for found in types.values()), types
    assert {found[0] for found in types.values()} == {
        "classic",
        "consumer",
        "share",
        "streams",
        "simple",
    }


@pytest.mark.parametrize(
    ("group", "changes", "fewest"), [("online", 1, 2), ("restless", RESTLESS // 2, 1)]
)
def test_a_group_that_changes_its_protocol_on_line_is_never_empty(
    lived: Lived, group: str, changes: int, fewest: int
) -> None:
    rows = [tick.groups[group] for tick in lived.settled_ticks]
    assert "Empty" not in {row["group_state"] for row in rows}
    assert min(row["members"] for row in rows) == fewest
    kinds = [row["kind"] for row in generations(lived, group)]
    assert (kinds.count("upgrade"), kinds.count("downgrade")) == (changes, changes), kinds
    assert "empty" not in kinds
    numbers = [row["generation"] for row in generations(lived, group) if row["kind"] != "tombstone"]
    assert numbers == sorted(numbers)


def test_a_group_that_changes_its_protocol_while_empty_is_no_upgrade(lived: Lived) -> None:
    kinds = {row["kind"] for row in generations(lived, "offline")}
    assert not kinds & {"upgrade", "downgrade"}, kinds


def generations(lived: Lived, group: str) -> list[Row]:
    rows = [row for row in lived.last.rows("generations") if row["group"] == group]
    return sorted(rows, key=lambda row: row["source_offset"])


@pytest.mark.parametrize("group", ["online", "offline", "restless"])
@pytest.mark.parametrize("partition", range(4))
def test_commits_stand_in_every_tick_while_the_protocol_changes(
    lived: Lived, group: str, partition: int
) -> None:
    offsets = [
        tick.partitions[group, "letters", partition]["committed_offset"]
        for tick in lived.settled_ticks
    ]
    assert None not in offsets
    assert offsets == sorted(offsets)
    assert offsets[-1] > offsets[0]


def test_counters_of_generations_never_fall(lived: Lived) -> None:
    for group in GROUPS:
        totals = sequence(lived, group, "generations_total")
        assert totals == sorted(totals), group


@pytest.mark.parametrize(("group", "instance"), [("static", "one"), ("modern", "two")])
def test_a_static_member_that_restarts_is_replaced_without_a_new_generation(
    lived: Lived, group: str, instance: str
) -> None:
    column = {"static": "generation", "modern": "group_epoch"}[group]
    before, after = (
        lived.moments[name].view.groups[group][column] for name in ("settled", "mixed")
    )
    assert before == after
    assert [row["group"] for row in events(lived, "static_replacement")].count(group) == 1
    ids = {
        row["member_id"]: row["replaced_member_id"]
        for row in lived.last.rows("group_members")
        if row["group"] == group and row["group_instance_id"] == instance
    }
    assert len(ids) == 2
    assert [old for old in ids.values() if old] == [member for member in ids if not ids[member]]


def test_deleted_offsets_go_and_the_group_stays(lived: Lived) -> None:
    assert ("trimmed", "parcels", 1) in lived.moments["settled"].view.partitions
    assert {key for key in lived.last.partitions if key[0] == "trimmed"} == {
        ("trimmed", "letters", 0)
    }
    deleted = [row for row in events(lived, "offset_deleted") if row["group"] == "trimmed"]
    assert [(row["topic"], row["partition"], row["from_offset"]) for row in deleted] == [
        ("parcels", 1, 2)
    ]


def test_a_deleted_topic_leaves_its_groups_and_never_has_lag_afterwards(lived: Lived) -> None:
    assert {key[0] for key in lived.moments["settled"].view.partitions if key[1] == "doomed"} == {
        "bereft-classic",
        "bereft-consumer",
    }
    is_there = [any(key[1] == "doomed" for key in tick.partitions) for tick in lived.settled_ticks]
    assert [value for value, _ in groupby(is_there)] == [True, False]
    deleted = [row["group"] for row in events(lived, "offset_deleted") if row["topic"] == "doomed"]
    assert sorted(deleted) == ["bereft-classic"] * 2 + ["bereft-consumer"] * 2


def test_a_job_that_begins_at_the_end_tells_the_same(lived: Lived) -> None:
    names = [name for name in GROUP_STATUS.names if name not in OF_THE_TICK | SINCE_THE_START]

    def groups(view: View) -> dict[str, Row]:
        return {group: {name: row[name] for name in names} for group, row in view.groups.items()}

    assert groups(lived.replayed) == groups(lived.last), lived.place.tail()
    for table in ("generations", "group_members"):
        assert history(lived.replayed, table) == history(lived.last, table)


def history(view: View, table: str) -> dict[Any, Row]:
    """Rows by place, without what only a job that was there can tell."""
    return {
        (row["group"], row["source_offset"], row.get("member_id")): {
            name: value for name, value in row.items() if name not in OF_THE_TICK | LIVE_ONLY
        }
        for row in view.rows(table)
        if row["group"] not in BEREFT
    }


def test_a_streams_group_is_not_ready_until_its_topic_is_there(lived: Lived) -> None:
    states = sequence(lived, "waiting", "group_state")
    assert states[0] in ("NotReady", "Empty", "Assigning"), states
    assert (lived.moments["settled"].view.groups["waiting"]["group_state"], states[-1]) == (
        "NotReady",
        "Stable",
    )
