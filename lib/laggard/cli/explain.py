"""`laggard explain GROUP`: what a group is doing, who reads what, and why it rebalanced, in plain words."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from laggard.cli.explain_members import member_lines, time_lag_is_exact
from laggard.cli.explain_rows import Explained, read_group
from laggard.cli.explain_text import page_lines
from laggard.cli.explain_unknown import not_known
from laggard.cli.published import Row, warn_if_old
from laggard.errors import OK

if TYPE_CHECKING:
    from laggard.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "explain",
        help="one group in plain words: state, lag, members, rebalances and what is not known",
        description="One group in plain words, from the newest batch.",
    )
    parser.add_argument("group", help="name of the group, as `laggard status` prints it")
    parser.add_argument(
        "--limit", type=_positive, default=5, metavar="N", help="at most so many rebalances (default: 5)"
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the page, or the same as data."""
    explained = read_group(config.job.tables, args.group, args.limit)
    warn_if_old(explained.batch, config)
    if args.json:
        content = {"v": 1, "ok": True, "data": to_data(explained)}
        print(json.dumps(content, ensure_ascii=False, default=datetime.isoformat))
    else:
        print("\n".join(page_lines(explained)))
    return OK


def to_data(explained: Explained) -> dict[str, Any]:
    """What the page stands on, with exact numbers; null is not known."""
    return {
        "cluster": explained.batch.cluster,
        "batch_id": explained.batch.batch_id,
        "polled_at": explained.batch.polled_at,
        "group": explained.group | {"time_lag_is_exact": time_lag_is_exact(explained.partitions)},
        "partitions": explained.partitions,
        "members": None if explained.members is None else _members(explained),
        "rebalances": explained.rebalances,
        "not_known": [{"code": code, "text": text} for code, text in not_known(explained)],
    }


def _members(explained: Explained) -> list[Row]:
    return [
        {
            **{name: value for name, value in line.row.items() if name not in {"batch_id", "source_offset"}},
            "is_idle": line.is_idle,
            "lag": line.lag,
            "lag_is_exact": line.lag_is_exact,
            "time_lag_seconds": line.time_lag_seconds,
            "time_lag_is_exact": line.time_lag_is_exact,
        }
        for line in member_lines(explained)
    ]


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number
