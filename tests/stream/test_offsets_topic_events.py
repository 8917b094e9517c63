"""The offsets topic grew or is another one: what is recorded of it, and what the job does next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.rules.cluster import OFFSETS_NEWS_WINDOWS
from laggard.diagnosis.rules.registry import cluster_observations
from laggard.diagnosis.rules.rule import WARN
from laggard.errors import REFUSED, LaggardError
from laggard.lag.tick import Tick
from laggard.sources.snapshot import OFFSETS_PARTITIONS, Snapshot
from laggard.stream.evaluation.evaluating import read_cluster
from laggard.stream.evaluation.reading import Options, Window
from laggard.stream.job.identity import Identity
from laggard.stream.tick.offsets_topic_events import (
    check_same_topic,
    offsets_topic_events,
    with_events,
)
from laggard.tables.delta import Writer, create_tables
from laggard.tables.schema import schemas
from stream.simulation import NOON

TICK = Tick("c", 7, 7, 7, NOON, 60, True, False, False, True)
LAST = {"source_to": dict.fromkeys(range(50), 3), "source_high_watermark": None}
TO_ADMIN = Identity("cluster", "admin", "/tables", 60, replaces="c1", replaced_topic_id="old")
FROM_ADMIN = Identity("cluster", "new", "/tables", 60, replaces="c1", replaced_topic_id="admin")
REBUILD = Identity("cluster", "new", "/tables", 60, replaces="c1", replaced_topic_id="old")
WINDOW_MS = round(NOON.timestamp() * 1000)


def polled(partitions: int, topic_id: str = "new", unanswered: tuple[int, ...] = ()) -> Snapshot:
    rows = [
        {"offsets_partition": number, "high_watermark": None if number in unanswered else 3}
        for number in range(partitions)
    ]
    return Snapshot(
        7,
        0,
        offsets_topic_id=topic_id,
        offsets_partitions=pa.Table.from_pylist(rows, schema=OFFSETS_PARTITIONS),
    )


def details(
    last: dict[str, Any] | None, snapshot: Snapshot, rebuild: Identity | None
) -> list[dict[str, str]]:
    return [dict(row["detail"]) for row in offsets_topic_events(last, snapshot, TICK, rebuild)]


GROWN = {"partitions_from": "50", "partitions_to": "100"}
GONE_TO_25 = {"partitions_from": "50", "partitions_to": "25"}
MADE_ANEW = {"topic_id_from": "old", "topic_id_to": "new"}


@pytest.mark.parametrize(
    ("last", "snapshot", "rebuild", "expected"),
    [
        (LAST, polled(100), None, [GROWN]),
        (LAST, polled(50), None, []),
        (None, polled(50), None, []),  # the first start
        (LAST, polled(0), None, []),  # a poll that failed
        (LAST, polled(100, unanswered=(50, 99)), None, [GROWN]),
        (LAST, polled(50, unanswered=(49,)), None, []),
        # reported with the batch before
        (LAST | {"source_high_watermark": {99: 0}}, polled(100), None, []),
        (LAST, polled(50), REBUILD, [MADE_ANEW]),
        # nothing happened to the topic: the gap row says source_changed
        (LAST, polled(0), TO_ADMIN, []),
        (LAST | {"source_to": {}}, polled(50), FROM_ADMIN, []),
        (
            LAST | {"source_to": {}, "source_high_watermark": {49: 3}},
            polled(25),
            REBUILD,
            [GONE_TO_25 | MADE_ANEW],
        ),
    ],
)
def test_another_number_of_partitions_is_an_event(
    last: dict[str, Any] | None,
    snapshot: Snapshot,
    rebuild: Identity | None,
    expected: list[dict[str, str]],
) -> None:
    assert details(last, snapshot, rebuild) == expected


def test_the_same_change_is_the_same_event_whoever_tells_it_again() -> None:
    (first,), (again,) = (offsets_topic_events(LAST, polled(100), TICK) for _ in range(2))
    assert first == again
    assert (first["group"], first["kind"], first["event_at"]) == (
        None,
        "offsets_topic_changed",
        NOON,
    )


def test_another_topic_of_that_name_is_refused_with_both_ids() -> None:
    with pytest.raises(LaggardError) as raised:
        check_same_topic("old", "new")
    assert raised.value.exit_code == REFUSED
    assert ("old" in raised.value.cause, "new" in raised.value.cause) == (True, True)


@pytest.mark.parametrize(("known", "seen"), [("new", "new"), ("", "new"), ("old", "")])
def test_an_id_that_is_unknown_is_no_other_topic(known: str, seen: str) -> None:
    check_same_topic(known, seen)


@pytest.mark.parametrize(
    ("windows", "is_news"),
    [(-1, False), (0, True), (OFFSETS_NEWS_WINDOWS - 1, True), (OFFSETS_NEWS_WINDOWS, False)],
)
def test_the_finding_says_what_changed_in_the_windows_that_follow(
    tmp_path: Path, windows: int, is_news: bool
) -> None:
    """Through the tables, as the job writes and reads them."""
    root = str(tmp_path)
    create_tables(root, [schemas.GROUP_EVENTS, schemas.BATCHES])
    files = with_events({"lag_windows": []}, offsets_topic_events(LAST, polled(100), TICK), root)
    assert files["lag_windows"] == []
    writer = Writer(root, "c1")
    version = writer.commit(schemas.GROUP_EVENTS, files["group_events"], TICK.batch_id)

    window = Window(WINDOW_MS + 60_000 * windows, TICK.batch_id)
    options = Options("c", 60, Parameters(), lambda *_: Policy())
    frame = read_cluster(root, {"group_events": version}, window, options)
    found = cluster_observations(frame, [], options.parameters)

    assert [(each.code, each.severity, dict(each.evidence)) for each in found] == (
        [("OFFSETS_TOPIC_CHANGED", WARN, {"partitions_from": 50.0, "partitions_to": 100.0})]
        if is_news
        else []
    )


def test_a_batch_without_events_keeps_the_files_of_its_tasks(tmp_path: Path) -> None:
    assert with_events({"group_events": []}, [], str(tmp_path)) == {"group_events": []}
    assert list(tmp_path.iterdir()) == []
