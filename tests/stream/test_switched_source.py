"""`cluster.source` of a table root that has history is changed, there and back: nothing is made up,
nothing lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from laggard.cli.main import main
from laggard.sources.snapshot import ANSWERS, COMMITTED, GROUPS, OFFSETS_PARTITIONS, Snapshot
from laggard.tables.schema.schemas import TABLES
from stream.polled import description
from stream.simulation import Row, generation
from stream.test_whole_batch import ENDS, OTHERS, raw, steady
from stream.whole_batch import Given, WholeBatches


@dataclass
class SwitchedBatches(WholeBatches):
    """Whole batches of either source."""

    committed: list[Row] = field(default_factory=list)

    def switch(self, source: str) -> None:
        self.topic_id = source
        self.start()

    def _snapshot(self, ends: list[Row], *, answers: bool) -> Snapshot:
        found = super()._snapshot(ends, answers=answers)
        if self.topic_id != "admin":
            return found
        groups = sorted({row["group"] for row in self.committed})
        texts = [
            {"group": name, "is_asked": True, "description": description("m", topics=())}
            for name in groups
        ]
        listed = [
            {"group": name, "group_state": "Stable", "protocol_type": "consumer"} for name in groups
        ]
        return replace(
            found,
            offsets_partitions=OFFSETS_PARTITIONS.empty_table(),
            groups=pa.Table.from_pylist(
                [row | {"group_type": "classic", "coordinator": 1} for row in listed], GROUPS
            ),
            answers=pa.Table.from_pylist(texts, ANSWERS),
            committed=pa.Table.from_pylist(self.committed, COMMITTED),
            pending_groups=0,
            lists_all_topics=True,
        )


def changes(job: WholeBatches) -> list[str]:
    """Reasons of gaps, without those for windows that the change leaves unfilled, as it may fall on
    a window's end.
    """
    reasons = [gap["gap_reason"] for gap in job.rows("batches") if gap["kind"] == "gap"]
    return [reason for reason in reasons if reason != "catching_up"]


def keys(job: WholeBatches, name: str) -> list[tuple[object, ...]]:
    return [tuple(row[column] for column in TABLES[name].key) for row in job.rows(name)]


def standing(job: WholeBatches) -> dict[tuple[str, str, int], tuple[int | None, int | None, str]]:
    names = ("committed_offset", "lag", "status")
    return {
        (row["group"], row["topic"], row["partition"]): tuple(row[name] for name in names)
        for row in job.rows("partition_status")
    }


@pytest.fixture
def job(tmp_path: Path) -> SwitchedBatches:
    found = SwitchedBatches(tmp_path)
    for number in range(3):
        found.tick(ENDS, steady(found, number))
    return found


def test_a_switch_begins_again_with_a_gap_and_invents_nothing(job: SwitchedBatches) -> None:
    before, events = standing(job), len(job.rows("group_events"))
    windows = len(job.rows("lag_windows"))
    places = [dict(zip(("group", "topic", "partition"), place, strict=True)) for place in before]
    job.committed = [
        place | {"committed_offset": before[tuple(place.values())][0]} for place in places
    ]  # type: ignore[index]
    job.committed = [row for row in job.committed if row["committed_offset"] is not None]
    job.switch("admin")
    row = job.tick(ENDS, [])
    assert row["kind"] == "tick"
    known = {place: each for place, each in before.items() if each[0] is not None}
    assert {place: each[:2] for place, each in standing(job).items() if each[0] is not None} == {
        place: each[:2] for place, each in known.items()
    }
    assert changes(job) == ["source_changed"]
    assert job.rows("group_events")[events:] == []
    assert len(job.rows("lag_windows")) >= windows
    for _ in range(4):
        row = job.tick(ENDS, [])
    assert (row["kind"], row["source_to"] or {}) == ("tick", {})

    job.switch("topic")
    job.position = 0
    assert [each["status"] for each in job.rows("partition_status")] != []
    job.tick(ENDS, steady(job, 9))
    assert changes(job) == ["source_changed", "source_changed"]
    assert job.rows("group_events")[events:] == []


def test_what_is_read_again_after_a_switch_there_and_back_has_its_rows_of_history_once(
    job: SwitchedBatches,
) -> None:
    odd: Given = (b"\x00\x07", b"no record", round(job.now.timestamp() * 1000))
    job.tick(ENDS, [odd])
    known = {
        name: keys(job, name)
        for name in ("generations", "group_members", "rebalances", "dead_letters")
    }
    assert [len(known[name]) for name in ("generations", "dead_letters")] == [3, 1]
    job.switch("admin")
    job.tick(ENDS, [])
    later = [generation(2, {"m": ("t",), "n": ("t",)}, group=group) for group in OTHERS[:2]]
    job.switch("topic")
    job.tick(ENDS, [raw(job, each) for each in later])  # the topic whole, and these
    job.start()
    job.tick(ENDS, steady(job, 10))
    for name, before in known.items():
        now = keys(job, name)
        assert len(set(now)) == len(now), name
        assert set(before) <= set(now), name
    assert {row["generation"] for row in job.rows("generations") if row["group"] == OTHERS[0]} == {
        1,
        2,
    }
    assert main(["audit", "--set", f'job.tables="{job.root}"']) == 0


def test_every_page_of_the_command_line_and_the_exporter_read_polled_tables(
    job: SwitchedBatches, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {place: each for place, each in standing(job).items() if each[0] is not None}
    job.committed = [
        {
            **dict(zip(("group", "topic", "partition"), place, strict=True)),
            "committed_offset": each[0],
        }
        for place, each in known.items()
    ]
    job.switch("admin")
    for _ in range(4):
        job.tick(ENDS, [])
    samples = job.scrape()
    names = {key[0] if isinstance(key, tuple) else key for key in samples}
    assert any("group_lag_records" in str(name) for name in names)
    assert [
        name for name in names if "group_commits" in str(name) or "group_generations" in str(name)
    ] == []
    group = min(place[0] for place in known)
    for words in (
        ["status"],
        ["status", "--rebalances"],
        ["explain", group],
        ["findings"],
        ["query", "--list"],
    ):
        assert main([*words, "--set", f'job.tables="{job.root}"']) in (0, 1), words
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert "None" not in out, out


def test_the_poller_begins_with_the_groups_that_have_rows_those_first_that_waited_longest(
    job: SwitchedBatches,
) -> None:
    assert WholeBatches(job.folder / "other").batches.known_groups(are_asked=True) == []
    job.switch("admin")
    assert (
        job.batches.known_groups(are_asked=True) == []
    )  # the rows are of another source: nothing is compared with them
    job.committed = [{"group": "b", "topic": "t", "partition": 0, "committed_offset": 1}]
    job.tick(ENDS, [])
    job.committed = [{"group": "a", "topic": "t", "partition": 0, "committed_offset": 1}]
    job.tick(ENDS, [])
    job.start()
    assert job.batches.known_groups(are_asked=True) == ["b", "a"]
