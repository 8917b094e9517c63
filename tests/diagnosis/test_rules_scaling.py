"""Rules D70 to D75: scaling and commits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diagnosis.rebalance_rows import BEGIN, NOW, WINDOWS, Life, at, member, pods, series
from laggard.diagnosis.history.frames import Memory, Scaled, Track
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules import clients, scaling
from laggard.diagnosis.rules.registry import rules_of
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.signals.change_effects import newest_scale_out
from laggard.diagnosis.signals.group import Signals

BY_CODE = {rule.code: rule for rule in (*rules_of(scaling), *rules_of(clients))}
OLD, NEW = pods(1, 2, 3, 4), pods(5, 6, 7, 8)


def evaluate(code: str, signals: Signals) -> list[Observation]:
    found: list[Observation] = BY_CODE[code].check(signals)
    assert {each.code for each in found} <= {code}
    return found


def scaled(
    now: float = 3000,
    lag: float = 1000.0,
    *,
    busy: bool = True,
    consume: float = 500.0,
    trend: str = "flat",
    **material: int,
) -> list[Observation]:
    """4 → 8 members at 1800 s; lag and consumption are 1 000 and 500/s per partition before."""
    life = Life().generation(-7000, *OLD).generation(1800, *OLD, *NEW)
    ends = now - 60.0 * np.arange(WINDOWS - 1, -1, -1)
    topic = series(
        envelope=np.where(ends <= 1800, 1000.0, lag), lag=1000.0, lag_min=1000.0 if busy else 0.0,
        consume=np.where(ends <= 1800, 500.0, consume), trend=trend,
    )  # fmt: skip
    members = {
        slot: member(slot, material.get("fresh", 1) if slot in NEW else 1) for slot in (*OLD, *NEW)
    }
    return evaluate(
        "SCALE_OUT_FUTILE", life.signals(now, topics=[topic], members=members, is_material=True)
    )


def test_new_members_that_consume_no_more_are_futile() -> None:
    (found,) = scaled()
    assert (found.state, found.evidence["elasticity"]) == ("holds", 0)
    assert (found.evidence["members_before"], found.evidence["members_after"]) == (4, 8)
    assert scaled(consume=1000.0) == []


def test_new_members_without_lagging_partitions_are_futile_whatever_is_consumed() -> None:
    (found,) = scaled(consume=1000.0, fresh=0)
    assert found.evidence["new_members_with_lag"] == 0


def test_a_lag_that_fell_by_a_tenth_was_helped() -> None:
    assert scaled(lag=900.0) == []
    assert len(scaled(lag=901.0)) == 1


def test_a_lag_that_drains_may_still_be_helped() -> None:
    assert [each.state for each in scaled(trend="draining")] == ["fails"]


def test_where_elasticity_is_unknown_members_that_lag_prove_nothing() -> None:
    assert scaled(busy=False) == []


@pytest.mark.parametrize(("now", "expected"), [(2099, 0), (2100, 1), (3600, 1), (3601, 0)])
def test_a_scale_out_is_evaluated_from_five_minutes_to_half_an_hour_after(
    now: float, expected: int
) -> None:
    assert len(scaled(now, fresh=0)) == expected


def hours_after(
    *, scaled: Scaled | None = None, opened_ms: int | None = 1, trend: str = "flat", **columns: Any
) -> Signals:
    """4 → 8 members three hours ago, with what was made of it then; 1 000/s are consumed in all
    since.
    """
    life = Life().generation(-9000, *OLD, *NEW)
    track = Track("SCALE_OUT_FUTILE", "", (), "", 0, opened_ms=opened_ms)
    topic = series(lag=1000.0, envelope=1000.0, lag_min=1000.0, consume=500.0, trend=trend)
    columns = {"is_material": True, "memory": Memory(scaled=scaled, tracks=(track,))} | columns
    return life.signals(3000, topics=[topic], **columns)


def test_an_open_finding_lasts_while_the_lag_does_not_fall_and_the_members_stay() -> None:
    (found,) = evaluate("SCALE_OUT_FUTILE", hours_after())
    assert found.evidence == {"lag_records": 2000.0}
    assert evaluate("SCALE_OUT_FUTILE", hours_after(opened_ms=None)) == []
    assert evaluate("SCALE_OUT_FUTILE", hours_after(trend="draining")) == []
    assert evaluate("SCALE_OUT_FUTILE", hours_after(is_material=False)) == []
    fewer = Life().generation(-9000, *OLD, *NEW).generation(1000, *OLD)
    assert (
        evaluate("SCALE_OUT_FUTILE", replace(hours_after(), membership=fewer.membership(3000)))
        == []
    )


@pytest.mark.parametrize(("then", "is_known"), [(900.0, True), (800.0, False)])
def test_what_members_brought_is_known_until_all_together_do_more(
    then: float, *, is_known: bool
) -> None:
    scaled = Scaled(5, 0.1, then)
    assert newest_scale_out(hours_after(scaled=scaled)) == (scaled if is_known else None)


def test_what_members_brought_is_forgotten_with_the_lag_and_with_another_change() -> None:
    signals = hours_after(scaled=Scaled(5, 0.1, 1000.0))
    assert newest_scale_out(signals) is not None
    assert newest_scale_out(replace(signals, is_material=False)) is None
    fewer = Life().generation(-9000, *OLD, *NEW).generation(1000, *OLD)
    assert newest_scale_out(replace(signals, membership=fewer.membership(3000))) is None


def swings(number: int) -> list[Observation]:
    life = Life().generation(10, *OLD)
    for index in range(number):
        life.generation(900 + 300 * index, *(OLD if index % 2 else (*OLD, *NEW)))
    return evaluate("SCALE_OSCILLATION", life.signals())


def test_four_alternating_changes_in_an_hour_are_an_oscillation() -> None:
    (found,) = swings(4)
    assert (found.state, found.evidence["net_changes"]) == ("holds", 4)
    assert (found.evidence["fewest_members"], found.evidence["most_members"]) == (4, 8)
    assert swings(3) == []


def test_one_member_that_crashes_again_and_again_is_no_oscillation() -> None:
    """Now and then it restarts before its dead self is missed, so that there is one more for a
    while.
    """
    last, beside = OLD[-1], OLD[-1].replace("#0", "#1")
    life = Life().generation(10, *OLD)
    for number in range(35):
        more = (beside,) if number in (10, 25) else ()
        life.generation(1900 + 45 * number, *OLD, *more, restarted=[last])
    signals = life.signals()
    assert len(signals.membership.scale_events) == 4
    assert evaluate("SCALE_OSCILLATION", signals) == []


@pytest.mark.parametrize(
    ("reason", "begin", "is_swinging"),
    [("poll_timeout", 300, False), ("session_expiry", 300, True), ("poll_timeout", -30_000, True)],
)
def test_members_that_poll_timeouts_evict_now_and_then_are_no_oscillation(
    reason: str, begin: float, *, is_swinging: bool
) -> None:
    """A member that nobody removed rejoins; one that a scale-in killed stops its
    heartbeats, too.
    """
    life = Life(timeout=60).generation(begin - 290, *OLD)
    for number, last in enumerate(OLD[2:]):
        rest = [each for each in OLD if each != last]
        life.generation(begin + 120 * number, *rest, of_row={"cause_posterior": {reason: 0.9}})
        life.generation(begin + 30 + 120 * number, *OLD)
    for index in range(4):  # of these it is not known why
        life.generation(900 + 420 * index, *(OLD if index % 2 else OLD[:2]))
    signals = life.signals()
    assert len(signals.membership.scale_events) >= 4
    assert (evaluate("SCALE_OSCILLATION", signals) != []) == is_swinging


def test_a_plan_that_goes_up_and_down_once_is_no_oscillation() -> None:
    life = Life().generation(10, *OLD).generation(600, *OLD, *NEW[:2]).generation(3000, *OLD)
    assert evaluate("SCALE_OSCILLATION", life.signals()) == []


def woken(empty: float = 1200, done: float = 20_000, **policy: Any) -> list[Observation]:
    """12 partitions at 20/s; no members until 2400 s, and so much left per partition since."""
    life = Life().generation(10, *OLD[:2]).generation(2400 - empty).generation(2400, *OLD[:2])
    ends = 60.0 * np.arange(1, WINDOWS + 1)
    end = 20.0 * ends
    committed = np.where(
        ends <= 2400 - empty, end, np.where(ends <= 2400, 20.0 * (2400 - empty), end - done)
    )
    topic = series(
        partitions=12, floor=201, end=end, committed=committed, lag=end - committed, produced=1200.0
    )
    return evaluate("SCALE_ZERO_COLD_START", life.signals(topics=[topic], policy=Policy(**policy)))


def test_a_group_that_wakes_up_tells_how_long_it_slept_and_what_came_meanwhile() -> None:
    (found,) = woken()
    assert (found.state, found.severity) == ("holds", "info")
    assert found.evidence["backlog_records"] == pytest.approx(288_000, rel=0.01)
    assert (found.evidence["cold_seconds"], found.evidence["empty_seconds"]) == (1200, 1200)
    assert found.evidence_text["scale_to_zero"] == "not declared"


def test_a_group_that_has_caught_up_is_awake() -> None:
    assert woken(done=0) == []


def test_a_short_sleep_counts_only_where_it_is_declared() -> None:
    assert woken(empty=300) == []
    assert len(woken(empty=300, scale_to_zero=True, done=5_000)) == 1


def test_a_backlog_that_grows_after_the_return_is_no_cold_start() -> None:
    assert [each.state for each in woken(done=24_001)] == ["fails"]


def idle(busy_minutes: int, members: int = 2, **policy: Any) -> list[Observation]:
    rows = [
        {
            "window_start": BEGIN + number * (at(60) - at(0)),
            "window_end": BEGIN + (number + 1) * (at(60) - at(0)),
            "members": members,
            "consumed": 10 if number < busy_minutes else 0,
            "lag_known": 0,
        }
        for number in range(1440)
    ]
    signals = (
        Life()
        .generation(10, *OLD[:members])
        .signals(baseline=lambda: {"orders": rows}, policy=Policy(**policy))
    )
    return evaluate("OVERPROVISIONED_IDLE", signals)


def test_a_day_of_windows_is_read_once_an_hour() -> None:
    def reads() -> Any:
        raise AssertionError("read")

    with pytest.raises(AssertionError, match="read"):
        evaluate("OVERPROVISIONED_IDLE", Life().generation(10, *OLD[:2]).signals(baseline=reads))
    assert (
        evaluate(
            "OVERPROVISIONED_IDLE",
            Life().generation(10, *OLD[:2]).signals(now=NOW + 60, baseline=reads),
        )
        == []
    )


def test_two_members_that_are_busy_for_an_hour_and_a_half_a_day_are_too_many() -> None:
    (found,) = idle(90)
    assert found.evidence["replica_hours"] == pytest.approx(48)
    assert found.evidence["idle_replica_hours"] == pytest.approx(45)
    assert idle(144) == []
    assert idle(90, members=1) == []


def test_a_declared_standby_waits_on_purpose() -> None:
    assert [each.state for each in idle(90, hot_standby=True)] == ["fails"]


def churn(commits: float, noops: float) -> list[Observation]:
    return evaluate(
        "COMMIT_IDLE_CHURN", Life().signals(topics=[series(commits=commits, noops=noops)])
    )


def test_an_hour_of_commits_that_repeat_the_offset_is_churn() -> None:
    (found,) = churn(12, 12)
    assert (found.evidence["noop_share"], found.evidence["noop_commits"]) == (1.0, 12 * 2 * 60)
    assert churn(12, 10) == []  # below 90 %
    assert churn(8, 8) == []  # 960 of them


def test_a_partition_that_gets_fifty_commits_a_second_is_reported_and_one_with_ten_is_not() -> None:
    def rate(per_second: float) -> list[Observation]:
        return evaluate(
            "COMMIT_RATE_HIGH", Life().signals(topics=[series(commits=60 * per_second)])
        )

    assert [each.evidence["commits_per_second_and_partition"] for each in rate(50)] == [50]
    assert rate(10) == []
