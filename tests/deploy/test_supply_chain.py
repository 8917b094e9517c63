"""What we ship of others: every licence is known, and every known weakness has a
reason and a date.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from laggard import __version__

ROOT = Path(__file__).parent.parent.parent
DOCKER = ROOT / "docker"
# Permissive ones, and those that ask for the source of their own files only.
ACCEPTED = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "Unicode-3.0",
        "W3C",
        "Zlib",
    ),
    *(
        "CDDL-1.0",
        "CDDL-1.1",
        "EPL-2.0",
        "GPL-2.0-with-classpath-exception",
        "LGPL-2.1-or-later",
        "MPL-1.1",
    ),
}
TODAY = dt.date(2026, 12, 1)
DERBY: dict[str, Any] = {
    "id": "CVE-2022-46337",
    "package": "derby",
    "version": "10.16.1.1",
    "status": "not_affected",
    "reason": "no server is started",
    "expires": dt.date(2027, 5, 31),
}


@pytest.fixture(scope="module", autouse=True)
def scripts() -> Iterator[None]:
    """The scripts of docker/ can be imported."""
    sys.path.insert(0, str(DOCKER))
    yield
    sys.path.remove(str(DOCKER))


def rows(kind: str) -> list[dict[str, str]]:
    with (DOCKER / "licences.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


def listed(kind: str, user: str) -> set[tuple[str, str]]:
    return {(row["name"], row["version"]) for row in rows(kind) if user in row["used_in"].split()}


@pytest.mark.parametrize("name", ["build", "exporter", "job"])
def test_every_pinned_package_has_a_line_with_its_licence(name: str) -> None:
    """If this fails: make pins."""
    text = (DOCKER / f"requirements-{name}.txt").read_text()
    pinned = set(re.findall(r"(?m)^([a-z0-9._-]+)==(\S+) ", text))
    assert listed("python", name) == pinned | (
        set() if name == "build" else {("laggard", __version__)}
    )


def test_every_jar_has_a_line_with_its_licence() -> None:
    """If this fails: make pins."""
    from licences import USERS  # type: ignore[import-not-found]
    from sbom import split_name  # type: ignore[import-not-found]

    pinned: dict[str, set[Path]] = {"demo": set(), "job": set(), "s3": set()}
    for line in (ROOT / "conf" / "jars.sha256").read_text().splitlines():
        where, _, path = line.split()[1].partition("/")
        pinned[USERS[where]].add(Path(path))
    pinned["job"] |= set(
        Path(str(distribution("pyspark").locate_file("pyspark/jars"))).glob("*.jar")
    )
    for user, paths in pinned.items():
        assert listed("jar", user) == {split_name(path) for path in paths}


@pytest.mark.parametrize("kind", ["python", "jar"])
def test_every_licence_is_known_and_accepted(kind: str) -> None:
    found = {each for row in rows(kind) for each in re.split(r"; | AND | OR ", row["licence"])}
    assert found - ACCEPTED == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("https://www.apache.org/licenses/LICENSE-2.0.txt", "Apache-2.0"),
        (
            '"Apache License, Version 2.0";link="https://www.apache.org/licenses/LICENSE-2.0"',
            "Apache-2.0",
        ),
        (
            (
                "http://www.eclipse.org/legal/epl-2.0, "
                "https://www.gnu.org/software/classpath/license.html"
            ),
            "EPL-2.0; GPL-2.0-with-classpath-exception",
        ),
        (
            "https://oss.oracle.com/licenses/CDDL+GPL-1.1",
            "CDDL-1.1; GPL-2.0-with-classpath-exception",
        ),
        ("MIT License, Business Source License 1.1", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_licence_is_unknown_as_soon_as_one_part_of_it_is(words: str, expected: str) -> None:
    from licences import identifiers

    assert identifiers(words) == expected


def test_every_exception_holds_until_the_first_expires() -> None:
    """`make audit` compares with today: a checkout that passed has to pass later, too."""
    # a script of docker/, on the path here only
    from known_weaknesses import pinned, problems, read_exceptions  # type: ignore[import-not-found]

    exceptions = read_exceptions()

    assert list(problems(exceptions, pinned(), min(each["expires"] for each in exceptions))) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"expires": TODAY}, None),
        (
            {"expires": dt.date(2026, 11, 30)},
            "expired on 2026-11-30: update derby, or give the reason and a date again",
        ),
        ({"expires": dt.date(2028, 1, 1)}, "expires later than in 366 days"),
        ({"package": "log4j"}, "is about log4j 10.16.1.1, which is not pinned: remove it"),
        ({"version": "10.17.1.0"}, "is about derby 10.17.1.0, which is not pinned: remove it"),
        ({"reason": ""}, "has no reason"),
        ({"status": "fine"}, "status is 'fine', expected one of not_affected, affected"),
        ({"until": 1}, "has unknown keys: until"),
    ],
)
def test_an_exception_needs_a_reason_a_date_and_a_package_that_is_pinned(
    change: dict[str, Any], problem: str | None
) -> None:
    from known_weaknesses import problems

    found = list(problems([DERBY | change], {("derby", "10.16.1.1")}, TODAY))

    assert [each.partition("CVE-2022-46337")[2].removeprefix(":").strip() for each in found] == [
        problem
    ] * bool(problem)


def test_a_weakness_is_named_unless_there_is_an_exception_by_one_of_its_names() -> None:
    from known_weaknesses import unexcused

    weakness = {"id": "GHSA-1", "aliases": ["CVE-2022-46337"], "fix_versions": ["10.17.1.0"]}
    answer = [
        {"name": "derby", "version": "10.16.1.1", "vulns": [weakness]},
        {"name": "other", "skip_reason": "x"},
    ]

    assert list(unexcused(answer, [])) == ["derby 10.16.1.1 has GHSA-1; fixed in 10.17.1.0"]
    assert list(unexcused(answer, [DERBY])) == []
    assert len(list(unexcused(answer, [DERBY | {"package": "other"}]))) == 1


def test_clients_are_new_enough_for_what_was_mended_in_them() -> None:
    """kafka-python before 2.3.2 trusts a frame's length; kafka-clients before 3.9.2 has open
    advisories.
    """
    python, jars = dict(listed("python", "job")), dict(listed("jar", "job"))
    assert Version(python["kafka-python"]) >= Version("2.3.2")
    assert Version(jars["kafka-clients"]) >= Version("3.9.2")
