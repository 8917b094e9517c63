"""The simulator is right about Kafka: the same stories, played by Java consumers on a real broker, give the same rows.

What a row says must be equal, times as near as heartbeats, commit intervals and batches let them be.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from calibration.agreement import differences, time_differences
from calibration.cast import Story
from calibration.real import play_for_real
from calibration.rows import Rows, rows_by_group
from calibration.simulated import simulate
from calibration.stories import STORIES
from differential.kafka import NoCompilerError
from laggard.demo.broker import Broker

INITIAL_DELAY_MS = "3000"  # Kafka's default, and the simulator's
RUNS = 5
pytestmark = pytest.mark.full  # needs a Java compiler, and minutes
by_story = pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, simulated: dict[str, Rows]) -> dict[str, Rows]:
    """Rows of the real members, of each story from the first run in which it agrees, or else from the last one.

    A busy machine keeps members from their times now and then; where the simulator is wrong, no run agrees.
    """
    agreed: dict[str, Rows] = {}
    for _ in range(RUNS):
        rows = _real_rows(tmp_path_factory.mktemp("calibration"))
        agreed = {
            story.name: rows[story.name] for story in STORIES if not _all_differences(story, rows, simulated)
        } | agreed
        if len(agreed) == len(STORIES):
            break
    return rows | agreed


def _real_rows(folder: Path) -> dict[str, Rows]:
    with Broker(properties={"group.initial.rebalance.delay.ms": INITIAL_DELAY_MS}) as broker:
        try:
            return rows_by_group(play_for_real(broker, folder))
        except NoCompilerError:
            pytest.skip("java has no compiler here (Debian: apt-get install openjdk-17-jdk-headless)")


def _all_differences(story: Story, real: dict[str, Rows], simulated: dict[str, Rows]) -> list[str]:
    pair = (real[story.name], simulated[story.name])
    return [*differences(story, *pair), *time_differences(story, *pair)]


@pytest.fixture(scope="module")
def simulated() -> dict[str, Rows]:
    return {story.name: rows_by_group(simulate(story, 1))[story.name] for story in STORIES}


@pytest.mark.broker
@by_story
def test_the_rows_say_the_same(story: Story, real: dict[str, Rows], simulated: dict[str, Rows]) -> None:
    assert differences(story, real[story.name], simulated[story.name]) == []


@pytest.mark.broker
@by_story
def test_the_times_are_near(story: Story, real: dict[str, Rows], simulated: dict[str, Rows]) -> None:
    assert time_differences(story, real[story.name], simulated[story.name]) == []


@by_story
def test_another_seed_is_no_other_story(story: Story, simulated: dict[str, Rows]) -> None:
    again = rows_by_group(simulate(story, 2))[story.name]
    assert differences(story, again, simulated[story.name]) == []
    assert time_differences(story, again, simulated[story.name]) == []


def test_another_session_is_seen(simulated: dict[str, Rows]) -> None:
    [story] = [each for each in STORIES if each.name == "expiry"]
    longer = replace(story, settings=replace(story.settings, session_ms=12_000))
    rows = rows_by_group(simulate(longer, 1))[story.name]
    assert "rebalances 1 unread_window_seconds: 12.0, simulated 6.0" in differences(story, rows, simulated[story.name])
    assert "rebalances 1 pause_max_seconds" in " ".join(time_differences(story, rows, simulated[story.name]))
