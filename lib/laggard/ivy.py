"""The Ivy inside pyspark: it knows the public repository and lists the jars of conf/ivy.xml."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from zipfile import ZipFile

from laggard.conf import conf_file
from laggard.errors import CONFIGURATION, UNREACHABLE, LaggardError

CONFS = ("spark", "s3", "broker")
OLDEST_JAVA = 17
RESOLVE_LIMIT_SECONDS = 1800
# what Ivy itself takes jars from, unless its user has other settings
_SETTINGS = "org/apache/ivy/core/settings/repository.properties"
_PUBLIC_ROOT = "ivy.ibiblio.default.artifact.root"


def public_repository() -> str:
    """Return the address of the public Maven repository, "" if Ivy's settings have none."""
    with ZipFile(_ivy_jar()) as jar:
        lines = jar.read(_SETTINGS).decode().splitlines()
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    return settings.get(_PUBLIC_ROOT, "")


def resolve(into: Path) -> list[str]:
    """Return lines for conf/jars.sha256 for the jars that conf/ivy.xml asks for.

    Each line has the jar's sum, its configuration and its path.
    """
    command = [
        *(
            find_java(),
            "-cp",
            str(_ivy_jar()),
            "org.apache.ivy.Main",
            "-ivy",
            str(conf_file("ivy.xml")),
        ),
        *("-cache", str(into / "cache"), "-confs", *CONFS, "-types", "jar", "bundle"),
        *(
            "-retrieve",
            f"{into}/jars/[conf]/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]",
        ),
    ]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=RESOLVE_LIMIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        tail = done.stdout.decode(errors="replace").strip().splitlines()[-12:]
        what = "Ivy could not find the jars of conf/ivy.xml"
        raise LaggardError(
            what, cause="\n  ".join(tail), fix="mend conf/ivy.xml", exit_code=UNREACHABLE
        )
    folder = into / "jars"
    lines: list[str] = []
    for conf in CONFS:
        jars = sorted((folder / conf).rglob("*.jar"), key=attrgetter("name"))
        lines += (_line(path, folder) for path in jars)
    return lines


def _line(path: Path, base: Path) -> str:
    conf, organisation, *rest = path.relative_to(base).parts
    where = "/".join([conf, *organisation.split("."), *rest])
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {where}\n"


def _ivy_jar() -> Path:
    pyspark = find_spec("pyspark")  # found, not imported: an import costs a second
    folders = pyspark.submodule_search_locations if pyspark else None
    for folder in folders or []:
        for jar in Path(folder, "jars").glob("ivy-*.jar"):
            return jar
    raise LaggardError(
        "the Ivy inside pyspark was not found",
        cause="no jars/ivy-*.jar below "
        f"{list(folders) if folders else f'any pyspark of {sys.executable}'}",
        fix=f"{sys.executable} -m pip install pyspark==4.2.0",
        exit_code=CONFIGURATION,
    )


def find_java() -> str:
    """Return the path of java: that of $JAVA_HOME, as in Spark, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else f"PATH={os.environ.get('PATH', '')}"
    if java is None or not os.access(java, os.X_OK):
        raise _java_error("Java was not found", f"no java in {where}")
    answer = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=60, check=False
    )
    banner = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', banner)  # Java 8 calls itself 1.8
    if version is None or answer.returncode != 0:
        raise _java_error(
            "Java does not run", f"{java} -version says: {banner.strip() or answer.returncode}"
        )
    if int(version[1]) < OLDEST_JAVA:
        raise _java_error(
            f"Java {version[1]} is too old, Spark needs 17 or 21", f"{java} is the one in {where}"
        )
    return java


def _java_error(what: str, cause: str) -> LaggardError:
    fix = (
        "install Java 17 or 21 (Debian: apt-get install openjdk-17-jre-headless), then set "
        "JAVA_HOME to it"
    )
    return LaggardError(what, cause=cause, fix=fix, exit_code=CONFIGURATION)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        lines = resolve(Path(scratch))
    conf_file("jars.sha256").write_text("".join(lines), encoding="utf-8")
    print(f"laggard: {len(lines)} jars in conf/jars.sha256", file=sys.stderr)
