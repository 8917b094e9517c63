"""Group records folded, tick by tick: generations, members, events, and the one row per group."""

from __future__ import annotations

from laggard.rebalance.groups import Listing
from stream.simulation import NOON, Simulation, commit, end, generation, group_tombstone

READER = {"m1": ("t",)}


def listed(state: str, *, is_fresh: bool = True, kind: str = "Classic") -> Listing:
    found = {
        "g": {"group": "g", "group_state": state, "group_type": kind, "protocol_type": "consumer"}
    }
    return Listing(found if is_fresh else {}, {0: 7}, is_fresh=is_fresh)


def generations(job: Simulation) -> list[tuple[object, ...]]:
    return [
        (row["kind"], row["generation"], row["generation_gap"])
        for row in job.history["generations"]
    ]


def live() -> Simulation:
    """A job that already had a live tick."""
    job = Simulation()
    job.tick()
    return job


def test_each_generation_is_a_row_with_its_distance_from_the_one_before() -> None:
    job = live()
    job.tick(
        records=[generation(1, READER), generation(2, READER), generation(5, READER), generation(6)]
    )
    assert generations(job) == [("sync", 1, None), ("sync", 2, 1), ("sync", 5, 3), ("empty", 6, 1)]
    assert job.groups["g"]["generations_total"] == 4


def test_the_distance_is_not_known_while_reading_the_past() -> None:
    job = Simulation()
    job.tick(records=[generation(1, READER), generation(9, READER)], is_live=False)
    assert generations(job) == [("sync", 1, None), ("sync", 9, None)]
    assert [row["live_read"] for row in job.history["generations"]] == [False, False]


def test_the_distance_spans_ticks() -> None:
    job = live()
    job.tick(records=[generation(1, READER)])
    job.tick(records=[generation(4, READER)])
    assert generations(job)[-1] == ("sync", 4, 3)


def test_a_static_member_that_returns_is_an_event_and_no_generation() -> None:
    job = live()
    job.tick(records=[generation(3, {"a": ("t",)}, static={"a": "one"})])
    job.tick(records=[generation(3, {"b": ("t",)}, static={"b": "one"})])
    assert len(job.history["generations"]) == 1
    assert job.events() == ["group_created", "static_replacement"]
    assert [row["member_id"] for row in job.history["group_members"]] == ["a", "b"]
    assert (job.groups["g"]["generations_total"], job.groups["g"]["static_members"]) == (1, 1)


def test_a_tombstone_ends_a_group_without_offsets() -> None:
    job = live()
    job.tick(records=[generation(1, READER)])
    job.tick(records=[group_tombstone()])
    assert job.events() == ["group_created"]  # an upgrade would go on in the next batch
    job.tick()
    assert job.groups == {}
    assert job.events() == ["group_created", "group_deleted"]
    assert generations(job)[-1] == ("tombstone", None, None)


def test_a_tombstone_leaves_a_group_its_offsets() -> None:
    job = live()
    job.tick([end(100)], [generation(1, READER), commit(50)])
    job.tick([end(100)], [group_tombstone()])
    job.tick([end(100)])
    row = job.groups["g"]
    assert (row["members"], row["generation"], row["topics"], row["lag"]) == (None, None, None, 50)
    assert "group_deleted" not in job.events()


def test_the_counter_of_generations_survives_a_tombstone() -> None:
    job = live()
    job.tick([end(100)], [generation(1, READER), generation(2, READER), commit(50)])
    job.tick([end(100)], [group_tombstone()])
    job.tick([end(100)], [generation(1, READER)])
    assert job.groups["g"]["generations_total"] == 3


def test_what_is_first_seen_in_the_past_is_no_event() -> None:
    job = Simulation()
    job.tick([end(100)], [generation(1, READER), commit(50)], is_live=False)
    job.tick([end(100)], [commit(60, group="first live tick")])
    assert job.events() == []
    job.tick([end(100)], [commit(60, group="later")])
    assert [(row["kind"], row["group"]) for row in job.history["group_events"]] == [
        ("group_created", "later")
    ]


def test_a_subscribed_partition_without_a_commit_is_a_row_until_nobody_wants_it() -> None:
    job = live()
    ends = [end(100), end(10, partition=1)]
    job.tick(ends, [generation(1, READER)])
    assert [(row["partition"], row["status"]) for row in job.rows] == [
        (0, "no_commit"),
        (1, "no_commit"),
    ]
    job.tick(ends, [commit(50)])
    assert [(row["partition"], row["status"]) for row in job.rows] == [(0, "ok"), (1, "no_commit")]
    job.tick(ends, [generation(2)])
    assert [(row["partition"], row["status"]) for row in job.rows] == [(0, "ok")]
    assert "offset_deleted" not in job.events()


def test_a_poll_that_answers_nothing_takes_no_row_away() -> None:
    job = live()
    job.tick([end(None, error="TIMEOUT")], [generation(1, READER)])
    assert [row["status"] for row in job.rows] == ["no_end_offset"]


def test_a_partition_without_a_commit_does_not_make_a_sum_partial() -> None:
    job = live()
    job.tick([end(100), end(10, partition=1)], [generation(1, READER), commit(50)])
    row = job.groups["g"]
    counts = tuple(row[f"partitions_{name}"] for name in ("total", "ok", "no_commit", "unknown"))
    assert (row["status"], row["lag"], row["lag_known"], counts) == ("ok", 50, 50, (2, 1, 1, 0))


def test_one_unknown_partition_makes_the_sum_unknown_and_keeps_what_is_known() -> None:
    job = live()
    job.tick(
        [end(100), end(None, partition=1, error="TIMEOUT")], [commit(50), commit(5, partition=1)]
    )
    row = job.groups["g"]
    assert (row["status"], row["lag"], row["lag_known"], row["partitions_unknown"]) == (
        "partial",
        None,
        50,
        1,
    )


def test_no_ok_partition_means_no_sum_at_all() -> None:
    job = live()
    job.tick([end(None, error="TIMEOUT")], [commit(50)])
    assert (job.groups["g"]["lag"], job.groups["g"]["lag_known"]) == (None, None)


def test_a_group_is_stale_while_the_job_catches_up() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)], is_live=False)
    assert (job.groups["g"]["status"], job.groups["g"]["lag"]) == ("stale", None)


def test_the_brokers_word_on_the_state_stands_until_a_record_or_the_next_listing() -> None:
    job = live()
    seen = []
    for records, listing in (
        ([generation(1, READER)], listed("PreparingRebalance")),
        ([], listed("", is_fresh=False)),
        ([generation(2, READER)], listed("", is_fresh=False)),
    ):
        job.tick(records=records, listing=listing)
        seen.append((job.groups["g"]["group_state"], job.groups["g"]["state_source"]))
    assert seen == [
        ("PreparingRebalance", "admin"),
        ("PreparingRebalance", "admin"),
        ("Stable", "record"),
    ]


def test_a_coordinator_that_does_not_answer_leaves_the_last_word_on_its_groups() -> None:
    """Other brokers answer, so the listing as a whole is new."""
    job = live()
    others = {"h": {"group": "h", "group_state": "Stable", "group_type": "classic"}}
    seen = []
    for records, listing in (
        ([generation(1, READER)], listed("PreparingRebalance")),
        ([], Listing(others, {0: 7}, is_fresh=True, unlisted=frozenset({7, None}))),
        ([], Listing(others, {0: None}, is_fresh=True, unlisted=frozenset({None}))),
        ([], Listing(others, {0: 8}, is_fresh=True, unlisted=frozenset({7, None}))),
    ):
        job.tick(records=records, listing=listing)
        seen.append((job.groups["g"]["group_state"], job.groups["g"]["state_source"]))
    word = ("PreparingRebalance", "admin")
    assert seen == [word, word, word, ("Stable", "record")]


def test_offsets_without_a_group_record_belong_to_a_simple_group() -> None:
    job = live()
    listing = Listing({"g": {"group_state": "Empty", "group_type": "classic"}}, {}, is_fresh=True)
    job.tick([end(100)], [commit(50)], listing=listing)
    assert (job.groups["g"]["group_type"], job.groups["g"]["group_state"]) == ("simple", "Empty")


def test_the_coordinator_is_the_leader_of_the_groups_offsets_partition() -> None:
    job = live()
    job.tick(records=[generation(1, READER)], listing=listed("Stable"))
    assert (job.groups["g"]["coordinator"], job.groups["g"]["offsets_partition"]) == (7, 0)


def test_the_time_to_sync_runs_from_the_end_of_the_join_phase() -> None:
    job = live()
    job.now = NOON
    state_ms = round(NOON.timestamp() * 1000) + 8_500
    job.tick(records=[generation(1, READER, state_ms=state_ms)])
    assert job.history["generations"][0]["sync_seconds"] == 1.5


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    job = live()
    job.tick(records=[generation(1, READER, state_ms=round(NOON.timestamp() * 1000) + 3_600_000)])
    assert job.history["generations"][0]["sync_seconds"] is None


def test_reading_group_records_again_changes_nothing() -> None:
    job = live()
    job.next_offset = 1
    job.tick(records=[generation(1, READER), generation(2, READER)])
    before = job.groups["g"]
    job.next_offset = 1
    job.tick(records=[generation(1, READER), generation(2, READER)])
    assert len(job.history["generations"]) == 2
    assert job.groups["g"]["generations_total"] == before["generations_total"]


def test_reading_the_first_record_of_a_partition_again_changes_nothing() -> None:
    job = live()
    for _ in range(2):
        job.next_offset = 0
        job.tick(records=[generation(1, READER)])
    assert (len(job.history["generations"]), job.events()) == (1, ["group_created"])


def test_an_impossible_time_in_a_group_record_fails_no_batch() -> None:
    job = live()
    job.tick(records=[generation(1, READER, state_ms=2**60)])


def test_an_impossible_commit_time_fails_no_batch() -> None:
    job = live()
    job.tick([end(100)], [commit(50)])
    far = commit(20)
    value = far.value or b""
    job.tick([end(100)], [type(far)(far.key, value[:-8] + (2**57).to_bytes(8, "big"))])


def test_two_rewinds_are_two_events_with_two_ids() -> None:
    job = live()
    job.tick([end(100)], [commit(90)])
    job.tick([end(100)], [commit(50), commit(60), commit(40)])
    rewinds = [row for row in job.history["group_events"] if row["kind"] == "offset_rewind"]
    assert len(rewinds) == 2
    assert len({row["event_id"] for row in rewinds}) == 2


def test_reading_a_rewind_again_tells_it_once() -> None:
    job = live()
    for _ in range(2):
        job.next_offset = 5
        job.tick([end(100)], [commit(50), commit(40)])
    assert job.events().count("offset_rewind") == 1


def test_an_offset_deleted_under_a_subscriber_leaves_a_partition_without_a_commit() -> None:
    job = live()
    job.tick([end(10)], [generation(1, READER), commit(4)])
    job.tick([end(10)], [commit(None)])
    row = job.row
    assert (row["status"], row["committed_offset"], row["commit_source_offset"]) == (
        "no_commit",
        None,
        None,
    )
    (event,) = [row for row in job.history["group_events"] if row["kind"] == "offset_deleted"]
    assert (event["from_offset"], event["source_partition"], event["source_offset"]) == (4, 0, 2)


def test_an_offset_deleted_that_nobody_wants_leaves_nothing() -> None:
    job = live()
    job.tick([end(10)], [commit(4)])
    job.tick([end(10)], [commit(None)])
    assert job.rows == []
