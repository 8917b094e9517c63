"""A group whose tick raises costs its own rows only: they are stale, and right again when its tick
succeeds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.config.policy import Policies
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.rules.registry import cluster_observations
from laggard.diagnosis.rules.rule import WARN
from laggard.lag.positions import ADVANCE_FAILED, COMMIT_TRUNCATED
from laggard.lag.tick import Tick
from laggard.stream.evaluation.evaluating import read_cluster
from laggard.stream.evaluation.reading import Options, Window
from laggard.stream.tick import advance_stage
from laggard.stream.tick.advance import Poll, advance
from laggard.stream.tick.decoded import Batch, of_kind
from laggard.stream.tick.quarantine import (
    MAX_NAMED,
    MAX_RUNS,
    Failed,
    Inputs,
    Quarantine,
    Tables,
    advance_apart,
)
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer, create_tables
from laggard.tables.schema import schemas
from stream import simulation
from stream.simulation import Record, Row, Simulation, commit, decoded, end, generation

ENDS = [end(1000, partition=number) for number in range(3)]
Place = tuple[str, str, int]


class Job(Simulation):
    """A job whose ticks raise for some groups, in `advance` itself."""

    poisoned: set[str]
    failed: list[Failed]
    runs: int


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    job = Job()
    job.poisoned, job.failed, job.runs = set(), [], 0

    def failing(partitions: pa.Table, groups: pa.Table, batch: Batch, *rest: Any) -> Tables:
        job.runs += 1
        inputs = Inputs(partitions, groups, batch)
        if found := job.poisoned.intersection(inputs.groups):
            raise OverflowError(f"a number of {min(found)}\nand a second line")
        return advance(partitions, groups, batch, *rest)

    def apart(
        partitions: pa.Table,
        groups: pa.Table,
        batch: Batch,
        poll: Poll,
        tick: Tick,
        policies: Policies | None,
    ) -> Tables:
        tables, job.failed = advance_stage.advance_groups(
            Inputs(partitions, groups, batch), poll, tick, policies
        )
        return tables

    monkeypatch.setattr(advance_stage, "advance", failing)
    monkeypatch.setattr(simulation, "advance", apart)
    return job


def row_of(job: Simulation, group: str, partition: int = 0) -> Row:
    return next(row for row in job.rows if (row["group"], row["partition"]) == (group, partition))


def events_of(job: Simulation, group: str) -> list[str]:
    return [row["kind"] for row in job.history["group_events"] if row["group"] == group]


def commits(offset: int, groups: Iterable[str] = ("bad", "good", "other")) -> list[Record]:
    return [commit(offset, group=group) for group in groups]


def test_the_others_are_published_as_if_the_group_were_not_there(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [f"g{number:02}" for number in range(20)]
    alone = Simulation()
    with monkeypatch.context() as patched:
        patched.setattr(simulation, "advance", advance)
        for number in range(15):
            alone.tick(ENDS, commits(5 + number, groups))
    job.tick(ENDS, commits(5, [*groups, "bad"]))
    job.poisoned = {"bad"}
    for number in range(1, 15):
        job.next_offset = number * 20  # where they lie without the others
        job.tick(ENDS, commits(5 + number, [*groups, "bad"]))
    assert [row for row in job.rows if row["group"] != "bad"] == alone.rows
    assert {group: row for group, row in job.groups.items() if group != "bad"} == alone.groups
    for name, rows in alone.history.items():
        assert sorted(
            (row for row in job.history[name] if row.get("group") != "bad"), key=str
        ) == sorted(rows, key=str)


def test_the_rows_of_the_group_are_stale_and_say_why(job: Job) -> None:
    for number in range(8):
        job.tick(ENDS, commits(5 + number))
    before = row_of(job, "bad")
    job.poisoned = {"bad"}
    job.tick(ENDS)
    row, group = row_of(job, "bad"), job.groups["bad"]
    assert (row["status"], row["error"], row["lag"]) == ("stale", ADVANCE_FAILED, None)
    assert (row["committed_offset"], row["log_end_offset"], row["sampled_at"]) == (
        12,
        1000,
        before["sampled_at"],
    )
    assert (group["status"], group["error"], group["lag"]) == ("stale", ADVANCE_FAILED, None)
    assert (group["partitions_total"], group["partitions_unknown"]) == (1, 1)
    assert (row["batch_id"], group["batch_id"]) == (job.batch_id, job.batch_id)
    assert job.failed == [Failed("bad", "OverflowError", "a number of bad", is_new=True)]


def test_what_it_committed_meanwhile_is_known_when_its_tick_succeeds_again(job: Job) -> None:
    job.tick(
        ENDS, [commit(5, group="bad"), commit(5, group="bad", partition=1), commit(5, group="good")]
    )
    job.poisoned = {"bad"}
    job.tick(ENDS, [commit(700, group="bad"), commit(None, group="bad", partition=1)])
    job.tick(ENDS, [commit(10, group="bad", partition=2)])
    assert row_of(job, "bad")["committed_offset"] == 700
    job.poisoned = set()
    job.tick(ENDS)
    found = {
        (row["partition"]): (row["status"], row["lag"], row["error"])
        for row in job.rows
        if row["group"] == "bad"
    }
    assert found == {0: ("ok", 300, None), 2: ("ok", 990, None)}
    group = job.groups["bad"]
    assert (group["status"], group["error"], group["lag"]) == ("ok", None, 1290)
    assert events_of(job, "bad") == ["quarantined", "quarantine_ended"]


def test_no_window_and_no_flow_is_made_of_what_was_not_seen(job: Job) -> None:
    for number in range(9):
        job.tick(ENDS, commits(5 + number))
    consumed = job.groups["bad"]["topic_counters"][0]["consumed"]
    job.poisoned = {"bad"}
    windows = len([row for row in job.history["lag_windows"] if row["group"] == "bad"])
    for number in range(9):
        job.tick(ENDS, commits(100 + number))
    job.poisoned = set()
    job.tick(ENDS, commits(200))
    assert len([row for row in job.history["lag_windows"] if row["group"] == "bad"]) == windows
    assert job.groups["bad"]["topic_counters"][0]["consumed"] == consumed
    for number in range(20):
        job.tick(ENDS, commits(201 + number))
    later = [row for row in job.history["lag_windows"] if row["group"] == "bad"][windows:]
    assert later
    assert all(row["ticks"] == 6 for row in later)


def test_a_group_that_fails_at_once_has_rows_too(job: Job) -> None:
    job.poisoned = {"bad"}
    job.tick(ENDS, [*commits(5), generation(3, {"m": ("t",)}, group="bad")])
    assert (row_of(job, "bad")["status"], job.groups["bad"]["status"]) == ("stale", "stale")
    job.poisoned = set()
    job.tick(ENDS)
    group = job.groups["bad"]
    assert (row_of(job, "bad")["status"], row_of(job, "bad")["lag"]) == ("ok", 995)
    assert (group["generation"], group["members"], group["status"]) == (3, 1, "ok")


def test_group_records_of_the_tick_are_folded_and_kept_as_history(job: Job) -> None:
    job.tick(ENDS, [generation(1, {"m": ("t",)}, group="bad"), commit(5, group="bad")])
    job.poisoned = {"bad"}
    job.tick(ENDS, [generation(2, {"m": ("t",), "n": ("t",)}, group="bad")])
    job.poisoned = set()
    job.tick(ENDS)
    assert (job.groups["bad"]["generation"], job.groups["bad"]["members"]) == (2, 2)
    assert [row["generation"] for row in job.history["generations"]] == [1, 2]


def test_group_records_that_raise_leave_the_members_unknown(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.tick(
        ENDS,
        [
            generation(1, {"m": ("t",)}, group="bad"),
            commit(5, group="bad"),
            commit(5, group="good"),
        ],
    )
    for module in ("laggard.stream.tick.advance", "laggard.stream.tick.quarantined_rows"):
        monkeypatch.setattr(
            f"{module}.fold_records", _failing_for("bad", f"{module}.fold_records", monkeypatch)
        )
    job.tick(ENDS, [generation(2, {"m": ("t",)}, group="bad")])
    assert (job.groups["bad"]["members"], job.groups["bad"]["error"]) == (None, ADVANCE_FAILED)
    job.tick(ENDS)
    group = job.groups["bad"]
    assert (group["status"], group["error"], group["members"]) == ("ok", None, None)
    assert row_of(job, "bad")["lag"] == 995


def _failing_for(group: str, _: str, __: pytest.MonkeyPatch) -> Callable[..., Any]:
    from laggard.rebalance.membership.records import fold_records

    def fold(known: Any, folded: Any, records: Any, *rest: Any) -> Any:
        if any(row["group"] == group for row in records):
            raise KeyError("role")
        return fold_records(known, folded, records, *rest)

    return fold


def test_a_truncation_meanwhile_is_not_forgotten(job: Job) -> None:
    job.tick(ENDS, commits(5, ["bad"]))
    job.poisoned = {"bad"}
    job.tick(ENDS, truncated={0: 0})
    job.poisoned = set()
    job.tick(ENDS)
    assert (row_of(job, "bad")["status"], row_of(job, "bad")["error"]) == (
        "stale",
        COMMIT_TRUNCATED,
    )
    job.next_offset = 0
    job.tick(ENDS, commits(7, ["bad"]))
    assert (row_of(job, "bad")["status"], row_of(job, "bad")["lag"]) == ("ok", 993)


def test_a_row_that_cannot_be_written_costs_its_group_only(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoiled(*given: Any) -> Tables:
        tables = advance(*given)
        rows = tables["partition_status"]
        groups, lags = rows["group"].to_pylist(), rows["lag"].to_pylist()
        lag = [-1 if group == "bad" else lag for group, lag in zip(groups, lags, strict=True)]
        place = rows.schema.get_field_index("lag")
        tables["partition_status"] = rows.set_column(
            place, rows.schema.field(place), pa.array(lag, pa.int64())
        )
        return tables

    monkeypatch.setattr(advance_stage, "advance", spoiled)
    job.tick(ENDS, commits(5))
    assert (row_of(job, "bad")["status"], row_of(job, "good")["status"]) == ("stale", "ok")
    assert [each.exception for each in job.failed] == ["LaggardError"]


def test_a_persistent_failure_is_one_event_and_two_runs_a_tick(job: Job) -> None:
    groups = [f"g{number:03}" for number in range(200)]
    job.poisoned = {"g077"}
    job.tick(ENDS, commits(5, groups))
    assert job.runs <= 2 * 8 + 2  # 2^8 > 200
    for _ in range(5):
        job.runs = 0
        job.tick(ENDS, commits(6, groups))
        assert job.runs == 3  # the others, the group, and no group at all
        assert [each.is_new for each in job.failed] == [False]
    assert events_of(job, "g077") == ["quarantined"]


@pytest.mark.full
def test_when_very_many_groups_fail_the_runs_are_bounded(job: Job) -> None:
    groups = [f"g{number:03}" for number in range(300)]
    job.poisoned = set(groups[::2])
    job.tick(ENDS, commits(5, groups))
    assert job.runs <= 2 * MAX_RUNS
    assert job.poisoned <= {each.group for each in job.failed}
    assert {row["status"] for row in job.rows if row["group"] in job.poisoned} == {"stale"}
    job.poisoned = set()
    job.tick(ENDS)
    assert {row["status"] for row in job.rows} == {"ok"}
    assert len(job.rows) == 300


def test_an_error_that_no_group_causes_is_raised(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Tables:
        raise KeyError("a column that the poll lacks")

    monkeypatch.setattr(advance_stage, "advance", broken)
    with pytest.raises(KeyError, match="a column that the poll lacks"):
        job.tick(ENDS, commits(5))


def test_want_of_memory_is_no_groups_fault(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def starved(*_: Any) -> Tables:
        raise MemoryError

    monkeypatch.setattr(advance_stage, "advance", starved)
    with pytest.raises(MemoryError):
        job.tick(ENDS, commits(5))


NAMES = [f"g{number}" for number in range(12)]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_exactly_the_groups_that_raise_are_set_aside(before: set[str], poisoned: set[str]) -> None:
    schema = Simulation().tables["group_status"].schema
    rows = [{"group": name, "error": ADVANCE_FAILED if name in before else None} for name in NAMES]
    batch = Batch(of_kind(decoded([]), "commit"), [], [], of_kind(decoded([]), "edge"))
    inputs = Inputs(
        Simulation().tables["partition_status"], pa.Table.from_pylist(rows, schema=schema), batch
    )

    def run(part: Inputs) -> Tables:
        if poisoned & set(part.groups):
            raise ValueError
        return {"group_status": part.group_status}

    settled = advance_apart(inputs, run)
    assert {each.group for each in settled.failed} == poisoned
    assert {each.group for each in settled.failed if each.is_new} == poisoned - before
    assert set(settled.recovered) == before - poisoned
    assert sorted(settled.tables["group_status"]["group"].to_pylist()) == sorted(
        set(NAMES) - poisoned
    )


def test_the_log_names_each_group_once_and_not_too_many(caplog: pytest.LogCaptureFixture) -> None:
    failed = [Failed(f"g{number}\n", "KeyError", "role", is_new=number > 0) for number in range(30)]
    quarantine = Quarantine.of(failed[:15]) + Quarantine.from_plain(
        asdict(Quarantine.of(failed[15:]))
    )
    assert (quarantine.groups, quarantine.entered, len(quarantine.named)) == (30, 29, MAX_NAMED)
    assert len(quarantine.columns()["quarantined"]) == MAX_NAMED
    with caplog.at_level(logging.ERROR):
        quarantine.log()
        Quarantine.of(failed[:1]).log()
    assert len(caplog.messages) == MAX_NAMED + 1
    assert all("\n" not in message for message in caplog.messages)
    assert caplog.messages[-1] == "9 more groups are in quarantine: table group_events names them"


@pytest.mark.parametrize(("closing_batch", "is_recorded"), [(7, True), (8, False)])
def test_a_finding_names_the_groups_of_the_tick_that_closed_the_window(
    tmp_path: Path, closing_batch: int, is_recorded: bool
) -> None:
    """Through the tables, as the job writes and reads them."""
    root = str(tmp_path)
    create_tables(root, [schemas.GROUP_EVENTS, schemas.BATCHES])
    quarantine = Quarantine.of([Failed("bad", "OverflowError", "too large", is_new=False)])
    polled_at = simulation.NOON + timedelta(seconds=65)
    same = {"date": polled_at.date(), "kind": "tick", "gap_seq": 0, "polled_at": polled_at}
    rows = [
        same | {"batch_id": 7, **quarantine.columns()},
        same | {"batch_id": 8, **Quarantine().columns()},
    ]
    Writer(root, "c1").write(schemas.BATCHES, to_arrow(schemas.BATCHES, rows), 7)
    options = Options("c", 60, Parameters(), lambda *_: Policy())
    frame = read_cluster(
        root, {}, Window(round(simulation.NOON.timestamp() * 1000), closing_batch), options
    )
    found = cluster_observations(frame, [], options.parameters)
    assert [(each.code, each.severity, dict(each.evidence_text)) for each in found] == (
        [("GROUP_QUARANTINED", WARN, {"groups": "bad", "exceptions": "OverflowError"})]
        if is_recorded
        else []
    )
