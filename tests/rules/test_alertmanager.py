"""The example for Alertmanager is accepted by amtool, inhibits what the table says, and renders
every alert.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml

from laggard.answers.explain.headline import TRENDS
from laggard.answers.text.diagnosis_words import clause
from laggard.diagnosis.verdict.reasons import VERDICTS
from rules.examples import EXAMPLES, Example
from rules.promtool import ROOT, of_topic

FOLDER = ROOT / "conf" / "alertmanager"
CONFIG = yaml.safe_load((FOLDER / "alertmanager.yaml").read_text(encoding="utf-8"))
FORMS = {
    "laggard.title": "text",
    "laggard.slack": "text",
    "laggard.text": "text",
    "laggard.html": "html",
}
UNIQUE = {(each.alert, each.severity): each for each in EXAMPLES}.values()


def amtool(*arguments: str) -> str:
    found = shutil.which("amtool", path=f"{ROOT / '.tools'}:{os.environ['PATH']}")
    if not found:
        assert not os.environ.get("CI"), "amtool is not here: make tools"
        pytest.skip("amtool is not here: make tools unpacks it")
    done = subprocess.run(
        [found, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_sent(examples: list[Example], status: str = "firing", **annotations: str) -> dict[str, Any]:
    """The data that Alertmanager gives to templates."""
    alerts = [
        {
            "status": status,
            "labels": {"alertname": each.alert, "severity": each.severity, **each.labels},
            "annotations": {
                "summary": each.summary,
                "description": each.description,
                "runbook_url": f"https://git.example.org/docs/runbooks/{each.alert}.md",
                "dashboard_url": f"https://grafana.example.org/d/{each.dashboard}",
                **annotations,
            },
        }
        for each in examples
    ]
    labels = set.intersection(*(set(each["labels"].items()) for each in alerts))
    return {"receiver": "r", "status": status, "alerts": alerts, "commonLabels": dict(labels)}


def rendered(folder: Path, name: str, data: dict[str, Any]) -> str:
    path = folder / "data.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    text = f'{{{{ template "{name}" . }}}}'
    glob, kind = (
        f"--template.glob={FOLDER / 'laggard.tmpl'}",
        f"--template.type={FORMS.get(name, 'text')}",
    )
    return amtool(
        "template", "render", glob, kind, f"--template.text={text}", f"--template.data={path}"
    ).strip()


def test_the_inhibitions_are_those_of_the_table() -> None:
    rules = yaml.safe_load(
        (ROOT / "conf" / "rules" / "alertmanager-inhibit.yaml").read_text(encoding="utf-8")
    )
    assert CONFIG["inhibit_rules"] == rules["inhibit_rules"]


def test_secrets_are_in_files() -> None:
    text = (FOLDER / "alertmanager.yaml").read_text(encoding="utf-8")
    assert (
        re.findall(
            r"(?m)^ *(?:- )?(\w*(?:password|api_url|key))(?:_file)?: "
            r"(?!/etc/alertmanager/secrets/)",
            text,
        )
        == []
    )


def test_every_template_that_the_configuration_names_is_there() -> None:
    defined = re.findall(
        r'define "(laggard\.[\w.]+)"', (FOLDER / "laggard.tmpl").read_text(encoding="utf-8")
    )
    used = re.findall(
        r'template "(laggard\.[\w.]+)"', (FOLDER / "alertmanager.yaml").read_text(encoding="utf-8")
    )
    assert set(used) <= set(defined)
    assert len(defined) == len(set(defined))


@pytest.mark.full
def test_amtool_accepts_the_configuration() -> None:
    said = amtool("check-config", str(FOLDER / "alertmanager.yaml"))
    assert re.search(r"1 templates\n", said)
    assert re.search(r"3 receivers\n", said)


@pytest.mark.full
@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (("alertname=LaggardDataLost", "severity=critical"), "laggard-pagerduty,laggard-slack"),
        (("alertname=LaggardSlowMember", "severity=warning"), "laggard-slack"),
        (("alertname=LaggardGap", "severity=info"), "laggard-mail"),
        (("alertname=DiskFull", "severity=critical"), "laggard-mail"),
    ],
    ids=["critical", "warning", "info", "of others"],
)
def test_an_alert_goes_where_the_page_says(labels: tuple[str, ...], receivers: str) -> None:
    said = amtool(
        "config", "routes", "test", f"--config.file={FOLDER / 'alertmanager.yaml'}", *labels
    )
    assert said.strip() == receivers


@pytest.mark.full
@pytest.mark.parametrize("example", UNIQUE, ids=lambda each: f"{each.alert}-{each.severity}")
def test_every_alert_is_rendered_with_its_links(example: Example, tmp_path: Path) -> None:
    data = as_sent([example], scale_verdict="NO_HOT_PARTITION" if of_topic(example) else "")
    for name in FORMS:
        shown = unescape(rendered(tmp_path, name, data))
        assert example.summary in shown
        assert "<no value>" not in shown
        if name != "laggard.title":
            assert example.description in shown
            assert f"/docs/runbooks/{example.alert}.md" in shown
            assert f"/d/{example.dashboard}" in shown
            assert "http://laggard.example.org:8917/ui" in shown
            assert ("#/group?cluster=eu&group=billing" in shown) is ("group" in example.labels)


ORDERS = next(each for each in EXAMPLES if of_topic(each))


@pytest.mark.full
def test_the_headline_is_in_the_words_of_explain(tmp_path: Path) -> None:
    state = {
        "time_lag": "11m 0s",
        "shape": "concentrated",
        "trend": "growing",
        "scale_verdict": "NO_HOT_PARTITION",
    }
    said = (
        "billing is at least 11m 0s behind, mostly on few partitions and growing: adding "
        "consumers would NOT help"
    )
    for name in ("laggard.slack", "laggard.text", "laggard.html"):
        assert said in rendered(tmp_path, name, as_sent([ORDERS], **state))
        assert "behind" not in rendered(tmp_path, name, as_sent([ORDERS], "resolved", **state))


@pytest.mark.full
def test_verdicts_and_trends_are_those_of_explain(tmp_path: Path) -> None:
    courses = {verdict: f"billing: {clause(verdict)}\n" for verdict in VERDICTS}
    for verdict, said in courses.items():
        assert said in rendered(tmp_path, "laggard.text", as_sent([ORDERS], scale_verdict=verdict))
    for trend, word in TRENDS.items():
        state = {"trend": trend, "scale_verdict": "YES"}
        assert f"billing and {word}: " in rendered(
            tmp_path, "laggard.text", as_sent([ORDERS], **state)
        )


@pytest.mark.full
def test_a_name_with_markup_is_a_name(tmp_path: Path) -> None:
    odd = replace(
        ORDERS, labels=ORDERS.labels | {"group": "a <b>&c d"}, summary="eu/a <b>&c d is late"
    )
    data = as_sent([odd], scale_verdict="YES")
    assert "a &lt;b&gt;&amp;c d is late" in rendered(tmp_path, "laggard.slack.title", data)
    assert "a &lt;b&gt;&amp;c d: adding" in rendered(tmp_path, "laggard.slack", data)
    assert "<b>&c" not in rendered(tmp_path, "laggard.html", data)
    # as the page reads its address: every name is read as it was
    for name in (
        "a <b>&c d",
        ".",
        "..",
        "100%",
        "a/b?c#d",
        "x\\xe2\\x80\\xaey",
        "a+b",
        "naïve \"'",
    ):
        data = as_sent([replace(ORDERS, labels=ORDERS.labels | {"group": name})])
        for form in ("laggard.slack", "laggard.text", "laggard.html"):
            query = re.search(r"#/group\?([^\s\"|]+)", unescape(rendered(tmp_path, form, data)))
            assert query
            assert parse_qsl(query[1], strict_parsing=True) == [("cluster", "eu"), ("group", name)]


@pytest.mark.full
def test_several_alerts_of_a_group_are_one_message(tmp_path: Path) -> None:
    data = as_sent([ORDERS, ORDERS, ORDERS])
    assert rendered(tmp_path, "laggard.title", data).endswith("(and 2 more)")
    assert rendered(tmp_path, "laggard.text", data).count("/docs/runbooks/") == 3
