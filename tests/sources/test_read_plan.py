"""Planning a read ends: as soon as Spark has planned it, or when the coordinator that Spark waits
for is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, current_thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from laggard.errors import TEMPORARY, LaggardError
from laggard.sources import offsets_topic, read_plan
from laggard.sources.offsets_topic import OffsetsSource
from laggard.sources.read_plan import Planner
from laggard.sources.snapshot import OFFSETS_PARTITIONS, Snapshot
from laggard.wire.coordinator import coordinator_partition


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_plan, "ASK_SECONDS", 0.01)


@pytest.fixture
def returns() -> Iterator[Event]:
    """Set when the broker is back, at the latest at the end of the test."""
    event = Event()
    yield event
    event.set()


def frame(plan: Callable[[], Any]) -> Any:
    """Stands in for a frame whose plan does this."""
    spark = SimpleNamespace(
        _jvm=SimpleNamespace(SparkSession=SimpleNamespace(setActiveSession=lambda _: None))
    )
    spark._jsparkSession = None
    return SimpleNamespace(
        sparkSession=spark, _jdf=SimpleNamespace(queryExecution=lambda: SimpleNamespace(toRdd=plan))
    )


def never() -> bool:
    raise AssertionError("a plan that is made at once asks for no broker")


def test_frames_are_planned_in_one_thread_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_plan, "ASK_SECONDS", 60.0)
    planner, threads = Planner(), []
    for _ in range(3):
        planner.plan(frame(lambda: threads.append(current_thread())), never)
    assert len(set(threads)) == 1
    assert threads[0] is not current_thread()
    assert threads[0].daemon, "a process ends though one of them waits"


def test_a_failure_of_the_plan_is_raised_and_the_next_one_is_planned() -> None:
    def fail() -> None:
        raise ValueError("refused")

    planner, done = Planner(), []
    with pytest.raises(ValueError, match="refused"):
        planner.plan(frame(fail), lambda: False)
    planner.plan(frame(lambda: done.append(1)), lambda: False)
    assert done


def test_a_slow_plan_is_waited_for_as_long_as_the_coordinator_answers(returns: Event) -> None:
    asked: list[bool] = []

    def answers() -> bool:
        asked.append(True)
        if len(asked) == 3:
            returns.set()
        return False

    Planner().plan(frame(returns.wait), answers)
    assert len(asked) >= 3


def test_a_plan_that_waits_for_a_silent_coordinator_is_given_up_and_the_next_one_is_not_behind_it(
    returns: Event,
) -> None:
    planner, threads = Planner(), []

    def wait() -> None:
        threads.append(current_thread())
        returns.wait()

    with pytest.raises(LaggardError, match="cannot plan a read") as caught:
        planner.plan(frame(wait), lambda: True)
    assert caught.value.exit_code == TEMPORARY
    planner.plan(frame(lambda: threads.append(current_thread())), lambda: False)
    assert len(set(threads)) == 2
    returns.set()
    threads[0].join(60)
    assert not threads[0].is_alive(), "it ends when the broker is back"


def test_a_plan_is_also_given_up_when_no_broker_can_be_asked(returns: Event) -> None:
    planner, threads = Planner(), []

    def fail() -> bool:
        raise LaggardError("cannot read metadata")

    def wait() -> None:
        threads.append(current_thread())
        returns.wait()

    with pytest.raises(LaggardError, match="metadata"):
        planner.plan(frame(wait), fail)
    planner.plan(frame(lambda: threads.append(current_thread())), lambda: False)
    assert len(set(threads)) == 2


def test_a_coordinator_that_leads_its_partition_and_lets_a_plan_wait_is_not_taken_again(
    returns: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers for the log while it loads its groups' offsets, and for good where
    it failed to.
    """
    monkeypatch.setattr(offsets_topic, "PLAN_SECONDS", 0.05)
    monkeypatch.setattr(OffsetsSource, "silent", lambda *_: frozenset())
    source, parts = (
        OffsetsSource(("a",), "__consumer_offsets", 10),
        OFFSETS_PARTITIONS.empty_table(),
    )
    parts = pa.Table.from_pylist(
        [{"offsets_partition": n, "last_stable_offset": 1} for n in range(50)], parts.schema
    )
    snapshot: Any = SimpleNamespace(offsets_partitions=parts, answering_brokers=[])
    first = source.group(("a",), parts)
    with pytest.raises(LaggardError, match="cannot plan a read"):
        source.plan(frame(returns.wait), snapshot)
    assert source.unusable == {coordinator_partition(first, 50)}
    assert coordinator_partition(source.group(("a",), parts), 50) not in source.unusable


def test_the_only_coordinator_is_waited_for_however_long_it_loads(
    monkeypatch: pytest.MonkeyPatch, returns: Event
) -> None:
    monkeypatch.setattr(offsets_topic, "PLAN_SECONDS", 0.0)
    asked: list[frozenset[int]] = []

    def answers(_: Any, numbers: Any) -> frozenset[int]:
        asked.append(frozenset(numbers))
        if len(asked) == 3:
            returns.set()
        return frozenset()

    monkeypatch.setattr(OffsetsSource, "silent", answers)
    rows = [{"offsets_partition": 0, "last_stable_offset": 1}, {"offsets_partition": 1}]
    snapshot = Snapshot(
        1, 0, offsets_partitions=pa.Table.from_pylist(rows, schema=OFFSETS_PARTITIONS)
    )
    source = OffsetsSource(("a",), "__consumer_offsets", 10)
    source.plan(frame(returns.wait), snapshot)
    assert len(asked) >= 3
    assert not source.unusable, "there is no other group to take"
