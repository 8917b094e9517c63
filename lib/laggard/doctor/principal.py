"""Kafka principal of the configured client, as ACLs name it, and the command for an ACL."""

from __future__ import annotations

import shlex
import ssl
from typing import TYPE_CHECKING, Any

from laggard.doctor.result import Result
from laggard.sources.login.security import check_files, warnings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laggard.config import Config
    from laggard.config.security import Security

CHECK = "cluster.security"
_SHORT = {  # RFC 2253; Java writes any other attribute as a number
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}


def principal_of(security: Security) -> str:
    """Return the principal, or a description if it is unknown.

    Mappings that brokers may apply are left out.
    """
    if security.has_sasl:
        if security.has_password:
            return f"User:{security.username}"
        return f"User:<that of the {security.mechanism} login>"
    if security.has_tls and security.cert_file:
        return f"User:{_subject(security.cert_file) or '<the subject of cert_file>'}"
    return "User:ANONYMOUS"


def allow(config: Config, *operations: str, resource: tuple[str, ...]) -> str:
    """Return the Kafka command that allows us these operations."""
    wanted = [word for operation in operations for word in ("--operation", operation)]
    server = config.cluster.bootstrap_servers[0]
    start = [
        "kafka-acls.sh",
        "--bootstrap-server",
        server,
        "--add",
        "--allow-principal",
        principal_of(config.cluster.security),
    ]
    return shlex.join([*start, *wanted, *resource])


def _subject(path: str) -> str:
    try:
        decode: Any = ssl._ssl._test_decode_cert  # type: ignore[attr-defined] # noqa: SLF001
        decoded: dict[str, Any] = decode(path)
    except (ssl.SSLError, OSError):
        return ""
    parts = [
        [(_SHORT.get(name), value) for name, value in part]
        for part in reversed(decoded.get("subject", ()))
    ]
    if not parts or any(name is None for part in parts for name, _ in part):
        return ""
    return ",".join("+".join(f"{name}={escaped(value)}" for name, value in part) for part in parts)


def escaped(value: str) -> str:
    """Escape a value of a distinguished name as in RFC 2253."""
    text = "".join(f"\\{letter}" if letter in ',+"\\<>;' else letter for letter in value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    if text.endswith(" ") and len(value) > 1:
        return f"{text[:-1]}\\ "
    return text


def check_security(config: Config) -> Iterable[Result]:
    """Check that the login can be made, and report what an attacker on the network could use."""
    security = config.cluster.security
    check_files(security)
    words = [security.protocol, *filter(None, [security.mechanism])]
    yield Result("ok", CHECK, f"{', '.join(words)}, as {principal_of(security)}")
    for sentence in warnings(security):
        yield Result("warn", CHECK, sentence, "see docs/security.md")
