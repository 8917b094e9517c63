"""The verbs with `--url`: their pages from an exporter's answers, the same as from the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from laggard.answers import rebalances
from laggard.answers.document import name_of
from laggard.answers.evaluated import Health, counted
from laggard.answers.findings import Found, to_data
from laggard.answers.groups import GroupLine
from laggard.answers.questions import MAX_REBALANCES
from laggard.answers.reading import Row, refuse_empty
from laggard.answers.rebalances import RebalanceLine
from laggard.answers.text.words import UNKNOWN, count, moment
from laggard.cli import rebalance_table
from laggard.cli.asking.client import Document, Remote, in_path
from laggard.cli.fail_on import exit_code
from laggard.cli.findings import finding_lines, refuse_unknown_code
from laggard.cli.rebalance_table import Page
from laggard.cli.status import show, table_of
from laggard.escape import escape_label, finite, printable_json, printable_lines
from laggard.tables.schema.schemas import FINDINGS

if TYPE_CHECKING:
    from laggard.config import Config

_TIMES = [column.name for column in FINDINGS.columns if column.type == "timestamp"]
_REBALANCE_TIMES = ("last_rebalance_at", "rebalancing_since")
_ADDED = {"says", "advice", "avoid", "alert", "runbook", "group_bytes", "cluster_bytes"}


def explain(args: argparse.Namespace, _config: Config) -> int:
    """Print the page of one group, or its data."""
    remote = Remote(args)
    at = None if args.at is None else args.at.text
    since = None if args.since is None else args.since.text
    answer = remote.get(
        f"explain/{in_path(args.group)}",
        topic=args.topic,
        limit=_limit(args.limit),
        at=at,
        since=since,
    )
    with remote.reading():
        found, text = answer["explain"], "\n".join(answer["page"])
        rows, windows = (
            found["diagnosis"]["findings"] or (),
            found["diagnosis"].get("windows") or [],
        )
        is_known = Health(windows, counted(rows)).level != UNKNOWN
    _print(found, text, is_json=args.json)
    return exit_code(rows, args.fail_on, is_known=is_known)


def _limit(asked: int | None) -> int | None:
    """Return `asked`, limited to the number of rebalances that an exporter returns.

    If `asked` was more, print a line.
    """
    if asked is None or asked <= MAX_REBALANCES:
        return asked
    fix = f"without --url, where the tables are, --limit {asked:,} has all"
    print(
        f"laggard: an exporter answers with {MAX_REBALANCES:,} rebalances at most; {fix}",
        file=sys.stderr,
    )
    return MAX_REBALANCES


def findings(args: argparse.Namespace, _config: Config) -> int:
    """Print the findings."""
    group = None if args.group == "*" else args.group
    state = "open" if args.open else None
    parameters = {
        "group": group,
        "code": args.code,
        "severity": args.severity,
        "state": state,
        "since": args.since.text,
        "suppressed": "true" if args.all else None,
    }
    remote = Remote(args)
    with remote.reading():
        pages = remote.pages("findings", **parameters)
        evaluated, rows = (
            pages[0]["evaluated"][0],
            [_finding(row) for page in pages for row in page["findings"]],
        )
        evaluated_to = (
            None if evaluated["evaluated_to"] is None else _time(evaluated["evaluated_to"])
        )
        found = Found(
            _time(pages[0]["data_timestamp"]), evaluated_to, evaluated["windows_behind"], rows
        )
        text = "\n".join(finding_lines(rows, evaluated_to, found.behind))
        is_asked = args.fail_on or (not rows and args.group != "*")
        is_known = is_asked and _is_any_known(remote, args.group, parameters["group"])
    refuse_unknown_code(args.code, rows)
    _print(to_data(found), text, is_json=args.json)
    return exit_code(rows, args.fail_on, is_known=is_known)


def _is_any_known(remote: Remote, glob: str, group: str | None) -> bool:
    """Return True if the health of one of the groups is known.

    A pattern that matches no group is an error.
    """
    groups = [row for page in remote.pages("groups", group=group) for row in page["groups"]]
    refuse_empty(glob, groups)
    return any(row["health"] != UNKNOWN for row in groups)


def status(args: argparse.Namespace, config: Config) -> int:
    """Print the table of groups once, or every tick."""
    return show(args, config, _read_status)


def _read_status(args: argparse.Namespace, _config: Config) -> Page:
    """Return the table of groups as text and as data."""
    remote = Remote(args)
    with remote.reading():
        group = None if args.group == "*" else args.group
        return _status(
            args,
            remote.pages(
                "groups",
                group=group,
                sort=args.sort,
                rebalances="true" if args.rebalances else None,
            ),
        )


def _status(args: argparse.Namespace, pages: Sequence[Document]) -> Page:
    found = [row for page in pages for row in page["groups"]]
    refuse_empty(args.group, found)
    first = pages[0]
    cluster, polled_at = (
        name_of(first["clusters"][0], "cluster"),
        moment(_time(first["data_timestamp"])),
    )
    title = printable_lines(
        f"{escape_label(cluster)}: batch {first['batch_id']}, {polled_at}, "
        f"{count(len(found), 'group')}"
    )
    lines: Sequence[GroupLine] | Sequence[RebalanceLine]
    if args.rebalances:
        lines = _rebalance_lines(found)
        table = rebalance_table.table_of(title, lines, args.limit)
    else:
        lines = [_line(row) for row in found]
        table = table_of(
            title, lines, args.limit, has_rules=any(line.health != UNKNOWN for line in lines)
        )
    content = {
        "cluster": cluster,
        "batch_id": first["batch_id"],
        "polled_at": first["data_timestamp"],
        "groups": [asdict(line) for line in lines],
    }
    # of an answer that was tampered with
    rows = [[printable_lines(cell) for cell in cells] for cells in table.rows]
    return replace(table, rows=rows), content


def _rebalance_lines(rows: Sequence[Row]) -> list[RebalanceLine]:
    """Make the lines in their order.

    Print on standard error the names of groups whose rebalances the exporter cannot read.
    """
    lines, lost = [], []
    for row in rows:
        group, facts = name_of(row, "group"), row["rebalances"]
        if facts is None:
            lost.append(group)
            continue
        times = {
            name: None if facts[name] is None else _time(facts[name]) for name in _REBALANCE_TIMES
        }
        lines.append(RebalanceLine(group=group, **(facts | times)))
    if lost:
        names = printable_lines(", ".join(map(escape_label, sorted(lost)[:10])))
        sentence = (
            f"{count(len(lost), 'group')} left out, as the exporter cannot read their "
            f"rebalances: {names}"
        )
        print(f"laggard: {sentence}", file=sys.stderr)
    return sorted(lines, key=rebalances.order)


def _line(row: Row) -> GroupLine:
    worst = row["worst"]
    lag_is_exact, time_is_exact = row["lag"] is not None, row["time_lag_seconds"] is not None
    lag = row["lag"] if lag_is_exact else row["lag_known"]
    return GroupLine(
        group=name_of(row, "group"),
        state=row["state"],
        members=row["members"],
        lag=lag,
        lag_is_exact=lag_is_exact,
        time_lag_seconds=row["time_lag_known_seconds"],
        time_lag_is_exact=time_is_exact,
        worst_partition="" if worst is None else f"{name_of(worst, 'topic')}-{worst['partition']}",
        generation=row["generation"],
        status=row["status"],
        health=row["health"],
        finding=row["finding"],
        shape=row["shape"],
        verdict=row["scale_verdict"],
    )


def _finding(row: Row) -> Row:
    names = {name: name_of(row, name) for name in ("cluster", "group")}
    times = {name: _time(row[name]) for name in _TIMES if row.get(name) is not None}
    return {name: value for name, value in (row | names | times).items() if name not in _ADDED}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _print(found: Document | dict[str, Any], text: str, *, is_json: bool) -> None:
    print(
        printable_json({"v": 1, "ok": True, "data": finite(found)}, datetime.isoformat)
        if is_json
        else printable_lines(text)
    )


RUNS: Mapping[str, Callable[[argparse.Namespace, Config], int]] = {
    "explain": explain,
    "findings": findings,
    "status": status,
}
