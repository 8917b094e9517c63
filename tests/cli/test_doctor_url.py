"""`laggard doctor --url`: a running exporter, by what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.declared import data_of
from cli.test_doctor import closed_port
from exporter.api_kit import serving_api
from exporter.harness import LIMIT_SECONDS, Exporter
from laggard import __version__
from laggard.cli.asking import client
from laggard.cli.main import main
from laggard.errors import OK, USAGE
from tables.fixtures import NOW, group_row, partition_row, write_batch


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ASK_SECONDS", LIMIT_SECONDS)
    monkeypatch.chdir(tmp_path)


def doctor(
    capsys: pytest.CaptureFixture[str], exporter: Exporter, *words: str
) -> tuple[int, dict[str, Any]]:
    """The exit code, and the lines by their checks."""
    with serving_api(exporter) as asker:
        code = main(["doctor", "--json", "--url", f"http://127.0.0.1:{asker.port}", *words])
    return code, {line["check"]: line for line in data_of("doctor", capsys)}


def exporter_of(root: Path, **options: Any) -> Exporter:
    exporter = Exporter(root, **options)
    exporter.refresh()
    return exporter


def write(root: Path, **values: Any) -> None:
    partitions = [partition_row("checkout", "orders", number, **values) for number in range(3)]
    write_batch(root, 42, partitions=partitions, groups=[group_row("checkout")])


def test_an_exporter_that_serves_is_all_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    code, found = doctor(capsys, exporter_of(tmp_path))
    assert code == OK
    assert {line["level"] for line in found.values()} == {"ok"}
    assert found["exporter"]["fact"] == f"laggard {__version__} answers"
    assert found["ready"]["fact"] == "prod: its data is served"
    assert found["age of data"]["fact"].startswith("prod: polled ")
    assert found["series"]["fact"].endswith(", none withheld")


def test_data_that_is_too_old_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    exporter = exporter_of(tmp_path)
    exporter.clock.now = NOW.timestamp() + 3600
    code, found = doctor(capsys, exporter)
    assert (code, found["ready"]["level"]) == (2, "fail")
    assert found["ready"]["fact"] == "prod: stale"


def test_what_it_could_not_show_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, lag=-5)
    code, found = doctor(capsys, exporter_of(tmp_path, max_series=60))
    assert (code, found["errors"]["level"], found["series"]["level"]) == (1, "warn", "warn")
    assert "rows_skipped_total 3 (prod, value, partition_status)" in found["errors"]["fact"]
    assert "withheld: " in found["series"]["fact"]


def test_an_address_without_an_exporter_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    assert main(["doctor", "--url", url]) == 2
    out = capsys.readouterr().out
    assert out.startswith(f"fail  exporter: cannot ask {url}: ConnectionRefusedError")
    assert out.splitlines()[-1] == (
        "1 failure, 0 warnings, 0 not yet, 0 ok: the exporter does not serve all; begin with "
        "exporter"
    )


def test_it_looks_at_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--url", "http://127.0.0.1:1", "--repair"]) == USAGE
    assert "--url and --repair exclude each other" in capsys.readouterr().err
