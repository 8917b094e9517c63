"""The web-config file of Prometheus' exporter-toolkit: its settings, or all reasons to refuse it.

Each key is honoured, or the file is refused by the key's name; `http2` alone has no effect, as
HTTP/1.1 is spoken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from laggard.config.values import shown, suggestion
from laggard.exporter.web.values import (
    CIPHERS,
    CURVES,
    VERIFYING,
    read_burst,
    read_client_auth,
    read_duration,
    read_switch,
    read_table,
    read_text,
    read_texts,
    read_version,
    several_of,
)
from laggard.exporter.web.yaml import Node

MAX_COST = 16  # four seconds for one password; each step doubles that
# those that may be set, with the values that they may have
HEADERS: Mapping[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
_BCRYPT = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
# a named file; OSError or ValueError where it cannot be had
Read: TypeAlias = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Tls:
    """Hold what `tls_server_config` asks for, with the content of the files it names."""

    cert: bytes
    key: bytes
    client_ca: bytes = b""
    client_auth: str = "NoClientCert"
    allowed_sans: frozenset[str] = frozenset()
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    ciphers: tuple[str, ...] = ()
    curve: str = ""
    prefers_own_ciphers: bool = True


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Hold what a web-config file asks for."""

    tls: Tls | None = None
    users: Mapping[str, bytes] = field(default_factory=dict)  # name to bcrypt hash
    headers: Mapping[str, str] = field(default_factory=dict)
    interval_seconds: float = 0.0  # between two requests; 0: no limit
    burst: int = 0


_SECTIONS: Mapping[str, Mapping[str, Callable[[Node], Any]]] = {
    "tls_server_config": {
        **dict.fromkeys(
            ("cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file"), read_text
        ),
        "client_auth_type": read_client_auth,
        "client_allowed_sans": read_texts,
        "min_version": read_version,
        "max_version": read_version,
        "cipher_suites": several_of(CIPHERS),
        "curve_preferences": several_of(CURVES),
        "prefer_server_cipher_suites": read_switch,
    },
    "http_server_config": {"http2": read_switch, "headers": read_table},
    "rate_limit": {"interval": read_duration, "burst": read_burst},
}


class Refused(ValueError):  # noqa: N818 - the sentences are the error
    """Every reason to refuse a file."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n  ".join(problems))


def parse_web_config(root: Node, read: Read) -> WebConfig:
    """Return the configuration; raise `Refused` with all problems, each with its line."""
    values, problems = _values(root)
    lines = {key: line for key, (_, line) in values.items()}
    given = {key: value for key, (value, _) in values.items()}
    wrong = chain(
        _wrong_headers(given), _wrong_users(given), _wrong_rate(given), _wrong_tls(_of_tls(given))
    )
    _refuse([*problems, *((lines.get(key, 1), key, sentence) for key, sentence in wrong)])
    tls, unread = _read_tls(_of_tls(given), read)
    _refuse((lines.get(key, 1), key, sentence) for key, sentence in unread)
    headers = given.get("http_server_config.headers", {})
    return WebConfig(
        tls=tls,
        users={name: text.encode() for name, text in given.get("basic_auth_users", {}).items()},
        headers={name: value for name, value in headers.items() if value},
        interval_seconds=given.get("rate_limit.interval", 0.0),
        burst=given.get("rate_limit.burst", 0),
    )


def _refuse(problems: Iterable[tuple[int, str, str]]) -> None:
    if ordered := sorted(problems):
        raise Refused([f"{line}: {key}: {sentence}" for line, key, sentence in ordered])


def _of_tls(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `tls_server_config` by the last part of their keys."""
    prefix = "tls_server_config."
    return {
        key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)
    }


def _values(root: Node) -> tuple[dict[str, tuple[Any, int]], list[tuple[int, str, str]]]:
    """Return a dict from dotted key to value and line, and the problems; null counts as absent."""
    values: dict[str, tuple[Any, int]] = {}
    problems: list[tuple[int, str, str]] = []
    known = [
        "basic_auth_users",
        *_SECTIONS,
        *(f"{name}.{key}" for name, keys in _SECTIONS.items() for key in keys),
    ]
    for key, node, reader in _leaves(root, problems):
        if reader is None:
            problems.append((node.line, key, f"unknown key{suggestion(key, known)}"))
        elif node.value is not None:
            try:
                values[key] = reader(node), node.line
            except ValueError as error:
                problems.append((node.line, key, str(error)))
    return values, problems


def _leaves(
    root: Node, problems: list[tuple[int, str, str]]
) -> Iterator[tuple[str, Node, Callable[[Node], Any] | None]]:
    if root.value is None:
        return
    if not isinstance(root.value, dict):
        problems.append((root.line, "the file", "expected a table"))
        return
    for name, section in root.value.items():
        if name not in _SECTIONS:
            yield name, section, read_table if name == "basic_auth_users" else None
        elif isinstance(section.value, dict):
            yield from (
                (f"{name}.{key}", node, _SECTIONS[name].get(key))
                for key, node in section.value.items()
            )
        elif section.value is not None:
            problems.append((section.line, name, "expected a table"))


def _wrong_headers(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in given.get("http_server_config.headers", {}).items():
        key = f"http_server_config.headers.{name}"
        if name not in HEADERS:
            yield "http_server_config.headers", f"{name} cannot be set, only {', '.join(HEADERS)}"
        elif HEADERS[name] and value not in HEADERS[name]:
            yield key, f"expected {' or '.join(HEADERS[name])}, got {shown(value)}"
        elif not re.fullmatch(r"[ -~]*", value):
            yield key, "only printable ASCII can be in a header"


def _wrong_users(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, text in given.get("basic_auth_users", {}).items():
        hashed = _BCRYPT.fullmatch(text)
        if hashed is None:  # the text may be the password itself, so it is not repeated
            yield (
                "basic_auth_users",
                f"the value of {shown(name)} is no bcrypt hash; make one with htpasswd -nBC 10",
            )
        elif not 4 <= int(hashed[1]) <= MAX_COST:
            yield (
                "basic_auth_users",
                f"the hash of {shown(name)} has cost {hashed[1]}, expected 4 to {MAX_COST}",
            )


def _wrong_rate(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if given.get("rate_limit.interval") and not given.get("rate_limit.burst"):
        yield "rate_limit.burst", "with a burst of 0 every request is refused"


def _wrong_tls(tls: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not tls:
        return
    for name, problem in (*_wrong_certificates(tls), *_wrong_client_auth(tls)):
        yield f"tls_server_config.{name}", problem
    if tls.get("min_version", "TLS12") > tls.get("max_version", "TLS13"):
        yield "tls_server_config.min_version", "above max_version"
    if len(tls.get("curve_preferences", ())) > 1:
        yield (
            "tls_server_config.curve_preferences",
            "Python's TLS takes one curve, not an order of several",
        )


def _wrong_certificates(tls: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield certificates and keys that are given twice, or not at all."""
    for name in ("cert", "key", "client_ca"):
        if tls.get(name) and tls.get(f"{name}_file"):
            yield name, f"{name}_file is given too; one of them would have no effect"
    for name in ("cert", "key"):
        if not (tls.get(name) or tls.get(f"{name}_file")):
            yield f"{name}_file", f"one of {name}_file and {name} is needed for TLS"


def _wrong_client_auth(tls: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield client-certificate settings without effect, or that accept too many certificates."""
    has_ca = bool(tls.get("client_ca") or tls.get("client_ca_file"))
    is_verifying = tls.get("client_auth_type") in VERIFYING
    if has_ca and not is_verifying:
        yield "client_auth_type", f"a client CA has an effect only with {' or '.join(VERIFYING)}"
    if is_verifying and not has_ca:
        yield "client_ca_file", "without a client CA every public authority's certificate would do"
    if "client_allowed_sans" in tls and not is_verifying:
        yield "client_allowed_sans", f"names count only with {' or '.join(VERIFYING)}"
    if tls.get("client_allowed_sans") == ():
        yield "client_allowed_sans", "an empty list refuses every client"


def _read_tls(tls: Mapping[str, Any], read: Read) -> tuple[Tls | None, list[tuple[str, str]]]:
    """Read the files that `tls` names, and list problems by key.

    The first value is None without a part for TLS.
    """
    if not tls:
        return None, []
    contents: dict[str, bytes] = {}
    unread: list[tuple[str, str]] = []
    for name in ("cert", "key", "client_ca"):
        contents[name] = tls.get(name, "").encode()
        if path := tls.get(f"{name}_file"):
            try:
                contents[name] = read(path)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                unread.append((f"tls_server_config.{name}_file", f"{path}: {reason}"))
    if unread:
        return None, unread
    curves = tls.get("curve_preferences", ())
    return Tls(
        **contents,
        client_auth=tls.get("client_auth_type", "NoClientCert"),
        allowed_sans=frozenset(tls.get("client_allowed_sans", ())),
        min_version=tls.get("min_version", "TLS12"),
        max_version=tls.get("max_version", "TLS13"),
        ciphers=tls.get("cipher_suites", ()),
        curve=curves[0] if curves else "",
        prefers_own_ciphers=tls.get("prefer_server_cipher_suites", True),
    ), []
