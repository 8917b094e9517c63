"""`laggard status`: every group's state and lag now, worst first, from the newest batch."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from laggard.cli.api.client import add_options
from laggard.cli.status import rebalances as status_rebalances
from laggard.cli.status.evaluated import (
    BEHIND,
    FAIL_ON,
    FOUND,
    INFO,
    LEVELS,
    Health,
    at_least,
    read_health,
    unknown_code,
)
from laggard.cli.status.published import (
    Page,
    content_of,
    made_lines,
    published_batch,
    refuse_empty,
    title_of,
    warn_if_old,
    warn_of,
)
from laggard.cli.text import terminal
from laggard.cli.text.table import Table
from laggard.cli.text.words import UNKNOWN, known, known_duration, records, short
from laggard.errors import INTERRUPTED, OK, USAGE, LaggardError
from laggard.escape import printable_json
from laggard.exporter.options import Selection
from laggard.exporter.snapshot import Row, Snapshot, load_snapshot
from laggard.rebalance.groups import generation_or_epoch
from laggard.tables.schema.schemas import GROUP_STATUS
from laggard.tables.sift import Skipped

if TYPE_CHECKING:
    from laggard.config import Config

SORTS = ("severity", "time_lag", "lag", "group")
Healths = Mapping[str, Health]  # by group; empty if the rules have not evaluated the moment
TITLES = (
    "GROUP", "HEALTH", "FINDING", "VERDICT", "STATE", "MEMBERS", "LAG", "TIME LAG",
    "WORST PARTITION", "GENERATION",
    "DATA", "SHAPE",
)  # fmt: skip
_OF_RULES = {"HEALTH", "FINDING", "VERDICT", "SHAPE"}
_RETURNED = "members are back"  # in place of a verdict that says that there is none
_DESERTED = "no member reads"  # in place of a verdict about members that have left
_OF_NOBODY = ("NO_MEMBERS", "UNKNOWN")  # verdicts that are true also when all members have left
_LEAST = ("GENERATION", "SHAPE", "MEMBERS", "STATE", "DATA", "WORST PARTITION", "VERDICT")
_RIGHT = {"MEMBERS", "LAG", "TIME LAG", "GENERATION"}


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group as `status` shows it; None is unknown, and what is not exact is a lower bound."""

    group: str
    state: str
    members: int | None
    lag: int | None
    lag_is_exact: bool
    time_lag_seconds: float | None
    time_lag_is_exact: bool
    worst_partition: str
    generation: int | None
    status: str  # of the data: how far its lag is known
    health: str = UNKNOWN  # by the rules, in the newest window that they evaluated
    # code of the open finding to act on; None: none is open, or unknown as health is
    finding: str | None = None
    shape: str | None = None  # of the topic that is furthest behind
    verdict: str | None = None


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "status",
        help="state and lag of every group now",
        description="Groups, worst first, from the newest batch.",
    )
    parser.add_argument("--watch", action="store_true", help="show again every tick until Ctrl-C")
    parser.add_argument(
        "--group", metavar="GLOB", default="*", help="only groups whose name matches"
    )
    parser.add_argument(
        "--sort",
        choices=SORTS,
        default=SORTS[0],
        help="order (default: severity, then time lag); unknown comes last",
    )
    parser.add_argument(
        "--rebalances",
        action="store_true",
        help="rebalances of each group so far, and the last one, in place of lag",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        default=0,
        metavar="N",
        help="show at most N groups, the first (0: all)",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help="exit with 1 if a group has an open finding of this severity or a higher one",
    )
    add_options(parser)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected a number, 0 or more, got {text!r}")
    return int(text)


def _refuse_pairs(args: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    if args.watch and args.json:
        raise LaggardError(
            "--watch and --json exclude each other",
            cause="the answer in JSON is one document",
            fix="laggard status --json, as often as you like",
            exit_code=USAGE,
        )
    if args.fail_on and (args.watch or args.rebalances):
        raise LaggardError(
            f"--fail-on and {'--watch' if args.watch else '--rebalances'} exclude each other",
            cause="it goes by the health of the groups at one time",
            fix=f"laggard status --fail-on {args.fail_on}",
            exit_code=USAGE,
        )
    if args.rebalances and args.sort != SORTS[0]:
        raise LaggardError(
            "--sort and --rebalances exclude each other",
            cause="rebalances have an order of their own: the group with most comes first",
            fix="laggard status --rebalances",
            exit_code=USAGE,
        )


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the table once, or every tick."""
    return show(args, config, read_page)


def show(
    args: argparse.Namespace,
    config: Config,
    read: Callable[[argparse.Namespace, Config], Page],
) -> int:
    """Print the page that `read` returns once, or every tick."""
    _refuse_pairs(args)
    if args.watch:
        try:
            terminal.watch(
                lambda: read(args, config)[0], config.job.tick_seconds, no_color=args.no_color
            )
        except KeyboardInterrupt:
            return INTERRUPTED
    table, content = read(args, config)
    severe = at_least(args.fail_on)
    # of all: the most severe may be beyond --limit
    healths = {group.get("health") for group in content["groups"]}
    content["groups"] = content["groups"][: args.limit or None]
    if args.json:
        print(printable_json({"v": 1, "ok": True, "data": content}, datetime.isoformat))
    else:
        terminal.show([table], no_color=args.no_color)
    if healths.intersection(severe):
        return FOUND
    return OK if healths - {UNKNOWN} else unknown_code(args.fail_on)


def read_page(args: argparse.Namespace, config: Config) -> Page:
    """Read the table, and the same as data."""
    if args.rebalances:
        return status_rebalances.read_page(args, config)
    skipped = Skipped()
    snapshot = read_snapshot(config.job.tables, skipped)
    warn_of(skipped)
    warn_if_old(snapshot.batch, config)
    chosen = replace(
        snapshot, groups=[row for row in snapshot.groups if fnmatchcase(row["group"], args.group)]
    )
    refuse_empty(args.group, chosen.groups, (row["group"] for row in snapshot.groups))
    healths = read_health(config.job.tables, snapshot.batch.polled_at, config.job.window_seconds)
    groups = sorted(group_lines(chosen, healths), key=lambda line: order(line, args.sort))
    sentence = title_of(snapshot.batch, len(groups))
    table = table_of(sentence, groups, args.limit, has_rules=bool(healths))
    return table, content_of(snapshot.cluster, snapshot.batch, groups)


def read_snapshot(root: str, skipped: Skipped | None = None) -> Snapshot:
    """Return the newest published batch with all partitions that `status` may name.

    Odd rows are counted in `skipped`.
    """
    return load_snapshot(root, published_batch(root), Selection(partition_top_k=1), skipped)


def status_lines(
    snapshot: Snapshot, limit: int = 0, healths: Healths = MappingProxyType({})
) -> list[str]:
    """Return a title and a line per group, the worst first.

    The columns of the rules are left out if the rules have not evaluated.
    """
    groups = group_lines(snapshot, healths)
    return table_of(
        title_of(snapshot.batch, len(groups)), groups, limit, has_rules=bool(healths)
    ).lines()


def table_of(sentence: str, groups: Sequence[GroupLine], limit: int, *, has_rules: bool) -> Table:
    """Return the table of the groups, in the given order, below its sentence."""
    titles = [name for name in TITLES if has_rules or name not in _OF_RULES]
    if not has_rules:
        sentence += "; health and verdict unknown: the rules have not evaluated it"
    cells = [[_cells(line)[name] for name in titles] for line in groups]
    return Table(
        sentence, titles, cells, _RIGHT, limit, [name for name in _LEAST if name in titles]
    )


def group_lines(snapshot: Snapshot, healths: Healths = MappingProxyType({})) -> list[GroupLine]:
    """Return one entry per group, sorted by health, then time lag, then lag, unknown last."""
    topics: dict[str, list[Row]] = {}
    for row in snapshot.group_topics.rows():
        topics.setdefault(row["group"], []).append(row)
    worst = {
        group: f"{row['topic']}-{row['partition']}"
        for group, row in worst_partitions(snapshot).items()
    }

    def shown_line(row: Row) -> GroupLine:
        line = _group_line(row, topics.get(row["group"], []), worst.get(row["group"], ""))
        health = healths.get(row["group"])
        if health is not None:
            shape, verdict = health.of_worst("shape"), health.of_worst("scale_verdict")
            level = health.level
            # nobody reads, which no window has to show
            if level in ("ok", INFO) and line.members == 0 and line.lag:
                level = BEHIND
            line = replace(line, health=level, finding=health.code, shape=shape, verdict=verdict)
        table_of("", [line], 0, has_rules=True).lines()
        return line

    lines = made_lines(snapshot.groups, GROUP_STATUS.name, shown_line)
    return sorted(lines, key=order)


def order(line: GroupLine, sort: str = SORTS[0]) -> tuple[Any, ...]:
    """Return the sort key of a line: by health, then by its lag, or by what else is asked for."""
    if sort != SORTS[0]:
        value = {"time_lag": line.time_lag_seconds, "lag": line.lag, "group": 0}[sort]
        return (1.0 if value is None else -value, line.group)
    return (LEVELS.index(line.health), -_rank(line.time_lag_seconds), -_rank(line.lag), line.group)


def _group_line(row: Row, topics: list[Row], worst: str) -> GroupLine:
    is_exact = row["lag"] is not None
    return GroupLine(
        group=row["group"],
        state=row["group_state"],
        members=row["members"],
        lag=row["lag"] if is_exact else row["lag_known"],
        lag_is_exact=is_exact,
        time_lag_seconds=row["max_time_lag_seconds"],
        # a topic where nothing was ever committed has no time lag, and none is missing
        time_lag_is_exact=row["max_time_lag_seconds"] is not None
        and all(
            topic["time_lag"] is not None or not (topic["partitions_bad"] or topic["status_ok"])
            for topic in topics
        ),
        worst_partition=worst,
        generation=generation_or_epoch(row),
        status=row["status"],
    )


def worst_partitions(snapshot: Snapshot) -> dict[str, Row]:
    """Return the partition with the largest time lag, for each group that has lag."""
    worst: dict[str, tuple[tuple[float, int], Row]] = {}
    for row in (*snapshot.partitions, *snapshot.worst):
        rank = (row["time_lag_seconds"] or 0.0, row["lag"] or 0)
        if rank > worst.get(row["group"], ((0.0, 0), {}))[0]:
            worst[row["group"]] = (rank, row)
    return {group: row for group, (_, row) in worst.items()}


def _cells(line: GroupLine) -> dict[str, str]:
    """Return a dict from column title to cell."""
    return {
        "GROUP": short(line.group),
        "HEALTH": line.health,
        "FINDING": line.finding or (UNKNOWN if line.health == UNKNOWN else "-"),
        "VERDICT": _verdict(line),
        "STATE": line.state,
        "MEMBERS": known(line.members),
        "LAG": records(line.lag, is_exact=line.lag_is_exact),
        "TIME LAG": known_duration(line.time_lag_seconds, is_exact=line.time_lag_is_exact),
        "WORST PARTITION": short(line.worst_partition) or "-",
        "GENERATION": known(line.generation),
        "DATA": line.status,
        "SHAPE": known(line.shape),
    }


def _verdict(line: GroupLine) -> str:
    """Return the verdict of the newest window.

    If since then all members have left, or some joined an empty group, return that change
    instead.
    """
    if line.members == 0 and line.lag and line.verdict and not line.verdict.startswith(_OF_NOBODY):
        return _DESERTED
    return _RETURNED if line.members and line.verdict == "NO_MEMBERS" else known(line.verdict)


def _rank(value: float | None) -> float:
    return -1.0 if value is None else value
