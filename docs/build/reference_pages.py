"""Write docs/metrics.md, the API's documents and parts of docs/diagnosis.md: `make docs`.

In docs/diagnosis.md the text between two marks is generated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from laggard.answers.openapi import answer_schemas, openapi

# imports all modules that declare thresholds
from laggard.diagnosis.engine import evaluate_group  # noqa: F401
from laggard.diagnosis.parameters import FIXED, Parameters
from laggard.diagnosis.rules.registry import RULES
from laggard.diagnosis.rules.rule import Rule
from laggard.exporter.body.compat_families import COMPAT
from laggard.exporter.body.families import FAMILIES, LEVELS, Family

DOCS = Path(__file__).parents[1]
_PARTS = (
    ("group_lag_records", "A. Lag now"),
    ("group_lag_floor_records", "B. Shape and forecast"),
    ("group_produced_records_total", "C. Flow counters"),
    ("group_state", "D. State, rebalances, declarations"),
    ("group_desired_consumers", "E. Sizing"),
    ("finding_active", "F. Findings and topics"),
    ("ready", "G. Pipeline"),
    ("build_info", "H. The exporter itself"),
)


def metrics_page() -> str:
    """Return every family, in the order in which a body has them."""
    return "\n".join(_metrics_lines()) + "\n"


def _metrics_lines() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield (
        "Written by `make docs` from `lib/laggard/exporter/body/families.py`; the HELP texts of a "
        "scrape are the same."
    )
    yield (
        "An unknown value is absent: never 0, −1 or NaN. `+Inf` means: not at the current rate. "
        "A `stateset` has one"
    )
    yield (
        "series per state, labelled with the metric's name, and no series while the state is "
        "unknown."
    )
    yield "Above `metrics.max_series` whole levels of series are withheld, in this order:"
    yield (
        ", ".join(f"`{level}`" for level in LEVELS)
        + ". Groups with lag or an open finding are withheld last."
    )
    starts = dict(_PARTS)
    for family in FAMILIES:
        title = starts.get(family.name.removeprefix("laggard_"))
        if title:
            yield from (
                "",
                f"## {title}",
                "",
                "| metric | type | labels | level | says |",
                "|---|---|---|---|---|",
            )
        yield _metric_row(family)
    yield from ("", "## Names of other exporters", "", *_COMPAT_INTRO)
    tool = ""
    for family in COMPAT:
        if tool != (tool := _tool(family)):
            yield from (
                "",
                f"### `{tool}`",
                "",
                "| metric | type | labels | says |",
                "|---|---|---|---|",
            )
        yield _metric_row(family).replace("| `compat` ", "", 1)


_COMPAT_INTRO = (
    (
        "`metrics.compat` lists other tools; the same facts are then also served under the names "
        "of these tools, so that"
    ),
    (
        "their dashboards and alerts keep working. All partitions of watched groups have these "
        "series, and they are the"
    ),
    (
        "first to be withheld above `metrics.max_series`. Values are laggard's: absent if the "
        "other tool shows −1, NaN, 0"
    ),
    (
        "or a partial sum. Tools without a label `cluster` get one, unless "
        "`metrics.compat_cluster_label` is false. Series"
    ),
    "of brokers, replicas and log directories are left out.",
)


def _tool(family: Family) -> str:
    if family.name.startswith(("burrow_", "kminion_")):
        return family.name.partition("_")[0]
    return "kafka_lag_exporter" if "cluster_name" in family.labels else "kafka_exporter"


def _metric_row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "–"
    states = (
        "; states: " + ", ".join(f"`{state}`" for state in family.states) if family.states else ""
    )
    level = f"`{family.level}`" if family.level else "–"
    return (
        f"| `{family.name}` | {family.type} | {labels} | {level} | "
        f"{family.help.removesuffix('.')}{states}. |"
    )


def diagnosis_page(page: str) -> str:
    """Return the page with its generated parts written again."""
    for name, lines in {
        "codes": _code_lines(),
        "parameters": _parameter_lines(),
        "fixed": _fixed_lines(),
    }.items():
        begin, end = f"<!-- {name}: written by make docs -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = "\n".join([before + begin, *lines, end + after])
    return page


def _code_lines() -> Iterator[str]:
    for rule in sorted(RULES, key=lambda rule: (rule.number, rule.code)):
        yield from ("", f"### {rule.code}", "")
        yield f"{rule.number}, {_KINDS[rule.kind]}. {_sentence(rule.says)}"
        yield ""
        yield f"- How: {_sentence(rule.how)}"
        yield f"- Is not: {rule.is_not}"
        advice = [_sentence(text) for text in rule.advice]
        if advice:
            yield f"- First: {advice[0]}"
        if advice[1:]:
            yield "- Then: " + " ".join(advice[1:])
        if rule.mistakes:
            yield "- Mistakes to avoid: " + " ".join(_sentence(text) for text in rule.mistakes)
        yield f"- Wrong if: {rule.falsifier}."
        yield "- Opens and closes: " + _spans(rule)
        if rule.thresholds:
            yield (
                "- Parameters: "
                + ", ".join(f"`{name}` {getattr(Parameters(), name):g}" for name in rule.thresholds)
                + "."
            )


_KINDS = {
    "meta": "about us",
    "symptom": "a symptom",
    "cause": "a cause",
    "hygiene": "hygiene",
    "event": "an event",
}


def _spans(rule: Rule) -> str:
    opens, closes = (
        rule.open_after or Parameters().open_after,
        rule.close_after or Parameters().close_after,
    )
    return f"after {_windows(opens)} with it, after {_windows(closes)} without."


def _windows(count: int) -> str:
    return f"{count} window" + ("s" if count > 1 else "")


def _sentence(text: str) -> str:
    return text and text[0].upper() + text[1:].removesuffix(".") + "."


def _parameter_lines() -> Iterator[str]:
    yield from ("", "| parameter | default | unit | rules that name it |", "|---|--:|---|---|")
    for each in fields(Parameters):
        users = (
            ", ".join(sorted({rule.code for rule in RULES if each.name in rule.thresholds})) or "–"
        )
        yield f"| `{each.name}` | {each.default:g} | {each.metadata['unit']} | {users} |"
    yield ""


def _fixed_lines() -> Iterator[str]:
    yield from ("", "| threshold | value | unit |", "|---|--:|---|")
    for name, each in sorted(FIXED.items()):
        yield f"| `{name}` | {each.value:g} | {each.unit} |"
    yield ""


def api_documents() -> dict[str, str]:
    """Return the API's description and the schemas of its answers, by file name."""
    found = {"openapi.json": openapi(), "api-v1.schema.json": answer_schemas()}
    return {name: json.dumps(document, indent=1) + "\n" for name, document in found.items()}


def write_pages() -> None:
    """Write all of them to docs/."""
    (DOCS / "metrics.md").write_text(metrics_page(), encoding="utf-8")
    page = DOCS / "diagnosis.md"
    page.write_text(diagnosis_page(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in api_documents().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages()
