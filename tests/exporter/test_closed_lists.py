"""Every reason of a closed list is counted from 0 on: who watches a counter sees its first rise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import laggard
from exporter.harness import Clock, Exporter, ask, names, serving
from laggard.exporter.body import families as fam
from laggard.exporter.collectors.own import Drop, Failure, Refusal
from laggard.exporter.server import ANSWERS
from laggard.tables.odd_rows import REASONS, SIFTED
from laggard.tables.schema import batch_tables
from laggard.tables.schema.batch_tables import GAP_REASONS
from laggard.wire.errors import DEAD_LETTER_REASONS
from tables.fixtures import group_row, partition_row, write_batch

LIB = Path(str(laggard.__file__)).parent


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    """After a batch in which nothing went wrong."""
    root = tmp_path_factory.mktemp("tables")
    maps = (
        "dead_letters_total",
        "gaps_total",
        "records_total",
        "stage_seconds_total",
        "polls_total",
        "poll_seconds_total",
    )
    nothing: dict[str, dict[str, int]] = {name: {} for name in maps}
    write_batch(root, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")], **nothing)
    exporter = Exporter(root)
    exporter.refresh()
    return exporter


@pytest.mark.parametrize(
    ("family", "label", "expected"),
    [
        (fam.GAPS, "reason", GAP_REASONS),
        (fam.DEAD_LETTERS, "reason", DEAD_LETTER_REASONS),
        (fam.SOURCE_RECORDS, "outcome", batch_tables.OUTCOMES),
        (fam.STAGE_SECONDS, "stage", batch_tables.STAGES),
        (fam.POLLS, "api", batch_tables.APIS),
        (fam.POLL_SECONDS, "api", batch_tables.APIS),
        (fam.REFRESH_ERRORS, "reason", get_args(Failure)),
        (fam.SERIES_DROPPED, "reason", get_args(Drop)),
        (fam.HTTP_REFUSED, "reason", get_args(Refusal)),
        (fam.ROWS_SKIPPED, "table", SIFTED),
        (fam.ROWS_SKIPPED, "reason", REASONS),
    ],
)
def test_a_closed_list_is_published_at_0(
    exporter: Exporter, family: fam.Family, label: str, expected: tuple[str, ...]
) -> None:
    found = {
        dict(labels)[label]: value
        for (name, labels), value in exporter.samples().items()
        if name == family.name
    }
    assert found == dict.fromkeys(expected, 0)


def test_an_unknown_count_is_not_0(tmp_path: Path) -> None:
    write_batch(tmp_path, gaps_total=None, dead_letters_total=None)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert {fam.GAPS.name, fam.DEAD_LETTERS.name}.isdisjoint(names(exporter.samples()))


def test_gap_reasons_are_declared_in_one_place() -> None:
    declared = {
        name
        for name, value in vars(batch_tables).items()
        if name.isupper() and value in GAP_REASONS
    }
    assert len(declared) == len(set(GAP_REASONS))
    text = "\n".join(path.read_text(encoding="utf-8") for path in (LIB / "stream").glob("*.py"))
    assert set(re.findall(r'"gap_reason": ([^,}\]\n]+)', text)) <= declared | {"reason"}
    # the clock is also a column
    assert [reason for reason in GAP_REASONS if f'"{reason}"' in text and reason != "clock"] == []


def test_every_answer_of_the_server_is_in_the_list(exporter: Exporter) -> None:
    ready, late = Clock(), Clock(exporter.clock() + 1000)
    for clock in (ready, late):
        with serving(exporter.publisher.published, clock) as (port, stats):
            assert set(stats.requests.values()) == {0}
            for path in (*ANSWERS, "/x"):
                address = path if path.startswith("/") else "/other"
                for method in ("GET", "HEAD", "POST"):
                    ask(port, address, method)
                ask(port, address, body=b"body")
                ask(port, address, X="a" * 10_000)
        expected = {(path, str(code)) for path, codes in ANSWERS.items() for code in codes}
        assert set(stats.requests) == expected
