"""`laggard report`: the web page about one group, or all, as one file with its documents in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from laggard.answers import lists, one_group
from laggard.answers.document import encode, head_of, name_of
from laggard.answers.evaluated import is_any_known, read_open
from laggard.answers.explain.rows import no_such_group
from laggard.answers.explain.then import snapshot_then
from laggard.answers.groups import ClusterGroups, groups_of
from laggard.answers.history import GroupSeries
from laggard.answers.questions import FIRST_PAGE, GROUPS, read_parameters
from laggard.answers.reading import published_batch, warn_of
from laggard.answers.text.times import HELP, at_time, when
from laggard.answers.text.words import UNKNOWN, moment
from laggard.cli.asking.client import TRIES, Document, Remote, add_options, in_path
from laggard.cli.asking.documents import whole_snapshot
from laggard.cli.fail_on import FAIL_ON, exit_code
from laggard.cli.parser import accept_spans
from laggard.cli.text.envelope import json_answer
from laggard.cli.text.terminal import waiting, warn_if_old
from laggard.cli.verbs.explain import naming_odd_rows
from laggard.cli.verbs.query.output import save
from laggard.errors import NOT_FOUND, USAGE, LaggardError
from laggard.escape import escape_label, printable
from laggard.exporter.ui.files import offline_page
from laggard.tables.odd_rows import Skipped

if TYPE_CHECKING:
    from laggard.answers.reading import Row
    from laggard.config import Config

MOST_LINKED = 20  # groups of a report about all that have a page of their own in it
SINCE = f"begin (default: 24h); a span counts back from --to: {HELP}"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "report",
        help="one HTML file to share: verdict, evidence, charts, rebalances, findings",
        description="The web page about a group or, with --fleet, about all groups, as one HTML "
        "file that asks nobody.",
    )
    accept_spans(parser)
    parser.add_argument("group", nargs="?", help="name of the group, as `laggard status` prints it")
    parser.add_argument("--fleet", action="store_true", help="all groups, worst first")
    parser.add_argument("--since", type=when, metavar="TIME", default=when("24h"), help=SINCE)
    parser.add_argument("--to", type=when, metavar="TIME", help="end (default: the newest tick)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="report.html",
        help="the file (default: report.html); - is standard output",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help="exit with 1 if a finding of this severity or a higher one is open at the end of the "
        "range",
    )
    add_options(parser)


def run(args: argparse.Namespace, config: Config) -> int:
    """Write the file, and say where it is."""
    if bool(args.group) == args.fleet:
        raise LaggardError(
            "name one group, or --fleet in place of it",
            fix="laggard report payments --since 24h -o payments.html, or laggard report --fleet",
            exit_code=USAGE,
        )
    if args.json and args.output == "-":
        raise LaggardError(
            "--json and -o - both write to standard output",
            fix="name a file: -o report.html",
            exit_code=USAGE,
        )
    if args.url and args.to is not None:
        raise LaggardError(
            "--url and --to exclude each other",
            cause="an exporter answers for its newest tick",
            fix="laggard report --to TIME without --url, where the tables are",
            exit_code=USAGE,
        )
    with waiting(is_quiet=args.quiet):
        if args.url:
            report = ask_report(args)
        else:
            with naming_odd_rows(args.group or "*"):
                report = read_report(args, config)
    html = offline_page(encode(report.documents), config.exporter.runbook_base)
    size = len(html.encode())
    if args.output == "-":
        sys.stdout.write(html)
    else:
        save(args.output, lambda path: path.write_text(html, encoding="utf-8"), "report.html")
        print(f"wrote {printable(args.output)}: {size / 1000:,.0f} kB", file=sys.stderr)
    if args.json:
        print(json_answer({"file": args.output, "bytes": size}))
    return exit_code(report.findings, args.fail_on, is_known=report.is_known)


@dataclass(frozen=True, slots=True)
class Report:
    """Documents of the page, and the findings that are open at its end."""

    documents: dict[str, Any]
    findings: list[Row]
    is_known: bool


def ask_report(args: argparse.Namespace) -> Report:
    """Ask an exporter for the documents of the page, all of one batch."""
    remote = Remote(args)
    for _ in range(TRIES):
        report = _ask_once(args, remote)
        if report is not None:
            return report
    raise remote.moved_on()


def _ask_once(args: argparse.Namespace, remote: Remote) -> Report | None:
    """Return the report, or None if the batch changed between two answers."""
    listed: dict[str, Document] = {}
    names, cluster = [args.group], args.cluster
    if args.fleet:
        listed["groups"] = remote.whole("groups")
        with remote.reading():
            cluster = name_of(listed["groups"]["clusters"][0], "cluster")
            names = [name_of(row, "group") for row in listed["groups"]["groups"][:MOST_LINKED]]
        listed["findings"] = remote.whole("findings", cluster=cluster, state="open")
    options = {"cluster": cluster, "since": args.since.text, "page": "true"}
    try:
        pages = [remote.get(f"groups/{in_path(name)}", **options) for name in names]
    except LaggardError as error:
        if args.fleet and error.exit_code == NOT_FOUND:  # a listed group ended meanwhile
            return None
        raise
    with remote.reading():
        answers = [*listed.values(), *pages]
        if len({answer["batch_id"] for answer in answers}) > 1:
            return None
        end = at_time(answers[0]["data_timestamp"])
        begin = args.since(end)
        if args.fleet:
            findings = listed["findings"]["findings"]
            is_known = any(row["health"] != UNKNOWN for row in listed["groups"]["groups"])
        else:
            findings, is_known = pages[0]["findings"] or [], pages[0]["findings"] is not None
        of = {page["group"]["group"]: page | {"clusters": [_own(page)]} for page in pages}
    _refuse_empty(begin, end)
    return Report({"since": begin, "groups": listed.get("groups"), "of": of}, findings, is_known)


def _own(page: Document) -> Any:
    """Return the cluster of a page's group, of all that the exporter serves."""
    name = name_of(page["group"], "cluster")
    (own,) = (row for row in page["clusters"] if name_of(row, "cluster") == name)
    return own


def read_report(args: argparse.Namespace, config: Config) -> Report:
    """Read what the page shows of the range: of one group, or of all and the worst of them."""
    root, seconds = config.job.tables, config.job.window_seconds
    cluster, reason = _read(args, config)
    end = cluster.batch.polled_at
    _refuse_empty(args.since(end), end)
    every = list(cluster.groups)
    names = every[:MOST_LINKED] if args.fleet else [_spelled(args.group, every, cluster)]
    asked = {"topic": None, "since": args.since, "limit": FIRST_PAGE, "page": True}
    of = {name: one_group.group(cluster, name, asked, seconds) for name in names}
    top = head_of(cluster.batch, reason)
    documents = {
        "since": args.since(end),
        "groups": top | _fleet(cluster, seconds) if args.fleet else None,
        "of": {escape_label(name): top | document for name, document in of.items()},
    }
    if args.fleet:
        is_known = is_any_known(root, end, seconds)
        return Report(documents, read_open(root, end, seconds), is_known)
    findings = of[names[0]]["findings"]
    return Report(documents, findings or [], findings is not None)


def _read(args: argparse.Namespace, config: Config) -> tuple[ClusterGroups, str | None]:
    """Return all groups at the end of the range, and why these are not of now."""
    root, seconds = config.job.tables, config.job.window_seconds
    reason = None
    if args.to is None:
        snapshot = whole_snapshot(config)
        if not warn_if_old(snapshot.batch, config):
            reason = "stale"
    else:
        reason = "past"
        batch, skipped = published_batch(root), Skipped()
        at = args.to(batch.polled_at)
        snapshot = snapshot_then(root, batch, at, skipped, config.policies.of)
        warn_of(skipped)
    cluster = groups_of(snapshot, root, seconds, GroupSeries(root, seconds))
    return replace(cluster, is_past=args.to is not None), reason


def _fleet(cluster: ClusterGroups, seconds: int) -> dict[str, Any]:
    asked = read_parameters((), GROUPS) | {"limit": None}
    return lists.groups([cluster], asked, seconds)


def _spelled(name: str, names: Iterable[str], cluster: ClusterGroups) -> str:
    """Return the group's name in the tables, from that or from what `status` prints."""
    known = {escape_label(exact): exact for exact in names}
    known |= {exact: exact for exact in names}
    if name not in known:
        raise no_such_group(name, [*names], cluster.batch)
    return known[name]


def _refuse_empty(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise LaggardError(
            f"nothing lies between {moment(begin)} and {moment(end)}",
            cause="--since is not before the end of the page",
            fix="laggard report payments --since 2h --to -30m: the two hours up to then",
            exit_code=USAGE,
        )
