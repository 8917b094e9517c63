"""The man page is that of the parser, and man can set it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from laggard.cli.parser import VERBS
from man_page import PAGE, exit_codes, man_page
from patience import patient

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="argparse writes usage otherwise from 3.13 on"
)


def test_the_man_page_is_that_of_the_parser() -> None:
    assert PAGE.read_text(encoding="utf-8") == man_page(), "python docs/build/man_page.py writes it"


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_man_sets_it_without_a_warning_and_shows_all_verbs_and_exit_codes() -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(10))
    assert (done.returncode, done.stderr) == (0, "")
    words = done.stdout.split()
    assert [verb for verb in VERBS if f"laggard {verb}" not in " ".join(words)] == []
    assert {"--dry-run", "--fail-on", "FILES"} <= set(words)
    assert [code for code in exit_codes() if code not in words] == []
    assert len(exit_codes()) >= 14
