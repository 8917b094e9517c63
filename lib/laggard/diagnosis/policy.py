"""Declarations of the people who own a group."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from laggard.diagnosis.parameters import Parameters

_DEFAULTS = Parameters()  # the same keys of [diagnosis]


@dataclass(frozen=True, slots=True)
class Policy:
    """Declared values of a group; the defaults are for a group without a declaration."""

    owner: str = ""
    team: str = ""
    slo_time_lag_seconds: float = 0.0  # 0: none
    slo_objective: float = _DEFAULTS.slo_objective
    isolation: str = "read_uncommitted"
    scale_to_zero: bool = False
    idle_seconds: float = 600.0
    min_consumers: int = 1
    max_consumers: int = 0  # 0: the members ceiling
    drain_target_seconds: float = _DEFAULTS.drain_target_seconds
    heartbeat_seconds: float = 0.0  # 0: unknown
    hot_standby: bool = False
    export_partitions: str = "worst"
    in_maintenance: bool = False  # at the end of this window
    mute_codes: tuple[str, ...] = ()

    @property
    def exports_all(self) -> bool:
        """True if every partition of the group has series of its own."""
        return self.export_partitions == "all"

    def over(self, parameters: Parameters) -> Parameters:
        """Return thresholds with this policy's values of the keys that both have: by these the group is evaluated."""
        shared = {each.name for each in fields(self)} & {each.name for each in fields(parameters)}
        return replace(parameters, **{name: getattr(self, name) for name in shared})
