"""Tables of a few rows, written by the package's own writer, and the answer of a question about
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from laggard.cli.verbs.query.verb import run_question
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import TABLES
from tables.fixtures import CLUSTER, NOW, batch_row, make_root

Row = dict[str, Any]


def write_tables(root: Path, tables: Mapping[str, Iterable[Row]]) -> None:
    """Create every table, write the rows given, and publish them at NOW."""
    make_root(root)
    writer = Writer(str(root), "test")
    for name, rows in tables.items():
        writer.write(TABLES[name], to_arrow(TABLES[name], [dict(row) for row in rows]), 1)
    versions = {
        name: writer.version(name) for name, table in TABLES.items() if not table.is_of_diagnosis
    }
    writer.write(TABLES["batches"], to_arrow(TABLES["batches"], [batch_row(1, versions)]), 1)


def answer(root: Path, name: str, tables: Mapping[str, Iterable[Row]], **values: str) -> list[Row]:
    """Rows of the answer; `begin` stands for the parameter from."""
    write_tables(root, tables)
    return ask(root, name, **values)


def ask(root: Path, name: str, **values: str) -> list[Row]:
    """The answer from tables that are there."""
    given = {{"begin": "from"}.get(key, key): value for key, value in values.items()}
    return list(run_question(str(root), name, given).to_pylist())


def columns(rows: Iterable[Row], *names: str) -> list[tuple[Any, ...]]:
    """Values of some columns; fractions to nine places, of which binary numbers are sure."""
    return [
        tuple(round(row[name], 9) if isinstance(row[name], float) else row[name] for name in names)
        for row in rows
    ]


def at(minute: float) -> datetime:
    """Minutes from NOW."""
    return NOW + timedelta(minutes=minute)


def window(minute: float, group: str = "g", **values: Any) -> Row:
    """A row of any table by window: the minute that begins so many minutes from NOW, of the topic
    orders.
    """
    start = at(minute)
    return {
        "date": start.date(),
        "cluster": CLUSTER,
        "group": group,
        "topic": "orders",
        "topic_id": "",
        "window_start": start,
        "window_end": start + timedelta(minutes=1),
        "status": "ok",
        "partitions_unknown": 0,
        **values,
    }


def rebalance(minute: float, group: str = "g", **values: Any) -> Row:
    """A rebalance of six seconds that ends so many minutes from NOW."""
    end = at(minute)
    return {
        "date": end.date(),
        "cluster": CLUSTER,
        "group": group,
        "rebalance_id": f"{group}{minute}",
        "started_est": end - timedelta(seconds=6),
        "ended_at": end,
        "rebalance_seconds": 6.0,
        "cause": "member_join",
        "necessity": "planned",
        **values,
    }


def finding(minute: float, code: str, group: str | None = "g", **values: Any) -> Row:
    """A finding that opens so many minutes from NOW."""
    moment = at(minute)
    return {
        "date": moment.date(),
        "cluster": CLUSTER,
        "group": group,
        "finding_id": f"{group} {code} {minute}",
        "seq": 0,
        "at": moment,
        "event": "opened",
        "code": code,
        "severity": "warn",
        "role": "primary",
        "started_at": at(minute - 3),
        "opened_at": moment,
        "confidence": 0.9,
        **values,
    }
