"""Write docs/metrics.md, the API's documents and parts of docs/diagnosis.md: `make docs`.

It also writes docs/thresholds.csv.

In docs/diagnosis.md the text between two marks is generated.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from laggard.answers.schema.openapi import answer_schemas, openapi
from laggard.config.sections import Diagnosis

# imports all modules that declare thresholds
from laggard.diagnosis.engine import evaluate_group  # noqa: F401
from laggard.diagnosis.parameters import FIXED, Parameters, Policy
from laggard.diagnosis.rules.registry import RULES, alert_of
from laggard.diagnosis.rules.rule import Rule
from laggard.exporter.body.families import FAMILIES, LEVELS, Family
from laggard.tables.freshness import MAX_WINDOWS_BEHIND

DOCS = Path(__file__).parents[1]
_ALIKE = 0.75
USUAL_SPANS = (1, 5)  # windows until a finding opens and closes
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


_METRICS_INTRO = """# Metrics

Written by `make docs` from `lib/laggard/exporter/body/families.py`; the HELP texts of a scrape are
the same. An unknown value is absent: never 0, −1 or NaN. `+Inf` means: not at the current rate.

A metric is a gauge; one in `_total` is a counter, one in `_info` an info. One with states is a
stateset: a series per state, labelled with the metric's name, exactly one is 1, and no series while
the state is unknown. A name of two parts, as in `partition_status.lag`, is a
[column](tables.md). Labels are `cluster` and those of the row; part H names all labels. A † means:
do not sum. A ‡ means: absent while the rules are more than 5 windows behind.

Above `metrics.max_series` whole levels of series are withheld, in this order: {levels}. Groups with
lag or an open finding are withheld last. A row without a level is never withheld."""
_COMPAT_INTRO = """
## Names of other exporters

`metrics.compat` lists other tools; the same facts are then also served under their names, so that
their dashboards and alerts keep working. All names are on the pages about moving from
[Burrow](migrate/burrow.md), [kminion](migrate/kminion.md),
[kafka_exporter](migrate/kafka_exporter.md) and
[kafka-lag-exporter](migrate/kafka-lag-exporter.md); the HELP texts have the formulas. They are the
first to be withheld above `metrics.max_series`. Values are laggard's: absent if the other tool
shows −1, NaN, 0 or a partial sum."""
_MARKS = (
    ("do not sum", "†"),
    (f"absent while the rules are more than {MAX_WINDOWS_BEHIND} windows behind", "‡"),
    ("exactly one is 1", ""),
)
_TYPES = {"histogram": "a histogram", "gaugehistogram": "a gauge histogram"}


def metrics_page() -> str:
    """Return every family, in the order in which a body has them."""
    return "\n".join(_metrics_lines()) + "\n"


def _metrics_lines() -> Iterator[str]:
    yield _METRICS_INTRO.format(levels=", ".join(f"`{level}`" for level in LEVELS))
    for title, families in _parts():
        levels = {family.level for family in families}
        has_levels = len(levels) > 1
        level, rule = (" level |", "---|") if has_levels else ("", "")
        yield from ("", f"## {title}")
        if not has_levels and families[0].level:
            yield from ("", f"Level: `{families[0].level}`.")
        yield from ("", f"| metric |{level} says |", f"|---|{rule}---|")
        for family in families:
            yield _metric_row(family, has_levels=has_levels, is_last=title.startswith("H."))
    yield _COMPAT_INTRO


def _parts() -> list[tuple[str, list[Family]]]:
    starts = dict(_PARTS)
    parts: list[tuple[str, list[Family]]] = []
    for family in FAMILIES:
        title = starts.get(family.name.removeprefix("laggard_"))
        if title:
            parts.append((title, []))
        parts[-1][1].append(family)
    return parts


def _metric_row(family: Family, *, has_levels: bool, is_last: bool) -> str:
    named = [label for label in family.labels if is_last or label != "cluster"]
    labels = "{" + ",".join(named) + "}" if named else ""
    says, marks = family.help.removesuffix("."), ""
    for words, mark in _MARKS:
        if f"; {words}" in says:
            says = says.replace(f"; {words}", "")
            marks += mark
    kind = _TYPES.get(family.type)
    if kind:
        says += f"; {kind}"
    if family.states:
        says += "; states: " + ", ".join(family.states)
    cells = [f"`{family.name}{labels}`{marks}", says]
    if has_levels:
        cells.insert(1, family.level or "–")
    return "| " + " | ".join(cells) + " |"


def diagnosis_page(page: str) -> str:
    """Return the page with its generated part written again."""
    begin, end = "<!-- codes: written by make docs -->", "<!-- end of codes -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return "\n".join([before + begin, *_code_lines(), end + after])


def _code_lines() -> Iterator[str]:
    for rule in sorted(RULES, key=lambda rule: (rule.number, rule.code)):
        yield from ("", f"### {rule.code}", "")
        says = "" if _repeats(rule.says, rule.how) else f" {_sentence(rule.says)}"
        yield f"{rule.number}, {_KINDS[rule.kind]}{_spans(rule)}.{says}"
        yield ""
        yield f"- How: {_sentence(rule.how)}"
        yield f"- Is not: {rule.is_not}"
        alert = alert_of(rule.code)
        if alert:
            yield f"- Do: [{alert}](runbooks/{alert}.md)."
        elif rule.advice or rule.mistakes:
            advice = (_sentence(text) for text in (*rule.advice, *rule.mistakes))
            yield "- Do: " + " ".join(advice)
        yield f"- Wrong if: {rule.falsifier}."


def _repeats(says: str, how: str) -> bool:
    """Find out if the first sentence of the condition has nearly all words of the meaning."""
    sentence = how.partition(". ")[0]
    meaning, condition = (set(re.findall(r"\w+", text.lower())) for text in (says, sentence))
    return len(meaning & condition) >= _ALIKE * len(meaning)


_KINDS = {
    "meta": "about us",
    "symptom": "a symptom",
    "cause": "a cause",
    "hygiene": "hygiene",
    "event": "an event",
}


def _spans(rule: Rule) -> str:
    """Name the windows until it opens and closes if they are not the usual ones."""
    opens = rule.open_after or Parameters().open_after
    closes = rule.close_after or Parameters().close_after
    return "" if (opens, closes) == USUAL_SPANS else f" ({opens}, {closes})"


def _sentence(text: str) -> str:
    return text and text[0].upper() + text[1:].removesuffix(".") + "."


def thresholds() -> str:
    """Return all thresholds as CSV: those of `Parameters` first, with their rules."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("threshold", "configurable", "value", "unit", "rules"))
    configurable = {each.name for each in fields(Diagnosis)} | {
        each.name for each in fields(Policy)
    }
    for each in fields(Parameters):
        users = sorted({rule.code for rule in RULES if each.name in rule.thresholds})
        unit = each.metadata["unit"]
        is_set = "yes" if each.name in configurable else "no"
        rows.writerow((each.name, is_set, f"{each.default:g}", unit, " ".join(users)))
    for name, threshold in sorted(FIXED.items()):
        rows.writerow((name, "no", f"{threshold.value:g}", threshold.unit, ""))
    return out.getvalue()


def api_documents() -> dict[str, str]:
    """Return the API's description and the schemas of its answers, by file name."""
    found = {"openapi.json": openapi(), "api-v1.schema.json": answer_schemas()}
    return {name: json.dumps(document, indent=1) + "\n" for name, document in found.items()}


def write_pages() -> None:
    """Write all of them to docs/."""
    (DOCS / "metrics.md").write_text(metrics_page(), encoding="utf-8")
    page = DOCS / "diagnosis.md"
    page.write_text(diagnosis_page(page.read_text(encoding="utf-8")), encoding="utf-8")
    (DOCS / "thresholds.csv").write_text(thresholds(), encoding="utf-8")
    for name, text in api_documents().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages()
