"""No two sentences of a page contradict each other: each case was seen on a page once."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from pathlib import Path

import pytest

from cli.group_rows import LAGS, group, members, partitions, rebalance_row
from laggard.answers.evaluated import read_diagnosis
from laggard.cli.main import main
from laggard.errors import OK
from tables.fixtures import (
    NOW,
    Row,
    batch_row,
    finding_row,
    window_row,
    write_evaluated,
    write_rows,
)

FOUND = {
    "started_at": NOW - timedelta(minutes=15), "opened_at": NOW - timedelta(minutes=10),
    "rule": "D1", "topic": None,
    "partitions": [], "evidence": {}, "evidence_text": {}, "guards": {},
    "falsifier": "a generation assigns it",
}  # fmt: skip
EMPTY: Row = {"members": 0, "group_state": "Empty", "idle_members": 0}
LAGGING = {
    "partitions_total": 4,
    "partitions_material": 3,
    "top_partitions": [2],
    "flags": [],
    "scale_reason": {},
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def page(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    window: Row,
    *findings: Row,
    rebalance: Row | None = None,
    **of: Row,
) -> str:
    """Write the group's window and findings beside a tick of 700 records behind, and print the
    page.
    """
    write_evaluated(
        root,
        windows=[window_row("checkout", "orders", **{**LAGGING, **window})],
        findings=[FOUND | row for row in findings],
    )
    tables = {
        "partition_status": of.get("partitions") or partitions(),
        "group_status": [group(**of.get("group", {}))],
        "group_members": members(),
        "rebalances": [rebalance_row(**rebalance or {})],
        "topic_windows": [],
    }
    versions = {name: write_rows(root, name, rows) for name, rows in tables.items()}
    write_rows(root, "batches", [batch_row(42, versions)])
    assert main(["explain", "checkout", "--set", f"job.tables={root}"]) == OK
    return " ".join(capsys.readouterr().out.split())


def test_a_verdict_that_names_a_cause_stands_beside_no_unknown_cause(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(root, capsys, {"scale_verdict": "NO_UNHEALTHY_MEMBER"})
    assert "Cause The verdict points at a slow member or host; no finding of it is open yet" in text
    assert "No rule names one" not in text


def test_a_cause_that_nothing_names_is_a_gap(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(root, capsys, {"scale_verdict": "NOT_NEEDED", "loss_seconds": inf})
    assert "Cause Unknown: no finding explains the lag yet." in text
    assert "- Cause: no finding explains the lag yet." in text
    assert "every number above is known" not in text


def test_consumers_are_not_called_enough_while_their_capacity_is_unknown(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(
        root,
        capsys,
        {"scale_verdict": "NOT_NEEDED", "scale_reason": {"size_known": 0.0}, "capacity": None},
    )
    assert ": no more consumers are needed so far " in text
    assert "enough" not in text.split("Shape")[0]
    assert "- Capacity of one member: not known." in text


def test_a_verdict_that_is_unknown_is_a_gap_with_its_reason(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(root, capsys, {"scale_verdict": "UNKNOWN", "scale_reason": {"members_known": 0.0}})
    assert (
        "- If adding consumers would help: offsets are committed, but the readers are not recorded."
        in text
    )


def test_a_group_that_rebalances_too_often_does_not_keep_up_and_get_nothing_done(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calm = {"partitions_material": 0, "scale_verdict": "NO_REBALANCE_FIRST", "scale_reason": {}}
    text = page(
        root,
        capsys,
        calm,
        finding_row("REBALANCE_STORM", "checkout"),
        group={"time_in_rebalance_ratio": 0.0},
    )
    assert text.startswith("checkout has no significant lag, but: the group rebalances too often")
    assert "time in rebalance over the last 10 minutes: 0.0 %" in text
    assert "keeps up" not in text
    assert "little else" not in text


def test_a_group_to_be_started_is_not_to_have_0_consumers(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(
        root,
        capsys,
        {"scale_verdict": "NO_MEMBERS", "members": 0, "members_desired": 0},
        finding_row("EMPTY_WITH_LAG", "checkout"),
        group=EMPTY,
    )
    assert "so start its consumers" in text
    assert "to have" not in text


def test_a_group_without_members_does_not_keep_up_with_records_unread(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calm = {
        "partitions_material": 0,
        "scale_verdict": "NOT_NEEDED",
        "scale_reason": {},
        "members": 0,
    }
    text = page(root, capsys, calm, group=EMPTY)
    assert text.startswith(
        "checkout: 700 records behind, and no member reads them; the rules find nothing so far"
    )
    assert main(["status", "--set", f"job.tables={root}"]) == OK
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["checkout", "behind"]


def test_a_group_whose_members_all_crash_again_and_again_has_no_insignificant_lag(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = {
        "partitions_material": 0,
        "scale_verdict": "NO_REBALANCE_FIRST",
        "scale_reason": {},
        "members": 0,
    }
    text = page(root, capsys, verdict, finding_row("CRASH_LOOP", "checkout"), group=EMPTY)
    assert text.startswith(
        "checkout: 700 records behind, and no member reads them; one member, or all of them, leave"
    )
    assert "capacity of one" not in text


@pytest.mark.parametrize(
    ("members", "first"),
    [
        (
            0,
            (
                "checkout: 700 records behind, and no member reads them; the verdict points at its "
                "rebalances"
            ),
        ),
        (3, "checkout has no significant lag; the verdict points at its rebalances"),
    ],
)
def test_a_verdict_that_comes_before_its_finding_is_in_the_first_line(
    members: int, first: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = {
        "partitions_material": 0,
        "scale_verdict": "NO_REBALANCE_FIRST",
        "scale_reason": {},
        "members": members,
    }
    text = page(root, capsys, verdict, group={} if members else EMPTY)
    assert text.startswith(first)
    assert "Cause The verdict points at its rebalances; no finding of it is open yet" in text


def test_a_group_without_members_and_records_has_not_enough_consumers(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records came after the window."""
    reason = {"row": 2.0, "lag_records": 0.0}
    verdict = {
        "partitions_material": 0,
        "scale_verdict": "NOT_NEEDED",
        "scale_reason": reason,
        "members": 0,
    }
    text = page(root, capsys, verdict, finding_row("CRASH_LOOP", "checkout"), group=EMPTY)
    assert "No: there was nothing to read." in text
    assert "are enough" not in text


def test_evidence_of_another_time_says_so_and_gives_no_second_lag(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = {"lag_records": 123_456.0, "frozen_seconds": 600.0}
    text = page(
        root,
        capsys,
        {"scale_verdict": "NO_STALLED"},
        finding_row("PARTITION_STALLED", "checkout", evidence=evidence),
    )
    assert "Evidence: frozen 10 m 00 s." in text  # as old as the verdict
    assert "123,456" not in text
    write_old = finding_row("PARTITION_STALLED", "checkout", evidence=evidence)
    old = {
        **FOUND,
        **write_old,
        "at": NOW - timedelta(minutes=10),
        "date": NOW.date(),
        "cluster": "prod",
        "seq": 1,
    }
    write_rows(root, "findings", [{**old, "batch_id": 1}])
    assert main(["explain", "checkout", "--set", f"job.tables={root}"]) == OK
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "Evidence of 2026-11-20 11:50:00 UTC, 10 m 00 s before the verdict: frozen 10 m 00 s."
        in text
    )


@pytest.mark.parametrize("role", ["primary", "contributing"])
def test_the_numbers_of_the_cause_are_those_of_the_window(
    root: Path, capsys: pytest.CaptureFixture[str], role: str
) -> None:
    """Only what no window repeats, such as the owner's name, is of the moment at which it was
    recorded.
    """
    recorded = {
        "evidence": {"frozen_seconds": 60.0},
        "evidence_text": {"owner": "app#0"},
        "role": role,
    }
    old = {
        **FOUND,
        **finding_row("PARTITION_STALLED", "checkout", **recorded),
        "at": NOW - timedelta(minutes=10),
    }
    write_rows(root, "findings", [{**old, "date": NOW.date(), "cluster": "prod", "batch_id": 1}])
    window = {
        "scale_verdict": "NO_STALLED",
        "primary_evidence": {"frozen_seconds": 660.0, "lag_records": 123_456.0},
    }
    text = page(root, capsys, window)
    age = "2026-11-20 11:50:00 UTC, 10 m 00 s before the verdict"
    if role == "primary":
        assert (
            f"Evidence: frozen 11 m 00 s. Partitions, confidence, checks and names are of {age}: "
            "owner app#0." in text
        )
    else:
        assert f"Evidence of {age}: frozen 1 m 00 s, owner app#0." in text
    assert "123,456" not in text


HOT, HOT_ID = finding_row("HOT_PARTITION_ARRIVAL", "checkout"), "HOT_PARTITION_ARRIVAL checkout"
GONE = "The newest window does not meet its conditions: it closes if the next ones do not either."
LACKING = "Whether it goes on is not known: the newest window lacks an input."


@pytest.mark.parametrize(
    ("unseen", "shows"), [({}, ""), ({HOT_ID: "gone"}, GONE), ({HOT_ID: "unknown"}, LACKING)]
)
def test_a_cause_that_the_window_does_not_show_forbids_nothing_that_helps(
    root: Path, capsys: pytest.CaptureFixture[str], unseen: dict[str, str], shows: str
) -> None:
    desired = {
        "scale_verdict": "YES",
        "members_desired": 3,
        "scale_reason": {"drain_at_desired_seconds": 60.0},
    }
    text = page(root, capsys, desired | {"unseen_findings": unseen}, HOT)
    assert (f"since 2026-11-20 11:45:00 UTC {shows} Evidence" in text) == bool(shows)
    assert [each in text for each in (GONE, LACKING)] == [shows == GONE, shows == LACKING]
    assert ("Do not add consumers for these partitions" in text) == (not unseen)
    assert (
        "HOT_PARTITION_ARRIVAL: not seen in the newest window, which lacks an input." in text
    ) == (shows == LACKING)


def test_another_finding_says_that_the_window_does_not_show_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stalled = finding_row("PARTITION_STALLED", "checkout", role="contributing")
    unseen = {"PARTITION_STALLED checkout": "gone"}
    text = page(
        root, capsys, {"scale_verdict": "NO_HOT_PARTITION", "unseen_findings": unseen}, HOT, stalled
    )
    assert text.count(GONE.rstrip(".")) == 1
    assert GONE.rstrip(".") in text.partition("Also found")[2]


def test_trouble_that_a_calm_window_does_not_show_is_of_before(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calm = {"partitions_material": 0, "scale_verdict": "NOT_NEEDED", "scale_reason": {}}
    says = "a few partitions get more records than one member can handle"
    assert page(root, capsys, calm, HOT).startswith(f"checkout has no significant lag, but: {says}")
    calm |= {"unseen_findings": {HOT_ID: "gone"}}
    (root / "other").mkdir()
    text = page(root / "other", capsys, calm, HOT)
    assert text.startswith(f"checkout has no significant lag; open since before: {says}")


def test_what_a_group_had_before_its_evaluation_failed_is_unknown(root: Path) -> None:
    failed = FOUND | finding_row("RULE_FAILED", "checkout", subject="evaluation")
    write_evaluated(root, findings=[FOUND | HOT, failed])
    found = read_diagnosis(str(root), "checkout", NOW, 60)
    assert (found.windows, found.is_current) == ([], True)
    assert found.unseen == {HOT_ID: "unknown"}


def test_a_capacity_that_is_not_measured_claims_nothing_about_busy_members(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    window = {"scale_verdict": "UNKNOWN", "capacity": None, "busy_share": 0.5}
    text = page(
        root, capsys, window | {"scale_reason": {"busy_windows_needed": 5.0, "shape_known": 1.0}}
    )
    assert (
        "- Capacity of one member: not known. It is what a member does in 5 windows in which it "
        "is busy," in text
    )
    assert "none was busy" not in text


def test_numbers_of_records_have_one_form(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lags = {
        "lag_before": 10_000,
        "lag_after": 70_000,
        "records_delayed": 60_000,
        "records_replayed": 1200,
    }
    text = page(root, capsys, {"scale_verdict": "NO_STALLED"}, rebalance=lags)
    assert "wait: 60,000; read again: 1,200; lag before and after it: 10,000 → 70,000." in text
    assert f"  {sum(LAGS):,} records".strip() in text


def test_a_finding_lists_its_guards_and_what_would_prove_it_wrong(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guards = {"no_catch_up": "pass", "independent_of_arrivals": "unknown"}
    text = page(
        root,
        capsys,
        {"scale_verdict": "NO_STALLED"},
        finding_row("PARTITION_UNOWNED", "checkout", guards=guards),
    )
    assert "Checked: no catch-up. Not checked, as not known: the commit interval" in text
    assert "Wrong if a generation assigns it." in text


@pytest.mark.parametrize(
    ("verdict", "drain", "trend", "says", "not_said"),
    [
        ("YES", inf, "growing", "does not drain at the current rate", "As it is"),
        (
            "NO_IDLE",
            600.0,
            "growing",
            "drains in 10 m 00 s at the newest rates, though it grew over",
            "m 00 s (",
        ),
        (
            "NO_IDLE",
            inf,
            "draining",
            "current rate though it fell over the last ten minutes",
            "drains in",
        ),
        (
            "NOT_NEEDED_DRAINING",
            inf,
            "growing",
            "and falling: it clears by itself",
            "does not drain",
        ),
    ],
)
def test_trend_verdict_and_forecast_do_not_contradict_each_other(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    verdict: str,
    drain: float,
    trend: str,
    says: str,
    not_said: str,
) -> None:
    text = page(root, capsys, {"scale_verdict": verdict, "drain_seconds": drain, "trend": trend})
    assert says in text
    assert not_said not in text.partition("Would more")[0] + text.partition("Forecast")[2]


def test_a_verdict_of_some_windows_ago_says_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page(root, capsys, {"scale_verdict": "NO_STALLED"})
    later = batch_row(43, {}, NOW + timedelta(minutes=3, seconds=5))
    versions = {
        name: write_rows(root, name, rows)
        for name, rows in {"partition_status": partitions(), "group_status": [group()]}.items()
    }
    write_rows(
        root, "batches", [later | {"table_versions": batch_row(43, versions)["table_versions"]}]
    )
    assert main(["explain", "checkout", "--set", f"job.tables={root}"]) == OK
    text = " ".join(capsys.readouterr().out.split())
    assert "forecast are of 2026-11-20 12:00:00 UTC, 3 windows ago." in text


def test_lag_of_a_topic_that_no_member_subscribes_to_is_nobodys_trouble(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = {
        "flags": ["left"],
        "scale_verdict": "NOT_NEEDED",
        "trend": "growing",
        "drain_seconds": inf,
    }
    note = finding_row(
        "TOPIC_LEFT_BEHIND", "checkout", role="note", severity="info", topic="orders"
    )
    text = page(root, capsys, left, note, group={"topics": ["payments"]}, partitions=partitions())
    assert text.startswith(
        "checkout keeps up with the topics that it reads: nothing to do now, 1 note below"
    )
    assert "note: The group keeps offsets of a topic that no member subscribes to any more." in text
    for title in ("Would more consumers help?", "Cause", "Forecast"):
        assert title not in text
    assert main(["status", "--set", f"job.tables={root}"]) == OK
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["checkout", "ok"]


def test_a_stopped_group_is_to_be_started_and_not_to_be_measured(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = {"scale_verdict": "NO_MEMBERS", "members": 0, "capacity": None, "members_desired": 1}
    text = page(
        root, capsys, stopped, group={"members": 0, "group_state": "Empty", "idle_members": 0}
    )
    assert "No: the group has no member." in text
    assert "capacity of one" not in text
    assert "Capacity of one member" not in text


def test_status_and_explain_know_the_rules_for_as_long_as_each_other(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page(root, capsys, {"scale_verdict": "NO_STALLED"})
    for number, minutes, is_known in ((43, 5.9, True), (44, 6.1, False)):
        tables = {"partition_status": partitions(), "group_status": [group()], "topic_windows": []}
        versions = {name: write_rows(root, name, rows) for name, rows in tables.items()}
        write_rows(root, "batches", [batch_row(number, versions, NOW + timedelta(minutes=minutes))])
        assert main(["status", "--set", f"job.tables={root}"]) == OK
        status = capsys.readouterr().out
        assert main(["explain", "checkout", "--set", f"job.tables={root}"]) == OK
        assert ("Would more consumers help?" in capsys.readouterr().out) is is_known
        assert ("HEALTH" in status) is is_known
        assert (
            "health and verdict unknown: the rules have not evaluated it" in status
        ) is not is_known


@pytest.mark.parametrize(
    ("window", "now", "first", "verdict"),
    [
        (
            {"scale_verdict": "NO_MEMBERS", "members": 0},
            {},
            "it has 3 members now, and had no member",
            "members are back",
        ),
        (
            {"scale_verdict": "YES"},
            EMPTY,
            "it has no member now, and had 3 members",
            "no member reads",
        ),
        ({"scale_verdict": "UNKNOWN"}, EMPTY, "it has no member now, and had 3 members", "UNKNOWN"),
        (
            {"scale_verdict": "NOT_NEEDED"},
            EMPTY,
            "it has no member now, and had 3 members",
            "no member reads",
        ),
    ],
)
def test_a_verdict_about_members_that_came_or_went_since_is_none_of_now(
    root: Path, capsys: pytest.CaptureFixture[str], window: Row, now: Row, first: str, verdict: str
) -> None:
    text = page(
        root,
        capsys,
        {"members": 3} | window,
        finding_row("EMPTY_WITH_LAG", "checkout"),
        group={"members": 3} | now,
    )
    unread = ", and no member reads them" if now else ""
    end = "when the rules last evaluated it, at 12:00:00"
    assert text.startswith(f"checkout: 700 records behind{unread}; {first} {end}")
    assert f"Not known: {first} {end}" in text
    assert "Found before - primary: Records wait and the group has no member." in text
    for title in ("Shape ", "Cause ", "Do first", "Forecast"):
        assert f" {title}" not in text
    assert main(["status", "--set", f"job.tables={root}"]) == OK
    assert verdict in capsys.readouterr().out
