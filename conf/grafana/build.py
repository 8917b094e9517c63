"""Writes the dashboards beside this file from panels.py: `make docs`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import colours
from panels import DASHBOARDS, MISSING, Dashboard, Panel
from promql import findings, increase

from laggard.diagnosis.rules.rule import INFO, PAGE, WARN
from laggard.exporter.body.families import FAMILIES
from laggard.lag.status import STATUSES

__all__ = ["DASHBOARDS", "MISSING", "files"]

HERE = Path(__file__).parent
SCHEMA_VERSION = 41  # of Grafana 12; newer ones migrate it as they load it
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRID = 24
SEVERITIES = (PAGE, WARN, INFO)
_LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True}
_LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_NEVER = {"type": "value", "options": {"Infinity": {"text": "never", "index": 0}}}
# label of a chosen series or column of a chosen row → variable of the next dashboard
_GROUP = ("cluster", "group")


def _lines(*, fill: int = 0, stacked: bool = False, style: str = "line") -> dict[str, Any]:
    """Draw a time series so that a gap stays a gap, since unknown is not the value before it."""
    return {
        "drawStyle": style,
        "fillOpacity": fill,
        "lineWidth": 1,
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
    }


def _timeseries(custom: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "custom": custom,
        "options": {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    }


_STRIP_OPTIONS = {"legend": _LEGEND | {"showLegend": False}, "rowHeight": 0.9, "showValue": "never"}
# `instant`: the newest answer only, so that a value that is unknown now is not shown as it was
# before
KINDS: dict[str, dict[str, Any]] = {
    "series": _timeseries(_lines()),
    "stacked": _timeseries(_lines(fill=40, stacked=True)),
    "columns": _timeseries(_lines(fill=80, stacked=True, style="bars")),
    "stat": {
        "type": "stat",
        "instant": True,
        "options": {
            "colorMode": "value",
            "graphMode": "none",
            "reduceOptions": _LAST,
            "textMode": "value_and_name",
        },
    },
    "bars": {
        "type": "bargauge",
        "instant": True,
        "options": {
            "displayMode": "basic",
            "orientation": "horizontal",
            "reduceOptions": _LAST,
            "showUnfilled": True,
        },
    },
    "table": {
        "type": "table",
        "instant": True,
        "options": {"cellHeight": "sm", "showHeader": True},
    },
    "lanes": {
        "type": "state-timeline",
        "options": {"legend": _LEGEND, "mergeValues": True, "showValue": "auto"},
    },
    "strip": {"type": "status-history", "options": _STRIP_OPTIONS},
    "heat_strip": {
        "type": "status-history",
        "colour": {"mode": "continuous-BlYlRd"},
        "options": _STRIP_OPTIONS,
    },
    "heatmap": {"type": "heatmap", "options": {}},
}


def _description(panel: Panel) -> str:
    """Say how to read it, then the HELP of each metric it shows."""
    names = set(
        re.findall(r"\blaggard_\w+", " ".join(expression for expression, _ in panel.queries))
    )
    helps = [
        f"`{each.name}`: {each.help}"
        for each in FAMILIES
        if names & {each.name, f"{each.name}_bucket"}
    ]
    return "\n\n".join([panel.says, *helps])


def _targets(panel: Panel, kind: dict[str, Any]) -> list[dict[str, Any]]:
    form = {"table": "table", "heatmap": "heatmap"}.get(kind["type"], "time_series")
    instant = kind.get("instant", False)
    return [
        {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": expression,
            "format": form,
            "instant": instant,
            "range": not instant,
            "legendFormat": legend or "__auto",
        }
        for number, (expression, legend) in enumerate(panel.queries)
    ]


def _links(board: Dashboard, panel: Panel) -> list[dict[str, Any]]:
    """Return links of a series or row to the dashboards of its group."""
    if "group" not in board.variables or panel.kind == "heatmap":
        return []
    place, labels = "__data.fields", list(_GROUP)
    if panel.kind != "table":
        legends = [legend for _, legend in panel.queries]
        place = "__field.labels"
        labels = [
            each
            for each in (*_GROUP, "topic")
            if all(f"{{{{{each}}}}}" in legend for legend in legends)
        ]
    if not set(_GROUP) <= set(labels):
        return []
    chosen = [f"var-{label}=${{{place}.{label}:percentencode}}" for label in labels]
    query = "&".join(["${datasource:queryparam}", *chosen, "${__url_time_range}"])
    return [
        {"title": other.title, "url": f"/d/{other.uid}?{query}", "targetBlank": False}
        for other in DASHBOARDS
        if "group" in other.variables and not other.all_groups and other is not board
    ]


def _table(links: list[dict[str, Any]], *, numbers: bool) -> dict[str, Any]:
    """Return columns of labels and, if it is informative, of the value.

    The query's order puts the worst row first.
    """
    hidden = {"Time": True, **({} if numbers else {"Value": True})}
    texts = {"matcher": {"id": "byRegexp", "options": "/^(severity|status)$/"}, "properties": [
        {"id": "mappings", "value": colours.texts((*SEVERITIES, *STATUSES))},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
    ]}  # fmt: skip
    linked = {
        "matcher": {"id": "byName", "options": "group"},
        "properties": [{"id": "links", "value": links}],
    }
    return {
        "overrides": [texts, *([linked] if links else [])],
        "transformations": [
            {
                "id": "organize",
                "options": {"excludeByName": hidden, "renameByName": {"Value": "time left"}},
            }
        ],
    }


def _panel(board: Dashboard, panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    kind = KINDS[panel.kind]
    links = _links(board, panel)
    mappings = [_NEVER] if panel.unit == "s" else []
    if panel.states:
        mappings = colours.lanes(panel.states)
    colour = kind.get("colour") or {
        "mode": "thresholds" if kind["type"] in _BY_THRESHOLD else "palette-classic"
    }
    made: dict[str, Any] = {
        "id": number,
        "title": panel.title,
        "type": kind["type"],
        "description": _description(panel),
        "datasource": SOURCE,
        "gridPos": place,
        "targets": _targets(panel, kind),
        "options": kind["options"],
        "fieldConfig": {
            "defaults": {
                "color": colour,
                "custom": kind.get("custom", {}),
                "links": [] if panel.kind == "table" else links,
                "mappings": mappings,
                "thresholds": colours.steps(panel.threshold),
                "unit": panel.unit,
            },
            "overrides": [],
        },
    }
    if panel.kind == "table":
        table = _table(links, numbers=panel.unit != "none")
        made["transformations"] = table["transformations"]
        made["fieldConfig"]["overrides"] = table["overrides"]
    if panel.kind == "heatmap":
        # buckets of two clusters must not be added
        made |= {"repeat": "cluster", "repeatDirection": "v"}
        made["options"] = {
            "calculate": False,
            "color": {"mode": "scheme", "scheme": "Cividis", "steps": 64, "reverse": False},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": True},
            "yAxis": {"unit": panel.unit},
        }
    if kind["type"] == "status-history":
        made["maxDataPoints"] = 90  # wide enough to be seen
    return made


_BY_THRESHOLD = ("stat", "bargauge", "status-history", "state-timeline")


def _rows(board: Dashboard) -> Iterator[dict[str, Any]]:
    """Yield panels from left to right below the header of their section."""
    number, y = 0, 0
    for title, panels in board.sections:
        number += 1
        place = {"x": 0, "y": y, "w": GRID, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        x, y, height = 0, y + 1, 0
        for panel in panels:
            if x + panel.width > GRID:
                x, y, height = 0, y + height, 0
            number += 1
            yield _panel(
                board, panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height}
            )
            x, height = x + panel.width, max(height, panel.height)
        y += height


def _variable(name: str, label: str, query: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "StandardVariableQuery"},
        "refresh": 2,  # when the time range changes
        "sort": 1,
        "multi": True,
        "hide": 0,
        "regex": "",
        "options": [],
    } | more


def _variables(board: Dashboard) -> list[dict[str, Any]]:
    """Return variables for data source and cluster, then the dashboard's own variables.

    The value `.*` also matches series without the label.
    """
    everything = {
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }
    # 2,000 groups at once help nobody and cost Prometheus much
    one = {"includeAll": False, "current": {}}
    c, g = 'cluster=~"$cluster"', 'group=~"$group"'
    groups, topics = (
        f"label_values(laggard_group_state{{{c}}}, group)",
        "laggard_group_lag_known_records",
    )
    known: dict[str, Callable[[], dict[str, Any]]] = {
        "group": lambda: _variable(
            "group", "Group", groups, **(everything if board.all_groups else one)
        ),
        "topic": lambda: _variable(
            "topic", "Topic", f"label_values({topics}{{{c}, {g}}}, topic)", **everything
        ),
        # no `.*`: it would match every process that Prometheus knows
        "exporter": lambda: _variable(
            "exporter",
            "Exporter",
            "label_values(laggard_build_info, instance)",
            **(everything | {"allValue": None}),
        ),
    }
    source = {
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        "refresh": 1, "regex": "", "hide": 0, "multi": False, "includeAll": False, "current": {},
        "options": [],
    }  # fmt: skip
    cluster = _variable("cluster", "Cluster", "label_values(laggard_ready, cluster)", **everything)
    return [source, cluster, *(known[name]() for name in board.variables)]


def _annotations(board: Dashboard) -> list[dict[str, Any]]:
    """Return rebalances, deploys, findings and firing alerts of the dashboard's groups."""
    alerts = 'ALERTS{alertstate="firing", cluster=~"$cluster", alertname=~"Laggard.*"}'
    firing = f"max by (cluster, group, topic, alertname) ({alerts})"
    shown = [("Alerts", colours.RED, firing, "{{alertname}}")]
    if "group" in board.variables and not board.all_groups:
        rebalances = f"{increase('group_rebalances_total')} > 0"
        shown += [
            ("Rebalances", colours.YELLOW, rebalances, "rebalance: {{cause}}"),
            ("Deploys", colours.BLUE, findings('code="DEPLOY_LAG_SPIKE"'), "deploy"),
            ("Findings", colours.ORANGE, findings('severity=~"page|warn"'), "{{code}}"),
        ]
    return [
        {
            "name": name,
            "datasource": SOURCE,
            "enable": True,
            "expr": expression,
            "iconColor": colour,
            "titleFormat": title,
            "textFormat": "{{cluster}} {{group}} {{topic}}",
            "tagKeys": "cluster,group",
        }
        for name, colour, expression, title in shown
    ]


def dashboard(board: Dashboard) -> dict[str, Any]:
    """Make one dashboard in Grafana's classic JSON."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.says,
        "tags": ["laggard"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "timezone": "browser",
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables(board)},
        "annotations": {"list": _annotations(board)},
        "links": [
            {
                "title": "laggard",
                "type": "dashboards",
                "tags": ["laggard"],
                "includeVars": True,
                "keepTime": True,
                "asDropdown": False,
                "targetBlank": False,
            }
        ],
        "panels": list(_rows(board)),
    }


def files() -> dict[str, str]:
    """Return file name to content of all dashboards."""
    return {
        f"{board.uid}.json": json.dumps(dashboard(board), indent=1, ensure_ascii=False) + "\n"
        for board in DASHBOARDS
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text, encoding="utf-8")
