"""The load: how a member shares out what it can do, and that drills are about groups and findings
that exist.
"""

import pytest
from kafka.structs import TopicPartition

from laggard.demo.load import fair_shares
from laggard.demo.scenarios import DRILLS, EVERYDAY, HOT_PARTITION, Scenario, partition_rates
from laggard.diagnosis.rules.registry import BY_CODE


@pytest.mark.parametrize(
    ("waiting", "total", "shares"),
    [
        ((8, 8, 8), 9, (3, 3, 3)),  # all have more than their third
        ((4, 60, 4), 37, (4, 29, 4)),  # what the small ones leave goes to the large one
        ((4, 5), 37, (4, 5)),  # nobody gets more than waits
        ((0, 10), 5, (0, 5)),
        ((), 5, ()),
    ],
)
def test_a_member_gives_small_partitions_all_they_want_and_large_ones_the_same(
    waiting: tuple[float, ...], total: float, shares: tuple[float, ...]
) -> None:
    partitions = [TopicPartition("t", number) for number in range(len(waiting))]
    found = fair_shares(dict(zip(partitions, waiting, strict=True)), total)
    assert found == dict(zip(partitions, shares, strict=True))


@pytest.mark.parametrize("drill", DRILLS.values(), ids=[*DRILLS])
def test_a_drill_has_one_group_in_trouble_and_one_beside_it(drill: Scenario) -> None:
    groups = [part.group for part in drill.parts]
    assert (drill.group in groups, len(set(groups)), len(groups)) == (True, 2, 2)
    assert [code for code in drill.codes if code not in BY_CODE] == []
    assert {part.topic for part in drill.parts} <= set(drill.topics)


def test_only_the_cue_makes_a_partition_hot() -> None:
    drill = DRILLS["hot-key"]
    before, after = partition_rates(drill), partition_rates(drill, is_on=True)
    assert {place: rate for place, rate in after.items() if rate != before[place]} == {
        ("orders", 4): 60
    }


def test_the_hot_partition_of_everyday_life_gets_most() -> None:
    rates = partition_rates(EVERYDAY)
    topic, number = max(rates, key=lambda place: rates[place])
    assert f"{topic}-{number}" == HOT_PARTITION
