"""Findings, verdicts and group windows of the scenarios are those of the digests in
the repository.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from laggard.diagnosis.parameters import Parameters
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.frozen import SEEDS, differing, digest, digests, frozen
from scenarios.runs import place_of, record, simulate

FEW = (("SC06", 1), ("LA8", 3))  # with other seeds they have other offsets partitions, and one job


def test_a_few_scenarios_give_the_frozen_rows_and_a_changed_threshold_is_seen() -> None:
    runs = [simulate(SCENARIOS[name], seed, place_of(SCENARIOS[name], seed)) for name, seed in FEW]
    recorded = record(runs)
    found = {
        each.run.scenario.name: {str(each.run.seed): digest(diagnose(each))} for each in recorded
    }
    assert differing(found) == []
    changed = replace(Parameters(), open_after=4)
    other = {
        each.run.scenario.name: {str(each.run.seed): digest(diagnose(each, changed))}
        for each in recorded
        if each.run.scenario.name == "SC06"
    }
    assert differing(other) == ["SC06 1"]


def test_every_scenario_is_frozen_with_every_seed() -> None:
    assert {name: set(own) for name, own in frozen().items()} == {
        name: set(map(str, SEEDS)) for name in SCENARIOS
    }


MARKED = [
    # all of them take twenty minutes
    pytest.param(name, marks=[pytest.mark.nightly] if place % 6 else [])
    for place, name in enumerate(SCENARIOS)
    if name != "SC59"  # a day takes half a minute
]


@pytest.mark.full
@pytest.mark.parametrize("name", MARKED)
def test_a_scenario_gives_the_frozen_rows(name: str) -> None:
    assert differing(digests([name], SEEDS[:1])) == []
