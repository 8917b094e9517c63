"""What the README promises is there: its commands, its queries, its length."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Timer

import pytest

from e2e.standalone import readme_command, readme_commands
from laggard.cli.parser import VERBS
from laggard.cli.verbs.query.verb import run_query
from laggard.cli.verbs.status import TITLES
from laggard.config import Config
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.verdict.reasons import VERDICTS
from laggard.errors import INTERRUPTED
from laggard.exporter.body.families import SHAPES
from tables.fixtures import batch_row, group_row, make_root, partition_row, write_batch, write_rows

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
# Every command of the README by its beginning: run by a test of this file, word for word,
HERE = (
    ". .venv/bin/activate",
    "laggard config sample",
    "laggard config check",
    "laggard export",
    "curl",
    "laggard status",
    "laggard explain",
    "laggard findings",
    "laggard query",
)
# or by another test, known by a text of it. `make test` fetches the jars and is what runs all of
# them.
CLUSTER = "tests/e2e/test_standalone_cluster.py"
ELSEWHERE = {
    "make demo": ("tests/demo/test_demo.py", '"--seconds",'),
    "make test": ("Makefile", "test: jars lint ##"),
    "make jars": ("Makefile", "test: jars lint ##"),
    "laggard doctor": (CLUSTER, 'readme_command("laggard doctor")'),
    "laggard audit": ("tests/e2e/conftest.py", 'place.audit("--live"'),
    "laggard run": (CLUSTER, "readme_command('laggard run')"),
}
QUERIES = [
    query
    for block in re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    for query in block.split("\n\n")
    if query.strip()
]


def test_it_is_read_in_three_minutes() -> None:
    """At 250 words a minute, links and code left out."""
    assert len(re.sub(r"\]\([^)]*\)", "]", PROSE).split()) <= 800


def test_what_the_demo_prints_has_the_columns_and_codes_of_now() -> None:
    header, *rows = [
        re.split(r" {2,}", line)
        for line in re.findall(r"```text\n(.*?)```", README, re.DOTALL)[0].splitlines()
    ]
    assert tuple(header) == TITLES
    assert {row[3] for row in rows} <= set(VERDICTS)
    assert {row[2] for row in rows} <= {"-", *BY_CODE}
    assert {row[-1] for row in rows} <= set(SHAPES)


def test_it_marks_every_block_with_its_language() -> None:
    """A block without a mark would be text to this file, and nobody would run it."""
    marks = re.findall(r"^```(.*)$", README, re.MULTILINE)
    assert set(marks[::2]) == {"sh", "sql", "promql", "text"}
    assert set(marks[1::2]) == {""}
    assert re.findall(r"^(?: {4}|\t).*", PROSE, re.MULTILINE) == []


def test_every_command_is_run_by_a_test() -> None:
    """One that is new is on neither list; one that is gone is on a list for nothing."""
    assert sorted(map(readme_command, [*HERE, *ELSEWHERE])) == sorted(readme_commands())


@pytest.mark.parametrize("start", ELSEWHERE)
def test_the_test_that_is_said_to_run_it_does(start: str) -> None:
    path, text = ELSEWHERE[start]
    assert text in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("target", "runs"),
    [
        ("demo", "python -m laggard demo --seconds 90"),
        ("jars", "python -m laggard.jars"),
        ("test", "laggard.jars"),
    ],
)
def test_make_runs_what_the_tests_run(target: str, runs: str) -> None:
    command = ["make", "--dry-run", target, "ARGS=--seconds 90"]
    assert (
        runs
        in subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
        ).stdout
    )


def test_every_make_target_it_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", README))
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {"demo", "test"} <= named <= targets


def test_every_verb_it_names_exists() -> None:
    named = set(re.findall(r"\blaggard ([a-z]+)", "\n".join(readme_commands())))
    named |= set(re.findall(r"`laggard ([a-z]+)", PROSE))
    assert {"run", "export", "doctor"} <= named <= set(VERBS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as after `make jars`, with tables that the job published just now."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    moment = datetime.now(timezone.utc)
    partitions = [
        partition_row("checkout", "orders", number, lag=number + 7) for number in range(2)
    ]
    write_batch(
        tmp_path / "data" / "tables",
        at=moment,
        partitions=partitions,
        groups=[group_row("checkout")],
    )
    return tmp_path


def shell(start: str) -> list[str]:
    """A shell that runs a command of the README with the environment active, as its
    reader has it.
    """
    command = readme_command(start)
    active = readme_command(". .venv/bin/activate")
    return ["bash", "-c", command if command == active else f"{active} && {command}"]


def answer(folder: Path, command: list[str]) -> str:
    """What it prints, once it has ended well."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(
    folder: Path, command: list[str], sign: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that goes on by itself, and the first line that shows the sign."""
    process = subprocess.Popen(
        [*command[:-1], command[-1].replace("laggard", "exec laggard")],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    guard = Timer(60, process.kill)  # reading a line has no time limit
    guard.start()
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if sign in line:
                break
        else:
            pytest.fail("".join(lines), pytrace=False)
        yield process, lines[-1]
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def test_the_environment_brings_the_command(folder: Path) -> None:
    command = shell(". .venv/bin/activate")
    assert answer(folder, [*command[:-1], f"{command[-1]} && command -v laggard"]).endswith(
        "bin/laggard\n"
    )


def test_the_sample_it_says_to_write_is_a_right_configuration(folder: Path) -> None:
    assert answer(folder, shell("laggard config sample")) == ""
    assert (folder / "laggard.toml").read_text(encoding="utf-8").startswith("#")
    assert answer(folder, shell("laggard config check")) == "laggard: the configuration is right\n"


def test_the_exporter_answers_where_it_says(folder: Path) -> None:
    """On a port that is free, since the one it says may be taken on this machine."""
    assert Config().exporter.listen in readme_command("curl")
    (folder / "laggard.toml").write_text('[exporter]\nlisten = "127.0.0.1:0"\n', encoding="utf-8")
    with running(folder, shell("laggard export"), "http://") as (_, line):
        listen = re.findall(r"http://([^/\s]+)", line)[0]
        command = shell("curl")
        metrics = answer(
            folder, [*command[:-1], command[-1].replace(Config().exporter.listen, listen)]
        )
    assert "\nlaggard_ready" in metrics


def test_the_status_is_shown_until_it_is_interrupted(folder: Path) -> None:
    with running(folder, shell("laggard status"), "checkout") as (process, line):
        assert "Stable" in line
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == INTERRUPTED


def test_the_group_is_explained(folder: Path) -> None:
    assert answer(folder, shell("laggard explain")).startswith("checkout: ")


def test_the_findings_are_listed(folder: Path) -> None:
    assert answer(folder, shell("laggard findings")).startswith("the rules have not evaluated yet")


def test_the_query_is_answered(folder: Path) -> None:
    assert answer(folder, shell("laggard query")).split()[-2:] == ["orders", "8"]


@pytest.mark.parametrize("query", QUERIES)
def test_its_queries_answer_on_real_tables(tmp_path: Path, query: str) -> None:
    make_root(tmp_path)
    at = datetime.now(timezone.utc) - timedelta(minutes=5)
    key = {"date": at.date(), "cluster": "c", "group": "checkout", "batch_id": 1, "status": "ok"}
    member = {"generation": 2, "member_id": "m", "assigned": [{"topic": "orders", "partition": 0}]}
    versions = {
        "lag_windows": write_rows(
            tmp_path,
            "lag_windows",
            [
                {
                    **key,
                    "topic": "orders",
                    "topic_id": "",
                    "partition": 0,
                    "window_start": at,
                    "lag_max": 7,
                    "time_lag_seconds": 3.0,
                }
            ],
        ),
        "rebalances": write_rows(
            tmp_path,
            "rebalances",
            [
                {
                    **key,
                    "cause": "member_join",
                    "live_read": True,
                    "pause_max_seconds": 2.5,
                    "records_delayed": 3,
                }
            ],
        ),
        "group_members": write_rows(tmp_path, "group_members", [{**key, **member}]),
    }
    write_rows(tmp_path, "batches", [batch_row(1, versions, at)])
    assert run_query(str(tmp_path), query).num_rows == 1


def test_it_has_two_queries() -> None:
    assert len(QUERIES) == 2


def rights_in(name: str) -> list[list[str]]:
    """Resource and operation of each row of a page's table of rights."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")][:2]
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*\| (topic|groups|resource)", line)
    ]
    return rows[rows.index(["resource", "operation"]) + 1 :]


def test_the_readme_and_the_page_on_security_name_the_same_rights() -> None:
    readme = rights_in("README.md")[:5]
    assert readme == rights_in("SECURITY.md")
    assert ["topic `__consumer_offsets`", "Describe, Read"] in readme
