"""Writes docs/metrics.md and the generated parts of docs/diagnosis.md from the declarations: `make docs`.

In docs/diagnosis.md all between two marks is generated, but for the lines "Is not", which are written by hand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby
from pathlib import Path

from laggard.diagnosis.catalogue import RULES
from laggard.diagnosis.observation import Rule
from laggard.diagnosis.parameters import Parameters
from laggard.exporter.families import FAMILIES, LEVELS, Family

DOCS = Path(__file__).parents[2] / "docs"
TO_DO = "to be written"
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
# How rules are computed that have no condition of their own.
_HOW = {
    "RULE_FAILED": "The engine catches the error and names the rule as the subject, or the stage: layout (recorded rows"
    " to arrays), evaluation, findings (rows to write) or memory. Other rules and groups go on, and it is tried again"
    " in the next window.",
    "MONITOR_BLIND": "At least half of a group's committed partitions have no log end, or are stale.",
    "GROUP_QUARANTINED": "The columns of that name of the tick that closed the window, in batches.",
    "SOURCE_BLOCKED": "The last stable offset of a group's partition of the offsets topic stands below its end; a page"
    " after 15 windows.",
    "BROKER_CORRELATED": "Over the cluster: two or more groups of different clients say so of the same broker.",
    "SHARED_SINK": "Three or more groups whose lag is spread lost capacity at the same time.",
    "COORDINATOR_CORRELATED": "Most active groups of one coordinator, three at least, rebalanced within a minute;"
    " of the other groups at most a tenth did.",
    "OFFSETS_TOPIC_CHANGED": "The event of that name, from the topic id and the number of partitions at each poll;"
    " held for 10 windows, as none closes while the new records are read.",
    "GROUP_DELETED": "The event of that name in the window, from tombstones of all that the group had.",
    "PARTITIONS_ADDED": "The event of that name in the window, from the number of partitions at each poll.",
    "TOPIC_RECREATED": "The event of that name in the window, from the topic's id.",
}


def metrics_page() -> str:
    """Every family, in the order in which a body has them."""
    return "\n".join(_metrics_lines()) + "\n"


def _metrics_lines() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "Written by `make docs` from `lib/laggard/exporter/families.py`; the HELP texts of a scrape are the same."
    yield "What is not known is absent: never 0, −1 or NaN. `+Inf` means never at this pace. A `stateset` has one"
    yield "series per state, labelled with the metric's name. Above `metrics.max_series` levels go in this order:"
    yield ", ".join(f"`{level}`" for level in LEVELS) + "; a group with lag or an open finding goes last."
    starts = dict(_PARTS)
    for family in FAMILIES:
        title = starts.get(family.name.removeprefix("laggard_"))
        if title:
            yield from ("", f"## {title}", "", "| metric | type | labels | level | says |", "|---|---|---|---|---|")
        yield _metric_row(family)


def _metric_row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "–"
    states = "; states: " + ", ".join(f"`{state}`" for state in family.states) if family.states else ""
    level = f"`{family.level}`" if family.level else "–"
    return f"| `{family.name}` | {family.type} | {labels} | {level} | {family.help.removesuffix('.')}{states}. |"


def diagnosis_page(page: str) -> str:
    """The page with its generated parts written anew."""
    is_not = dict(re.findall(r"^### (\w+)\n(?:(?!### ).*\n)*?- Is not: (.*)$", page, re.MULTILINE))
    parts = {"codes": _code_lines(is_not), "parameters": _parameter_lines()}
    for name, lines in parts.items():
        begin, end = f"<!-- {name}: written by make docs -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = "\n".join([before + begin, *lines, end + after])
    return page


def _code_lines(is_not: dict[str, str]) -> Iterator[str]:
    rules = sorted(RULES, key=lambda rule: (rule.number, rule.code))
    for code, found in groupby(rules, key=lambda rule: rule.code):
        same = list(found)  # one code may be seen in a group and over the whole cluster
        yield from ("", f"### {code}", "")
        yield f"{same[0].number}, {_KINDS[same[0].kind]}. " + " ".join(dict.fromkeys(map(_says, same)))
        yield ""
        yield "- How: " + " ".join(dict.fromkeys(filter(None, map(_how, same))))
        yield f"- Is not: {is_not.get(code, TO_DO)}"
        advice = [_sentence(text) for rule in same for text in rule.advice]
        if advice:
            yield f"- First: {advice[0]}"
        if advice[1:]:
            yield "- Then: " + " ".join(advice[1:])
        avoid = [_sentence(text) for rule in same for text in rule.avoid]
        if avoid:
            yield "- Avoid: " + " ".join(dict.fromkeys(avoid))
        yield "- Wrong if: " + "; or ".join(dict.fromkeys(rule.falsifier for rule in same)) + "."
        yield "- Opens and closes: " + _spans(same[0])
        uses = dict.fromkeys(name for rule in same for name in rule.uses)
        if uses:
            yield "- Parameters: " + ", ".join(f"`{name}` {getattr(Parameters(), name):g}" for name in uses) + "."


_KINDS = {"meta": "about us", "symptom": "a symptom", "cause": "a cause", "hygiene": "hygiene", "event": "an event"}


def _says(rule: Rule) -> str:
    return _sentence(rule.says)


def _how(rule: Rule) -> str:
    told = "" if rule.condition.__name__ in ("condition", "_elsewhere", "_never") else rule.condition.__doc__ or ""
    return _sentence(re.sub(r"^D\d\d(: |, )", "", " ".join(told.split()))) or _HOW.get(rule.code, "")


def _spans(rule: Rule) -> str:
    opens, closes = rule.open_after or Parameters().open_after, rule.close_after or Parameters().close_after
    return f"after {_windows(opens)} with it, after {_windows(closes)} without."


def _windows(count: int) -> str:
    return f"{count} window" + ("s" if count > 1 else "")


def _sentence(text: str) -> str:
    return text and text[0].upper() + text[1:].removesuffix(".") + "."


def _parameter_lines() -> Iterator[str]:
    yield from ("", "| parameter | default | unit | rules that name it |", "|---|--:|---|---|")
    for each in fields(Parameters):
        users = ", ".join(sorted({rule.code for rule in RULES if each.name in rule.uses})) or "–"
        yield f"| `{each.name}` | {each.default:g} | {each.metadata['unit']} | {users} |"
    yield ""


def write_pages() -> None:
    """Both pages, where they belong."""
    (DOCS / "metrics.md").write_text(metrics_page(), encoding="utf-8")
    page = DOCS / "diagnosis.md"
    page.write_text(diagnosis_page(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_pages()
