"""The parser of the command line: its global options, errors with suggestions, and completion.

An error names the nearest right word.

A shell completes names of groups and topics from a running exporter, silent, and never late.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, NoReturn

from laggard.conf import conf_file
from laggard.config.ranges import is_host_port
from laggard.errors import OK, USAGE, LaggardError

SHELLS = ("bash", "zsh")
PRINT_NAMES = "--print-names"  # for the files of conf/completion alone: in no help
NAMES_SECONDS = 1.0
_MOST = 500
_PLAIN = re.compile(r"[A-Za-z0-9._/@%+,-]+")  # what no shell splits or expands
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
        """Say what is wrong, and what was probably meant."""
        found = _ARGUMENT.fullmatch(message)
        what, cause = (f"{found[1]} cannot be used like this", found[2]) if found else (message, "")
        choice = _CHOICE.match(cause)
        if choice:
            cause += hint(choice[1], choice[2].replace("'", "").split(", "))
        raise LaggardError(what, cause=cause, fix=f"{self.prog} --help", exit_code=USAGE)

    def parse_all(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse all words.

        For a word that no option has, the error names the nearest option of the verb.
        """
        found, unknown = self.parse_known_args(words)
        if unknown:
            parser = self.of_verb(found.verb)
            options = [name for each in parser._actions for name in each.option_strings]
            word = unknown[0].partition("=")[0]
            near = hint(word, options).removeprefix("; ") if word.startswith("-") else ""
            what = f"unrecognized arguments: {' '.join(unknown)}"
            raise LaggardError(what, cause=near, fix=f"{parser.prog} --help", exit_code=USAGE)
        return found

    def of_verb(self, verb: str | None) -> argparse.ArgumentParser:
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


def hint(word: str, known: Iterable[str]) -> str:
    """Return a clause that names the most similar known word; "" if none is similar."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


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


def print_names(words: Sequence[str]) -> int:
    """Print the names that fit, one a line, for the command line up to the cursor.

    The names are of `group` or `topic`.
    """
    found: list[str] = []
    asker = Thread(target=_collect, args=(words, found), daemon=True)
    asker.start()
    asker.join(NAMES_SECONDS)
    for name in [*found]:
        print(name)
    return OK


def _collect(words: Sequence[str], found: list[str]) -> None:
    with suppress(Exception, SystemExit):  # whatever is wrong, there is nothing to propose
        kind, line = words
        typed = shlex.split(line)[1:] + ([""] if line[-1:].isspace() else [])
        before, begun = typed[:-1], typed[-1]
        if not begun or _PLAIN.fullmatch(begun):
            found += [
                name
                for name in _names(kind, before, begun)
                if name.startswith(begun) and _PLAIN.fullmatch(name)
            ]


def _names(kind: str, before: list[str], begun: str) -> Iterable[str]:
    from laggard.cli.api.client import Remote
    from laggard.cli.api.document import name_of

    args = _parsed_so_far(before[:-1] if before[-1].startswith("-") else before)
    remote = Remote(args)
    if kind == "group":
        rows = remote.get("groups", group=f"{begun}*", limit=_MOST)["groups"]
        return (name_of(row, "group") for row in rows)
    rows = remote.get("group", group=args.group, limit=1)["topics"]
    return (name_of(row, "topic") for row in rows)


def _parsed_so_far(words: list[str]) -> argparse.Namespace:
    """Return the options of an incomplete command line so far, with the exporter's address."""
    from laggard.cli.api.client import add_options
    from laggard.cli.main import build_parser, chosen_verb

    verb = chosen_verb(words)
    parser = build_parser(verb)
    for action in parser.of_verb(verb)._get_positional_actions():
        action.required, action.nargs = False, "?"
    add_options(every := argparse.ArgumentParser())  # also for verbs that have none of these
    args, _ = parser.parse_known_args(words, every.parse_args([]))
    args.url = args.url or _configured(args)
    return args


def _configured(args: argparse.Namespace) -> str:
    """Return the address that an exporter of this configuration listens on."""
    from laggard.config import load_config
    from laggard.exporter.check import asks_for_tls, reachable

    exporter = load_config(args.config, [*args.set, *args.verb_set], os.environ).exporter
    host, _, port = exporter.listen.rpartition(":")
    host = reachable(host.strip("[]"))
    scheme = "https" if asks_for_tls(exporter.web_config_file) else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
