"""Thresholds that a rule can reach: by its check, its callees, its signals, its suppressors.

A callee is any function that the check calls or looks at.

They are read from the code itself, so that `findings.params` lacks none of them and no rule has to
list them. A signal counts as reached if its name is taken from something annotated as signals;
`COMPUTED_BY` says what computes it. A constant, a table of functions and a default hand on what
the source says they are made of.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from dis import get_instructions
from functools import cache
from hashlib import sha256
from itertools import pairwise
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from laggard.diagnosis.parameters import FIXED, Parameters
from laggard.diagnosis.rules.registry import CONDITIONS, EDGES
from laggard.diagnosis.rules.rule import Rule, nothing
from laggard.diagnosis.signals.cluster import cluster_signal
from laggard.diagnosis.signals.compute import COMPUTED_BY
from laggard.diagnosis.signals.group import Membership, Signals

TUNABLE = frozenset(each.name for each in fields(Parameters))
_OURS = "laggard.diagnosis."
_NAMING = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"})
_CONSTANTS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_VERSIONS = 2**31  # `rule_version` is a 32-bit integer, and not negative


def reached(*starts: Callable[..., object] | str) -> frozenset[str]:
    """Return the names of all thresholds that functions use, directly or not.

    A start may be such a name itself.
    """
    found: set[str] = set()
    seen: set[FunctionType] = set()
    todo: list[Any] = list(starts)
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            found.add(each)
        elif isinstance(each, Rule):
            todo.append(each.check)
        elif isinstance(each, property):
            todo.append(each.fget)
        elif isinstance(each, type):
            todo += [
                value for value in vars(each).values() if isinstance(value, FunctionType | property)
            ]
        elif isinstance(function := inspect.unwrap(each), FunctionType) and function not in seen:
            seen.add(function)
            if function.__module__.startswith(_OURS):
                todo += _named_in(function)
    return frozenset(found)


def _named_in(function: FunctionType) -> Iterator[Any]:
    """Yield thresholds, functions, classes and signals of this package that a function names."""
    names = set(_names(function.__code__))
    modules = [
        value for name in names if isinstance(value := function.__globals__.get(name), ModuleType)
    ]
    looks_at_signals = _looks_at_signals(function)
    yield from _made_of(function.__module__, function.__qualname__)
    for name in names:
        if name in TUNABLE:
            yield name
        for known in (function.__globals__, *(vars(module) for module in modules)):
            yield from _known_as(name, known.get(name))
            yield from _made_of(known["__name__"], name)
        if looks_at_signals:
            yield from COMPUTED_BY.get(name, ())
            for kind in (Signals, Membership):
                if isinstance(value := vars(kind).get(name), FunctionType | property):
                    yield value


def _looks_at_signals(function: FunctionType) -> bool:
    return function.__qualname__.startswith("Membership.") or any(
        kind in str(each)
        for each in function.__annotations__.values()
        for kind in ("Signals", "Membership")
    )


def _known_as(name: str, value: object) -> Iterator[Any]:
    threshold = FIXED.get(name.lstrip("_").lower())
    if threshold is not None and isinstance(value, int | float) and value == threshold.value:
        yield name.lstrip("_").lower()
    elif isinstance(value, Rule) or (
        callable(value) and getattr(value, "__module__", "").startswith(_OURS)
    ):
        yield value


def _made_of(module: str, name: str) -> Iterator[Any]:
    """Yield our thresholds and functions named in the source of a constant.

    The same applies to the source of a function's defaults.
    """
    home, parts = (
        _sources(module).get(name, (module, ())) if module.startswith(_OURS) else (module, ())
    )
    for part in parts:
        yield from _known_as(part, vars(sys.modules[home]).get(part))
        yield from _made_of(home, part)


@cache
def _sources(module: str) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Map a module's definitions and imports to their home and the names that they use.

    These names are those in the value or the defaults.
    """
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            theirs = _sources(str(node.module))
            found |= {
                one.asname or one.name: theirs[one.name] for one in node.names if one.name in theirs
            }
        else:
            names, values = _defined(node)
            found |= dict.fromkeys(names, (module, _named_by(values, names)))
    return found


def _named_by(values: Sequence[ast.expr | None], names: Sequence[str]) -> tuple[str, ...]:
    """Return the other names in these values."""
    inner = [one for value in values if value is not None for one in ast.walk(value)]
    return tuple(one.id for one in inner if isinstance(one, ast.Name) and one.id not in names)


def _defined(node: ast.stmt) -> tuple[list[str], Sequence[ast.expr | None]]:
    """Return the names that a module's statement defines, with their values or defaults.

    Other statements give none.
    """
    if isinstance(node, ast.FunctionDef):
        return [node.name], [*node.args.defaults, *node.args.kw_defaults]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return [], []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [one.id for one in targets if isinstance(one, ast.Name)], [node.value]


def _names(code: CodeType) -> Iterator[str]:
    """Yield globals and attributes that code names.

    Attributes of a frame are columns of recorded rows and left out.
    """
    before = ""
    for each, after in pairwise(get_instructions(code)):  # the last one returns or raises
        is_array_shape = each.argval == "shape" and after.opname in _CONSTANTS
        if each.opname in _NAMING and before != "frame" and not is_array_shape:
            yield each.argval
        before = each.argval if each.opname in _NAMING else ""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@cache
def thresholds_of(rule: Rule) -> tuple[str, ...]:
    """Return names of all thresholds that a rule can reach, in order.

    The thresholds of opening and closing are not among them.
    """
    of_all = () if rule.check_all is nothing else (rule.check_all, cluster_signal)
    near = [edge for edge in EDGES if rule.code in edge.codes]
    hiding = {name for edge in near for name in (edge.by, edge.inhibition.needs)}
    conditions = [each.holds for each in CONDITIONS if each.name in hiding]
    return tuple(sorted(reached(rule.check, *of_all, *conditions, *rule.thresholds)))


@cache
def params_of(rule: Rule, parameters: Parameters) -> Mapping[str, float]:
    """Return all thresholds of a rule with their values.

    They include the thresholds by which its findings open and close.
    """
    found = {
        name: float(getattr(parameters, name) if name in TUNABLE else FIXED[name].value)
        for name in (*thresholds_of(rule), "abstain_after")
    }
    found["open_after"] = float(rule.open_after or parameters.open_after)
    found["close_after"] = float(rule.close_after or parameters.close_after)
    return MappingProxyType(dict(sorted(found.items())))


@cache
def version_of(rule: Rule, parameters: Parameters) -> int:
    """Hash a rule's declaration without its prose, and its thresholds.

    The result is the same on every platform.
    """
    declared = (
        rule.number,
        rule.code,
        rule.kind,
        [asdict(each) for each in rule.inhibits],
        rule.groups,
        rule.rank,
        rule.blocks_scaling,
        rule.version,
        dict(params_of(rule, parameters)),
    )
    return int.from_bytes(sha256(repr(declared).encode()).digest()[:4], "big") % _VERSIONS
