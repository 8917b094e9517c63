"""laggard export: the process that Prometheus scrapes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from laggard.cli.parser import address
from laggard.escape import printable_json

if TYPE_CHECKING:
    from laggard.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "export",
        help="serve the metrics",
        description="Read the tables, serve the metrics; no Spark, no broker.",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=address,
        help="instead of exporter.listen; port 0 takes a free one",
    )
    parser.add_argument(
        "--tables",
        metavar="PATH",
        action="append",
        help="table root to serve, instead of exporter.tables; give it once for each cluster",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        metavar="FILE",
        help="instead of exporter.web_config_file: TLS, passwords and rate limit",
    )
    parser.add_argument(
        "--check",
        nargs="?",
        const="live",
        choices=("live", "ready"),
        help="serve nothing: ask the running exporter, exit with 0 if it answers (and has "
        "metrics), else 1",
    )
    parser.add_argument(
        "--print", action="store_true", help="print what one scrape would get, and end"
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Serve until stopped, or ask the exporter that serves."""
    listen = args.listen or config.exporter.listen
    web_config_file = (
        config.exporter.web_config_file if args.web_config_file is None else args.web_config_file
    )
    if args.check:
        return _check(args, listen, web_config_file)
    if not args.print:  # else it may be a part of another program, as in our tests
        from laggard.exporter.memory import hide_pandas

        hide_pandas()
    from laggard.exporter.options import Selection
    from laggard.exporter.run import ExporterOptions, run_exporter  # brings Arrow and tornado along

    answers = None
    if config.exporter.api and not args.print:
        from laggard.cli.api.answering import Answering

        answers = Answering(config.job.window_seconds, config.diagnosis.of_rebalances())
    tables = tuple(args.tables or config.exporter.tables) or (config.job.tables,)
    options = ExporterOptions(
        tables=tables,
        cluster=config.cluster.name,
        tick_seconds=config.job.tick_seconds,
        window_seconds=config.job.window_seconds,
        policy=config.policies.of,
        idle_seconds=config.policies.idle_seconds(
            config.cluster.name if len(tables) == 1 else None
        ),
        listen=listen,
        web_config_file=web_config_file,
        refresh_seconds=config.exporter.refresh_seconds,
        max_age_seconds=config.exporter.max_age_seconds,
        max_connections=config.exporter.max_connections,
        header_seconds=config.exporter.header_seconds,
        response_seconds=config.exporter.response_seconds,
        max_series=config.metrics.max_series,
        selection=Selection.of(config.metrics),
        answers=answers,
        cors_origins=config.exporter.cors_origins,
        ui=config.exporter.ui,
        runbook_base=config.exporter.runbook_base,
        once=args.print,
    )
    return run_exporter(options)


def _check(args: argparse.Namespace, listen: str, web_config_file: str) -> int:
    from laggard.exporter.check import asks_for_tls, check

    is_good, sentence = check(
        listen, ready=args.check == "ready", tls_first=asks_for_tls(web_config_file)
    )
    print(
        printable_json({"v": 1, "ok": is_good, "data": {"sentence": sentence}})
        if args.json
        else sentence
    )
    return 0 if is_good else 1
