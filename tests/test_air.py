"""A statement does one thing: limits on comprehensions and conditional expressions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("lib", "jobs", "tests", "bench", "conf", "docker", "docs")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def crowded(source: str) -> list[str]:
    """Name each statement that does too much at once, with its line."""
    return [f"{line}: {fault}" for line, fault in sorted(_faults(ast.parse(source), 1, []))]


def _faults(node: ast.AST, line: int, conditions: list[ast.IfExp]) -> Iterator[tuple[int, str]]:
    """Yield faults below a node; `conditions` are those of its statement that were met before."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, STATEMENTS):
            yield from _faults(child, getattr(child, "lineno", line), [])
            continue
        if isinstance(child, ast.IfExp):
            conditions.append(child)
            if len(conditions) == 2:
                yield line, "more than one conditional expression"
        if isinstance(child, COMPREHENSIONS):
            fors = sum(isinstance(inner, ast.comprehension) for inner in ast.walk(child))
            if fors > 2:
                yield line, f"{fors} `for` in a comprehension"
        if isinstance(child, ast.Call) and _has_a_loop_beside_arguments(child):
            yield line, "a comprehension of several lines among the arguments of a call"
        yield from _faults(child, line, conditions)


def _has_a_loop_beside_arguments(call: ast.Call) -> bool:
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    loops = [each for each in arguments if isinstance(each, COMPREHENSIONS)]
    return len(arguments) > 1 and any(loop.end_lineno != loop.lineno for loop in loops)


def test_no_statement_does_too_much_at_once() -> None:
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): crowded(path.read_text()) for path in files}
    assert {path: faults for path, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("x = 1 if a else 2", []),
        ("x = 1 if a else 2 if b else 3", ["1: more than one conditional expression"]),
        ("if (1 if a else 2):\n    x = 1 if a else 2", []),
        ("x = [a for b in c for a in b]", []),
        ("x = [[a for a in b for b in c] for c in d]", ["1: 3 `for` in a comprehension"]),
        ("x = f(\n    a\n    for a in b\n)", []),
        (
            "x = f(\n    [\n        a for a in b\n    ],\n    c,\n)",
            ["1: a comprehension of several lines among the arguments of a call"],
        ),
    ],
)
def test_a_crowded_statement_is_named(source: str, faults: list[str]) -> None:
    assert crowded(source) == faults
