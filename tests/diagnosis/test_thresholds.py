"""Numbers that decide are declared: by `fixed` beside what they decide, or as a parameter that may
be configured.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import pytest

import laggard.diagnosis
from laggard.config.load import keys
from laggard.diagnosis.parameters import FIXED, Fixed, Parameters, Policy, fixed
from laggard.diagnosis.rules.reach import params_of, reached, thresholds_of, version_of
from laggard.diagnosis.rules.registry import BY_CODE, RULES
from laggard.diagnosis.signals.compute import COMPUTED_BY
from laggard.diagnosis.signals.group import Membership, MemberSignals, Signals, TopicSignals
from laggard.rebalance.analytics.posterior import claim_reason
from laggard.rebalance.parameters import RebalanceParameters

DIAGNOSIS = Path(laggard.diagnosis.__file__).parent
LIB = DIAGNOSIS.parent
UNDECLARED = 20  # at most: pairs ("fewer than two members"), sizes of blocks and of texts, rounding
# calls whose numbers are declared by them
DECLARATIONS = {"fixed", "_of", "Rule", "Reason", "Condition"}
OF_NO_RULE = {  # fixed thresholds that are in the params of no finding, and what each decides
    "update_ms": "when an open finding gets another row",
    "clearly_more": "which finding is the primary one",
    "falsified_windows": "when a finding closes as proven wrong, of all rules alike",
    "complete_seconds": "when rows of deploys and scale_events are written",
    "breach_windows": "group_windows.slo_breach_seconds",
    "verdict_share": "the verdict",
    "series_gaps": "the verdict",
    "series_silence": "the verdict",
    "series_windows": "the verdict",
    "size_windows": "group_windows.members_desired",
    "stay_utilisation": "group_windows.members_desired",
    "enough_busy": "the verdict",
    "cooldown_pauses": "group_windows.scale_reason",
    "scale_in_seconds": "laggard_group_desired_consumers",
    "scale_in_utilisation": "laggard_group_desired_consumers",
}
RECORDED = frozenset(  # signals that are recorded, counted or summed up without a threshold
    {
        "frame",
        "parameters",
        "topics",
        "state",
        "member_count",
        "ceiling",
        "lag",
        "time_in_rebalance",
        "memory",
    }
    | {"membership", "rosters", "current", "place_of", "changes", "subscriptions_differ_since"}
    | {"is_ok", "interval", "slot", "client_id", "host", "partitions"}
)
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
    """So `git grep` finds the constant of a name in `findings.params`."""
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


def test_a_finding_keeps_all_thresholds_that_its_rule_could_reach() -> None:
    """By the check itself, what it calls, what that calls, and the signals that it looks at."""
    stopped = params_of(BY_CODE["COMMIT_RATE_HIGH"], Parameters())
    opening = {"open_after": 1.0, "close_after": 5.0, "abstain_after": 10.0}
    assert stopped == {"commit_windows": 10.0, "commits_per_second": 10.0} | opening
    own, called = (
        {"storm_count", "storm_ratio"},
        {"deploy_share", "merge_seconds", "min_matured_records"},
    )
    assert own | called <= set(thresholds_of(BY_CODE["REBALANCE_STORM"]))
    looked_at = {
        "stall_ci",
        "min_lag_records",
        "trend_p",
        "min_group_lag_records",
        "capacity_percent",
    }
    assert looked_at <= set(thresholds_of(BY_CODE["CAPACITY_SHORTAGE"]))


def test_a_finding_keeps_the_thresholds_of_the_conditions_that_suppress_it() -> None:
    assert {"catch_up_seconds", "rewind_seconds"} <= set(
        thresholds_of(BY_CODE["CAPACITY_SHORTAGE"])
    )
    assert {"catch_up_seconds", "rewind_seconds"}.isdisjoint(thresholds_of(BY_CODE["CRASH_LOOP"]))
    assert "deploy_suspect_share" in thresholds_of(BY_CODE["CRASH_LOOP"])  # a deploy hides it


PROBE = """
from datetime import timedelta
from functools import partial
from laggard.diagnosis.parameters import fixed

SPAN_S = fixed("span_s", 7.0, "s")
LISTED_S = fixed("listed_s", 7.0, "s")
CHOSEN_S = fixed("chosen_s", 7.0, "s")
BOUND_S = fixed("bound_s", 7.0, "s")
DEFAULT_S = fixed("default_s", 7.0, "s")
SPAN = timedelta(seconds=SPAN_S)
TWICE = 2 * SPAN

def listed(value): return value > LISTED_S
def chosen(value): return value > CHOSEN_S
def bound(limit, value): return value > BOUND_S
def unnamed(value): return value > 0

IN_ORDER = (unnamed, listed)
BY_NAME = {"chosen": chosen}
FIRST = partial(bound, 1)

def by_span(value): return value > TWICE
def by_list(value): return any(each(value) for each in IN_ORDER)
def by_name(name, value): return BY_NAME[name](value)
def by_partial(value): return FIRST(value)
def by_default(value, limit=DEFAULT_S): return value > limit
"""


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the diagnosis whose thresholds are named by what a function uses, and not by the
    function.
    """
    for name in ("span_s", "listed_s", "chosen_s", "bound_s", "default_s"):
        monkeypatch.setitem(FIXED, name, Fixed(7.0, "s"))  # taken out again at the end
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    spec = spec_from_file_location("laggard.diagnosis.probe", tmp_path / "probe.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("by_span", "span_s"),
        ("by_list", "listed_s"),
        ("by_name", "chosen_s"),
        ("by_partial", "bound_s"),
        ("by_default", "default_s"),
    ],
)
def test_a_threshold_is_reached_through_constants_tables_of_functions_and_defaults(
    probe: ModuleType, function: str, name: str
) -> None:
    assert reached(getattr(probe, function)) == {name}


def test_a_signal_names_no_threshold_that_its_computation_does_not_use() -> None:
    assert "deploy_horizon_seconds" not in reached(*COMPUTED_BY["evictions_by_reason"])


def test_every_fixed_threshold_is_reached_by_a_rule_or_decides_something_else() -> None:
    for each in walk_packages(laggard.diagnosis.__path__, "laggard.diagnosis."):
        import_module(each.name)  # declares its thresholds
    import_module("laggard.exporter.desired")
    known = {name for rule in RULES for name in thresholds_of(rule)}
    assert FIXED.keys() - known == OF_NO_RULE.keys()


def test_every_signal_says_what_computes_it() -> None:
    names = {
        each.name
        for one in (Signals, Membership, TopicSignals, MemberSignals)
        for each in fields(one)
    }
    assert names == COMPUTED_BY.keys() | RECORDED
    assert COMPUTED_BY.keys().isdisjoint(RECORDED)


def test_every_tunable_threshold_is_reached_by_a_rule_or_belongs_to_the_engine() -> None:
    reached = {name for rule in RULES for name in thresholds_of(rule)}
    engine = {"open_after", "close_after", "abstain_after", "episode_gap", "baseline_hours"}
    assert {each.name for each in fields(Parameters)} - reached == engine


def test_the_version_of_a_rule_changes_with_its_declaration_and_its_thresholds() -> None:
    rule = BY_CODE["COMMITS_STOPPED"]
    known = version_of(rule, Parameters())
    assert version_of(replace(rule, says="In other words."), Parameters()) == known
    # it cannot reach that one
    assert version_of(rule, replace(Parameters(), stall_min_seconds=90.0)) == known
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
    known = FIXED.keys() | {each.name for each in fields(Parameters)}
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
