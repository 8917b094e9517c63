"""What the rules say reaches Prometheus while it is news: unknown is absent, old is absent, closed
is absent.
"""

from __future__ import annotations

import math
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import Fluid, evaluate
from exporter.harness import Exporter, Key, names, series
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.verdict.reasons import VERDICTS
from laggard.exporter import evaluated as evaluated_module
from laggard.exporter.evaluated import EvaluatedReader
from tables.fixtures import (
    NOW,
    finding_row,
    group_row,
    partition_row,
    topic_row,
    window_row,
    write_batch,
    write_evaluated,
    write_rows,
)

MINUTE = timedelta(minutes=1)
SHORTAGE = series(
    "finding_active",
    group="g",
    topic="t",
    code="CAPACITY_SHORTAGE",
    severity="warn",
    role="primary",
)
EVALUATED = {
    "laggard_group_lag_gini_ratio",
    "laggard_group_lag_shape",
    "laggard_group_drain_seconds",
    "laggard_group_desired_consumers",
    "laggard_group_scale_verdict",
    "laggard_finding_active",
    "laggard_findings_opened_total",
}


def write_tick(root: Path, batch_id: int = 1, minutes: float = 0) -> None:
    write_batch(
        root,
        batch_id,
        NOW + timedelta(minutes=minutes),
        partitions=[partition_row("g", "t", 0)],
        groups=[group_row("g")],
        topics=[topic_row("t", 0)],
    )


def evaluate_minute(root: Path, minutes: int = 0, *findings: dict[str, Any], **values: Any) -> None:
    """The window that ends so many minutes after NOW."""
    write_evaluated(
        root, NOW + minutes * MINUTE, windows=[window_row("g", "t", **values)], findings=findings
    )


def scrape(root: Path, policy: Policy | None = None, **values: Any) -> dict[Key, float]:
    """What a scrape gets when the newest window of group g has these values."""
    write_tick(root)
    evaluate_minute(root, **values)
    exporter = Exporter(root, policies={"g": policy or Policy()}, idle_seconds=600.0)
    exporter.refresh()
    return exporter.samples()


def follow(exporter: Exporter, batch_id: int, minutes: float) -> dict[Key, float]:
    """The next batch, and what a scrape gets ten seconds after it."""
    write_tick(exporter.root, batch_id, minutes)
    exporter.clock.now = (NOW + timedelta(minutes=minutes)).timestamp() + 10
    exporter.refresh()
    return exporter.samples()


def state(found: dict[Key, float], name: str, **labels: str) -> str:
    """The one state that is on."""
    family = f"laggard_{name}"
    wanted = {"cluster": "prod", **labels}.items()
    (on,) = [
        dict(key)[family]
        for (each, key), value in found.items()
        if each == family and value and wanted <= key
    ]
    return on


def test_each_number_of_the_newest_window_is_its_column(tmp_path: Path) -> None:
    found = scrape(tmp_path, slo_breach_seconds=90.0)
    row = window_row("g", "t", slo_breach_seconds=90.0)
    columns = {
        "group_lag_floor_records": "floor_records",
        "group_lag_gini_ratio": "gini",
        "group_lag_top_decile_share_ratio": "top_decile_share",
        "group_lag_effective_partitions": "n_eff",
        "group_lag_slope_records_per_second": "slope",
        "group_drain_seconds": "drain_seconds",
        "group_drain_at_capacity_seconds": "drain_at_capacity_seconds",
        "group_slo_breach_seconds": "slo_breach_seconds",
        "group_loss_seconds": "loss_seconds",
    }
    assert {name: found[series(name, group="g", topic="t")] for name in columns} == {
        name: row[column] for name, column in columns.items()
    }
    assert found[series("group_members_ceiling", group="g")] == 6
    assert found[series("group_member_capacity_records_per_second", group="g")] == 8
    assert found[series("findings_timestamp_seconds")] == NOW.timestamp()


def test_shape_trend_and_verdict_are_one_state_each(tmp_path: Path) -> None:
    found = scrape(
        tmp_path,
        shape="concentrated",
        arrival_shape="mixed",
        trend="sawtooth",
        scale_verdict="NO_IDLE",
    )
    assert state(found, "group_lag_shape", group="g", topic="t") == "concentrated"
    assert state(found, "group_arrival_shape", group="g", topic="t") == "mixed"
    assert state(found, "group_lag_trend", group="g", topic="t") == "sawtooth"
    assert state(found, "group_scale_verdict", group="g") == "NO_IDLE"
    assert sum(name == "laggard_group_scale_verdict" for name, _ in found) == len(VERDICTS) == 15


def test_what_is_not_known_is_absent(tmp_path: Path) -> None:
    unknown = dict.fromkeys(
        ("floor_records", "gini", "n_eff", "top_decile_share", "slope", "drain_seconds",
        "loss_seconds",
         "drain_at_capacity_seconds", "slo_breach_seconds", "capacity", "members_ceiling",
         "members_desired"),
    )  # fmt: skip
    found = scrape(tmp_path, **unknown, trend="abstain", scale_verdict="UNKNOWN")
    shown = {name for name, labels in found if ("group", "g") in labels}
    evaluated = {
        "lag_gini",
        "top_decile",
        "effective",
        "slope",
        "drain",
        "loss",
        "slo_",
        "floor",
        "capacity",
        "ceiling",
    }
    assert [name for name in shown for part in evaluated if part in name] == []
    assert "laggard_group_desired_consumers" not in shown
    assert state(found, "group_lag_trend", group="g", topic="t") == "abstain"
    assert state(found, "group_scale_verdict", group="g") == "UNKNOWN"


def test_infinity_stands_for_never_in_two_families_only(tmp_path: Path) -> None:
    never = dict.fromkeys(
        ("drain_seconds", "loss_seconds", "drain_at_capacity_seconds", "slo_breach_seconds"),
        math.inf,
    )
    found = scrape(tmp_path, **never)
    assert {
        name
        for (name, labels), value in found.items()
        if value == math.inf and ("group", "g") in labels
    } == {
        "laggard_group_drain_seconds",
        "laggard_group_loss_seconds",
    }
    assert not {
        "laggard_group_drain_at_capacity_seconds",
        "laggard_group_slo_breach_seconds",
    } & names(found)


@pytest.mark.parametrize(("behind", "is_shown"), [(5, True), (5.5, False)])
def test_rules_more_than_5_windows_behind_say_nothing_and_lag_goes_on(
    tmp_path: Path, behind: float, *, is_shown: bool
) -> None:
    write_tick(tmp_path)
    evaluate_minute(tmp_path, 0, finding_row("CAPACITY_SHORTAGE", "g", topic="t"))
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert names(exporter.samples()) >= EVALUATED
    found = follow(exporter, 2, behind)
    assert names(found) & EVALUATED == (EVALUATED if is_shown else set())
    assert found[series("group_lag_records", group="g", topic="t")] == 100
    assert found[series("topic_partitions", topic="t")] == 1
    assert found[series("findings_timestamp_seconds")] == NOW.timestamp()


def test_findings_are_shown_while_they_are_open(tmp_path: Path) -> None:
    write_tick(tmp_path)
    evaluate_minute(tmp_path, 0, finding_row("CAPACITY_SHORTAGE", "g", topic="t"))
    exporter = Exporter(tmp_path)
    exporter.refresh()
    before = exporter.samples()
    evaluate_minute(tmp_path, 1)
    meanwhile = follow(exporter, 2, 1)
    evaluate_minute(tmp_path, 2, finding_row("CAPACITY_SHORTAGE", "g", "closed", topic="t", seq=1))
    assert [SHORTAGE in found for found in (before, meanwhile, follow(exporter, 3, 2))] == [
        True,
        True,
        False,
    ]


def test_an_update_replaces_what_was_said_before(tmp_path: Path) -> None:
    write_tick(tmp_path)
    evaluate_minute(tmp_path, 0, finding_row("CAPACITY_SHORTAGE", "g", topic="t"))
    exporter = Exporter(tmp_path)
    exporter.refresh()
    worse = finding_row(
        "CAPACITY_SHORTAGE", "g", "updated", topic="t", seq=1, severity="page", role="contributing"
    )
    evaluate_minute(tmp_path, 1, worse)
    found = follow(exporter, 2, 1)
    shown = [dict(labels) for name, labels in found if name == "laggard_finding_active"]
    assert [(each["severity"], each["role"]) for each in shown] == [("page", "contributing")]


def test_a_finding_that_is_suppressed_or_a_guess_is_not_shown(tmp_path: Path) -> None:
    write_tick(tmp_path)
    evaluate_minute(
        tmp_path,
        0,
        finding_row("SLOW_MEMBER", "g", role="suppressed"),
        finding_row("CRASH_LOOP", "g", confidence=0.29),
        finding_row("DATA_LOST", "g", role="symptom", severity="page", confidence=0.3),
        finding_row("MONITOR_BLIND", None),
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    shown = [
        dict(labels) for name, labels in exporter.samples() if name == "laggard_finding_active"
    ]
    assert {(each["code"], each["group"], each["topic"]) for each in shown} == {
        ("DATA_LOST", "g", ""),
        ("MONITOR_BLIND", "", ""),
    }


def test_findings_of_one_code_on_several_partitions_are_one_series(tmp_path: Path) -> None:
    write_tick(tmp_path)
    twice = [finding_row("PARTITION_STALLED", "g", topic="t", finding_id=str(n)) for n in range(2)]
    evaluate_minute(tmp_path, 0, *twice)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert sum(name == "laggard_finding_active" for name, _ in found) == 1
    assert found[series("findings_opened_total", code="PARTITION_STALLED", severity="warn")] == 2


def test_openings_are_counted_from_0_and_go_on_after_a_restart(tmp_path: Path) -> None:
    opened = series("findings_opened_total", code="CAPACITY_SHORTAGE", severity="warn")
    write_tick(tmp_path)
    evaluate_minute(tmp_path)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    seen = [exporter.samples()[opened]]
    for minute in range(1, 4):
        events = [finding_row("CAPACITY_SHORTAGE", "g", finding_id=str(minute))]
        events += [
            finding_row("CAPACITY_SHORTAGE", "g", "closed", finding_id=str(minute - 1), seq=1)
        ]
        evaluate_minute(tmp_path, minute, *events)
        seen.append(follow(exporter, 1 + minute, minute)[opened])
    restarted = Exporter(tmp_path)
    seen.append(follow(restarted, 9, 3)[opened])
    assert seen == [0, 1, 2, 3, 3]
    assert {
        dict(labels)["code"] for name, labels in restarted.samples() if "opened_total" in name
    } == set(BY_CODE)


def test_a_finding_written_before_its_window_is_whole_waits_for_it_and_counts_once(
    tmp_path: Path,
) -> None:
    opened = series("findings_opened_total", code="CAPACITY_SHORTAGE", severity="warn")
    write_tick(tmp_path)
    evaluate_minute(tmp_path)
    row = {
        **finding_row("CAPACITY_SHORTAGE", "g", topic="t"),
        "date": NOW.date(),
        "cluster": "prod",
        "batch_id": 9,
    }
    # the job has not come to finding_state yet
    write_rows(tmp_path, "findings", [{**row, "at": NOW + MINUTE}])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    before = exporter.samples()
    evaluate_minute(tmp_path, 1)
    after = follow(exporter, 2, 1)
    assert (SHORTAGE in before, before[opened]) == (False, 0)
    assert (SHORTAGE in after, after[opened]) == (True, 1)


def test_nothing_is_read_again_until_a_window_was_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate_minute(tmp_path, 0, finding_row("CAPACITY_SHORTAGE", "g", topic="t"))
    read = []
    real = evaluated_module.read_known
    monkeypatch.setattr(
        evaluated_module,
        "read_known",
        lambda table, uri, *rest: read.append(uri) or real(table, uri, *rest),
    )
    reader = EvaluatedReader(str(tmp_path), 60)
    first = reader.read()
    del read[:]
    assert (reader.read(), read) == (first, [])
    evaluate_minute(tmp_path, 1)
    reader.read()
    assert sorted(uri.rpartition("/")[2] for uri in read) == ["findings", "group_windows"]


def test_tables_of_a_job_without_rules_are_served_as_before(tmp_path: Path) -> None:
    write_tick(tmp_path)
    exporter = Exporter(tmp_path)
    assert exporter.refresh().roots[0].reason_at(exporter.clock()) == ""
    assert names(exporter.samples()) & EVALUATED == set()
    assert not +exporter.stats.refresh_errors


def test_findings_that_cannot_be_read_are_counted_and_lag_goes_on(tmp_path: Path) -> None:
    write_tick(tmp_path)
    evaluate_minute(tmp_path, 0, finding_row("CAPACITY_SHORTAGE", "g", topic="t"))
    for file in (tmp_path / "findings").rglob("*.parquet"):
        file.write_bytes(b"not Parquet")
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert exporter.samples()[series("group_lag_records", group="g", topic="t")] == 100
    assert +exporter.stats.refresh_errors == {"findings_unreadable": 1}


def test_policies_say_who_owns_a_group_and_what_it_promised(tmp_path: Path) -> None:
    policy = Policy(
        owner="o", team="t", slo_time_lag_seconds=30.0, slo_objective=0.95, in_maintenance=True
    )
    found = scrape(tmp_path, policy)
    assert found[series("group_policy_info", group="g", owner="o", team="t")] == 1
    assert found[series("group_slo_seconds", group="g")] == 30
    assert found[series("group_slo_objective_ratio", group="g")] == 0.95
    assert found[series("group_maintenance", group="g")] == 1


def test_what_nobody_declared_is_absent_except_that_no_maintenance_is_planned(
    tmp_path: Path,
) -> None:
    found = scrape(tmp_path)
    declared = {
        "laggard_group_policy_info",
        "laggard_group_slo_seconds",
        "laggard_group_slo_objective_ratio",
    }
    assert declared & names(found) == set()
    assert found[series("group_maintenance", group="g")] == 0


def test_shapes_go_after_histograms_and_a_group_with_a_finding_stays(tmp_path: Path) -> None:
    groups = [f"g{n:02d}" for n in range(12)]
    write_batch(
        tmp_path,
        partitions=[partition_row(name, "t", 0, committed_offset=1000) for name in groups],
        groups=[group_row(name) for name in groups],
    )
    windows = [window_row(name, "t") for name in groups]
    write_evaluated(
        tmp_path, windows=windows, findings=[finding_row("ARRIVAL_SKEW", "g05", role="note")]
    )
    bodies = {}
    for max_series in (5_000, 1_060, 500):
        exporter = Exporter(tmp_path, max_series=max_series)
        exporter.refresh()
        bodies[max_series] = exporter.samples()
        assert len(bodies[max_series]) <= max_series
    assert "laggard_group_lag_gini_ratio" in names(bodies[5_000])
    assert "laggard_group_lag_gini_ratio" not in names(bodies[1_060])
    assert {
        dict(labels)["group"] for name, labels in bodies[1_060] if name == "laggard_group_members"
    } == set(groups)
    kept = {
        dict(labels)["group"] for name, labels in bodies[500] if name == "laggard_group_lag_records"
    }
    assert kept == {"g05"}


def test_the_inequality_of_arrivals_is_reported_by_topic(tmp_path: Path) -> None:
    rates = {
        "even": (5.0, 5.0, 5.0, 5.0),
        "all on one": (0.0, 0.0, 8.0, 0.0),
        "unknown": (5.0, None),
    }
    rows = [
        topic_row(topic, n, arrival_rate=rate)
        for topic, found in rates.items()
        for n, rate in enumerate(found)
    ]
    write_batch(tmp_path, topics=rows)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert [found.get(series("topic_arrival_gini_ratio", topic=topic)) for topic in rates] == [
        0.0,
        1.0,
        None,
    ]


def test_a_history_evaluated_by_the_rules_is_reported_as_they_reported_it(tmp_path: Path) -> None:
    """Six partitions, three members that each fall behind a little: a shortage, and more members
    help.
    """
    windows = 40
    evaluation = evaluate(
        Fluid(np.full((6, windows), 100.0), np.full((3, windows), 180.0)).tables()
    )
    end = evaluation.windows[-1]["window_end"]
    for name, rows in (("findings", evaluation.findings), ("group_windows", evaluation.windows)):
        write_rows(
            tmp_path,
            name,
            [{"cluster": "prod", "batch_id": 1, **row, "status": "ok"} for row in rows],
        )
    state_row = {"cluster": "prod", "batch_id": 1, "date": end.date(), "group": "", "status": "ok"}
    write_rows(tmp_path, "finding_state", [{**state_row, "window_start": end - MINUTE}])
    shutil.rmtree(tmp_path / "batches", ignore_errors=True)
    write_batch(tmp_path, 1, end, groups=[group_row("billing")])
    exporter = Exporter(tmp_path)
    exporter.clock.now = end.timestamp()
    exporter.refresh()
    found = exporter.samples()
    last = evaluation.last()
    assert last["scale_verdict"] in ("YES", "YES_PARTIAL")
    assert state(found, "group_scale_verdict", group="billing") == last["scale_verdict"]
    assert found[series("group_desired_consumers", group="billing")] == last["members_desired"] > 3
    shown = {dict(labels)["code"] for name, labels in found if name == "laggard_finding_active"}
    assert "CAPACITY_SHORTAGE" in shown
    assert shown == evaluation.open_codes()
