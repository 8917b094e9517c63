"""A run's forecasts are measured against its own logs and commits: right forecasts pass, wrong ones
are seen.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.forecasts import forecasts
from scenarios.recordings import record_all
from scenarios.runs import Recorded


@cache
def catching_up() -> tuple[Recorded, list[dict[str, Any]]]:
    """A new group that reads a backlog and is done before the run ends."""
    recorded = next(iter(record_all(SCENARIOS["LA11"], [700])))
    return recorded, diagnose(recorded).windows


@pytest.mark.full
def test_a_backlog_half_gone_is_forecast_within_a_quarter_and_time_lag_within_two_polls() -> None:
    found = forecasts(*catching_up())
    assert [ratio == pytest.approx(1, abs=0.25) for ratio in found.drains] == [True]
    assert (found.abstained, found.beyond) == (0, 0)
    assert found.time_lags > 100


@pytest.mark.parametrize(("factor", "ratios"), [(2.0, 2), (None, 0)])
def test_a_forecast_that_is_off_or_missing_is_seen(factor: float | None, ratios: int) -> None:
    recorded, windows = catching_up()
    changed = [
        {**row, "drain_seconds": None if factor is None else factor * row["drain_seconds"]}
        for row in windows
        if row["drain_seconds"] is not None
    ]
    right, found = forecasts(recorded, windows), forecasts(recorded, changed)
    assert found.drains == [ratios * ratio for ratio in right.drains if factor]
    assert found.abstained == (factor is None)


def test_a_time_lag_that_is_off_is_seen() -> None:
    recorded, windows = catching_up()
    table = recorded.tables["lag_windows"]
    at = table.schema.get_field_index("time_lag_seconds")
    later = table.set_column(
        at, table.schema.field(at), pa.compute.add(table["time_lag_seconds"], 40.0)
    )
    found = forecasts(Recorded(recorded.run, {**recorded.tables, "lag_windows": later}), windows)
    assert found.beyond == found.time_lags == forecasts(recorded, windows).time_lags
    assert found.worst_error >= 39
