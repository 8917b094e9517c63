"""Java, packages, jars, memory and disk of this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from configparser import ConfigParser
from importlib import metadata
from pathlib import Path

from laggard.conf import checkout_root
from laggard.doctor.result import Result
from laggard.files import nearest_existing
from laggard.ivy import find_java
from laggard.jars import FETCH, jars_dir, verify_jars

PINNED = ("pyspark", "delta-spark", "kafka-python", "pandas", "pyarrow", "deltalake")
LEAST_MEMORY_BYTES = 3 * 1024**3  # 2 GB of driver heap, and Spark's Python workers
LEAST_DISK_BYTES = 1024**3


def check_java() -> Iterable[Result]:
    """Check for a Java that Spark 4.2 starts on."""
    yield Result("ok", "java", find_java())


def check_packages() -> Iterable[Result]:
    """Check installed versions against the pins of setup.cfg."""
    for name, wanted in pins().items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Result(
                "fail", name, f"not installed, wanted {wanted}", f"pip install '{name}{wanted}'"
            )
            continue
        if satisfies(version, wanted):
            yield Result("ok", name, version)
        else:
            yield Result(
                "fail", name, f"{version}, wanted {wanted}", f"pip install '{name}{wanted}'"
            )


def pins() -> dict[str, str]:
    """Return a dict from package to version specifier, for the packages whose version matters."""
    root = checkout_root()
    if root is not None and (root / "setup.cfg").is_file():
        parser = ConfigParser()
        parser.read(root / "setup.cfg", encoding="utf-8")
        lines = parser["options"]["install_requires"].splitlines()
    else:
        lines = metadata.requires("laggard") or []
    matches = (re.match(r"([A-Za-z0-9_-]+)\s*([=<>!~][^;]*)", line.strip()) for line in lines)
    return {match[1]: match[2].strip() for match in matches if match and match[1] in PINNED}


def satisfies(version: str, wanted: str) -> bool:
    """Return True if a version fulfils a list of ==, >= and < conditions."""
    have = _numbers(version)
    for condition in wanted.split(","):
        operator, _, text = re.split(
            r"((?<==)=|(?<=>)=|(?<=<)(?!=))", condition.strip(), maxsplit=1
        )
        limit = _numbers(text)
        width = max(len(have), len(limit))
        left, right = have + (0,) * (width - len(have)), limit + (0,) * (width - len(limit))
        if not {"=": left == right, ">": left >= right, "<": left < right}[operator]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text.partition("+")[0])))


def check_workers() -> Iterable[Result]:
    """Check that Spark's Python workers use this interpreter: another one lacks the packages."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen is None or shutil.which(chosen) == shutil.which(sys.executable):
        yield Result("ok", "PYSPARK_PYTHON", chosen or f"not set: {sys.executable} is taken")
    else:
        fact = f"{chosen} is not this interpreter, {sys.executable}"
        yield Result("warn", "PYSPARK_PYTHON", fact, f"export PYSPARK_PYTHON={sys.executable}")


def check_jars() -> Iterable[Result]:
    """Check the jars of the job against the committed sums."""
    if not (folder := jars_dir() / "spark").is_dir():
        yield Result(
            "warn",
            "jars",
            f"not in {folder} yet",
            f"laggard run fetches them; now: {FETCH}",
            is_ahead=True,
        )
        return
    verify_jars(["spark"])
    yield Result("ok", "jars", "every jar has its sum of conf/jars.sha256")


def check_memory() -> Iterable[Result]:
    """Check the memory that is free now."""
    match = re.search(
        r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii")
    )
    free = 0
    if match:
        free = int(match[1]) * 1024
    fact = f"{free / 1024**3:.1f} GB available"
    remedy = (
        f"the job wants {LEAST_MEMORY_BYTES / 1024**3:.0f} GB; stop something or take a larger "
        "machine"
    )
    if free >= LEAST_MEMORY_BYTES:
        yield Result("ok", "memory", fact)
    else:
        yield Result("warn", "memory", fact, remedy)


def check_disk(folder: Path) -> Iterable[Result]:
    """Check the space left where the tables are."""
    place = nearest_existing(folder)
    free = shutil.disk_usage(place).free
    fact = f"{free / 1024**3:.1f} GB free at {place}"
    enough = free >= LEAST_DISK_BYTES
    if enough:
        yield Result("ok", "disk", fact)
    else:
        yield Result("warn", "disk", fact, "free space, or move job.tables")
