"""The command `laggard`: global options, the choice of the verb, and what a failure looks like."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from laggard import storage
from laggard.cli.parser import VERBS, build_parser, chosen_verb, verb_module
from laggard.config import Config, load_config
from laggard.errors import INTERNAL, INTERRUPTED, OK, TEMPORARY, USAGE, LaggardError, hint
from laggard.escape import printable, printable_json, printable_lines

# no answer, so none in JSON; but for run and export with --check
PROSE = ("demo", "run", "export")
OWN_CONFIG = ("config", "decode", "demo")  # these must work when the configuration does not


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code.

    Help and version leave through SystemExit, as argparse does.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    is_verbose = not {"-v", "--verbose"}.isdisjoint(words)
    try:
        code = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough: laggard status | head
        _drop_output()
        return OK
    except Exception as error:  # noqa: BLE001 - the last one to see it
        if is_verbose and getattr(error, "exit_code", INTERNAL) != USAGE:
            import traceback

            traceback.print_exc()
        return report(error, is_json="--json" in words, is_verbose=is_verbose)
    return code


def report(error: Exception, *, is_json: bool, is_verbose: bool = False) -> int:
    """Write an error for people, with --json also as the answer, and return its exit code."""
    if isinstance(error, LaggardError):
        named = error
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        named = LaggardError(
            "there is no room to write",
            cause=f"{error.filename or 'standard output'}: {error.strerror}",
            fix="make room there, or write to another disk",
            exit_code=TEMPORARY,
        )
    else:
        sentence = next(iter(str(error).splitlines()), "no message")
        fix = "report this as a bug of laggard" if is_verbose else "run with -v for the traceback"
        named = LaggardError(
            f"internal error: {type(error).__name__}: {sentence}", fix=fix, exit_code=INTERNAL
        )
    if is_json:
        names = ("what", "cause", "fix", "exit_code")
        with suppress(OSError):  # the code and the text below say it too
            print(
                printable_json(
                    {"v": 1, "ok": False, "error": {name: getattr(named, name) for name in names}}
                )
            )
    print(printable_lines(str(named)), file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # the reader has gone, or there is no room
        _drop_output()
    return named.exit_code


def _drop_output() -> None:
    """Discard the rest of the output: Python would fail at it once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: Sequence[str]) -> int:
    args = parsed(words)
    args.set += args.verb_set
    verb: str = args.verb
    config = Config() if verb in OWN_CONFIG else load_config(args.config, args.set, os.environ)
    _start_log(verb, args, config)
    storage.use(config.storage)
    storage.check_keys()
    code: int = verb_module(verb).run(args, config)
    return code


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parse the words of one command; none at all ask for help."""
    verb = chosen_verb(words)
    if verb is not None and verb not in VERBS:
        near = hint(verb, VERBS).removeprefix("; ")
        raise LaggardError(
            f'there is no verb "{printable(verb)}"',
            cause=near,
            fix="laggard --help",
            exit_code=USAGE,
        )
    args = build_parser(verb).parse_all(words or ["--help"])
    if verb is None:
        raise LaggardError("no verb is given", fix="laggard --help", exit_code=USAGE)
    if args.json and verb in PROSE and not getattr(args, "check", None):
        raise LaggardError(
            f"laggard {verb} has no answer in JSON",
            cause="it runs until it is stopped",
            fix=f"laggard {verb}, without --json",
            exit_code=USAGE,
        )
    return args


def check_use(words: Sequence[str]) -> int:
    """Check a command and print its errors, without running it."""
    try:
        parsed(words)
    except LaggardError as error:
        return report(error, is_json=False)
    return OK


def _start_log(verb: str, args: argparse.Namespace, config: Config) -> None:
    from laggard.cli.logs import start_log

    if args.verbose:
        level = "debug"
    elif args.quiet:
        level = "error"
    else:
        level = config.logging.level
    # json is for processes that are watched by others; a person reads the rest
    start_log(level, is_json=verb in ("run", "export") and config.logging.format == "json")
