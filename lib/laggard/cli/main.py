"""The command `laggard`: global options, the choice of the verb, and what a failure looks like."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from laggard import __version__, storage
from laggard.config import Config, load_config
from laggard.errors import INTERNAL, INTERRUPTED, OK, USAGE, LaggardError
from laggard.escape import printable_lines

# The module laggard.cli.<verb> is imported when its verb is used: it may bring Spark or Arrow along.
VERBS = {
    "demo": "real broker, load, job, exporter and a live view, on this machine",
    "run": "the job: reads the offsets topic, writes the tables",
    "export": "the exporter: reads the tables, serves the metrics",
    "status": "groups and their lag, from the tables",
    "explain": "one group in plain words: what is wrong, why, what to do first, and what is not known",
    "findings": "what the rules found, the open ones first",
    "diagnose": "the rules over a past range once more, also with other thresholds",
    "query": "SQL on the tables, without a JVM",
    "doctor": "can it run here, and what to do if not",
    "config": "show what is in force, check it, print a sample",
    "decode": "records of the offsets topic, as JSON lines from standard input",
}
OWN_CONFIG = ("config", "decode", "demo")  # these must work when the configuration does not


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"laggard: {message}\nfix: {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; a wrong use leaves through SystemExit, as argparse does."""
    words = sys.argv[1:] if argv is None else list(argv)
    is_verbose = not {"-v", "--verbose"}.isdisjoint(words)
    try:
        code = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough: laggard status | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except LaggardError as error:
        _show_traceback(is_wanted=is_verbose)
        print(printable_lines(str(error)), file=sys.stderr)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last one to see it
        _show_traceback(is_wanted=is_verbose)
        sentence = next(iter(str(error).splitlines()), "no message")
        hint = "" if is_verbose else "; run with -v for the traceback"
        print(f"laggard: internal error: {type(error).__name__}: {printable_lines(sentence)}{hint}", file=sys.stderr)
        return INTERNAL
    return code


def _show_traceback(*, is_wanted: bool) -> None:
    if is_wanted:
        import traceback

        traceback.print_exc()


def _run(words: Sequence[str]) -> int:
    args = build_parser(chosen_verb(words)).parse_args(words)
    args.set += args.verb_set
    verb: str = args.verb
    config = Config() if verb in OWN_CONFIG else load_config(args.config, args.set, os.environ)
    _start_log(verb, args, config)
    storage.use(config.storage)
    storage.check_keys()
    code: int = _module(verb).run(args, config)
    return code


def _module(verb: str) -> ModuleType:
    """Import the module of a verb; a verb of several files is a folder with its entry in `verb`."""
    module = import_module(f"laggard.cli.{verb}")
    return import_module(f"{module.__name__}.verb") if hasattr(module, "__path__") else module


def _start_log(verb: str, args: argparse.Namespace, config: Config) -> None:
    from laggard.cli.logs import start_log

    level = "debug" if args.verbose else "error" if args.quiet else config.logging.level
    # json is for processes that are watched by others; a person reads the rest
    start_log(level, is_json=verb in ("run", "export") and config.logging.format == "json")


def chosen_verb(words: Sequence[str]) -> str | None:
    """The first word that is neither an option nor an option's value."""
    rest = iter(words)
    for word in rest:
        if word in ("--config", "--set"):
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None


def build_parser(verb: str | None) -> argparse.ArgumentParser:
    """The parser with every verb's name, and with the options of one verb."""
    parser = _Parser(
        prog="laggard", description="Kafka consumer lag and rebalances, kept in Delta tables.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"laggard {__version__}")
    _add_global_options(parser, default=None)
    parser.set_defaults(config=None, set=[], verb_set=[], json=False, quiet=False, verbose=False)
    subparsers = parser.add_subparsers(dest="verb", metavar="verb", required=True, title="verbs")
    for name, sentence in VERBS.items():
        if name == verb:
            _module(name).add_parser(subparsers)
            _add_global_options(subparsers.choices[name], default=argparse.SUPPRESS)
        else:
            subparsers.add_parser(name, help=sentence)
    return parser


def _add_global_options(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Before the verb or after it; after it they must not put back what stood before."""
    is_verb = default is argparse.SUPPRESS
    options = parser.add_argument_group("options of every verb")
    where = "else $LAGGARD_CONFIG, ./laggard.toml, /etc/laggard/laggard.toml"
    options.add_argument("--config", metavar="FILE", default=default, help=f"configuration ({where})")
    set_to = "verb_set" if is_verb else "set"
    options.add_argument(
        "--set",
        metavar="A.B=C",
        action="append",
        default=default,
        dest=set_to,
        help="one key; wins over file and environment",
    )
    options.add_argument("--json", action="store_true", default=default, help="one JSON object on standard output")
    loudness = options.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", default=default, help="log errors only")
    loudness.add_argument(
        "-v", "--verbose", action="store_true", default=default, help="log everything; errors with their traceback"
    )
