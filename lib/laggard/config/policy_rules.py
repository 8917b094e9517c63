"""Reading `[[policy]]` from a TOML file: rules, and every mistake with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime, time
from math import inf
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from laggard.config.planned import DAYS, Once, Planned, Weekly
from laggard.config.policy import READ_COMMITTED, PolicyRule
from laggard.config.sources import TomlFile, unquoted
from laggard.config.values import CODES, is_code, shown, suggestion, typed
from laggard.diagnosis.parameters import Parameters, Policy

EXPORTED = ("worst", "all", "none")
ISOLATIONS = ("read_uncommitted", READ_COMMITTED)
_Range: TypeAlias = tuple[str, Callable[[Any], object]]
_DEFAULTS = {each.name: each.default for each in fields(Policy) if each.name not in ("in_maintenance", "mute_codes")}
_DEFAULTS |= {"mute_codes": (), "match": "", "cluster": "*"}
_NUMBER: _Range = ("0 or more", lambda value: 0 <= value < inf)
_RANGES: dict[str, _Range] = {
    **{
        each.name: (each.metadata["accepts"], each.metadata["holds"])  # the same key of [diagnosis]
        for each in fields(Parameters)
        if each.name in _DEFAULTS
    },
    "idle_seconds": ("more than 0", lambda value: 0 < value < inf),
    "isolation": (" or ".join(ISOLATIONS), ISOLATIONS.__contains__),
    "export_partitions": (", ".join(EXPORTED), EXPORTED.__contains__),
    "mute_codes": (CODES, lambda value: all(map(is_code, value))),
    "match": ("not empty", bool),
    "cluster": ("not empty", bool),
}
_PLANNED = ("start", "end", "weekly", "timezone", "reason")
_WEEKLY = re.compile(rf"({'|'.join(DAYS)}) (\d\d:\d\d)-(\d\d:\d\d)")


class PolicyFile:
    """The rules of one file, and what is wrong in it as (line, sentence)."""

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
            self._wrong((number, ""), "policy", 'match is missing: a glob on the group, such as match = "payments-*"')
        planned = self._maintenance(number, entry.get("maintenance", []))
        match, cluster = values.pop("match", ""), values.pop("cluster", "*")
        return PolicyRule(match, cluster, values, tuple(planned), self._place((number, "")))

    def _maintenance(self, number: int, entries: Any) -> Iterator[Planned]:
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            header = "expected tables, each with the header [[policy.maintenance]]"
            self._wrong((number, "maintenance"), "policy.maintenance", header)
            return
        for each, entry in enumerate(entries):
            try:
                yield _planned(entry)
            except ValueError as error:
                self._wrong((number, f"maintenance.{each}"), "policy.maintenance", str(error))


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
    reason = typed(entry.get("reason", ""), "")
    if "weekly" in entry:
        if "start" in entry or "end" in entry:
            raise ValueError("expected either weekly, or start and end")
        return _weekly(typed(entry["weekly"], ""), typed(entry.get("timezone", "UTC"), ""), reason)
    if "timezone" in entry:
        raise ValueError("timezone belongs to weekly; start and end have an offset of their own")
    start, end = _moment(entry, "start"), _moment(entry, "end")
    if end <= start:
        raise ValueError(f"ends at {end}, which is not after its start at {start}")
    return Once(start, end, reason)


def _moment(entry: Mapping[str, Any], name: str) -> datetime:
    found = entry.get(name)
    if not isinstance(found, datetime) or found.tzinfo is None:
        got = "nothing" if found is None else shown(found)
        raise ValueError(f"expected {name} as a time with its offset, such as 2026-12-01T22:00:00Z, got {got}")
    return found


def _weekly(text: str, timezone: str, reason: str) -> Weekly:
    found = _WEEKLY.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        start, end = time.fromisoformat(found[2]), time.fromisoformat(found[3].replace("24:00", "00:00"))
    except ValueError:
        raise ValueError(f'expected weekly such as "Sun 02:00-04:00", got {shown(text)}') from None
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"expected timezone such as Europe/Berlin, got {shown(timezone)}") from None
    return Weekly(DAYS.index(found[1]), start, end, timezone, reason)


def _lines(text: str) -> Iterator[tuple[tuple[int, str], int]]:
    """The line of each key of each rule, "" for its header; later ones of the same name win, which TOML refuses."""
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
