"""Laggard's rows equal the simulated truth: every generation, and every partition after every tick."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.play import Laggard, Played, compacted, recall, run_through_laggard, ticks
from simulator.score import compare, milliseconds
from simulator.stories import STORIES

# seed, and which of its polls are ticks: all, or one of three
RUNS = ((1, 1), pytest.param(2, 3, marks=pytest.mark.full))
HIDDEN = {"hanging_transaction": {"source_blocked"}}  # statuses other than ok that a story may bring


Lag = tuple[str, int | None, int | None, int | None]  # status, committed offset, lag, lost records


def lags(job: Laggard) -> dict[tuple[str, str, int], Lag]:
    rows: list[dict[str, Any]] = job.tables["partition_status"].to_pylist()
    return {
        (row["group"], row["topic"], row["partition"]): tuple(
            row[name] for name in ("status", "committed_offset", "lag", "lost_records")
        )
        for row in rows
        if row["committed_offset"] is not None
    }


def expected_lags(played: Played, number: int) -> dict[tuple[str, str, int], Lag]:
    polled = {(row["topic"], row["partition"]): row for row in played.polls[number].positions}
    found = {}
    for key, position in played.truth.positions[number].items():
        offset, end = position.visible_offset, position.log_end_offset
        if offset is None:
            continue
        if polled[key[1:]]["error"] is not None:
            found[key] = ("no_end_offset", offset, None, None)
        elif offset < position.log_start_offset:
            found[key] = ("below_log_start", offset, None, position.log_start_offset - offset)
        else:
            found[key] = ("ok", offset, end - offset, 0)
    return found


@pytest.mark.parametrize(("seed", "step"), RUNS)
@pytest.mark.parametrize("story", STORIES)
def test_every_row_equals_the_truth(story: str, seed: int, step: int) -> None:
    played, job = recall(story, seed), Laggard()
    for number, polled, records in ticks(played, step):
        job.tick(polled, records)
        expected, found = expected_lags(played, number), lags(job)
        for key, (status, offset, *_) in found.items():
            if status in HIDDEN.get(story, ()):
                assert offset == expected.pop(key)[1]
        assert {key: row for key, row in found.items() if row[0] not in HIDDEN.get(story, ())} == expected
        outcomes = set(job.tables["decoded"]["outcome"].to_pylist()) - {None}
        assert outcomes <= {"record", "tombstone"}
    right, wrong = compare(played, job.history)
    assert wrong == []
    assert right > 0


def test_generations_that_were_never_written_are_counted() -> None:
    gaps = [row["generation_gap"] for row in run_through_laggard(recall("interrupted_sync", 1)).history["generations"]]
    assert gaps[1:] == [1, 3]


@pytest.mark.parametrize("story", ["static_restart", "static_duplicate", "modern_static_restart"])
def test_a_static_member_that_comes_back_is_an_event(story: str) -> None:
    played = recall(story, 1)
    events = [row for row in run_through_laggard(played).history["group_events"] if row["kind"] == "static_replacement"]
    expected = [each["at_ms"] for each in played.truth.replacements]
    assert [milliseconds(row["event_at"]) for row in events] == expected
    assert expected


@pytest.mark.parametrize(
    "story",
    ["rolling_deploy", "static_restart", "group_deleted", "transactional", "modern_upgrade", "modern_downgrade"],
)
def test_a_compacted_topic_leads_to_the_same_state(story: str) -> None:
    played, late = recall(story, 1), Laggard()
    late.tick(played.polls[-1], compacted(played.records))
    assert lags(late) == expected_lags(played, -1)
    whole = run_through_laggard(played)
    names = ["group", "group_type", "group_state", "generation", "members", "topics", "lag"]
    of_late, of_whole = (job.tables["group_status"].select(names).to_pylist() for job in (late, whole))
    assert of_late == of_whole


def test_the_comparison_sees_a_wrong_row() -> None:
    played = recall("static_restart", 1)
    job = run_through_laggard(played)
    assert compare(played, job.history)[1] == []
    job.history["group_members"][0]["assigned"].pop()
    del job.history["generations"][0]
    assert len(compare(played, job.history)[1]) == 2
