"""Write a CycloneDX list of an image's Python packages, jars and Debian packages.

The list has their licences and checksums.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from zipfile import ZipFile

Component = dict[str, Any]
Licences = dict[tuple[str, str, str], str]  # by kind, name and version
LICENCES = Path(__file__).resolve().parent / "licences.csv"


def main() -> None:
    """Collect, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("name")
    parser.add_argument("packages", type=Path, help="installed Python packages")
    parser.add_argument("--jars", type=Path, nargs="*", default=[], help="folders with jars")
    parser.add_argument(
        "--files", nargs="*", default=[], help="files of Debian packages; without any: all packages"
    )
    args = parser.parse_args()
    with LICENCES.open(newline="", encoding="utf-8") as file:
        licences = {
            (row["kind"], row["name"], row["version"]): row["licence"]
            for row in csv.DictReader(file)
        }
    found = [
        *python_packages(args.packages, licences),
        *jars(args.jars, licences),
        *debian_packages(args.files),
    ]
    components = list({each["bom-ref"]: each for each in found}.values())
    version = next(each["version"] for each in components if each["name"] == "laggard")
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": args.name, "version": version}},
        "components": components,
    }
    args.out.write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")


def component(
    kind: str, name: str, version: str, licence: str, *, group: str = "", digest: str = ""
) -> Component:
    """Return one entry; a file has its sum in its reference, as two jars may have the same name."""
    path = "/".join(part for part in (kind, group, name) if part)
    purl = f"pkg:{path}@{version}"
    entry: Component = {
        "type": "library",
        "bom-ref": f"{purl}#{digest[:12]}" if digest else purl,
        "name": name,
    }
    entry |= {"version": version, "purl": purl}
    if group:
        entry["group"] = group
    if licence:
        entry["licenses"] = licence_entries(kind, licence)
    if digest:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return entry


def licence_of(licences: Licences, kind: str, name: str, version: str) -> str:
    """Return the licence by the list; an image with anything that is not on it is not built."""
    if (kind, name, version) not in licences:
        sys.exit(f"laggard: {LICENCES.name} has no {kind} {name} {version}: make pins")
    return licences[kind, name, version]


def licence_entries(kind: str, licence: str) -> list[Component]:
    """Return SPDX expressions and identifiers; Debian names licences in words of its own."""
    if kind.startswith("deb"):
        return [{"license": {"name": licence[:200]}}]
    if " " in licence and ";" not in licence:
        return [{"expression": licence}]
    return [{"license": {"id": each}} for each in licence.split("; ")]


def python_packages(folder: Path, licences: Licences) -> Iterator[Component]:
    """Yield the packages with their metadata in this folder."""
    for found in distributions(path=[str(folder)]):
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()
        yield component(
            "pypi", name, found.version, licence_of(licences, "python", name, found.version)
        )


def jars(folders: list[Path], licences: Licences) -> Iterator[Component]:
    """Yield the jars below these folders, by the coordinates inside, else by file name."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.jar")):
        name, version = split_name(path)
        with ZipFile(path) as jar:
            group = coordinates(jar, name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        licence = licence_of(licences, "jar", name, version)
        yield component("maven", name, version, licence, group=group, digest=digest)


def split_name(path: Path) -> tuple[str, str]:
    """Return a jar's name and version, by its file name."""
    split = re.fullmatch(r"(.+?)-(\d.*)", path.stem)
    return (split[1], split[2]) if split else (path.stem, "unknown")


def coordinates(jar: ZipFile, name: str) -> str:
    """Return the group of the artifact with this name: a jar may hold others too."""
    pattern = re.compile(rf"META-INF/maven/([^/]+)/{re.escape(name)}/pom\.properties")
    return next((found[1] for found in map(pattern.fullmatch, jar.namelist()) if found), "")


def debian_packages(files: list[str]) -> Iterator[Component]:
    """Yield the installed Debian packages, or those that own these files."""
    # /lib is a link to /usr/lib, and a package may name either
    both = [
        *files,
        *(f"/usr{file}" for file in files),
        *(file.removeprefix("/usr") for file in files),
    ]
    names = sorted({line.split(":")[0] for line in asked("dpkg", "-S", *both)}) if files else []
    for line in asked("dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *names):
        name, version = line.split()
        yield component("deb/debian", name, version, debian_licence(name))


def debian_licence(name: str) -> str:
    """Return the licences that the package's copyright file names."""
    file = Path("/usr/share/doc", name, "copyright")
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return ", ".join(sorted(set(re.findall(r"(?m)^License: *(\S.*?)\s*$", text))))


def asked(*command: str) -> list[str]:
    """Return the lines a command prints; files of no package make it fail, and are left out."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


if __name__ == "__main__":
    main()
