"""The page on `cluster.source = "admin"` names the columns that the code declares as unknown."""

import re

from laggard.tables.schema import schemas
from laggard.tables.schema.admin_source import EMPTY, UNKNOWN
from reference_pages import DOCS

PAGE = (DOCS / "admin-source.md").read_text(encoding="utf-8")


def test_the_table_of_null_columns_is_what_is_declared() -> None:
    rows = [
        line.strip("| ").split(" | ")
        for line in PAGE.partition("<!-- null columns -->")[2].splitlines()[3:]
    ]
    named = {
        tuple(re.findall(r"`([\w.]+)`", row[0])): re.findall(r"`([\w.]+)`", row[1])
        for row in rows
        if len(row) == 2
    }
    assert named == {(name,): sorted(columns) for name, columns in UNKNOWN.items()} | {EMPTY: []}


def test_every_table_and_column_exists() -> None:
    assert set(EMPTY) <= schemas.TABLES.keys()
    for name, columns in UNKNOWN.items():
        assert {column.partition(".")[0] for column in columns} <= set(schemas.TABLES[name].names)


def test_columns_of_rewinds_say_that_polls_see_only_some_of_them() -> None:
    columns = [column for table in schemas.TABLES.values() for column in table.columns]
    counted = [each for each in columns if "rewound_records" in each.name + each.type]
    assert len(counted) == 3
    assert [each.name for each in counted if "lower bound" not in each.comment] == []
