"""Rules of the test run itself: skips in CI, the markers that divide the tests, the order of the
files.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import conftest

ROOT = Path(__file__).parent.parent
SKIPPED = "import pytest\n\ndef test_with_a_tool():\n    pytest.skip('no such tool')\n"


@pytest.mark.full
@pytest.mark.parametrize(("in_ci", "code", "said"), [("", 0, "1 skipped"), ("true", 1, "1 failed")])
def test_a_skip_is_a_failure_in_ci_only(tmp_path: Path, in_ci: str, code: int, said: str) -> None:
    (tmp_path / "test_one.py").write_text(SKIPPED)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
    ]
    env = os.environ | {"CI": in_ci, "PYTHONPATH": str(Path(conftest.__file__).parent)}
    done = subprocess.run(
        [*command, "test_one.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr


def test_the_files_with_a_known_duration_exist() -> None:
    paths = {*conftest.HISTORIES, *conftest.SECONDS} - {*conftest.HISTORIES.values()}
    assert [path for path in sorted(paths) if not (ROOT / path).is_file()] == []
