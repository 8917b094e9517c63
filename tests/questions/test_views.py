"""Each view gives the rows that were worked out by hand, in DataFusion, DuckDB and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from laggard.cli.verbs.query.verb import run_query
from laggard.cli.verbs.query.views import named_views, read_views
from laggard.stream.job.session import start_session
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import TABLES
from questions.kit import Row, write_tables
from questions.view_rows import EXPECTED, GAP, tables
from tables.fixtures import batch_row

if TYPE_CHECKING:
    import duckdb

Ask = Callable[[str], list[Row]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows of every table, and a gap."""
    folder: Path = tmp_path_factory.mktemp("tables")
    write_tables(folder, tables())
    gap = to_arrow(TABLES["batches"], [batch_row(1, {}, **GAP)])
    Writer(str(folder), "test").write(TABLES["batches"], gap, 2)
    return folder


def comparable(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Rows sorted, each with its columns by name; numbers to nine places, as each engine has other
    types.
    """
    return sorted(
        (tuple(sorted((name, _plain(value)) for name, value in row.items())) for row in rows),
        key=repr,
    )


def _plain(value: Any) -> Any:
    try:
        return round(float(value), 9) if not isinstance(value, (str, bool)) else value
    except (TypeError, ValueError):
        return str(value.astimezone()) if hasattr(value, "astimezone") else value


def _all_of(view: str) -> str:
    return f"select * from {view}"  # noqa: S608 - a name of the file under test


def check(name: str, ask: Ask) -> None:
    found = ask(name)
    assert comparable(found) == comparable(EXPECTED[name])
    assert list(found[0]) == [column for column, _ in read_views()[name].columns]


@pytest.mark.parametrize("name", EXPECTED)
def test_datafusion_answers_as_by_hand(root: Path, name: str) -> None:
    check(name, lambda view: list(run_query(str(root), _all_of(view)).to_pylist()))


@pytest.fixture(scope="module")
def duck(root: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb  # held by no module: at its end a worker would list all of it as leaked

    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        for table in TABLES:
            connection.register(table, DeltaTable(str(root / table)).to_pyarrow_dataset())
        for view in read_views().values():
            connection.execute(view.sql)
        yield connection


@pytest.mark.parametrize("name", EXPECTED)
def test_duckdb_answers_as_by_hand(duck: duckdb.DuckDBPyConnection, name: str) -> None:
    check(name, lambda view: list(duck.sql(_all_of(view)).to_arrow_table().to_pylist()))


@pytest.mark.full
@pytest.mark.spark
def test_spark_answers_as_by_hand(root: Path) -> None:
    quoted = {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"}
    spark = start_session("local[2]", quoted)
    try:
        for table in TABLES:
            spark.read.format("delta").load(str(root / table)).createOrReplaceTempView(table)
        for view in read_views().values():
            spark.sql(view.sql.replace("create view", "create temporary view", 1))
        for name in EXPECTED:
            check(name, lambda view: list(spark.table(view).toArrow().to_pylist()))
    finally:
        spark.stop()


def test_every_view_is_compared() -> None:
    assert list(EXPECTED) == list(read_views())
    assert len(EXPECTED) == 11


def test_a_query_makes_only_the_views_that_it_names() -> None:
    assert [view.name for view in named_views("select * from slo_daily s join gaps on true")] == [
        "slo_daily",
        "gaps",
    ]
