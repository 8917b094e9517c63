"""Look the pinned packages up among known weaknesses and check the exceptions: `make audit`.

The look-up is by pip-audit.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCKER = Path(__file__).resolve().parent
PIP_AUDIT = "pip-audit==2.10.1"  # run by uv in an environment of its own
KEYS = ("id", "package", "version", "status", "reason", "expires")
STATUSES = ("not_affected", "affected")
LONGEST_DAYS = 366
Exceptions = Sequence[dict[str, Any]]


def main() -> None:
    """Check the exceptions, then ask for each list of packages."""
    exceptions = read_exceptions()
    found = list(problems(exceptions, pinned(), dt.datetime.now(dt.timezone.utc).date()))
    skipped: list[str] = []
    for name in ("build", "exporter", "job"):
        answer = ask(DOCKER / f"requirements-{name}.txt")
        skipped += [each["name"] for each in answer if "skip_reason" in each]
        found += unexcused(answer, exceptions)
    if found:
        sys.exit("\n".join(f"laggard: {each}" for each in dict.fromkeys(found)))
    if skipped:
        sys.exit(
            f"laggard: {len(set(skipped))} packages could not be looked up\n"
            "  cause: the package index here has no advisories on "
            f"{', '.join(sorted(set(skipped)))}\n"
            "  fix: run it where the public index is reached, or give the images' sbom.cdx.json "
            "to a scanner"
        )
    print(
        "laggard: no known weakness in the pinned packages; jars: give the image's sbom.cdx.json "
        "to a scanner"
    )


def read_exceptions() -> Exceptions:
    """Return the entries of docker/exceptions.toml."""
    found: Exceptions = tomllib.loads((DOCKER / "exceptions.toml").read_text(encoding="utf-8"))[
        "exception"
    ]
    return found


def pinned() -> set[tuple[str, str]]:
    """Name and version of all that docker/licences.csv lists."""
    with (DOCKER / "licences.csv").open(newline="", encoding="utf-8") as file:
        return {(row["name"], row["version"]) for row in csv.DictReader(file)}


def problems(exceptions: Exceptions, pins: set[tuple[str, str]], today: dt.date) -> Iterator[str]:
    """Yield sentences on invalid entries.

    Such an entry is incomplete, expired, too far ahead, or names nothing that is pinned.
    """
    for each in exceptions:
        name = f"docker/exceptions.toml: {each.get('id', 'an entry')}"
        if missing := [key for key in KEYS if not each.get(key)]:
            yield f"{name} has no {', '.join(missing)}"
            continue
        if unknown := each.keys() - set(KEYS):
            yield f"{name} has unknown keys: {', '.join(sorted(unknown))}"
        if each["status"] not in STATUSES:
            yield f"{name}: status is {each['status']!r}, expected one of {', '.join(STATUSES)}"
        if each["expires"] < today:
            yield (
                f"{name} expired on {each['expires']}: update {each['package']}, or give the "
                "reason and a date again"
            )
        if each["expires"] > today + dt.timedelta(days=LONGEST_DAYS):
            yield f"{name} expires later than in {LONGEST_DAYS} days"
        if (each["package"], each["version"]) not in pins:
            yield (
                f"{name} is about {each['package']} {each['version']}, which is not pinned: "
                "remove it"
            )


def ask(requirements: Path) -> list[dict[str, Any]]:
    """Return the packages of a list with what pip-audit found."""
    tool = [sys.executable, "-m", "uv", "tool", "run", "--quiet", "--from", PIP_AUDIT, "pip-audit"]
    options = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(
        [*tool, *options, "--requirement", str(requirements)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        sys.exit(f"laggard: pip-audit gave no answer\n{done.stderr[-2000:]}")
    return found


def unexcused(answer: list[dict[str, Any]], exceptions: Exceptions) -> Iterator[str]:
    """Yield sentences on weaknesses without an exception, by any of their names."""
    excused = {(each["package"], each["id"]) for each in exceptions}
    for package in answer:
        for each in package.get("vulns", ()):
            if not any(
                (package["name"], name) in excused for name in (each["id"], *each["aliases"])
            ):
                fixed = ", ".join(each["fix_versions"]) or "no version"
                yield f"{package['name']} {package['version']} has {each['id']}; fixed in {fixed}"


if __name__ == "__main__":
    main()
