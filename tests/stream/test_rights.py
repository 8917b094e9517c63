"""A place that this user may not read or write is named with the right that is missing, before
Spark starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from laggard.config.sections import Job
from laggard.errors import CONFIGURATION
from laggard.sources.readiness import OffsetsTopic
from laggard.stream.job.identity import identity_path
from laggard.stream.job.starting import prepare
from laggard.tables.lock import writer_lock
from patience import some

TOPIC = OffsetsTopic("cluster", "topic id", 2)
START = """
import sys
from laggard.config.sections import Job
from laggard.errors import LaggardError
from laggard.failures import classify
from laggard.sources.readiness import OffsetsTopic
from laggard.stream.job.starting import prepare
from laggard.tables.lock import writer_lock
job = Job(tables=sys.argv[1], checkpoint=sys.argv[2], spark={"spark.local.dir": sys.argv[3]})
try:
    with writer_lock(job.tables):
        prepare(job, OffsetsTopic("cluster", "topic id", 2))
except Exception as error:
    failure = classify(error)
    print(failure)
    sys.exit(failure.exit_code)
"""
# root may read and write anything, unless CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH are taken away:
# PR_CAPBSET_DROP (prctl(2)) keeps them from the program that follows
DROP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for capability in (1, 2):
    if libc.prctl(24, capability, 0, 0, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"""
POWERLESS = (sys.executable, "-c", DROP) if os.geteuid() == 0 else ()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that was started once."""
    job = Job(tables=str(tmp_path / "tables"), checkpoint=str(tmp_path / "state" / "checkpoint"))
    with writer_lock(job.tables):
        prepare(job, TOPIC)
    offsets = Path(job.checkpoint, "offsets")
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}")
    (tmp_path / "local").mkdir()
    return job


def start(job: Job) -> tuple[int, str]:
    """Exit code and output of a start by somebody who has the rights that the modes give."""
    local = Path(job.tables).parent / "local"
    command = [*POWERLESS, sys.executable, "-c", START, job.tables, job.checkpoint, str(local)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return ended.returncode, ended.stdout + ended.stderr


def test_with_all_rights_it_starts(job: Job) -> None:
    assert start(job) == (0, "")


@pytest.mark.examples
@pytest.mark.parametrize(
    ("place", "mode", "right"),
    some(
        [
            ("tables", 0o500, "write"),
            ("tables", 0o000, "write"),
            ("tables/_laggard/writer.lock", 0o400, "write"),
            ("tables/batches", 0o000, "read"),
            ("tables/batches/_delta_log", 0o000, "read"),
            ("state", 0o500, "write"),
            ("state/checkpoint", 0o000, "read"),
            ("state/checkpoint/offsets", 0o000, "read"),
            ("state/checkpoint/offsets/0", 0o000, "read"),
            ("state/checkpoint.laggard.json", 0o000, "read"),
            ("local", 0o500, "write"),
        ]
    ),
)
def test_a_missing_right_is_named_with_its_place(
    job: Job, place: str, mode: int, right: str
) -> None:
    path = Path(job.tables).parent / place
    if place == "state":  # nothing to write there but at a first start
        Path(identity_path(job.checkpoint)).unlink()
        shutil.rmtree(job.checkpoint)
    if place == "tables":
        shutil.rmtree(path / "batches")
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        code, output = start(job)
    finally:
        path.chmod(before)
    assert code == CONFIGURATION, output
    assert str(path) in output
    assert right in output
    assert "fix: " in output
    assert len(output.splitlines()) <= 4
    assert "internal error" not in output


def test_a_place_under_a_file_is_named(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, output = start(Job(tables=job.tables, checkpoint=str(tmp_path / "file" / "checkpoint")))
    assert code == CONFIGURATION, output
    assert str(tmp_path / "file") in output
