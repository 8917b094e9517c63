"""Recordings of scenarios, kept as Parquet: to record takes ten times as long as to evaluate.

They lie in .cache/recordings, by the code that records: who changes a rule records nothing again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from scenarios.catalogue import SCENARIOS
from scenarios.labels import Scenario
from scenarios.runs import Recorded, Run, parts, place_of, record, simulate

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "recordings"
_KEPT = 3  # versions of the code
# these only read what was recorded
_READERS = {"answers", "audit", "cli", "demo", "diagnosis", "doctor", "exporter"}
_TESTS = ("scenarios", "simulator", "wire")


@cache
def code_digest() -> str:
    """The code that a recording depends on: all of laggard but its readers, and the simulator."""
    lib = ROOT / "lib" / "laggard"
    files = [file for file in lib.rglob("*.py") if file.relative_to(lib).parts[0] not in _READERS]
    files.append(lib / "diagnosis" / "parameters.py")  # the policy, whose service level is recorded
    files += [file for name in _TESTS for file in (ROOT / "tests" / name).glob("*.py")]
    digest = sha256(pa.__version__.encode())
    for file in sorted(files):
        digest.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def recorded(runs: Sequence[Run]) -> list[Recorded]:
    """Read runs of the catalogue that were recorded side by side before, else record them."""
    names = [f"{run.scenario.name}-{run.seed}-{run.cluster.place}" for run in runs]
    if any(SCENARIOS.get(run.scenario.name) is not run.scenario for run in runs):
        raise ValueError(f"{names}: only scenarios of the catalogue are known by their names")
    folder = _version() / sha256(" ".join(names).encode()).hexdigest()[:16]
    if not folder.exists():
        _write(record(runs), folder)
    return [Recorded(run, _read(folder / name)) for run, name in zip(runs, names, strict=True)]


def record_all(scenario: Scenario, seeds: Iterable[int]) -> Iterator[Recorded]:
    """Simulate and record these seeds, as many side by side as fit."""
    for part in parts(scenario, seeds):
        yield from recorded([simulate(scenario, seed, place_of(scenario, seed)) for seed in part])


def _version() -> Path:
    version = FOLDER / code_digest()
    version.mkdir(parents=True, exist_ok=True)
    version.touch()
    others = sorted(FOLDER.iterdir(), key=_used_at, reverse=True)
    for old in others[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return version


def _used_at(version: Path) -> float:
    try:
        return version.stat().st_mtime
    except FileNotFoundError:  # another process has just removed it
        return 0.0


def _write(recordings: Iterable[Recorded], folder: Path) -> None:
    """Write a folder that is there as a whole or not at all; another process may write it, too."""
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    for recording in recordings:
        run = recording.run
        place = made / f"{run.scenario.name}-{run.seed}-{run.cluster.place}"
        place.mkdir()
        for name, table in recording.tables.items():
            pq.write_table(table, place / f"{name}.parquet")
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made)


def _read(place: Path) -> dict[str, pa.Table]:
    # one chunk: a filter costs as much per chunk as for thousands of rows
    return {file.stem: pq.read_table(file).combine_chunks() for file in place.glob("*.parquet")}
