"""laggard export: the process that Prometheus scrapes, and the check of one that runs."""

from __future__ import annotations

import argparse
import http.client
import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from laggard.cli.parser import address
from laggard.cli.text.envelope import json_answer

if TYPE_CHECKING:
    from laggard.config import Config

ASK_SECONDS = 4.0
_REFUSALS = (401, 403, 429)  # it answers; a probe has no password


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
        return _print_check(args, listen, web_config_file)
    if not args.print:  # else it may be a part of another program, as in our tests
        from laggard.exporter.memory import hide_pandas

        hide_pandas()
    from laggard.exporter.options import Selection
    from laggard.exporter.run import ExporterOptions, run_exporter  # brings Arrow and tornado along

    answers = None
    if config.exporter.api and not args.print:
        from laggard.answers.answering import Answering

        answers = Answering(config.job.window_seconds)
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
        max_age_seconds=config.exporter.max_age_seconds,
        max_series=config.metrics.max_series,
        selection=Selection.of(config.metrics),
        answers=answers,
        cors_origins=config.exporter.cors_origins,
        runbook_base=config.exporter.runbook_base,
        once=args.print,
    )
    return run_exporter(options)


def _print_check(args: argparse.Namespace, listen: str, web_config_file: str) -> int:
    is_good, sentence = check(
        listen, ready=args.check == "ready", tls_first=asks_for_tls(web_config_file)
    )
    print(json_answer({"sentence": sentence}, is_ok=is_good) if args.json else sentence)
    return 0 if is_good else 1


def asks_for_tls(web_config_file: str) -> bool:
    """Return True if the web-config file may ask for TLS.

    Waiting for a handshake that never comes takes seconds.
    """
    if not web_config_file:
        return False
    try:
        return "tls_server_config" in Path(web_config_file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return True


def check(listen: str, *, ready: bool, tls_first: bool) -> tuple[bool, str]:
    """Return True if the exporter at `listen` is live, or ready, and the reason in one line.

    A socket that only opens or closes is no life: that takes an HTTP answer, or a TLS handshake
    that it ends, or after which it closes, for want of a client certificate. Its own certificate
    names another host than the loopback address.
    """
    host, _, port = listen.rpartition(":")
    host = _reachable(host.strip("[]"))
    path, good = ("/-/ready", (200,)) if ready else ("/-/healthy", (200, *_REFUSALS))
    said: list[str] = []
    for way in ("TLS", "HTTP") if tls_first else ("HTTP",):
        connection, is_connected = _connection(host, int(port), is_tls=way == "TLS"), False
        try:
            connection.connect()
            is_connected = True
            code, text = _ask(connection, path)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            # TLS 1.2 asks for a certificate within the handshake, a later one after it
            if way == "TLS" and (is_connected or "ALERT" in str(getattr(error, "reason", ""))):
                return not ready, f"it speaks TLS and wants a client certificate: {reason}"
            said.append(f"{way}: {reason}")
        else:
            return code in good, f"it answers {code}: {text}"
        finally:
            connection.close()
    return False, f"no answer from {host}:{port}: {'; '.join(said)}"


def _connection(host: str, port: int, *, is_tls: bool) -> http.client.HTTPConnection:
    if not is_tls:
        return http.client.HTTPConnection(host, port, timeout=ASK_SECONDS)
    context = ssl._create_unverified_context()  # noqa: S323 - see check
    return http.client.HTTPSConnection(host, port, timeout=ASK_SECONDS, context=context)


def _ask(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = " ".join(answer.read(200).decode("utf-8", "replace").split())
    return answer.status, text.encode("ascii", "backslashreplace").decode()


def _reachable(host: str) -> str:
    """Return the address to connect to, a loopback address if the exporter listens on all."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"
