"""`laggard status`: every group's state and lag now, worst first, from the newest batch."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from laggard.errors import INTERRUPTED, NOT_FOUND, OK, TEMPORARY, LaggardError
from laggard.exporter.escape import escape_label
from laggard.exporter.published import is_fresh, max_age
from laggard.exporter.snapshot import Row, Snapshot, load_snapshot
from laggard.tables.readers import BACKFILL, newest_batch

if TYPE_CHECKING:
    from laggard.config import Config

UNKNOWN = "unknown"
_CLEAR = "\x1b[H\x1b[J"
_NAME_WIDTH = 48
_TITLES = ("GROUP", "STATE", "MEMBERS", "LAG", "TIME LAG", "WORST PARTITION", "GENERATION", "STATUS")
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
    status: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "status", help="state and lag of every group now", description="Groups, worst first, from the newest batch."
    )
    parser.add_argument("--watch", action="store_true", help="show again every tick until Ctrl-C")
    parser.add_argument("--group", metavar="GLOB", default="*", help="only groups whose name matches")
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="at most so many groups, worst first (0: all)"
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the table once, or every tick."""
    try:
        while True:
            snapshot = read_snapshot(config.job.tables)
            _warn_if_old(snapshot, config)
            chosen = only_groups(snapshot, args.group)
            if args.group != "*" and not chosen.groups:
                raise LaggardError(f'no group matches "{args.group}"', fix="laggard status", exit_code=NOT_FOUND)
            if args.watch and sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            sys.stdout.write(
                _json(chosen, args.limit) if args.json else "\n".join(status_lines(chosen, args.limit)) + "\n"
            )
            sys.stdout.flush()
            if not args.watch:
                return OK
            time.sleep(config.job.tick_seconds)
    except KeyboardInterrupt:
        return INTERRUPTED


def read_snapshot(root: str) -> Snapshot:
    """The newest published batch, with all partitions that `status` may name."""
    batch = newest_batch(root)
    if batch is None:
        raise LaggardError(
            "nothing is published yet", cause=f"{root}/batches has no tick", fix="laggard run", exit_code=TEMPORARY
        )
    if batch.kind == BACKFILL:
        raise LaggardError(
            "the job is still catching up",
            cause=f"batch {batch.batch_id} is a backfill",
            fix="try again later",
            exit_code=TEMPORARY,
        )
    return load_snapshot(root, batch, partition_top_k=1)


def status_lines(snapshot: Snapshot, limit: int = 0) -> list[str]:
    """A title and one line per group, the largest time lag first."""
    groups = group_lines(snapshot)
    shown = groups[:limit] if limit else groups
    moment = f"{snapshot.batch.polled_at:%Y-%m-%d %H:%M:%S} UTC"
    title = f"{escape_label(snapshot.cluster)}: batch {snapshot.batch.batch_id}, {moment}, {len(groups)} groups"
    lines = [title, *aligned([_TITLES, *map(_cells, shown)], [name in _RIGHT for name in _TITLES])]
    return [*lines, f"… and {len(groups) - len(shown)} more"] if len(shown) < len(groups) else lines


def group_lines(snapshot: Snapshot) -> list[GroupLine]:
    """One entry per group, sorted by time lag, then lag, unknown last."""
    topics: dict[str, list[Row]] = {}
    for row in snapshot.group_topics.rows():
        topics.setdefault(row["group"], []).append(row)
    worst = _worst_partitions(snapshot.partitions)
    lines = [_group_line(row, topics.get(row["group"], []), worst.get(row["group"], "")) for row in snapshot.groups]
    return sorted(lines, key=lambda line: (-_rank(line.time_lag_seconds), -_rank(line.lag), line.group))


def only_groups(snapshot: Snapshot, glob: str) -> Snapshot:
    """The snapshot with the matching groups only."""
    return replace(snapshot, groups=[row for row in snapshot.groups if fnmatchcase(row["group"], glob)])


def aligned(rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (
        [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_right, strict=True)
        ]
        for row in rows
    )
    return ["  ".join(cells).rstrip() for cells in padded]


def duration(seconds: float) -> str:
    """Two units at most: 4 s, 3 m 05 s, 1 h 04 m, 2 d 03 h."""
    whole = int(seconds)
    for size, unit, small, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small:02d} {part}"
    return f"{whole} s"


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
        generation=row["generation"],
        status=row["status"],
    )


def _has_commits(topic: Row) -> bool:
    return bool(topic["partitions_bad"] or topic["status_ok"])


def _worst_partitions(rows: Sequence[Row]) -> dict[str, str]:
    """Topic and partition with the largest time lag of each group that has any lag."""
    worst: dict[str, tuple[tuple[float, int], str]] = {}
    for row in rows:
        rank = (row["time_lag_seconds"] or 0.0, row["lag"] or 0)
        if rank > worst.get(row["group"], ((0.0, 0), ""))[0]:
            worst[row["group"]] = (rank, f"{row['topic']}-{row['partition']}")
    return {group: name for group, (_, name) in worst.items()}


def _cells(line: GroupLine) -> tuple[str, ...]:
    seconds = None if line.time_lag_seconds is None else duration(line.time_lag_seconds)
    return (
        _short(line.group),
        line.state,
        _known(line.members),
        _known(line.lag, is_exact=line.lag_is_exact),
        _known(seconds, is_exact=line.time_lag_is_exact),
        _short(line.worst_partition) or "-",
        _known(line.generation),
        line.status,
    )


def _known(value: object, *, is_exact: bool = True) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if is_exact else f"≥ {value}"


def _short(name: str) -> str:
    # a client chooses the name: it must not steer the terminal
    safe = escape_label(name)
    return safe if len(safe) <= _NAME_WIDTH else safe[: _NAME_WIDTH - 1] + "…"


def _rank(value: float | None) -> float:
    return -1.0 if value is None else value


def _json(snapshot: Snapshot, limit: int) -> str:
    groups = group_lines(snapshot)
    content = {
        "cluster": snapshot.cluster,
        "batch_id": snapshot.batch.batch_id,
        "polled_at": snapshot.batch.polled_at.isoformat(),
        "groups": [asdict(line) for line in (groups[:limit] if limit else groups)],
    }
    return json.dumps({"v": 1, "ok": True, "data": content}, ensure_ascii=False) + "\n"


def _warn_if_old(snapshot: Snapshot, config: Config) -> None:
    now = time.time()
    if not is_fresh(snapshot.polled_at, now, max_age(config.job.tick_seconds, config.exporter.max_age_seconds)):
        age = duration(abs(now - snapshot.polled_at))
        side = "old" if now > snapshot.polled_at else "in the future"
        print(f"laggard: these numbers are {age} {side}: does the job run? (laggard doctor)", file=sys.stderr)
