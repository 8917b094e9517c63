"""laggard demo: a real broker, load, the job, the exporter and a live view, on this machine."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from laggard.cli.parser import address, build_parser
from laggard.demo.scenarios import DRILLS

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.exporter.snapshot import Snapshot


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "demo",
        help="see all of it at work",
        description="A real broker with five groups, the job, the exporter, and a live view; until "
        "Ctrl-C.\n"
        "A drill has one group in trouble instead, and ends with what `laggard explain` says of "
        "it:\n\n" + "\n".join(f"  {name:15} {drill.help}" for name, drill in DRILLS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--scenario",
        choices=tuple(DRILLS),
        default="",
        metavar="NAME",
        help="run a drill; it ends by itself when the diagnosis has answered",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=0,
        metavar="N",
        help="end after N seconds, but not before there is something to show (default: 0, until "
        "Ctrl-C)",
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="keep all files here (default: a temporary folder)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="do not remove the temporary folder; --work implies it"
    )
    parser.add_argument(
        "--listen",
        type=address,
        metavar="HOST:PORT",
        help="of the exporter (default: 127.0.0.1:8917, or a free port)",
    )


def run(args: argparse.Namespace, _: Config) -> int:
    """Run the demo until it is stopped."""
    from laggard.answers.groups import ClusterGroups, groups_of, read_snapshot
    from laggard.cli.verbs import explain, findings
    from laggard.cli.verbs.query.output import write_table
    from laggard.cli.verbs.query.verb import (
        run_query,  # from here on Arrow and a Kafka client come along
    )
    from laggard.cli.verbs.status import status_lines
    from laggard.config import load_config
    from laggard.demo.answers import Answers
    from laggard.demo.run import Options, run_demo

    def query_lines(tables: str, sql: str) -> list[str]:
        out = io.StringIO()
        write_table(run_query(tables, sql), out)
        return out.getvalue().splitlines()

    def answers_in(folder: Path) -> Answers:
        def lines_of(verb: ModuleType, words: Sequence[str]) -> list[str]:
            asked = build_parser(words[0]).parse_args(words)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                verb.run(asked, load_config(str(folder / "laggard.toml"), [], {}))
            return out.getvalue().splitlines()

        def groups(snapshot: Snapshot) -> ClusterGroups:
            job = load_config(str(folder / "laggard.toml"), [], {}).job
            return groups_of(snapshot, job.tables, job.window_seconds)

        return Answers(
            read_snapshot,
            lambda snapshot: status_lines(groups(snapshot)),
            query_lines,
            lambda group: lines_of(explain, ["explain", group]),
            lambda snapshot: next(iter(groups(snapshot).groups)),
            lambda: lines_of(findings, ["findings", "--open"]),
        )

    options = Options(args.seconds, args.work, args.keep, args.listen, args.scenario)
    return run_demo(options, answers_in)


def _seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected seconds, 0 or more, got {text!r}")
    return int(text)
