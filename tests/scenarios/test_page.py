"""The page's numbers, against runs counted by hand."""

from __future__ import annotations

from scenarios.page import Result, alarms, by_code, ninth
from scenarios.scoring import Scored


def test_the_worst_alarm_is_reported_not_the_mean() -> None:
    runs = [
        Scored("SC01", 1, hits={"CAPACITY_SHORTAGE": 2.0, "ARRIVAL_SKEW": 0.0}),
        Scored("SC01", 2, hits={"CAPACITY_SHORTAGE": 4.0}, false={"SLOW_MEMBER"}),
        Scored("SC06", 1, misses={"SLOW_MEMBER"}),
        Scored("SC06", 2, hits={"SLOW_MEMBER": 1.0}, false={"ARRIVAL_SKEW"}),
    ]
    reported = alarms(runs)  # SLOW_MEMBER: two runs that must, one found, one false elsewhere
    assert (
        reported == "- alarms: 2, each in 2 runs or more; least precision 0.500, least recall 0.500"
    )
    assert alarms([Scored("LA1", 1)]) == "- no run with an alarm"


def test_codes_tell_both_delays_and_where_they_were_wrong() -> None:
    runs = [
        Result(Scored("SC01", seed, hits={"CAPACITY_SHORTAGE": float(seed)}))
        for seed in range(1, 11)
    ]
    runs.append(Result(Scored("LA1", 1, false={"CAPACITY_SHORTAGE"})))
    (row,) = by_code(runs)[2:]
    assert row == "| CAPACITY_SHORTAGE | yes | 10 | 0.909 | 1.000 | 5, 9 | 0 | LA1 wrong 1 |"


def test_nine_in_ten_do_not_exceed_it() -> None:
    assert ninth(range(1, 11)) == 9
    assert ninth([7.0]) == 7.0
    assert ninth([1.0, 2.0]) == 2.0
