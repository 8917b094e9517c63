"""promtool evaluates every rule over series of which the outcome was worked out by hand."""

from __future__ import annotations

import subprocess
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.examples import EXAMPLES, Counter, Example, Gauge, T
from rules.promtool import RULES, alert_of, cases, inputs, mutants, promtool, run, survivors, table

pytestmark = pytest.mark.full

BY_RULE = {
    f"{name}-{severity}": list(examples)
    for (name, severity), examples in groupby(EXAMPLES, key=attrgetter("alert", "severity"))
}
READY = 'laggard_ready{{cluster="{}",instance="{}"}}'
ABSENT = "LaggardExporterAbsent"


def absent(cluster: str = "") -> dict[str, Any]:
    labels, place = ({"cluster": cluster}, f" for {cluster}") if cluster else ({}, "")
    return {
        "exp_labels": {"severity": "critical"} | labels,
        "exp_annotations": {
            "summary": f"Prometheus gets no metrics of laggard{place}",
            "description": (
                "The exporter does not run, or Prometheus does not reach it. First look: laggard "
                "export --check."
            ),
            "runbook_url": f"docs/runbooks/{ABSENT}.md",
            "dashboard_url": f"/d/laggard-pipeline?var-cluster={cluster}",
        },
    }


def asked(
    name: str, series: dict[str, str], outcomes: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    return {
        "name": name,
        "interval": "30s",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [
            {"eval_time": at, "alertname": ABSENT, "exp_alerts": fired}
            for at, fired in outcomes.items()
        ],
    }


US = {READY.format("us", "b"): "1x1000", 'laggard_build_info{instance="b"}': "1x1000"}
EU = READY.format("eu", "a")
# an exporter ends after ten minutes; its cluster is missed for six hours, or until it is back
ABSENCES = (
    asked(
        "a cluster is missed by its name",
        US | {EU: "1x19 stale"},
        {"14m30s": [], "15m": [absent("eu")]},
    ),
    asked(
        "and forgotten after six hours",
        US | {EU: "1x19 stale"},
        {"369m": [absent("eu")], "370m30s": []},
    ),
    asked("short absence", US | {EU: "1x19 stale _x8 1x100"}, {"14m30s": [], "16m": [], "20m": []}),
    asked("a cluster that was never ready", US | {EU: "0x19 stale"}, {"15m": [], "30m": []}),
    asked("a replica ends", US | {READY.format("us", "a"): "1x19 stale"}, {"15m": [], "30m": []}),
    asked("nothing at all", {"up": "0x100"}, {"4m30s": [], "5m": [absent()]}),
    asked(
        "all end: once by name, not twice",
        {EU: "1x19 stale", 'laggard_build_info{instance="a"}': "1x19 stale"},
        {"15m": [absent("eu")]},
    ),
)


def rule_named(name: str) -> dict[str, Any]:
    rules = yaml.safe_load((RULES / "laggard-alerts.yaml").read_text())["groups"][0]["rules"]
    (found,) = (each for each in rules if each["alert"] == name)
    return dict(found)


def clauses(name: str, severity: str) -> tuple[str, ...]:
    alerts, _ = table()
    (found,) = (
        each.clauses for each in alerts.ALERTS if (each.name, each.severity) == (name, severity)
    )
    return tuple(found)


def test_promtool_accepts_all_rules() -> None:
    command = [promtool(), "check", "rules", *map(str, sorted(RULES.glob("laggard-*.yaml")))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("examples", BY_RULE.values(), ids=BY_RULE.keys())
def test_an_alert_fires_exactly_when_it_should_and_without_any_part_of_it_does_not(
    examples: list[Example], tmp_path: Path
) -> None:
    first, rule = examples[0], alert_of(examples[0])
    tests = [case for example in examples for case in cases(example)]
    rules = {"whole": rule} | mutants(
        rule, clauses(first.alert, first.severity), keeps=not first.moves
    )
    assert survivors(tmp_path, tests, rules) == ["whole"], run(tmp_path, tests, [rule])


def test_an_exporter_that_ends_is_missed(tmp_path: Path) -> None:
    rule = rule_named(ABSENT)
    rules = {"whole": rule} | mutants(rule, clauses(ABSENT, "critical"), keeps=False)
    assert survivors(tmp_path, ABSENCES, rules) == ["whole"], run(tmp_path, ABSENCES, [rule])


def test_records_count_each_replica_once_and_no_cluster_twice(tmp_path: Path) -> None:
    """Two exporters serve the same series; the numbers are those of one."""
    series = {
        f"laggard_group_slo_matured_records_total{{{T}}}": Counter(3000),
        f"laggard_group_slo_late_records_total{{{T}}}": Counter(60),
        'laggard_group_slo_objective_ratio{cluster="eu",group="billing"}': Gauge(0.99, None),
        f"laggard_group_lag_known_records{{{T}}}": Gauge(40, None),
        f"laggard_group_lag_known_records{{{T.replace('orders', 'refunds')}}}": Gauge(2, None),
        f"laggard_group_lag_known_records{{{T.replace('eu', 'us')}}}": Gauge(7, None),
        f"laggard_group_time_lag_known_seconds{{{T}}}": Gauge(11, None),
        'laggard_group_rebalances_total{cluster="eu",group="billing",cause="join"}': Counter(3),
        'laggard_group_rebalances_total{cluster="eu",group="billing",cause="leave"}': Counter(6),
        'laggard_group_rebalances_total{cluster="eu",group="audit",cause="leave"}': Counter(6),
        'laggard_data_timestamp_seconds{cluster="eu"}': Gauge(3500, None),
        **{
            f'laggard_group_lag_distribution_records_bucket{{{T},le="{bound}"}}': Gauge(count, None)
            for bound, count in (("10", 8), ("100", 9), ("1000", 10), ("+Inf", 10))
        },
    }
    billing = '{cluster="eu", group="billing"}'
    expected = {
        "group:laggard_slo_matured:rate5m": [(billing, 100)],
        "group:laggard_slo_late:ratio_rate30m": [(billing, 0.02)],
        "group:laggard_slo_burn:rate1h": [(billing, 2)],
        "group:laggard_lag_known_records:sum": [
            (billing, 42),
            ('{cluster="us", group="billing"}', 7),
        ],
        "group:laggard_time_lag_known_seconds:max": [(billing, 11)],
        "topic:laggard_lag_records:p90": [('{cluster="eu", group="billing", topic="orders"}', 100)],
        'topic:laggard_lag_known_records:deriv10m{cluster="us"}': [
            ('{cluster="us", group="billing", topic="orders"}', 0)
        ],
        "group:laggard_rebalances:rate10m": [
            ('{cluster="eu", group="audit"}', 0.2),
            (billing, 0.3),
        ],
        "cluster:laggard_rebalances:rate10m": [('{cluster="eu"}', 0.5)],
        "cluster:laggard_data_age:seconds": [('{cluster="eu"}', 100)],
    }
    test = {
        "interval": "30s",
        "input_series": inputs(series, ["bad"] * 121),
        "promql_expr_test": [
            {
                # a record carries its own name
                "expr": f"round({record}, 0.0001)",
                "eval_time": "1h",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
            }
            for record, samples in expected.items()
        ],
    }
    assert run(tmp_path, [test], [rule_named("LaggardBlind")]) == ""
