"""The page of tables says what is declared, and Delta's own comments say the same."""

from __future__ import annotations

import re
from pathlib import Path

from deltalake import DeltaTable

from laggard.tables.schema.schemas import TABLES
from tables.fixtures import make_root
from tables_page import COMMON, PAGE, VIEWS_PAGE, page, unit, views_page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_of_tables_is_what_is_declared() -> None:
    """If not: make docs."""
    assert page() == TEXT


def test_the_page_of_views_is_what_the_file_says() -> None:
    """If not: make docs."""
    assert views_page() == VIEWS_PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    parts = re.split(r"^## (\w+)$", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def described(section: str) -> list[str]:
    return re.findall(r"^- `(\w+)`: ", section, re.MULTILINE)


def named(section: str) -> list[tuple[str, str]]:
    """Columns that a section only names, with what the line begins with."""
    lines = re.findall(r"^(As in \[\w+\]).*?: (.*)\.$", section, re.MULTILINE)
    return [(start, name) for start, names in lines for name in re.findall(r"`(\w+)`", names)]


def test_every_column_stands_under_its_table_once() -> None:
    listed = {
        name: sorted([*described(text), *(column for _, column in named(text))])
        for name, text in sections().items()
    }
    assert listed == {
        name: sorted(
            column.name
            for column in table.columns
            if column not in COMMON and not column.comment.startswith("state:")
        )
        for name, table in TABLES.items()
    }
    for name, table in TABLES.items():
        state = sum(column.comment.startswith("state:") for column in table.columns)
        assert (f"\n{state} more columns are state of the job.\n" in sections()[name]) is bool(
            state
        )
    assert all(f"`{column.name}`" in TEXT.partition("\n## ")[0] for column in COMMON)


def test_a_column_that_is_only_named_is_described_where_the_line_leads() -> None:
    columns = {
        name: {column.name: column for column in table.columns} for name, table in TABLES.items()
    }
    for name, text in sections().items():
        for start, column in named(text):
            earlier = start.removeprefix("As in [").removesuffix("]")
            assert columns[earlier][column] == columns[name][column]
            assert column in described(sections()[earlier])


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
