"""What one record of a classic group says of its generation and members, beside the state of the
group.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import encoder
from rebalance.modern import ENDS, folded, rows_of
from stream.simulation import NOON, Record, Row, Simulation, generation, group_tombstone

NOON_MS = round(NOON.timestamp() * 1000)
A0, A1 = {"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}


def blobs(owned: list[int] | None, assigned: list[int]) -> tuple[bytes, bytes]:
    """Subscription (version 0 if nothing is said to be owned) and assignment of topic t."""
    held: dict[str, Any] = {"owned_partitions": [{"topic": "t", "partitions": owned or []}]}
    version = 0 if owned is None else 1
    wanted = {"version": version, "topics": ["t"], "user_data": None, **held}
    given = {
        "version": 0,
        "assigned_partitions": [{"topic": "t", "partitions": assigned}],
        "user_data": None,
    }
    return encoder.subscription(wanted), encoder.assignment(given)


def sync(
    number: int, members: dict[str, tuple[bytes, bytes]], at: float = 0, **columns: Any
) -> Record:
    record = generation(number, dict.fromkeys(members, ("t",)), blobs=members, **columns)
    return Record(record.key, record.value, NOON + timedelta(seconds=at))


def last(job: Simulation, table: str = "generations") -> Row:
    return rows_of(job, table)[-1]


def test_slots_that_joined_left_or_were_taken_over_are_reported() -> None:
    first = sync(1, dict.fromkeys(("a1", "a2", "b"), blobs(None, [])), hosts={"b": "/10.0.0.2"})
    second = sync(
        2, dict.fromkeys(("a1", "a3", "c", "d"), blobs(None, [])), hosts={"c": "/c", "d": "/d"}
    )
    row = last(folded([first, second]))
    assert row["joined"] == ["client/c#0", "client/d#0"]
    assert row["left"] == ["client/10.0.0.2#0"]
    # restarted there; moved to another host
    assert row["replaced"] == ["client/10.0.0.1#1", "client/10.0.0.2#0"]


def test_a_member_that_moves_up_a_place_is_no_restart() -> None:
    row = last(
        folded(
            [sync(1, dict.fromkeys(("a", "b"), blobs(None, []))), sync(2, {"b": blobs(None, [])})]
        )
    )
    assert (row["joined"], row["left"], row["replaced"]) == ([], ["client/10.0.0.1#0"], [])


def test_a_static_member_keeps_its_slot_and_names_whom_it_replaced() -> None:
    records = [sync(3, {name: blobs(None, [0])}, static={name: "one"}) for name in ("a", "b")]
    job = folded([sync(2, {}), *records])
    row = last(job, "group_members")
    assert (row["member_id"], row["slot"], row["replaced_member_id"]) == ("b", "one", "a")
    assert [row["generation"] for row in rows_of(job, "generations")] == [2, 3]


def test_the_leader_is_known_by_its_slot() -> None:
    assert last(folded([sync(1, {"a": blobs(None, [])})]))["leader_slot"] == "client/10.0.0.1#0"


def test_the_begin_of_a_rebalance_is_bounded_by_the_longest_timeout() -> None:
    job = folded([sync(2, {"a": blobs(None, [])}, 100, state_ms=NOON_MS + 99_000)])
    # the group may have been empty: it then waits for more members
    low = NOON + timedelta(seconds=99 - 60 - 3)
    assert (last(job)["started_low"], last(job)["state_timestamp"]) == (
        low,
        NOON + timedelta(seconds=99),
    )


def test_the_begin_of_a_rebalance_is_not_before_the_record_of_the_generation_before() -> None:
    one = {"a": blobs(None, [])}
    records = [sync(1, one, 50), sync(2, one, 100, state_ms=NOON_MS + 99_000)]
    assert last(folded(records))["started_low"] == NOON + timedelta(seconds=50)
    assert last(folded(records[:1], records[1:]))["started_low"] == NOON + timedelta(seconds=50)


def test_a_state_time_of_before_the_last_generation_is_not_believed() -> None:
    one = {"a": blobs(None, [])}
    row = last(folded([sync(1, one, 50), sync(2, one, 100, state_ms=NOON_MS + 49_000)]))
    names = ("state_timestamp", "sync_seconds", "started_low", "status")
    assert tuple(row[name] for name in names) == (None, None, None, "partial")


def test_partitions_are_counted_as_assigned_or_not_by_the_poll() -> None:
    one = [sync(1, {"a": blobs(None, [0])})]
    names = ("partitions_assigned", "partitions_unassigned")
    assert tuple(last(folded(one))[name] for name in names) == (1, 1)
    assert tuple(last(folded(one, ends=[]))[name] for name in names) == (1, None)


def test_a_cooperative_member_has_to_give_up_what_it_owned_and_does_not_keep() -> None:
    job = folded([sync(1, {"a": blobs([0, 1], [1])}, protocol="cooperative-sticky")])
    row = last(job, "group_members")
    assert (row["owned"], row["assigned"], row["pending_revocation"]) == ([A0, A1], [A1], [A0])


@pytest.mark.parametrize(("owned", "protocol"), [([0, 1], "range"), (None, "cooperative-sticky")])
def test_nothing_is_said_of_revocation_where_it_is_not_known(
    owned: list[int] | None, protocol: str
) -> None:
    row = last(folded([sync(1, {"a": blobs(owned, [1])}, protocol=protocol)]), "group_members")
    assert row["pending_revocation"] is None


@pytest.mark.parametrize(
    "broken", [(b"\0", None), (None, b"\0")], ids=["subscription", "assignment"]
)
def test_a_blob_that_does_not_decode_leaves_its_columns_unknown(
    broken: tuple[bytes | None, bytes | None],
) -> None:
    whole = blobs(None, [0])
    job = folded([sync(1, {"a": (broken[0] or whole[0], broken[1] or whole[1]), "b": whole})])
    row = next(row for row in rows_of(job, "group_members") if row["member_id"] == "a")
    assert (row["topics"], row["assigned"]) == ((None, [A0]) if broken[0] else (["t"], None))
    assert (row["status"], last(job)["status"], last(job)["partitions_assigned"]) == (
        "partial",
        "partial",
        None,
    )
    assert (job.groups["g"]["members"], job.groups["g"]["topics"]) == (2, None)


def test_connect_workers_are_members_without_topics() -> None:
    state = encoder.worker_state(
        {"version": 1, "worker_url": "http://w", "config_offset": 1, "allocation": None}
    )
    job = folded([sync(1, {"w": (state, b"")}, protocol_type="connect", protocol="sessioned")])
    row = last(job, "group_members")
    names = ("client_host", "is_leader", "subscription_version", "topics", "assigned", "status")
    assert tuple(row[name] for name in names) == ("/10.0.0.1", True, 1, None, None, "ok")
    group = job.groups["g"]
    assert (group["protocol_type"], group["members"], group["idle_members"], group["topics"]) == (
        "connect",
        1,
        None,
        None,
    )
    assert last(job)["partitions_assigned"] is None


def test_members_of_an_unknown_protocol_type_are_counted() -> None:
    job = folded([sync(1, {"a": (b"{}", b"")}, protocol_type="sr")])
    assert (job.groups["g"]["members"], last(job)["status"]) == (1, "ok")


def test_a_row_that_an_older_job_wrote_goes_on() -> None:
    job = folded([sync(4, {"a": blobs(None, [])})])
    status = job.tables["group_status"]
    for name in ("folded", "record_state", "is_held"):
        field = status.schema.field(name)
        status = status.set_column(
            status.schema.get_field_index(name), field, pa.nulls(status.num_rows, field.type)
        )
    job.tables["group_status"] = status
    job.tick(ENDS)
    assert (job.groups["g"]["group_state"], job.groups["g"]["state_source"]) == ("Stable", "record")
    job.tick(ENDS, [sync(7, {"a": blobs(None, [])})])
    assert (last(job)["generation_gap"], last(job)["joined"]) == (3, None)


def test_a_group_without_new_records_keeps_its_state_beside_one_that_has_some() -> None:
    records = [generation(1, {"m": ("t",)}, group=name) for name in ("a", "b", "c")]
    job = folded(records)
    before = {name: row["folded"] for name, row in job.groups.items()}
    job.tick(ENDS, [generation(2, {"m": ("t",)}, group="b")])
    job.tick(ENDS, [group_tombstone("a")])
    job.tick(ENDS)
    after = {name: row["folded"] for name, row in job.groups.items()}
    assert after.keys() == {"b", "c"}
    assert after["c"] == before["c"]
    assert (before["b"]["generation"], after["b"]["generation"]) == (1, 2)
