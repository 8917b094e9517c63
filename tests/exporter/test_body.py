"""The body says what the tables say: a second, slow computation of every number, and what is
unknown is absent.
"""

from __future__ import annotations

import json
import random
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exporter.harness import Exporter, names, series
from laggard.answers.answering import Answering
from laggard.exporter.api import Question
from laggard.exporter.body.families import FAMILIES, GROUP_STATES, RECORD_BOUNDS, SECOND_BOUNDS
from laggard.exporter.options import Selection
from laggard.lag.status import STATUSES
from laggard.tables.schema.schemas import TABLES
from tables.fixtures import NOW, group_row, partition_row, topic_row, write_batch

PARTIAL = ("lag_records", "time_lag_seconds")


def random_partitions(seed: int) -> list[dict[str, Any]]:
    """Six group–topics of up to 40 partitions, most of them ok, some censored, some without a time
    lag.
    """
    rng = random.Random(seed)
    rows = []
    for group in ("billing", "audit", "zeta"):
        for topic in ("orders", "payments"):
            faults = rng.choice([(), ("no_commit",), STATUSES[:-1]])
            for partition in range(rng.randint(1, 40)):
                status = rng.choice(faults) if faults and rng.random() < 0.2 else "ok"
                values: dict[str, Any] = {
                    "commit_timestamp": None
                    if status == "no_commit"
                    else NOW - timedelta(seconds=rng.randint(0, 999))
                }
                if status == "ok":
                    lag = rng.choice([0, 1, 10, 11, rng.randint(0, 1000)])
                    values |= {
                        "committed_offset": 1000 - lag,
                        "time_lag_seconds": rng.choice([lag / 7, lag / 7, lag / 7, None]),
                    }
                    values["time_lag_censored"] = (
                        None if values["time_lag_seconds"] is None else rng.random() < 0.02
                    )
                if status == "below_log_start":
                    values |= {
                        "committed_offset": 10,
                        "log_start_offset": 300,
                        "readable_records": 700,
                    }
                rows.append(partition_row(group, topic, partition, status, **values))
    rng.shuffle(rows)
    return rows


def expected_sums(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """The catalogue's formulas for one group–topic, row by row."""
    ok = [row for row in rows if row["status"] == "ok"]
    bare = [row for row in rows if row["status"] == "no_commit"]
    is_partial = any(row["status"] not in ("ok", "no_commit") for row in rows)
    timed = [row for row in ok if row["time_lag_seconds"] is not None]
    # the same tie-break as the export order: the larger lag, then the smaller partition
    worst = max(
        timed,
        key=lambda row: (row["time_lag_seconds"], row["lag"], -row["partition"]),
        default=None,
    )
    commits = [row["commit_timestamp"].timestamp() for row in rows if row["commit_timestamp"]]
    lagging = [row["commit_timestamp"].timestamp() for row in ok if row["lag"] > 0]
    known = worst and worst["time_lag_seconds"]
    is_censored = any(row["time_lag_censored"] for row in timed)
    lag = sum(row["lag"] for row in ok) if ok else None
    time_lag = None if is_partial or is_censored or len(timed) < len(ok) else known
    censored = float(is_censored) if timed else None
    return {
        "lag_known_records": lag,
        "lag_records": None if is_partial else lag,
        "max_lag_records": max((row["lag"] for row in ok), default=None),
        "readable_records": sum(
            row["readable_records"] for row in rows if row["status"] == "below_log_start"
        ),
        "uncommitted_records": sum(row["log_end_offset"] - row["log_start_offset"] for row in bare),
        "time_lag_known_seconds": known,
        "time_lag_seconds": time_lag,
        "time_lag_error_seconds": worst and worst["time_lag_error_seconds"],
        "time_lag_censored": censored,
        "retention_used_ratio": max((row["lag"] / 1000 for row in ok), default=None),
        "oldest_commit_timestamp_seconds": min(lagging, default=None),
        "newest_commit_timestamp_seconds": max(commits, default=None),
    }


@pytest.mark.parametrize("seed", range(4))
def test_every_group_topic_sum_equals_a_plain_computation_over_the_rows(
    tmp_path: Path, seed: int
) -> None:
    rows = random_partitions(seed)
    write_batch(tmp_path, partitions=rows)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    for group, topic in {(row["group"], row["topic"]) for row in rows}:
        mine = [row for row in rows if (row["group"], row["topic"]) == (group, topic)]
        expected = expected_sums(mine)
        got = {
            name: found.get(series(f"group_{name}", group=group, topic=topic)) for name in expected
        }
        assert got == pytest.approx(expected), (group, topic)
        for status in STATUSES:
            count = sum(row["status"] == status for row in mine)
            assert (
                found[series("group_partitions", group=group, topic=topic, status=status)] == count
            )


@pytest.mark.parametrize(
    ("name", "column", "bounds"),
    [
        ("lag_distribution_records", "lag", RECORD_BOUNDS),
        ("time_lag_distribution_seconds", "time_lag_seconds", SECOND_BOUNDS),
    ],
)
def test_distributions_count_ok_partitions_below_each_bound(
    tmp_path: Path, name: str, column: str, bounds: tuple[int, ...]
) -> None:
    rows = random_partitions(7)
    write_batch(tmp_path, partitions=rows)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    values = [
        row[column]
        for row in rows
        if (row["group"], row["topic"], row["status"]) == ("audit", "orders", "ok")
        and row[column] is not None
    ]
    found = exporter.samples()
    labels = {"group": "audit", "topic": "orders"}
    buckets = {
        float(dict(key[1])["le"]): n
        for key, n in found.items()
        if key[0] == f"laggard_group_{name}_bucket" and labels.items() <= dict(key[1]).items()
    }
    assert buckets == {
        **{float(bound): sum(value <= bound for value in values) for bound in bounds},
        float("inf"): len(values),
    }
    assert found[series(f"group_{name}_gcount", **labels)] == len(values)
    assert found[series(f"group_{name}_gsum", **labels)] == pytest.approx(sum(values))


def test_the_sums_are_absent_while_one_committed_partition_is_not_ok_and_the_known_part_stays(
    tmp_path: Path,
) -> None:
    write_batch(
        tmp_path,
        partitions=[partition_row("g", "t", 0), partition_row("g", "t", 1, "no_end_offset")],
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert [series(f"group_{name}", group="g", topic="t") in found for name in PARTIAL] == [
        False,
        False,
    ]
    assert found[series("group_lag_known_records", group="g", topic="t")] == 100
    assert found[series("group_time_lag_known_seconds", group="g", topic="t")] == 10


def test_a_partition_that_was_never_committed_does_not_make_the_sum_partial(tmp_path: Path) -> None:
    write_batch(
        tmp_path, partitions=[partition_row("g", "t", 0), partition_row("g", "t", 1, "no_commit")]
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert exporter.samples()[series("group_lag_records", group="g", topic="t")] == 100


def test_a_group_that_never_committed_has_no_lag_rather_than_zero(tmp_path: Path) -> None:
    write_batch(tmp_path, partitions=[partition_row("g", "t", 0, "no_commit")])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert not {
        series(f"group_{name}", group="g", topic="t") for name in (*PARTIAL, "lag_known_records")
    } & set(found)
    assert found[series("group_uncommitted_records", group="g", topic="t")] == 1000


def test_uncommitted_records_are_absent_while_an_end_is_unknown(tmp_path: Path) -> None:
    write_batch(
        tmp_path,
        partitions=[
            partition_row("g", "t", 0, "no_commit"),
            partition_row("g", "t", 1, "no_commit", log_start_offset=None),
        ],
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert series("group_uncommitted_records", group="g", topic="t") not in exporter.samples()


def test_the_worst_partitions_and_those_with_a_bad_status_are_exported(tmp_path: Path) -> None:
    rows = [partition_row("g", "t", n, committed_offset=1000 - n) for n in range(40)]
    rows += [partition_row("g", "t", 40 + n, "topic_missing") for n in range(25)]
    write_batch(tmp_path, partitions=rows)
    exporter = Exporter(tmp_path, partition_top_k=3)
    exporter.refresh()
    found = exporter.samples()
    lags = {
        dict(labels)["partition"]: value
        for (name, labels), value in found.items()
        if name == "laggard_partition_lag_records"
    }
    bad = [
        labels
        for name, labels in found
        if name == "laggard_partition_status" and ("status", "topic_missing") in labels
    ]
    assert lags == {"39": 39, "38": 38, "37": 37}
    assert len(bad) == 20


def test_a_topic_recreated_gives_one_series_per_partition(tmp_path: Path) -> None:
    old = partition_row("g", "t", 0, "topic_recreated", topic_id="a", poll_id=1, log_end_offset=5)
    write_batch(tmp_path, partitions=[old, partition_row("g", "t", 0, topic_id="b", poll_id=2)])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()  # fails on a series that comes twice
    assert found[series("partition_log_end_offset", topic="t", partition=0)] == 1000


def test_a_log_end_is_that_of_the_newest_poll_whichever_group_reads_it(tmp_path: Path) -> None:
    polls = {"a": (1, 990), "b": (2, 1000), "c": (1, 980)}
    rows = [
        partition_row(group, "t", 0, poll_id=poll, log_end_offset=end)
        for group, (poll, end) in polls.items()
    ]
    write_batch(tmp_path, partitions=rows)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert exporter.samples()[series("partition_log_end_offset", topic="t", partition=0)] == 1000


def test_a_topic_recreated_within_the_window_counts_once_with_its_newest_poll(
    tmp_path: Path,
) -> None:
    old = topic_row("t", 0, topic_id="a", poll_id=1, log_end_offset=7)
    write_batch(tmp_path, topics=[old, topic_row("t", 0, topic_id="b", poll_id=2)])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert [
        found[series(name, topic="t")] for name in ("topic_partitions", "topic_retained_records")
    ] == [1, 1000]


def test_topics_come_from_the_newest_window_only_and_are_absent_where_a_partition_lacks_a_value(
    tmp_path: Path,
) -> None:
    earlier = {"window_start": NOW - timedelta(minutes=2), "arrival_rate": 99.0}
    topics = [
        topic_row("a", 0),
        topic_row("a", 1),
        topic_row("a", 2, **earlier),
        topic_row("b", 0, arrival_rate=None),
        topic_row("b", 1),
    ]
    write_batch(tmp_path, topics=topics)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert found[series("topic_arrival_records_per_second", topic="a")] == 20
    assert found[series("topic_partitions", topic="a")] == 2
    assert found[series("topic_retained_records", topic="b")] == 2000
    assert series("topic_arrival_records_per_second", topic="b") not in found


def test_a_group_is_in_exactly_one_state_and_a_new_kafka_state_reads_unknown(
    tmp_path: Path,
) -> None:
    write_batch(
        tmp_path, groups=[group_row("g"), group_row("h", group_state="Meditating", members=None)]
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    for group, state in (("g", "Stable"), ("h", "Unknown")):
        current = [
            name
            for name in GROUP_STATES
            if found[series("group_state", group=group, laggard_group_state=name)]
        ]
        assert current == [state]
    assert series("group_members", group="h") not in found
    assert found[series("groups", state="Unknown")] == 1


def test_the_source_partitions_show_how_far_behind_and_how_blocked_they_are(tmp_path: Path) -> None:
    write_batch(tmp_path, source_to={0: 19, 3: 20})  # partition 0 was read past the poll's 17
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert [found[series("source_lag_records", offsets_partition=n)] for n in (0, 3)] == [0, 10]
    assert [found[series("source_blocked_records", offsets_partition=n)] for n in (0, 3)] == [0, 8]
    assert series("source_blocked_timestamp_seconds", offsets_partition=0) not in found


def test_every_declared_column_exists_and_every_family_says_its_formula() -> None:
    columns = {f"{table.name}.{column}" for table in TABLES.values() for column in table.names}
    for family in FAMILIES:
        assert family.help.endswith("."), family.name
        named = {
            f"{table}.{column}"
            for table, column in re.findall(r"([a-z_]+)\.([a-z_]+)", family.help)
        }
        assert named <= columns, family.name


def test_the_series_gauge_counts_the_series_of_the_body(tmp_path: Path) -> None:
    write_batch(tmp_path, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert found["laggard_series", frozenset()] == len(found)
    assert "process_cpu_seconds_total" in names(found)


def test_each_offsets_partition_says_what_lies_in_it(tmp_path: Path) -> None:
    write_batch(
        tmp_path,
        partitions=[
            partition_row("g", "t", 0),
            partition_row("g", "t", 1),
            partition_row("h", "t", 0, "no_commit"),
        ],
        groups=[group_row("g"), group_row("h"), group_row("polled", offsets_partition=None)],
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    expected = {  # of partitions 0 and 3; batch_row has the offsets
        "source_groups": (0, 2),
        "source_live_keys": (0, 2),
        "source_log_records": (15, 25),
        "source_commits_total": (0, 30),
    }
    for name, values in expected.items():
        assert tuple(found[series(name, offsets_partition=n)] for n in (0, 3)) == values
    assert found[series("source_coordinator", offsets_partition=3, coordinator=2)] == 1
    assert found[series("clock_skew_seconds")] == 0.25
    assert found[series("poll_seconds_total", api="list_offsets")] == 1.5


def test_a_row_of_an_older_job_has_none_of_the_families_of_later_columns(tmp_path: Path) -> None:
    later = (
        "source_log_start_offset",
        "source_coordinator",
        "source_commits_total",
        "poll_seconds_total",
    )
    write_batch(tmp_path, clock_skew_seconds=None, **dict.fromkeys(later))
    exporter = Exporter(tmp_path)
    exporter.refresh()
    gone = {
        "source_log_records",
        "source_coordinator",
        "source_commits_total",
        "poll_seconds_total",
        "clock_skew_seconds",
    }
    assert {f"laggard_{name}" for name in gone}.isdisjoint(names(exporter.samples()))


def test_the_worst_verdict_of_the_partitions_that_have_one_is_shown(tmp_path: Path) -> None:
    partitions = [
        partition_row("g", "t", 0, verdict="slow"),
        partition_row("g", "t", 1, verdict="rewound"),
        partition_row("g", "t", 2, verdict=None),
        partition_row("new", "t", 0, verdict=None),
    ]
    write_batch(tmp_path, partitions=partitions, groups=[group_row("g"), group_row("new")])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    shown = {
        labels: value
        for (name, labels), value in exporter.samples().items()
        if name == "laggard_group_verdict"
    }
    assert {dict(labels)["laggard_group_verdict"] for labels in shown} == {
        "ok",
        "slow",
        "stopped",
        "stalled",
        "rewound",
    }
    assert [dict(labels)["laggard_group_verdict"] for labels, value in shown.items() if value] == [
        "rewound"
    ]
    assert {dict(labels)["group"] for labels in shown} == {"g"}


def test_a_group_is_ok_only_if_each_partition_that_has_a_commit_has_a_verdict(
    tmp_path: Path,
) -> None:
    partitions = [
        *(partition_row(group, "t", 0) for group in ("part", "shed", "whole", "split")),
        partition_row("part", "t", 1, "below_log_start", committed_offset=5, log_start_offset=40),
        partition_row("whole", "t", 1, "no_commit"),
        partition_row("split", "u", 0, verdict=None),
    ]
    groups = [group_row(name) for name in ("part", "split", "whole")]
    write_batch(tmp_path, partitions=partitions, groups=[*groups, group_row("shed", shed_keys=3)])
    exporter = Exporter(tmp_path, selection=Selection(compat=("burrow",)))
    exporter.refresh()
    samples = exporter.samples()
    shown = {dict(labels)["group"] for name, labels in samples if name == "laggard_group_verdict"}
    assert shown == {"whole", "split"}  # of split its topic t only
    burrow = {
        dict(labels)["consumer_group"]
        for name, labels in samples
        if name == "burrow_kafka_consumer_status"
    }
    assert burrow == {"whole"}
    question = Question("/api/v1/groups", [], exporter.publisher.published.roots, exporter.clock())
    rows = json.loads(Answering(60)(question).body)["groups"]
    assert {row["group"]: row["verdict"] for row in rows} == dict.fromkeys(
        ("part", "shed", "split")
    ) | {"whole": "ok"}
