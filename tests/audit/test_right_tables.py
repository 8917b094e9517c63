"""What a cluster may do and the job records rightly: the audit finds no wrong row, through the
job's own batches.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from audit.lives import Life
from audit.test_audit import audited, broken
from laggard.stream.tick import advance_stage
from laggard.stream.tick.quarantine import Inputs
from laggard.tables.arrow import to_arrow
from laggard.tables.schema.schemas import LAG_WINDOWS
from stream.simulation import commit, generation

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path, window_seconds=20, now=NOON)


def test_one_partition_may_end_in_the_window_in_which_another_one_begins(life: Life) -> None:
    for _ in range(4):
        life.go({0: 50, 1: 50})
    life.go({0: 50, 2: 700}, [commit(None, partition=1)])
    for _ in range(3):
        life.go({0: 50, 2: 50})
    audit = audited(Path(life.root))
    assert broken(audit) == {}
    assert audit.tallies["I6"].checked > 2


def test_a_group_may_have_members_and_no_partition(life: Life) -> None:
    for number in range(5):
        life.go({0: 50}, [generation(number + 1, {"m": ("t",)}, group="members only")])
    audit = audited(Path(life.root))
    assert broken(audit) == {}
    assert audit.tallies["I6"].checked > 2


@pytest.mark.full
@pytest.mark.parametrize("batches", [1, pytest.param(2, marks=pytest.mark.full)])
def test_a_group_may_be_in_quarantine(
    batches: int, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any tick of a window on, while it lasts and after it."""
    advance = advance_stage.advance

    def fail(poll: Any, groups: Any, batch: Any, *rest: Any) -> Any:
        if "g" in Inputs(poll, groups, batch).groups:
            raise OverflowError
        return advance(poll, groups, batch, *rest)

    others = [commit(7, group=f"other {number}") for number in range(8)]
    for _ in range(5 + batches):
        life.go({0: 50}, others)
    monkeypatch.setattr(advance_stage, "advance", fail)
    for _ in range(4):
        life.go({0: 50})
    assert {row["status"] for row in life.rows("partition_status") if row["group"] == "g"} == {
        "stale"
    }
    assert broken(audited(Path(life.root))) == {}
    monkeypatch.setattr(advance_stage, "advance", advance)
    for _ in range(4):
        life.go({0: 50})
    assert broken(audited(Path(life.root))) == {}


@pytest.mark.full
def test_rows_of_batches_may_end_before_those_of_windows(tmp_path: Path) -> None:
    """With `windows_days` above `batches_days`, the gap rows go before the windows that they
    explain.
    """
    life = Life(tmp_path, window_seconds=60, now=NOON.replace(hour=23, minute=50))
    for seconds in [30] * 5 + [210] + [60] * 6:
        life.go({0: 50}, seconds=seconds)
    assert audited(Path(life.root)).totals.gaps_known_since is None
    DeltaTable(f"{life.root}/batches").delete("date <= '2026-11-20'")
    audit = audited(Path(life.root))
    assert broken(audit) == {}
    assert audit.totals.gaps_known_since == min(row["polled_at"] for row in life.rows("batches"))


@pytest.mark.full
@pytest.mark.parametrize("column", ["produced", pytest.param("consumed", marks=pytest.mark.full)])
def test_what_moved_while_nobody_watched_is_not_known(column: str, life: Life) -> None:
    for seconds in [10] * 5 + [100] + [10] * 3:
        life.go({0: 50}, seconds=seconds)
    assert broken(audited(Path(life.root))) == {}
    rows = life.rows("lag_windows")
    [end] = [row["gap_to"] for row in life.rows("batches") if row["kind"] == "gap"]
    after = min(
        (row for row in rows if row["window_end"] > end), key=lambda row: row["window_start"]
    )
    assert after[column] is None
    after[column] = 1100
    place = f"{life.root}/lag_windows"
    write_deltalake(place, to_arrow(LAG_WINDOWS, rows), mode="overwrite")
    version = DeltaTable(place).version()
    found = broken(audited(Path(life.root), lag_windows=version))
    assert [(each.what, each.key["window_start"]) for each in found["I3"].samples] == [
        (column, after["window_start"])
    ]
