"""Commits that are polled: the lag of the offsets topic's path where both know it, null if a poll
cannot tell.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from laggard.stream.tick import advance_stage
from laggard.stream.tick.advance import advance
from laggard.stream.tick.decoded import Batch
from laggard.stream.tick.quarantine import Inputs
from laggard.tables.schema import schemas
from laggard.tables.schema.admin_source import EMPTY, UNKNOWN
from patience import some
from stream.polled import Place, PolledSimulation, description
from stream.simulation import NOON, Record, Row, Simulation, commit, end, generation

GROUPS, PARTITIONS, TICKS = ("a", "b"), 3, 25
LAGS = (
    "committed_offset",
    "log_end_offset",
    "lag",
    "status",
    "time_lag_seconds",
    "lost_records",
    "readable_records",
)
OF_WINDOWS = (
    "ticks",
    "ok_ticks",
    "lag_min",
    "lag_max",
    "produced",
    "consumed",
    "arrival_rate",
    "headroom_records",
)


def history(seed: int) -> Iterator[tuple[list[Row], list[Record], dict[Place, int]]]:
    """Per tick the log ends, the commits since the tick before, and where the groups stand; a known
    truth.
    """
    dice = random.Random(seed)
    ends = dict.fromkeys(range(PARTITIONS), 100)
    stand: dict[Place, int] = {}
    for number in range(TICKS):
        for part in ends:
            ends[part] += dice.choice([0, 0, 5, 40])
        records = []
        for group in GROUPS:
            for part in range(PARTITIONS):
                for _ in range(dice.choice([0, 0, 1, 3])):
                    place = (group, "t", part)
                    low = stand.get(place, 50)
                    chosen = (
                        low - dice.randint(1, 9)
                        if dice.random() < 0.05
                        else dice.randint(low, ends[part])
                    )
                    stand[place] = chosen
                    at = NOON + timedelta(seconds=10 * number + dice.random())
                    records.append(commit(chosen, group=group, partition=part, at=at))
        yield (
            [end(value, partition=part, start=0) for part, value in ends.items()],
            records,
            dict(stand),
        )


@pytest.mark.examples
@pytest.mark.parametrize("seed", some(range(8)))
def test_lag_and_windows_equal_those_of_the_offsets_topic(seed: int) -> None:
    topic, polled = Simulation(), PolledSimulation()
    for ends, records, stand in history(seed):
        topic.tick(ends, records)
        polled.poll(ends, stand)
        assert [[row[name] for name in LAGS] for row in polled.rows] == [
            [row[name] for name in LAGS] for row in topic.rows
        ]
    by_topic, by_poll = (
        {
            (row["group"], row["partition"], row["window_start"]): row
            for row in each.history["lag_windows"]
        }
        for each in (topic, polled)
    )
    assert by_topic.keys() == by_poll.keys()
    assert len(by_topic) > GROUPS.__len__() * PARTITIONS
    for key, row in by_topic.items():
        found = {name: by_poll[key][name] for name in OF_WINDOWS}
        if row["rewound_records"]:  # inside a round a rewind may not be seen
            found |= {"consumed": row["consumed"]}
        assert found == {name: row[name] for name in OF_WINDOWS}, key


def hidden(rows: list[Row], names: tuple[str, ...]) -> set[str]:
    """Those of the columns that have a value in some row."""
    known = set()
    for row in rows:
        for name in names:
            column, _, inner = name.partition(".")
            values = [each[inner] for each in row[column] or ()] if inner else [row[column]]
            known |= {name} & ({name} if any(value is not None for value in values) else set())
    return known


def test_what_a_poll_cannot_tell_is_null_in_every_row() -> None:
    polled = PolledSimulation()
    texts = {group: description("m-1", "m-2") for group in GROUPS}
    rows: dict[str, list[Row]] = {name: [] for name in UNKNOWN}
    for ends, _, stand in history(1):
        tables = polled.poll(ends, stand, described=texts)
        for name in rows.keys() & tables.keys():
            rows[name] += tables[name].to_pylist()
    for name, columns in UNKNOWN.items():
        declared = schemas.TABLES[name].names
        assert {column.partition(".")[0] for column in columns} <= set(declared), name
        assert hidden(rows[name], columns) == set(), name
    assert [name for name in EMPTY if polled.history.get(name)] == []
    assert rows["lag_windows"]
    assert rows["group_history"]


def test_members_states_and_owners_are_those_of_the_description() -> None:
    polled = PolledSimulation()
    for number in range(14):
        polled.poll(
            [end(100 + number, start=0), end(5, partition=1, start=0)],
            {("g", "t", 0): 90},
            described={"g": description("m-1", "m-2")},
        )
    group = polled.groups["g"]
    names = (
        "group_state",
        "state_source",
        "members",
        "idle_members",
        "topics",
        "assignor",
        "coordinator",
        "group_type",
    )
    assert [group[name] for name in names] == [
        "Stable",
        "admin",
        2,
        0,
        ["t"],
        "range",
        1,
        "classic",
    ]
    assert {
        (row["partition"], row["owner"], row["client_id"]) for row in polled.history["lag_windows"]
    } == {
        (0, "m-1", "client"),
        (1, "m-2", "client"),
    }
    assert [row["status"] for row in polled.rows] == ["ok", "no_commit"]


def test_a_group_that_nobody_ever_joined_is_a_simple_one() -> None:
    polled = PolledSimulation()
    nobody = {"protocol_type": None, "topics": None}
    polled.poll(
        [end(10)], {("g", "t", 0): 9}, described={"g": description(more=nobody)}, protocol_type=None
    )
    assert [polled.groups["g"][name] for name in ("group_type", "members")] == ["simple", None]


def test_topics_stay_known_while_a_rebalance_hides_them() -> None:
    polled = PolledSimulation()
    polled.poll(
        [end(10), end(3, partition=1)], {("g", "t", 0): 9}, described={"g": description("m-1")}
    )
    unknown = {
        "members": [
            {
                "member_id": "m-1",
                "group_instance_id": None,
                "client_id": "c",
                "client_host": "/h",
                "assigned": None,
            }
        ]
    }
    polled.poll(
        [end(10), end(3, partition=1)],
        {("g", "t", 0): 9},
        described={"g": description("m-1", more=unknown | {"topics": None})},
    )
    assert (polled.groups["g"]["topics"], polled.groups["g"]["idle_members"]) == (["t"], None)
    assert [row["status"] for row in polled.rows] == ["ok", "no_commit"]


def test_a_group_that_was_not_asked_keeps_its_offset_with_the_time_of_its_answer() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90})
    polled.poll([end(120)], {("g", "t", 0): 115}, asked=())
    assert (polled.row["committed_offset"], polled.row["lag"], polled.row["status"]) == (
        90,
        30,
        "ok",
    )
    assert polled.row["answered_at"] == NOON + timedelta(seconds=10)
    assert polled.row["consume_rate"] is None
    polled.poll([end(120)], {("g", "t", 0): 115})
    assert (polled.row["lag"], polled.row["consume_rate"]) == (5, 25 / 20)
    assert polled.row["progressed_at"] == polled.now


def test_a_group_that_does_not_answer_for_two_windows_is_stale_and_says_why() -> None:
    polled = PolledSimulation()
    denied = {"g": "GROUP_AUTHORIZATION_FAILED"}
    polled.poll([end(100)], {("g", "t", 0): 90})
    for _ in range(12):
        polled.poll([end(100)], {("g", "t", 0): 90}, asked=(), errors=denied)
    assert (polled.row["status"], polled.groups["g"]["error"]) == (
        "ok",
        "GROUP_AUTHORIZATION_FAILED",
    )
    polled.poll([end(100)], {("g", "t", 0): 90}, asked=(), errors=denied)
    assert (polled.row["status"], polled.row["error"], polled.row["lag"]) == (
        "stale",
        denied["g"],
        None,
    )
    assert polled.events() == []
    polled.poll([end(100)], {("g", "t", 0): 90})
    assert (polled.row["status"], polled.row["lag"]) == ("ok", 10)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"lists_topics": True}, ["offset_deleted"]),
        ({"lists_topics": False}, ["offset_deleted"]),  # the topic is there to be seen
    ],
)
def test_an_offset_that_a_complete_answer_lacks_is_deleted(
    answer: dict[str, Any], expected: list[str]
) -> None:
    polled = PolledSimulation()
    polled.poll([end(100), end(50, partition=1)], {("g", "t", 0): 90, ("g", "t", 1): 40})
    polled.poll([end(100), end(50, partition=1)], {("g", "t", 0): 90}, **answer)
    assert polled.events() == expected
    assert [row["partition"] for row in polled.rows] == [0]


def test_an_offset_of_a_topic_that_is_hidden_stays() -> None:
    polled = PolledSimulation()
    polled.poll([end(100), end(50, topic="u")], {("g", "t", 0): 90, ("g", "u", 0): 40})
    polled.poll([end(100)], {("g", "t", 0): 90}, lists_topics=False)
    assert (polled.events(), [row["topic"] for row in polled.rows]) == ([], ["t", "u"])
    polled.poll([end(100), end(error="TOPIC_AUTHORIZATION_FAILED", topic="u")], {("g", "t", 0): 90})
    assert (polled.events(), [row["committed_offset"] for row in polled.rows]) == ([], [90, 40])
    polled.poll([end(100)], {("g", "t", 0): 90})
    assert (polled.events(), [row["topic"] for row in polled.rows]) == (["offset_deleted"], ["t"])


def test_a_partition_with_an_error_keeps_its_offset() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90})
    polled.poll([end(100)], {("g", "t", 0): None})
    assert (polled.events(), polled.row["committed_offset"]) == ([], 90)


def test_a_group_ends_by_the_word_of_its_coordinator_and_not_before() -> None:
    polled = PolledSimulation()
    both = {("g", "t", 0): 90, ("h", "t", 0): 80}
    polled.poll([end(100)], both)
    polled.poll([end(100)], {("h", "t", 0): 80})
    assert (polled.events(), sorted(polled.groups)) == ([], ["g", "h"])
    polled.poll([end(100)], {("h", "t", 0): 80}, errors={"g": "GROUP_ID_NOT_FOUND"})
    assert (sorted(polled.events()), sorted(polled.groups)) == (
        ["group_deleted", "offset_deleted"],
        ["h"],
    )


def test_a_group_that_ends_in_quarantine_leaves_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(
        partitions: pa.Table, groups: pa.Table, batch: Batch, *rest: Any
    ) -> dict[str, pa.Table]:
        if polled.failing.intersection(Inputs(partitions, groups, batch).groups):
            raise OverflowError
        return advance(partitions, groups, batch, *rest)

    monkeypatch.setattr(advance_stage, "advance", failing)
    polled = PolledSimulation()
    both, gone = {("g", "t", 0): 90, ("h", "t", 0): 80}, {"g": "GROUP_ID_NOT_FOUND"}
    polled.poll([end(100)], both)
    polled.failing = {"g"}
    polled.poll([end(100)], both)
    assert sorted(polled.groups) == ["g", "h"]
    polled.poll([end(100)], {("h", "t", 0): 80}, errors=gone)
    assert (sorted(polled.groups), [row["group"] for row in polled.rows]) == (["h"], ["h"])
    assert polled.events() == ["quarantined", "group_deleted"]
    polled.failing = set()
    polled.poll([end(100)], {("h", "t", 0): 80})
    assert polled.events() == ["quarantined", "group_deleted"]


def test_states_stay_while_a_broker_does_not_list_its_groups() -> None:
    polled = PolledSimulation()
    both = {("g", "t", 0): 90, ("h", "t", 0): 80}
    polled.poll([end(100)], both, described={"g": description("m")})
    polled.poll([end(100)], {("h", "t", 0): 80}, unlisted=(2,))
    assert [polled.groups["g"][name] for name in ("group_state", "state_source", "members")] == [
        "Stable",
        "admin",
        1,
    ]


def test_the_state_of_a_group_that_is_refused_is_unknown() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90}, described={"g": description("m")})
    polled.poll([end(100)], {}, errors={"g": "GROUP_AUTHORIZATION_FAILED"}, listed=())
    assert [polled.groups["g"][name] for name in ("group_state", "state_source")] == [
        "Unknown",
        "none",
    ]
    polled.poll([end(100)], {}, unlisted=(1,), listed=())
    assert [polled.groups["g"][name] for name in ("group_state", "state_source")] == [
        "Unknown",
        "none",
    ]


def test_a_fall_between_two_polls_is_a_rewind() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90})
    polled.poll([end(100)], {("g", "t", 0): 60})
    (event,) = polled.history["group_events"]
    assert [event[name] for name in ("kind", "from_offset", "to_offset", "records")] == [
        "offset_rewind",
        90,
        60,
        30,
    ]


def test_nothing_is_known_until_every_group_was_asked_once() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90}, pending=3, is_live=False)
    assert (polled.row["status"], polled.row["lag"], polled.last and polled.last["kind"]) == (
        "stale",
        None,
        "backfill",
    )
    polled.poll([end(100)], {("g", "t", 0): 90})
    assert (polled.row["status"], polled.row["lag"], polled.events()) == ("ok", 10, [])


def test_a_group_that_was_listed_before_its_first_answer_is_no_new_one() -> None:
    polled = PolledSimulation()
    ends, both, late = (
        [end(100)],
        {("g", "t", 0): 90, ("h", "t", 0): 50},
        {"h": "COORDINATOR_LOAD_IN_PROGRESS"},
    )
    polled.poll(ends, both, asked=("g",), errors=late)
    polled.poll(ends, both)
    found = next(row for row in polled.rows if row["group"] == "h")
    assert (polled.events(), found["committed_offset"], found["progressed_at"]) == ([], 50, None)
    polled.poll(ends, both | {("h", "t", 0): 60})
    assert next(row for row in polled.rows if row["group"] == "h")["progressed_at"] == polled.now


def test_a_group_of_a_broker_that_lists_late_is_no_new_one() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90}, unlisted=(2,))
    polled.poll([end(100)], {("g", "t", 0): 90, ("h", "t", 0): 50})
    assert (polled.events(), polled.rows[1]["progressed_at"]) == ([], None)


def test_a_group_that_a_complete_listing_lacked_is_new_and_its_first_offset_is_progress() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90})
    both = {("g", "t", 0): 90, ("h", "t", 0): 50}
    polled.poll([end(100)], both, asked=("g",))
    polled.poll([end(100)], both)
    assert (polled.events(), polled.rows[1]["progressed_at"]) == (["group_created"], polled.now)


def test_the_first_offset_on_a_partition_is_progress_of_a_group_that_answered_before() -> None:
    polled = PolledSimulation()
    ends = [end(100), end(100, partition=1)]
    polled.poll(ends, {("g", "t", 0): 90})
    polled.poll(ends, {("g", "t", 0): 90, ("g", "t", 1): 5})
    assert [row["progressed_at"] for row in polled.rows] == [None, polled.now]


def test_a_poll_of_a_group_that_stands_makes_no_progress() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 80})
    polled.poll([end(100)], {("g", "t", 0): 90})
    since = polled.row["progressed_at"]
    for number in range(14):
        polled.poll([end(101 + number)], {("g", "t", 0): 90})
    assert polled.row["progressed_at"] == since
    assert polled.history["lag_windows"][-1]["frozen_seconds"] > 0


# ticks: up to two windows, and above, where rows are stale in between
@pytest.mark.parametrize("every", [7, 15])
def test_a_steady_reader_that_is_rarely_asked_does_not_stand(every: int) -> None:
    polled = PolledSimulation()
    for number in range(60):
        asked = None if number % every == 0 else ()
        polled.poll(
            [end(1000 + 10 * number, start=0)], {("g", "t", 0): 50 + 10 * number}, asked=asked
        )
    newest = 59 - 59 % every
    assert polled.row["progressed_at"] == NOON + timedelta(seconds=10 * (newest + 1))
    windows = polled.history["lag_windows"]
    assert {row["frozen_seconds"] for row in windows} <= {0, None}
    assert {row["produced"] for row in windows} == {60}
    # nothing is known of a window without an answer; the next answer tells of all since the one
    # before
    assert {row["consume_rate"] for row in windows} <= {1.0, None}
    consumed = [row["consumed"] for row in windows]
    assert 0 not in consumed
    assert (None in consumed) == (every > 6)
    # tick 58 ended the last window
    assert sum(each or 0 for each in consumed) == 10 * (58 - 58 % every)
    (counted,) = polled.groups["g"]["topic_counters"]
    assert (counted["consumed"], counted["produced"]) == (10 * newest, 590)


def test_the_answer_that_ends_a_silence_tells_of_progress() -> None:
    polled = PolledSimulation()
    for number in range(18):
        asked = None if number < 3 else ()
        polled.poll(
            [end(100 + 10 * number, start=0)], {("g", "t", 0): 50 + 10 * number}, asked=asked
        )
    assert polled.row["status"] == "stale"
    polled.poll([end(300, start=0)], {("g", "t", 0): 240})
    assert (polled.row["status"], polled.row["lag"], polled.row["progressed_at"]) == (
        "ok",
        60,
        polled.now,
    )
    assert polled.row["consume_rate"] == 170 / 160


def test_an_offset_that_stands_is_frozen_as_long_as_answers_say_so() -> None:
    polled = PolledSimulation()
    for number in range(30):
        stands = 50 + 10 * min(number, 6)
        polled.poll(
            [end(1000 + 10 * number, start=0)],
            {("g", "t", 0): stands},
            asked=None if number % 3 == 0 else (),
        )
    frozen = [row["frozen_seconds"] for row in polled.history["lag_windows"]]
    assert frozen == [30.0, 90.0, 150.0, 210.0]


@pytest.mark.parametrize("stands_at", [10, 90])
def test_an_offset_in_a_topic_that_was_made_again_is_known_at_the_next_answer(
    stands_at: int,
) -> None:
    polled = PolledSimulation()
    again = end(100, start=0, topic_id="B" * 22)
    for _ in range(2):
        polled.poll([end(100, start=0)], {("g", "t", 0): 90})
    polled.poll([again], {("g", "t", 0): stands_at})  # asked before the poll saw the other topic
    assert (polled.row["status"], polled.row["lag"]) == ("topic_recreated", None)
    polled.poll([again], {("g", "t", 0): stands_at}, asked=())
    assert polled.row["status"] == "topic_recreated"
    for _ in range(2):
        polled.poll([again], {("g", "t", 0): stands_at})
        assert (polled.row["status"], polled.row["lag"]) == ("ok", 100 - stands_at)
        assert polled.row["current_topic_id"] is None
    assert "offset_deleted" not in polled.events()


def test_an_offset_that_answers_do_not_tell_gets_old() -> None:
    polled = PolledSimulation()
    polled.poll([end(100), end(7, partition=1)], {("g", "t", 0): 90, ("g", "t", 1): 5})
    for _ in range(13):
        polled.poll([end(100), end(7, partition=1)], {("g", "t", 0): None, ("g", "t", 1): 5})
    failed, known = polled.rows
    names = ("status", "error", "lag", "answered_at", "committed_offset")
    assert [failed[name] for name in names] == [
        "stale", "UNKNOWN_SERVER_ERROR", None, NOON + timedelta(seconds=10), 90,
    ]  # fmt: skip
    assert [known[name] for name in names] == ["ok", None, 2, polled.now, 5]
    assert polled.events() == []


def test_the_error_of_a_group_stays_until_its_next_answer() -> None:
    polled = PolledSimulation()
    polled.poll([end(100)], {("g", "t", 0): 90})
    polled.poll(
        [end(100)], {("g", "t", 0): 90}, asked=(), errors={"g": "GROUP_AUTHORIZATION_FAILED"}
    )
    for _ in range(13):
        polled.poll([end(100)], {("g", "t", 0): 90}, asked=())
    assert (polled.row["status"], polled.row["error"]) == ("stale", "GROUP_AUTHORIZATION_FAILED")
    assert polled.groups["g"]["error"] == "GROUP_AUTHORIZATION_FAILED"
    polled.poll([end(100)], {("g", "t", 0): 90})
    assert (polled.row["status"], polled.row["error"], polled.groups["g"]["error"]) == (
        "ok",
        None,
        None,
    )


def test_the_last_generation_of_a_topic_record_is_not_needed() -> None:
    """The same group by records has a generation, by polls none: everything else of its members
    agrees.
    """
    topic, polled = Simulation(), PolledSimulation()
    topic.tick([end(100)], [generation(3, {"m-1": ("t",)}), commit(90)])
    polled.poll([end(100)], {("g", "t", 0): 90}, described={"g": description("m-1")})
    names = (
        "members",
        "static_members",
        "topics",
        "assignor",
        "rebalance_mode",
        "group_type",
        "lag",
        "partitions_total",
    )
    assert [polled.groups["g"][name] for name in names] == [
        topic.groups["g"][name] for name in names
    ]
    assert (topic.groups["g"]["generation"], polled.groups["g"]["generation"]) == (3, None)


@pytest.mark.parametrize("stands_at", [10, 95])
def test_no_rewind_is_made_of_the_offsets_of_two_topics(stands_at: int) -> None:
    polled = PolledSimulation()
    polled.poll([end(100, start=0)], {("g", "t", 0): 90})
    polled.poll([end(100, start=0)], {("g", "t", 0): 90})
    for _ in range(2):
        polled.poll([end(100, start=0, topic_id="B" * 22)], {("g", "t", 0): stands_at})
        assert polled.row["consume_rate"] is None
    assert polled.events() == ["topic_recreated"]
    (counted,) = polled.groups["g"]["topic_counters"]
    assert [counted[name] for name in ("rewinds", "rewound_records", "consumed")] == [0, 0, 0]
