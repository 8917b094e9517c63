"""Rules D47 to D49 and D60: what rebalances move and stop, and what a deploy costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diagnosis.rebalance_rows import WINDOWS, Life, at, pods, rolled, series
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.signals.change_effects import deploy_row
from laggard.diagnosis.signals.group import Signals

ALL = pods(1, 2, 3, 4)


def evaluate(code: str, signals: Signals) -> list[Observation]:
    found: list[Observation] = BY_CODE[code].check(signals)
    assert {each.code for each in found} <= {code}
    return found


A, B = pods(1, 2)


def test_ping_pong_holds_when_it_repeats_and_one_restart_does_not() -> None:
    life = Life().generation(10, A, B, assigned={A: [0, 1], B: [2, 3]})
    life.generation(2000, A, assigned={A: [0, 1, 2, 3]}).generation(
        2100, A, B, assigned={A: [0, 1], B: [2, 3]}
    )
    assert evaluate("PING_PONG", life.signals()) == []
    life.generation(2500, A, assigned={A: [0, 1, 2, 3]}).generation(
        2600, A, B, assigned={A: [0, 1], B: [2, 3]}
    )
    (found,) = evaluate("PING_PONG", life.signals())
    assert (found.evidence["moved_partitions"], found.evidence["returned_partitions"]) == (8, 6)


def wasteful(
    avoidable: int, cause: str = "replacement", assignor: str = "roundrobin", **of_row: Any
) -> list[Observation]:
    life = Life(assignor=assignor).generation(10, *ALL)
    for second in (1000, 2000, 3000):
        life.generation(
            second, *ALL, of_row={"moved": 10, "avoidable": avoidable, "cause": cause} | of_row
        )
    return evaluate("NON_STICKY_MOVES", life.signals())


def test_a_fifth_of_the_moves_without_need_is_worth_a_note() -> None:
    assert [each.severity for each in wasteful(2)] == ["info"]
    assert wasteful(1) == []
    assert [each.severity for each in wasteful(2, stateful=True)] == ["warn"]


def test_scaling_under_range_moves_what_range_must() -> None:
    assert [each.state for each in wasteful(5, "member_join", "range")] == ["fails"]
    assert [each.state for each in wasteful(5, "member_join", "roundrobin")] == ["holds"]


@pytest.mark.parametrize(
    ("partitions", "members", "mode", "expected"),
    [
        (100, 10, "eager", 1),
        (99, 10, "eager", 0),
        (100, 9, "eager", 0),
        (100, 10, "cooperative", 0),
    ],
)
def test_an_eager_group_is_large_from_100_partitions_and_10_members(
    partitions: int, members: int, mode: str, expected: int
) -> None:
    slots = pods(*range(members))
    life = Life().generation(-80_000, *slots).generation(3000, *slots)
    signals = life.signals(topics=[series(partitions=partitions)], fact={"rebalance_mode": mode})
    assert len(evaluate("EAGER_LARGE_GROUP", signals)) == expected


def test_a_large_eager_group_that_never_rebalances_is_fine() -> None:
    slots = pods(*range(10))
    signals = (
        Life()
        .generation(10, *slots)
        .signals(topics=[series(partitions=100)], fact={"rebalance_mode": "eager"})
    )
    assert evaluate("EAGER_LARGE_GROUP", signals) == []


def spike(
    factor: float = 3.0, arrival: float = 100.0, now: float = 3500, **policy: Any
) -> list[Observation]:
    """A deploy from 3200 to 3340; the highest lag of the windows in it is so many times that of
    before.
    """
    ends = now - 60.0 * np.arange(WINDOWS - 1, -1, -1)
    during = (ends > 3200) & (ends <= 3400)
    topic = series(
        lag=np.where(during, 500 * factor, 500.0), lag_max=np.where(during, 500 * factor, 500.0),
        envelope=np.where(during, 500 * factor - 500, 0.0),
        arrival=np.where(during, arrival, 100.0), floor=1001,
    )  # fmt: skip
    return evaluate("DEPLOY_LAG_SPIKE", rolled().signals(now, Policy(**policy), [topic]))


def test_a_deploy_whose_lag_rises_costs_something() -> None:
    (found,) = spike()
    assert (found.state, found.severity) == ("holds", "info")
    assert (
        found.evidence["rebalances"],
        found.evidence["peak_lag_records"],
        found.evidence["slots"],
    ) == (8, 3000, 4)
    # two partitions, 1 000 records above what is usual, in three windows of a minute; over 200
    # records/s
    assert found.evidence["lag_record_seconds"] == 2 * 1000 * 3 * 60
    assert found.evidence["lag_seconds"] == 2 * 1000 * 3 * 60 / 200


@pytest.mark.parametrize(("extra", "expected"), [(0.0, 0), (700.0, 0), (800.0, 1)])
def test_lag_that_grows_on_as_before_is_not_of_the_deploy(extra: float, expected: int) -> None:
    """Both together have 6 000 records before it, 500 more each minute, and twice so many more
    while it runs.
    """
    ends = 3600 - 60.0 * np.arange(WINDOWS - 1, -1, -1)
    grown = np.clip(3000 + (ends - 3180) / 60 * 250, 0, None) + extra * (
        (ends > 3200) & (ends <= 3400)
    )
    topic = series(lag=grown, lag_max=grown, envelope=grown, arrival=100.0)
    assert len(evaluate("DEPLOY_LAG_SPIKE", rolled().signals(3600, topics=[topic]))) == expected


def test_a_deploy_that_lag_does_not_show_costs_nothing() -> None:
    assert spike(1.2) == []


@pytest.mark.parametrize(("delayed", "expected"), [(249, 0), (250, 1), (None, 0)])
def test_what_a_rebalance_kept_waiting_tells_of_a_rise_between_two_polls(
    delayed: int | None, expected: int
) -> None:
    life = rolled()
    # a quarter of the 1 000 records that are usual is 250
    life.rebalances[3]["records_delayed"] = delayed
    topic = series(lag=500.0, lag_max=500.0, envelope=0.0, arrival=100.0, floor=1001)
    assert len(evaluate("DEPLOY_LAG_SPIKE", life.signals(3500, topics=[topic]))) == expected


def test_a_deploy_is_a_warning_against_an_objective_or_far_above_the_floor() -> None:
    assert spike(slo_time_lag_seconds=180.0)[0].severity == "info"
    assert spike(slo_time_lag_seconds=179.0)[0].severity == "warn"
    assert spike(12.0)[0].severity == "warn"


def test_arrivals_that_rise_with_the_deploy_explain_the_lag() -> None:
    assert spike(arrival=150.0)[0].guards == {"steady_arrivals": "fail"}
    assert spike(arrival=149.0)[0].state == "holds"


def test_restarts_that_static_membership_absorbed_are_no_spike() -> None:
    life = Life().generation(10, *(ids := [f"s-{number}" for number in range(4)]))
    for index, slot in enumerate(ids):
        life.static_return(3200 + 45 * index, slot, "new", "/10.0.0.1")
    topic = series(lag_max=np.where(np.arange(WINDOWS) > 50, 5000.0, 500.0), lag=500.0)
    assert evaluate("DEPLOY_LAG_SPIKE", life.signals(3400, topics=[topic])) == []


def test_the_row_of_a_deploy_has_its_rebalances_and_what_it_cost() -> None:
    ends = 3600 - 60.0 * np.arange(WINDOWS - 1, -1, -1)
    lag = np.where((ends > 3200) & (ends <= 3400), 1500.0, 500.0)
    signals = rolled().signals(topics=[series(lag=lag, lag_max=lag, envelope=lag, arrival=100.0)])
    (deploy,) = signals.membership.deploys
    row = deploy_row(signals, deploy)
    assert (row["started_at"], row["ended_at"]) == (at(3200), at(3340))
    assert (row["rebalance_ids"], row["rebalances"]) == (
        [f"r{number}" for number in range(2, 10)],
        8,
    )
    assert (row["batches"], row["slots"], row["static_share"], row["rebalance_mode"]) == (
        4,
        4,
        0.0,
        "eager",
    )
    assert (row["lag_before"], row["peak_lag"], row["is_spike"]) == (1000, 3000, True)
    # end of the first whole window with lag as before
    assert row["recovery_seconds"] == 3420 - 3340


def test_the_cost_of_a_deploy_is_unknown_where_lag_is() -> None:
    signals = rolled().signals(topics=[series()])
    row = deploy_row(signals, signals.membership.deploys[0])
    assert (
        row["peak_lag"],
        row["lag_record_seconds"],
        row["recovery_seconds"],
        row["is_spike"],
    ) == (
        None,
        None,
        None,
        False,
    )


def test_a_rise_that_is_no_lag_of_a_group_is_no_spike() -> None:
    def spikes(records: float) -> bool:
        ends = 3600 - 60.0 * np.arange(WINDOWS - 1, -1, -1)
        lag = np.where((ends > 3200) & (ends <= 3400), records, 0.0)
        signals = rolled().signals(
            topics=[series(lag=lag, lag_max=lag, envelope=lag, arrival=100.0)]
        )
        return bool(deploy_row(signals, signals.membership.deploys[0])["is_spike"])

    assert spikes(50)
    assert not spikes(49)  # two partitions: 98 records
