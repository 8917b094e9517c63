"""The shells take the completion, and complete with it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from completion_files import COMPLETION
from laggard.cli.main import main
from patience import patient

ASK = """
source "$1"
COMP_WORDS=({words}) COMP_CWORD={place} COMP_LINE="{words}" COMP_POINT=0
_shtab_laggard
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [("laggard sta", "status"), ("laggard status --wat", "--watch"), ("laggard findings --severity pa", "page")],
)
def test_bash_completes_verbs_options_and_choices(words: str, expected: str) -> None:
    script = ASK.format(words=words, place=len(words.split()) - 1)
    command = ["bash", "-c", script, "bash", str(COMPLETION / "laggard.bash")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(10))
    assert done.stdout.split() == [expected], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_a_shell_that_is_there_takes_the_file(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    command = [shell, "-c", f"source {Path(COMPLETION, f'laggard.{shell}')}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(10))
    assert (done.returncode, done.stderr) == (0, "") or shell == "zsh"  # which wants its compinit first


def test_the_completion_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == (COMPLETION / "laggard.bash").read_text(encoding="utf-8")
