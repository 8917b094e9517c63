"""All rules, found in the modules of this folder, and what is derived from their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules import (
    balance,
    capacity,
    cluster,
    commits,
    conditions,
    evictions,
    identity,
    loss,
    moves,
    offsets,
    rebalances,
    scaling,
    stalls,
    timeouts,
    uneven,
    unread,
)
from laggard.diagnosis.rules.rule import Inhibition, Observation, Rule
from laggard.diagnosis.signals.cluster import ClusterFrame

_FAMILIES = (
    cluster,
    loss,
    capacity,
    uneven,
    balance,
    stalls,
    unread,
    commits,
    offsets,
    rebalances,
    evictions,
    identity,
    timeouts,
    moves,
    scaling,
)


def rules_of(family: ModuleType) -> tuple[Rule, ...]:
    """Rules that a module of this folder declares, in order."""
    return tuple(each for each in vars(family).values() if isinstance(each, Rule))


RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in rules_of(family))
BY_CODE: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in RULES})
# codes of findings under which more members mean more of what keeps the group busy
BLOCKS_SCALING = frozenset(rule.code for rule in RULES if rule.blocks_scaling)


@dataclass(frozen=True, slots=True)
class Edge:
    """While `by` is open or holds, findings with these codes are suppressed, or only contribute."""

    by: str  # a code, or the name of a condition of the group
    codes: frozenset[str]
    inhibition: Inhibition


def _codes(inhibition: Inhibition) -> frozenset[str]:
    """Codes that an inhibition names, each or by a group of rules."""
    named = set(inhibition.targets)
    return frozenset(rule.code for rule in RULES if rule.code in named or named & set(rule.groups))


EDGES: tuple[Edge, ...] = tuple(
    Edge(by, _codes(each), each)
    for by, inhibits in (
        *((rule.code, rule.inhibits) for rule in RULES),
        *((condition.name, condition.inhibits) for condition in conditions.CONDITIONS),
    )
    for each in inhibits
)


def cluster_observations(cluster: ClusterFrame, groups: Sequence[Row], parameters: Parameters) -> list[Observation]:
    """Run the checks that look at all groups together; each observation names its groups in `evidence_text`."""
    return [each for rule in RULES for each in rule.check_all(cluster, groups, parameters)]
