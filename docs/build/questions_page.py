"""Write docs/questions.md from conf/sql and the example tables of tests/questions: `make docs`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "questions.md"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lib")]

from laggard.cli.verbs.query.output import write_table  # noqa: E402
from laggard.cli.verbs.query.questions import REQUIRED, Question, read_questions  # noqa: E402
from laggard.cli.verbs.query.verb import run_question  # noqa: E402 - the path first
from questions.examples import GROUP, tables  # noqa: E402
from questions.kit import write_tables  # noqa: E402

_INTRODUCTION = """# Questions

Fifteen questions are included as SQL files in `conf/sql`; the head of each file explains its
parameters and columns. `laggard query --list` lists them, and `laggard query --name Q7` answers
one. `--from`, `--to` (UTC) and `--param name=value` set its parameters; without `--to` the range
ends with the newest tick. In an answer null means unknown and is never 0. A sum leaves out unknown
values, and a column next to it counts them.

`laggard query` also runs your own SQL. `show tables` lists tables and [views](views.md), `describe
lag_windows` lists the columns of a table. `--param name=value` sets `:name` in the SQL, and the
range sets `:from` and `:to`. If you give a range, the tables of history have only its rows.

- `-o rows.parquet` (or `.csv`, `.json`) saves the exact rows; the table on a terminal is rounded.
  `-o -` writes the rows to standard output for a pipe, as CSV or in the format of `--format`.
- The command says which times of the range were not observed.
- If there are no rows, it says why: there is no such group, the range is before or after what is
  kept, or no row meets the conditions.

The files are plain SQL with parameters written as `:name`. With values in their place, DataFusion
(`laggard query`) and DuckDB run them unchanged, in a session whose time zone is UTC. Spark needs
`spark.sql.ansi.enabled`, `spark.sql.ansi.doubleQuotedIdentifiers`, and `unix_timestamp(x)` instead
of `extract(epoch from x)`.

All examples are about one group, `payments`. It is too slow for its load, is deployed, and then
gets a third consumer. An example shows at most two rows.
Defaults of parameters are in brackets; that of `from` is the time before `:to`, that of `to` is
now. Written by `make docs`.
"""
_ROWS = 2


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as root:
        PAGE.write_text(render(Path(root)), encoding="utf-8")


def render(root: Path) -> str:
    """Return the page; `root` is an empty folder for the tables of the examples."""
    write_tables(root, tables())
    return "\n".join([_INTRODUCTION, *(section(root, each) for each in read_questions().values())])


def section(root: Path, question: Question) -> str:
    """Return one question: its parameters and an example."""
    given = {each.name: GROUP for each in question.parameters if each.default == REQUIRED}
    given |= {"topic": "orders", "partition": "0"} if question.name == "Q15" else {}
    out = io.StringIO()
    write_table(run_question(str(root), question.name, given), out)
    words = "".join(f" --param {name}={value}" for name, value in given.items())
    parameters = ", ".join(
        f"`{each.name}` ({each.default.removesuffix(' before :to')})"
        for each in question.parameters
        if each.name != "to"
    )
    answer = out.getvalue().rstrip().splitlines()
    lines = [
        f"## {question.name}. {question.title}",
        "",
        f"Parameters: {parameters}.",
        "",
        "```console",
        f"$ laggard query --name {question.name}{words}",
        *answer[: 1 + _ROWS],
        "```",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
