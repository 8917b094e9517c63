"""`laggard diagnose`: a replay over real tables gives, byte for byte, what the code of the stream
has stored.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable

from cli import evaluated_run
from cli.declared import data_of
from cli.evaluated_run import MINUTE, batch_of, evaluate, hot, record
from diagnosis.fluid import NOON, Fluid, Row
from laggard.cli.main import main
from laggard.config import sections
from laggard.errors import NOT_FOUND, OK, REFUSED, USAGE
from laggard.stream.evaluation import replay as replaying
from laggard.stream.evaluation.replay import memory_before, replay
from laggard.tables.arrow import to_arrow
from laggard.tables.schema.schemas import FINDINGS, GROUP_WINDOWS, Table

FIRST, MIDDLE, LAST = 7, 13, 22  # windows
# so that the few windows before are a day's baseline already
SHORT = {"baseline_min_windows": 3, "baseline_skip_seconds": 60.0}
OPTIONS = replace(
    evaluated_run.OPTIONS, parameters=replace(evaluated_run.OPTIONS.parameters, **SHORT)
)


@pytest.fixture(autouse=True)
def _empty_folder_and_short_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sections, "_THRESHOLDS", OPTIONS.parameters)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`fraud` whose second member is stalled from 12:09 to 12:17, `billing` with a hot partition
    from 12:12 on.
    """
    capacity = np.full((3, LAST + 1), 1000.0)
    capacity[1, 9:17] = 0.0
    capacity[:, 17:] = 5000.0
    groups = [
        Fluid(np.full((12, LAST + 1), 75.0), capacity, group="fraud"),
        hot(LAST + 1, group="billing", begin=MIDDLE - 1),
    ]
    root = tmp_path_factory.mktemp("evaluated")
    # between the end of a window and the poll that closed it
    record(root, groups, [event(MIDDLE + 2, timedelta(seconds=2))])
    evaluate(root, FIRST, options=OPTIONS)
    return root


def event(window: int, after: timedelta) -> Row:
    """Offsets of `billing` that jumped so long after the end of a window, read by the batch that
    closed it.
    """
    begin = NOON + window * MINUTE
    return {
        "date": begin.date(), "cluster": "prod", "group": "billing", "event_id": "e",
        "status": "ok",
        "batch_id": batch_of(begin), "event_at": begin + MINUTE + after, "kind": "offset_skip",
        "topic": "orders",
        "partition": 3, "from_offset": 5, "to_offset": 1005, "records": 1000,
    }  # fmt: skip


def stored(root: Path, table: Table) -> list[Row]:
    rows: list[Row] = (
        DeltaTable(str(root / table.name)).to_pyarrow_table().select(table.names).to_pylist()
    )
    return rows


def time_of(window: int) -> str:
    return f"{NOON + window * MINUTE:%Y-%m-%dT%H:%M}"


def diagnose(root: Path, *words: str, first: int = MIDDLE, last: int = LAST) -> int:
    span = ["--from", time_of(first), "--to", time_of(last + 1)]
    keys = {"job.tables": root, "cluster.name": "prod"}
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    return main(["diagnose", *span, *sets, *words])


def data(
    root: Path, capsys: pytest.CaptureFixture[str], *words: str, **span: int
) -> dict[str, Any]:
    diagnose(root, "--json", *words, **span)
    found: dict[str, Any] = data_of("diagnose", capsys)
    return found


def numbers(rows: list[Row]) -> list[tuple[str, int]]:
    """Finding and number of each row, in one order."""
    return sorted((row["finding_id"], row["seq"]) for row in rows)


def as_stored(table: Table, rows: list[Row]) -> list[str]:
    """Rows as the table holds them, in one order."""
    return sorted(map(repr, to_arrow(table, rows).to_pylist()))


def of_windows(rows: list[Row], time: str, first: int) -> list[Row]:
    return [row for row in rows if row[time] >= NOON + first * MINUTE]


@pytest.mark.parametrize(("first", "at_once"), [(FIRST, 60), (MIDDLE, 60), (MIDDLE, 4), (LAST, 60)])
def test_a_replay_from_the_middle_gives_byte_for_byte_what_is_stored(
    evaluated: Path, monkeypatch: pytest.MonkeyPatch, first: int, at_once: int
) -> None:
    monkeypatch.setattr(replaying, "_CHUNK", at_once)
    begin, end = (round((NOON + window * MINUTE).timestamp() * 1000) for window in (first, LAST))
    steps = list(replay(str(evaluated), begin, end, memory_before(str(evaluated), begin), OPTIONS))
    assert len(steps) == LAST + 1 - first
    findings = [row for step in steps for row in step.findings]
    windows = [row for step in steps for row in step.windows]
    # a finding's time is the end of its window
    assert as_stored(FINDINGS, findings) == sorted(
        map(repr, of_windows(stored(evaluated, FINDINGS), "at", first + 1))
    )
    assert as_stored(GROUP_WINDOWS, windows) == sorted(
        map(repr, of_windows(stored(evaluated, GROUP_WINDOWS), "window_start", first))
    )


def test_the_story_has_what_a_replay_can_get_wrong(evaluated: Path) -> None:
    """Findings that are open, pending or closing at its begin, and an event that the closing poll
    has seen already.
    """
    rows = stored(evaluated, FINDINGS)
    middle = NOON + MIDDLE * MINUTE
    opened = {row["finding_id"] for row in rows if row["at"] <= middle}
    assert {row["event"] for row in rows if row["at"] > middle and row["finding_id"] in opened} >= {
        "closed"
    }
    assert any(row["event"] == "opened" and row["started_at"] < middle < row["at"] for row in rows)
    (skip,) = (row for row in rows if row["code"] == "OFFSET_SKIP" and row["event"] == "opened")
    assert {row["sub_cause"] for row in stored(evaluated, GROUP_WINDOWS)} >= {None, "arrival_up"}
    assert skip["at"] == NOON + (MIDDLE + 4) * MINUTE


def test_a_range_begins_with_the_stored_state_and_gives_the_stored_findings(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnose(evaluated) == OK
    rows = of_windows(stored(evaluated, FINDINGS), "at", MIDDLE + 1)
    assert (
        f"{LAST + 1 - MIDDLE} windows evaluated, with the state stored at 2026-11-20 12:13:00 "
        f"UTC; {len(rows)} rows" in capsys.readouterr().out
    )
    assert numbers(data(evaluated, capsys)["findings"]) == numbers(rows)


def test_another_threshold_gives_other_findings(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stalls(*words: str) -> int:
        rows = data(evaluated, capsys, *words, first=FIRST)["findings"]
        return sum(row["code"] == "PARTITION_STALLED" for row in rows)

    assert stalls()
    assert not stalls("--set", "diagnosis.stall_min_seconds=3600")


def test_without_an_evaluated_window_before_it_begins_with_nothing_and_says_so(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnose(evaluated, first=FIRST) == OK
    assert (
        ", without earlier state, as no window before it was evaluated"
        in capsys.readouterr().out.splitlines()[0]
    )
    assert data(evaluated, capsys, first=FIRST)["remembered_at"] is None


def test_only_the_groups_asked_for_are_shown(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(evaluated, capsys, "--group", "fr*")["findings"]
    rows = of_windows(stored(evaluated, FINDINGS), "at", MIDDLE + 1)
    assert numbers(found) == numbers([row for row in rows if row["group"] == "fraud"])


def test_the_rows_are_written_to_another_place_and_history_stays(
    evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: DeltaTable(str(path)).version() for path in evaluated.iterdir()}
    place = tmp_path / "again"
    assert diagnose(evaluated, "--output", str(place)) == OK
    assert {path.name for path in place.iterdir()} == {"group_windows", "findings"}
    assert f"written to {place}" in capsys.readouterr().out
    assert numbers(stored(place, FINDINGS)) == numbers(data(evaluated, capsys)["findings"])
    assert len(stored(place, GROUP_WINDOWS)) == 2 * (LAST + 1 - MIDDLE)
    assert {path.name: DeltaTable(str(path)).version() for path in evaluated.iterdir()} == before
    # neither there a second time, nor where history is
    for there in (place, evaluated):
        assert diagnose(evaluated, "--output", str(there)) == REFUSED
        assert "holds tables already" in capsys.readouterr().err


def test_a_range_without_a_window_is_a_wrong_use(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnose(evaluated, first=MIDDLE, last=MIDDLE - 1) == USAGE
    assert "no window of 60 s lies between" in capsys.readouterr().err


def test_a_glob_that_fits_no_group_says_so(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diagnose(evaluated, "--group", "no*") == NOT_FOUND
    assert 'no group matches "no*"' in capsys.readouterr().err


def test_an_end_after_the_newest_tick_is_that_tick(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = data(evaluated, capsys)
    assert data(evaluated, capsys, "--to", "2999-01-01") == whole
    diagnose(evaluated, "--to", "2999-01-01")
    assert "evaluated up to the newest tick, of 2026-11-20 12:2" in capsys.readouterr().err
    assert diagnose(evaluated, "--from", "now", "--to", "2999-01-01") == USAGE
