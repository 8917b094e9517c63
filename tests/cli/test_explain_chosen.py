"""`laggard explain --topic` and `--since`: one topic of a group, and what happened to it since a
moment.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from cli.group_rows import data, explain, group, member_row, page, partitions, rebalance_row, write
from laggard.errors import NOT_FOUND, OK, USAGE
from tables.fixtures import NOW, finding_row, partition_row, window_row, write_evaluated, write_rows

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def two_topics(tmp_path: Path) -> Path:
    """700 records behind on `orders`, 90 on a partition of `letters`, whose other
    one is not known.
    """
    letters = [
        partition_row("checkout", "letters", 0, committed_offset=910),
        partition_row("checkout", "letters", 1, "topic_missing"),
    ]
    members = [
        member_row(1, [("orders", 0), ("orders", 1), ("letters", 0), ("letters", 1)]),
        member_row(2, [("orders", 2), ("orders", 3)]),
    ]
    whole = group(
        members=2,
        lag=None,
        lag_known=790,
        partitions_total=6,
        topics=["letters", "orders", "unread"],
    )
    write(
        tmp_path, partition_status=partitions(*letters), group_members=members, group_status=[whole]
    )
    findings = [
        finding_row("PARTITION_STALLED", "checkout", topic="letters"),
        finding_row("CAPACITY_SHORTAGE", "checkout", topic="orders"),
        finding_row("TIMEOUT_RATIO", "checkout"),
    ]
    windows = [
        window_row("checkout", topic, partitions_material=1) for topic in ("letters", "orders")
    ]
    write_evaluated(tmp_path, windows=windows, findings=[found_at(row) for row in findings])
    return tmp_path


def found_at(row: dict[str, object], hours: float = 0.5, **values: object) -> dict[str, object]:
    """A finding that opened so many hours ago."""
    at = NOW - hours * HOUR
    empty = {
        "evidence": {},
        "evidence_text": {},
        "guards": {},
        "partitions": [],
        "falsifier": "it ends",
    }
    return row | empty | {"started_at": at, "opened_at": at} | values


def test_a_topic_has_its_own_lag_and_partitions(
    two_topics: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, letters = (
        data(two_topics, capsys, "checkout", "--topic", name) for name in ("orders", "letters")
    )
    names = ("lag", "lag_known", "partitions_total", "partitions_ok", "partitions_unknown")
    assert [orders["group"][name] for name in names] == [700, 700, 4, 4, 0]
    assert [letters["group"][name] for name in names] == [None, 90, 2, 1, 1]
    assert {row["topic"] for row in letters["partitions"]} == {letters["topic"]} == {"letters"}
    assert [row["topic"] for row in letters["diagnosis"]["windows"]] == ["letters"]
    assert data(two_topics, capsys)["group"]["lag_known"] == 790


def test_only_members_with_partitions_of_it_are_named_and_with_these_alone(
    two_topics: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(two_topics, capsys, "checkout", "--topic", "letters")
    assert [(row["client_id"], row["lag"], row["lag_is_exact"]) for row in found["members"]] == [
        ("c1", 90, False)
    ]
    orders = data(two_topics, capsys, "checkout", "--topic", "orders")
    assert {row["client_id"]: row["lag"] for row in orders["members"]} == {"c1": 40, "c2": 660}
    # that one reads other topics is no gap
    assert not any(each["code"] == "some_members" for each in found["not_known"])


def test_findings_are_those_of_the_topic_and_of_the_whole_group(
    two_topics: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(two_topics, capsys, "checkout", "--topic", "letters")["diagnosis"]["findings"]
    assert {row["code"] for row in found} == {"PARTITION_STALLED", "TIMEOUT_RATIO"}


def test_the_page_says_which_topic_it_is_of(
    two_topics: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(two_topics, "checkout", "--topic", "letters") == OK
    assert (
        "\ncheckout on prod, topic letters: batch 42, 2026-11-20 12:00:00 UTC\n"
        in capsys.readouterr().out
    )
    assert page(two_topics, capsys, "checkout", "--topic", "unread")["Lag"] == [
        "no partition is subscribed or committed"
    ]


def test_a_topic_that_the_group_does_not_read_is_not_found(
    two_topics: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(two_topics, "checkout", "--topic", "order") == NOT_FOUND
    text = capsys.readouterr().err
    assert 'group "checkout" has no topic "order"' in text
    assert "it reads letters, orders, unread" in text


@pytest.fixture
def two_days(tmp_path: Path) -> Path:
    """A rebalance and a finding each 1, 3, 5 … hours ago; the finding of 3 hours ago has ended an
    hour ago.
    """
    hours = (1, 3, 5, 7, 9, 11, 25)
    rebalances = [rebalance_row(NOW - each * HOUR) for each in hours]
    write(
        tmp_path,
        rebalances=rebalances,
        group_status=[group(rebalances_total={"member_left": len(hours)})],
    )
    for each in hours:
        at = NOW - each * HOUR
        row = finding_row("PARTITION_STALLED", "checkout", topic="orders", finding_id=f"{each}")
        write_evaluated(tmp_path, at, findings=[found_at(row, each)])
    closed = {
        "event": "closed",
        "seq": 1,
        "finding_id": "3",
        "closed_at": NOW - HOUR,
        "at": NOW - HOUR,
    }
    row = found_at(finding_row("PARTITION_STALLED", "checkout", topic="orders"), 3)
    write_rows(
        tmp_path,
        "findings",
        [row | closed | {"cluster": "prod", "batch_id": 1, "date": NOW.date()}],
    )
    return tmp_path


@pytest.mark.parametrize(
    ("since", "rebalances", "findings"),
    [
        ("-4h", [1, 3], ["3", "1"]),
        ("-2h", [1], ["3", "1"]),
        ("-30m", [], []),
        ("2026-11-20T04:00", [1, 3, 5, 7], None),
    ],
)
def test_what_has_happened_since_a_moment_is_reported(
    two_days: Path,
    capsys: pytest.CaptureFixture[str],
    since: str,
    rebalances: list[int],
    findings: list[str] | None,
) -> None:
    found = data(two_days, capsys, "checkout", "--since", since)
    assert [row["ended_at"] for row in found["rebalances"]] == [
        (NOW - each * HOUR).isoformat() for each in rebalances
    ]
    assert [row["finding_id"] for row in found["past"]] == (findings or ["7", "5", "3", "1"])[
        : len(found["past"])
    ]
    assert findings is None or len(found["past"]) == len(findings)


def test_all_rebalances_since_then_are_reported_unless_fewer_are_asked_for(
    two_days: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [
        len(data(two_days, capsys, "checkout", *words)["rebalances"])
        for words in (
            (),
            ("--since", "-12h"),
            ("--since", "-12h", "--limit", "2"),
            ("--since", "-3d"),
        )
    ]
    assert numbers == [5, 6, 2, 7]


def test_the_page_tells_what_was_found_and_when_it_ended(
    two_days: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = page(two_days, capsys, "checkout", "--since", "-2h")[
        "Since 2026-11-20 10:00:00 UTC"
    ]
    assert first.startswith("- 2026-11-20 09:00:00 UTC, ended 2026-11-20 11:00:00 UTC: ")
    assert second.startswith("- 2026-11-20 11:00:00 UTC, open: ")
    quiet = page(two_days, capsys, "checkout", "--since", "-30m")
    assert quiet["Since 2026-11-20 11:30:00 UTC"] == ["nothing was found"]
    assert quiet["Last rebalances"] == ["none seen since 2026-11-20 11:30:00 UTC"]


def test_without_it_the_past_is_not_reported(
    two_days: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(two_days, capsys)
    assert (found["since"], found["past"]) == (None, None)


def test_a_moment_that_is_still_to_come_is_a_wrong_use(
    two_days: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(two_days, "checkout", "--since", "2026-11-21T00:00") == USAGE
    assert "nothing lies between" in capsys.readouterr().err
