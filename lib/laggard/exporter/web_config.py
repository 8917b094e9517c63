"""The web-config file of Prometheus' exporter-toolkit: what it asks for, or every reason to refuse it.

Each key is honoured, or the file is refused by the key's name; `http2` alone has no effect, as HTTP/1.1 is spoken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from laggard.config.values import shown, suggestion
from laggard.exporter.web_yaml import Node

MAX_COST = 16  # four seconds for one password; each step doubles that
CIPHERS = {  # Go's name to OpenSSL's; those of TLS 1.3 cannot be chosen, neither there nor here
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
HEADERS: Mapping[str, tuple[str, ...]] = {  # those that may be set, with the values that they may have
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
VERIFYING = ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
_UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
_SWITCHES = {
    word: word[0] in "yYtT" or word in ("on", "On", "ON")
    for words in (
        "y|yes|true|on",
        "Y|Yes|True|On",
        "Y|YES|TRUE|ON",
        "n|no|false|off",
        "N|No|False|Off",
        "N|NO|FALSE|OFF",
    )
    for word in words.split("|")
}
_BCRYPT = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"

Read: TypeAlias = Callable[[str], bytes]  # a named file; OSError or ValueError where it cannot be had


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


def _text(node: Node) -> str:
    if isinstance(node.value, dict | list):
        raise ValueError("expected a text")
    return node.value or ""


def _texts(node: Node) -> tuple[str, ...]:
    if not isinstance(node.value, list):
        raise ValueError("expected a list")
    return tuple(map(_text, node.value))


def _table(node: Node) -> dict[str, str]:
    if not isinstance(node.value, dict):
        raise ValueError("expected a table")
    return {name: _text(each) for name, each in node.value.items()}


def _switch(node: Node) -> bool:
    if not (node.is_plain and isinstance(node.value, str) and node.value in _SWITCHES):
        raise ValueError("expected true or false")
    return _SWITCHES[node.value]


def _burst(node: Node) -> int:
    if not (node.is_plain and isinstance(node.value, str) and re.fullmatch(r"\d{1,9}", node.value)):
        raise ValueError("expected a whole number of requests")
    return int(node.value)


def _duration(node: Node) -> float:
    """Seconds of a duration as Go writes it; a bare number is of nanoseconds there, and taken only if it is 0."""
    text = _text(node)
    if text == "0":
        return 0.0
    if not re.fullmatch(rf"(?:{_PART})+", text) or len(text) > 40:
        raise ValueError(f"expected a duration such as 100ms, got {shown(text)}")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))


def _choice(*values: str) -> Callable[[Node], str]:
    def read(node: Node) -> str:
        text = _text(node)
        if text not in values:
            raise ValueError(f"expected {', '.join(values[:-1])} or {values[-1]}, got {shown(text)}")
        return text

    return read


def _choices(known: Mapping[str, str]) -> Callable[[Node], tuple[str, ...]]:
    def read(node: Node) -> tuple[str, ...]:
        if not isinstance(node.value, list):
            raise ValueError("expected a list")
        return tuple(map(_choice(*known), node.value))

    return read


def _client_auth(node: Node) -> str:
    text = _text(node)
    if text in _UNVERIFIED:
        raise ValueError(f"{text} takes certificates that nobody verified; Python's TLS has no such mode")
    return _choice("NoClientCert", *VERIFYING)(node) if text else "NoClientCert"


def _version(node: Node) -> str:
    if _text(node) in ("TLS10", "TLS11"):
        raise ValueError(f"{_text(node)} is no longer safe, and not offered")
    return _choice("TLS12", "TLS13")(node)


_SECTIONS: Mapping[str, Mapping[str, Callable[[Node], Any]]] = {
    "tls_server_config": {
        **dict.fromkeys(("cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file"), _text),
        "client_auth_type": _client_auth,
        "client_allowed_sans": _texts,
        "min_version": _version,
        "max_version": _version,
        "cipher_suites": _choices(CIPHERS),
        "curve_preferences": _choices(CURVES),
        "prefer_server_cipher_suites": _switch,
    },
    "http_server_config": {"http2": _switch, "headers": _table},
    "rate_limit": {"interval": _duration, "burst": _burst},
}


class Refused(ValueError):  # noqa: N818 - the sentences are the error
    """Every reason to refuse a file."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n  ".join(problems))


def parse_web_config(root: Node, read: Read) -> WebConfig:
    """The configuration; `Refused` has all that is wrong, each with its line."""
    values, problems = _values(root)
    lines = {key: line for key, (_, line) in values.items()}
    given = {key: value for key, (value, _) in values.items()}
    checks = (_wrong_headers(given), _wrong_users(given), _wrong_rate(given), _wrong_tls(given))
    problems += [(lines.get(key, 1), key, sentence) for check in checks for key, sentence in check]
    tls = None
    if not problems and any(key.startswith("tls_server_config.") for key in given):
        tls, unread = _read_tls(given, read)
        problems += [(lines.get(key, 1), key, sentence) for key, sentence in unread]
    if problems:
        raise Refused([f"{line}: {key}: {sentence}" for line, key, sentence in sorted(problems)])
    headers = given.get("http_server_config.headers", {})
    return WebConfig(
        tls=tls,
        users={name: text.encode() for name, text in given.get("basic_auth_users", {}).items()},
        headers={name: value for name, value in headers.items() if value},
        interval_seconds=given.get("rate_limit.interval", 0.0),
        burst=given.get("rate_limit.burst", 0),
    )


def _values(root: Node) -> tuple[dict[str, tuple[Any, int]], list[tuple[int, str, str]]]:
    """Dotted key to value and line; null is as good as absent."""
    values: dict[str, tuple[Any, int]] = {}
    problems: list[tuple[int, str, str]] = []
    known = ["basic_auth_users", *_SECTIONS, *(f"{name}.{key}" for name, keys in _SECTIONS.items() for key in keys)]
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
            yield name, section, _table if name == "basic_auth_users" else None
        elif isinstance(section.value, dict):
            yield from ((f"{name}.{key}", node, _SECTIONS[name].get(key)) for key, node in section.value.items())
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
            yield "basic_auth_users", f"the value of {shown(name)} is no bcrypt hash; make one with htpasswd -nBC 10"
        elif not 4 <= int(hashed[1]) <= MAX_COST:
            yield "basic_auth_users", f"the hash of {shown(name)} has cost {hashed[1]}, expected 4 to {MAX_COST}"


def _wrong_rate(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if given.get("rate_limit.interval") and not given.get("rate_limit.burst"):
        yield "rate_limit.burst", "with a burst of 0 every request is refused"


def _wrong_tls(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    tls = {key.partition(".")[2]: value for key, value in given.items() if key.startswith("tls_server_config.")}
    if not tls:
        return
    prefix = "tls_server_config."
    for name in ("cert", "key", "client_ca"):
        if tls.get(name) and tls.get(f"{name}_file"):
            yield f"{prefix}{name}", f"{name}_file is given too; one of them would have no effect"
    yield from (
        (f"{prefix}{name}_file", f"one of {name}_file and {name} is needed for TLS")
        for name in ("cert", "key")
        if not (tls.get(name) or tls.get(f"{name}_file"))
    )
    has_ca = bool(tls.get("client_ca") or tls.get("client_ca_file"))
    is_verifying = tls.get("client_auth_type") in VERIFYING
    if has_ca and not is_verifying:
        yield f"{prefix}client_auth_type", f"a client CA has an effect only with {' or '.join(VERIFYING)}"
    if is_verifying and not has_ca:
        yield f"{prefix}client_ca_file", "without a client CA every public authority's certificate would do"
    if "client_allowed_sans" in tls and not is_verifying:
        yield f"{prefix}client_allowed_sans", f"names count only with {' or '.join(VERIFYING)}"
    if tls.get("client_allowed_sans") == ():
        yield f"{prefix}client_allowed_sans", "an empty list refuses every client"
    if tls.get("min_version", "TLS12") > tls.get("max_version", "TLS13"):
        yield f"{prefix}min_version", "above max_version"
    if len(tls.get("curve_preferences", ())) > 1:
        yield f"{prefix}curve_preferences", "Python's TLS takes one curve, not an order of several"


def _read_tls(given: Mapping[str, Any], read: Read) -> tuple[Tls | None, list[tuple[str, str]]]:
    tls = {key.partition(".")[2]: value for key, value in given.items()}
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
