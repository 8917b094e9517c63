"""Tables that cannot be read: every verb says what, where, why and what to do, and none calls it a
bug of laggard.
"""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from laggard.cli.main import main
from laggard.cli.verbs.doctor import checks
from laggard.config import Config
from laggard.config.sections import Job
from laggard.doctor.result import Check, exit_code, run_checks
from laggard.errors import CONFIGURATION, DAMAGED, NOT_FOUND
from laggard.tables.schema.schemas import TABLES
from tables.fixtures import NOW, group_row, make_root, partition_row, write_batch, write_rows

NOBODY = 65534
VERBS = {
    "status": ["status"],
    "rebalances": ["status", "--rebalances"],
    "query": ["query", "select * from group_status"],
    "explain": ["explain", "g"],
    "explain at": ["explain", "g", "--at", "-1m"],
    "findings": ["findings"],
    "diagnose": ["diagnose", "--from", "-2h", "--to", "-0s"],
    "export": ["export", "--print"],
}
EXITS = {"export": {0}, "doctor": {0, 1, 2}}  # these name it and go on


@contextmanager
def nobody() -> Iterator[None]:
    """As a user to whom modes apply; tests may run as root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Import what the verbs import late: nobody may be unable to read the interpreter's modules."""
    with healthy_tables() as tables:
        for words in VERBS.values():
            main([*words, "--set", f'job.tables="{tables}"'])
        run_checks(table_checks(Config(job=Job(tables=str(tables)))))
    for encoding in ("utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le"):
        # json guesses them from damaged bytes, and Python keeps that one was not found
        codecs.lookup(encoding)


@pytest.fixture
def root() -> Iterator[Path]:
    with healthy_tables() as tables:
        yield tables


@contextmanager
def healthy_tables() -> Iterator[Path]:
    """Tables of one batch, in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        tables = Path(folder, "tables")
        make_root(tables)
        write_batch(
            tables, at=NOW, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")]
        )
        write_rows(
            tables,
            "finding_state",
            [{"date": NOW.date(), "group": "", "window_start": NOW, "batch_id": 1}],
        )
        yield tables
        Path(folder).chmod(0o755)
        for each in tables.rglob("*") if tables.is_dir() else ():
            each.chmod(0o755 if each.is_dir() else 0o644)


def closed(*names: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for name in names:
            (root / name).chmod(0)

    return damage


def closed_files(pattern: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for each in root.glob(pattern):
            each.chmod(0)

    return damage


def overwritten(pattern: str, content: bytes) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for each in root.glob(pattern):
            each.write_bytes(content)

    return damage


def gone(pattern: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for each in root.glob(pattern):
            each.unlink()

    return damage


def a_file(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    root.write_text("not a folder")


LOGS, DATA = "*/_delta_log/*.json", "*/**/*.parquet"
DAMAGES: dict[str, tuple[Callable[[Path], None], set[int]]] = {
    "no right to the root": (closed("."), {DAMAGED}),
    "no right to the folder above": (closed(".."), {DAMAGED}),
    "no right to a table": (closed("batches", "group_status", "finding_state"), {DAMAGED}),
    "no right to the logs": (closed_files("*/_delta_log"), {DAMAGED}),
    "no right to the log files": (closed_files(LOGS), {DAMAGED}),
    "no right to the data": (closed_files(DATA), {DAMAGED}),
    "no JSON in the log": (overwritten(LOGS, b"\x00\xffnot json"), {DAMAGED}),
    "other JSON in the log": (
        overwritten(LOGS, b'{"add": 1}\n[]\n"x"\n{"add": {"path": null}}\n'),
        {DAMAGED},
    ),
    "an empty log file": (overwritten(LOGS, b""), {DAMAGED}),
    "no log file": (gone(LOGS), {DAMAGED, NOT_FOUND}),
    "the first log file gone": (gone("*/_delta_log/*0.json"), {DAMAGED}),
    "data that is no Parquet": (overwritten(DATA, b"PAR1 half a file"), {DAMAGED}),
    "no right to one table's data": (closed_files("group_status/*.parquet"), {0, DAMAGED}),
    "no right to one table's log": (closed("group_status/_delta_log"), {0, DAMAGED}),
    "data gone": (gone(DATA), {DAMAGED}),
    "a false pointer to a checkpoint": (
        lambda root: (
            [
                each.joinpath("_last_checkpoint").write_text("{")
                for each in root.glob("*/_delta_log")
            ]
            and None
        ),
        {0, DAMAGED},
    ),
    "the root is a file": (a_file, {NOT_FOUND, DAMAGED}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_verb_names_it(
    root: Path, damage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    hurt, codes = DAMAGES[damage]
    found = {}
    hurt(root)
    with nobody():
        for verb, words in VERBS.items():
            code = main([*words, "--set", f'job.tables="{root}"'])
            found[verb] = code, "".join(capsys.readouterr())
        results = run_checks(table_checks(Config(job=Job(tables=str(root)))))
        found["doctor"] = (
            exit_code(results),
            "\n".join(f"{each.fact} {each.remedy}" for each in results),
        )
    wrong = {
        verb: (code, text)
        for verb, (code, text) in found.items()
        if code not in EXITS.get(verb, codes)
        or any(word in text for word in ("internal error", "internal: ", "bug", "Traceback"))
        or (code and verb not in EXITS and len(text.splitlines()) > 4)
    }
    assert not wrong, "\n".join(
        f"{verb}: {code}, {text[-500:]}" for verb, (code, text) in wrong.items()
    )
    if 0 not in codes:
        assert str(root) in found["doctor"][1]


def test_a_working_folder_that_may_not_be_searched_is_named(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    root.parent.chmod(0)
    with nobody():
        code = main(["status"])
    root.parent.chmod(0o755)
    assert (code, "laggard.toml: Permission denied" in capsys.readouterr().err) == (
        CONFIGURATION,
        True,
    )


def table_checks(config: Config) -> Iterator[tuple[str, Check]]:
    return (
        (name, check)
        for name, check in checks(config)
        if name in {*TABLES, "folders", "disk", "newest batch"}
    )
