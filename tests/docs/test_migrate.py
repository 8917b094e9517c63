"""The pages on moving from another tool name what is served, and their configurations and queries
work.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from laggard.config.load import load_config
from laggard.config.sections import TOOLS as KEYS
from laggard.config.sections import keys
from laggard.exporter.body.compat_families import COMPAT
from laggard.exporter.body.families import FAMILIES
from migrate_pages import OWN, PAGES, TOOLS, TRIAL, Tool, families, page
from rules.promtool import promtool

TEXTS = {tool: (PAGES / f"{tool.page}.md").read_text(encoding="utf-8") for tool in TOOLS}
by_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.key)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_every_name_of_other_tools_is_on_one_page_beside_a_metric_that_is_there() -> None:
    assert {tool.key for tool in TOOLS} == set(KEYS)
    assert sorted(each.name for tool in TOOLS for each in families(tool)) == sorted(
        each.name for each in COMPAT
    )
    assert {each.name for each in COMPAT} == set(OWN)
    assert {own for own in OWN.values() if own} <= {each.name for each in FAMILIES}


@by_tool
def test_a_page_is_what_is_declared(tool: Tool) -> None:
    """If this fails: make docs."""
    assert page(tool, TEXTS[tool]) == TEXTS[tool]


@by_tool
def test_a_page_names_metrics_and_keys_that_are_there(tool: Tool) -> None:
    own = {each.name for each in FAMILIES}
    assert [
        name for name in re.findall(r"`(laggard_[a-z_]+)[`{]", TEXTS[tool]) if name not in own
    ] == []
    assert [
        key
        for key in re.findall(r"`((?:job|metrics|exporter)\.\w+)`", TEXTS[tool])
        if key not in keys()
    ] == []


@by_tool
def test_its_configuration_is_right(tool: Tool, tmp_path: Path) -> None:
    (text,) = blocks(TEXTS[tool], "toml")
    (tmp_path / "laggard.toml").write_text(text, encoding="utf-8")
    config = load_config(str(tmp_path / "laggard.toml"), (), {})
    assert [*config.metrics.compat] == [tool.key]


@by_tool
def test_its_scrape_renames_what_the_other_tool_has_and_nothing_else(tool: Tool) -> None:
    (job,) = yaml.safe_load(blocks(TEXTS[tool], "yaml")[0])["scrape_configs"]
    (rename,) = job["metric_relabel_configs"]
    assert rename["replacement"] == f"{TRIAL}$1"
    assert all(re.fullmatch(rename["regex"], each.name) for each in families(tool))
    assert not any(re.fullmatch(rename["regex"], each.name) for each in FAMILIES)


@pytest.mark.full
@by_tool
def test_promtool_accepts_its_scrape_configuration(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "prometheus.yaml").write_text(blocks(TEXTS[tool], "yaml")[0], encoding="utf-8")
    command = [promtool(), "check", "config", str(tmp_path / "prometheus.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
@by_tool
def test_its_queries_find_what_differs_and_what_one_side_lacks(tool: Tool, tmp_path: Path) -> None:
    differs, theirs_only, ours_only = blocks(TEXTS[tool], "promql")
    names = [label.strip() for label in tool.by.split(",")]

    def labels(group: str, extra: str = "") -> str:
        return "{" + ", ".join(f'{name}="{group}"' for name in sorted(names)) + extra + "}"

    cluster = f', {tool.added}="prod"' if tool.added else ""
    values = {
        "same": (5000, 5010),
        "apart": (5000, 7000),
        "few": (3, 40),
        "old": (9, None),
        "new": (None, 8),
    }
    series = [
        {"series": f"{name}{labels(group, extra)}", "values": f"{value}x130"}
        for group, pair in values.items()
        for name, value, extra in zip(
            (tool.lag, TRIAL + tool.lag), pair, ("", cluster), strict=True
        )
        if value is not None
    ]
    expected = {differs: [("apart", 2000)], theirs_only: [("old", 9)], ours_only: [("new", 8)]}
    test = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": f"({query}) + 0",
                "eval_time": "2h",
                "exp_samples": [
                    {"labels": labels(group), "value": value} for group, value in found
                ],
            }
            for query, found in expected.items()
        ],
    }
    (tmp_path / "queries.test.yaml").write_text(
        yaml.safe_dump({"rule_files": [], "tests": [test]}), encoding="utf-8"
    )
    command = [promtool(), "test", "rules", str(tmp_path / "queries.test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
