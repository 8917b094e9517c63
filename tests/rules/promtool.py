"""Tests for `promtool test rules`, made from examples, and their run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.examples import Counter, Example, G, Gauge, Series, Since

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "conf" / "rules"
STEP = 0.5  # minutes between samples and between evaluations
BAD, GOOD, NEAR, GONE, RESET = "bad", "good", "near", "gone", "reset"
POLICY = f'laggard_group_policy_info{{{G},owner="ann",team="payments"}}'
MAINTENANCE = f"laggard_group_maintenance{{{G}}}"


def promtool() -> str:
    found = shutil.which("promtool")
    if not found:
        pytest.skip("promtool is not here: make tools installs Debian's package prometheus")
    return found


def table() -> Any:
    """conf/rules/alert_table.py and rule_files.py, which are scripts."""
    if str(RULES) not in sys.path:
        sys.path.insert(0, str(RULES))
    import alert_table  # type: ignore[import-not-found]
    import rule_files  # type: ignore[import-not-found]

    return alert_table, rule_files


def samples(series: Gauge | Counter | Since, phases: Sequence[str]) -> str:
    """The values of one series, as promtool reads them."""
    total, found = getattr(series, "start", 0.0), []
    for number, phase in enumerate(phases):
        kind = BAD if phase in (GONE, RESET) else phase
        value = getattr(series, kind)
        if isinstance(series, Counter):
            total = 0.0 if phase == RESET else total + (value or 0)
            value = total
        elif isinstance(series, Since):
            value = number * STEP * 60 - value
        found.append("_" if value is None else f"{value:+.10g}".removeprefix("+"))
        if phase == GONE:
            found[-1] = "stale"
    # a value that ends says so: Prometheus does that when a scrape no longer has a series
    texts = [
        "stale" if each == "_" and number and found[number - 1] not in ("_", "stale") else each
        for number, each in enumerate(found)
    ]
    return " ".join({"inf": "Inf"}.get(each, each) for each in texts)


def inputs(series: Series, phases: Sequence[str]) -> list[dict[str, str]]:
    return [
        {
            "series": f'{name.removesuffix("}")},instance="{instance}"}}',
            "values": samples(each, phases),
        }
        for name, each in series.items()
        for instance in ("a", "b")
    ]


def of_topic(example: Example) -> bool:
    alerts, _ = table()
    return any("topic" in each.labels for each in alerts.ALERTS if each.name == example.alert)


def check(
    example: Example, name: str, series: Series, phases: Sequence[str], outcomes: dict[float, bool]
) -> dict[str, Any]:
    """One of promtool's tests: does the alert fire at these minutes, exactly as the
    example says.
    """
    unknown = {"time_lag": "", "scale_verdict": ""} if "group" in example.labels else {}
    if of_topic(example):
        unknown |= {"shape": "", "trend": ""}
    fires = {
        "exp_labels": example.labels | {"severity": example.severity},
        "exp_annotations": {
            "summary": example.summary,
            "description": example.description,
            **unknown,
            **example.state,
            "runbook_url": f"docs/runbooks/{example.alert}.md",
            "dashboard_url": f"/d/{example.dashboard}",
        },
    }
    return {
        "name": f"{example.alert}: {name}",
        "interval": "30s",
        "input_series": inputs(series, phases),
        "alert_rule_test": [
            {
                "eval_time": f"{round(at * 60)}s",
                "alertname": example.alert,
                "exp_alerts": [fires] if fired else [],
            }
            for at, fired in sorted(outcomes.items())
        ],
    }


def cases(example: Example) -> Iterator[dict[str, Any]]:
    """Fires, just below, too short, resolves, maintenance, absent, a gap of three minutes, a
    counter's reset, quiet.
    """
    surroundings: Series = {POLICY: Gauge(1, 1, 1), MAINTENANCE: Gauge(0, 0, 0), **example.context}
    series = surroundings | example.series
    fires = example.begins + example.lasts
    hours = [BAD] * (360 if example.lasts >= 60 else 120)
    ends = 10 + fires
    over = ends + example.clears + example.keeps

    def ticks(minutes: float, phase: str) -> list[str]:
        return [phase] * round(minutes / STEP)

    outcomes = {fires: True}
    if example.lasts:
        outcomes[fires - STEP] = False
    if not example.moves:
        outcomes[fires + 5] = True
    yield check(example, "fires", series, hours, outcomes)
    yield check(example, "just below", series, [NEAR] * 300, {fires: False, fires + 10: False})
    if example.lasts:
        short = [*ticks(fires - example.clears, BAD), *ticks(example.keeps + 60, GOOD)]
        yield check(
            example,
            "too short",
            series,
            short,
            dict.fromkeys((fires - STEP, fires, fires + 1, fires + 10), False),
        )
    past = [*ticks(ends, BAD), *ticks(example.clears + example.keeps + 10, GOOD)]
    yield check(
        example,
        "resolves",
        series,
        past,
        {over + 1: False} | ({} if example.moves else {over - 1: True}),
    )
    planned = series | {MAINTENANCE: Gauge(1, 1, 1)}
    yield check(example, "maintenance", planned, hours, {fires: not example.excused})
    yield check(
        example,
        "absent",
        surroundings,
        hours,
        {fires: example.absent_fires, 59: example.absent_fires},
    )
    if example.keeps >= 5 and not example.moves:
        gap = [*ticks(ends, BAD), *ticks(3, GONE), *ticks(30, BAD)]
        yield check(
            example, "a gap of three minutes", series, gap, {ends + 2.5: True, ends + 4: True}
        )
    if any(isinstance(each, Counter) and not each.good for each in example.series.values()):
        reset = [*ticks(20, GOOD), RESET, *ticks(30, GOOD)]
        yield check(
            example, "a counter's reset", series, reset, dict.fromkeys((20, 21, 25, 35), False)
        )
    for number, change in enumerate(example.quiet):
        yield check(
            example, f"quiet {number}", series | change, hours, {fires: False, fires + 5: False}
        )
    for number, turn in enumerate(example.turns):
        phases = [each for phase, minutes in turn.phases for each in ticks(minutes, phase)]
        yield check(
            example,
            f"turn {number}",
            series | turn.change,
            phases,
            {len(phases) * STEP - STEP: turn.fires},
        )


def alert_of(example: Example) -> dict[str, Any]:
    """The rule that an example is about: two may have one name, with a severity each."""
    rules = yaml.safe_load((RULES / "laggard-alerts.yaml").read_text())["groups"][0]["rules"]
    (found,) = (
        each
        for each in rules
        if (each["alert"], each["labels"]["severity"]) == (example.alert, example.severity)
    )
    return dict(found)


def run(folder: Path, tests: Sequence[dict[str, Any]], rules: Sequence[dict[str, Any]]) -> str:
    """Nothing if promtool finds all outcomes, else its words."""
    alerts = folder / "alerts.yaml"
    alerts.write_text(yaml.safe_dump({"groups": [{"name": "laggard-alerts", "rules": [*rules]}]}))
    content = {
        "rule_files": [str(RULES / "laggard-recording.yaml"), str(alerts)],
        "evaluation_interval": "30s",
        "group_eval_order": ["laggard-recording", "laggard-alerts"],
        "tests": [*tests],
    }
    (folder / "all.test.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    command = [promtool(), "test", "rules", str(folder / "all.test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def mutants(
    rule: dict[str, Any], clauses: Sequence[str], *, keeps: bool
) -> dict[str, dict[str, Any]]:
    """The rule without a clause, a comparison, a matcher or a time, by what is left out."""
    found: dict[str, dict[str, Any]] = {}
    expr = rule["expr"]
    for number, clause in enumerate(clauses):
        if number:
            found[clause] = rule | {"expr": "\n".join([*clauses[:number], *clauses[number + 1 :]])}
    # not `== 1` of a clause as a whole: that is the one before
    for pattern in (r" (?:[<>]=?|==) [\d.]+", r'(?<=[{,])\w+(?:=~|!=|=)"[^"]*",?'):
        for match in re.finditer(pattern, expr):
            found[f"{match.start()}: {match[0]}"] = rule | {
                "expr": expr[: match.start()] + expr[match.end() :]
            }
    for name in ("for", *(["keep_firing_for"] if keeps else [])):
        if name in rule:
            found[name] = {key: value for key, value in rule.items() if key != name}
    return {
        name: each | {"alert": f"{rule['alert']}_{number}"}
        for number, (name, each) in enumerate(found.items())
    }


def survivors(
    folder: Path, tests: Sequence[dict[str, Any]], rules: dict[str, dict[str, Any]]
) -> list[str]:
    """Rules for which promtool finds all outcomes: one run for all of them."""
    several = []
    for each in tests:
        questions = [
            asked | {"alertname": rule["alert"]}
            for rule in rules.values()
            for asked in each["alert_rule_test"]
        ]
        several.append(each | {"alert_rule_test": questions})
    said = run(folder, several, list(rules.values()))
    assert "alertname: " in said, said
    failed = set(re.findall(r"alertname: (\w+)", said))
    return [name for name, rule in rules.items() if rule["alert"] not in failed]
