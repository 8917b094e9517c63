"""What a cluster may do and the job records rightly: the audit finds no wrong row, through the job's own batches."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from audit.lives import Life
from audit.test_audit import audited, broken
from stream.simulation import commit, generation

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path, window_seconds=20, now=NOON)


def test_one_partition_may_end_in_the_window_in_which_another_one_begins(life: Life) -> None:
    for _ in range(4):
        life.go({0: 50, 1: 50})
    life.go({0: 50, 2: 700}, [commit(None, partition=1)])
    for _ in range(6):
        life.go({0: 50, 2: 50})
    audit = audited(Path(life.root))
    assert broken(audit) == {}
    assert audit.tallies["I6"].checked > 3


def test_a_group_may_have_members_and_no_partition(life: Life) -> None:
    for number in range(6):
        life.go({0: 50}, [generation(number + 1, {"m": ("t",)}, group="members only")])
    audit = audited(Path(life.root))
    assert broken(audit) == {}
    assert audit.tallies["I6"].checked > 3
