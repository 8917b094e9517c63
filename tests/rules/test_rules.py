"""The files of rules are those of the table, and name nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from laggard.config import load_config
from laggard.diagnosis.rules.registry import ALERT_CODES, BY_CODE, alert_of, runbook_of
from laggard.diagnosis.rules.rule import CAUSE, META, SYMPTOM
from laggard.errors import LaggardError
from laggard.exporter.body.families import FAMILIES, LEVELS
from laggard.exporter.evaluated import SEVERITIES
from laggard.lag.status import STATUSES
from rules.promtool import ROOT, table

alert_table, rule_files = table()
DASHBOARDS = {
    f"laggard-{name}"
    for name in ("fleet", "group", "rebalance", "partition", "offsets", "pipeline")
}
EXPRESSIONS = {each.name: each.expr for each in (*alert_table.RECORDS, *alert_table.ALERTS)}
RECORDED = {each.name for each in alert_table.RECORDS}
SELECTOR = re.compile(r"([a-z_]*:?laggard_[a-z0-9_:A-Z]+)(?:\{([^}]*)\})?")
# closed lists of values that a matcher may name
VALUES = {
    "code": set(BY_CODE),
    "severity": set(SEVERITIES),
    "status": set(STATUSES),
    "level": set(LEVELS),
}


def labels_of(metric: str) -> set[str]:
    """Labels of a metric that the exporter has, or of a record; KeyError for any other."""
    if metric in RECORDED:
        return {
            "group": {"cluster", "group"},
            "topic": {"cluster", "group", "topic"},
            "cluster": {"cluster"},
        }[metric.split(":", maxsplit=1)[0]]
    by_sample = {each.name: each for each in FAMILIES} | {
        f"{each.name}_bucket": each for each in FAMILIES if each.bounds
    }
    family = by_sample[metric]
    labels = {*family.labels}
    if family.states:
        labels.add(family.name)
    if family.bounds:
        labels.add("le")
    return labels


def test_the_files_are_what_the_table_says() -> None:
    """If this fails: make docs."""
    assert {
        path: (ROOT / path).read_text(encoding="utf-8") for path in rule_files.files()
    } == rule_files.files()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_metric_and_label_of_an_expression_is_in_the_catalogue(name: str) -> None:
    expr = EXPRESSIONS[name]
    found = SELECTOR.findall(re.sub(r"on \([^)]*\)|by \([^)]*\)|group_left \([^)]*\)", "", expr))
    assert found
    known: set[str] = set()
    for metric, matchers in found:
        labels = labels_of(metric)
        known |= labels
        for label, value in re.findall(r'(\w+)[=!~]+"([^"]*)"', matchers):
            assert label in labels
            states = next(
                (each.states for each in FAMILIES if each.name == label and each.states), ()
            )
            assert set(value.split("|")) <= (VALUES.get(label) or set(states)), (label, value)
    for names in re.findall(r"(?:on|by|group_left) \(([^)]*)\)", expr):
        assert {each.strip() for each in names.split(",") if each.strip()} <= known


def test_an_unknown_metric_is_found() -> None:
    with pytest.raises(KeyError):
        labels_of("laggard_no_such_metric_total")


def test_no_objective_is_accepted_under_which_the_fast_burn_cannot_fire(tmp_path: Path) -> None:
    """A burn is at most 1 / (1 - objective)."""
    file = tmp_path / "laggard.toml"
    objective = 1 - 1 / alert_table.FAST_BURN
    file.write_text(f'[[policy]]\nmatch = "*"\nslo_objective = {objective}\n')
    with pytest.raises(LaggardError, match="slo_objective: expected"):
        load_config(str(file), (), {})


@pytest.mark.parametrize(
    "alert", alert_table.ALERTS, ids=lambda each: f"{each.name}-{each.severity}"
)
def test_an_alert_says_what_is_wrong_and_where_to_look(alert: Any) -> None:
    assert re.fullmatch(r"Laggard[A-Z][A-Za-z]+", alert.name)
    assert alert.severity in ("critical", "warning", "info")
    assert alert.dashboard in DASHBOARDS
    assert alert.summary
    assert "First look: laggard " in alert.description


def test_an_alert_on_a_group_is_silent_during_maintenance_unless_data_is_at_stake() -> None:
    groups = {
        each.name: alert_table.UNPLANNED in each.clauses
        for each in alert_table.ALERTS
        if "group" in each.labels
    }
    at_stake = {"LaggardDataLost", "LaggardDataLossNear", "LaggardOffsetsExpireSoon"}
    assert {name for name, excused in groups.items() if not excused} == at_stake


def test_every_cause_has_an_alert_or_a_reason_to_have_none() -> None:
    """And every symptom, and all that is about laggard itself; the alerts that
    reasons name exist.
    """
    left_out = alert_table.CODES_LEFT_OUT
    clauses = [
        each
        for alert in alert_table.ALERTS
        for each in alert.clauses
        if not each.startswith("unless")
    ]
    named = {
        code
        for text in re.findall(r'code=~?"([^"]*)"', " ".join(clauses))
        for code in text.split("|")
    }
    assert {
        rule.code for rule in BY_CODE.values() if rule.kind in {META, SYMPTOM, CAUSE}
    } == named | left_out.keys()
    assert named.isdisjoint(left_out)
    said = {name for why in left_out.values() for name in re.findall(r"`(Laggard\w+)`", why)}
    assert said <= {each.name for each in alert_table.ALERTS}
    page = (ROOT / "docs" / "runbooks" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^\| `([A-Z_]+)` \| (.+) \|$", page) == list(left_out.items())


def test_a_finding_leads_to_the_runbook_of_its_alert_or_to_its_own_entry() -> None:
    entries = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    for code in BY_CODE:
        path, _, anchor = runbook_of(code).partition("#")
        assert (ROOT / path).is_file()
        assert bool(anchor) is (alert_of(code) is None)
        assert not anchor or f"\n### {anchor.upper()}\n" in entries
    assert runbook_of("SLOW_HOST") == "docs/runbooks/LaggardSlowMember.md"
    assert runbook_of("PING_PONG") == "docs/diagnosis.md#ping_pong"
    assert {code for codes in ALERT_CODES.values() for code in codes} <= BY_CODE.keys()
    assert ALERT_CODES.keys() <= {each.name for each in alert_table.ALERTS}


def test_inhibitions_name_alerts_and_labels_that_are_there() -> None:
    names = {each.name for each in alert_table.ALERTS}
    for each in alert_table.INHIBITIONS:
        chosen = [set(names), set(names)]
        for side, matchers in enumerate((each.source, each.targets)):
            for label, sign, value in (
                re.fullmatch(r'(\w+)(=|=~|!~)"(.*)"', text).groups() for text in matchers
            ):  # type: ignore[union-attr]
                if label == "alertname":
                    chosen[side] &= {
                        name for name in names if bool(re.fullmatch(value, name)) is (sign != "!~")
                    }
            assert chosen[side]
        if "alertname" not in each.equal:
            assert not chosen[0] & chosen[1]
        sources = [alert for alert in alert_table.ALERTS if alert.name in chosen[0]]
        assert (
            all({*each.equal} <= {*alert.labels} for alert in sources) or "alertname" in each.equal
        )


def test_no_alert_hides_a_graver_one() -> None:
    ranks = ("info", "warning", "critical")
    for each in alert_table.INHIBITIONS:
        sources, targets = (
            [
                ranks.index(alert.severity)
                for alert in alert_table.ALERTS
                if _is_matched(alert, matchers)
            ]
            for matchers in (each.source, each.targets)
        )
        assert min(sources) >= max(targets), each


def _is_matched(alert: Any, matchers: tuple[str, ...]) -> bool:
    """True if the alert may match; the values of its own labels are known when it fires."""
    labels = {"alertname": alert.name, "severity": alert.severity}
    parsed = [re.fullmatch(r'(\w+)(=|=~|!~)"(.*)"', text) for text in matchers]
    found = [match.groups() for match in parsed if match]
    assert len(found) == len(matchers)
    return all(
        label in alert.labels or bool(re.fullmatch(value, labels[label])) is (sign != "!~")
        for label, sign, value in found
    )


def test_prometheus_of_compose_reads_the_rules() -> None:
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    (files,) = yaml.safe_load((ROOT / "docker" / "prometheus.yaml").read_text())["rule_files"]
    assert "../conf/rules:/etc/prometheus/rules:ro" in compose["services"]["prometheus"]["volumes"]
    assert {path.name for path in (ROOT / "conf" / "rules").glob(Path(files).name)} == {
        "laggard-alerts.yaml",
        "laggard-recording.yaml",
    }
