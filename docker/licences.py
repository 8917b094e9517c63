"""Write docker/licences.csv: the licence of each package and jar.

Packages are in docker/requirements-*.txt, jars in conf/jars.sha256.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from sbom import LICENCES, coordinates, split_name

DOCKER = Path(__file__).resolve().parent
ROOT = DOCKER.parent
UNKNOWN = "unknown"
USERS = {"spark": "job", "broker": "demo", "s3": "s3"}  # of the folders in conf/jars.sha256

# The words of metadata, and their SPDX identifier.
_WORDS = (
    (r"(?i)apache|google/flatbuffers", "Apache-2.0"),
    (r"CDDL\+GPL|javaee/activation", "CDDL-1.1; GPL-2.0-with-classpath-exception"),
    (r"(?i)classpath", "GPL-2.0-with-classpath-exception"),
    (r"epl-2\.0|epl-v20|EPLv2|Eclipse Public License - v 2", "EPL-2.0"),
    (r"BSD.2-Clause", "BSD-2-Clause"),
    (
        (
            r"edl-v10|EDLv1|(?i:BSD.3-clause)|New BSD|antlr\.org/license|asm\.ow2"
            r"|ThreeTen/threeten-extra"
        ),
        "BSD-3-Clause",
    ),
    (r"\bMIT\b|/mit\b|jquery\.org/license", "MIT"),
    (r"publicdomain/zero", "CC0-1.0"),
    (r"MPL/1\.1", "MPL-1.1"),
    (r"(?i)lgpl-2\.1|GNU Lesser General Public", "LGPL-2.1-or-later"),
    (r"W3C|w3\.org", "W3C"),
    (r"^Unicode-3\.0$", "Unicode-3.0"),
    (r"^0BSD$", "0BSD"),
)
# Those whose metadata name none or say too little: by the LICENSE of Spark's binary distribution,
# or of the project.
_BY_HAND = {
    "Apache-2.0": (
        "RoaringBitmap breeze breeze-macros chill chill-java delta-spark delta-storage derbyshared "
        "hash4j jackson-module-scala json4s-ast json4s-core json4s-jackson json4s-jackson-core "
        "json4s-scalap jsr305 kubernetes-client kubernetes-client-api kubernetes-httpclient-vertx "
        "libfb303 metrics-core orc-core orc-format orc-mapreduce oro parquet-common "
        "parquet-format-structures rocksdbjni scala-parallel-collections stax-api tink "
        "vertx-auth-common vertx-uri-template vertx-web-client vertx-web-common zookeeper "
        "zookeeper-jute"
    ),
    "MIT-0": "reactive-streams",
    "MIT": "algebra arpack blas cats-kernel lapack pcollections slf4j-api spire spire-macros "
    "spire-platform spire-util",
    "BSD-3-Clause": "antlr-runtime arpack_combined_all ST4 minlog paranamer re2j py4j "
    "leveldbjni-all",
    "BSD-2-Clause": "javolution jline",
    "CDDL-1.0": "activation transaction-api",
    "CDDL-1.1; GPL-2.0-with-classpath-exception": "jaxb-api",
    "CDDL-1.1": "jta",
}


class Row(NamedTuple):
    """A line of the list: images that have it, or `demo`, `s3` or `build`: in no image."""

    kind: str
    name: str
    version: str
    licence: str
    used_in: str


def main() -> None:
    """Collect, and write the list."""
    users: dict[tuple[str, str, str, str], set[str]] = {}
    for *row, user in (*packages(), *pinned_jars(), *spark_jars()):
        users.setdefault(tuple(row), set()).add(user)
    with LICENCES.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows((*row, " ".join(sorted(users[row]))) for row in sorted(users))
    print(f"laggard: {LICENCES.relative_to(ROOT)}", file=sys.stderr)
    unknown = [f"{name} {version}" for _, name, version, licence in users if licence == UNKNOWN]
    if unknown:
        sys.exit(
            f"laggard: no licence is known of {', '.join(unknown)}: add it to {Path(__file__).name}"
        )


def pins(name: str) -> dict[str, str]:
    """Return package to version of a file of hashed requirements."""
    text = (DOCKER / f"requirements-{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^([a-z0-9._-]+)==(\S+) ", text))


def packages() -> Iterator[Row]:
    """Yield laggard and the pinned Python packages, by the metadata of these exact versions."""
    with tempfile.TemporaryDirectory() as folder:
        for user in ("build", "exporter", "job"):
            ours = {} if user == "build" else {"laggard": distribution("laggard").version}
            for name, version in (pins(user) | ours).items():
                found = installed(name, version, Path(folder))
                yield Row("python", name, version, by_hand(name) or python_licence(found), user)


def installed(name: str, version: str, folder: Path) -> Distribution:
    """Return the package as it is installed here, else put into this folder."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        found = None
    if found and found.version == version:
        return found
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(folder),
        f"{name}=={version}",
    ]
    subprocess.run(command, check=True)
    return next(distributions(name=name, path=[str(folder)]))


def python_licence(found: Distribution) -> str:
    """Return the licence by its expression, its classifier or its first line."""
    said = found.metadata
    classifiers = [
        each for each in said.get_all("Classifier") or [] if each.startswith("License :: ")
    ]
    first = next(iter((said.get("License") or "").strip().splitlines()), "")
    return said.get("License-Expression") or identifiers(first or ", ".join(classifiers))


def pinned_jars() -> Iterator[Row]:
    """Yield the jars of conf/jars.sha256: `make jars` has fetched them."""
    for line in (ROOT / "conf" / "jars.sha256").read_text(encoding="utf-8").splitlines():
        where, _, path = line.split()[1].partition("/")
        yield jar_row(ROOT / ".jars" / where / Path(path).name, USERS[where])


def spark_jars() -> Iterator[Row]:
    """Yield the jars inside pyspark; those of connect-repl are left out of the image."""
    for path in Path(str(distribution("pyspark").locate_file("pyspark/jars"))).glob("*.jar"):
        yield jar_row(path, "job")


def jar_row(path: Path, used_in: str) -> Row:
    """Return a jar's line, by its manifest, its pom or its licence file."""
    name, version = split_name(path)
    licence = by_hand(name)
    if not licence:
        with ZipFile(path) as jar:
            licence = (
                manifest_licence(jar)
                or pom_licence(jar, coordinates(jar, name), name)
                or licence_file(jar)
            )
    return Row("jar", name, version, licence or UNKNOWN, used_in)


def by_hand(name: str) -> str:
    """Return the licence from the table above.

    The name of a Scala jar contains the version of Scala.
    """
    plain = re.sub(r"(_4\.2)?_2\.13$", "", name)
    return next((licence for licence, names in _BY_HAND.items() if plain in names.split()), "")


def identifiers(text: str) -> str:
    """Return SPDX identifiers of what metadata say, each once; unknown if one part is."""
    parts = re.split(r", ", text.replace("License, Version", "License Version"))
    found = [
        next((spdx for words, spdx in _WORDS if re.search(words, part)), UNKNOWN) for part in parts
    ]
    return (
        UNKNOWN
        if UNKNOWN in found
        else "; ".join(sorted({each for some in found for each in some.split("; ")}))
    )


def manifest_licence(jar: ZipFile) -> str:
    """Return the licence by the jar's manifest, continued lines joined."""
    if "META-INF/MANIFEST.MF" not in jar.namelist():
        return ""
    text = (
        jar.read("META-INF/MANIFEST.MF")
        .decode("utf-8", "replace")
        .replace("\r\n", "\n")
        .replace("\n ", "")
    )
    found = re.search(r"(?m)^Bundle-License: *(.+)$", text)
    return identifiers(found[1].strip()) if found else ""


def pom_licence(jar: ZipFile, group: str, name: str) -> str:
    """Return the licence by the artifact's own pom, where the jar has it."""
    path = f"META-INF/maven/{group}/{name}/pom.xml"
    text = jar.read(path).decode("utf-8", "replace") if path in jar.namelist() else ""
    found = re.findall(r"<license>\s*<name>\s*([^<]+?)\s*</name>", text)
    return identifiers(", ".join(found)) if found else ""


def licence_file(jar: ZipFile) -> str:
    """Return Apache's licence by its text: most jars that name none bring that."""
    for name in jar.namelist():
        if re.fullmatch(r"(META-INF/)?LICENSE(\.txt|\.md)?", name):
            text = jar.read(name)[:2000].decode("utf-8", "replace")
            if "Apache License" in text and "Version 2.0" in text:
                return "Apache-2.0"
    return ""


if __name__ == "__main__":
    main()
