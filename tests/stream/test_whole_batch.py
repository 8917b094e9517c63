"""Whatever clients commit: the batch is published, others' rows and series are as without it, and a
scrape works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exporter.harness import Key
from laggard.errors import INTERNAL, TEMPORARY, LaggardError
from laggard.lag.positions import ADVANCE_FAILED
from laggard.stream.tick import advance_stage
from laggard.stream.tick.advance import advance
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema import schemas
from patience import examples
from stream.simulation import Record, Row, commit, end, generation
from stream.test_any_input import records as odd_records
from stream.whole_batch import Given, WholeBatches

ENDS = [
    end(1000, topic=topic, partition=number, start=10)
    for topic in ("t", "u")
    for number in range(2)
]
OTHERS = [f"steady-{number:02}" for number in range(20)]
EXTREMES = (2**63 - 1, 2**53 + 11, -1)
# of a row: where it lies in the offsets topic, which depends on the records around it
PLACE = {"commit_source_offset", "source_offset", "group_record_offset", "event_id", "folded"}


def raw(job: WholeBatches, each: Record) -> Given:
    return each.key, each.value, round(job.now.timestamp() * 1000)


def steady(job: WholeBatches, number: int) -> list[Given]:
    found = [
        commit(100 + 3 * number + place, group=group, at=job.now)
        for place, group in enumerate(OTHERS)
    ]
    joined = (
        [generation(1, {"m": ("t",)}, group=group) for group in OTHERS[:3]] if number == 0 else []
    )
    return [raw(job, each) for each in [*joined, *found]]


def rows_of_others(job: WholeBatches) -> dict[str, list[Any]]:
    def others(name: str) -> list[Any]:
        rows = [row for row in job.rows(name) if row["group"] in OTHERS]
        return sorted(str({key: row[key] for key in row.keys() - PLACE}) for row in rows)

    tables = (
        "partition_status",
        "group_status",
        "lag_windows",
        "group_history",
        "group_events",
        "generations",
    )
    return {name: others(name) for name in tables}


def series_of_others(job: WholeBatches) -> dict[Key, float]:
    return {
        key: value for key, value in job.scrape().items() if dict(key[1]).get("group") in OTHERS
    }


def test_a_broker_that_falls_silent_between_poll_and_batch_is_read_by_a_later_one(
    tmp_path: Path,
) -> None:
    job = WholeBatches(tmp_path / "job")
    for number in range(2):
        before = job.tick(ENDS, steady(job, number))
    job.source.failure, job.source.answers = (
        LaggardError("a fetch timed out", exit_code=TEMPORARY),
        False,
    )
    left = job.tick(ENDS, steady(job, 2))
    assert (left["kind"], left["records"], left["source_to"]) == ("tick", 0, before["source_to"])
    assert {row["status"] for row in job.rows("partition_status")} == {"ok", "no_commit"}
    job.source.answers = True  # would fail, if it were read before its broker gives an end
    still = job.tick(ENDS, steady(job, 3), answers=False)
    assert (still["kind"], still["records"], still["source_to"]) == ("tick", 0, before["source_to"])
    job.source.failure = None
    after = job.tick(ENDS, steady(job, 4))
    assert (after["kind"], after["records"]) == ("tick", 60)
    found = {
        row["committed_offset"] for row in job.rows("partition_status") if row["status"] == "ok"
    }
    assert found == {112 + each for each in range(20)}


def test_live_ticks_begin_when_every_partition_was_read_once(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path / "job")
    assert job.tick(ENDS, steady(job, 0), answers=False)["kind"] == "backfill"
    assert job.tick(ENDS, steady(job, 1))["kind"] == "tick"
    assert job.rows("group_events") == [], "what a silent broker gives late is not new"
    assert job.tick(ENDS, steady(job, 2), answers=False)["kind"] == "tick"


def test_a_batch_takes_another_group_while_coordinators_let_its_plan_wait(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path)
    job.tick(ENDS, steady(job, 0))
    job.source.waits = [3, 4]
    assert (job.tick(ENDS, steady(job, 1))["kind"], job.source.waits) == ("tick", [])
    job.source.waits = [3]  # which no group is taken of by now, so that this is another failure
    with pytest.raises(LaggardError, match="cannot plan"):
        job.tick(ENDS, steady(job, 2))


def test_what_is_to_be_read_again_is_not_counted_however_late_its_broker_answers(
    tmp_path: Path,
) -> None:
    job = WholeBatches(tmp_path / "job")
    job.tick(ENDS, steady(job, 0))
    assert job.batches.last is not None
    # as after a truncation
    job.batches.last["source_to"], job.batches._rereads = {}, frozenset({0})
    kinds = [job.tick(ENDS, [], answers=answers)["kind"] for answers in (False, True, True)]
    assert kinds == ["tick", "backfill", "tick"]


@pytest.mark.parametrize("exit_code", [TEMPORARY, INTERNAL])
def test_a_batch_that_fails_for_another_reason_leaves_nothing_for_later(
    tmp_path: Path, exit_code: int
) -> None:
    job = WholeBatches(tmp_path / "job")
    job.tick(ENDS, steady(job, 0))
    job.source.failure, job.source.answers = (
        LaggardError("failed", exit_code=exit_code),
        exit_code == TEMPORARY,
    )
    with pytest.raises(LaggardError, match="failed"):
        job.tick(ENDS, steady(job, 1))


@pytest.mark.parametrize("table", [schemas.GROUP_EVENTS, schemas.PARTITION_STATUS])
def test_a_batch_of_which_rows_are_written_is_never_cut(
    tmp_path: Path, table: schemas.Table
) -> None:
    job = WholeBatches(tmp_path / "job")
    job.tick(ENDS, steady(job, 0))
    job.writer.write(table, arrow_schema(table).empty_table(), 1)
    job.source.failure, job.source.answers = (
        LaggardError("a fetch timed out", exit_code=TEMPORARY),
        False,
    )
    with pytest.raises(LaggardError, match="timed out"):
        job.tick(ENDS, steady(job, 1))


def test_the_commits_that_stopped_the_job_are_three_rows(tmp_path: Path) -> None:
    job = WholeBatches(tmp_path / "job")
    for number in range(7):
        odd = [
            commit(offset, group="odd", topic=topic, partition=partition, at=job.now)
            for offset, (topic, partition) in zip(
                EXTREMES, (("t", 0), ("t", 1), ("u", 0)), strict=True
            )
        ]
        plain = [commit(500, group="odd", topic="u", partition=1, at=job.now)]
        row = job.tick(ENDS, [*(raw(job, each) for each in (*odd, *plain)), *steady(job, number)])
    assert (row["dead"], row["quarantined_groups"], row["quarantines_total"]) == (0, 0, 0)
    found = {
        (row["topic"], row["partition"]): (row["status"], row["committed_offset"], row["lag"])
        for row in job.rows("partition_status")
        if row["group"] == "odd"
    }
    assert found == {
        ("t", 0): ("committed_ahead", 2**63 - 1, None),
        ("t", 1): ("committed_ahead", 2**53 + 11, None),
        ("u", 0): ("no_commit", None, None),
        ("u", 1): ("ok", 500, 500),
    }
    samples = job.scrape()
    assert {
        value for (name, _), value in samples.items() if name == "laggard_quarantined_groups"
    } == {0.0}
    lags = {
        dict(labels)["group"]: value for (name, labels), value in samples.items()
        if name == "laggard_group_lag_records" and dict(labels)["topic"] == "t"
    }  # fmt: skip
    assert lags == {group: 1000 - (118 + place) for place, group in enumerate(OTHERS)}


def test_a_commit_of_the_far_future_costs_no_series(tmp_path: Path) -> None:
    """Its microseconds have no exact double."""
    job = WholeBatches(tmp_path / "job")
    far = commit(500, group="far", at=datetime(8174, 8, 1, tzinfo=timezone.utc))
    job.tick(ENDS, [raw(job, far), *steady(job, 0)])
    lags = {
        dict(labels)["group"]
        for name, labels in job.scrape()
        if name == "laggard_group_lag_records"
    }
    assert lags == {"far", *OTHERS}


@pytest.mark.full
@pytest.mark.examples
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # it would hide what failed
@settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink an example takes minutes
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.lists(odd_records(), max_size=8), min_size=2, max_size=4))
def test_any_records_leave_the_others_rows_and_series_as_they_are(
    tmp_path: Path, odd: list[list[Given]]
) -> None:
    start = WholeBatches(tmp_path / uuid4().hex).now

    def run(given: Sequence[Iterable[Given]]) -> WholeBatches:
        job = WholeBatches(tmp_path / uuid4().hex, now=start)
        for number, records in enumerate(given):
            row = job.tick(ENDS, [*records, *steady(job, number)])
            assert (
                row["records"] == row["decoded"] + row["tombstones"] + row["unknown"] + row["dead"]
            )
            assert (row["batch_id"], row["kind"], row["quarantined_groups"]) == (number, "tick", 0)
        return job

    job, alone = run(odd), run([[] for _ in odd])
    assert rows_of_others(job) == rows_of_others(alone)
    assert series_of_others(job) == series_of_others(alone)
    for row in job.rows("partition_status"):
        assert (row["lag"] is not None) == (row["status"] == "ok")


def test_a_group_in_quarantine_is_named_by_batches_event_and_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(partitions: Any, groups: Any, batch: Any, *rest: Any) -> Any:
        if "bad" in {row["group"] for row in [*groups.to_pylist(), *batch.commits.to_pylist()]}:
            raise ValueError("an odd number")
        return advance(partitions, groups, batch, *rest)

    job = WholeBatches(tmp_path / "job")
    job.tick(ENDS, [raw(job, commit(5, group="bad")), *steady(job, 0)])
    with monkeypatch.context() as patched:
        patched.setattr(advance_stage, "advance", failing)
        rows: list[Row] = [
            job.tick(ENDS, [raw(job, commit(50, group="bad")), *steady(job, 1)]) for _ in range(3)
        ]
    assert [(row["quarantined_groups"], row["quarantines_total"]) for row in rows] == [(1, 1)] * 3
    assert dict(rows[-1]["quarantined"]) == {"bad": "ValueError"}
    (line,) = [message for message in caplog.messages if "quarantine" in message]
    assert line.startswith(
        "group 'bad' is in quarantine: its tick failed with ValueError: an odd number;"
    )
    (held,) = [row for row in job.rows("partition_status") if row["group"] == "bad"]
    assert (held["status"], held["error"], held["committed_offset"]) == (
        "stale",
        ADVANCE_FAILED,
        50,
    )
    samples = job.scrape()
    found = {name: value for (name, _), value in samples.items() if "quarantine" in name}
    assert found == {"laggard_quarantined_groups": 1.0, "laggard_quarantines_total": 1.0}
    assert {
        dict(key[1])["group"] for key in samples if key[0] == "laggard_group_lag_records"
    } == set(OTHERS)
    row = job.tick(ENDS, steady(job, 2))
    assert (row["quarantined_groups"], row["quarantines_total"]) == (0, 1)
    events = [each["kind"] for each in job.rows("group_events") if each["group"] == "bad"]
    assert sorted(events) == ["quarantine_ended", "quarantined"]
    (back,) = [row for row in job.rows("partition_status") if row["group"] == "bad"]
    assert (back["status"], back["lag"]) == ("ok", 950)
