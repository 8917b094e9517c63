"""Write docs/tables.md and docs/views.md: `make docs`.

The sources are the declarations of the tables and conf/sql/views.sql.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from laggard.cli.verbs.query.views import View, read_views
from laggard.config import Config
from laggard.tables.schema.columns import BATCH_ID, CLUSTER, DATE, Column, Table
from laggard.tables.schema.schemas import TABLES
from laggard.tables.upkeep.maintenance import Retention

PAGE = Path(__file__).parents[1] / "tables.md"
VIEWS_PAGE = PAGE.with_name("views.md")
_INTRODUCTION = """# Tables

All columns of all tables, written by `make docs` from `lib/laggard/tables`. Each table has the same
texts as Delta comments; `laggard query "describe lag_windows"` lists the types. A column is
described once, in the first table that has it: later tables only name it.

All tables have `cluster`, its name in the configuration, and `batch_id`, the batch that wrote the
row. `date` is the UTC date of the time column, by which a table is partitioned.

Timestamps are in UTC. Names end in their unit: `_seconds`, `_ms`, `_bytes`, `_records`, `_rate`
(records/s), `_ratio`; lag, `produced` and `consumed` count records; another unit stands in
brackets. An unknown value is null, never 0; "null:" says when that is. `[cluster] source = "admin"`
leaves [more columns](admin-source.md) null, and rows of an older job have null in newer columns.

- A tick is complete once its row in `batches` exists. `laggard query` reads the versions that the
  newest such row names. Other engines may see half of a tick: let them read only up to the
  `batch_id` of the newest row of `batches` with kind `tick` or `backfill`.
- The diagnosis writes its tables after the tick ({later}), so no row of `batches` names their
  versions.
- `partition_status` and `group_status` are overwritten each tick: read one version of them. All
  others are appended to, partitioned by `date`, and kept for the days of `[retention]`. With a
  condition on `date`, besides the one on the time, an engine reads fewer files.
- Time without observation has no rows. Rows of `batches` with kind `gap` say when, and so does the
  view `gaps`.
- State of the job is its own memory and may change in any release: the comments of these columns
  begin with "state:".

To read them: [questions](questions.md), [views](views.md), [other engines](read-elsewhere.md).
"""

_VIEWS_INTRODUCTION = """# Views

There are eleven views; each is one statement of `conf/sql/views.sql`, whose head explains the
columns. In `laggard query` they exist already: `laggard query "select * from worst_groups"`. Other
engines create them from that file, over tables of the same names. DataFusion and DuckDB run it
unchanged, in a session whose time zone is UTC. Spark needs `create temporary view`, and
`spark.sql.ansi.enabled` and `spark.sql.ansi.doubleQuotedIdentifiers`. A test compares the answers
of these three with rows worked out by hand; Trino is untested.

Time without observation has no rows, so no view counts it as zero. Sums leave out unknown values,
and a column next to them counts those. Views over windows and events read all rows unless you give
a condition on `date`. Written by `make docs`.

With 50 groups, 1,000 partitions and a day of one-minute windows (1,440,000 rows of `lag_windows`)
on two busy cores, each view takes 1.9 to 4.6 seconds, of which 0.6 to 2.0 are CPU, and 192 to
236 MB at its peak. `ownership_at` sorts all rows of `lag_windows`: 9.1 seconds, 2.5 of them CPU,
and 581 MB. One group and day takes 1.9 to 5.2 seconds, 0.6 to 1.2 of them CPU. The start of the
command is included: more than half a CPU second. Repeat it with
`PYTHONPATH=lib .venv/bin/python bench/views.py`.
"""

_STATE = "state:"
COMMON = (CLUSTER, BATCH_ID, DATE)  # described in the introduction
# the introduction says it for all columns
_OLDER = re.compile(r"(, or )?a row (of an older job|that an older job wrote)$")
# these names say their unit
_NAMED = re.compile(
    r"lag|^(produced|consumed)$|(_seconds|_ms|_bytes|_ratio|_records|_rate|minutes)(_total)?$"
)
_OFFSETS = re.compile(r"(^|_)offset$|^rewound_from$|^source_(from|to|high_watermark)$")
# first match wins: the pattern is searched for in the column's name
_UNITS = (
    (re.compile(r"record_seconds$"), "record-seconds"),
    (re.compile(r"partition_seconds$"), "partition-seconds"),
    (re.compile(r"gap_squares_total$"), "ms²"),
    (re.compile(r"_gap_ms_total$|_ms$"), "ms"),
    (re.compile(r"minutes$"), "min"),
    (re.compile(r"_bytes$"), "bytes"),
    (re.compile(r"seconds(_total)?$|^(rebalance_duration|rebalance_pause)_sum$"), "s"),
    (re.compile(r"(^|_)rate(_before|_after)?$|^slope(_low|_high)?$|^capacity$"), "records/s"),
    (
        re.compile(
            r"_ratio$|_share$|^(assignment_imbalance|cause_posterior|gini|rho|entropy|churn"
            r"|confidence|efficiency|ping_pong|trend_p|slope_iqr)$"
        ),
        "ratio",
    ),
    (
        re.compile(
            r"records(_|$)|^(lag|produced|consumed|decoded|tombstones|unknown|dead"
            r"|dead_letters_total|replay_bound|peak_lag)$"
            r"|^(window_)?lag_|_lag_(min|max|envelope)$"
        ),
        "records",
    ),
)


def unit(column: Column) -> str:
    """Return the unit of a column's numbers; a dash for counts, names and times."""
    kind = re.sub(r"^map<\w+,(\w+)>$", r"\1", column.type)
    if kind not in ("int", "bigint", "double"):
        return "UTC" if kind == "timestamp" else "–"
    if _OFFSETS.search(column.name):
        return "offset"
    return next((name for pattern, name in _UNITS if pattern.search(column.name)), "–")


def page() -> str:
    """Return the page: every table with its key, how it is kept, and its columns."""
    later = ", ".join(f"`{table.name}`" for table in TABLES.values() if table.is_of_diagnosis)
    lines = [_INTRODUCTION.format(later=later)]
    described: dict[Column, str] = {}
    for table in TABLES.values():
        lines += _section(table, described)
        for column in table.columns:
            described.setdefault(column, table.name)
    return "\n".join(lines) + "\n"


def _section(table: Table, described: Mapping[Column, str]) -> Iterator[str]:
    """Yield a table; a column that an earlier table declares alike is only named."""
    yield from (f"## {table.name}", "", table.comment, "")
    yield f"Key: {', '.join(f'`{name}`' for name in table.key)}. {_kept(table)}"
    for earlier in dict.fromkeys(described.values()):
        alike = [
            column
            for column in table.columns
            if described.get(column) == earlier and column not in COMMON
        ]
        if alike:
            yield from ("", f"As in [{earlier}](#{earlier}): {_names(alike)}.")
    new = [column for column in table.columns if column not in {*described, *COMMON}]
    own = [column for column in new if not column.comment.startswith(_STATE)]
    if own:
        yield from ("", *map(_line, own))
    state = [column for column in new if column not in own]
    if state:
        yield from ("", f"{len(state)} more columns are state of the job.")
    yield ""


def _line(column: Column) -> str:
    meaning, name = column.comment, unit(column)
    if name not in ("–", "UTC", "offset") and not _NAMED.search(column.name):
        meaning += f" ({name})"
    null = _OLDER.sub("", column.null)
    if null:
        meaning += f"; null: {null}"
    return f"- `{column.name}`: {meaning}"


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(f"`{column.name}`" for column in columns)


def _kept(table: Table) -> str:
    if table.overwritten:
        return "Overwritten each tick."
    days = Retention.of(Config().retention).days(table.name)
    return f"Appended by the date of `{table.time_column}`, kept for {days} days."


def views_page() -> str:
    """Return the page of views: what a row is, and the names of the columns."""
    views = read_views().values()
    return "\n".join([_VIEWS_INTRODUCTION, *(line for view in views for line in _view(view))])


def _view(view: View) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name, _ in view.columns)
    yield from (f"## {view.name}", "", view.title, "", f"Columns: {names}.", "")


def main() -> None:
    """Write the pages."""
    VIEWS_PAGE.write_text(views_page(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
