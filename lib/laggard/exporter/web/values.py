"""Values of a web-config file: each read from its node, or refused with what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from laggard.config.values import shown
from laggard.exporter.web.yaml import Node

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
CURVES = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
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
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"


def read_text(node: Node) -> str:
    """Read a text; null is an empty one."""
    if isinstance(node.value, dict | list):
        raise ValueError("expected a text")
    return node.value or ""


def read_texts(node: Node) -> tuple[str, ...]:
    """Read a list of texts."""
    if not isinstance(node.value, list):
        raise ValueError("expected a list")
    return tuple(map(read_text, node.value))


def read_table(node: Node) -> dict[str, str]:
    """Read a table of texts."""
    if not isinstance(node.value, dict):
        raise ValueError("expected a table")
    return {name: read_text(entry) for name, entry in node.value.items()}


def read_switch(node: Node) -> bool:
    """Read true or false, in any of the spellings of YAML 1.1."""
    if not (node.is_plain and isinstance(node.value, str) and node.value in _SWITCHES):
        raise ValueError("expected true or false")
    return _SWITCHES[node.value]


def read_burst(node: Node) -> int:
    """Read a whole number of requests."""
    if not (node.is_plain and isinstance(node.value, str) and re.fullmatch(r"\d{1,9}", node.value)):
        raise ValueError("expected a whole number of requests")
    return int(node.value)


def read_duration(node: Node) -> float:
    """Return the seconds of a duration in Go's notation.

    A bare number means nanoseconds in Go and is taken only if 0.
    """
    text = read_text(node)
    if text == "0":
        return 0.0
    if not re.fullmatch(rf"(?:{_PART})+", text) or len(text) > 40:
        raise ValueError(f"expected a duration such as 100ms, got {shown(text)}")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))


def one_of(*values: str) -> Callable[[Node], str]:
    """Make a reader of a text that is one of these."""

    def read(node: Node) -> str:
        text = read_text(node)
        if text not in values:
            raise ValueError(
                f"expected {', '.join(values[:-1])} or {values[-1]}, got {shown(text)}"
            )
        return text

    return read


def several_of(known: Mapping[str, str]) -> Callable[[Node], tuple[str, ...]]:
    """Make a reader of a list of these names."""

    def read(node: Node) -> tuple[str, ...]:
        if not isinstance(node.value, list):
            raise ValueError("expected a list")
        return tuple(map(one_of(*known), node.value))

    return read


def read_client_auth(node: Node) -> str:
    """Read Go's name of a mode that verifies the certificates it asks for, or asks for none."""
    text = read_text(node)
    if text in _UNVERIFIED:
        raise ValueError(
            f"{text} takes certificates that nobody verified; Python's TLS has no such mode"
        )
    return one_of("NoClientCert", *VERIFYING)(node) if text else "NoClientCert"


def read_version(node: Node) -> str:
    """Read a version of TLS that is offered."""
    if read_text(node) in ("TLS10", "TLS11"):
        raise ValueError(f"{read_text(node)} is no longer safe, and not offered")
    return one_of("TLS12", "TLS13")(node)
