"""Web-config files: the verdict on each, by the key's name, and what a file cannot do to us."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from exporter.pki import make_pki
from exporter.web_fixtures import FIXTURES, HASH, TLS, write
from laggard.errors import CONFIGURATION, LaggardError
from laggard.exporter.collectors.own import SelfStats
from laggard.exporter.web.access import MAX_FILE_BYTES, RateLimit, Web, WebFile, WebWatch
from patience import examples


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def folder(pki: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pki, tmp_path / "web"))


@pytest.mark.parametrize("name", FIXTURES)
def test_a_file_is_taken_whole_or_refused_by_the_name_of_the_key(folder: Path, name: str) -> None:
    path, expected = write(folder, name), FIXTURES[name].error
    if not expected:
        assert FIXTURES[name].toolkit  # nothing is taken that exporter-toolkit refuses
        WebFile(str(path)).load()
        return
    with pytest.raises(LaggardError) as refused:
        WebFile(str(path)).load()
    assert expected in refused.value.cause
    assert f"{path}:" in refused.value.cause
    assert refused.value.exit_code == CONFIGURATION


def test_a_bundle_of_authorities_may_have_comments_in_any_script(folder: Path) -> None:
    path = write(folder, "RequireAndVerifyClientCert")
    (folder / "ca.crt").write_text(
        "# Zertifizierungsstelle für Prüfungen\n" + (folder / "ca.crt").read_text()
    )
    assert WebFile(str(path)).load().asks_who


@pytest.mark.examples
def test_whatever_bytes_a_file_has_it_is_taken_or_refused_with_a_reason(folder: Path) -> None:
    rng = random.Random(7)
    pieces = (
        b": ",
        b"\n",
        b"- ",
        b"[",
        b"{",
        b"&a ",
        b"*a",
        b"!!x ",
        b"'",
        b'"',
        b"|",
        b"%",
        b"\xef\xbb\xbf",
        b"\x00",
    )
    causes: list[str] = []
    for _ in range(examples(2000)):
        path = write(folder, rng.choice(list(FIXTURES)))
        content = bytearray(path.read_bytes())
        for _ in range(rng.randint(1, 5)):
            at = rng.randrange(len(content) + 1)
            cut = rng.randint(0, 9) * rng.randint(0, 1)
            content[at : at + cut] = rng.choice((*pieces, bytes([rng.randrange(256)])))
        path.write_bytes(content)
        try:
            WebFile(str(path)).load()
        except LaggardError as error:
            causes.append(error.cause)
    assert causes
    assert [cause for cause in causes if not cause.startswith(f"{path}:")] == []


def test_a_file_that_becomes_a_pipe_is_counted_and_not_waited_for(folder: Path) -> None:
    path = folder / "web.yml"
    path.write_text(TLS, encoding="utf-8")
    file, stats = WebFile(str(path)), SelfStats()
    file.load()
    watch = WebWatch(file, stats, lambda _: None)
    for name in ("server.key", "web.yml"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        for _ in range(3):
            watch.look()
    assert stats.web_config_errors == 2


def test_every_mistake_is_named_at_once_in_the_order_of_the_lines(folder: Path) -> None:
    (folder / "web.yml").write_text(
        "rate_limit: {burst: x}\nnothing: 1\nbasic_auth_users: {a: b}\n", encoding="utf-8"
    )
    with pytest.raises(LaggardError) as refused:
        WebFile(str(folder / "web.yml")).load()
    assert [line.split(":")[1] for line in refused.value.cause.splitlines()] == ["1", "2", "3"]


def test_no_error_repeats_what_may_be_a_password_or_a_key(folder: Path) -> None:
    (folder / "web.yml").write_text(
        "basic_auth_users: {a: hunter2}\ntls_server_config: {key: hunter2}\n"
    )
    with pytest.raises(LaggardError) as refused:
        WebFile(str(folder / "web.yml")).load()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["web.yml", "server.crt", "server.key", "ca.crt"])
@pytest.mark.parametrize("odd", ["pipe", "folder", "huge", "closed"])
def test_what_is_no_small_file_is_refused_and_never_waited_for(
    folder: Path, name: str, odd: str
) -> None:
    text = f"{TLS}  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\n"
    (folder / "web.yml").write_text(text, encoding="utf-8")
    target = folder / name
    target.unlink()
    if odd == "pipe":
        os.mkfifo(target)
    elif odd == "folder":
        target.mkdir()
    elif odd == "huge":
        target.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(LaggardError) as refused:
        WebFile(str(folder / "web.yml")).load()
    sentence = {
        "pipe": "no regular file",
        "folder": "no regular file",
        "huge": "larger than 1024 KB",
    }
    assert sentence.get(odd, "No such file") in refused.value.cause


def changed(path: Path, text: str) -> Callable[[WebFile], list[Web | None]]:
    """Three looks after the file got another text, at the same size and time as before where the
    text allows.
    """
    before = path.stat()
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return lambda file: [file.look() for _ in range(3)]


def test_a_change_counts_once_the_file_was_the_same_for_two_looks(folder: Path) -> None:
    path = folder / "web.yml"
    path.write_text("rate_limit: {interval: 1s, burst: 1}\n", encoding="utf-8")
    file = WebFile(str(path))
    file.load()
    assert file.look() is None
    # same size, same time of change
    looks = changed(path, "rate_limit: {interval: 9s, burst: 1}\n")(file)
    assert [web is not None for web in looks] == [False, True, False]


def test_a_certificate_that_is_renewed_is_read_again(folder: Path) -> None:
    path = folder / "web.yml"
    path.write_text(TLS, encoding="utf-8")
    file = WebFile(str(path))
    before = file.load()
    for kind in ("crt", "key"):
        shutil.copy(folder / f"rsa.{kind}", folder / f"server.{kind}")
    looks = [file.look() for _ in range(2)]
    assert looks[1] is not None
    assert looks[1].tls is not before.tls
    assert looks[1].access == before.access  # nobody has to connect again for it


@pytest.mark.parametrize(
    "broken", ["", "# gone\n", "nothing: 1\n", "tls_server_config: {cert_file: a}\n"]
)
def test_a_broken_file_is_counted_and_the_one_before_stays_until_it_is_mended(
    folder: Path, broken: str
) -> None:
    path = folder / "web.yml"
    path.write_text(f"basic_auth_users: {{a: {HASH}}}\n", encoding="utf-8")
    file, stats, used = WebFile(str(path)), SelfStats(), list[Web]()
    file.load()
    watch = WebWatch(file, stats, used.append)
    path.write_text(broken, encoding="utf-8")
    for _ in range(4):
        watch.look()
    assert (used, stats.web_config_errors, stats.web_config_current) == ([], 1, False)
    assert file.web.users is not None
    path.write_text("{}\n", encoding="utf-8")
    for _ in range(2):
        watch.look()
    assert ([web.users for web in used], stats.web_config_errors, stats.web_config_current) == (
        [None],
        1,
        True,
    )


def test_the_same_users_keep_what_is_known_of_their_passwords(folder: Path) -> None:
    path = folder / "web.yml"
    path.write_text(f"basic_auth_users: {{a: {HASH}}}\n", encoding="utf-8")
    file = WebFile(str(path))
    users = file.load().users
    path.write_text(f"{TLS}basic_auth_users: {{a: {HASH}}}\n", encoding="utf-8")
    assert file.load().users is users
    path.write_text(f"basic_auth_users: {{b: {HASH}}}\n", encoding="utf-8")
    assert file.load().users is not users


def test_a_rate_limit_takes_a_burst_and_then_one_per_interval() -> None:
    now = [0.0]
    limit = RateLimit(0.1, 3, lambda: now[0])
    first = [limit.allows() for _ in range(5)]
    now[0] = 0.15
    then = [limit.allows() for _ in range(2)]
    now[0] = 100.0
    assert (first, then) == ([True] * 3 + [False] * 2, [True, False])
    assert [limit.allows() for _ in range(4)] == [True] * 3 + [False]


def test_protection_is_asked_for_where_others_can_connect(folder: Path) -> None:
    def exposure(text: str, host: str = "0.0.0.0") -> str:
        (folder / "web.yml").write_text(text, encoding="utf-8")
        return WebFile(str(folder / "web.yml")).load().exposure(host)

    user = f"basic_auth_users: {{a: {HASH}}}\n"
    mutual = f"{TLS}  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\n"
    assert [exposure(TLS + user), exposure(mutual), exposure("", "127.0.0.1")] == ["", "", ""]
    assert "group and topic names" in exposure(TLS)
    assert "unencrypted" in exposure(user)
