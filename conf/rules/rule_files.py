"""Writes the files of rules from alert_table.py; a test holds the committed files equal to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from alert_table import ALERTS, INHIBITIONS, RECORDS, Alert, G, T

ROOT = Path(__file__).parent.parent.parent
HEAD = "# Written by `make docs` from conf/rules/alert_table.py.\n"
OF_MONITOR = {"app.kubernetes.io/name": "laggard", "app.kubernetes.io/component": "exporter"}


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _block)


def text(content: Any) -> str:
    """Return YAML in the order in which it was made."""
    return HEAD + yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True
    )


def declared(name: str) -> str:
    """Return a template for what [[policy]] declares of a group, `none` without.

    Not empty: Prometheus writes the text of the template itself into the series ALERTS where its
    value is empty. A join would fail while replicas differ. The last hour counts too: labels must
    not change in a gap of the metrics.
    """
    info = "laggard_group_policy_info{cluster=%[1]q,group=%[2]q}"
    query = (
        f'printf "{info} or on () last_over_time({info}[1h])" $labels.cluster $labels.group | query'
    )
    return (
        f'{{{{ with {query} }}}}{{{{ or (. | first | label "{name}") "none" }}}}{{{{ else '
        f"}}}}none{{{{ end }}}}"
    )


def _asked(series: str, result: str, *labels: str) -> str:
    """Return a template for the result of a query when the alert is sent, empty without one."""
    selector = ",".join(f"{name}=%q" for name in labels)
    query = " ".join(
        (
            f'printf "{series}"'.replace("()", f"{{{selector}}}"),
            *(f"$labels.{name}" for name in labels),
        )
    )
    return f"{{{{ with {query} | query }}}}{{{{ . | first | {result} }}}}{{{{ end }}}}"


def state_of(alert: Alert) -> dict[str, str]:
    """Return annotations for the first line of `laggard explain` in a notification.

    That line describes the group as it is now.
    """
    if "group" not in alert.labels:
        return {}
    found = {
        "time_lag": _asked(
            "group:laggard_time_lag_known_seconds:max() > 0", "value | humanizeDuration", *G
        )
    }
    if "topic" in alert.labels:
        for name in ("laggard_group_lag_shape", "laggard_group_lag_trend"):
            found[name.removeprefix("laggard_group_lag_")] = _asked(
                f"{name}() == 1", f'label "{name}"', *T
            )
    verdict = "laggard_group_scale_verdict"
    return found | {"scale_verdict": _asked(f"{verdict}() == 1", f'label "{verdict}"', *G)}


def dashboard_url(alert: Alert) -> str:
    """Return the dashboard with its variables, below Grafana's address, without an empty topic."""
    names = [name for name in ("cluster", "group", "topic") if name in alert.labels]
    query = "&".join(
        f"var-{name}={{{{ $labels.{name} | urlquery }}}}" for name in names if name != "topic"
    )
    if "topic" in names:
        query += "{{ with $labels.topic }}&var-topic={{ . | urlquery }}{{ end }}"
    return f"/d/{alert.dashboard}" + (f"?{query}" if query else "")


def alerting(alert: Alert) -> dict[str, Any]:
    """Return one alert as Prometheus reads it."""
    owners = {name: declared(name) for name in ("team", "owner")} if "group" in alert.labels else {}
    times = {"for": alert.lasts, "keep_firing_for": alert.keeps}
    return {
        "alert": alert.name,
        "expr": alert.expr,
        **{name: value for name, value in times.items() if value != "0m"},
        "labels": {"severity": alert.severity, **owners},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            **state_of(alert),
            "runbook_url": f"docs/runbooks/{alert.name}.md",
            "dashboard_url": dashboard_url(alert),
        },
    }


def recording() -> dict[str, Any]:
    """Return the group of recording rules."""
    return {
        "name": "laggard-recording",
        "rules": [{"record": each.name, "expr": each.expr} for each in RECORDS],
    }


def alerts() -> dict[str, Any]:
    """Return the group of alerts."""
    return {"name": "laggard-alerts", "rules": [alerting(each) for each in ALERTS]}


def files() -> dict[str, str]:
    """Return path, from the root, to content of all that is written."""
    inhibit = [
        {
            "source_matchers": [*each.source],
            "target_matchers": [*each.targets],
            "equal": [*each.equal],
        }
        for each in INHIBITIONS
    ]
    both = {"groups": [recording(), alerts()]}
    operators = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "laggard", "labels": OF_MONITOR},
        "spec": both,
    }
    return {
        "conf/rules/laggard-recording.yaml": text({"groups": [recording()]}),
        "conf/rules/laggard-alerts.yaml": text({"groups": [alerts()]}),
        "conf/rules/alertmanager-inhibit.yaml": text({"inhibit_rules": inhibit}),
        "docker/k8s/monitoring/rules.yaml": text(operators),
        "docker/helm/laggard/files/rules.yaml": text(both),
    }


def main() -> None:
    """Write them."""
    for path, content in files().items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
