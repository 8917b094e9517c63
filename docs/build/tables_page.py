"""Write docs/tables.md and docs/views.md: `make docs`.

The sources are the declarations of the tables and conf/sql/views.sql.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from laggard.cli.query.views import View, read_views
from laggard.config import Config
from laggard.tables.maintenance import Retention
from laggard.tables.schema.columns import Column, Table
from laggard.tables.schema.schemas import TABLES

PAGE = Path(__file__).parents[1] / "tables.md"
VIEWS_PAGE = PAGE.with_name("views.md")
_INTRODUCTION = """# Tables

This page lists all columns. `make docs` writes it from `lib/laggard/tables`; the tables have the
same texts as Delta comments. Timestamps are in UTC, durations in seconds. An unknown value is null,
never 0: "when null" says when that is, and a dash means never. A column that `[cluster] source =
"admin"` cannot fill is null too ([which](admin-source.md)). All columns exist since 0.1.0. A column
that is added later is null in rows that an older job wrote.

- A tick is complete once its row in `batches` exists. `laggard query` reads the versions that the
  newest such row names. Other engines may see half of a tick: let them read only up to the
  `batch_id` of the newest row of `batches` with kind `tick` or `backfill`.
- The diagnosis writes its tables after the tick ({later}), so no row of `batches` names their
  versions.
- `partition_status` and `group_status` are overwritten each tick: read one version of them. All
  others are appended to, and partitioned by `date`: with a condition on `date`, besides the one on
  the time, an engine reads fewer files.
- Time without observation has no rows. Rows of `batches` with kind `gap` say when, and so does the
  view `gaps`.
- Columns whose meaning begins with "state:" are the job's own memory and may change in any release.

To read them: [fifteen questions](questions.md), [eleven views](views.md), [other
engines](read-elsewhere.md).
"""

_VIEWS_INTRODUCTION = """# Views

There are eleven views; each is one statement of `conf/sql/views.sql`. In `laggard query` they exist
already: `laggard query "select * from worst_groups"`. Other engines create them from that file,
over tables of the same names:

- DataFusion and DuckDB run the file unchanged, in a session whose time zone is UTC.
- Spark needs `create temporary view` instead of `create view`, and the settings
  `spark.sql.ansi.enabled` and `spark.sql.ansi.doubleQuotedIdentifiers`.

A test compares the answers of these three with rows worked out by hand; Trino is untested. Time
without observation has no rows, so no view counts it as zero. Sums leave out unknown values, and a
column next to them counts those.

Views over windows and events read all rows unless you give a condition on `date`. Written by `make
docs`.

## At size

Measured with `laggard query "select * from …" -o answer.parquet`, the start of the command
included. The tables have 1,440,000 rows of `lag_windows` (50 groups, 1,000 partitions, a day of
one-minute windows), 72,000 of `group_windows` and of `group_history`, 101,000 of `rebalances`,
103,000 of `findings` and 10,100 of `deploys`. The machine had two cores and other work (load 8), so
compare CPU seconds. Repeat it with `PYTHONPATH=lib .venv/bin/python bench/views.py`.

| view | rows | seconds | CPU seconds | peak MB | one group and day: seconds | CPU seconds |
|---|--:|--:|--:|--:|--:|--:|
| `lag_hourly` | 1,200 | 4.6 | 1.2 | 226 | 3.4 | 1.0 |
| `state_seconds` | 50 | 3.1 | 0.7 | 206 | 3.0 | 0.8 |
| `worst_groups` | 50 | 4.0 | 1.2 | 236 | 5.2 | 1.2 |
| `slo_daily` | 50 | 3.5 | 1.0 | 206 | 2.3 | 0.8 |
| `rebalance_cost` | 15,150 | 3.6 | 1.0 | 225 | 2.2 | 0.7 |
| `deploy_impact` | 10,100 | 4.6 | 2.0 | 234 | 2.1 | 0.8 |
| `ownership_at` | 1,000 | 9.1 | 2.5 | 581 | 2.4 | 0.7 |
| `data_loss_risk` | 50 | 2.4 | 0.8 | 227 | 2.2 | 0.7 |
| `idle_capacity` | 50 | 1.9 | 0.7 | 220 | 2.1 | 0.7 |
| `commit_hygiene` | 50 | 2.6 | 0.7 | 206 | 2.4 | 0.7 |
| `gaps` | 0 | 2.2 | 0.6 | 192 | 1.9 | 0.6 |

The start of the command takes more than half a CPU second of each. `ownership_at` sorts all rows of
`lag_windows`; the others read only the columns that they need.
"""

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
    overview = [
        "| table | holds | written |",
        "|---|---|---|",
        *map(_overview, TABLES.values()),
        "",
    ]
    later = ", ".join(f"`{table.name}`" for table in TABLES.values() if table.is_of_diagnosis)
    sections = (line for table in TABLES.values() for line in _section(table))
    return "\n".join([_INTRODUCTION.format(later=later), *overview, *sections]) + "\n"


def _overview(table: Table) -> str:
    written = "overwritten each tick" if table.overwritten else "appended"
    return f"| [{table.name}](#{table.name}) | {table.comment} | {written} |"


def _section(table: Table) -> Iterator[str]:
    yield from (f"## {table.name}", "", table.comment, "")
    yield f"Key: {', '.join(f'`{name}`' for name in table.key)}. {_kept(table)}"
    yield from ("", "| column | type | unit | meaning | when null |", "|---|---|---|---|---|")
    for column in table.columns:
        cells = (
            f"`{column.name}`",
            _type(column),
            unit(column),
            column.comment,
            column.null or "–",
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _type(column: Column) -> str:
    # the job's own nested state fills a screen; its fields are nobody's interface
    return f"`{column.type}`" if len(column.type) < 100 else f"`{column.type.partition('<')[0]}<…>`"


def _kept(table: Table) -> str:
    if table.overwritten:
        return "Overwritten each tick."
    days = Retention.from_config(Config()).days(table.name)
    return (
        f"Appended, partitioned by the date of `{table.time_column}`, kept for {days} days "
        "(`[retention]`)."
    )


def views_page() -> str:
    """Return the page of views: what a row is, and every column."""
    return "\n".join(
        [_VIEWS_INTRODUCTION, *(line for view in read_views().values() for line in _view(view))]
    )


def _view(view: View) -> Iterator[str]:
    yield from (f"## {view.name}", "", view.title, "", "| column | meaning |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in view.columns)
    yield ""


def main() -> None:
    """Write the pages."""
    VIEWS_PAGE.write_text(views_page(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
