"""The page on `cluster.source = "admin"` names the columns that the code declares as unknown."""

import re

from laggard.tables.schema import schemas
from laggard.tables.schema.admin_source import EMPTY, UNKNOWN
from reference_pages import DOCS

PAGE = (DOCS / "admin-source.md").read_text(encoding="utf-8")


def test_the_list_of_null_columns_is_what_is_declared() -> None:
    text = (DOCS / "admin-source.csv").read_text(encoding="utf-8")
    rows = [f"{name},{column}" for name, columns in UNKNOWN.items() for column in sorted(columns)]
    assert text.splitlines() == ["table,column", *rows]


def test_the_page_names_the_tables_without_rows() -> None:
    (names,) = re.findall(r"Without rows are (.*)\.$", PAGE, re.MULTILINE)
    assert tuple(re.findall(r"`(\w+)`", names)) == EMPTY


def test_every_table_and_column_exists() -> None:
    assert set(EMPTY) <= schemas.TABLES.keys()
    for name, columns in UNKNOWN.items():
        assert {column.partition(".")[0] for column in columns} <= set(schemas.TABLES[name].names)


def test_columns_of_rewinds_say_that_polls_see_only_some_of_them() -> None:
    columns = [column for table in schemas.TABLES.values() for column in table.columns]
    counted = [each for each in columns if "rewound_records" in each.name + each.type]
    assert len(counted) == 3
    assert [each.name for each in counted if "lower bound" not in each.comment] == []
