"""The README of the simulator names commands and files that exist, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE / "README.md").read_text(encoding="utf-8")


def test_every_command_is_one_of_the_makefile() -> None:
    makefile = (HERE.parents[1] / "Makefile").read_text(encoding="utf-8")
    assert [
        name
        for name in re.findall(r"`make (\w+)", PAGE)
        if not re.search(rf"(?m)^{name}:", makefile)
    ] == []


def test_every_file_exists() -> None:
    names = re.findall(r"\| `([\w./*]+)` \|$", PAGE, re.MULTILINE)
    assert len(names) == 6
    assert [
        name for name in names if not list(HERE.glob(name)) and not (HERE / name).exists()
    ] == []


@pytest.mark.full
def test_the_example_prints_causes_of_rebalances(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {})  # noqa: S102 - it is ours
    assert capsys.readouterr().out == "['member_join', 'member_left']\n"
