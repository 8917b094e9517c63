"""Values that the rules of `[[policy]]` give one group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from laggard.config.planned import Planned
from laggard.diagnosis.parameters import Policy
from laggard.names import matches

READ_COMMITTED = "read_committed"


@dataclass(frozen=True)
class PolicyRule:
    """One `[[policy]]`: the groups it is about, and what it declares about them."""

    match: str  # glob on the group
    cluster: str = "*"  # glob
    values: Mapping[str, Any] = field(default_factory=dict)  # fields of Policy
    maintenance: tuple[Planned, ...] = ()
    place: str = field(default="", compare=False)  # laggard.toml:12


@dataclass(frozen=True)
class Policies:
    """The rules in their order, and what holds for a group that no rule says anything about."""

    rules: tuple[PolicyRule, ...] = ()
    default: Policy = field(default_factory=Policy)

    def matching(self, cluster: str, group: str) -> tuple[PolicyRule, ...]:
        """The rules about a group, in their order."""
        return tuple(rule for rule in self.rules if matches(cluster, [rule.cluster]) and matches(group, [rule.match]))

    def of(self, cluster: str, group: str, at: datetime) -> Policy:
        """Values of a group: later rules override earlier ones key by key, but each one's maintenance counts."""
        rules = self.matching(cluster, group)
        if not rules:
            return self.default
        values = {name: value for rule in rules for name, value in rule.values.items()}
        is_planned = any(planned.covers(at) for rule in rules for planned in rule.maintenance)
        return replace(self.default, **values, in_maintenance=is_planned)

    def slo_seconds(self, cluster: str) -> tuple[float, ...]:
        """The service levels of time lag that some group of the cluster may have, ascending."""
        found = {
            rule.values.get("slo_time_lag_seconds", 0.0) for rule in self.rules if matches(cluster, [rule.cluster])
        }
        return tuple(sorted(found - {0.0}))

    def reads_committed(self, cluster: str) -> bool:
        """True if some group of the cluster may read committed records only."""
        return any(
            rule.values.get("isolation") == READ_COMMITTED for rule in self.rules if matches(cluster, [rule.cluster])
        )

    def idle_seconds(self, cluster: str | None) -> float:
        """The longest time that a group of the cluster may have to be idle before it scales to zero; 0: none does.

        None stands for any cluster.
        """
        rules = [rule.values for rule in self.rules if cluster is None or matches(cluster, [rule.cluster])]
        if not any(values.get("scale_to_zero", self.default.scale_to_zero) for values in rules):
            return 0.0
        declared: list[float] = [values["idle_seconds"] for values in rules if "idle_seconds" in values]
        return max([self.default.idle_seconds, *declared])
