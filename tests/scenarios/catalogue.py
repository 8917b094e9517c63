"""All scenarios by name."""

from __future__ import annotations

from scenarios import (
    capacity,
    habits,
    healthy,
    levels,
    loss,
    offsets,
    rebalances,
    rollouts,
    scaling,
    shares,
    stalls,
    statics,
    transactions,
    watching,
)
from scenarios.labels import Scenario

_SUBJECTS = (
    capacity,
    shares,
    stalls,
    rebalances,
    statics,
    scaling,
    rollouts,
    levels,
    loss,
    offsets,
    transactions,
    habits,
    watching,
    healthy,
)


def _place(scenario: Scenario) -> tuple[bool, int, str]:
    name = scenario.name
    return name[:2] == "LA", int("".join(c for c in name if c.isdigit())), name


_UNSORTED = [each for subject in _SUBJECTS for each in subject.SCENARIOS]
SCENARIOS: dict[str, Scenario] = {each.name: each for each in sorted(_UNSORTED, key=_place)}
# the module that declares a scenario
SUBJECT_OF = {
    each.name: subject.__name__.rpartition(".")[2]
    for subject in _SUBJECTS
    for each in subject.SCENARIOS
}
