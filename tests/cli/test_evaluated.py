"""Which findings belong on the page of a group, and in which order."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from cli.test_findings import finding
from laggard.answers.evaluated import read_diagnosis
from tables.fixtures import CLUSTER, NOW, Row, write_rows

MINUTE = timedelta(minutes=1)


def evaluated(root: Path, *rows: Row, to: timedelta = timedelta(0)) -> Path:
    start = NOW - MINUTE - to
    state = {
        "date": start.date(),
        "cluster": CLUSTER,
        "group": "",
        "window_start": start,
        "status": "ok",
        "batch_id": 1,
    }
    write_rows(root, "finding_state", [state])
    if rows:
        write_rows(root, "findings", rows)
    return root


def codes(root: Path, group: str = "fraud", after: timedelta = timedelta(0)) -> list[str]:
    return [row["code"] for row in read_diagnosis(str(root), group, NOW + after, 60).findings]


def test_the_primary_leads_and_what_another_explains_is_counted(tmp_path: Path) -> None:
    evaluated(
        tmp_path,
        finding("a", code="DATA_LOST", role="symptom", severity="page"),
        finding("b", code="SLOW_MEMBER", role="contributing"),
        finding("c", code="IDLE_MEMBERS", role="note", severity="info"),
        finding("d", code="PARTITION_STALLED", role="primary"),
        finding("e", code="CAPACITY_SHORTAGE", role="suppressed"),
        finding("f", code="COMMITS_STOPPED", group="another"),
    )
    assert codes(tmp_path) == ["PARTITION_STALLED", "DATA_LOST", "SLOW_MEMBER", "IDLE_MEMBERS"]
    assert read_diagnosis(str(tmp_path), "fraud", NOW, 60).suppressed == 1


def test_a_finding_of_the_cluster_is_reported_to_the_groups_that_it_names(tmp_path: Path) -> None:
    cluster = {"group": None, "topic": None, "partitions": [], "code": "SHARED_SINK"}
    evaluated(
        tmp_path,
        finding("a", evidence_text={"groups": "billing, fraud"}, **cluster),
        finding("b", code="CAPACITY_SHORTAGE", started_at=NOW - MINUTE),
    )
    # its own comes first, though it is younger
    assert codes(tmp_path) == ["CAPACITY_SHORTAGE", "SHARED_SINK"]
    assert codes(tmp_path, "billing") == ["SHARED_SINK"]
    assert codes(tmp_path, "frau") == []


def test_what_ended_is_open_no_longer_and_was_open_before(tmp_path: Path) -> None:
    evaluated(
        tmp_path,
        finding("a", NOW - 10 * MINUTE),
        finding(
            "a", NOW - 4 * MINUTE, 1, "closed", closed_at=NOW - 4 * MINUTE, close_reason="cleared"
        ),
    )
    evaluated(tmp_path, to=5 * MINUTE)
    assert codes(tmp_path) == []
    assert codes(tmp_path, after=-5 * MINUTE) == ["PARTITION_STALLED"]


@pytest.mark.parametrize(
    ("late", "is_old"),
    [(5 * MINUTE, False), (5 * MINUTE + timedelta(seconds=59), False), (6 * MINUTE, True)],
)
def test_the_rules_speak_for_five_windows_more(
    tmp_path: Path, late: timedelta, is_old: bool
) -> None:
    found = read_diagnosis(str(evaluated(tmp_path, finding("a"))), "fraud", NOW + late, 60)
    assert (found.is_old, found.is_current) == (is_old, not is_old)


def test_a_window_that_has_not_ended_at_that_moment_does_not_count(tmp_path: Path) -> None:
    evaluated(tmp_path)
    assert read_diagnosis(str(tmp_path), "fraud", NOW, 60).evaluated_to == NOW
    assert (
        read_diagnosis(str(tmp_path), "fraud", NOW - timedelta(microseconds=1), 60).evaluated_to
        is None
    )
