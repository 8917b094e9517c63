"""`laggard audit`: its exit codes, its page and its JSON, and an exporter that is compared with the
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any
from urllib.request import urlopen

import pytest

from audit.roots import change, write_root
from cli.declared import document_of
from cli.test_doctor import closed_port
from exporter.api_kit import serving_api
from exporter.harness import LIMIT_SECONDS, Exporter
from laggard.audit.reader import Reader
from laggard.audit.result import Tally
from laggard.audit.served import check_exporter
from laggard.cli.asking import client
from laggard.cli.main import main
from laggard.errors import CONFIGURATION, OK, USAGE
from laggard.tables.published import newest_batch
from tables.fixtures import NOW, group_row, partition_row, write_batch

VIOLATED, UNCHECKED = 1, 2


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("simulated")
    write_root(root, "transactional", seed=1)
    return root


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ASK_SECONDS", LIMIT_SECONDS)
    monkeypatch.chdir(tmp_path)


def audit(root: Path, *words: str) -> int:
    settings = [
        f'cluster.bootstrap_servers=["127.0.0.1:{closed_port()}"]',
        "cluster.request_timeout_seconds=1",
    ]
    places = [
        word for setting in (*settings, f'job.tables="{root}"') for word in ("--set", setting)
    ]
    return main(["audit", *places, *words])


def data_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `--json` printed, its invariants by their codes."""
    found = document_of("audit", capsys)
    return {
        "ok": found["ok"],
        **found["data"],
        "by": {each["code"]: each for each in found["data"]["invariants"]},
    }


def wrong_lag(simulated: Path, to: Path) -> Path:
    """The tables with one more record of lag in one row of the last window."""

    def edit(rows: list[dict[str, Any]]) -> None:
        row = max(
            (row for row in rows if row["status"] == "ok"), key=lambda row: row["window_start"]
        )
        row["lag"] += 1

    change(simulated, to, "lag_windows", edit)
    return to


def test_right_tables_end_with_0(simulated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(simulated) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("; all rows")
    assert [line.split()[:2] for line in lines if line.startswith("ok ")] == [
        ["ok", f"I{n}"] for n in range(1, 9)
    ]
    assert lines[-2].startswith("note  rows of lag_windows by status: ok ")
    assert lines[-1] == "all that were checked hold"


def test_a_wrong_row_is_printed_and_ends_with_1(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = wrong_lag(simulated, tmp_path / "t")
    assert audit(root) == VIOLATED
    lines = capsys.readouterr().out.splitlines()
    [fail] = [number for number, line in enumerate(lines) if line.startswith("fail  I5 ")]
    assert ": not in 1 of " in lines[fail]
    assert lines[fail + 1].strip().startswith("lag_windows cluster=c group=")
    assert ": lag: expected " in lines[fail + 1]
    assert "broken" in lines[-1]


def test_json_holds_the_rows_that_are_wrong(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(wrong_lag(simulated, tmp_path / "t"), "--json") == VIOLATED
    found = data_of(capsys)
    assert not found["ok"]
    assert found["since"] is None
    [sample] = found["by"]["I5"]["samples"]
    assert (sample["table"], sample["what"], sample["found"] - sample["expected"]) == (
        "lag_windows",
        "lag",
        1,
    )
    assert found["by"]["I5"]["violations"] == 1
    assert found["facts"]["statuses"]["ok"] > 0


def test_since_leaves_older_rows_out(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = newest_batch(str(simulated))
    assert batch is not None

    def edit(rows: list[dict[str, Any]]) -> None:
        min((row for row in rows if row["status"] == "ok"), key=lambda row: row["window_start"])[
            "lag"
        ] += 1

    change(simulated, tmp_path / "t", "lag_windows", edit)
    since = (batch.polled_at - timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
    assert audit(tmp_path / "t", "--json") == VIOLATED
    whole = data_of(capsys)
    assert audit(tmp_path / "t", "--json", "--since", since) == OK
    part = data_of(capsys)
    assert 0 < part["by"]["I5"]["checked"] < whole["by"]["I5"]["checked"]


def test_a_table_may_be_chosen(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = wrong_lag(simulated, tmp_path / "t")
    assert audit(root, "--json", "--table", "batches") == OK
    assert [code for code, each in data_of(capsys)["by"].items() if each["checked"]] == ["I1", "I7"]
    assert audit(root, "--table", "lagwindows") == USAGE
    assert "lag_windows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--since", "yesterday-ish"), USAGE),
        (("--live", "extra"), USAGE),
        (("--config", "none"), CONFIGURATION),
    ],
)
def test_a_slip_keeps_its_own_exit_code(
    words: tuple[str, ...], code: int, simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = audit(simulated, *words)
    assert (found, capsys.readouterr().out) == (code, "")


def test_tables_that_are_missing_cannot_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(tmp_path / "none") == UNCHECKED
    assert "no table at" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["lag_windows", "group_history", "partition_status"])
def test_a_table_that_the_batch_names_and_that_is_missing_is_not_checked(
    name: str, simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copytree(simulated, tmp_path / "t", ignore=ignore_patterns(name))
    assert audit(tmp_path / "t") == UNCHECKED
    page = " ".join(capsys.readouterr().out.split())
    assert (
        "I1 each key is in one row: not checked: batch 16 names a version of tables that are "
        "missing" in page
    )
    assert f" is not checked either: {name} " in page
    assert audit(tmp_path / "t", "--table", "batches") == OK
    assert audit(tmp_path / "t", "--table", "lag_windows") == UNCHECKED


def test_a_time_after_the_newest_poll_is_a_slip(
    simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(simulated, "--since", "2999-01-01") == USAGE
    found = capsys.readouterr()
    assert (found.out, "2999-01-01 00:00" in found.err) == ("", True)
    assert audit(simulated, "--since", "now") == OK


PLACES = ["--url", "--live"]


def words_of(option: str) -> tuple[str, ...]:
    """The option, with a place at which nobody answers."""
    return (option, f"http://127.0.0.1:{closed_port()}") if option == "--url" else (option,)


@pytest.mark.parametrize("option", PLACES)
def test_what_does_not_answer_cannot_be_asked(
    option: str, simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(simulated, *words_of(option)) == UNCHECKED
    page = capsys.readouterr().out
    assert f"warn  {'I9 ' if option == '--url' else 'I10'} " in page
    assert "127.0.0.1" in page
    assert page.splitlines()[-1] == "all that were checked hold; 1 could not be checked"


@pytest.mark.parametrize("option", PLACES)
def test_wrong_rows_are_printed_though_something_does_not_answer(
    option: str, simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(wrong_lag(simulated, tmp_path / "t"), "--json", *words_of(option)) == VIOLATED
    found = data_of(capsys)["by"]
    assert found["I5"]["violations"] == 1
    assert "127.0.0.1" in found["I9" if option == "--url" else "I10"]["unchecked"]


def write(root: Path, **values: Any) -> None:
    partitions = [
        partition_row("checkout", "orders", number, ahead_records=0, **values)
        for number in range(3)
    ]
    sums = {"lag": 300, "lag_known": 300, "partitions_total": 3, "partitions_ok": 3}
    write_batch(root, 42, partitions=partitions, groups=[group_row("checkout", **sums)])


@contextmanager
def exporter_of(root: Path, **options: Any) -> Iterator[tuple[str, str]]:
    """The words that name an exporter which has read these tables once."""
    exporter = Exporter(root, **options)
    exporter.refresh()
    with serving_api(exporter) as asker:
        yield "--url", f"http://127.0.0.1:{asker.port}"


def test_an_exporter_that_shows_the_tables_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t")
    with exporter_of(tmp_path / "t") as words:
        assert audit(tmp_path / "t", "--json", *words) == OK
    found = data_of(capsys)["by"]
    # one group, three partitions
    assert (found["I9"]["checked"], found["I9"]["unchecked"]) == (4, "")
    assert found["I6"]["checked"] == 1


def test_an_exporter_is_compared_with_the_batch_that_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t")
    with exporter_of(tmp_path / "t") as words:
        partitions = [partition_row("checkout", "orders", 0, ahead_records=0, committed_offset=950)]
        groups = [group_row("checkout", lag=50, lag_known=50)]
        write_batch(
            tmp_path / "t", 43, NOW + timedelta(seconds=10), partitions=partitions, groups=groups
        )
        assert audit(tmp_path / "t", "--json", *words) == OK
    assert data_of(capsys)["by"]["I9"]["checked"] == 4


def test_an_exporter_that_shows_a_tick_published_since_the_audit_began_is_compared(
    tmp_path: Path,
) -> None:
    write(tmp_path / "t")
    began = newest_batch(str(tmp_path / "t"))
    assert began is not None
    reader, tally = (
        Reader(str(tmp_path / "t"), began, NOW - timedelta(days=1), NOW + timedelta(days=1)),
        Tally(),
    )
    groups = [group_row("checkout", lag=50, lag_known=50)]
    partitions = [partition_row("checkout", "orders", 0, ahead_records=0, committed_offset=950)]
    write_batch(
        tmp_path / "t", 43, NOW + timedelta(seconds=10), partitions=partitions, groups=groups
    )
    with exporter_of(tmp_path / "t") as (_, url):

        def ask(path: str) -> tuple[int, bytes]:
            with urlopen(url + path) as answer:  # noqa: S310 - our own
                return answer.status, answer.read()

        check_exporter(ask, reader, tally)

    # "batch 43, which these tables do not have" before
    assert (tally.checked, tally.unchecked) == (2, "")


def test_an_exporter_that_shows_another_lag_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t")
    write(tmp_path / "other", committed_offset=899)
    with exporter_of(tmp_path / "other") as words:
        assert audit(tmp_path / "t", "--json", *words) == VIOLATED
    by_name = {each["what"]: each for each in data_of(capsys)["by"]["I9"]["samples"]}
    assert set(by_name) == {"laggard_group_lag_records", "laggard_partition_lag_records"}
    assert [by_name["laggard_partition_lag_records"][side] for side in ("expected", "found")] == [
        100,
        101.0,
    ]


def test_lag_that_an_exporter_cannot_know_or_show_is_not_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A group with partitions that had no room in the table, and a lag that a
    sample cannot hold.
    """
    of_full = partition_row("full", "orders", 0, ahead_records=0)
    huge = partition_row(
        "huge", "orders", 0, ahead_records=0, committed_offset=0, log_end_offset=2**53 + 10
    )
    lag = {"lag": huge["lag"], "lag_known": huge["lag"]}
    groups = [group_row("full", status="partial", lag=None, shed_keys=3), group_row("huge", **lag)]
    write_batch(tmp_path / "t", 42, partitions=[of_full, huge], groups=groups)
    with exporter_of(tmp_path / "t") as words:
        assert audit(tmp_path / "t", "--json", *words) == OK
    assert data_of(capsys)["by"]["I9"]["checked"] >= 2


@pytest.mark.parametrize("max_series", [60, 90, 120])
def test_what_an_exporter_had_to_withhold_is_not_missed(
    max_series: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t")
    with exporter_of(tmp_path / "t", max_series=max_series) as words:
        assert audit(tmp_path / "t", "--json", *words) == OK
    assert data_of(capsys)["by"]["I9"]["checked"] < 4


def test_an_exporter_of_other_tables_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t")
    write_batch(
        tmp_path / "other", 7, partitions=[partition_row("checkout", "orders", 0)], groups=[]
    )
    with exporter_of(tmp_path / "other") as words:
        assert audit(tmp_path / "t", *words) == UNCHECKED
    page = " ".join(capsys.readouterr().out.split())
    assert (
        "I9 the exporter shows the batch that it names: not checked: the exporter shows batch 7, "
        "which" in page
    )
