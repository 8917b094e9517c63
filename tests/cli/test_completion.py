"""The shells take the completion, and complete with it."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_files import COMPLETION
from exporter.api_kit import serving_api
from exporter.harness import LIMIT_SECONDS, Exporter
from laggard.cli import parser
from laggard.cli.main import main
from laggard.errors import OK
from patience import patient
from tables.fixtures import group_row, partition_row, write_batch

ASK = """
source "$1"
COMP_WORDS=({words}) COMP_CWORD={place} COMP_LINE="{words}" COMP_POINT=0
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


SOURCE = {
    "bash": "source {}",
    "zsh": 'autoload -U compinit; compinit -D; eval "$(<{})"; whence -w _shtab_laggard > /dev/null',
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of an exporter that knows two groups."""
    root = tmp_path_factory.mktemp("tables")
    partitions = [partition_row("checkout", topic, 0) for topic in ("orders", "payments")]
    names = ("checkout", "billing", "with space", "$(reboot)")
    write_batch(root, 42, partitions=partitions, groups=[group_row(name) for name in names])
    exporter = Exporter(root)
    exporter.refresh()
    with serving_api(exporter) as asker:
        yield asker.port


@pytest.fixture
def enough_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parser, "NAMES_SECONDS", LIMIT_SECONDS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("enough_time")
@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("group", "explain --url {url} ", ["billing", "checkout"]),
        ("group", "status --url {url} --group ch", ["checkout"]),
        ("group", "status --url={url} --watch --group x", []),
        ("group", "plan --set exporter.listen='{listen}' b", ["billing"]),
        ("topic", "explain --limit 3 checkout --url {url} --topic ", ["orders", "payments"]),
        ("topic", "explain checkout --url {url} --topic pay", ["payments"]),
        ("topic", "explain --url {url} --topic ", []),  # of which group is not said yet
        ("group", "explain --url {url} 'open", []),
        ("group", "nonsense --url {url} ", []),
    ],
)
def test_names_that_fit_are_those_of_the_exporter_that_the_line_names(
    port: int, capsys: pytest.CaptureFixture[str], kind: str, line: str, expected: list[str]
) -> None:
    text = line.format(url=f"http://127.0.0.1:{port}", listen=f'"127.0.0.1:{port}"')
    assert main([parser.PRINT_NAMES, kind, f"laggard {text}"]) == OK
    out, err = capsys.readouterr()
    assert (sorted(out.split()), err) == (expected, "")


def test_an_exporter_that_does_not_answer_is_waited_for_a_second_and_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        assert main([parser.PRINT_NAMES, "group", f"laggard explain --url {url} "]) == OK
        assert time.monotonic() - began < patient(3)
    assert capsys.readouterr() == ("", "")


def test_bash_completes_a_group(port: int, tmp_path: Path) -> None:
    line = f"laggard explain --url http://127.0.0.1:{port} ch"
    script = f"""
    laggard() {{ {shlex.quote(sys.executable)} -c 'from laggard.cli import parser
parser.NAMES_SECONDS = {LIMIT_SECONDS}
from laggard.__main__ import main; main()' "$@"; }}
    source "$1"
    COMP_LINE="{line}" COMP_POINT={len(line)} COMP_WORDS=(laggard explain ch) COMP_CWORD=2
    _shtab_laggard
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = ["bash", "-c", script, "bash", str(COMPLETION / "laggard.bash")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS, cwd=tmp_path
    )
    assert done.stdout.split() == ["checkout"], done.stderr


@pytest.mark.parametrize(
    "shell",
    ["bash", *(pytest.param(each, marks=pytest.mark.full) for each in SOURCE if each != "bash")],
)
def test_a_shell_that_is_there_takes_the_file(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    command = [
        shell,
        *(["-f"] if shell == "zsh" else []),
        "-c",
        SOURCE[shell].format(COMPLETION / f"laggard.{shell}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(10))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_completion_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == (COMPLETION / "laggard.bash").read_text(encoding="utf-8")
