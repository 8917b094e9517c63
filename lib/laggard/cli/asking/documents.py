"""The document that answers a question: from the tables, or with `--url` from an exporter."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laggard.answers import lists
from laggard.answers.document import decode, encode, head_of, name_of
from laggard.answers.groups import groups_of, read_snapshot
from laggard.answers.history import GroupSeries
from laggard.answers.questions import FINDINGS, GROUPS, ApiError, read_parameters
from laggard.answers.reading import Row, published_batch, refuse_empty, warn_of
from laggard.cli.asking.client import Document, Remote, reading
from laggard.cli.text.envelope import json_answer
from laggard.cli.text.terminal import warn_if_old
from laggard.errors import USAGE, LaggardError
from laggard.exporter.evaluated import EvaluatedReader
from laggard.exporter.options import PolicyOf, no_policy
from laggard.exporter.snapshot import Snapshot
from laggard.tables.odd_rows import Skipped
from laggard.tables.readers import TableMissing

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.tables.published import Batch

_QUESTIONS = {"groups": GROUPS, "findings": FINDINGS}


def refuse_no_group(args: argparse.Namespace, config: Config, groups: Sequence[Row]) -> None:
    """Raise an error that names a near group if no group matches the glob of the options."""
    if not groups and args.group != "*":
        every = document_of(args, config, "groups")["groups"]
        refuse_empty(args.group, groups, [name_of(row, "group") for row in every])


def rendering(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Raise an error if an exporter's document lacks a key: then it is not one of laggard."""
    return reading(args.url) if args.url else nullcontext()


def print_json(document: Document) -> None:
    """Print a document as `--json` does."""
    answer = json.loads(encode(document))
    print(json_answer(answer))


@dataclass(frozen=True, slots=True)
class _Source:
    root: str
    batch: Batch


def document_of(
    args: argparse.Namespace, config: Config, path: str, **parameters: str | None
) -> Document:
    """Return the API's answer at a path, with all entries of its list on one page.

    The tables give the same document as an exporter. Text shows neither history, policy nor the
    desired consumers of a group, so only `--json` reads these.
    """
    if args.url:
        return Remote(args).whole(path, **parameters)
    given = [(name, value) for name, value in parameters.items() if value is not None]
    try:
        asked = read_parameters(given, _QUESTIONS[path]) | {"limit": None}
    except ApiError as error:
        fix = f"laggard {args.verb} --help"
        raise LaggardError(str(error), fix=fix, exit_code=USAGE) from error
    root, seconds = config.job.tables, config.job.window_seconds
    if path == "findings":
        batch = published_batch(root)
        body = lists.findings([_Source(root, batch)], asked, seconds)
    else:
        snapshot = whole_snapshot(config) if args.json else _snapshot(config, no_policy)
        batch = snapshot.batch
        series = GroupSeries(root, seconds) if args.json else None
        cluster = groups_of(snapshot, root, seconds, series)
        body = lists.groups([cluster], asked, seconds)
    reason = None if warn_if_old(batch, config) else "stale"
    return decode(encode(head_of(batch, reason) | body))


def whole_snapshot(config: Config) -> Snapshot:
    """Return the newest batch with policies and with what the rules say of sizes."""
    snapshot, skipped = _snapshot(config, config.policies.of), Skipped()
    root, seconds, batch = config.job.tables, config.job.window_seconds, snapshot.batch
    reader = EvaluatedReader(root, seconds, config.policies.idle_seconds(batch.cluster))
    with suppress(TableMissing):  # of a job without rules
        evaluated = reader.read(skipped).if_fresh(batch.polled_at.timestamp(), seconds)
        snapshot = replace(snapshot, evaluated=evaluated)
    warn_of(skipped)
    return snapshot


def _snapshot(config: Config, policy: PolicyOf) -> Snapshot:
    skipped = Skipped()
    snapshot = read_snapshot(config.job.tables, skipped, policy)
    warn_of(skipped)
    return snapshot
