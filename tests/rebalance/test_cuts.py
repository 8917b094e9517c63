"""Where ticks cut the records of a group changes neither what is known of it in the end nor its
history.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.rebalance.analytics.counters import STATE
from laggard.rebalance.parameters import RebalanceParameters
from rebalance.lives import LIVES
from rebalance.modern import ENDS, folded, groups_of, rows_of
from stream.simulation import Record, Row, Simulation

lives = pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
# every cut costs seconds; the life with both protocols in it stands for the others where time is
# short
FIRST = "classic to consumer and back"
FULL = pytest.mark.full
MARKED = [
    pytest.param(life, id=name, marks=() if name == FIRST else FULL) for name, life in LIVES.items()
]
all_cuts = pytest.mark.parametrize("life", MARKED)
CUTS = st.lists(st.integers(0, 40), max_size=4, unique=True).map(sorted)


def outcome(job: Simulation) -> tuple[dict[str, Row], list[Row], list[Row]]:
    return groups_of(job), rows_of(job, "generations"), rows_of(job, "group_members")


def in_the_end(
    job: Simulation,
) -> tuple[dict[str, Row], list[str], list[Row], list[dict[str, Row]]]:
    job.tick(ENDS)  # the tick of grace
    job.tick(ENDS, seconds=2 * RebalanceParameters().give_up_seconds)  # every rebalance is over
    counts = [{name: row[name] for name in STATE} for row in job.groups.values()]
    return groups_of(job), _lives_of(job), rows_of(job, "rebalances"), counts


def _lives_of(job: Simulation) -> list[str]:
    """Events but those that tell of a state which a cut may show or not: members may go and come
    within one tick.
    """
    return [
        kind
        for kind in job.events()
        if kind not in ("became_empty", "members_returned", "group_type_changed")
    ]


@all_cuts
def test_one_cut_at_any_place_changes_nothing(life: Sequence[Record]) -> None:
    whole = folded(life)
    expected, at_the_end = outcome(whole), in_the_end(whole)
    for place in range(1, len(life)):
        job = folded(life[:place], life[place:])
        assert outcome(job) == expected
        assert in_the_end(job) == at_the_end


@pytest.mark.full
@all_cuts
def test_every_prefix_in_one_tick_is_as_a_tick_for_each_record(life: Sequence[Record]) -> None:
    single = folded()
    for length, record in enumerate(life, 1):
        single.tick(ENDS, [record])
        assert outcome(folded(life[:length])) == outcome(single)


@lives
@settings(max_examples=10)
@given(length=st.integers(2, 30), cuts=CUTS)
def test_any_cuts_of_any_prefix_change_nothing(
    life: Sequence[Record], length: int, cuts: list[int]
) -> None:
    part = life[:length]
    pieces = [
        part[start:stop]
        for start, stop in zip([0, *cuts], [*cuts, len(part)], strict=True)
        if start < stop
    ]
    assert outcome(folded(*(piece for piece in pieces if piece))) == outcome(folded(part))


@pytest.mark.full
@lives
@settings(max_examples=10)
@given(data=st.data())
def test_records_read_again_change_nothing(life: Sequence[Record], data: st.DataObject) -> None:
    length = data.draw(st.integers(1, len(life) - 1))
    start = data.draw(st.integers(0, length - 1))
    once, twice = folded(life[:length]), folded(life[:length])
    once.tick(ENDS)
    twice.next_offset = start
    twice.tick(ENDS, life[start:length])
    assert outcome(twice) == outcome(once)


@lives
def test_a_life_cut_everywhere_tells_no_event_in_its_middle(life: Sequence[Record]) -> None:
    job = folded(*([record] for record in life))
    assert set(_lives_of(job)) <= {"group_created", "static_replacement"}
    assert job.events().count("group_created") == 1
