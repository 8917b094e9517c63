"""Groups whose answer can be known soon: by peers, by readers that resumed, by what retention left;
drawn at random.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import Fluid, evaluate
from diagnosis.groups import PARAMETERS, signals_of, topic_signals
from diagnosis.test_stalls import turns
from diagnosis.test_transitions import GROUPS, drawn, verdicts
from laggard.diagnosis.history.frames import Memory, Track
from laggard.diagnosis.signals import compute, slow
from laggard.diagnosis.signals.attribution import attribute
from laggard.diagnosis.signals.rates import positions
from laggard.diagnosis.signals.rosters import CrashLoop
from laggard.diagnosis.verdict import reasons
from laggard.diagnosis.verdict.decisions import scale_verdict
from laggard.diagnosis.verdict.sizing import size

BEGIN = 20
WINDOWS = 60


def codes(group: Fluid, first: int = 12) -> dict[str, int]:
    """Findings that opened, with the window after which they did."""
    found = evaluate(group.tables(), first=first).findings
    return {
        row["code"]: int((row["at"] - group.lag_rows[0]["window_start"]).total_seconds() // 60)
        for row in found[::-1]
    }


@pytest.mark.examples
def test_a_slow_member_is_compared_with_those_that_have_as_much_to_do() -> None:
    """Most members have one partition, a few two: the slow one is among these."""
    for seed in range(GROUPS):
        chance = random.Random(f"peers {seed}")
        members, more = chance.choice((6, 7, 8)), 3
        each = chance.uniform(40, 200)
        arrival = np.full((members + more, 45), each)
        owned = np.arange(members + more) * members // (members + more)
        two = [member for member in range(members) if (owned == member).sum() == 2]
        capacity = np.full((members, 45), 5 * each)
        capacity[chance.choice(two), BEGIN:] = chance.uniform(0.5, 0.8) * 2 * each
        found = verdicts(Fluid(arrival, capacity, chance.randrange(1000)), BEGIN + 6)

        # YES: it asked for more members in 10 of 10
        assert set(found) == {"NO_UNHEALTHY_MEMBER"}, (seed, found)


def test_a_quiet_partition_that_a_slow_member_reads_in_time_does_not_hide_it() -> None:
    """Four members of four partitions; of those of the slow one, one gets little
    and does not lag.
    """
    arrival = [25.0] * 16
    arrival[3] = 10.0
    lag = [4000.0, 4000.0, 4000.0, 500.0] + [100.0] * 12
    shape = {
        "slots": [f"m{place // 4}" for place in range(16)],
        "arrival": arrival,
        "shape": "mixed",
    }
    consume = [17.0, 17.0, 17.0, 10.0] + [25.0] * 12
    signals = signals_of(topic_signals(lag, consume=consume, **shape), capacity=61.0, busy=["m0"])
    members = {name: replace(each, seen=100.0) for name, each in signals.members.items()}
    causes = attribute(replace(signals, members=members))

    assert [(each.label, each.subject) for each in causes] == [("member", "m0")]


def test_a_partition_with_rare_commits_costs_more_if_each_leaves_more_than_the_one_before() -> None:
    """Four members of one partition each that commit each two minutes: in one interval less than a
    commit is late.
    """
    rises = np.where(
        np.arange(WINDOWS) % 2 == 0, 600.0 * np.maximum(0, np.arange(WINDOWS) - 49), nan
    )
    left = np.where(np.arange(WINDOWS) % 2 == 0, 50.0, nan)
    history = {
        "envelope": np.stack([left, left, rises, left]),
        "consume": np.array([[60.0], [60.0], [50.0], [60.0]]),
    }
    shown: dict[str, Any] = {
        "interval": 120.0,
        "arrival": 60.0,
        "floor": 14_000.0,
        "consume": [60.0, 60.0, 50.0, 60.0],
    }
    topic = topic_signals(
        [100.0, 100.0, 6000.0, 100.0], slots=["m0", "m1", "m2", "m3"], history=history, **shown
    )
    topic = replace(topic, is_material=np.array([False, False, True, False]))

    signals, every = signals_of(topic), np.ones(4, bool)
    assert slow.costly_places(signals, topic, every) == ((2,), False)
    loop = CrashLoop("m2", frozenset({"m2"}), (), (), is_given_up=False, has_returned=True)
    loops = replace(
        signals, membership=replace(signals.membership, crash_loops=[loop], place_of={"m2": "m2"})
    )
    # who starts again and again reads less of anything
    assert slow.costly_places(loops, topic, every) == ((), False)


@pytest.mark.parametrize(
    ("interval", "seconds"), [(30.0, 20.0), (90.0, 50.0), (120.0, 10.0), (180.0, 170.0)]
)
def test_a_reader_that_has_resumed_may_have_read_for_a_commit_interval_before_its_first_commit(
    interval: float, seconds: float
) -> None:
    """It stood for long, and reads 100 records/s again; since its first commit it is so many
    seconds, or intervals.
    """
    ends = 60.0 * np.arange(1, WINDOWS + 1)
    resumed = 60.0 * WINDOWS - seconds - 3 * interval
    first = resumed + interval
    commits = [first + interval * number for number in range(3)]
    newest = np.array([max((at for at in commits if at <= end), default=0.0) for end in ends])
    done = np.where(newest > 0, 100.0 * (newest - resumed), 0.0)
    frozen = np.where(newest > 0, ends - newest, ends + 600.0)
    history: dict[str, Any] = {"consumed": np.diff(done, prepend=0.0), "frozen": frozen}
    known = positions(topic_signals([1e6], history=history, interval=interval).frame, 60)

    for windows in (1, 2, 5):
        # up to 8 times that: it took a stand for the beginning
        assert known.newest_rates(windows)[0] <= 101.0


def test_a_rate_begins_with_the_first_commit_past_deleted_records() -> None:
    """Of the window in which a reader jumped over them it is not known what it read, but when it
    committed.
    """
    consumed = np.zeros(WINDOWS)
    # 45 s after its newest commit in the jump, until 10 s ago
    consumed[-2:] = nan, 100.0 * (45.0 + 50.0)
    frozen = np.where(np.arange(WINDOWS) < WINDOWS - 2, 1000.0 + 60.0 * np.arange(WINDOWS), 0.0)
    frozen[-2:] = 45.0, 10.0
    history = {"consumed": consumed, "frozen": frozen, "commits": 1.0}
    known = positions(topic_signals([1e5], history=history, interval=5.0).frame, 60)

    # 190 if the jump had been at the window's end
    assert known.newest_rates(1) == pytest.approx([100.0])
    assert known.resumed_rates() == pytest.approx([100.0])


def test_what_was_reset_while_nobody_owned_it_was_no_turn_of_its_owner() -> None:
    """A partition stood for 20 minutes, its group was stopped for a reset of offsets, and it stands
    again.
    """
    assert turns(540.0, reset=True) == ["repeating", "", ""]


@pytest.mark.examples
def test_a_backlog_after_an_outage_of_all_members_shows_soon_what_they_can_do() -> None:
    late = []
    for seed in range(GROUPS):
        chance = random.Random(f"outage {seed}")
        arrival, capacity, one = drawn(chance, chance.choice((3, 4, 6)), chance.choice((2, 3)), 60)
        capacity[:, BEGIN : BEGIN + chance.randint(15, 22)] = 0.0
        again = int(np.flatnonzero(capacity[0] == 0)[-1]) + 1
        found = evaluate(
            Fluid(arrival, capacity, chance.randrange(1000)).tables(), first=12
        ).windows
        known = [row["capacity"] for row in found[again - 12 :]]
        late.append(next(number for number, each in enumerate(known) if each is not None))
        assert all(each == pytest.approx(one, rel=0.15) for each in known if each is not None), (
            seed,
            known,
        )

    assert max(late) <= 3, late  # 5 and more before


@pytest.mark.examples
def test_what_only_slow_members_can_do_is_not_the_capacity_of_a_member() -> None:
    """Up to half of the members do a tenth to a third of what they could before; the others are
    never busy.
    """
    known = 0
    for seed in range(GROUPS):
        chance = random.Random(f"only slow ones are busy {seed}")
        members = chance.choice((2, 3, 4, 6))
        arrival, capacity, _ = drawn(chance, members, chance.choice((1, 2, 3)), 45)
        slow_ones = chance.sample(range(members), chance.randint(1, members // 2))
        capacity[slow_ones, BEGIN:] *= chance.uniform(0.1, 0.35)
        found = evaluate(
            Fluid(arrival, capacity, chance.randrange(1000)).tables(), first=12
        ).windows
        known += sum(row["capacity"] is not None for row in found)
        assert not {row["scale_verdict"] for row in found} & {"YES", "YES_PARTIAL"}, (seed, found)

    assert known == 0  # a tenth to a third of what any new member would do


def test_a_group_whose_members_have_left_keeps_the_capacity_that_they_have_shown() -> None:
    topic = topic_signals([9000.0] * 4, slots=[""] * 4, history={"consumed": 0.0})
    frame = signals_of(topic, member_count=0, fact={"generation": 7, "group_epoch": None}).frame
    samples = tuple((frame.now_ms - 60_000 * age, 100.0) for age in range(20, 10, -1))

    assert compute.signals_of(frame, Memory(busy={"m0": samples}), PARAMETERS)[0].capacity == 100.0


@pytest.mark.parametrize(
    ("slow_one", "lacks"), [({"m0": 6.0}, "capacity_known"), ({}, "busy_windows_needed")]
)
def test_an_unknown_capacity_names_what_it_lacks(slow_one: dict[str, float], lacks: str) -> None:
    slots = [f"m{n // 2}" for n in range(6)]
    topic = topic_signals([30_000.0] * 6, slots=slots, history={"consumed": 0.0}, shape="spread")
    measured = signals_of(topic, capacity={"m0": nan, "m1": nan, "m2": nan} | slow_one)
    found = scale_verdict(replace(measured, capacity=nan), {}, size(measured))

    assert found.reason == reasons.LOAD_UNKNOWN
    assert {"capacity_known", "busy_windows_needed"} & found.numbers.keys() == {lacks}


@pytest.mark.examples
def test_a_member_that_is_busy_as_it_has_more_to_read_shows_the_capacity_of_all() -> None:
    for seed in range(GROUPS):
        chance = random.Random(f"only one has much to read {seed}")
        members, each = chance.choice((3, 4, 6)), 2
        arrival, capacity, one = drawn(chance, members, each, 45)
        arrival[:each, BEGIN:] *= chance.uniform(2.3, 3.0)
        found = evaluate(
            Fluid(arrival, capacity, chance.randrange(1000)).tables(), first=12
        ).windows

        assert found[-1]["capacity"] == pytest.approx(one, rel=0.1), seed


@pytest.mark.parametrize(("lag", "expected"), [(2000.0, "NOT_NEEDED"), (30_000.0, "UNKNOWN")])
def test_little_lag_of_a_group_whose_capacity_is_unknown_needs_nobody_yet(
    lag: float, expected: str
) -> None:
    """100 records/s: the floor is 1000 records, and 6000 arrive in a window."""
    history = {"lag_min": lag, "consumed": 0.0}
    signals = signals_of(
        topic_signals([lag] * 6, slots=[f"m{n // 2}" for n in range(6)], history=history)
    )
    found = scale_verdict(signals, {}, size(signals))

    assert found.code == expected
    assert (found.numbers.get("size_known") == 0) == (expected == "NOT_NEEDED")


@pytest.mark.parametrize("falls_behind", ["it rises", "its trend grows", "it was hardly watched"])
def test_little_lag_that_may_be_the_beginning_of_more_is_not_said_to_need_nobody(
    falls_behind: str,
) -> None:
    """2000 records as above, but the next window may well have more: adding members may be the
    answer then.
    """
    steps = np.linspace(-3.0, 0.0, 4) * 600
    lags = np.full((6, WINDOWS), 2000.0)
    if falls_behind == "it rises":
        lags[:, -4:] += steps
    trend = "growing" if falls_behind == "its trend grows" else "flat"
    if falls_behind == "it was hardly watched":
        lags[:, :-2] = nan
    history = {"lag_min": lags, "envelope": lags, "consumed": 0.0}
    slots = [f"m{n // 2}" for n in range(6)]
    signals = signals_of(topic_signals([2000.0] * 6, slots=slots, history=history, trend=trend))

    assert scale_verdict(signals, {}, size(signals)).code == "UNKNOWN"


def test_a_group_without_members_needs_some_though_retention_deleted_its_backlog() -> None:
    status = ["ok", *["below_log_start"] * 3]
    topic = topic_signals(
        [nan if each != "ok" else 9000.0 for each in status],
        status=status,
        slots=[""] * 4,
        history={"consumed": 0.0},
    )
    signals = signals_of(topic, member_count=0, state="Empty", fact={"members": 0})
    found = scale_verdict(signals, {}, size(signals))

    assert (found.reason, found.members_desired) == (reasons.NO_MEMBERS, 1)  # UNKNOWN_INPUT before


def test_stalled_partitions_decide_though_most_of_what_they_have_is_deleted() -> None:
    """Two of 24 partitions, of which retention has left 15 000 records each; nothing else lags."""
    status, lag = ["below_log_start"] * 2 + ["ok"] * 22, [nan] * 2 + [50.0] * 22
    history = {"end": 90_000.0, "start": 75_000.0, "lag_min": np.array(lag)[:, None]}
    stalled = {0: "silent", 1: "silent"}
    slots = [f"m{n // 4}" for n in range(24)]
    signals = signals_of(
        topic_signals(
            lag, status=status, stalled=stalled, slots=slots, history=history, shape="none"
        )
    )

    assert scale_verdict(signals, {}, size(signals)).code == "NO_STALLED"  # NOT_NEEDED before


@pytest.mark.examples
def test_a_shortage_is_found_within_five_minutes_where_commits_are_frequent() -> None:
    for seed in range(GROUPS):
        chance = random.Random(f"sudden {seed}")
        arrival, capacity, _ = drawn(chance, chance.choice((3, 4, 5)), chance.choice((2, 3, 4)), 36)
        arrival[:, BEGIN:] *= chance.uniform(1.15, 1.6) / 0.5
        opened = codes(Fluid(arrival, capacity, chance.randrange(1000)))["CAPACITY_SHORTAGE"]

        assert opened <= BEGIN + 5, seed  # 6 to 8 before


@pytest.mark.examples
def test_a_hot_partition_that_wanders_is_no_shortage() -> None:
    for seed in range(GROUPS):
        chance = random.Random(f"wanders {seed}")
        members, partitions = chance.choice((1, 1, 3)), 3
        capacity = np.full((members, 50), chance.uniform(150, 400))
        arrival = np.full((partitions, 50), 0.1 * capacity[0, 0])
        for window in range(BEGIN, 45):
            arrival[(window - BEGIN) // 4 % partitions, window] = (
                chance.uniform(1.3, 1.8) * capacity[0, 0]
            )

        assert "CAPACITY_SHORTAGE" not in codes(Fluid(arrival, capacity, chance.randrange(1000))), (
            seed
        )


@pytest.mark.parametrize(("stood", "is_proven"), [(0.0, True), (600.0, False)])
def test_what_a_stall_left_is_no_proof_that_records_cost_more(
    stood: float, is_proven: bool
) -> None:
    """Of the two partitions of one owner one lags; until two windows ago it stood, or it was always
    read.
    """
    frozen = np.zeros((4, WINDOWS))
    frozen[2, -30:-2] = stood
    shown: dict[str, Any] = {"interval": 10.0, "arrival": 60.0, "consume": [60.0, 60.0, 40.0, 60.0]}
    topic = topic_signals(
        [100.0, 100.0, 40_000.0, 100.0],
        slots=["m0", "m0", "m1", "m1"],
        history={"frozen": frozen},
        **shown,
    )
    signals = signals_of(topic)

    found = slow.costly_places(signals, topic, np.ones(4, bool))
    assert found == (((2,), True) if is_proven else ((), False))


@pytest.mark.parametrize(("stood", "is_found"), [(0.0, True), (900.0, False)])
def test_what_a_stall_left_is_not_worked_slower_until_two_commits_later(
    stood: float, is_found: bool
) -> None:
    """Three members of one partition that commit each three minutes: one stood until four windows
    ago.
    """
    frozen = np.zeros((3, WINDOWS))
    frozen[2, -30:-4] = stood
    history = {"frozen": frozen, "consume": np.array([[60.0], [60.0], [30.0]])}
    shown: dict[str, Any] = {"interval": 180.0, "arrival": 60.0, "consume": [60.0, 60.0, 30.0]}
    topic = topic_signals(
        [100.0, 100.0, 40_000.0], slots=["m0", "m1", "m2"], history=history, **shown
    )
    found = slow.costly_places(signals_of(topic), topic, np.ones(3, bool))

    assert found == (((2,), False) if is_found else ((), False))


def lagging_one_of_two(
    *, consume: float, arrival: float, tracks: tuple[Track, ...] = ()
) -> tuple[int, ...]:
    """Rows that are costly where of each owner's two partitions one of m1 lags, and its sibling
    gets 60 records/s.
    """
    shown: dict[str, Any] = {"interval": 10.0, "arrival": [60.0, 60.0, arrival, 60.0]}
    history = {"consume": np.array([[60.0], [60.0], [consume], [60.0]])}
    shown |= {
        "consume": [60.0, 60.0, consume, 60.0],
        "history": history,
        "slots": ["m0", "m0", "m1", "m1"],
    }
    topic = topic_signals([100.0, 100.0, 40_000.0, 100.0], **shown)
    signals = signals_of(topic)
    signals = replace(signals, memory=replace(signals.memory, tracks=tracks))
    return slow.costly_places(signals, topic, np.ones(4, bool))[0]


def test_a_partition_of_which_as_much_is_read_as_of_its_sibling_is_not_costly() -> None:
    assert lagging_one_of_two(consume=40.0, arrival=60.0) == (2,)
    assert lagging_one_of_two(consume=55.0, arrival=100.0) == (2,)
    assert lagging_one_of_two(consume=62.0, arrival=100.0) == ()  # its owner reads both at one pace


@pytest.mark.parametrize(
    ("subject", "is_open", "costly"), [("m1", True, ()), ("m1", False, (2,)), ("m0", True, (2,))]
)
def test_the_last_partition_that_a_slow_member_drains_is_not_costly(
    subject: str, is_open: bool, costly: tuple[int, ...]
) -> None:
    track = Track("SLOW_MEMBER", "", (), subject, since_ms=0, opened_ms=60_000 if is_open else None)

    assert lagging_one_of_two(consume=40.0, arrival=60.0, tracks=(track,)) == costly


@pytest.mark.parametrize(("seen", "costly"), [(450.0, ()), (510.0, (0, 1)), (nan, (0, 1))])
def test_partitions_are_not_costly_whose_owner_reads_more_than_any_other_ever_did(
    seen: float, costly: tuple[int, ...]
) -> None:
    """Two partitions of one owner lagged with the owner before, too; each other member has one, and
    does not lag.
    """
    owner = np.tile(np.array([["m0"], ["m0"], ["m1"], ["m2"]], object), (1, WINDOWS))
    owner[:2, : WINDOWS - 10] = "m3"
    consume = [250.0, 250.0, 300.0, 300.0]
    history = {"slot": owner, "consume": np.array(consume)[:, None]}
    slots = ["m0", "m0", "m1", "m2"]
    topic = topic_signals(
        [40_000.0, 40_000.0, 100.0, 100.0],
        slots=slots,
        history=history,
        arrival=300.0,
        consume=consume,
    )
    signals = signals_of(topic, busy=["m0"], seen={"m1": seen, "m2": seen})

    assert slow.costly_places(signals, topic, np.ones(4, bool))[0] == costly
