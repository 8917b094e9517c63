"""Families C and D as `group_status` counts them: what it does not know is absent, a new group
begins at 0.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exporter.harness import Exporter, Key, names, series
from laggard.diagnosis.parameters import Policy
from laggard.exporter.body.families import FAMILIES
from laggard.rebalance.analytics.causes import CAUSES
from laggard.rebalance.analytics.counters import SECOND_BOUNDS, count_rebalances
from tables.fixtures import NOW, group_row, partition_row, write_batch

FLOWS = {
    "produced_records_total": "produced",
    "consumed_records_total": "consumed",
    "lost_records_total": "lost",
    "commits_total": "commits",
    "noop_commits_total": "noop_commits",
    "rewinds_total": "rewinds",
    "rewound_records_total": "rewound_records",
    "ahead_total": "ahead",
}
COUNTED = {
    "generations_total": 21,
    "interrupted_generations_total": 2,
    "static_restarts_absorbed_total": 3,
    "partitions_moved_total": 40,
    "partitions_moved_avoidable_total": 15,
}
MEASURED = {"time_in_rebalance_ratio": 0.25, "ping_pong": 0.5, "assignment_imbalance": 1.5}
# what the job writes for a group of its first tick
NEW = count_rebalances({}, (), (), 0, None, NOW)


def scrape(root: Path, *groups: dict[str, Any], **options: Any) -> dict[Key, float]:
    write_batch(root, groups=groups)
    exporter = Exporter(root, **options)
    exporter.refresh()
    return exporter.samples()


def counters(topic: str, first: int) -> dict[str, Any]:
    return {
        "topic": topic,
        **{column: first + place for place, column in enumerate(FLOWS.values())},
    }


def test_each_topic_of_a_group_has_its_flow_counters(tmp_path: Path) -> None:
    found = scrape(tmp_path, group_row("g", topic_counters=[counters("a", 10), counters("b", 0)]))
    for topic, first in (("a", 10), ("b", 0)):
        got = [found[series(f"group_{name}", group="g", topic=topic)] for name in FLOWS]
        assert got == [first + place for place in range(len(FLOWS))]


def test_what_became_of_records_is_counted_and_lateness_only_where_a_service_level_is_declared(
    tmp_path: Path,
) -> None:
    outcomes = [{"topic": "a", "skips": 3, "matured": 500, "late": 20}]
    rows = [group_row(name, outcome_counters=outcomes) for name in ("g", "h")] + [group_row("old")]
    found = scrape(tmp_path, *rows, policies={"g": Policy(slo_time_lag_seconds=60)})
    names = ("skips_total", "slo_matured_records_total", "slo_late_records_total")
    got = [
        [found.get(series(f"group_{name}", group=group, topic="a")) for name in names]
        for group in ("g", "h")
    ]
    assert got == [[3, 500, 20], [3, None, None]]
    assert not any(
        "old" in dict(labels).values()
        for name, labels in found
        if name.startswith("laggard_group_s") and "total" in name and "static" not in name
    )


def test_each_counter_and_ratio_is_its_column(tmp_path: Path) -> None:
    found = scrape(
        tmp_path,
        group_row("g", last_rebalance_at=NOW - timedelta(seconds=90), **COUNTED, **MEASURED),
    )
    got = {name: found[series(f"group_{name}", group="g")] for name in COUNTED}
    assert got == COUNTED
    assert found[series("group_time_in_rebalance_ratio", group="g")] == 0.25
    assert found[series("group_ping_pong_ratio", group="g")] == 0.5
    assert found[series("group_assignment_imbalance_ratio", group="g")] == 1.5
    assert (
        found[series("group_last_rebalance_timestamp_seconds", group="g")] == NOW.timestamp() - 90
    )


def test_every_cause_and_change_is_there_and_those_not_seen_are_0(tmp_path: Path) -> None:
    found = scrape(
        tmp_path,
        group_row(
            "g",
            rebalances_total={"member_join": 4, "unknown": 1},
            member_changes_total={"joined": 5},
        ),
    )
    causes = {
        cause: found[series("group_rebalances_total", group="g", cause=cause)] for cause in CAUSES
    }
    assert causes == dict.fromkeys(CAUSES, 0) | {"member_join": 4, "unknown": 1}
    changes = [
        found[series("group_member_changes_total", group="g", change=n)]
        for n in ("joined", "left", "replaced")
    ]
    assert changes == [5, 0, 0]


def test_a_cause_that_a_newer_job_counts_is_not_lost(tmp_path: Path) -> None:
    found = scrape(tmp_path, group_row("g", rebalances_total={"earthquake": 2}))
    assert found[series("group_rebalances_total", group="g", cause="earthquake")] == 2


def test_a_new_group_publishes_0_first(tmp_path: Path) -> None:
    found = scrape(tmp_path, group_row("g", **NEW))
    zeros = [
        key for key in found if key[0].startswith("laggard_group_") and key[0].endswith("_total")
    ]
    assert len(zeros) == len(COUNTED) + len(CAUSES) + 3
    assert {found[key] for key in zeros if "generations_total" not in key[0]} == {0}
    assert found[series("group_rebalance_pause_seconds_count", group="g")] == 0


@pytest.mark.parametrize("name", ["rebalance_duration", "rebalance_pause"])
def test_a_histogram_adds_up_the_stored_counts_per_bucket(tmp_path: Path, name: str) -> None:
    stored = [1, 0, 2, 0, 0, 3, 0, 0, 0, 0, 4]
    found = scrape(tmp_path, group_row("g", **{f"{name}_buckets": stored, f"{name}_sum": 4321.5}))
    buckets = {
        float(dict(labels)["le"]): n
        for (each, labels), n in found.items()
        if each == f"laggard_group_{name}_seconds_bucket"
    }
    bounds = (*map(float, SECOND_BOUNDS), float("inf"))
    assert buckets == {bound: sum(stored[: place + 1]) for place, bound in enumerate(bounds)}
    assert found[series(f"group_{name}_seconds_count", group="g")] == 10
    assert found[series(f"group_{name}_seconds_sum", group="g")] == 4321.5


def test_what_an_older_job_did_not_count_is_absent_rather_than_0(tmp_path: Path) -> None:
    found = scrape(tmp_path, group_row("g", generations_total=None))
    shown = names(found)
    kinds = {
        "laggard_group_members",
        "laggard_group_state",
        "laggard_group_info",
        "laggard_group_generation",
    }
    assert kinds <= shown
    assert not {
        each for each in shown if each.startswith("laggard_group_") and each.endswith("_total")
    }
    assert not {
        each for each in shown if "rebalance" in each or "ping_pong" in each or "imbalance" in each
    }


def test_the_generation_of_a_modern_group_is_its_epoch(tmp_path: Path) -> None:
    found = scrape(
        tmp_path,
        group_row("classic", generation=7, group_epoch=None),
        group_row("modern", generation=None, group_epoch=12),
        group_row("offsets only", generation=None, group_epoch=None),
    )
    got = [
        found.get(series("group_generation", group=name))
        for name in ("classic", "modern", "offsets only")
    ]
    assert got == [7, 12, None]


def test_histograms_of_rebalances_go_after_the_distributions_and_before_any_counter(
    tmp_path: Path,
) -> None:
    groups = [group_row(f"g{n:02d}", **NEW, topic_counters=[counters("t", n)]) for n in range(10)]
    partitions = [partition_row(f"g{n:02d}", "t", 0) for n in range(10)]
    shown = {}
    write_batch(tmp_path, groups=groups, partitions=partitions)
    for max_series in (2_000, 1_300, 1_000):
        exporter = Exporter(tmp_path, max_series=max_series)
        exporter.refresh()
        shown[max_series] = names(exporter.samples())
        assert len(exporter.samples()) <= max_series
    distribution, histogram = (
        f"laggard_group_{name}_bucket"
        for name in ("lag_distribution_records", "rebalance_pause_seconds")
    )
    counter = "laggard_group_rebalances_total"
    assert {distribution, histogram, counter} <= shown[2_000]
    assert {distribution, histogram, counter} & shown[1_300] == {histogram, counter}
    assert {distribution, histogram, counter} & shown[1_000] == {counter}


def test_counters_of_a_topic_without_lag_go_with_it_also_when_its_partitions_are_gone(
    tmp_path: Path,
) -> None:
    groups = [
        group_row(
            f"g{n:02d}",
            **NEW,
            topic_counters=[counters("gone", n), counters("quiet", n), counters("t", n)],
        )
        for n in range(10)
    ]
    rows = [partition_row(f"g{n:02d}", "t", 0) for n in range(10)]
    rows += [partition_row(f"g{n:02d}", "quiet", 0, committed_offset=1000) for n in range(10)]
    write_batch(tmp_path, groups=groups, partitions=rows)
    exporter = Exporter(tmp_path, max_series=900)
    exporter.refresh()
    found = exporter.samples()
    topics = {
        dict(labels)["topic"] for name, labels in found if name == "laggard_group_commits_total"
    }
    assert topics == {"t"}


def test_every_total_is_a_counter_and_every_help_is_one_sentence() -> None:
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.type == "counter"), family.name
        assert family.help.count(". ") == 0, family.name
