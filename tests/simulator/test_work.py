"""What counts as work on a partition, and when nobody is at it."""

from __future__ import annotations

from simulator.work import Batch, Gap, GivenUp, find_gaps, find_lasting


def test_what_is_done_again_counts_as_not_done() -> None:
    crashed = [Batch("a", 0, 100, 0, 100), Batch("a", 100, 200, 100, 200)]  # committed: 150
    assert find_lasting([*crashed, Batch("b", 1000, 1100, 150, 250)]) == [
        Batch("a", 0, 100, 0, 100),
        Batch("a", 100, 150, 100, 150),
        Batch("b", 1000, 1100, 150, 250),
    ]


def test_a_partition_that_is_revoked_is_served_up_to_then() -> None:
    work = [Batch("a", 0, 100, 0, 100), Batch("b", 900, 1000, 100, 200)]
    (gap,) = find_gaps(work, [GivenUp("a", 500, at_work=True)])
    assert (gap.begin_ms, gap.first_ms) == (500, 900)


def test_a_partition_whose_owner_falls_silent_is_stalled_from_its_last_record_on() -> None:
    work = [
        Batch("a", 0, 100, 0, 100),
        Batch("b", 900, 1000, 100, 200),
        Batch("b", 1000, 1100, 200, 300),
    ]
    late = GivenUp("a", 1050, at_work=False)  # another one is at work already
    (gap,) = find_gaps(work, [late])
    assert (gap.begin_ms, gap.first_ms) == (100, 900)


def test_a_gap_lasts_as_long_as_nobody_comes() -> None:
    given_up = [GivenUp("a", 200, at_work=True), GivenUp("a", 300, at_work=True)]
    assert find_gaps([Batch("a", 0, 100, 0, 100)], given_up) == [Gap(100, given_up[0], None)]
    assert find_gaps([], given_up) == []
