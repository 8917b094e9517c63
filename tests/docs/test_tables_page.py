"""The page of tables says what is declared, and Delta's own comments say the same."""

from __future__ import annotations

import re
from pathlib import Path

from deltalake import DeltaTable

from laggard.tables.schema.schemas import TABLES
from tables.fixtures import make_root
from tables_page import PAGE, VIEWS_PAGE, page, unit, views_page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_of_tables_is_what_is_declared() -> None:
    """If not: make docs."""
    assert page() == TEXT


def test_the_page_of_views_is_what_the_file_says() -> None:
    """If not: make docs."""
    assert views_page() == VIEWS_PAGE.read_text(encoding="utf-8")


def test_every_column_stands_under_its_table() -> None:
    sections = dict(
        zip(*[iter(re.split(r"^## (\w+)$", TEXT, flags=re.MULTILINE)[1:])] * 2, strict=True)
    )
    listed = {
        name: tuple(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        for name, text in sections.items()
    }
    assert listed == {name: table.names for name, table in TABLES.items()}


def test_numbers_carry_their_unit() -> None:
    columns = {column.name: column for table in TABLES.values() for column in table.columns}
    names = (
        "lag", "lag_seconds", "lag_record_seconds", "log_end_offset", "arrival_rate", "slope",
        "session_timeout_ms",
        "gini", "retention_bytes", "stage_seconds_total", "polled_at", "members", "topic",
        "paused_partition_seconds",
    )  # fmt: skip
    assert [unit(columns[name]) for name in names] == [
        "records", "s", "record-seconds", "offset", "records/s", "records/s", "ms",
        "ratio", "bytes", "s", "UTC", "–", "–", "partition-seconds",
    ]  # fmt: skip


def test_delta_carries_the_same_texts(tmp_path: Path) -> None:
    make_root(tmp_path)
    for name, table in TABLES.items():
        delta = DeltaTable(str(tmp_path / name))
        assert delta.metadata().description == table.comment
        written = {field.name: field.metadata["comment"] for field in delta.schema().fields}
        assert written == {
            column.name: f"{column.comment}; null: {column.null}" if column.null else column.comment
            for column in table.columns
        }
