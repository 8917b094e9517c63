"""What happened in one day, as rows for bench/questions.py."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product

import numpy as np
import pyarrow as pa
from question_rows import (
    columns,
    frame,
    group_history,
    group_windows,
    lag_windows,
    names,
    topic_windows,
)


def a_day(begin: datetime, day: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield tables of one day, in the order of time as the ticks leave them."""
    random = np.random.default_rng(day)
    yield "lag_windows", lag_windows(begin, random)
    yield "topic_windows", topic_windows(begin, random)
    yield "group_windows", group_windows(begin, random)
    yield "group_history", group_history(begin)
    yield "group_members", group_members(begin)
    yield from events_of(begin, day)
    yield "scale_events", scale_events(begin)


def events_of(begin: datetime, day: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield event rows of a day: 1,000 rebalances, 1,020 of findings, 100 deploys."""
    random = np.random.default_rng(day)
    yield "rebalances", rebalances(begin, random)
    yield "findings", findings(begin, random)
    yield "deploys", deploys(begin)


def rebalances(begin: datetime, random: np.random.Generator) -> pa.Table:
    """Return twenty a day and group."""
    causes = ("member_join", "replacement", "unknown")
    rows = [
        {
            "date": begin.date(), "cluster": "prod", "group": group,
            "rebalance_id": f"{begin:%d}-{group}-{n}",
            "started_est": begin + timedelta(minutes=60 * n),
            "ended_at": begin + timedelta(minutes=60 * n, seconds=5),
            "cause": causes[n % 3], "necessity": "planned", "assignor": "range",
            "rebalance_mode": "eager",
            "members_before": 4 if n % 3 == 0 else 5, "members_after": 5, "moved": 10,
            "avoidable": 2,
            "paused_partition_seconds": float(random.random()), "coordinator": n % 3,
        }
        for group in names("group") for n in range(20)
    ]  # fmt: skip
    return frame("rebalances", len(rows), columns(rows))


def group_members(begin: datetime) -> pa.Table:
    """Return five in each of twenty generations a day and group."""
    rows = [
        {
            "date": begin.date(), "cluster": "prod", "group": group,
            "record_timestamp": begin + timedelta(hours=n),
            "source_partition": 3, "source_offset": n, "member_id": member,
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 300_000,
        }
        for group, n, member in product(names("group"), range(20), names("member", 5))
    ]  # fmt: skip
    return frame("group_members", len(rows), columns(rows))


def findings(begin: datetime, random: np.random.Generator) -> pa.Table:
    """Return ten a day and group, opened and closed, and some of the cluster."""
    rows = []
    for group in (*names("group"), None):
        for n in range(10):
            at = begin + timedelta(seconds=int(random.integers(0, 80_000)))
            row = {
                "date": begin.date(), "cluster": "prod", "group": group,
                "topic": "topic-3" if group else None,
                "finding_id": f"{begin:%d}-{group}-{n}", "code": f"CODE_{n}", "severity": "warn",
                "role": "primary",
                "started_at": at, "opened_at": at, "coordinator": 1,
            }  # fmt: skip
            rows.append({**row, "seq": 0, "event": "opened", "at": at})
            later = at + timedelta(hours=1)
            rows.append({**row, "seq": 1, "event": "closed", "at": later, "closed_at": later})
    return frame("findings", len(rows), columns(rows))


def deploys(begin: datetime) -> pa.Table:
    """Return two a day and group."""
    rows = [
        {
            "date": begin.date(), "cluster": "prod", "group": group,
            "started_at": begin + timedelta(hours=10 * n),
            "ended_at": begin + timedelta(hours=10 * n, minutes=5), "rebalances": 2,
            "static_share": 0.0,
            "rebalance_ids": [f"{begin:%d}-{group}-{10 * n}", f"{begin:%d}-{group}-{10 * n + 1}"],
            "rebalance_mode": "eager", "lag_seconds": 60.0,
        }
        for group in names("group") for n in range(2)
    ]  # fmt: skip
    return frame("deploys", len(rows), columns(rows))


def scale_events(begin: datetime) -> pa.Table:
    """Return ten a day and group, up and down."""
    rows = [
        {
            "date": begin.date(), "cluster": "prod", "group": group,
            "event_at": begin + timedelta(hours=2 * n),
            "members_before": 2 + n % 2, "members_after": 3 - n % 2, "elasticity": 0.1 * n,
        }
        for group in names("group") for n in range(10)
    ]  # fmt: skip
    return frame("scale_events", len(rows), columns(rows))
