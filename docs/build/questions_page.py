"""Write docs/questions.md from the files of conf/sql and the example tables of tests/questions: `make docs`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "questions.md"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lib")]

from laggard.cli.query import run_question  # noqa: E402 - the path first
from laggard.cli.query_output import write_table  # noqa: E402
from laggard.cli.questions import REQUIRED, Question, read_questions  # noqa: E402
from questions.examples import GROUP, tables  # noqa: E402
from questions.kit import write_tables  # noqa: E402

_INTRODUCTION = """# Questions

Fifteen questions are shipped as SQL, in `conf/sql`: `laggard query --list` names them, `laggard query --name Q7`
answers one. `--from`, `--to` (UTC) and `--param name=value` set its parameters; a range that is not said ends with
the newest tick. In an answer null is unknown, never 0; a sum leaves out what is not known, and a column beside it
counts that.

`laggard query` takes SQL of yours too: `show tables` lists tables and [views](views.md), `describe lag_windows` its
columns. `:name` in it is filled by `--param name=value`, `:from` and `:to` by the range; of a range that is given,
tables of history have only the rows in it. `-o rows.parquet` (or `.csv`, `.json`) saves the exact rows, where the table
on a terminal rounds; `-o -` writes them to standard output for a pipe, as CSV or by `--format`. It also says
which times in the range nobody watched, and if it has no rows why: no such group, before or after what is kept,
or no row that meets the conditions.

The files are plain SQL, their parameters as `:name`. With literals in their place, DataFusion (`laggard query`) and
DuckDB run them as they are, in a session whose time zone is UTC. Spark needs `spark.sql.ansi.enabled`,
`spark.sql.ansi.doubleQuotedIdentifiers`, and `unix_timestamp(x)` in place of `extract(epoch from x)`.

The examples are of one group, `payments`: too slow for its load, deployed, then given a third consumer.
Written by `make docs` from `conf/sql`.
"""


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as root:
        PAGE.write_text(render(Path(root)), encoding="utf-8")


def render(root: Path) -> str:
    """The page; `root` is an empty folder for the tables of the examples."""
    write_tables(root, tables())
    return "\n".join([_INTRODUCTION, *(section(root, each) for each in read_questions().values())])


def section(root: Path, question: Question) -> str:
    """One question: tables, parameters, columns, an example."""
    given = {each.name: GROUP for each in question.parameters if each.default == REQUIRED}
    given |= {"topic": "orders", "partition": "0"} if question.name == "Q15" else {}
    out = io.StringIO()
    write_table(run_question(str(root), question.name, given), out)
    words = "".join(f" --param {name}={value}" for name, value in given.items())
    parameters = [f"| `{each.name}` | {each.type} | {each.default} | {each.comment} |" for each in question.parameters]
    columns = [f"| `{name}` | {meaning} |" for name, meaning in question.columns]
    lines = [
        f"## {question.name}. {question.title}", "",
        "Tables: " + ", ".join(f"`{name}`" for name in question.tables) + ".", "",
        "| parameter | type | default | meaning |", "|---|---|---|---|", *parameters, "",
        "| column | meaning |", "|---|---|", *columns, "",
        "```console", f"$ laggard query --name {question.name}{words}", out.getvalue().rstrip(), "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
