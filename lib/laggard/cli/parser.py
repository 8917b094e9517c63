"""The parser of the command line: its verbs, its global options, and errors with suggestions."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from laggard import __version__
from laggard.conf import conf_file
from laggard.config.ranges import is_host_port
from laggard.errors import OK, USAGE, LaggardError, hint

# The module laggard.cli.verbs.<verb> is imported when its verb is used: it may bring Spark or Arrow
# along.
VERBS = {
    "demo": "real broker, load, job, exporter and a live view, on this machine",
    "run": "the job: reads the offsets topic, writes the tables",
    "export": "the exporter: reads the tables, serves the metrics",
    "status": "groups and their lag, from the tables",
    "explain": "one group in plain words: what is wrong, why, what to do first, and what is not "
    "known",
    "plan": "what if: load, drain time and cost with other members, assignor, rate or partitions",
    "findings": "what the rules found, the open ones first",
    "diagnose": "evaluate a past range again",
    "query": "SQL on the tables, without a JVM",
    "report": "one HTML file about a group or all groups, with charts and findings",
    "audit": "are the rows right? checks the tables, and says which rows are not",
    "doctor": "can it run here, and what to do if not",
    "config": "show what is in force, check it, print a sample",
    "decode": "records of the offsets topic, as JSON lines from standard input",
}
SHELLS = ("bash", "zsh")
_ARGUMENT = re.compile(r"argument ([^:]+): (.+)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.+?)\)", re.DOTALL)


class PrintCompletion(argparse.Action):
    """Print the completion that was made from this parser, and end."""

    def __call__(
        self, parser: argparse.ArgumentParser, _space: Any, shell: Any, _option: str | None = None
    ) -> None:
        text = conf_file(f"completion/laggard.{shell}").read_text(encoding="utf-8")
        sys.stdout.write(text)
        parser.exit(OK)


class Parser(argparse.ArgumentParser):
    """Raise a wrong use as an error of laggard, so that it looks like any other, also in JSON."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False} | options)

    def error(self, message: str) -> NoReturn:
        """Print the error and the nearest known word."""
        match = _ARGUMENT.fullmatch(message)
        what, cause = (f"{match[1]} cannot be used like this", match[2]) if match else (message, "")
        choice = _CHOICE.match(cause)
        if choice:
            cause += hint(choice[1], choice[2].replace("'", "").split(", "))
        raise LaggardError(what, cause=cause, fix=f"{self.prog} --help", exit_code=USAGE)

    def parse_all(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse all words.

        For a word that no option has, the error names the nearest option of the verb.
        """
        args, unknown = self.parse_known_args(words)
        if unknown:
            parser = self._of_verb(args.verb)
            options = [name for action in parser._actions for name in action.option_strings]
            word = unknown[0].partition("=")[0]
            near = hint(word, options).removeprefix("; ") if word.startswith("-") else ""
            what = f"unrecognized arguments: {' '.join(unknown)}"
            raise LaggardError(what, cause=near, fix=f"{parser.prog} --help", exit_code=USAGE)
        return args

    def _of_verb(self, verb: str | None) -> argparse.ArgumentParser:
        """Return the parser of a verb; this parser if the verb is unknown."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and verb in action.choices:
                return action.choices[verb]  # type: ignore[no-any-return]
        return self


def address(text: str) -> str:
    """Read an option that is HOST:PORT."""
    if not is_host_port(text):
        raise argparse.ArgumentTypeError(f"expected host:port, got {text!r}")
    return text


def add_global_options(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Add the options of every verb, before it or after it.

    After it, no default may replace a value that came before it.
    """
    is_verb = default is argparse.SUPPRESS
    options = parser.add_argument_group("options of every verb")
    where = "else $LAGGARD_CONFIG, ./laggard.toml, /etc/laggard/laggard.toml"
    options.add_argument(
        "--config", metavar="FILE", default=default, help=f"configuration ({where})"
    )
    set_to = "verb_set" if is_verb else "set"
    options.add_argument(
        "--set",
        metavar="A.B=C",
        action="append",
        default=default,
        dest=set_to,
        help="one key; wins over file and environment",
    )
    options.add_argument(
        "--json", action="store_true", default=default, help="one JSON object on standard output"
    )
    options.add_argument(
        "--no-color",
        action="store_true",
        default=default,
        help="no colors on a terminal, as with $NO_COLOR",
    )
    loudness = options.add_mutually_exclusive_group()
    loudness.add_argument(
        "-q", "--quiet", action="store_true", default=default, help="log errors only"
    )
    loudness.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=default,
        help="log everything; errors with their traceback",
    )


def chosen_verb(words: Sequence[str]) -> str | None:
    """Return the verb: the first word that is neither an option nor an option's value."""
    rest = iter(words)
    for word in rest:
        if word in ("--config", "--set", "--print-completion"):
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None


def build_parser(*chosen: str | None) -> Parser:
    """Return the parser with every verb's name and the options of the chosen verbs.

    Usually one verb is chosen.
    """
    parser = Parser(
        prog="laggard", description="Kafka consumer lag and rebalances, kept in Delta tables."
    )
    parser.add_argument("--version", action="version", version=f"laggard {__version__}")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        help="print the completion for a shell, and end",
    )
    add_global_options(parser, default=None)
    parser.set_defaults(
        config=None, set=[], verb_set=[], json=False, no_color=False, quiet=False, verbose=False
    )
    subparsers = parser.add_subparsers(dest="verb", metavar="verb", title="verbs")
    for name, sentence in VERBS.items():
        if name in chosen:
            verb_module(name).add_parser(subparsers)
            add_global_options(subparsers.choices[name], default=argparse.SUPPRESS)
        else:
            subparsers.add_parser(name, help=sentence)
    return parser


def verb_module(verb: str) -> ModuleType:
    """Import the module of a verb; a verb of several files is a folder with its entry in `verb`."""
    module = import_module(f"laggard.cli.verbs.{verb}")
    return import_module(f"{module.__name__}.verb") if hasattr(module, "__path__") else module


def accept_spans(parser: argparse.ArgumentParser) -> None:
    """Let `--at -2h` be an option with its value; to argparse only -2 would be one."""
    parser._negative_number_matcher = re.compile(r"-\d+(\.\d+)?[smhd]?$")  # it has no other way
