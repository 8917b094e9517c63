"""Secrets come from files that nobody else may read."""

import os
import time
from pathlib import Path

import pytest

from laggard.errors import DENIED, LaggardError
from laggard.secret_files import MAX_BYTES, Secret, fingerprint, read_password, read_secret
from patience import patient

KEY = "cluster.security.password_file"


def write(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"s3cret", "s3cret"),
        (b"s3cret\n", "s3cret"),
        (b"s3cret\r\n", "s3cret"),
        (b" s3 cret \n", " s3 cret "),
        ("gehe\u00efm".encode(), "gehe\u00efm"),
        (b'a"b\\c$d', 'a"b\\c$d'),
        (b"x" * MAX_BYTES, "x" * MAX_BYTES),
    ],
)
def test_a_secret_is_the_content_without_the_line_break_at_its_end(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    assert read_password(write(tmp_path / "s", content), KEY) == expected


@pytest.mark.parametrize(
    ("content", "mode", "cause"),
    [
        (b"s3cret", 0o640, "its group may get at it (mode 0640)"),
        (b"s3cret", 0o620, "its group may get at it (mode 0620)"),
        (b"s3cret", 0o604, "everybody may get at it (mode 0604)"),
        (b"", 0o600, "it is empty"),
        (b"\n", 0o600, "it is empty"),
        (b"s3\xffcret", 0o600, "it is not UTF-8 at byte 2"),
        (b"s3cret\nmore", 0o600, "it holds a line break or another control character"),
        (b"x" * (MAX_BYTES + 1), 0o600, "it is larger than 64 KB"),
    ],
)
def test_a_file_that_is_no_good_is_refused_without_telling_the_secret(
    tmp_path: Path, content: bytes, mode: int, cause: str
) -> None:
    path = write(tmp_path / "s", content, mode)
    with pytest.raises(LaggardError) as caught:
        read_password(path, KEY)
    assert (caught.value.cause, caught.value.exit_code) == (f"{KEY}: {cause}", DENIED)
    assert path in caught.value.what
    assert "cret" not in str(caught.value).replace("secret", "")


def test_a_missing_file_a_folder_and_a_pipe_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    started = time.monotonic()
    for name, cause in {
        "none": "No such file",
        "": "not a regular file",
        "pipe": "not a regular file",
    }.items():
        with pytest.raises(LaggardError, match="cannot use the secret file") as caught:
            read_secret(str(tmp_path / name), KEY)
        assert cause in caught.value.cause
    assert time.monotonic() - started < patient(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_kubernetes_mode_0440_of_root_is_taken_for_a_group_of_ours(tmp_path: Path) -> None:
    path = write(tmp_path / "s", b"s3cret", 0o440)
    groups = os.getgroups()
    os.chown(path, 0, 2000)
    with pytest.raises(LaggardError, match="secret file"):
        read_secret(path, KEY)
    os.setgroups([*groups, 2000])
    try:
        assert read_secret(path, KEY) == "s3cret"
        Path(path).chmod(0o460)
        with pytest.raises(LaggardError, match="secret file"):
            read_secret(path, KEY)
        os.chown(path, 1, 2000)
        Path(path).chmod(0o400)
        with pytest.raises(LaggardError) as caught:
            read_secret(path, KEY)
        assert "another user, 1" in caught.value.cause
    finally:
        os.setgroups(groups)


def test_a_secret_shows_itself_to_no_log_of_a_configuration() -> None:
    settings = {"sasl_plain_password": Secret("s3cret")}
    assert "s3cret" not in f"{settings} {settings!r}"
    assert "\0".join(["user", Secret("s3cret")]).encode() == b"user\0s3cret"


def test_the_fingerprint_changes_when_a_file_is_written_replaced_or_removed(tmp_path: Path) -> None:
    path = write(tmp_path / "s", b"one")
    seen = [fingerprint((path,))]
    assert fingerprint((path,)) == seen[0]
    write(tmp_path / "s", b"other")
    seen.append(fingerprint((path,)))
    write(tmp_path / "next", b"third")
    (tmp_path / "next").replace(path)
    seen.append(fingerprint((path,)))
    Path(path).unlink()
    seen.append(fingerprint((path,)))
    assert len(set(seen)) == 4
