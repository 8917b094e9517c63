"""Publish a report: a short page, and its long tables as rows of a CSV file beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from scenarios.catalogue import SUBJECT_OF
from scenarios.drawn_page import BAR_VERDICT, HEADING, with_section

Row = tuple[str, str, str, str]  # table, name, column, value
HEADER = ("table", "name", "column", "value")
# how the head of a long table begins, and the name of the table in the file
LONG = {
    "| code | alarm |": "by code",
    "| scenario | |": "by scenario",
    "| code | faults |": "drawn: by code",
    "| what happens to the group |": "drawn: by fault",
    "| in | minutes |": "drawn: wrong verdicts",
}
MOST_WRONG = 3


def publish(page: Path, report: str) -> None:
    """Write the page and its CSV; the half that the report lacks stays as it is."""
    short, rows = shorten(report)
    known = page.read_text(encoding="utf-8") if page.exists() else ""
    if report.startswith(HEADING):
        text = with_section(known, short)
    else:
        text = with_section(short, known=known)
    page.write_text(text, encoding="utf-8")
    file = page.with_suffix(".csv")
    before = read_rows(file.read_text(encoding="utf-8")) if file.exists() else []
    new = {name for head, name in LONG.items() if f"\n{head}" in f"\n{report}"}
    kept = [row for row in before if row[0] not in new]
    order = list(LONG.values())
    rows = sorted([*kept, *rows], key=lambda row: order.index(row[0]))
    file.write_text(write_rows(rows), encoding="utf-8")


def shorten(report: str) -> tuple[str, list[Row]]:
    """Return the report with a summary for each long table, and the rows of these tables."""
    lines: list[str] = []
    rows: list[Row] = []
    for part in _parts(report.splitlines()):
        name = next((LONG[head] for head in LONG if part[0].startswith(head)), "")
        if name:
            table = [_cells(line) for line in (part[0], *part[2:])]
            rows += _rows(name, table)
            lines += SUMMARIES[name](table)
        else:
            lines += part
    return "\n".join(lines), rows


def _parts(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield each table as a whole, and each other line alone."""
    table: list[str] = []
    for line in lines:
        if line.startswith("|"):
            table.append(line)
            continue
        if table:
            yield table
            table = []
        yield [line]
    if table:
        yield table


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _rows(name: str, table: Sequence[Sequence[str]]) -> Iterator[Row]:
    head = [column or "says" for column in table[0]]
    for cells in table[1:]:
        for column, value in zip(head[1:], cells[1:], strict=True):
            yield name, cells[0], column, value


def _codes(table: Sequence[Sequence[str]]) -> list[str]:
    """List the codes that were wrong, missed or late in some run."""
    head = table[0]
    scores = [head.index(name) for name in ("precision", "recall")]
    late = next(place for place, name in enumerate(head) if name.startswith("later than"))
    short = [
        cells
        for cells in table[1:]
        if cells[late] != "0" or any(cells[score] != "1.000" for score in scores)
    ]
    right = len(table) - 1 - len(short)
    lines = [f"{right} codes were always right and never late. The others:", ""]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(cells) + " |" for cells in short)]


def _scenarios(table: Sequence[Sequence[str]]) -> list[str]:
    """Sum up the runs of each subject, and list the scenarios with a share below 1."""
    head = table[0]
    shares = range(head.index("clean"), head.index("instead"))
    counts: dict[str, list[int]] = {}
    short = []
    for cells in table[1:]:
        name, says, runs, clean = cells[:4]
        of_subject = counts.setdefault(SUBJECT_OF[name], [0, 0, 0])
        for place, more in enumerate((1, int(runs), round(int(runs) * float(clean)))):
            of_subject[place] += more
        below = [f"{head[at]} {cells[at]}" for at in shares if cells[at] not in ("1.000", "–")]
        if below:
            instead = f"; instead {cells[-1]}" if cells[-1] else ""
            short.append(f"- {name}, {says}: {', '.join(below)} of {runs} runs{instead}")
    lines = ["| scenarios of | scenarios | runs | clean |", "|---|--:|--:|--:|"]
    for subject, (scenarios, all_runs, clean_runs) in counts.items():
        lines.append(f"| {subject} | {scenarios} | {all_runs} | {clean_runs} |")
    return [*lines, "", "All other shares are 1 in every scenario but these:", "", *short]


def _faults(table: Sequence[Sequence[str]]) -> list[str]:
    """Name the faults whose share of right verdicts is below the bar."""
    below = [f"{kind} {right}" for kind, _, right in table[1:] if float(right) < BAR_VERDICT]
    count = len(table) - 1
    return [f"Right at once, below {BAR_VERDICT} for {len(below)} of {count}: {', '.join(below)}."]


def _mistakes(table: Sequence[Sequence[str]]) -> list[str]:
    worst = [f"{what} ({minutes} minutes)" for what, minutes in table[1 : 1 + MOST_WRONG]]
    return ["; ".join(worst) + "."]


SUMMARIES = {
    "by code": _codes,
    "by scenario": _scenarios,
    "drawn: by code": _codes,
    "drawn: by fault": _faults,
    "drawn: wrong verdicts": _mistakes,
}


def read_rows(text: str) -> list[Row]:
    """Read rows that `write_rows` wrote."""
    table, name, column, value = HEADER
    found = csv.DictReader(io.StringIO(text))
    return [(row[table], row[name], row[column], row[value]) for row in found]


def write_rows(rows: Sequence[Row]) -> str:
    """Return rows as CSV with a head."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([HEADER, *rows])
    return out.getvalue()
