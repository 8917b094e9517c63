"""`laggard status`: every group's state and lag now, worst first, from the newest batch."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

from laggard.cli.api.client import add_options
from laggard.cli.judged import BEHIND, INFO, LEVELS, Health, read_health
from laggard.cli.published import made_lines, published_batch, refuse_empty, title_of, warn_if_old, warn_of
from laggard.cli.words import UNKNOWN, aligned, known, known_duration, records, short
from laggard.errors import INTERRUPTED, OK
from laggard.escape import printable_json
from laggard.exporter.options import Selection
from laggard.exporter.snapshot import Row, Snapshot, load_snapshot
from laggard.rebalance.groups import generation_or_epoch
from laggard.tables.schemas import GROUP_STATUS
from laggard.tables.sift import Skipped

if TYPE_CHECKING:
    from laggard.config import Config

Healths = Mapping[str, Health]  # by group; empty if the rules have not evaluated the moment
_CLEAR = "\x1b[H\x1b[J"
_TITLES = (
    "GROUP", "HEALTH", "FINDING", "VERDICT", "STATE", "MEMBERS", "LAG", "TIME LAG", "WORST PARTITION", "GENERATION",
    "DATA", "SHAPE",
)  # fmt: skip
_OF_RULES = {"HEALTH", "FINDING", "VERDICT", "SHAPE"}
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
    finding: str | None = None  # code of the open finding to act on; None: none is open, or unknown as health is
    shape: str | None = None  # of the topic that is furthest behind
    verdict: str | None = None


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "status", help="state and lag of every group now", description="Groups, worst first, from the newest batch."
    )
    parser.add_argument("--watch", action="store_true", help="show again every tick until Ctrl-C")
    parser.add_argument("--group", metavar="GLOB", default="*", help="only groups whose name matches")
    parser.add_argument(
        "--rebalances", action="store_true", help="rebalances of each group so far, and the last one, in place of lag"
    )
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="at most so many groups, worst first (0: all)"
    )
    add_options(parser)


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the table once, or every tick."""
    try:
        while True:
            page = _read_page(args, config)
            if args.watch and sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            sys.stdout.write(page)
            sys.stdout.flush()
            if not args.watch:
                return OK
            time.sleep(config.job.tick_seconds)
    except KeyboardInterrupt:
        return INTERRUPTED


def _read_page(args: argparse.Namespace, config: Config) -> str:
    if args.url:
        from laggard.cli.api import remote

        return remote.status(args)
    if args.rebalances:
        from laggard.cli.status_rebalances import read_page

        return read_page(args, config)
    skipped = Skipped()
    snapshot = read_snapshot(config.job.tables, skipped)
    warn_of(skipped)
    warn_if_old(snapshot.batch, config)
    chosen = only_groups(snapshot, args.group)
    refuse_empty(args.group, chosen.groups)
    healths = read_health(config.job.tables, snapshot.batch.polled_at, config.job.window_seconds)
    if args.json:
        return _json(chosen, args.limit, healths)
    return "\n".join(status_lines(chosen, args.limit, healths)) + "\n"


def read_snapshot(root: str, skipped: Skipped | None = None) -> Snapshot:
    """The newest published batch, with all partitions that `status` may name; odd rows are counted in `skipped`."""
    return load_snapshot(root, published_batch(root), Selection(partition_top_k=1), skipped)


def status_lines(snapshot: Snapshot, limit: int = 0, healths: Healths = MappingProxyType({})) -> list[str]:
    """A title and one line per group, the worst first; without what only the rules know if they have not evaluated."""
    groups = group_lines(snapshot, healths)
    return table_lines(title_of(snapshot.batch, len(groups)), groups, limit, has_rules=bool(healths))


def table_lines(title: str, groups: Sequence[GroupLine], limit: int, *, has_rules: bool) -> list[str]:
    """The table of groups that are in order below its title."""
    shown = groups[:limit] if limit else groups
    titles = [name for name in _TITLES if has_rules or name not in _OF_RULES]
    cells = [[_cells(line)[name] for name in titles] for line in shown]
    lines = [title, *aligned([titles, *cells], [name in _RIGHT for name in titles])]
    return [*lines, f"… and {len(groups) - len(shown)} more"] if len(shown) < len(groups) else lines


def group_lines(snapshot: Snapshot, healths: Healths = MappingProxyType({})) -> list[GroupLine]:
    """One entry per group, sorted by health, then time lag, then lag, unknown last."""
    topics: dict[str, list[Row]] = {}
    for row in snapshot.group_topics.rows():
        topics.setdefault(row["group"], []).append(row)
    worst = {group: f"{row['topic']}-{row['partition']}" for group, row in worst_partitions(snapshot).items()}

    def shown_line(row: Row) -> GroupLine:
        line = _group_line(row, topics.get(row["group"], []), worst.get(row["group"], ""))
        health = healths.get(row["group"])
        if health is not None:
            shape, verdict = health.of_worst("shape"), health.of_worst("scale_verdict")
            level = health.level
            if level in ("ok", INFO) and line.members == 0 and line.lag:  # nobody reads, which no window has to show
                level = BEHIND
            line = replace(line, health=level, finding=health.code, shape=shape, verdict=verdict)
        aligned([list(_cells(line).values())], [False] * len(_TITLES))
        return line

    lines = made_lines(snapshot.groups, GROUP_STATUS.name, shown_line)
    return sorted(lines, key=order)


def order(line: GroupLine) -> tuple[int, float, float, str]:
    """Place a line by its health, then its lag."""
    return (LEVELS.index(line.health), -_rank(line.time_lag_seconds), -_rank(line.lag), line.group)


def only_groups(snapshot: Snapshot, glob: str) -> Snapshot:
    """The snapshot with the matching groups only."""
    return replace(snapshot, groups=[row for row in snapshot.groups if fnmatchcase(row["group"], glob)])


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
        and all(topic["time_lag"] is not None or not _has_commits(topic) for topic in topics),
        worst_partition=worst,
        generation=generation_or_epoch(row),
        status=row["status"],
    )


def _has_commits(topic: Row) -> bool:
    return bool(topic["partitions_bad"] or topic["status_ok"])


def worst_partitions(snapshot: Snapshot) -> dict[str, Row]:
    """The partition with the largest time lag of each group that has any lag."""
    worst: dict[str, tuple[tuple[float, int], Row]] = {}
    for row in (*snapshot.partitions, *snapshot.worst):
        rank = (row["time_lag_seconds"] or 0.0, row["lag"] or 0)
        if rank > worst.get(row["group"], ((0.0, 0), {}))[0]:
            worst[row["group"]] = (rank, row)
    return {group: row for group, (_, row) in worst.items()}


def _cells(line: GroupLine) -> dict[str, str]:
    """Title to cell."""
    return {
        "GROUP": short(line.group),
        "HEALTH": line.health,
        "FINDING": line.finding or (UNKNOWN if line.health == UNKNOWN else "-"),
        "VERDICT": known(line.verdict),
        "STATE": line.state,
        "MEMBERS": known(line.members),
        "LAG": records(line.lag, is_exact=line.lag_is_exact),
        "TIME LAG": known_duration(line.time_lag_seconds, is_exact=line.time_lag_is_exact),
        "WORST PARTITION": short(line.worst_partition) or "-",
        "GENERATION": known(line.generation),
        "DATA": line.status,
        "SHAPE": known(line.shape),
    }


def _rank(value: float | None) -> float:
    return -1.0 if value is None else value


def _json(snapshot: Snapshot, limit: int, healths: Healths) -> str:
    groups = group_lines(snapshot, healths)
    content = {
        "cluster": snapshot.cluster,
        "batch_id": snapshot.batch.batch_id,
        "polled_at": snapshot.batch.polled_at.isoformat(),
        "groups": [asdict(line) for line in (groups[:limit] if limit else groups)],
    }
    return printable_json({"v": 1, "ok": True, "data": content}) + "\n"
