"""Names of other exporters: served only where asked, for all partitions, and absent if we do not
know.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import encoder
from exporter.harness import Clock, Exporter, names
from laggard.config.sections import TOOLS
from laggard.exporter.body.compat_families import COMPAT, KMINION_ASSIGNED, KMINION_TOPIC_MEMBERS
from laggard.exporter.body.render import OPENMETRICS, TEXT
from laggard.exporter.collectors.compat import CompatCollector, count_least
from laggard.exporter.options import Selection
from laggard.exporter.snapshot import load_snapshot
from laggard.tables.published import newest_batch
from stream.simulation import commit, end, generation
from stream.whole_batch import WholeBatches
from tables.fixtures import group_row, partition_row, topic_row, write_batch

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def write_tables(root: Path) -> None:
    """Group whole reads two partitions, group part cannot read one of two."""
    counters = [{"topic": "t", "commits": 7}, {"topic": "u", "commits": 5}]
    partitions = [
        partition_row("whole", "t", 0, committed_offset=990, verdict="slow"),
        partition_row(
            "whole", "t", 1, committed_offset=900, verdict="stalled", log_start_offset=40
        ),
        partition_row("part", "t", 0, committed_offset=700, verdict=None),
        partition_row("part", "t", 1, "below_log_start", committed_offset=5, log_start_offset=40),
    ]
    groups = [
        group_row("whole", lag=110, topic_counters=counters),
        group_row("part", lag=None, members=0, group_state="Empty", assignor=None),
    ]
    write_batch(
        root, partitions=partitions, groups=groups, topics=[topic_row("t", n) for n in range(2)]
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    root = tmp_path_factory.mktemp("tables")
    write_tables(root)
    exporter = Exporter(root, partition_top_k=0, selection=Selection(compat=TOOLS))
    exporter.refresh()
    return exporter.samples()


def value(found: Samples, name: str, **labels: Any) -> float | None:
    return found.get((name, frozenset((key, str(each)) for key, each in labels.items())))


def test_every_family_of_every_tool_is_served_with_the_labels_declared(found: Samples) -> None:
    for family in COMPAT:
        # these rows have no group records; see below
        if family in (KMINION_TOPIC_MEMBERS, KMINION_ASSIGNED):
            continue
        shown = [{key for key, _ in labels} for name, labels in found if name == family.name]
        assert shown, family.name
        assert {frozenset(each) for each in shown} == {frozenset(family.labels)}


def test_none_is_served_unless_asked(tmp_path: Path) -> None:
    write_tables(tmp_path)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert {family.name for family in COMPAT}.isdisjoint(names(exporter.samples()))


def test_burrow(found: Samples) -> None:
    group = {"cluster": "prod", "consumer_group": "whole"}
    status = "burrow_kafka_topic_partition_status"
    assert value(found, "burrow_kafka_consumer_lag_total", **group) == 110
    assert value(found, "burrow_kafka_consumer_status", **group) == 3
    assert [value(found, status, **group, topic="t", partition=n) for n in (0, 1)] == [2, 5]
    assert (
        value(found, "burrow_kafka_consumer_status", **group | {"consumer_group": "part"}) is None
    )
    assert (
        value(found, "burrow_kafka_consumer_lag_total", **group | {"consumer_group": "part"})
        is None
    )
    assert (
        value(found, "burrow_kafka_consumer_partition_lag", **group, topic="t", partition=0) == 10
    )
    assert (
        value(found, "burrow_kafka_topic_partition_offset", cluster="prod", topic="t", partition=0)
        == 1000
    )


def test_kafka_exporter(found: Samples) -> None:
    whole, part = (
        {"cluster": "prod", "consumergroup": group, "topic": "t"} for group in ("whole", "part")
    )
    assert value(found, "kafka_consumergroup_lag", **whole, partition=1) == 100
    assert value(found, "kafka_consumergroup_lag_sum", **whole) == 110
    assert value(found, "kafka_consumergroup_uncommitted_offsets", **whole, partition=1) == 100
    assert value(found, "kafka_consumergroup_uncommitted_offsets_sum", **whole) == 110
    assert value(found, "kafka_consumergroup_current_offset_sum", **whole) == 1890
    for name in ("lag_sum", "uncommitted_offsets_sum", "current_offset_sum"):
        assert value(found, f"kafka_consumergroup_{name}", **part) is None
    for name in ("lag", "uncommitted_offsets"):
        assert value(found, f"kafka_consumergroup_{name}", **part, partition=1) is None
    members = [
        value(found, "kafka_consumergroup_members", cluster="prod", consumergroup=n)
        for n in ("whole", "part")
    ]
    assert members == [2, 0]
    assert value(found, "kafka_consumergroup_current_offset", **part, partition=1) == 5
    assert (
        value(found, "kafka_topic_partition_oldest_offset", cluster="prod", topic="t", partition=1)
        == 40
    )
    assert value(found, "kafka_topic_partitions", cluster="prod", topic="t") == 2


def test_kafka_lag_exporter(found: Samples) -> None:
    whole = {"cluster_name": "prod", "group": "whole"}
    empty = dict.fromkeys(("member_host", "consumer_id", "client_id"), "")
    assert (
        value(
            found, "kafka_consumergroup_group_lag_seconds", **whole, topic="t", partition=1, **empty
        )
        == 10
    )
    grouped = whole | {"is_simple_consumer": "false"}
    assert value(found, "kafka_consumergroup_group_max_lag", **grouped) == 100
    assert value(found, "kafka_consumergroup_group_max_lag_seconds", **grouped) == 10
    assert value(found, "kafka_consumergroup_group_max_lag", **grouped | {"group": "part"}) is None
    assert value(found, "kafka_consumergroup_poll_time_ms", cluster_name="prod") == 500


def test_a_group_that_only_commits_is_a_simple_consumer(tmp_path: Path) -> None:
    types = {"simple": "true", "consumer": "false", None: ""}
    write_batch(
        tmp_path,
        partitions=[partition_row(str(kind), "t", 0) for kind in types],
        groups=[group_row(str(kind), group_type=kind) for kind in types],
    )
    exporter = Exporter(tmp_path, selection=Selection(compat=("kafka_lag_exporter",)))
    exporter.refresh()
    shown = [
        dict(labels)
        for name, labels in exporter.samples()
        if name == "kafka_consumergroup_group_max_lag"
    ]
    assert {each["group"]: each["is_simple_consumer"] for each in shown} == {
        str(k): each for k, each in types.items()
    }


def test_kminion(found: Samples) -> None:
    whole = {"cluster": "prod", "group_id": "whole"}
    info = {
        "protocol": "range",
        "protocol_type": "consumer",
        "state": "Stable",
        "coordinator_id": 2,
    }
    assert value(found, "kminion_kafka_consumer_group_info", **whole, **info) == 1
    info |= {"protocol": "", "state": "Empty"}
    assert (
        value(found, "kminion_kafka_consumer_group_info", **whole | {"group_id": "part"}, **info)
        == 0
    )
    assert value(found, "kminion_kafka_consumer_group_offset_commits_total", **whole) == 12
    assert value(found, "kminion_kafka_consumer_group_topic_lag", **whole, topic_name="t") == 110
    assert (
        value(found, "kminion_kafka_topic_high_water_mark_sum", cluster="prod", topic_name="t")
        == 2000
    )
    assert (
        value(found, "kminion_kafka_topic_low_water_mark_sum", cluster="prod", topic_name="t") == 40
    )


def write_members(root: Path) -> tuple[Path, Clock]:
    """Run a job over a generation in which member a has partitions 0 and 1, b has 2, and nobody has
    3.
    """
    held = {"a": [0, 1], "b": [2], "idle": []}
    blobs = {
        member: (
            encoder.subscription({"version": 0, "topics": ("t",), "user_data": None}),
            encoder.assignment(
                {
                    "version": 0,
                    "assigned_partitions": [{"topic": "t", "partitions": each}],
                    "user_data": None,
                }
            ),
        )
        for member, each in held.items()
    }
    records = [generation(1, dict.fromkeys(held, ("t",)), blobs=blobs), commit(5)]
    job = WholeBatches(root)
    given = [(each.key, each.value, round(job.now.timestamp() * 1000)) for each in records]
    job.tick([end(10, partition=number, start=0) for number in range(4)], given)
    return Path(job.root), Clock(job.now.timestamp() + 1)


def test_labels_of_members_are_filled_where_asked(tmp_path: Path) -> None:
    root, clock = write_members(tmp_path)
    shown = {}
    for is_asked in (False, True):
        selection = Selection(compat=("kafka_lag_exporter",), compat_member_labels=is_asked)
        exporter = Exporter(root, clock, selection=selection)
        exporter.refresh()
        labels = [
            dict(each)
            for name, each in exporter.samples()
            if name == "kafka_consumergroup_group_offset"
        ]
        shown[is_asked] = {
            (n["partition"], n["member_host"], n["consumer_id"], n["client_id"]) for n in labels
        }
    assert shown == {False: {("0", "", "", "")}, True: {("0", "/10.0.0.1", "", "client")}}


def test_kminion_counts_who_has_partitions_of_a_topic(tmp_path: Path) -> None:
    root, clock = write_members(tmp_path)
    exporter = Exporter(root, clock, selection=Selection(compat=("kminion",)))
    exporter.refresh()
    found, labels = exporter.samples(), {"cluster": "prod", "group_id": "g", "topic_name": "t"}
    assert value(found, "kminion_kafka_consumer_group_topic_members", **labels) == 2
    assert value(found, "kminion_kafka_consumer_group_topic_assigned_partitions", **labels) == 3


def test_they_go_first_when_a_body_is_too_big(tmp_path: Path) -> None:
    write_tables(tmp_path)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    own = len(exporter.samples())
    exporter = Exporter(tmp_path, max_series=own + 100, selection=Selection(compat=TOOLS))
    exporter.refresh()
    left = names(exporter.samples())
    assert {family.name for family in COMPAT}.isdisjoint(left)
    assert "laggard_partition_log_end_offset" in left


def test_they_are_not_made_where_they_cannot_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(tmp_path)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    own = len(exporter.samples())
    made = []
    monkeypatch.setattr(CompatCollector, "collect", lambda each: made.append(each) or iter(()))
    exporter = Exporter(tmp_path, max_series=own + 20, selection=Selection(compat=TOOLS))
    exporter.refresh()
    assert made == []
    assert exporter.samples()["laggard_series_withheld", frozenset({("level", "compat")})] > 20


@pytest.mark.parametrize("tool", TOOLS)
def test_the_least_count_is_that_of_the_series_by_partition(tmp_path: Path, tool: str) -> None:
    write_tables(tmp_path)
    snapshot = load_snapshot(str(tmp_path), newest_batch(str(tmp_path)), Selection(compat=(tool,)))
    labels = [
        set(sample.labels)
        for metric in CompatCollector(snapshot).collect()
        for sample in metric.samples
    ]
    groups, partitions = (
        {"consumer_group", "consumergroup", "group", "group_id"},
        {"partition", "partition_id"},
    )
    assert (
        count_least(snapshot)
        == sum(bool(each & groups and each & partitions) for each in labels)
        > 0
    )


@pytest.mark.parametrize("name", [TEXT, OPENMETRICS])
def test_the_names_equal_the_golden_file(tmp_path: Path, name: str) -> None:
    write_tables(tmp_path)
    exporter = Exporter(tmp_path, partition_top_k=0, selection=Selection(compat=TOOLS))
    body = exporter.refresh().bodies(exporter.clock())[name].plain.decode()
    shown = {family.base_name for family in COMPAT} | {family.name for family in COMPAT}
    lines = [
        line
        for line in body.splitlines(keepends=True)
        if re.split(r"[ {]", line.removeprefix("# HELP ").removeprefix("# TYPE "))[0] in shown
    ]
    path = Path(__file__).parent / "golden" / f"compat_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text("".join(lines))
    assert "".join(lines) == path.read_text()
