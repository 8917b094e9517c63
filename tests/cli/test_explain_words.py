"""What the page of `laggard explain` says of a rebalance, and what it admits not to know: a test
for each rule.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.group_rows import (
    AGO,
    codes,
    data,
    group,
    member_row,
    members,
    page,
    partitions,
    publish,
    rebalance_row,
    write,
)
from laggard.answers.evaluated import Diagnosis
from laggard.answers.explain.headline import headline
from laggard.answers.explain.rebalance import CAUSE_WORDS, REASON_WORDS
from laggard.answers.explain.unknown import FLAGS, STATUSES
from laggard.lag.status import KNOWN_STATUSES
from laggard.lag.status import STATUSES as ALL_STATUSES
from laggard.rebalance.analytics.causes import CAUSES
from laggard.rebalance.analytics.posterior import REASONS
from laggard.tables.schema.schemas import REBALANCES
from tables.fixtures import NOW, Row, group_row, partition_row

END = NOW - AGO
BLIND = (
    "laggard does not see the log ends or the commits of these groups: nothing else about them "
    "can be trusted"
)
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def page_of(root: Path, capsys: Capture, **values: Any) -> str:
    """What the page says of one rebalance."""
    write(root, rebalances=[rebalance_row(**values)])
    (text,) = page(root, capsys)["Last rebalances"]
    return text


def gaps(root: Path, capsys: Capture, **values: Any) -> set[str]:
    """Codes of what is not known of a group."""
    write(root, group_status=[group(**values)])
    return codes(data(root, capsys))


def posterior(best: float, second: float = 0.0) -> dict[str, float]:
    rest = (1 - best - second) / 3
    return {
        "poll_timeout": best,
        "session_expiry": second,
        "deploy": rest,
        "crash": rest,
        "scale_in": rest,
    }


def test_a_rebalance_of_which_all_is_known(tmp_path: Path, capsys: Capture) -> None:
    assert page_of(tmp_path, capsys) == (
        "- Ended 2026-11-20 11:50:00 UTC after about 4 s (at least 1 s, at most 30 s): members "
        "left. Left: c3/10.0.0.3#0 (3 → 2 members). Why it left: unknown, perhaps a poll that came "
        "too late, max.poll.interval.ms (0.50) or an expired session, no heartbeat in time (0.30). "
        "3 of 6 partitions moved, 1 of them needlessly. 6 partitions paused: median 4.5 s, 95th "
        "percentile 8 s, longest 8 s. Records that had to wait: 600; read again: 12; lag before "
        "and after it: 100 → 700."
    )


@pytest.mark.parametrize(
    ("low", "high", "est", "text"),
    [
        (2.5, 2.5, 2.5, "after 2.5 s:"),
        (1.13, 1.08, 1.08, "after about 1.1 s:"),  # bounds that read alike are no bounds
        (0.13, 0.01, 0.12, "after at most 0.1 s:"),
        (30, 1, 4, "after about 4 s (at least 1 s, at most 30 s):"),
        (None, 1, 4, "after about 4 s (at least 1 s):"),
        (30, 0.02, 0.02, "after at most 30 s:"),
        (30, 0.02, 4, "after about 4 s (at most 30 s):"),
        (None, 0.02, 4, "after about 4 s:"),
        (30, 0.01, 0.02, "after probably less than 0.1 s (at most 30 s):"),
        (0.04, 0.01, 0.02, "after less than 0.1 s:"),
        (None, 0.02, 0.02, "after a time that is not known:"),
        (90, 1, 1, "after at least 1 s, at most 1 m 30 s:"),
        (None, None, None, "after a time that is not known:"),
    ],
)
def test_a_duration_is_exact_or_has_its_bounds(
    tmp_path: Path,
    capsys: Capture,
    low: float | None,
    high: float | None,
    est: float | None,
    text: str,
) -> None:
    times = {"started_low": low, "started_high": high, "started_est": est}
    values = {
        name: None if each is None else END - timedelta(seconds=each)
        for name, each in times.items()
    }
    assert f"UTC {text}" in page_of(tmp_path, capsys, **values)


def test_every_cause_reason_flag_and_status_has_words() -> None:
    assert list(CAUSE_WORDS) == list(CAUSES)
    assert set(REASON_WORDS) == set(REASONS)
    assert set(STATUSES) == set(ALL_STATUSES) - set(KNOWN_STATUSES)
    (flags,) = (column.comment for column in REBALANCES.columns if column.name == "flags")
    assert set(FLAGS) == set(flags.partition(": ")[2].split(", "))


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause != "unknown"])
def test_a_cause_is_reported_in_words(tmp_path: Path, capsys: Capture, cause: str) -> None:
    assert f": {CAUSE_WORDS[cause]}. " in page_of(tmp_path, capsys, cause=cause)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"live_read": False}, "as it was read from history, where records may be missing"),
        ({"interrupted": 2}, "as a member may have joined and left in a round without a record"),
        ({"joined": None}, "as the members before are not known"),
    ],
)
def test_an_unknown_cause_says_why_it_is_unknown(
    tmp_path: Path, capsys: Capture, values: dict[str, Any], why: str
) -> None:
    assert f": the cause is not known, {why}. " in page_of(
        tmp_path, capsys, cause="unknown", **values
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"left": [], "joined": ["a", "b"]}, "Joined: a, b (3 → 2 members)."),
        (
            {"left": ["a"], "joined": ["b"], "replaced": ["a"]},
            "Joined: b; restarted or replaced: a (",
        ),
        (
            {"left": ["a", "b"], "joined": ["c"], "replaced": ["a"]},
            "Joined: c; left: b; restarted or replaced: a (",
        ),
        ({"left": [], "replaced": ["a"]}, ". Restarted or replaced: a ("),
        ({"left": [], "members_after": 3}, "The same members before and after (3 → 3 members)."),
        (
            {"left": [], "members_before": 0, "members_after": 0},
            " No member before it and none after.",
        ),
        (
            {"left": [], "members_before": None, "members_after": 0},
            " No member before it and none after.",
        ),
        ({"left": list("abcdefg")}, "Left: a, b, c, d, e and 2 more ("),
        (
            {"left": None, "joined": None},
            "Which members joined and left is not known; 2 members after.",
        ),
        ({"interrupted": 1}, "1 round before it never got to an assignment."),
        ({"generations": [7, 8, 9]}, "at most 30 s) in 3 rounds:"),
        ({"straggler_slot": "slow"}, "Until its timeout it waited for slow."),
    ],
)
def test_who_joined_left_or_was_replaced_is_named(
    tmp_path: Path, capsys: Capture, values: dict[str, Any], text: str
) -> None:
    assert text in page_of(tmp_path, capsys, **values)


def test_an_empty_group_has_no_members_that_joined_again(tmp_path: Path, capsys: Capture) -> None:
    none = {
        "left": [],
        "members_before": 0,
        "members_after": 0,
        "cause_posterior": None,
        "cause": "leader_rejoin",
    }
    text = page_of(tmp_path, capsys, **none)
    assert ": nothing had changed in the empty group. No member before it and none after. " in text
    assert "same members" not in text


def test_a_slot_that_is_only_an_id_is_called_by_client_and_host(
    tmp_path: Path, capsys: Capture
) -> None:
    epoch = {"generation_kind": "epoch", "client_id": "app"}
    rows = [
        member_row(1, [("orders", 0)], **epoch, generation=9, slot="c1-id"),
        member_row(2, [("orders", 1)], **epoch, generation=8, slot="c2-id", source_offset=600),
        member_row(3, [("orders", 1)], **epoch, generation=8, slot="pod-3", source_offset=600),
    ]
    write(
        tmp_path,
        group_status=[group(generation=None, group_epoch=9, members=1)],
        group_members=rows,
        rebalances=[rebalance_row(joined=["c1-id"], left=["c2-id", "pod-3", "older"])],
    )
    (text,) = page(tmp_path, capsys)["Last rebalances"]
    assert (
        "Joined: app on 10.0.0.1 (…c1-id); left: app on 10.0.0.2 (…c2-id), pod-3, older (" in text
    )


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        (
            posterior(0.70),
            "Why it left: most likely a poll that came too late, max.poll.interval.ms (0.70).",
        ),
        (
            posterior(0.699, 0.2),
            "unknown, perhaps a poll that came too late, max.poll.interval.ms (0.69) or",
        ),
        (posterior(0.5, 0.3), " or an expired session, no heartbeat in time (0.30)."),
    ],
)
def test_a_reason_is_claimed_from_seven_tenths_on_and_else_the_two_best_are_named(
    tmp_path: Path, capsys: Capture, shares: dict[str, float], text: str
) -> None:
    assert text in page_of(tmp_path, capsys, cause_posterior=shares)


def test_nobody_left_needs_no_reason(tmp_path: Path, capsys: Capture) -> None:
    assert "Why" not in page_of(tmp_path, capsys, cause_posterior=None, left=[])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"moved": None, "avoidable": None}, " How many partitions moved is not known."),
        ({"moved": 0, "avoidable": 0}, " No partition moved."),
        ({"moved": 2, "avoidable": 0}, " 2 of 6 partitions moved, all of them needed."),
        (
            {"stateful": True},
            " 3 of 6 partitions moved, and state with them, 1 of them needlessly.",
        ),
    ],
)
def test_moved_partitions_are_reported_with_those_that_need_not_have_moved(
    tmp_path: Path, capsys: Capture, values: dict[str, Any], text: str
) -> None:
    assert text in page_of(tmp_path, capsys, **values)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"pause_max_seconds": None}, "median 4.5 s, 95th percentile 8 s, longest unknown."),
        ({"paused_partitions": 0}, "No partition paused."),
        ({"paused_partitions": None}, "No partition had anything to read, so nothing paused."),
        (
            {"paused_partitions": None, "flags": ["pause_unknown"]},
            "Whether partitions paused is not known.",
        ),
        (
            {"paused_partitions": None, "live_read": False},
            "Whether partitions paused is not known.",
        ),
        ({"paused_partitions": None, "members_after": 0}, "No member was left to read."),
        (
            {"paused_partitions": None, "members_before": 0},
            "The group was empty before it, so nothing paused.",
        ),
        (
            {"paused_partitions": None, "members_before": None},
            "Whether partitions paused is not known.",
        ),
    ],
)
def test_a_pause_that_is_missing_says_why(
    tmp_path: Path, capsys: Capture, values: dict[str, Any], text: str
) -> None:
    assert text in page_of(tmp_path, capsys, **values)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            {"records_delayed": None},
            (
                "Records that had to wait: unknown; read again: 12; lag before and after it: 100 → "
                "700."
            ),
        ),
        ({"records_replayed": None}, "read again: at most 40; lag"),
        ({"records_replayed": None, "replay_bound": None}, "read again: unknown; lag"),
        ({"records_replayed": 0}, "read again: 0; lag"),
        ({"lag_before": None}, "lag before and after it: unknown → 700."),
        ({"lag_after": None}, "lag before and after it: 100 → unknown."),
    ],
)
def test_records_that_waited_or_were_read_again_are_unknown_rather_than_0(
    tmp_path: Path, capsys: Capture, values: dict[str, Any], text: str
) -> None:
    assert text in page_of(tmp_path, capsys, **values)


@pytest.mark.parametrize("flag", list(FLAGS))
def test_a_flag_of_a_rebalance_is_explained_with_the_time_of_its_rebalance(
    tmp_path: Path, capsys: Capture, flag: str
) -> None:
    write(tmp_path, rebalances=[rebalance_row(flags=[flag])])
    expected = f"- Rebalance of 2026-11-20 11:50:00 UTC: {FLAGS[flag]}."
    assert [line for line in page(tmp_path, capsys)["Not known"] if line == expected] == [expected]


def test_a_rebalance_of_history_is_one_also_without_its_flag_and_a_flag_is_explained_once(
    tmp_path: Path, capsys: Capture
) -> None:
    rows = [
        rebalance_row(END - n * AGO, live_read=False, flags=["bootstrap"] * n) for n in range(2)
    ]
    write(tmp_path, rebalances=rows)
    (line,) = [line for line in page(tmp_path, capsys)["Not known"] if "history" in line]
    assert line.startswith(
        "- Rebalances of 2026-11-20 11:50:00 UTC, 2026-11-20 11:40:00 UTC: read from history"
    )


def test_a_share_group_has_no_lag_here_and_no_rebalances(tmp_path: Path, capsys: Capture) -> None:
    share = group_row("checkout", group_type="share", protocol_type="share", generation=None,
        group_epoch=7, lag=None,
                      lag_known=None, partitions_total=0, assignor=None, rebalance_mode=None,
                      members=1)  # fmt: skip
    row = member_row(1, [("orders", 0)], generation_kind="epoch")
    publish(tmp_path, {"group_status": [share], "group_members": [row]})
    found = page(tmp_path, capsys)
    assert found["Lag"] == ["none here: a share group commits no offsets"]
    assert "Last rebalances" not in found
    assert codes(data(tmp_path, capsys)) == {"not_evaluated", "share_group", "share_rebalances"}


def test_a_group_with_offsets_only_has_no_members_by_construction(
    tmp_path: Path, capsys: Capture
) -> None:
    simple = group_row("checkout", group_type="simple", protocol_type=None, generation=None,
        members=None,
                       assignor=None, rebalance_mode=None, idle_members=None)  # fmt: skip
    publish(tmp_path, {"group_status": [simple], "partition_status": partitions()})
    found = page(tmp_path, capsys)
    assert found["State"][1] == "offsets only: nobody ever joined, so there are no members"
    assert found["Members"] == ["none"]
    assert "Last rebalances" not in found
    assert codes(data(tmp_path, capsys)) == {"not_evaluated", "offsets_only"}
    assert data(tmp_path, capsys)["members"] is None


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("no_group_record", {"members": None, "group_type": None}),
        ("connect", {"protocol_type": "connect"}),
        ("state", {"group_state": "Unknown"}),
        ("coordinator", {"coordinator": None}),
        ("assignor", {"assignor": None}),
        ("held", {"is_held": True}),
        ("older_assignment", {"generation": 9}),
        ("some_members", {"members": 4}),
        ("older_job", {"rebalances_total": None}),
        ("under_way", {"rebalancing_since": NOW}),
        ("ratio", {"time_in_rebalance_ratio": None}),
    ],
)
def test_what_the_row_of_the_group_leaves_open_is_said(
    tmp_path: Path, capsys: Capture, code: str, values: dict[str, Any]
) -> None:
    assert code in gaps(tmp_path, capsys, **values)


def test_of_a_group_without_gaps_only_the_reasons_are_inferred(
    tmp_path: Path, capsys: Capture
) -> None:
    assert gaps(tmp_path / "a", capsys) == {"not_evaluated", "reasons"}
    write(tmp_path / "b", rebalances=[rebalance_row(cause_posterior=None)])
    assert page(tmp_path / "b", capsys)["Not known"] == [
        "- Verdict, shape and cause: the rules have not evaluated the group at this moment."
    ]


@pytest.mark.parametrize("status", list(STATUSES))
def test_a_partition_whose_lag_is_not_known_says_why(
    tmp_path: Path, capsys: Capture, status: str
) -> None:
    rows = [partition_row("checkout", "orders", n, status) for n in (4, 5, 7)]
    write(tmp_path, partition_status=partitions(*rows))
    line = f"- Lag of 3 partitions (orders 4-5, 7): {STATUSES[status]}."
    assert line in page(tmp_path, capsys)["Not known"]


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("no_commit", {"status": "no_commit"}),
        ("censored", {"time_lag_censored": True}),
        ("untimed", {"time_lag_seconds": None, "time_lag_censored": None}),
    ],
)
def test_a_partition_whose_time_lag_is_open_says_why(
    tmp_path: Path, capsys: Capture, code: str, values: dict[str, Any]
) -> None:
    write(tmp_path, partition_status=partitions(partition_row("checkout", "orders", 4, **values)))
    assert code in codes(data(tmp_path, capsys))


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("no_member_rows", []),
        ("assignment", [*members()[:2], member_row(3, None)]),
        ("topic_names", [*members()[:2], member_row(3, [(None, 0)])]),
    ],
)
def test_a_member_whose_assignment_is_open_says_why(
    tmp_path: Path, capsys: Capture, code: str, rows: list[Row]
) -> None:
    write(tmp_path, group_members=rows)
    assert code in codes(data(tmp_path, capsys))


def test_a_member_of_which_nothing_is_recorded_is_unknown_and_not_idle(
    tmp_path: Path, capsys: Capture
) -> None:
    write(tmp_path, group_members=[member_row(1, None)], group_status=[group(members=1)])
    assert page(tmp_path, capsys)["Members"][1].split() == [
        "c1",
        "10.0.0.1",
        "-",
        "unknown",
        "unknown",
        "unknown",
    ]


def test_tables_that_an_older_job_wrote_leave_rebalances_unknown(
    tmp_path: Path, capsys: Capture
) -> None:
    rows = {"group_status": [group(rebalances_total=None)], "partition_status": partitions()}
    publish(tmp_path, rows, without=["rebalances", "group_members"])
    found = data(tmp_path, capsys)
    assert (found["rebalances"], found["members"]) == (None, None)
    assert {"older_job", "no_member_rows"} <= codes(found)
    shown = page(tmp_path, capsys)
    assert (shown["Last rebalances"], shown["Members"]) == (["unknown"], ["unknown"])


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ([], "billing cannot be evaluated: none of its lag is known"),
        (
            [{"code": "MONITOR_BLIND", "role": "primary"}],
            f"billing cannot be evaluated: {BLIND}",
        ),
        (
            [{"code": "EMPTY_WITH_LAG", "role": "primary"}],
            (
                "billing cannot be evaluated now; open since before: records wait and the group "
                "has no member"
            ),
        ),
    ],
)
def test_a_group_without_any_known_lag_does_not_keep_up(found: list[Row], line: str) -> None:
    window = {
        "members": 2,
        "lag_known": None,
        "partitions_material": 0,
        "status": "stale",
        "scale_verdict": "UNKNOWN_INPUT",
    }
    diagnosis = Diagnosis(NOW, 0, [window], found, 0)
    assert (
        headline(
            cast(
                "Any",
                SimpleNamespace(group={"members": 2, "group": "billing"}, diagnosis=diagnosis),
            )
        )
        == line
    )


@pytest.mark.parametrize(
    ("verdict", "course"),
    [("NO_STALLED", ", stalled"), ("NO_UNHEALTHY_MEMBER", " and going up and down")],
)
def test_lag_of_partitions_that_are_stalled_is_not_said_to_swing(verdict: str, course: str) -> None:
    window = {
        "lag_known": 700, "lag": 700, "partitions_material": 2, "partitions_total": 6,
        "top_partitions": [0, 1],
        "members": 2, "status": "ok", "scale_verdict": verdict, "trend": "sawtooth",
        "shape": "concentrated",
        "shape_raw": "concentrated", "scale_reason": {},
        "max_time_lag_seconds": 30.0, "time_lag_censored": False, "topic": "orders", "flags": [],
    }  # fmt: skip
    rows = [
        {
            "topic": "orders",
            "status": "ok",
            "lag": 700,
            "time_lag_seconds": 30.0,
            "time_lag_censored": False,
        }
    ]
    evaluated = Diagnosis(NOW, 0, [window], [], 0)
    page_of = headline(
        cast(
            "Any",
            SimpleNamespace(
                group={"group": "billing", "members": 2}, diagnosis=evaluated, partitions=rows
            ),
        )
    )
    assert (
        page_of
        == f"billing is 30 s behind on 2 partitions of 6{course}: adding consumers would NOT help"
    )
