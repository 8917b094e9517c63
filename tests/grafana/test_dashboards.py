"""The dashboards that are shipped: what their table says, by rules that each find their fault."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana import lint
from laggard.exporter.body.families import FAMILIES

ROOT = Path(__file__).parents[2]
HERE = ROOT / "conf" / "grafana"
NAMES = ("fleet", "group", "rebalance", "partition", "offsets", "pipeline")
BOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.json"))
}


@pytest.fixture(scope="module")
def build() -> Any:
    spec = spec_from_file_location("grafana_build", HERE / "build.py")  # there are other build.py
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.path.insert(0, str(HERE))
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(HERE))
    return made


def test_the_files_are_what_the_table_says(build: Any) -> None:
    """If this fails: make docs."""
    written = {path.name: path.read_text(encoding="utf-8") for path in HERE.glob("*.json")}
    assert written == build.files()


def test_there_are_six_with_uids_and_titles_of_their_own() -> None:
    assert set(BOARDS) == {f"laggard-{name}" for name in NAMES}
    assert [board["uid"] for board in BOARDS.values()] == list(BOARDS)
    assert max(Counter(board["title"] for board in BOARDS.values()).values()) == 1


def test_panels_that_wait_for_a_metric_wait_for_one_that_is_not_there(build: Any) -> None:
    """If this fails: the exporter has the metric now, so make the panel and take the line away."""
    assert set(build.MISSING) & {family.name for family in FAMILIES} == set()


@pytest.mark.parametrize("rule", lint.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_keeps_every_rule(name: str, rule: Callable[[dict[str, Any]], Any]) -> None:
    assert list(rule(BOARDS[name])) == []


def panel(board: dict[str, Any], title: str) -> dict[str, Any]:
    return next(each for each in board["panels"] if each["title"] == title)


def swap(title: str, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    """Change the first query of a panel."""

    def change(board: dict[str, Any]) -> None:
        target = panel(board, title)["targets"][0]
        assert old in target["expr"]
        target["expr"] = target["expr"].replace(old, new)

    return change


def put(title: str, key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set a key of a panel."""
    return lambda board: panel(board, title).update({key: value})


def defaults(board: dict[str, Any], title: str) -> dict[str, Any]:
    found: dict[str, Any] = panel(board, title)["fieldConfig"]["defaults"]
    return found


def linked(board: dict[str, Any], title: str) -> list[dict[str, Any]]:
    """Links of a table."""
    found: list[dict[str, Any]] = panel(board, title)["fieldConfig"]["overrides"][1]["properties"][
        0
    ]["value"]
    return found


def variable(board: dict[str, Any]) -> dict[str, Any]:
    """Get the one of the cluster."""
    found: dict[str, Any] = board["templating"]["list"][1]
    return found


AGE, LAG, IN, TABLE = (
    "Age of the data",
    "Lag",
    "Records in and out per second",
    "Nearest to data loss",
)
HEAT = "Partitions by time lag: $cluster"
MUTATIONS: list[tuple[Any, str, Callable[[dict[str, Any]], Any]]] = [
    (lint.source, "fleet", put(AGE, "datasource", {"type": "prometheus", "uid": "P1"})),
    (lint.source, "fleet", lambda board: panel(board, AGE)["targets"][0].pop("datasource")),
    (lint.source, "fleet", lambda board: board["templating"]["list"].pop(0)),
    (lint.texts, "fleet", put(AGE, "title", "")),
    (lint.texts, "fleet", put(AGE, "description", "")),
    (lint.texts, "fleet", lambda board: defaults(board, AGE).update(unit="seconds")),
    (lint.texts, "group", lambda board: panel(board,
    HEAT)["options"]["yAxis"].update(unit="short")),
    (lint.legends, "fleet", lambda board: panel(board,
    AGE)["targets"][0].update(legendFormat="__auto")),
    (lint.legends, "fleet", lambda board: panel(board,
    AGE)["targets"][0].update(legendFormat="{{topic}}")),
    (lint.ranges, "group", swap(IN, "$__rate_interval", "1m")),
    (lint.functions, "group", swap(LAG, "laggard_group_lag_records{",
    "rate(laggard_group_lag_records{")),
    (lint.functions, "group", swap(IN, "rate(", "(")),
    (lint.functions, "group", swap(IN, "rate(", "deriv(")),
    (lint.clusters, "group", swap(IN, "sum by (cluster, ", "sum by (")),
    (lint.clusters, "group", swap(IN, "sum by (cluster, group, topic)", "sum")),
    (lint.clusters, "group", swap(IN, "sum by (cluster, group, topic)", "sum without (partition)")),
    (lint.clusters, "group", lambda board: panel(board, HEAT).pop("repeat")),
    (lint.replicas, "group", swap(IN, "(max by (cluster, group, topic) ", "(")),
    (lint.replicas, "group", swap(LAG, "max by", "sum by")),
    (lint.replicas, "group", swap(LAG, "group, topic)", "group)")),
    (lint.matchers, "group", swap(LAG, 'cluster=~"$cluster", ', "")),
    (lint.matchers, "group", swap(LAG, "$topic", "$topics")),
    (lint.known, "group", swap(LAG, "laggard_group_lag_records", "laggard_group_lags")),
    (lint.known, "group", swap(LAG, "topic)", "topics)")),
    (lint.known, "group", swap(LAG, 'topic=~"', 'topics=~"')),
    (lint.known, "group",
    lambda board: variable(board)["query"].update(query="label_values(laggard_up, cluster)")),
    (lint.unique, "fleet", put(AGE, "title", "Groups by state")),
    (lint.unique, "fleet", put(AGE, "id", 1)),
    (lint.sizes, "fleet", lambda board: panel(board, AGE)["gridPos"].update(w=7)),
    (lint.sizes, "fleet", lambda board: panel(board, TABLE)["gridPos"].update(x=13)),
    (lint.sizes, "fleet", lambda board: board["panels"].extend(deepcopy(board["panels"]))),
    (lint.links, "fleet", lambda board: board["links"].clear()),
    (lint.links, "fleet", lambda board: board["links"][0].update(includeVars=False)),
    (lint.links, "group", lambda board: defaults(board,
    LAG)["links"][0].update(url="/d/laggard-partition")),
    (lint.links, "fleet", lambda board: linked(board, TABLE)[0].update(url="/d/laggard-group")),
    (lint.fixed, "fleet", lambda board: board.update(schemaVersion=42)),
    (lint.fixed, "fleet", lambda board: board.update(editable=True)),
    (lint.fixed, "fleet", lambda board: board.update(uid=None)),
    (lint.fresh, "fleet", lambda board: panel(board, AGE)["targets"][0].update(instant=False)),
    (lint.fresh, "group", lambda board: defaults(board, LAG)["custom"].update(spanNulls=True)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "name", "change"),
    MUTATIONS,
    ids=[f"{each[0].__name__}-{n}" for n, each in enumerate(MUTATIONS)],
)
def test_every_rule_finds_its_fault(
    rule: Any, name: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    board = deepcopy(BOARDS[f"laggard-{name}"])
    change(board)
    assert list(rule(board)) != []


def test_every_rule_has_a_fault_to_find() -> None:
    assert {each[0] for each in MUTATIONS} == set(lint.RULES)


def lost(ours: Any, theirs: Any, path: str = "") -> set[str]:
    """Paths of what is not in both."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        parts = (
            (key, value, theirs.get(key))
            for key, value in ours.items()
            if value not in (None, [], {})
        )
        return {
            found for key, value, other in parts for found in lost(value, other, f"{path}.{key}")
        }
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return {
            found
            for one, other in zip(ours, theirs, strict=True)
            for found in lost(one, other, path)
        }
    return set() if ours == theirs else {path}


@pytest.mark.parametrize("name", BOARDS)
def test_grafanas_own_types_know_every_key(name: str) -> None:
    """Grafana's SDK drops keys that its schema of dashboards and panels does not have."""
    pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    board = deepcopy(BOARDS[name])
    board["panels"][1]["options"]["colourMode"] = "value"  # is not one of Grafana's
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    # Prometheus' own
    formats = {f".annotations.list.{key}" for key in ("titleFormat", "textFormat", "tagKeys")}
    assert lost(board, read) == formats | {".panels.options.colourMode"}


@pytest.mark.full
def test_promtool_takes_every_expression(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("needs promtool: make tools")
    queries = sorted({text for board in BOARDS.values() for _, text in lint.expressions(board)})
    plain = [re.sub(r"\$__(rate_interval|range)", "5m", text) for text in queries]
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(plain)]
    path = tmp_path / "panels.yaml"
    for expressions, code in (
        (rules, 0),
        ([*rules, {"record": "panel:bad", "expr": "sum by (cluster"}], 1),
    ):
        path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": expressions}]}))
        done = subprocess.run(
            [tool, "check", "rules", str(path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
