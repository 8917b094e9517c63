"""What the README promises is there: its commands, its queries, its length."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from laggard.cli.main import VERBS
from laggard.cli.query import run_query
from laggard.tables.delta import create_tables
from laggard.tables.schemas import TABLES
from tables.fixtures import batch_row, write_rows

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUERIES = [
    query
    for block in re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    for query in block.split("\n\n")
    if query.strip()
]


def test_it_is_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


def test_every_make_target_it_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", README))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_verb_it_names_exists() -> None:
    named = set(re.findall(r"^    laggard ([a-z]+)", README, re.MULTILINE))
    assert {"run", "export", "doctor"} <= named <= set(VERBS)


def test_every_table_is_listed() -> None:
    assert [name for name in TABLES if f"`{name}`" not in README] == []


@pytest.mark.parametrize("query", QUERIES)
def test_its_queries_answer_on_real_tables(tmp_path: Path, query: str) -> None:
    create_tables(str(tmp_path))
    at = datetime.now(timezone.utc) - timedelta(minutes=5)
    key = {"date": at.date(), "cluster": "c", "group": "checkout", "batch_id": 1, "status": "ok"}
    member = {"generation": 2, "member_id": "m", "assigned": [{"topic": "orders", "partition": 0}]}
    versions = {
        "lag_windows": write_rows(
            tmp_path,
            "lag_windows",
            [
                {
                    **key,
                    "topic": "orders",
                    "topic_id": "",
                    "partition": 0,
                    "window_start": at,
                    "lag_max": 7,
                    "time_lag_seconds": 3.0,
                }
            ],
        ),
        "generations": write_rows(
            tmp_path, "generations", [{**key, "kind": "sync", "generation": 2, "sync_seconds": 0.5}]
        ),
        "group_members": write_rows(tmp_path, "group_members", [{**key, **member}]),
    }
    write_rows(tmp_path, "batches", [batch_row(1, versions, at)])
    assert run_query(str(tmp_path), query).num_rows == 1


def test_it_has_three_queries() -> None:
    assert len(QUERIES) == 3
