"""Rules for dashboards, after grafana/dashboard-linter and with ours: each gives the faults it
finds in one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from laggard.exporter.body.families import FAMILIES

SCHEMA_VERSION = 41
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"s", "none", "short", "percentunit", "cps", "reqps", "bytes", "bool_yes_no"}
# what is not ours: of Prometheus' alerts, and of prometheus-client's process collector
OTHERS = {
    "ALERTS": {"alertname", "alertstate", "cluster", "group", "topic"},
    "process_resident_memory_bytes": {"instance"},
}
COUNTER_FUNCTIONS = {"rate", "increase"}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABELS = re.compile(r"(?P<word>by|on|group_left|without|ignoring)\s*\((?P<labels>[^)]*)\)")
_AGGREGATION = re.compile(
    r"\b(?:sum|max|min|avg|count)\b(?P<next>\s*\S+)(?:\s*\((?P<labels>[^)]*)\))?"
)


def catalogue() -> dict[str, tuple[str, set[str]]]:
    """Sample name to its type, and the labels that Prometheus stores with it."""
    found = {name: ("gauge", labels) for name, labels in OTHERS.items()}
    for family in FAMILIES:
        labels = {*family.labels, "instance"}
        if family.type in {"histogram", "gaugehistogram"}:
            kind = "counter" if family.type == "histogram" else "gauge"
            found |= {
                family.name + end: (kind, labels | more)
                for end, more in (("_bucket", {"le"}), ("_sum", set()))
            }
            continue
        if family.type == "stateset":
            labels |= {family.name}
        found[family.name] = ("counter" if family.type == "counter" else "gauge", labels)
    return found


CATALOGUE = catalogue()


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """All panels but the headers of sections."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def expressions(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and expression of every query of a panel, an annotation or a variable."""
    for panel in panels(board):
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    yield from ((each["name"], each["expr"]) for each in board["annotations"]["list"])


def selectors(expression: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the function around each selector, its metric, its matchers and its range."""
    for found in re.finditer(
        r"(?:\b(?P<function>[a-z_]+)\()?\b(?P<name>(?:laggard|process)_\w+|ALERTS)\b(?!\s*(?:=|,"
        r"|\)))"
        r"(?:\{(?P<matchers>(?:[^}\"]|\"[^\"]*\")*)\})?(?:\[(?P<range>[^\]]*)\])?",
        expression,
    ):
        yield found["function"] or "", found["name"], found["matchers"] or "", found["range"] or ""


def source(board: dict[str, Any]) -> Iterator[str]:
    first = board["templating"]["list"][0]
    if (first["name"], first["type"], first["query"]) != ("datasource", "datasource", "prometheus"):
        yield "the first variable is not the data source"
    parts = [*panels(board), *board["annotations"]["list"], *board["templating"]["list"][1:]]
    parts += [target for panel in panels(board) for target in panel["targets"]]
    yield from ("a fixed data source" for part in parts if part.get("datasource") != SOURCE)


def texts(board: dict[str, Any]) -> Iterator[str]:
    for panel in panels(board):
        unit = panel["fieldConfig"]["defaults"].get("unit")
        yield from (f"no {key}" for key in ("title", "description") if not panel.get(key))
        if unit not in UNITS or (
            panel["type"] == "heatmap" and panel["options"]["yAxis"]["unit"] != unit
        ):
            yield f"{panel['title']}: unit {unit}"
        if panel["type"] == "text":
            yield f"{panel['title']}: a text panel"


def legends(board: dict[str, Any]) -> Iterator[str]:
    """A legend names labels that the series have, and every series has one, but rows of a table."""
    for panel in panels(board):
        for target in panel["targets"]:
            legend = target["legendFormat"]
            kept = {label for _, labels in label_lists(target["expr"]) for label in labels}
            if (legend == "__auto") != (panel["type"] == "table"):
                yield f"{panel['title']}: legend {legend}"
            yield from (
                f"{panel['title']}: no {{{{{name}}}}}"
                for name in re.findall(r"{{(\w+)}}", legend)
                if name not in kept
            )


def ranges(board: dict[str, Any]) -> Iterator[str]:
    """The range follows the zoom; $__range and an hour or more are meant as they are."""
    for title, expression in expressions(board):
        for _, name, _, span in selectors(expression):
            if (
                span
                and span not in {"$__rate_interval", "$__range"}
                and not re.fullmatch(r"\d+[hdw]", span)
            ):
                yield f"{title}: {name}[{span}]"


def functions(board: dict[str, Any]) -> Iterator[str]:
    """A counter is read by its rise, a gauge as it is."""
    for title, expression in expressions(board):
        for function, name, _, _ in selectors(expression):
            kind = CATALOGUE.get(name, ("", set()))[0]
            if (kind == "counter") != (function in COUNTER_FUNCTIONS):
                yield f"{title}: {function or 'no function'} of the {kind} {name}"


def label_lists(expression: str) -> Iterator[tuple[str, set[str]]]:
    bare = _STRING.sub('""', expression)
    for found in _LABELS.finditer(bare):
        yield (
            found["word"],
            {label.strip() for label in found["labels"].split(",") if label.strip()},
        )


def clusters(board: dict[str, Any]) -> Iterator[str]:
    """Every aggregation keeps the cluster, or the instance for what has no cluster; a heatmap is of
    one cluster.
    """
    heatmaps = (panel for panel in panels(board) if panel["type"] == "heatmap")
    yield from (
        f"{panel['title']}: not repeated" for panel in heatmaps if panel.get("repeat") != "cluster"
    )
    for title, expression in expressions(board):
        for found in _AGGREGATION.finditer(_STRING.sub('""', expression)):
            kept = {label.strip() for label in (found["labels"] or "").split(",")}
            if found["next"].strip() != "by" or not kept & {"cluster", "instance"}:
                yield f"{title}: {found[0]}"


def replicas(board: dict[str, Any]) -> Iterator[str]:
    """Each selector is inside a maximum by its own labels, which several replicas of an exporter do
    not change.
    """
    for title, expression in expressions(board):
        for found in re.finditer(
            r"(?:max by \((?P<by>[^)]*)\) \((?:[a-z_]+\()?)?\b(?P<name>laggard_\w+"
            r"|ALERTS)\{(?P<state>[^}]*)",
            expression,
        ):
            name, by = found["name"], set((found["by"] or "").split(", "))
            chosen = {name} if f'{name}="' in found["state"] else set()  # one state of a stateset
            missing = CATALOGUE.get(name, ("", set()))[1] - by - chosen - {"instance", "alertstate"}
            yield from (f"{title}: {name} not by {each}" for each in missing)


def matchers(board: dict[str, Any]) -> Iterator[str]:
    for title, expression in expressions(board):
        for _, name, text, _ in selectors(expression):
            if not re.search(r'(cluster=~"\$cluster"|instance=~"\$exporter")', text):
                yield f"{title}: {name}"
            used = set(re.findall(r'=~"\$(\w+)"', text))
            yield from (
                f"{title}: no variable {each}"
                for each in used - {v["name"] for v in board["templating"]["list"]}
            )


def known(board: dict[str, Any]) -> Iterator[str]:
    """Every metric and label is in the exporter's catalogue."""
    queries = [
        each["query"]["query"] for each in board["templating"]["list"] if each["type"] == "query"
    ]
    for title, expression in [*expressions(board), *(("a variable", query) for query in queries)]:
        found = list(selectors(expression)) or [
            ("", name, "", "") for name in re.findall(r"laggard_\w+", expression)
        ]
        if not found:
            yield f"{title}: no metric"
        labels: set[str] = set()
        for _, name, text, _ in found:
            if name not in CATALOGUE:
                yield f"{title}: {name}"
                continue
            labels |= CATALOGUE[name][1]
            yield from (
                f"{title}: {name}{{{each}}}"
                for each in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', text)
                if each not in CATALOGUE[name][1]
            )
        yield from (
            f"{title}: {word} {each}"
            for word, names in label_lists(expression)
            for each in names - labels
        )


def unique(board: dict[str, Any]) -> Iterator[str]:
    """Titles and ids within a dashboard."""
    for key in ("title", "id"):
        counted = Counter(panel[key] for panel in board["panels"])
        yield from (f"{key} {value} twice" for value, times in counted.items() if times > 1)


def sizes(board: dict[str, Any]) -> Iterator[str]:
    """At most 24 panels, side by side and none upon another."""
    if len(panels(board)) > 24:
        yield "more than 24 panels"
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        if cells & taken or place["x"] + place["w"] > 24 or not cells:
            yield f"{panel['title']}: overlaps"
        taken |= cells


def links(board: dict[str, Any]) -> Iterator[str]:
    """Links take variables, data source and time along."""
    if not board["links"]:
        yield "no links"
    yield from (
        "a link without variables or time"
        for each in board["links"]
        if not (each["includeVars"] and each["keepTime"])
    )
    for panel in panels(board):
        overrides = [
            p
            for o in panel["fieldConfig"]["overrides"]
            for p in o["properties"]
            if p["id"] == "links"
        ]
        below = [
            *panel["fieldConfig"]["defaults"]["links"],
            *(each for o in overrides for each in o["value"]),
        ]
        for each in below:
            wanted = (
                "${datasource:queryparam}",
                "var-cluster=",
                "var-group=",
                "${__url_time_range}",
            )
            yield from (
                f"{panel['title']}: {part} is not in {each['url']}"
                for part in wanted
                if part not in each["url"]
            )


def fixed(board: dict[str, Any]) -> Iterator[str]:
    """What is the same in all."""
    wanted = {
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "timezone": "browser",
        "tags": ["laggard"],
    }
    yield from (
        f"{key} is {board.get(key)}" for key, value in wanted.items() if board.get(key) != value
    )
    if not re.fullmatch(r"laggard-[a-z]+", board.get("uid") or ""):
        yield f"uid {board.get('uid')}"


def fresh(board: dict[str, Any]) -> Iterator[str]:
    """A number on its own is the newest answer; one from before would hide that it
    is unknown now.
    """
    for panel in panels(board):
        single = panel["type"] in {"stat", "bargauge", "table"}
        yield from (
            f"{panel['title']}: instant is {t['instant']}"
            for t in panel["targets"]
            if t["instant"] != single
        )
        if (
            panel["type"] == "timeseries"
            and panel["fieldConfig"]["defaults"]["custom"]["spanNulls"]
        ):
            yield f"{panel['title']}: a line over a gap"


RULES = (
    source, texts, legends, ranges, functions, clusters, replicas, matchers, known, unique, sizes,
    links, fixed, fresh,
)  # fmt: skip
