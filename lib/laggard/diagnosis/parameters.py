"""Thresholds of the diagnosis: from a configuration, from the owner of a group, and fixed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, TypeVar

from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A threshold that no configuration changes."""

    value: float
    unit: str


FIXED: dict[str, Fixed] = {}  # by name, of all modules that were imported


def fixed(name: str, value: Number, unit: str) -> Number:
    """Declare a fixed threshold beside its use.

    Its name is that of the constant, in lower case.
    """
    if FIXED.setdefault(name, Fixed(value, unit)) != Fixed(value, unit):
        raise ValueError(f"two thresholds have the name {name}")
    return value


def _of(default: float, unit: str) -> Any:
    """Declare a threshold with its unit."""
    return field(default=default, metadata={"unit": unit})


@dataclass(frozen=True, slots=True)
class Parameters:
    """Thresholds by name; the section `[diagnosis]` sets the few that users set."""

    # when a finding opens and closes
    open_after: int = _of(3, "windows")
    close_after: int = _of(5, "windows")
    abstain_after: int = _of(10, "windows")
    episode_gap: int = _of(5, "windows")
    look_back_windows: int = _of(60, "windows")

    # what counts as lag
    min_lag_records: int = _of(DEFAULTS.min_lag_records, "records per partition")
    min_group_lag_records: int = _of(100, "records")
    min_group_time_lag_seconds: float = _of(30.0, "s")
    rate_windows: int = _of(5, "windows")
    busy_min_windows: int = _of(5, "windows")
    busy_windows: int = _of(10, "windows")
    capacity_lookback_hours: float = _of(24.0, "h")
    baseline_hours: float = _of(24.0, "h")
    baseline_min_windows: int = _of(60, "windows")
    baseline_skip_seconds: float = _of(900.0, "s")
    arrival_up_ratio: float = _of(1.3, "of the baseline")
    capacity_down_ratio: float = _of(0.75, "of the baseline")

    # trend
    trend_short_seconds: float = _of(600.0, "s")
    trend_long_seconds: float = _of(3600.0, "s")
    trend_min_points: int = _of(6, "points")
    trend_p: float = _of(0.01, "probability")
    trend_exit_p: float = _of(0.05, "probability")
    trend_effect: float = _of(0.05, "of the arrival rate")
    trend_exit_effect: float = _of(0.025, "of the arrival rate")
    homogeneity_iqr: float = _of(0.25, "ratio")

    # forecasts
    loss_page_hours: float = _of(6.0, "h")
    loss_warn_hours: float = _of(24.0, "h")
    expiry_warn_hours: float = _of(48.0, "h")
    expiry_page_hours: float = _of(24.0, "h")
    offsets_retention_minutes: float = _of(10_080.0, "minutes")
    drain_min_share: float = _of(0.02, "of the arrival rate")

    # shape
    shape_gini_concentrated: float = _of(0.60, "ratio")
    shape_gini_spread: float = _of(0.35, "ratio")
    shape_rho_spread: float = _of(0.70, "ratio")
    shape_top_decile: float = _of(0.50, "share of the lag")
    shape_windows: int = _of(3, "windows")
    shape_windows_few: int = _of(5, "windows, where a topic has at most 4 partitions")

    # attribution
    hot_ratio: float = _of(3.0, "ratio")
    attr_explained: float = _of(0.7, "share of the lag")
    attr_purity: float = _of(0.8, "share of the partitions")
    attr_p: float = _of(0.01, "probability")
    slow_ratio: float = _of(0.9, "ratio")
    slow_ratio_strong: float = _of(0.6, "ratio")
    stall_min_seconds: float = _of(60.0, "s")
    stall_ci: float = _of(3.0, "commit intervals")
    quiet_seconds: float = _of(600.0, "s")

    # rebalances
    storm_count: int = _of(5, "logical rebalances")
    storm_seconds: float = _of(600.0, "s")
    storm_ratio: float = _of(0.20, "share of the time")
    storm_mtbr: float = _of(3.0, "times the median duration")
    deploy_horizon_seconds: float = _of(DEFAULTS.deploy_horizon_seconds, "s")
    deploy_share: float = _of(0.8, "share of the slots")
    deploy_batch: float = _of(0.5, "share of the slots")
    deploy_suspect_share: float = _of(DEFAULTS.deploy_suspect_share, "share of the slots")
    deploy_limit_seconds: float = _of(2700.0, "s")
    crash_times: int = _of(DEFAULTS.crash_times, "departures")
    cause_posterior: float = _of(DEFAULTS.cause_posterior, "probability")
    coordinator_share: float = _of(0.5, "share of the groups")
    coordinator_seconds: float = _of(DEFAULTS.coordinator_seconds, "s")

    # sizing
    drain_target_seconds: float = _of(900.0, "s")
    pack_utilisation: float = _of(0.8, "share of the capacity")
    elasticity_min: float = _of(0.3, "ratio")

    # service levels and the offsets topic
    slo_objective: float = _of(0.99, "share of the records")

    def at_pace(self, pace: float) -> Parameters:
        """Return the thresholds with those in seconds divided by `pace`, as drills have them."""
        times = [each.name for each in fields(self) if each.metadata["unit"] == "s"]
        return replace(self, **{name: getattr(self, name) / pace for name in times})

    def of_rebalances(self) -> RebalanceParameters:
        """Return the thresholds of the rebalance analytics.

        Thresholds with the same name here have the values from here.
        """
        known = {each.name for each in fields(RebalanceParameters)}
        return replace(
            DEFAULTS,
            **{each.name: getattr(self, each.name) for each in fields(self) if each.name in known},
        )


_DEFAULTS = Parameters()
_HASHES = 2**31  # `findings.rule_version` is a 32-bit integer, and not negative


@cache
def thresholds_hash(parameters: Parameters) -> int:
    """Hash names and values of all thresholds, those in `parameters` and the fixed ones.

    The result is the same on every platform, once the engine is imported.
    """
    values = {each.name: getattr(parameters, each.name) for each in fields(parameters)}
    values |= {name: each.value for name, each in FIXED.items()}
    return hash_of(sorted((name, float(value)) for name, value in values.items()))


def hash_of(declared: object) -> int:
    """Hash the representation of a value to 31 bits."""
    return int.from_bytes(sha256(repr(declared).encode()).digest()[:4], "big") % _HASHES


@dataclass(frozen=True, slots=True)
class Policy:
    """Declared values of a group; the defaults are for a group without a declaration."""

    owner: Annotated[str, "owner of the group"] = ""
    team: Annotated[str, "team that owns it"] = ""
    slo_time_lag_seconds: Annotated[
        float, "seconds of time lag that records may have; 0: no objective"
    ] = 0.0
    slo_objective: Annotated[float, "share of records that must be read in time"] = (
        _DEFAULTS.slo_objective
    )
    isolation: Annotated[str, "read_uncommitted or read_committed"] = "read_uncommitted"
    scale_to_zero: Annotated[bool, "true: no member is normal while there is nothing to read"] = (
        False
    )
    idle_seconds: Annotated[float, "seconds without members after which that is over"] = 600.0
    min_consumers: Annotated[int, "members to have at least"] = 1
    max_consumers: Annotated[int, "members to have at most; 0: as many as can get a partition"] = 0
    drain_target_seconds: Annotated[float, "seconds in which lag should have drained"] = (
        _DEFAULTS.drain_target_seconds
    )
    heartbeat_seconds: Annotated[float, "seconds between heartbeats of the clients; 0: unknown"] = (
        0.0
    )
    hot_standby: Annotated[bool, "true: idle members are wanted"] = False
    export_partitions: Annotated[
        str, "partitions with metrics of their own: worst, all or none"
    ] = "worst"
    in_maintenance: Annotated[bool, "true: a planned maintenance is on now"] = False
    mute_codes: Annotated[tuple[str, ...], "codes of findings that are not reported"] = ()

    @property
    def exports_all(self) -> bool:
        """True if every partition of the group has series of its own."""
        return self.export_partitions == "all"

    @property
    def exports_none(self) -> bool:
        """True if no partition of the group has series of its own."""
        return self.export_partitions == "none"

    def over(self, parameters: Parameters) -> Parameters:
        """Return thresholds with this policy's values of the keys that both have.

        The group is evaluated by these thresholds.
        """
        shared = {each.name for each in fields(self)} & {each.name for each in fields(parameters)}
        return replace(parameters, **{name: getattr(self, name) for name in shared})
