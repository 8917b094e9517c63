"""The jars: what is whole is used at once, what is not is named."""

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest

from laggard import ivy, jars
from laggard.conf import conf_file
from laggard.errors import CONFIGURATION, DAMAGED, UNREACHABLE, LaggardError

CONTENTS = {"one-1.0.jar": b"first", "two-2.0.jar": b"second"}
SUMS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jar folder with two files in `spark` and a committed list that fits them."""
    sums_file = tmp_path / "jars.sha256"
    sums_file.write_text("".join(f"{digest}  spark/{name}\n" for name, digest in SUMS.items()))
    shipped = {"jars.sha256": sums_file, "ivy.xml": conf_file("ivy.xml")}
    monkeypatch.setattr(jars, "conf_file", shipped.__getitem__)
    base = tmp_path / "jars"
    monkeypatch.setenv("LAGGARD_JARS", str(base))
    (base / "spark").mkdir(parents=True)
    for name, content in CONTENTS.items():
        (base / "spark" / name).write_bytes(content)
    return base


@pytest.fixture
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any attempt to run Ivy fails the test."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("Ivy was started")

    monkeypatch.setattr(ivy, "retrieve", refuse)


def test_every_kind_of_wrong_file_is_named(base: Path) -> None:
    (base / "spark" / "one-1.0.jar").write_bytes(b"other")
    (base / "spark" / "two-2.0.jar").unlink()
    (base / "spark" / "three-3.0.jar").write_bytes(b"third")

    problems = jars.sum_problems(base, "spark", SUMS)

    actual = hashlib.sha256(b"other").hexdigest()
    assert problems == [
        "missing: spark/two-2.0.jar",
        "unexpected: spark/three-3.0.jar",
        f"changed: spark/one-1.0.jar has sum {actual}, expected {SUMS['one-1.0.jar']}",
    ]


@pytest.mark.usefixtures("no_download")
def test_right_jars_are_taken_over_and_listed_without_a_download(base: Path) -> None:
    assert jars.spark_jars() == [base / "spark" / "one-1.0.jar", base / "spark" / "two-2.0.jar"]


@pytest.mark.usefixtures("base", "no_download")
def test_a_second_run_hashes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    jars.fetch_jars(["spark"])
    hashed: list[Path] = []
    monkeypatch.setattr(jars, "_sha256", hashed.append)

    jars.fetch_jars(["spark"])

    assert hashed == []


def test_a_stamped_folder_is_not_trusted_after_a_change_of_size_time_or_sums(base: Path) -> None:
    jars.fetch_jars(["spark"])
    jar = base / "spark" / "one-1.0.jar"
    stat = jar.stat()
    assert jars.is_verified("spark")

    os.utime(jar, (stat.st_atime, stat.st_mtime + 2))
    assert not jars.is_verified("spark")

    jar.write_bytes(b"longer than before")
    os.utime(jar, (stat.st_atime, stat.st_mtime))
    assert not jars.is_verified("spark")

    jar.write_bytes(CONTENTS["one-1.0.jar"])
    os.utime(jar, (stat.st_atime, stat.st_mtime))
    assert jars.is_verified("spark")
    sums_file = base.parent / "jars.sha256"
    sums_file.write_text(sums_file.read_text().replace(SUMS["one-1.0.jar"], "0" * 64))
    assert not jars.is_verified("spark")


def test_verify_finds_a_change_that_keeps_size_and_time(base: Path) -> None:
    jars.fetch_jars(["spark"])
    jar = base / "spark" / "one-1.0.jar"
    stat = jar.stat()
    jar.write_bytes(b"FIRST")
    os.utime(jar, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert jars.is_verified("spark")  # what the stamp cannot see

    with pytest.raises(LaggardError) as caught:
        jars.verify_jars(["spark"])

    assert caught.value.exit_code == DAMAGED
    assert "changed: spark/one-1.0.jar has sum" in caught.value.cause
    assert caught.value.fix.endswith("python -m laggard.jars")


def test_a_download_with_wrong_sums_is_refused_and_never_looks_complete(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def retrieve_wrong(_: object, into: Path, *__: object, **___: object) -> None:
        (into / "spark").mkdir(parents=True)
        (into / "spark" / "one-1.0.jar").write_bytes(b"damaged")

    (base / "spark" / "two-2.0.jar").unlink()
    monkeypatch.setattr(ivy, "retrieve", retrieve_wrong)

    with pytest.raises(LaggardError) as caught:
        jars.fetch_jars(["spark"])

    assert "missing: spark/two-2.0.jar" in caught.value.cause
    assert "changed: spark/one-1.0.jar" in caught.value.cause
    assert not jars.is_verified("spark")
    assert "fetching the spark jars again: missing: spark/two-2.0.jar" in capsys.readouterr().err


def test_an_unwritable_place_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGGARD_JARS", "/proc/laggard")  # not even root can create it

    with pytest.raises(LaggardError) as caught:
        jars.fetch_jars()

    assert caught.value.exit_code == CONFIGURATION
    assert "/proc/laggard" in caught.value.cause
    assert "LAGGARD_JARS=" in caught.value.fix


def test_an_unreachable_repository_ends_in_an_error_that_shows_what_ivy_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:  # bound and not listening: every connection is refused at once
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port}")
        monkeypatch.setenv("LAGGARD_JARS", str(tmp_path))

        with pytest.raises(LaggardError) as caught:
            jars.fetch_jars(["spark"])

    assert caught.value.exit_code == UNREACHABLE
    assert "spark-sql-kafka" in caught.value.cause
    assert "proxy" in caught.value.fix
    assert not jars.is_verified("spark")


def test_a_missing_java_is_named_with_the_place_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(LaggardError) as caught:
        ivy.find_java()

    assert caught.value.cause == f"no java in JAVA_HOME={tmp_path}"


def test_an_old_java_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(LaggardError, match="Java 8 is too old"):
        ivy.find_java()


def test_the_committed_list_names_both_folders_and_no_file_twice() -> None:
    lines = conf_file("jars.sha256").read_text().splitlines()

    listed = {conf: jars.expected_sums(conf) for conf in jars.CONFS}

    assert sum(map(len, listed.values())) == len(lines)
    assert "kafka-clients-3.9.2.jar" in listed["spark"]
    assert "kafka-clients-4.2.0.jar" in listed["broker"]


@pytest.mark.usefixtures("base", "no_download")
def test_what_is_here_is_ready_within_0_3_seconds() -> None:
    jars.fetch_jars(["spark"])
    start = time.process_time()

    jars.fetch_jars(["spark"])

    assert time.process_time() - start < 0.3
