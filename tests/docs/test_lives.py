"""The pages on the life of a commit and of a finding name files, functions and
callers that exist.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("life-of-a-commit.md", "life-of-a-finding.md")
STEP = re.compile(r"^\| `([\w/]+\.py):(\w+)` \| (?:`([\w/]+\.py)`|Spark) \| \S", re.MULTILINE)


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / "lib" / "laggard" / path).read_text(encoding="utf-8"))


def defined(path: str) -> set[str]:
    """Functions, classes and constants of a file."""
    nodes = list(ast.walk(tree(path)))
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return names | {node.name for node in nodes if isinstance(node, kinds)}


def used(path: str) -> set[str]:
    nodes = list(ast.walk(tree(path)))
    names = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def steps(page: str) -> list[tuple[str, str, str]]:
    return STEP.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_each_step_is_a_function_of_its_file_that_its_caller_uses(page: str) -> None:
    found = steps(page)
    rows = re.findall(r"^\| `", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == len(rows) > 20
    assert [(path, name) for path, name, _ in found if name not in defined(path)] == []
    assert [
        (caller, name) for _, name, caller in found if caller and name not in used(caller)
    ] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
