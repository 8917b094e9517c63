"""The blocks of docs/read-elsewhere.md run as they stand there, and the notebook runs without a
browser.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from laggard.stream.job.session import start_session
from questions.kit import rebalance, window, write_tables
from questions.view_rows import tables
from tables.fixtures import group_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "read-elsewhere.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^## (\w[\w-]*).*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
EXPECTED = {
    "delta-rs": [
        {"group": "g", "lag": 100, "lag_known": 100},
        {"group": "h", "lag": None, "lag_known": 40},
    ],
    "DuckDB": [("g", "orders", 9, 1), ("h", "orders", 4, 0)],
    "polars": [
        {
            "group": "g",
            "cause": "member_join",
            "rebalances": 2,
            "delayed": 70,
            "delayed_unknown": 1,
        },
        {"group": "h", "cause": "unknown", "rebalances": 1, "delayed": 0, "delayed_unknown": 1},
    ],
    "Spark": [{"group": "g", "max(lag)": 9}, {"group": "h", "max(lag)": 4}],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two groups; of one a lag is not known."""
    folder: Path = tmp_path_factory.mktemp("tables")
    write_tables(
        folder,
        {
            "group_status": [group_row("g"), group_row("h", lag=None, lag_known=40)],
            "group_windows": [window(-3, lag=9), window(-2, lag=None), window(-2, "h", lag=4)],
            "rebalances": [
                rebalance(-3, records_delayed=70),
                rebalance(-2, records_delayed=None),
                rebalance(-2, "h", cause="unknown"),
            ],
        },
    )
    return folder


def answer(name: str, root: Path, **given: Any) -> Any:
    found: dict[str, Any] = {"tables": str(root), **given}
    # the page's own text
    exec(compile(BLOCKS[name], "docs/read-elsewhere.md", "exec"), found)  # noqa: S102
    return found["answer"]


def test_the_page_has_a_block_for_each_reader() -> None:
    assert list(BLOCKS) == list(EXPECTED)


@pytest.mark.parametrize("name", ["delta-rs", "DuckDB", "polars"])
def test_a_block_answers_as_by_hand(root: Path, name: str) -> None:
    assert answer(name, root) == EXPECTED[name]


@pytest.mark.full
@pytest.mark.spark
def test_the_block_for_spark_answers_as_by_hand(root: Path) -> None:
    spark = start_session("local[2]", {})
    try:
        assert answer("Spark", root, spark=spark) == EXPECTED["Spark"]
    finally:
        spark.stop()


RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from lag import app
_, found = app.run()
print(sorted(found.keys() & {"worst", "lag_hourly", "cost", "gaps"}), len(found.get("worst", ())))
if "chart" in found:
    chart = found["chart"]
    own = {(row["cluster"], row["group"]) for row in found["lag_hourly"]}
    print(*found["group"].options, sorted(own), sep="; ")
    print(len(found["lag_hourly"]), chart.count("<polyline"), chart.count('class="partial"'))
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("is_set", "said"),
    [
        (
            True,
            (
                "['cost', 'gaps', 'lag_hourly', 'worst'] 6\n"
                "prod: g; prod: j; prod: k; prod: h; test: g; prod: i; [('prod', 'g')]\n3 0 1"
            ),
        ),
        (False, "[] 0"),
    ],
    ids=["tables", "no tables"],
)
def test_the_notebook_runs_without_a_browser(tmp_path: Path, is_set: bool, said: str) -> None:
    write_tables(tmp_path / "tables", tables())  # two clusters have a group of one name
    shutil.copy(ROOT / "docs" / "notebooks" / "lag.py", tmp_path)  # marimo writes beside it
    env = os.environ | {
        "PYTHONPATH": str(ROOT / "lib"),
        "LAGGARD_TABLES": str(tmp_path / "tables") if is_set else "",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr
