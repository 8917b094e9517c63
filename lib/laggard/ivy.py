"""Downloads by the Ivy that ships inside pyspark: nothing to install beside Java."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from laggard.conf import conf_file
from laggard.errors import CONFIGURATION, TEMPORARY, UNREACHABLE, LaggardError

OLDEST_JAVA = 17
RETRIEVE_LIMIT_SECONDS = 1800  # cold it took 82 s; a slow line may need minutes, a dead one must still end
CONNECT_LIMIT_MS, READ_LIMIT_MS = 10_000, 60_000  # Java's own default is to wait for ever
PROGRESS_SECONDS = 10
REPORTED_LOG_LINES = 12


def retrieve(confs: Sequence[str], into: Path, cache: Path, *, jar_count: int, lock_fd: int) -> None:
    """Put the jars of each configuration into its folder below `into`, showing progress on stderr."""
    log = cache / "ivy.log"
    command = [
        *(find_java(), f"-Dsun.net.client.defaultConnectTimeout={CONNECT_LIMIT_MS}"),
        *(f"-Dsun.net.client.defaultReadTimeout={READ_LIMIT_MS}", "-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-ivy", str(conf_file("ivy.xml")), "-cache", str(cache), "-confs", *confs),
        *("-retrieve", f"{into}/[conf]/[artifact]-[revision].[ext]", "-types", "jar", "bundle"),
    ]
    with log.open("wb") as output:
        # the child holds the lock too: should we be killed, nobody else works in its cache until it ends
        ivy = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, pass_fds=(lock_fd,))
    try:
        code = _await_end(ivy, cache, jar_count)
    finally:
        ivy.kill()
        ivy.wait()
    if code != 0:
        raise _failure(log)


def _await_end(ivy: subprocess.Popen[bytes], cache: Path, jar_count: int) -> int | None:
    """Exit code of Ivy, or None when it ran past the limit."""
    start = shown = time.monotonic()
    is_terminal = sys.stderr.isatty()
    while (code := ivy.poll()) is None and time.monotonic() - start < RETRIEVE_LIMIT_SECONDS:
        if is_terminal or time.monotonic() - shown >= PROGRESS_SECONDS:
            shown = time.monotonic()
            _show_progress(cache, jar_count, shown - start, end="\r" if is_terminal else "\n")
        time.sleep(0.2)
    if is_terminal:
        print(file=sys.stderr)
    return code


def _show_progress(cache: Path, jar_count: int, seconds: float, end: str) -> None:
    # most of the time goes into reading dependency lists, before the first jar: both numbers must move
    found = (cache / "ivy.log").read_text(errors="replace").count("\tfound ")
    here = sum(1 for _ in cache.glob("*/*/*/*.jar"))
    text = f"laggard: fetching jars: {here} of {jar_count} here, {found} looked up, {seconds:.0f} s"
    print(text, end=end, file=sys.stderr, flush=True)


def _failure(log: Path) -> LaggardError:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip(" \t:.")]
    tail = "\n  ".join(lines[-REPORTED_LOG_LINES:])
    if "No space left on device" in tail:
        return LaggardError(
            "the disk is full, the jars were not fetched", cause=tail, fix=f"df -h {log.parent}", exit_code=TEMPORARY
        )
    return LaggardError(
        "the jars could not be downloaded",
        cause=f"the last lines of Ivy, the rest is in {log}:\n  {tail}",
        fix="run it again, what was downloaded is kept: python -m laggard.jars\n"
        "  behind a proxy first: export JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'",
        exit_code=UNREACHABLE,
    )


def _ivy_jar() -> Path:
    pyspark = find_spec("pyspark")  # found, not imported: an import costs a second
    folders = pyspark.submodule_search_locations if pyspark else None
    for folder in folders or []:
        for jar in Path(folder, "jars").glob("ivy-*.jar"):
            return jar
    raise LaggardError(
        "the Ivy inside pyspark was not found",
        cause=f"no jars/ivy-*.jar below {list(folders) if folders else f'any pyspark of {sys.executable}'}",
        fix=f"{sys.executable} -m pip install pyspark==4.2.0",
        exit_code=CONFIGURATION,
    )


def find_java() -> str:
    """Path of the java to run: $JAVA_HOME's, as Spark chooses too, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else f"PATH={os.environ.get('PATH', '')}"
    if java is None or not os.access(java, os.X_OK):
        raise _java_error("Java was not found", f"no java in {where}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    banner = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', banner)  # Java 8 calls itself 1.8
    if version is None or answer.returncode != 0:
        raise _java_error("Java does not run", f"{java} -version says: {banner.strip() or answer.returncode}")
    if int(version[1]) < OLDEST_JAVA:
        raise _java_error(f"Java {version[1]} is too old, Spark needs 17 or 21", f"{java} is the one in {where}")
    return java


def _java_error(what: str, cause: str) -> LaggardError:
    fix = "install Java 17 or 21 (Debian: apt-get install openjdk-17-jre-headless), then set JAVA_HOME to it"
    return LaggardError(what, cause=cause, fix=fix, exit_code=CONFIGURATION)
