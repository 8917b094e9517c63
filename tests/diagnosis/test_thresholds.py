"""Numbers that decide are declared: by `fixed` beside what they decide, or as a parameter that may
be configured.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import pytest

import laggard.diagnosis
from laggard.config.load import keys
from laggard.diagnosis.findings.rows import params_of, version_of
from laggard.diagnosis.parameters import (
    FIXED,
    Fixed,
    Parameters,
    Policy,
    fixed,
    thresholds_hash,
)
from laggard.diagnosis.rules.registry import BY_CODE, RULES
from laggard.rebalance.analytics.posterior import claim_reason
from laggard.rebalance.parameters import RebalanceParameters

DIAGNOSIS = Path(laggard.diagnosis.__file__).parent
LIB = DIAGNOSIS.parent
UNDECLARED = 20  # at most: pairs ("fewer than two members"), sizes of blocks and of texts, rounding
# calls whose numbers are declared by them
DECLARATIONS = {"fixed", "_of", "Rule", "Reason", "Condition"}
# calls whose numbers decide as those of a comparison do
BOUNDS = {"min", "max", "minimum", "maximum", "clip"}
FACTORS = {-1, 0, 1, 1000, 3600}  # nothing, one, the newest, and units of time


def undeclared(source: str) -> Iterator[tuple[int, float]]:
    """Line and value of each number in a comparison, a bound, a default, or at the level of a
    module or a class.

    Numbers in declarations, places in subscripts, arguments of decorators and `FACTORS` are left
    out.
    """
    tree = ast.parse(source)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and type(node.value) in (int, float)
            and node.value not in FACTORS
        ):
            chain = [node, *_ancestors(node, above)]
            if not _is_declared(chain) and _decides(chain):
                yield node.lineno, node.value


def _ancestors(node: ast.AST, above: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in above:
        node = above[node]
        yield node


def _is_declared(chain: list[ast.AST]) -> bool:
    calls = [each.func for each in chain if isinstance(each, ast.Call)]
    names = {each.id for each in calls if isinstance(each, ast.Name)}
    in_decorator = any(
        isinstance(outer, ast.FunctionDef | ast.ClassDef) and inner in outer.decorator_list
        for inner, outer in pairwise(chain)
    )
    return bool(names & DECLARATIONS) or in_decorator


def _decides(chain: list[ast.AST]) -> bool:
    if any(isinstance(each, ast.Subscript) for each in chain):
        return False
    is_inside = any(isinstance(each, ast.FunctionDef | ast.Lambda) for each in chain)
    outer = chain[1]
    is_bound = isinstance(outer, ast.Call) and ast.unparse(outer.func).rpartition(".")[2] in BOUNDS
    return (
        not is_inside
        or is_bound
        or any(isinstance(each, ast.Compare | ast.arguments) for each in chain)
    )


def test_numbers_that_decide_are_declared() -> None:
    found = [
        f"{file.relative_to(DIAGNOSIS)}:{line} {value}"
        for file in sorted(DIAGNOSIS.rglob("*.py"))
        for line, value in undeclared(file.read_text(encoding="utf-8"))
    ]
    assert len(found) < UNDECLARED, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("LIMIT = 3", [3]),
        ("class A:\n    size: int = 7", [7]),
        ("def f(seconds=600.0):\n    return seconds > 0.5 * 1000", [600.0, 0.5]),
        ("def f(a):\n    return max(2, min(len(a) / 2, 9)) + np.maximum(a, 0.25)", [2, 9, 0.25]),
        (
            (
                "LIMIT = fixed('limit', 3, 'windows')\ndef f(a):\n    return a[-3:] * 2 if "
                "len(a) > "
                "1 else a"
            ),
            [],
        ),
    ],
)
def test_numbers_are_counted_in_comparisons_defaults_constants_and_bounds(
    source: str, found: list[float]
) -> None:
    assert sorted(value for _, value in undeclared(source)) == sorted(found)


def test_a_fixed_threshold_has_the_name_of_its_constant() -> None:
    """So `git grep` finds the constant of a name in docs/diagnosis.md."""
    odd = []
    for file in DIAGNOSIS.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            call = node.value if isinstance(node, ast.Assign) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id == "fixed"
            ):
                name = ast.unparse(node.targets[0]).lstrip("_").lower()
                if [ast.unparse(call.args[0])] != [repr(name)]:
                    odd.append(f"{file.name}: {name}")
    assert odd == []


def test_a_name_is_that_of_one_threshold() -> None:
    assert FIXED.keys().isdisjoint(each.name for each in fields(Parameters))
    name = next(iter(FIXED))
    with pytest.raises(ValueError, match=name):
        fixed(name, FIXED[name].value + 1, FIXED[name].unit)


def test_a_finding_keeps_the_thresholds_that_its_rule_names_and_a_hash_of_all() -> None:
    params = params_of(BY_CODE["AT_PARTITION_CEILING"], replace(Parameters(), trend_p=0.02))
    assert params.pop("thresholds_hash") == thresholds_hash(replace(Parameters(), trend_p=0.02))
    opening = {"open_after": 3.0, "close_after": 5.0, "abstain_after": 10.0}
    assert params == {"trend_p": 0.02, "trend_effect": 0.05} | opening


def test_the_hash_of_thresholds_changes_with_any_value(monkeypatch: pytest.MonkeyPatch) -> None:
    known = thresholds_hash(Parameters())
    configured = {
        each.name: thresholds_hash(replace(Parameters(), **{each.name: each.default / 2}))
        for each in fields(Parameters)
    }
    monkeypatch.setitem(FIXED, "update_ms", Fixed(60_000, "ms"))
    fixed_one = thresholds_hash.__wrapped__(Parameters())
    found = [known, fixed_one, *configured.values()]
    assert len({*found}) == len(found)
    assert all(0 <= each < 2**31 for each in found)  # the column is a 32-bit integer


def test_the_engine_imports_all_fixed_thresholds() -> None:
    """The hash of a job and of `laggard diagnose` would differ otherwise."""
    script = "import laggard.diagnosis.engine as _\nfrom laggard.diagnosis.parameters import FIXED"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nprint(*FIXED)"],
        capture_output=True,
        text=True,
        check=True,
    )
    declared = [
        name
        for file in LIB.rglob("*.py")
        for name in re.findall(r'\bfixed\(\s*"(\w+)"', file.read_text(encoding="utf-8"))
    ]
    assert sorted(done.stdout.split()) == sorted(declared)


def test_the_version_of_a_rule_changes_with_its_declaration_and_any_threshold() -> None:
    rule = BY_CODE["COMMITS_STOPPED"]
    known = version_of(rule, Parameters())
    assert version_of(replace(rule, says="In other words."), Parameters()) == known
    others = [
        version_of(replace(rule, version=2), Parameters()),
        version_of(replace(rule, rank=71), Parameters()),
        version_of(replace(rule, open_after=2), Parameters()),
        version_of(rule, replace(Parameters(), min_lag_records=6)),
    ]
    assert len({known, *others}) == 5
    assert all(0 <= each < 2**31 for each in (known, *others))  # the column is a 32-bit integer


def test_every_rule_has_a_falsifier_of_its_own() -> None:
    falsifiers = [rule.falsifier for rule in RULES]
    assert not any("guard" in each for each in falsifiers)
    shared = {each for each in falsifiers if falsifiers.count(each) > 1}
    # at the partition ceiling it is the same shortage
    assert shared == {BY_CODE["CAPACITY_SHORTAGE"].falsifier}


def test_a_loss_found_by_a_jump_is_in_all_that_its_rule_says_of_itself() -> None:
    rule = BY_CODE["DATA_LOST"]
    assert all("jump" in text for text in (rule.check.__doc__ or "", rule.is_not, rule.falsifier))


def test_rules_name_thresholds_that_exist() -> None:
    known = {each.name for each in fields(Parameters)}
    assert {name for rule in RULES for name in rule.thresholds} <= known


def test_a_configured_threshold_reaches_the_rebalance_analytics_and_the_words() -> None:
    """One default for both, one value for both."""
    assert Parameters().of_rebalances() == RebalanceParameters()
    strict = replace(Parameters(), cause_posterior=0.9, min_lag_records=50).of_rebalances()
    assert (strict.cause_posterior, strict.min_lag_records) == (0.9, 50)
    posterior = {"crash": 0.8, "deploy": 0.2}
    assert claim_reason(posterior, Parameters().of_rebalances()) == "crash"
    assert claim_reason(posterior, strict) is None


def _read_attributes() -> set[str]:
    """Names of all attributes that code outside the configuration and the declarations reads."""
    files = [each for each in LIB.rglob("*.py") if "config" not in each.relative_to(LIB).parts]
    trees: list[ast.AST] = [
        ast.parse(each.read_text(encoding="utf-8"))
        for each in files
        if each.name != "parameters.py"
    ]
    declared = ast.parse((LIB / "diagnosis/parameters.py").read_text(encoding="utf-8")).body
    trees += [
        each
        for node in declared
        if getattr(node, "name", "") == "Policy"
        for each in ast.walk(node)
        if isinstance(each, ast.FunctionDef)
    ]
    return {
        node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


def test_somebody_reads_every_documented_key() -> None:
    named = {key.rpartition(".")[2] for key in keys() if "." in key} | {
        each.name for each in fields(Policy)
    }
    named |= {each.name for each in fields(RebalanceParameters)}
    assert sorted(named - _read_attributes()) == []


@pytest.mark.full
def test_no_module_has_a_copy_of_a_default() -> None:
    """Constants of cli/, exporter/, rebalance/ and stream/ that have the name and the value of a
    threshold.
    """
    known = {name: each.value for name, each in FIXED.items()} | {
        each.name: each.default for each in fields(Parameters)
    }
    copies = []
    for package in ("cli", "exporter", "rebalance", "stream"):
        for file in (LIB / package).rglob("*.py"):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                value = getattr(node, "value", None) if isinstance(node, ast.Assign) else None
                if isinstance(value, ast.Constant):
                    name = ast.unparse(node.targets[0]).lstrip("_").lower()
                    copies += [f"{file.name}: {name}"] if known.get(name) == value.value else []
    assert copies == []
