"""A statement does one thing: limits on comprehensions and conditional expressions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("lib", "jobs", "tests", "bench", "conf", "docker", "docs")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def crowded(source: str) -> list[str]:
    """Name each statement that does too much at once, with its line."""
    return [
        f"{node.lineno}: {fault}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case)
        for fault in _faults(list(_own(node)))
    ]


def _own(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, those of the statements inside it left out."""
    for node in ast.iter_child_nodes(statement):
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from _own(node)


def _faults(nodes: list[ast.AST]) -> Iterator[str]:
    if sum(isinstance(node, ast.IfExp) for node in nodes) > 1:
        yield "more than one conditional expression"
    for node in nodes:
        if isinstance(node, COMPREHENSIONS):
            fors = sum(isinstance(inner, ast.comprehension) for inner in ast.walk(node))
            if fors > 2:
                yield f"{fors} `for` in a comprehension"
        if isinstance(node, ast.Call) and _spans_lines(node):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            loops = [each for each in arguments if isinstance(each, COMPREHENSIONS)]
            if len(arguments) > 1 and any(_spans_lines(loop) for loop in loops):
                yield "a comprehension of several lines among the arguments of a call"


def _spans_lines(node: ast.expr) -> bool:
    return node.end_lineno != node.lineno


def test_no_statement_does_too_much_at_once() -> None:
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}:{fault}" for path in files for fault in crowded(path.read_text())
    ]
    assert found == []


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
