"""TLS of the exporter: the context from a web-config file, and a client certificate's names."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, NoReturn

from laggard.exporter.web.config import Refused, Tls
from laggard.exporter.web.values import CIPHERS, CURVES

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_MODES = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


def make_context(tls: Tls) -> ssl.SSLContext:
    """Return a server's TLS context; raise `Refused` with the key of unusable content."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chosen = [*filter(None, map(CIPHERS.__getitem__, tls.ciphers))]
    if chosen:
        context.set_ciphers(":".join(chosen))
    # of a list with names of TLS 1.3 only, nothing is left to agree on in TLS 1.2
    lowest = "TLS13" if tls.ciphers and not chosen else tls.min_version
    if lowest > tls.max_version:
        raise Refused(["1: tls_server_config.cipher_suites: none of them is of max_version"])
    context.minimum_version, context.maximum_version = _VERSIONS[lowest], _VERSIONS[tls.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if tls.prefers_own_ciphers:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if tls.curve:
        try:
            context.set_ecdh_curve(CURVES[tls.curve])
        except ValueError as error:  # OpenSSL 1.1.1 with X25519
            raise Refused([f"1: tls_server_config.curve_preferences: {error}"]) from error
    _load_key(context, tls)
    if tls.client_ca:
        _trust(context, tls.client_ca)
    context.verify_mode = _MODES[tls.client_auth]
    return context


def _trust(context: ssl.SSLContext, client_ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=client_ca.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise Refused(
            [f"1: tls_server_config.client_ca: no certificate can be read ({_reason(error)})"]
        ) from error


def _load_key(context: ssl.SSLContext, tls: Tls) -> None:
    def refuse() -> NoReturn:  # else OpenSSL asks on the terminal
        raise ValueError("the key is encrypted, and there is no place for its password")

    try:
        with _in_memory(tls.cert) as cert, _in_memory(tls.key) as key:
            context.load_cert_chain(cert, key, password=refuse)
    except (ssl.SSLError, ValueError) as error:
        sentence = f"certificate and key do not do ({_reason(error)})"
        raise Refused([f"1: tls_server_config: {sentence}"]) from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).replace("_", " ").lower()


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield a path to the content that was read.

    Python takes keys from files only, and the file may have changed meanwhile.
    """
    number = os.memfd_create("laggard")
    try:
        os.write(number, content)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


def names_of(certificate: Mapping[str, Any]) -> set[str]:
    """Return all subject alternative names of a verified certificate, addresses in short form."""
    names: set[str] = set()
    for kind, name in certificate.get("subjectAltName", ()):
        if kind == "IP Address":
            names.add(str(ip_address(name.strip())))
        elif kind in ("DNS", "email", "URI"):
            names.add(name)
    return names
