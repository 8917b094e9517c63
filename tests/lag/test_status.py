"""What is said about one partition of a group: the closed list, its order, and when a lag is a
number.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.lag.status import STATUSES
from patience import examples
from stream.simulation import ID_A, ID_B, Simulation, commit, end, generation

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


def reach(**conditions: bool) -> Simulation:
    """A partition committed at 50 of 10 … 100, then a tick in which these conditions hold, all at
    once if asked.
    """
    on = {name for name, holds in conditions.items() if holds}
    job = Simulation()
    offset = 5 if "below" in on else 50
    if "ahead" in on:
        offset = 500
    first = [generation(1, {"m": ("t",)})] if "no_commit" in on else [commit(offset, topic_id=ID_A)]
    job.tick([end(100, start=10)], first)
    job.tick([end(100)])
    log_end, error = (None, "LEADER_NOT_AVAILABLE") if "no_end" in on else (100, None)
    if "missing" in on:
        log_end, error = None, UNKNOWN_TOPIC
    last = end(log_end, topic_id=ID_B if "recreated" in on else ID_A, error=error)
    job.tick([last], is_live="stale" not in on, blocked=(0,) if "blocked" in on else ())
    return job


ORDER = ("stale", "missing", "recreated", "no_end", "blocked", "no_commit", "ahead", "below")
NAMES = dict(zip((*ORDER, "none"), STATUSES, strict=True))


@pytest.mark.parametrize("condition", [*ORDER, "none"])
def test_every_status_is_reached_by_its_own_condition(condition: str) -> None:
    assert reach(**{condition: True}).row["status"] == NAMES[condition]


# a group record names no offsets partition of a commit and no topic id, so three pairs cannot meet
IMPOSSIBLE = [
    {"no_commit", "blocked"},
    {"no_commit", "ahead"},
    {"no_commit", "below"},
    {"ahead", "below"},
]


PAIRS = [
    (one, two)
    for place, one in enumerate(ORDER)
    for two in ORDER[place + 1 :]
    if {one, two} not in [*IMPOSSIBLE, {"recreated", "no_commit"}]
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_conditions_the_first_in_the_list_wins(first: str, second: str) -> None:
    assert reach(**{first: True, second: True}).row["status"] == NAMES[first]


@pytest.mark.examples
@settings(max_examples=examples(40))
@given(st.fixed_dictionaries({name: st.booleans() for name in ORDER}))
def test_a_lag_is_known_exactly_where_the_status_is_ok(conditions: dict[str, bool]) -> None:
    row = reach(**conditions).row
    assert (row["lag"] is not None) == (row["status"] == "ok")
    assert row["lag"] in (None, 50)


@pytest.mark.parametrize("log_end", [100, None])
def test_a_group_whose_commits_cannot_be_read_for_long_is_stale(log_end: int | None) -> None:
    job = Simulation()
    job.tick([end(100, start=10)], [commit(50, topic_id=ID_A)])
    job.tick([end(log_end)], silent=(0,))
    assert (job.row["status"], job.row["error"]) == (
        "no_end_offset" if log_end is None else "stale", "COORDINATOR_NOT_AVAILABLE",
    )  # fmt: skip
    assert (job.row["committed_offset"], job.row["lag"]) == (50, None)
    job.tick([end(100)], silent=(1,))
    assert (job.row["status"], job.row["error"], job.row["lag"]) == ("ok", None, 50)


def test_a_missing_topic_is_named_only_after_topics_were_listed_again() -> None:
    job = Simulation()
    job.tick([], [commit(5)], metadata_poll_id=0)
    assert (job.row["status"], job.row["error"]) == ("no_end_offset", "NOT_POLLED")
    job.tick([], metadata_poll_id=1)
    assert (job.row["status"], job.row["error"]) == ("no_end_offset", "NOT_POLLED")
    job.tick([], metadata_poll_id=2)
    assert (job.row["status"], job.row["error"]) == ("topic_missing", UNKNOWN_TOPIC)


def test_a_subscribed_topic_that_is_gone_gets_no_row_again_once_its_commits_ended() -> None:
    job = Simulation()
    gone = end(None, error=UNKNOWN_TOPIC)
    job.tick([end(10)], [generation(1, {"m": ("t",)}), commit(5)])
    job.tick([gone])
    assert job.row["status"] == "topic_missing"
    job.tick([gone], [commit(None)])
    job.tick([gone])
    assert job.rows == []
    job.tick([end(3, topic_id=ID_B)])
    assert job.row["status"] == "no_commit"


def test_kafkas_error_name_is_kept_where_there_is_no_log_end() -> None:
    job = reach(no_end=True)
    assert (job.row["error"], job.row["committed_offset"], job.row["lag"]) == (
        "LEADER_NOT_AVAILABLE",
        50,
        None,
    )


def test_a_commit_ahead_of_its_poll_is_ok_with_lag_0_until_a_poll_that_began_after_it() -> None:
    job = Simulation()
    seen = []
    job.tick([end(100)], [commit(130)])
    for _ in range(3):
        seen.append((job.row["status"], job.row["lag"], job.row["ahead_records"]))
        job.tick([end(100)])
    assert seen == [("ok", 0, 30), ("ok", 0, 30), ("committed_ahead", None, 30)]


def test_a_log_end_that_catches_up_ends_the_being_ahead() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(130)])
    for _ in range(3):
        job.tick([end(100)])
    job.tick([end(131)])
    assert (job.row["status"], job.row["lag"], job.row["ahead_records"]) == ("ok", 1, 0)


def test_repeating_a_commit_does_not_postpone_the_proof_that_it_is_ahead() -> None:
    job = Simulation()
    for _ in range(6):
        job.tick([end(100)], [commit(130)])
    assert job.row["status"] == "committed_ahead"


def test_below_the_log_start_lost_and_readable_records_are_distinguished() -> None:
    job = reach(below=True)
    row = job.row
    assert (row["lost_records"], row["readable_records"], row["lag"]) == (5, 90, None)


def test_an_ok_partition_has_lost_nothing_once_its_log_start_is_known() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    assert job.row["lost_records"] is None
    job.tick([end(100, start=10)])
    assert job.row["lost_records"] == 0


def test_a_log_start_is_carried_to_the_polls_that_do_not_ask_for_it() -> None:
    job = Simulation()
    job.tick([end(100, start=10)], [commit(50)])
    job.tick([end(100)])
    assert job.row["log_start_offset"] == 10
    job.tick([end(100, start=60)])
    assert (job.row["log_start_offset"], job.row["status"]) == (60, "below_log_start")


def test_a_log_start_is_not_carried_to_another_topic_of_the_same_name() -> None:
    job = Simulation()
    job.tick([end(100, start=60)], [commit(70)])
    job.tick([end(5, topic_id=ID_B)])
    assert job.row["log_start_offset"] is None
    job.tick([end(8, topic_id=ID_B)], [commit(3)])
    assert (job.row["status"], job.row["lag"], job.row["log_start_offset"]) == ("ok", 5, None)


def identities(job: Simulation) -> tuple[Any, ...]:
    return tuple(job.row[name] for name in ("topic_id", "current_topic_id", "status"))


def test_a_commit_without_an_id_gets_the_one_its_first_poll_showed() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    assert identities(job) == (ID_A, None, "ok")


def test_a_commit_that_carries_an_id_keeps_it_whatever_the_poll_shows() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50, topic_id=ID_B)])
    assert identities(job) == (ID_B, ID_A, "topic_recreated")


def test_a_commit_between_the_deletion_and_the_first_poll_of_the_new_topic_proves_nothing() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(7, topic_id=ID_B)], [commit(60)])
    assert identities(job) == (ID_A, ID_B, "topic_recreated")


@pytest.mark.parametrize("offset", [3, 60])
def test_what_was_committed_in_two_topics_is_not_compared(offset: int) -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)], [commit(50)])
    job.tick([end(7, topic_id=ID_B)], [commit(offset)])
    assert (job.events(), job.row["consume_rate"]) == (["topic_recreated"], None)
    (counted,) = job.groups["g"]["topic_counters"]
    assert [counted[name] for name in ("rewinds", "rewound_records", "consumed")] == [0, 0, 0]


def test_a_commit_that_names_the_topic_before_may_be_a_rewind_in_it() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50, topic_id=ID_A)])
    job.tick([end(100)], [commit(50, topic_id=ID_A)])
    job.tick([end(7, topic_id=ID_B)], [commit(20, topic_id=ID_A)])
    assert job.events() == ["offset_rewind", "topic_recreated"]


def test_a_commit_after_a_poll_that_showed_the_new_topic_belongs_to_it() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(7, topic_id=ID_B)])
    job.tick([end(9, topic_id=ID_B)], [commit(4)])
    assert identities(job) == (ID_B, None, "ok")
    assert job.row["lag"] == 5


def test_a_broker_without_topic_ids_never_says_recreated() -> None:
    job = Simulation()
    job.tick([end(100, topic_id="")], [commit(50)])
    job.tick([end(100, topic_id=ID_B)])
    assert identities(job) == (ID_B, None, "ok")


def test_a_partition_without_a_commit_follows_the_topic_to_its_new_id() -> None:
    job = Simulation()
    job.tick([end(100)], [generation(1, {"m": ("t",)})])
    job.tick([end(100, topic_id=ID_B)])
    assert identities(job) == (ID_B, None, "no_commit")


def test_recreation_is_one_event() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    for _ in range(3):
        job.tick([end(7, topic_id=ID_B)])
    assert job.events() == ["topic_recreated"]


def test_recreation_stays_one_event_across_catching_up() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(7, topic_id=ID_B)])
    job.tick([end(7, topic_id=ID_B)], is_live=False)
    job.tick([end(7, topic_id=ID_B)])
    assert job.events() == ["topic_recreated"]
