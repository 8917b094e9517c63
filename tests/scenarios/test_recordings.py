"""A kept recording is what would be recorded now, and only runs that are named are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios import recordings
from scenarios.catalogue import SCENARIOS
from scenarios.runs import Run, record, simulate


def run_of(name: str, seed: int = 0) -> Run:
    return simulate(SCENARIOS[name], seed)


def test_a_recording_is_read_as_it_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    run = run_of("LA5")
    (fresh,) = record([run])
    assert recordings.recorded([run])[0].tables == fresh.tables

    def refuse(*_: Any) -> Any:
        raise AssertionError("recorded twice")

    monkeypatch.setattr(recordings, "record", refuse)
    kept = recordings.recorded([run])[0].tables
    assert kept == fresh.tables
    assert {name: table.schema for name, table in kept.items()} == {
        name: table.schema for name, table in fresh.tables.items()
    }
    with pytest.raises(AssertionError, match="recorded twice"):
        recordings.recorded([run_of("LA5", seed=1)])
    monkeypatch.setattr(recordings, "code_digest", lambda: "of other code")
    with pytest.raises(AssertionError, match="recorded twice"):
        recordings.recorded([run])


def test_a_run_that_is_not_of_the_catalogue_is_refused() -> None:
    run = run_of("LA5")
    other = replace(run, scenario=replace(run.scenario, watched_from=1.0))
    with pytest.raises(ValueError, match="LA5-0-0"):
        recordings.recorded([other])
