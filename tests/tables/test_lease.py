"""Who may write to a root in a bucket: one at a time, and never one whose time is over.

The store is obstore's own in memory, with the conditional writes of a real one;
tests/e2e/test_object_store.py runs a real server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from laggard import storage
from laggard.errors import CONFIGURATION, DAMAGED, REFUSED, TEMPORARY, LaggardError
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer, _set_properties, create_tables
from laggard.tables.lease import NAME, Lease, claim
from laggard.tables.lock import writer_lock
from laggard.tables.readers import open_table
from laggard.tables.schema import schemas
from laggard.tables.unpublished import remove_unpublished
from stream.simulation import NOON
from tables.fixtures import make_root

ROOT = "s3://bucket/tables"
EVENTS = schemas.GROUP_EVENTS


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    made = MemoryStore()
    monkeypatch.setattr(storage, "open_store", lambda *_, **__: made)
    return made


@pytest.fixture
def held() -> Iterator[list[Lease]]:
    """Leases to be ended after the test."""
    made: list[Lease] = []
    yield made
    for each in made:
        each._is_over.set()


def taken(held: list[Lease], seconds: float = 60) -> Lease:
    lease = Lease(ROOT, seconds)
    held.append(lease)
    lease.take()
    return lease


def fall_asleep(lease: Lease) -> None:
    """As a process that is suspended: it renews nothing."""
    lease._is_over.set()
    assert lease._thread is not None
    lease._thread.join()


def wake_up(lease: Lease) -> None:
    lease._is_over.clear()


def refused(lease: Lease) -> LaggardError:
    with pytest.raises(LaggardError) as raised:
        lease.check()
    return raised.value


def test_one_that_is_renewed_is_refused_to_others(held: list[Lease]) -> None:
    first = taken(held, 0.6)
    with pytest.raises(LaggardError, match="another process writes") as raised:
        taken(held, 0.6)
    assert (raised.value.exit_code, "process" in raised.value.cause) == (REFUSED, True)
    first.check()


def test_one_that_was_given_back_is_taken_at_once_under_a_higher_epoch(held: list[Lease]) -> None:
    first = taken(held)
    first.give_back()
    assert refused(first).exit_code == TEMPORARY
    began = time.monotonic()
    assert taken(held).epoch == first.epoch + 1
    assert time.monotonic() - began < 30, "no wait for the 60 s of the first"


def test_one_that_was_given_back_is_not_taken_again_by_a_thread_that_still_claims_the_tables(
    held: list[Lease],
) -> None:
    first = taken(held)
    first.give_back()
    with pytest.raises(LaggardError, match="given back") as raised:
        first.raise_epoch(9)
    assert raised.value.exit_code == TEMPORARY
    assert taken(held).epoch == 2, "at once"


def test_one_that_is_not_renewed_is_over_after_its_seconds_and_its_holder_is_refused(
    held: list[Lease],
) -> None:
    first = taken(held, 0.3)
    fall_asleep(first)
    second = taken(held, 0.3)
    assert second.epoch == first.epoch + 1
    wake_up(first)
    time.sleep(0.3)  # its time is over by its own clock, too
    assert refused(first).exit_code == REFUSED
    assert refused(first).exit_code == REFUSED, "it stays"
    first.give_back()
    second.check()


def test_a_put_whose_answer_was_lost_counts_as_done(
    monkeypatch: pytest.MonkeyPatch, held: list[Lease]
) -> None:
    put, calls = obstore.put, []

    def unanswered(*given: Any, **more: Any) -> Any:
        calls.append(put(*given, **more))
        # the library's own second try, after the first was carried out
        return put(*given, **more) if len(calls) in (1, 3) else calls[-1]

    monkeypatch.setattr(obstore, "put", unanswered)
    lease = taken(held)
    lease.renew()
    assert len(calls) == 4, "each of the two was put once more"
    lease.check()


def test_a_store_that_creates_twice_is_refused(
    monkeypatch: pytest.MonkeyPatch, held: list[Lease]
) -> None:
    put = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *given, **_: put(*given, mode="overwrite"))
    with pytest.raises(LaggardError, match="conditional writes") as raised:
        taken(held)
    assert raised.value.exit_code == CONFIGURATION


def test_a_put_that_is_refused_for_another_reason_is_not_taken_for_done(
    monkeypatch: pytest.MonkeyPatch, held: list[Lease]
) -> None:
    lease = taken(held, 0.3)

    def conflict(*_: Any, **__: Any) -> None:
        raise obstore.exceptions.PreconditionError("409 Conflict ConditionalRequestConflict")

    monkeypatch.setattr(obstore, "put", conflict)
    time.sleep(0.4)
    assert refused(lease).exit_code == TEMPORARY, "another one may take it now"


def test_while_the_store_does_not_answer_the_holder_is_unknown_and_afterwards_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, held: list[Lease]
) -> None:
    lease = taken(held, 0.3)
    put = obstore.put

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("Generic S3 error: error sending request")

    monkeypatch.setattr(obstore, "put", fail)
    time.sleep(0.4)
    assert refused(lease).exit_code == TEMPORARY
    monkeypatch.setattr(obstore, "put", put)
    lease.check()


@pytest.mark.parametrize("content", [b"", b"{", b"<html>not here</html>", b"[]", b'{"epoch": "x"}'])
def test_a_damaged_one_is_named_with_the_remedy(
    store: MemoryStore, held: list[Lease], content: bytes
) -> None:
    obstore.put(store, NAME, content)
    with pytest.raises(LaggardError, match="lease") as raised:
        taken(held)
    assert raised.value.exit_code == DAMAGED
    assert "delete it" in raised.value.fix


def test_it_is_given_back_also_while_it_is_renewed(
    held: list[Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, is_inside, put = taken(held), threading.Event(), obstore.put

    def slowly(*given: Any, **more: Any) -> Any:
        is_inside.set()
        time.sleep(0.2)
        return put(*given, **more)

    monkeypatch.setattr(obstore, "put", slowly)
    renewal = threading.Thread(target=lease.renew)
    renewal.start()
    assert is_inside.wait(10)
    lease.give_back()
    renewal.join()
    monkeypatch.setattr(obstore, "put", put)
    assert taken(held).epoch == lease.epoch + 1


def test_two_that_start_at_once_do_not_both_get_it(held: list[Lease]) -> None:
    results: list[object] = []

    def start() -> None:
        try:
            results.append(taken(held, 0.6))
        except LaggardError as error:
            results.append(error.exit_code)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(str(type(each).__name__) for each in results) == ["Lease", "int", "int", "int"]
    assert {each for each in results if isinstance(each, int)} == {REFUSED}


# ---- the epoch in the tables: what holds when a lease was lost between the look at it and the
# commit


@pytest.fixture
def root(tmp_path: Path) -> str:
    make_root(tmp_path)
    return str(tmp_path)


def event(batch_id: int) -> pa.Table:
    row = {
        "date": NOON.date(),
        "cluster": "c",
        "group": "g",
        "event_at": NOON,
        "batch_id": batch_id,
    }
    return to_arrow(EVENTS, [row])


def batches_in(root: str) -> list[int]:
    return sorted(open_table(root, EVENTS.name).to_pyarrow_table()["batch_id"].to_pylist())


def claimed(root: str, held: list[Lease], seconds: float = 0.3) -> Lease:
    lease = taken(held, seconds)
    claim([open_table(root, name) for name in schemas.TABLES], lease)
    return lease


@pytest.fixture
def sleeper(root: str, held: list[Lease], monkeypatch: pytest.MonkeyPatch) -> Lease:
    """One that has written batch 0 and was suspended just after it looked at its lease."""
    lease = claimed(root, held)
    Writer(root, "one", lease).write(EVENTS, event(0), 0)
    fall_asleep(lease)
    monkeypatch.setattr(lease, "check", lambda: None)
    return lease


def test_one_that_returns_cannot_commit(root: str, held: list[Lease], sleeper: Lease) -> None:
    second = Writer(root, "two", claimed(root, held))
    with pytest.raises(LaggardError) as raised:
        Writer(root, "one", sleeper).write(EVENTS, event(1), 1)
    assert raised.value.exit_code == REFUSED
    second.write(EVENTS, event(2), 2)
    assert batches_in(root) == [0, 2]


def test_one_that_was_suspended_within_its_commit_cannot_end_it(
    root: str, held: list[Lease], sleeper: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(root, "one", sleeper)
    writer.version(EVENTS.name)
    # it has read the log already
    monkeypatch.setattr(writer, "_newest", lambda name: writer._tables[name])
    claimed(root, held)
    with pytest.raises(LaggardError) as raised:
        writer.write(EVENTS, event(1), 1)
    assert raised.value.exit_code == REFUSED
    assert batches_in(root) == [0]


def test_one_that_was_suspended_at_its_start_deletes_nothing_of_the_next(
    root: str, held: list[Lease], sleeper: Lease
) -> None:
    Writer(root, "two", claimed(root, held)).write(EVENTS, event(1), 1)
    with pytest.raises(LaggardError) as raised:
        remove_unpublished(root, 0, sleeper)  # batch 1 was not published when it looked
    assert raised.value.exit_code == REFUSED
    assert batches_in(root) == [0, 1]


def test_one_that_was_suspended_within_a_change_of_a_table_cannot_end_it(
    root: str, held: list[Lease], sleeper: Lease
) -> None:
    behind = open_table(root, EVENTS.name)
    # as an older release made it
    behind.alter.set_table_properties({"delta.checkpointInterval": "7"})
    claimed(root, held)
    with pytest.raises(LaggardError) as raised:
        _set_properties(behind, EVENTS, sleeper)
    assert raised.value.exit_code == REFUSED
    assert open_table(root, EVENTS.name).metadata().configuration["delta.checkpointInterval"] == "7"


def test_every_commit_of_a_new_table_carries_the_epoch(tmp_path: Path, held: list[Lease]) -> None:
    lease = taken(held)
    create_tables(str(tmp_path), [schemas.LAG_WINDOWS], lease)
    entries = sorted((tmp_path / "lag_windows" / "_delta_log").glob("*.json"))
    assert [len(entries), *('"laggard/epoch"' in entry.read_text() for entry in entries)] == [
        2,
        True,
        True,
    ]


def test_a_holder_has_its_lease_before_it_reaches_any_table(held: list[Lease]) -> None:
    """So that a job that is cut off while it claims the tables can give it back."""
    with writer_lock(ROOT) as lease:  # in this store there is no table
        assert lease is not None
        held.append(lease)
    taken(held)


def test_the_epoch_goes_on_where_the_lease_was_deleted(
    root: str, held: list[Lease], store: MemoryStore
) -> None:
    first = claimed(root, held)
    fall_asleep(first)
    second = claimed(root, held)
    fall_asleep(second)
    obstore.delete(store, NAME)
    assert claimed(root, held).epoch > second.epoch > first.epoch


def test_a_conflict_with_one_of_the_same_holder_is_no_refusal(
    root: str, held: list[Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claimed(root, held, 60)
    slow, quick = Writer(root, "one", lease), Writer(root, "two", lease)
    slow.version(EVENTS.name)
    monkeypatch.setattr(slow, "_newest", lambda name: slow._tables[name])
    quick.write(EVENTS, event(0), 0)
    with pytest.raises(Exception, match="Concurrent") as raised:
        slow.write(EVENTS, event(1), 1)
    assert not isinstance(raised.value, LaggardError)
    lease.check()
