"""Names of groups and topics for the completion of the shells: from a running exporter, silent, and never late."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Thread

from laggard.errors import OK

OPTION = "--print-names"  # for the files of conf/completion alone: in no help
LIMIT_SECONDS = 1.0
_MOST = 500
_PLAIN = re.compile(r"[A-Za-z0-9._/@%+,-]+")  # what no shell splits or expands


def print_names(words: Sequence[str]) -> int:
    """Print the names that fit, one a line: of `group` or `topic`, for the command line as it is up to the cursor."""
    found: list[str] = []
    asker = Thread(target=_collect, args=(words, found), daemon=True)
    asker.start()
    asker.join(LIMIT_SECONDS)
    for name in [*found]:
        print(name)
    return OK


def _collect(words: Sequence[str], found: list[str]) -> None:
    with suppress(Exception, SystemExit):  # whatever is wrong, there is nothing to propose
        kind, line = words
        typed = shlex.split(line)[1:] + ([""] if line[-1:].isspace() else [])
        before, begun = typed[:-1], typed[-1]
        if not begun or _PLAIN.fullmatch(begun):
            found += [name for name in _names(kind, before, begun) if name.startswith(begun) and _PLAIN.fullmatch(name)]


def _names(kind: str, before: list[str], begun: str) -> Iterable[str]:
    from laggard.cli.api.client import Remote
    from laggard.cli.api.document import name_of

    args = _parsed(before[:-1] if before[-1].startswith("-") else before)
    remote = Remote(args)
    if kind == "group":
        rows = remote.get("groups", group=f"{begun}*", limit=_MOST)["groups"]
        return (name_of(row, "group") for row in rows)
    rows = remote.get("group", group=args.group, limit=1)["topics"]
    return (name_of(row, "topic") for row in rows)


def _parsed(words: list[str]) -> argparse.Namespace:
    """The options so far, of a verb whose other words may still come; and the exporter's address."""
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
    """The address that an exporter of this configuration listens on."""
    from laggard.config import load_config
    from laggard.exporter.check import asks_for_tls, reachable

    exporter = load_config(args.config, [*args.set, *args.verb_set], os.environ).exporter
    host, _, port = exporter.listen.rpartition(":")
    host = reachable(host.strip("[]"))
    scheme = "https" if asks_for_tls(exporter.web_config_file) else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
