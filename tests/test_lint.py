"""Rules that no linter knows: each looks at the files as text."""

import configparser
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIB = ROOT / "lib"
FOLDERS = ("bench", "conf", "docker", "docs", "jobs", "lib", "tests")
# put together here, so that this file does not match itself
PRIVILEGED_CLIENT = "__admin" + "_client"
MACHINE_PATH = re.compile(r"(?<![\w.*)\]}-])/" + r"(work|root|home/\w+|Users/\w+)/")


def texts(*folders: str) -> dict[str, str]:
    """Path to content of every text file that belongs to the project."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    if folders == FOLDERS:
        # a file in a worktree
        paths += [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    kept = [
        path
        for path in paths
        if not {"__pycache__", "results"} & set(path.parts) and path.suffix != ".pyc"
    ]
    found = {}
    for path in kept:
        try:
            found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or other data
    return found


def test_the_offsets_topic_is_read_by_assignment() -> None:
    """A subscription resolves to whatever is there, and to nothing without a word; an assignment is
    checked.
    """
    option = re.compile(r"""["']subscribe(Pattern)?["']""")
    assert [path for path, text in texts("lib", "jobs").items() if option.search(text)] == []


def test_only_tests_use_the_client_id_that_may_write_offsets() -> None:
    users = [path for path, text in texts(*FOLDERS).items() if PRIVILEGED_CLIENT in text]
    assert [path for path in users if not path.startswith(("tests/", "bench/"))] == []


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    assert [path for path, text in texts(*FOLDERS).items() if MACHINE_PATH.search(text)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /" + "root/x", True),
        ('"/' + "home/ann/y", True),
        ("docs/" + "work/x", False),
        ("~/" + "x", False),
    ],
)
def test_the_look_for_folders_finds_them(text: str, expected: bool) -> None:
    assert (MACHINE_PATH.search(text) is not None) is expected


def test_setup_cfg_lists_every_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    folders = {".".join(path.parent.relative_to(LIB).parts) for path in LIB.rglob("__init__.py")}
    assert listed == folders | {"laggard.conf_files"}


def test_a_package_runs_no_code_when_a_module_of_it_is_imported() -> None:
    """What the folder's __init__ imports reaches every user of the folder; the configuration is
    light enough.
    """
    imports = {
        str(path.parent.relative_to(LIB)): re.findall(
            r"(?m)^(?:from|import) \S+", path.read_text(encoding="utf-8")
        )
        for path in LIB.rglob("__init__.py")
    }
    assert {package for package, found in imports.items() if found} == {"laggard/config"}


def test_no_code_is_ignored_by_git(tmp_path: Path) -> None:
    """A stock ignore file leaves lib/ out, and nobody sees it."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], timeout=30, check=True)
    code = [
        path for path in texts("lib", "conf", "jobs", "tests") if not path.endswith(".egg-info")
    ]
    # a repository of its own: also right outside a checkout, and in one that belongs to another
    # user
    command = [
        "git",
        f"--git-dir={tmp_path / '.git'}",
        f"--work-tree={ROOT}",
        "check-ignore",
        "--no-index",
        "--stdin",
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        input="\n".join(code),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    ignored = [path for path in done.stdout.splitlines() if ".egg-info/" not in path]
    assert ignored == []
