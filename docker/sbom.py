"""Write a CycloneDX list of what an image holds: Python packages, jars and Debian packages, with licences and sums."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

Component = dict[str, Any]


def main() -> None:
    """Collect, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("name")
    parser.add_argument("packages", type=Path, help="installed Python packages")
    parser.add_argument("--jars", type=Path, nargs="*", default=[], help="folders with jars")
    parser.add_argument("--files", nargs="*", default=[], help="files of Debian packages; without any: all packages")
    args = parser.parse_args()
    found = [*python_packages(args.packages), *jars(args.jars), *debian_packages(args.files)]
    components = list({each["bom-ref"]: each for each in found}.values())
    version = next(each["version"] for each in components if each["name"] == "laggard")
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))}",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": args.name, "version": version}},
        "components": components,
    }
    args.out.write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")


def component(kind: str, name: str, version: str, licence: str, *, group: str = "", digest: str = "") -> Component:
    """One entry; a file has its sum in its reference, as two jars may have the same name."""
    path = "/".join(part for part in (kind, group, name) if part)
    purl = f"pkg:{path}@{version}"
    entry: Component = {"type": "library", "bom-ref": f"{purl}#{digest[:12]}" if digest else purl, "name": name}
    entry |= {"version": version, "purl": purl}
    if group:
        entry["group"] = group
    if licence:
        entry["licenses"] = [{"license": {"name": licence[:200]}}]
    if digest:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return entry


def python_packages(folder: Path) -> Iterator[Component]:
    """The packages with their metadata in this folder."""
    for found in distributions(path=[str(folder)]):
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()
        yield component("pypi", name, found.version, python_licence(found))


def python_licence(found: Distribution) -> str:
    """The licence by its expression, its classifier or its first line."""
    said = found.metadata
    classifiers = [each for each in said.get_all("Classifier") or [] if each.startswith("License :: ")]
    first = next(iter((said.get("License") or "").strip().splitlines()), "")
    return said.get("License-Expression") or first or ", ".join(each.rpartition(" :: ")[2] for each in classifiers)


def jars(folders: list[Path]) -> Iterator[Component]:
    """The jars below these folders, by the coordinates inside them, else by their file names."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.jar")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        split = re.fullmatch(r"(.+?)-(\d.*)", path.stem)
        name, version = (split[1], split[2]) if split else (path.stem, "unknown")
        try:
            with ZipFile(path) as jar:
                group = coordinates(jar, name)
                licence = manifest_licence(jar) or pom_licence(jar, group, name) or licence_file(jar)
        except BadZipFile:
            group = licence = ""
        yield component("maven", name, version, licence, group=group, digest=digest)


def coordinates(jar: ZipFile, name: str) -> str:
    """The group of the artifact with this name: a jar may hold others too."""
    pattern = re.compile(rf"META-INF/maven/([^/]+)/{re.escape(name)}/pom\.properties")
    return next((found[1] for found in map(pattern.fullmatch, jar.namelist()) if found), "")


def manifest_licence(jar: ZipFile) -> str:
    """Read the jar's manifest, continued lines joined."""
    if "META-INF/MANIFEST.MF" not in jar.namelist():
        return ""
    text = jar.read("META-INF/MANIFEST.MF").decode("utf-8", "replace").replace("\r\n", "\n").replace("\n ", "")
    found = re.search(r"(?m)^Bundle-License: *(.+)$", text)
    return found[1].strip() if found else ""


def pom_licence(jar: ZipFile, group: str, name: str) -> str:
    """Read the artifact's own pom, where the jar has it."""
    path = f"META-INF/maven/{group}/{name}/pom.xml"
    text = jar.read(path).decode("utf-8", "replace") if path in jar.namelist() else ""
    return ", ".join(re.findall(r"<license>\s*<name>\s*([^<]+?)\s*</name>", text))


def licence_file(jar: ZipFile) -> str:
    """Apache's licence by its text: most jars that name none bring that."""
    for name in jar.namelist():
        if re.fullmatch(r"(META-INF/)?LICENSE(\.txt|\.md)?", name):
            text = jar.read(name)[:2000].decode("utf-8", "replace")
            if "Apache License" in text and "Version 2.0" in text:
                return "Apache-2.0"
    return ""


def debian_packages(files: list[str]) -> Iterator[Component]:
    """The installed Debian packages, or those that own these files."""
    # /lib is a link to /usr/lib, and a package may name either
    both = [*files, *(f"/usr{file}" for file in files), *(file.removeprefix("/usr") for file in files)]
    names = sorted({line.split(":")[0] for line in asked("dpkg", "-S", *both)}) if files else []
    for line in asked("dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *names):
        name, version = line.split()
        yield component("deb/debian", name, version, debian_licence(name))


def debian_licence(name: str) -> str:
    """The licences that the package's copyright file names."""
    file = Path("/usr/share/doc", name, "copyright")
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return ", ".join(sorted(set(re.findall(r"(?m)^License: *(\S.*?)\s*$", text))))


def asked(*command: str) -> list[str]:
    """The lines a command prints; files of no package make it fail, and are left out."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


if __name__ == "__main__":
    main()
