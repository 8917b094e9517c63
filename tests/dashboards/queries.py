"""The queries of all panels as Grafana would send them, and what they return."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards.prometheus import SCRAPE_SECONDS, Labels, Prometheus

BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[2] / "conf" / "grafana").glob("*.json"))
}
STEP = 5
Samples = list[tuple[float, float]]


@dataclass(frozen=True)
class Shown:
    """One query of a panel or annotation, with variables replaced, and the series
    that it returned.
    """

    board: str
    title: str
    letter: str
    expression: str
    legend: str
    series: list[tuple[Labels, Samples]]


def escaped(value: str) -> str:
    """A value inside a regular expression inside a string, as Grafana 13's Prometheus source writes
    it by default.

    It leaves a double quote as it is, so a group with one in its name cannot be chosen:
    docs/dashboards.md says so.
    """
    return re.sub(r"[$^*{}\[\]+?.()|]", r"\\\\\g<0>", value.replace("\\", 4 * "\\"))


def chosen_text(values: list[str]) -> str:
    """All values of a variable."""
    return escaped(values[0]) if len(values) == 1 else f"({'|'.join(map(escaped, values))})"


def variables(board: dict[str, Any], server: Prometheus) -> dict[str, str]:
    """Every variable with all its values chosen."""
    chosen: dict[str, str] = {}
    for each in board["templating"]["list"]:
        if each["type"] != "query":
            continue
        query = re.fullmatch(
            r"label_values\((.*), (\w+)\)", replaced(each["query"]["query"], chosen, 0)
        )
        assert query is not None, each["query"]
        values = server.label_values(query[1], query[2])
        assert values, f"{board['uid']}: no values for ${each['name']}"
        everything = each["allValue"] if each["includeAll"] else None
        chosen[each["name"]] = everything or chosen_text(values)
    return chosen


def replaced(text: str, chosen: dict[str, str], seconds: float) -> str:
    """The expression with variables and Grafana's own intervals filled in."""
    own = {"__rate_interval": f"{4 * SCRAPE_SECONDS}s", "__range": f"{seconds:.0f}s"}
    return re.sub(r"\$(\w+)", lambda found: (own | chosen)[found[1]], text)


def ask(server: Prometheus, start: float, end: float) -> Iterator[Shown]:
    """Ask what every panel and annotation asks, at the end or over the whole time."""
    for uid, board in BOARDS.items():
        chosen = variables(board, server)
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                text = replaced(target["expr"], chosen, end - start)
                series: list[tuple[Labels, Samples]]
                if target["instant"]:
                    series = [(labels, [(end, value)]) for labels, value in server.now(text, end)]
                else:
                    series = server.over(text, start, end, STEP)
                yield Shown(
                    uid, panel["title"], target["refId"], text, target["legendFormat"], series
                )
        for each in board["annotations"]["list"]:
            text = replaced(each["expr"], chosen, end - start)
            yield Shown(
                uid,
                each["name"],
                "annotation",
                text,
                each["titleFormat"],
                server.over(text, start, end, STEP),
            )
