"""The shells take the completion, and complete with it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from completion_files import COMPLETION
from laggard.cli.main import main
from patience import patient

ASK = """
source "$1"
COMP_WORDS=({words}) COMP_CWORD={place}
_shtab_laggard
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("laggard sta", "status"),
        ("laggard status --wat", "--watch"),
        ("laggard findings --severity pa", "page"),
    ],
)
def test_bash_completes_verbs_options_and_choices(words: str, expected: str) -> None:
    script = ASK.format(words=words, place=len(words.split()) - 1)
    command = ["bash", "-c", script, "bash", str(COMPLETION / "laggard.bash")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(10))
    assert done.stdout.split() == [expected], done.stderr


@pytest.mark.full
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_takes_the_file() -> None:
    source = f'eval "$(<{COMPLETION / "laggard.zsh"})"'
    script = f"autoload -U compinit; compinit -D; {source}; whence -w _shtab_laggard > /dev/null"
    command = ["zsh", "-f", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(10))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_completion_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == (COMPLETION / "laggard.bash").read_text(encoding="utf-8")
