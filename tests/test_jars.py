"""The jars: what is whole is used at once, what is not is named."""

import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from laggard import download, ivy, jars
from laggard.conf import conf_file
from laggard.errors import CONFIGURATION, DAMAGED, UNREACHABLE, LaggardError
from patience import patient
from web_server import Answers, serving

CONTENTS = {"one-1.0.jar": b"first", "two-2.0.jar": b"second"}
SUMS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jar folder with two files in `spark` and a committed list that fits them."""
    sums_file = tmp_path / "jars.sha256"
    sums_file.write_text(
        "".join(f"{digest}  spark/org/some/{name}\n" for name, digest in SUMS.items())
    )
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
    """Any attempt to download fails the test."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a download was started")

    monkeypatch.setattr(jars, "download", refuse)


@pytest.fixture
def mirror(base: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """A mirror with both files, and none of them here."""
    for name in CONTENTS:
        (base / "spark" / name).unlink()
    monkeypatch.setattr(download, "RETRY_SECONDS", 0.01)
    with serving(
        {f"/maven/org/some/{name}": content for name, content in CONTENTS.items()}
    ) as answers:
        monkeypatch.setenv("LAGGARD_JARS_MIRROR", f"{answers.url}/maven/")
        # a proxy of this machine reaches no loopback address of ours
        monkeypatch.setenv("no_proxy", "*")
        yield answers


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


def test_missing_jars_come_from_the_mirror(base: Path, mirror: Answers) -> None:
    assert [path.read_bytes() for path in jars.spark_jars()] == [b"first", b"second"]
    assert sorted(mirror.asked) == [f"/maven/org/some/{name}" for name in sorted(CONTENTS)]
    assert jars.is_verified("spark")


def test_a_folder_can_be_the_mirror(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mirror" / "org" / "some").mkdir(parents=True)
    (base / "spark" / "one-1.0.jar").rename(tmp_path / "mirror/org/some/one-1.0.jar")
    (base / "spark" / "two-2.0.jar").rename(tmp_path / "mirror/org/some/two-2.0.jar")
    monkeypatch.setenv("LAGGARD_JARS_MIRROR", f"file://{tmp_path}/mirror")

    assert [path.read_bytes() for path in jars.spark_jars()] == [b"first", b"second"]


def test_a_download_with_a_wrong_sum_is_refused_and_never_looks_complete(
    base: Path, mirror: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.bodies["/maven/org/some/one-1.0.jar"] = b"damaged"

    with pytest.raises(LaggardError) as caught:
        jars.fetch_jars(["spark"])

    assert caught.value.exit_code == DAMAGED
    assert (
        f"has the sum {hashlib.sha256(b'damaged').hexdigest()}, expected {SUMS['one-1.0.jar']}"
        in caught.value.cause
    )
    assert not jars.is_verified("spark")
    assert "fetching the spark jars again: missing: spark/one-1.0.jar" in capsys.readouterr().err


@pytest.mark.usefixtures("base")
def test_a_second_try_asks_only_for_what_the_first_did_not_bring(
    mirror: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "CONNECTIONS", 1)
    second = mirror.bodies.pop("/maven/org/some/two-2.0.jar")
    with pytest.raises(LaggardError):
        jars.fetch_jars(["spark"])
    mirror.bodies["/maven/org/some/two-2.0.jar"] = second
    mirror.asked.clear()

    jars.fetch_jars(["spark"])

    assert mirror.asked == ["/maven/org/some/two-2.0.jar"]


@pytest.mark.usefixtures("base")
def test_an_overloaded_mirror_is_asked_again(mirror: Answers) -> None:
    mirror.refusals["/maven/org/some/one-1.0.jar"] = 2

    jars.fetch_jars(["spark"])

    assert mirror.asked.count("/maven/org/some/one-1.0.jar") == 3


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize("length", ["many", "-5", "4", "999"])
def test_a_wrong_length_in_the_answer_never_crashes(mirror: Answers, length: str) -> None:
    mirror.lengths["/maven/org/some/one-1.0.jar"] = length

    if length == "4":
        with pytest.raises(LaggardError, match="differs from the list"):
            jars.fetch_jars(["spark"])
    else:  # the sum decides
        jars.fetch_jars(["spark"])


@pytest.mark.usefixtures("base")
def test_an_answer_that_trickles_ends_at_the_time_limit(mirror: Answers, tmp_path: Path) -> None:
    mirror.pause_seconds = 0.2
    mirror.bodies["/long"] = b"x" * 10_000
    start = time.monotonic()
    wanted = download.Wanted(f"{mirror.url}/long", tmp_path / "long", "0")

    with pytest.raises(LaggardError, match="could not be downloaded") as caught:
        download.download([wanted], limit_seconds=0.5)

    assert caught.value.exit_code == UNREACHABLE
    assert time.monotonic() - start < patient(3)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://[::1",
            "host:notaport",
            "http://host:notaport/x",
            "http://host:0/x",
            " ",
            "?x=1",
            "https:///x",
        ),
        *(
            "https://host/x?y=1",
            "https://host/x#y",
            "https://ann:secret@host/x",
            "ftp://host/x",
            "https://ho st/x",
        ),
        *("file:relative", "file://host/x", "/folder", "https://host/x ", "http://host:99999/x"),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_a_mirror_that_is_no_address_is_refused_with_the_form_it_should_have(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGGARD_JARS_MIRROR", address)

    with pytest.raises(LaggardError, match="LAGGARD_JARS_MIRROR is no address") as caught:
        jars.fetch_jars(["spark"])

    assert caught.value.exit_code == CONFIGURATION
    assert "https://HOST[:PORT]/PATH" in caught.value.fix
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["http://[::1]:8081/maven", "https://host", "file:///some/folder/"]
)
def test_a_mirror_may_be_any_host_or_a_folder(address: str) -> None:
    assert download.check_base(address, "X") == address.rstrip("/")


def test_the_public_repository_is_the_one_of_ivys_own_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LAGGARD_JARS_MIRROR", raising=False)
    assert re.fullmatch(r"https://[a-z0-9.]+/maven2", jars.repository())


def test_an_ivy_whose_settings_name_no_repository_asks_for_a_mirror(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LAGGARD_JARS_MIRROR", raising=False)
    monkeypatch.setattr(ivy, "_PUBLIC_ROOT", "renamed")

    with pytest.raises(LaggardError, match="LAGGARD_JARS_MIRROR is no address") as caught:
        jars.repository()

    assert caught.value.exit_code == CONFIGURATION


def test_an_unwritable_place_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGGARD_JARS", "/proc/laggard")  # not even root can create it

    with pytest.raises(LaggardError) as caught:
        jars.fetch_jars()

    assert caught.value.exit_code == CONFIGURATION
    assert "/proc/laggard" in caught.value.cause
    assert "LAGGARD_JARS=" in caught.value.fix


@pytest.mark.usefixtures("base")
def test_an_unreachable_mirror_is_named_with_three_remedies(mirror: Answers) -> None:
    mirror.close()

    with pytest.raises(LaggardError) as caught:
        jars.fetch_jars(["spark"])

    assert caught.value.exit_code == UNREACHABLE
    assert f"{mirror.url}/maven/org/some/" in caught.value.cause
    assert all(
        word in caught.value.fix
        for word in ("python -m laggard.jars", "https_proxy", "LAGGARD_JARS_MIRROR")
    )
    assert not jars.is_verified("spark")


def test_a_missing_java_is_named_with_the_place_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(LaggardError) as caught:
        ivy.find_java()

    assert caught.value.cause == f"no java in JAVA_HOME={tmp_path}"


def test_an_old_java_is_refused_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(LaggardError, match="Java 8 is too old"):
        ivy.find_java()


def test_the_committed_list_names_its_folders_and_no_file_twice() -> None:
    lines = conf_file("jars.sha256").read_text().splitlines()

    listed = {conf: jars.expected_sums(conf) for conf in (*jars.CONFS, *jars.STORAGES)}

    assert sum(map(len, listed.values())) == len(lines)
    assert "kafka-clients-3.9.2.jar" in listed["spark"]
    assert "kafka-clients-4.2.0.jar" in listed["broker"]


def test_the_committed_list_has_what_ivy_xml_declares() -> None:
    """conf/ivy.xml is the declaration: `make pins` writes the list from it."""
    declared = re.findall(
        r'org="([^"]+)" name="([^"]+)" rev="([^"]+)" conf="(\w+)->',
        conf_file("ivy.xml").read_text(),
    )
    paths = [
        line.split()[1].rsplit("/", 2) for line in conf_file("jars.sha256").read_text().splitlines()
    ]
    versions = {path: version for path, version, _ in paths}

    assert len(declared) == 16
    for organisation, name, revision, conf in declared:
        found = versions[f"{conf}/{organisation.replace('.', '/')}/{name}"]
        # there Kafka may ask for a newer one
        assert found == revision or (conf == "broker" and found > revision)


def test_a_folder_that_is_not_in_the_list_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["jars", "spark", "s4"])
    assert jars.main() == CONFIGURATION
    assert "no jars called s4" in capsys.readouterr().err


def test_what_spark_ships_does_not_come_a_second_time_with_the_connector_of_a_bucket() -> None:
    own = {
        path.name.rpartition("-")[0] for path in Path(pyspark.__file__).parent.glob("jars/*.jar")
    }
    assert {name.rpartition("-")[0] for name in jars.expected_sums("s3")} & own == set()


@pytest.mark.usefixtures("base", "no_download")
def test_what_is_here_is_ready_at_once() -> None:
    jars.fetch_jars(["spark"])
    start = time.process_time()

    jars.fetch_jars(["spark"])

    assert time.process_time() - start < patient(0.1)
