"""Values that the rules of `[[policy]]` give one group, and these rules from a TOML file.

Every mistake in the file is reported with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, time
from math import inf
from typing import Annotated, Any, TypeAlias
from zoneinfo import ZoneInfo

from laggard.config.sources import TomlFile, unquoted
from laggard.config.values import CODES, is_code, shown, suggestion, typed
from laggard.diagnosis.parameters import Policy
from laggard.names import matches

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
READ_COMMITTED = "read_committed"
EXPORTED = ("worst", "all", "none")
ISOLATIONS = ("read_uncommitted", READ_COMMITTED)
_Range: TypeAlias = tuple[str, Callable[[Any], object]]
_DEFAULTS = {
    setting.name: setting.default
    for setting in fields(Policy)
    if setting.name not in ("in_maintenance", "mute_codes")
}
_DEFAULTS |= {"mute_codes": (), "match": "", "cluster": "*"}
_NUMBER: _Range = ("0 or more", lambda value: 0 <= value < inf)
_ABOVE_0: _Range = ("more than 0", lambda value: 0 < value < inf)
_RANGES: dict[str, _Range] = {
    "slo_objective": ("0.94 to 0.9999", lambda value: 0.94 <= value <= 0.9999),  # a burn of 14.4
    "drain_target_seconds": _ABOVE_0,
    "idle_seconds": _ABOVE_0,
    "isolation": (" or ".join(ISOLATIONS), ISOLATIONS.__contains__),
    "export_partitions": (", ".join(EXPORTED), EXPORTED.__contains__),
    "mute_codes": (CODES, lambda value: all(map(is_code, value))),
    "match": ("not empty", bool),
    "cluster": ("not empty", bool),
}
_PLANNED = ("start", "end", "weekly", "timezone")
_WEEKLY = re.compile(rf"({'|'.join(DAYS)}) (\d\d:\d\d)-(\d\d:\d\d)")


@dataclass(frozen=True)
class Once:
    """Maintenance from `start` until before `end`."""

    start: datetime
    end: datetime

    def covers(self, at: datetime) -> bool:
        return self.start <= at < self.end


@dataclass(frozen=True)
class Weekly:
    """Maintenance on a day of the week (0: Monday), by the clock on the wall of a time zone.

    It is from `start` until before `end`, which is of the next day if it is not after `start`.
    """

    day: int
    start: time
    end: time
    timezone: str = "UTC"

    def covers(self, at: datetime) -> bool:
        local = at.astimezone(ZoneInfo(self.timezone))
        moment, is_day = local.time(), local.weekday() == self.day
        if self.start < self.end:
            return is_day and self.start <= moment < self.end
        is_day_after = local.weekday() == (self.day + 1) % 7
        return (is_day and moment >= self.start) or (is_day_after and moment < self.end)


Planned: TypeAlias = Once | Weekly


@dataclass(frozen=True)
class PolicyRule:
    """One `[[policy]]`: the groups it is about, and what it declares about them."""

    match: Annotated[str, "glob on the group"]
    cluster: Annotated[str, "glob on the cluster"] = "*"
    values: Mapping[str, Any] = field(default_factory=dict)  # fields of Policy
    maintenance: tuple[Planned, ...] = ()
    place: Annotated[str, "file and line"] = field(default="", compare=False)


@dataclass(frozen=True)
class Policies:
    """The rules in their order, and what holds for a group that no rule says anything about."""

    rules: tuple[PolicyRule, ...] = ()
    default: Policy = field(default_factory=Policy)

    def matching(self, cluster: str, group: str) -> tuple[PolicyRule, ...]:
        """Return the rules that match a group, in their order."""
        return tuple(
            rule
            for rule in self.rules
            if matches(cluster, [rule.cluster]) and matches(group, [rule.match])
        )

    def of(self, cluster: str, group: str, at: datetime) -> Policy:
        """Return the policy of a group: later rules override earlier rules by key.

        The maintenance of each rule counts.
        """
        rules = self.matching(cluster, group)
        if not rules:
            return self.default
        values = {name: value for rule in rules for name, value in rule.values.items()}
        is_planned = any(planned.covers(at) for rule in rules for planned in rule.maintenance)
        return replace(self.default, **values, in_maintenance=is_planned)

    def slo_seconds(self, cluster: str) -> tuple[float, ...]:
        """Return the possible service levels of time lag of the cluster's groups.

        They are in seconds, ascending.
        """
        levels = {
            rule.values.get("slo_time_lag_seconds", 0.0)
            for rule in self.rules
            if matches(cluster, [rule.cluster])
        }
        return tuple(sorted(levels - {0.0}))

    def reads_committed(self, cluster: str) -> bool:
        """Return True if some group of the cluster may read committed records only."""
        return any(
            rule.values.get("isolation") == READ_COMMITTED
            for rule in self.rules
            if matches(cluster, [rule.cluster])
        )

    def idle_seconds(self, cluster: str | None) -> float:
        """Return the longest idle time in seconds before a group scales to zero; 0 if none does.

        The group is one of the cluster.

        None stands for any cluster.
        """
        rules = [
            rule.values
            for rule in self.rules
            if cluster is None or matches(cluster, [rule.cluster])
        ]
        if not any(values.get("scale_to_zero", self.default.scale_to_zero) for values in rules):
            return 0.0
        declared: list[float] = [
            values["idle_seconds"] for values in rules if "idle_seconds" in values
        ]
        return max([self.default.idle_seconds, *declared])


class PolicyFile:
    """The rules of one file, and its errors as (line, sentence)."""

    def __init__(self, file: TomlFile) -> None:
        self.rules: list[PolicyRule] = []
        self.problems: list[tuple[int, str]] = []
        self._path = file.path
        self._lines = dict(_lines(file.text))
        entries = file.tree.get("policy", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self._wrong((0, ""), "policy", "expected tables, each with the header [[policy]]")
            return
        for number, entry in enumerate(entries):
            self.rules.append(self._rule(number, entry))

    def _wrong(self, at: tuple[int, str], key: str, problem: str) -> None:
        self.problems.append((self._lines.get(at, 0), f"{self._place(at)}: {key}: {problem}"))

    def _place(self, at: tuple[int, str]) -> str:
        line = self._lines.get(at) or self._lines.get((at[0], ""))
        return f"{self._path}:{line}" if line else self._path

    def _rule(self, number: int, entry: Mapping[str, Any]) -> PolicyRule:
        values: dict[str, Any] = {}
        for key, value in entry.items():
            if key == "maintenance":
                continue
            try:
                values[key] = _checked(key, value)
            except ValueError as error:
                self._wrong((number, key), f"policy.{key}", str(error))
        if "match" not in entry:
            self._wrong(
                (number, ""),
                "policy",
                'match is missing: a glob on the group, such as match = "payments-*"',
            )
        planned = self._maintenance(number, entry.get("maintenance", []))
        match, cluster = values.pop("match", ""), values.pop("cluster", "*")
        return PolicyRule(match, cluster, values, tuple(planned), self._place((number, "")))

    def _maintenance(self, number: int, entries: Any) -> Iterator[Planned]:
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            header = "expected tables, each with the header [[policy.maintenance]]"
            self._wrong((number, "maintenance"), "policy.maintenance", header)
            return
        for index, entry in enumerate(entries):
            try:
                yield _planned(entry)
            except ValueError as error:
                self._wrong((number, f"maintenance.{index}"), "policy.maintenance", str(error))


def _checked(key: str, value: Any) -> Any:
    if key not in _DEFAULTS:
        raise ValueError(f"unknown key{suggestion(key, [*_DEFAULTS, 'maintenance'])}")
    value = typed(value, _DEFAULTS[key])
    default = _NUMBER if isinstance(value, (int, float)) else ("", lambda _: True)
    accepts, holds = _RANGES.get(key, default)
    if not holds(value):
        raise ValueError(f"expected {accepts}, got {shown(value)}")
    return value


def _planned(entry: Mapping[str, Any]) -> Planned:
    if unknown := [key for key in entry if key not in _PLANNED]:
        raise ValueError(f"unknown key {unknown[0]}{suggestion(unknown[0], _PLANNED)}")
    if "weekly" in entry:
        if "start" in entry or "end" in entry:
            raise ValueError("expected either weekly, or start and end")
        return _weekly(typed(entry["weekly"], ""), typed(entry.get("timezone", "UTC"), ""))
    if "timezone" in entry:
        raise ValueError("timezone belongs to weekly; start and end have an offset of their own")
    start, end = _moment(entry, "start"), _moment(entry, "end")
    if end <= start:
        raise ValueError(f"ends at {end}, which is not after its start at {start}")
    return Once(start, end)


def _moment(entry: Mapping[str, Any], name: str) -> datetime:
    moment = entry.get(name)
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        got = "nothing" if moment is None else shown(moment)
        raise ValueError(
            f"expected {name} as a time with its offset, such as 2026-12-01T22:00:00Z, got {got}"
        )
    return moment


def _weekly(text: str, timezone: str) -> Weekly:
    match = _WEEKLY.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        start, end = (
            time.fromisoformat(match[2]),
            time.fromisoformat(match[3].replace("24:00", "00:00")),
        )
    except ValueError:
        raise ValueError(f'expected weekly such as "Sun 02:00-04:00", got {shown(text)}') from None
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"expected timezone such as Europe/Berlin, got {shown(timezone)}"
        ) from None
    return Weekly(DAYS.index(match[1]), start, end, timezone)


def _lines(text: str) -> Iterator[tuple[tuple[int, str], int]]:
    """Yield the line of each key of each rule, "" for its header.

    Of equal keys, which TOML refuses, the last wins.
    """
    rule, planned, part = -1, -1, None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            name = unquoted(header[1])
            if name == "policy":
                rule, planned, part = rule + 1, -1, ""
            elif name == "policy.maintenance":
                planned, part = planned + 1, "maintenance"
            else:
                part = None
            if part is not None:
                yield (rule, f"maintenance.{planned}" if part else ""), number
        elif part == "" and (assignment := re.match(r"\s*([\w.\-\"' ]+?)\s*=", line)):
            yield (rule, unquoted(assignment[1])), number
