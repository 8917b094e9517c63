"""`laggard report`: one self-contained HTML file about a group, or about all groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from laggard import __version__
from laggard.answers.evaluated import is_any_known, read_open
from laggard.answers.explain.asked import Asked
from laggard.answers.explain.then import window_end_then
from laggard.answers.reading import published_batch
from laggard.answers.text.diagnosis_words import says
from laggard.answers.text.times import HELP, when
from laggard.answers.text.words import count, known_duration, moment, short, short_duration
from laggard.cli.explain import naming_odd_rows
from laggard.cli.fail_on import FAIL_ON, exit_code
from laggard.cli.parser import accept_spans
from laggard.cli.query.output import save
from laggard.cli.query.range import Range
from laggard.cli.text.terminal import waiting, warn_if_old
from laggard.conf import conf_file
from laggard.errors import CONFIGURATION, USAGE, LaggardError
from laggard.escape import printable, printable_json, printable_lines

if TYPE_CHECKING:
    import jinja2

    from laggard.answers.reading import Row
    from laggard.config import Config

LONGEST_NAME = 249  # of a topic; the page wraps names, so that those of one beginning differ
SINCE = f"begin (default: 24h); a span counts back from --to: {HELP}"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "report",
        help="one HTML file to share: verdict, evidence, charts, rebalances, findings",
        description="One self-contained HTML file about a group or, with --fleet, about all: no "
        "script, no network.",
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
    with naming_odd_rows(args.group or "*"), waiting(is_quiet=args.quiet):
        html, found, is_known = fleet_html(args, config) if args.fleet else group_html(args, config)
    size = len(html.encode())
    if args.output == "-":
        sys.stdout.write(html)
    else:
        save(args.output, lambda path: path.write_text(html, encoding="utf-8"), "report.html")
        print(f"wrote {printable(args.output)}: {size / 1000:,.0f} kB", file=sys.stderr)
    if args.json:
        print(printable_json({"v": 1, "ok": True, "data": {"file": args.output, "bytes": size}}))
    return exit_code(found, args.fail_on, is_known=is_known)


def group_html(args: argparse.Namespace, config: Config) -> tuple[str, list[Row], bool]:
    """Return the page of one group, its open findings, and True if they are known."""
    environment = _environment()
    from laggard.cli.report.group import group_page

    batch = published_batch(config.job.tables)
    end = args.to(batch.polled_at) if args.to else batch.polled_at
    _refuse_empty(args.since(end), end)
    asked = Asked(
        args.group, config.diagnosis.thresholds.of_rebalances(), None, None, args.to, args.since
    )
    explained = asked.read(config.job.tables, config.job.window_seconds, batch)
    if args.to is None:
        warn_if_old(explained.batch, config)
    objective = config.policies.of(
        explained.batch.cluster, str(explained.group["group"]), explained.batch.polled_at
    ).slo_objective
    page = group_page(explained, config.job.tables, config.job.window_seconds, objective)
    html = environment.get_template("group.html").render(page, version=__version__)
    return html, explained.diagnosis.findings, explained.diagnosis.is_known


def fleet_html(args: argparse.Namespace, config: Config) -> tuple[str, list[Row], bool]:
    """Return the page of all groups, all open findings, and True if the findings are known.

    The findings include those without a group.
    """
    environment = _environment()
    from laggard.cli.report.fleet import fleet_page

    batch = published_batch(config.job.tables)
    end = batch.polled_at
    if args.to is None:
        warn_if_old(batch, config)
    else:
        end = window_end_then(config.job.tables, batch, args.to(batch.polled_at))
    _refuse_empty(args.since(end), end)
    asked = Range(args.since(end), end)
    page = fleet_page(
        config.job.tables, batch, asked, config.job.window_seconds, is_past=args.to is not None
    )
    found = read_open(config.job.tables, end, config.job.window_seconds)
    others = [
        row for row in found if row["group"] not in page["names"] and row["role"] != "suppressed"
    ]
    html = environment.get_template("fleet.html").render(page, others=others, version=__version__)
    return html, found, is_any_known(config.job.tables, end, config.job.window_seconds)


def _refuse_empty(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise LaggardError(
            f"nothing lies between {moment(begin)} and {moment(end)}",
            cause="--since is not before the end of the page",
            fix="laggard report payments --since 2h --to -30m: the two hours up to then",
            exit_code=USAGE,
        )


def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError as error:
        raise LaggardError(
            "a report needs Jinja2",
            cause=str(error),
            fix="pip install 'laggard[analyst]'",
            exit_code=CONFIGURATION,
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(conf_file("report")),
        autoescape=True,  # clients choose the names
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": lambda name: short(name, LONGEST_NAME),
        "text": printable_lines,
        "moment": _or_unknown(moment),
        "count": count,
        "records": _or_unknown("{:,.0f}".format),
        "seconds": _or_unknown(short_duration),
        "duration": known_duration,
        "percent": _or_unknown(lambda value: f"{100 * value:.4g} %"),
        "ratio": _or_unknown("{:.3g}".format),
        "says": says,
        "known": _or_unknown(lambda value: value),
    }
    return environment


def _or_unknown(form: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: "unknown" if value is None else form(value)
