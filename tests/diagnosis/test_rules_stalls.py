"""Silent partitions and whose fault it is; poison pills: what stood first, in the hands of all that
were evicted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diagnosis.rebalance_rows import Life, pods, series
from laggard.diagnosis.history.frames import Memory, Track
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.rules.stalls import partition_stalled, poison_pill_suspect
from laggard.diagnosis.signals.group import Signals, TopicSignals

A, B, C = pods(1, 2, 3)
PUT_OUT = {"cause_posterior": {"poll_timeout": 0.9}}
PARTITIONS = 12
OF_THREE = {A: range(4), B: range(4, 8), C: range(8, 12)}
OF_TWO = {B: range(6), C: range(6, 12)}


def stands(frozen: dict[int, float]) -> TopicSignals:
    """Partitions that have stood for so many seconds; the others move."""
    seconds = np.full((PARTITIONS, 1), 2.0)
    for partition, each in frozen.items():
        seconds[partition] = each
    topic = series(partitions=PARTITIONS, frozen=seconds, committed=700.0, lag=1000.0)
    return replace(topic, is_stalled=seconds[:, 0] >= 60)


def chain(reasons: dict[str, object] | None = None) -> Life:
    """Member A has partitions 0 to 3 and is evicted at 3000 s, then B, which has 0
    to 5, at 3100 s.
    """
    life = Life(timeout=60).generation(10, A, B, C, assigned=OF_THREE)
    life.generation(3000, B, C, assigned=OF_TWO, of_row=reasons or PUT_OUT)
    return life.generation(3100, C, assigned={C: range(12)}, of_row=reasons or PUT_OUT)


def evaluated(life: Life, frozen: dict[int, float]) -> list[Observation]:
    return poison_pill_suspect.check(life.signals(topics=[stands(frozen)]))


def test_the_partition_that_stood_first_is_named_with_its_offset() -> None:
    (found,) = evaluated(chain(), {2: 650, 4: 500, 5: 490, 6: 480, 7: 480})
    assert (found.partitions, found.evidence["committed_offset"]) == ((2,), 700)
    assert (found.evidence["owners_put_out"], set(found.guards.values())) == (2, {"pass"})


def test_what_else_the_owner_of_a_poison_pill_has_waits_for_that_record() -> None:
    """C has 8 to 11: 9 stands with 8 while the pill is open, and by itself if it is not."""
    life = Life(timeout=60).generation(10, A, B, C, assigned=OF_THREE)
    topic = stands({4: 900, 8: 900, 9: 900})
    slots = np.array([[slot] for slot, held in OF_THREE.items() for _ in held], object)
    names = topic.frame.names | {"slot": np.repeat(slots, topic.frame["lag"].shape[1], axis=1)}
    signals = life.signals(3600, topics=[replace(topic, frame=replace(topic.frame, names=names))])
    pill = Track("POISON_PILL_SUSPECT", "orders", (8,), "", since_ms=1, opened_ms=2)

    assert stalled_partitions(signals) == [(4,), (8,), (9,)]
    assert stalled_partitions(replace(signals, memory=Memory(tracks=(pill,)))) == [(4,)]


def stalled_partitions(signals: Signals) -> list[tuple[int, ...]]:
    return [each.partitions for each in partition_stalled.check(signals)]


def test_partitions_that_went_from_hand_to_hand_together_are_named_together() -> None:
    (found,) = evaluated(chain(), {2: 650, 3: 645})
    assert found.partitions == (2, 3)
    assert found.evidence_text["offsets"] == "2 at 700, 3 at 700"


def test_for_ten_minutes_no_partition_is_named_that_may_as_well_be_another_one() -> None:
    life = Life(timeout=60).generation(3010, A, B, C, assigned=OF_THREE)
    life.generation(3200, B, C, assigned=OF_TWO, of_row=PUT_OUT)
    life.generation(3400, C, assigned={C: range(12)}, of_row=PUT_OUT)
    assert [each.partitions for each in evaluated(life, {2: 550, 3: 545})] == []
    assert [each.partitions for each in evaluated(life, {2: 550, 3: 20})] == [(2,)]


@pytest.mark.parametrize(
    "frozen",
    [{9: 650}, {5: 650}, {2: 550}, {}],
    ids=["C has it, and is there", "A never had it", "it stood after A had gone", "nothing stands"],
)
def test_members_that_did_not_all_have_it_did_not_stumble_over_it(frozen: dict[int, float]) -> None:
    assert evaluated(chain(), frozen) == []


def with_others(times: int) -> Life:
    """A and B are evicted with partition 2, and so many others that never had it."""
    others = pods(7, 8)[:times]
    life = Life(timeout=60).generation(
        10, A, B, C, *others, assigned=OF_THREE | dict.fromkeys(others, ())
    )
    for second, other in zip((3020, 3040), others, strict=False):
        others = [each for each in others if each != other]
        kept = OF_THREE | dict.fromkeys(others, ())
        life.generation(second, A, B, C, *others, assigned=kept, of_row=PUT_OUT)
    life.generation(3060, B, C, assigned=OF_TWO, of_row=PUT_OUT)
    return life.generation(3100, C, assigned={C: range(12)}, of_row=PUT_OUT)


def test_one_member_that_leaves_for_another_reason_does_not_hide_the_record() -> None:
    (found,) = evaluated(with_others(1), {2: 650})
    assert (found.partitions, found.evidence["owners_put_out"], found.evidence["evictions"]) == (
        (2,),
        2,
        2,
    )


def test_where_as_many_leave_that_never_had_it_no_record_is_to_blame() -> None:
    assert evaluated(with_others(2), {2: 650}) == []


def test_members_of_a_deploy_did_not_stumble() -> None:
    assert evaluated(chain(reasons={"cause_posterior": {"deploy": 0.9}}), {2: 650}) == []


def test_where_much_stands_since_then_it_is_no_record() -> None:
    (found,) = evaluated(chain(), dict.fromkeys(range(4), 650))
    assert set(found.guards.values()) == {"fail"}


def silent(life: Life, kind: str = "silent") -> list[str]:
    """Guards that fail where partitions 0 and 1 of member A stand for 200 s, up to 3600 s."""
    topic = stands({0: 200, 1: 200})
    topic.frame.names["slot"][:2] = A
    topic = replace(
        topic, stall_kind=(kind, kind, *[""] * (PARTITIONS - 2)), interval=np.full(PARTITIONS, 5.0)
    )
    (found, *_) = partition_stalled.check(life.signals(topics=[topic], material_lag=1000.0))
    return [name for name, result in found.guards.items() if result == "fail"]


@pytest.mark.parametrize(("newest", "fails"), [(3400, 0), (3540, 0), (3541, 1), (3590, 1)])
def test_while_a_group_rebalances_again_and_again_nobody_has_time_to_stall(
    newest: float, fails: int
) -> None:
    life = Life().generation(10, A, B, C).generation(newest - 400, A, B).generation(newest, A, B, C)
    assert silent(life) == ["owner_had_time"] * fails
    # it commits what it has as it goes
    assert silent(life, "repeating") == ["owner_had_time"] * fails


def test_who_repeats_one_commit_and_moves_others_between_rebalances_had_time() -> None:
    life = Life().generation(10, A, B, C).generation(3590, A, B, C)
    topic = stands({0: 200})
    topic = replace(
        topic, stall_kind=("repeating", *[""] * (PARTITIONS - 1)), interval=np.full(PARTITIONS, 5.0)
    )
    topic.frame.names["slot"][:2] = A
    topic.frame.numbers["consumed"][1:] = 600.0
    (found, *_) = partition_stalled.check(life.signals(topics=[topic], material_lag=1000.0))
    assert found.guards["owner_had_time"] == "pass"


@pytest.mark.parametrize(("session", "fails"), [(45, 0), (119, 0), (121, 1)])
def test_who_died_since_the_newest_rebalance_is_missed_a_session_later(
    session: float, fails: int
) -> None:
    life = Life(session=session).generation(10, A, B, C).generation(3480, A, B, C)
    assert silent(life) == ["owner_had_time"] * fails


def test_the_owner_is_inspected_and_restarted_before_any_record_is_skipped() -> None:
    advice = " ".join(BY_CODE["PARTITION_STALLED"].advice)
    words = (
        "silent",
        "thread dump",
        "restart that one member",
        "repeating",
        "read the record",
        "skip",
    )
    places = [advice.index(word) for word in words]
    assert places == sorted(places)


def test_what_a_member_had_that_dies_again_and_again_is_not_stalled() -> None:
    life = Life().generation(10, A, B, C)
    for second in (3300, 3350, 3400):
        life.generation(second, B, C).generation(second + 20, A, B, C)
    assert silent(life) == ["owner_stays"]
    # each life begins elsewhere
    assert silent(life, "repeating") == ["owner_stays"]
    other = Life().generation(10, A, B, C)
    for second in (3300, 3350, 3400):
        other.generation(second, A, C).generation(second + 20, A, B, C)
    assert silent(other) == silent(other, "repeating") == []


@pytest.mark.parametrize(("commits", "count"), [(3.0, 2), (0.0, 0)])
def test_nobody_repeats_a_commit_in_an_empty_group_that_does_not_commit(
    commits: float, count: int
) -> None:
    topic = stands({0: 200, 1: 200})
    kinds = ("repeating", "repeating", *[""] * (PARTITIONS - 2))
    topic = replace(topic, stall_kind=kinds, interval=np.full(PARTITIONS, 5.0))
    topic.frame.numbers["commits"][:, -1] = commits
    signals = (
        Life().generation(10, A, B, C).signals(topics=[topic], material_lag=1000.0, member_count=0)
    )
    assert len(partition_stalled.check(signals)) == count
