"""Certificates of the exporter's tests: servers, clients, and one that another authority signed."""

from __future__ import annotations

from pathlib import Path

from authority import RSA, Authority, new_key, pem, write_key

_LOCAL = ("DNS:localhost", "IP:127.0.0.1")
_CLIENT = (
    "DNS:prometheus.example.org",
    "IP:::1",
    "URI:spiffe://example.org/p",
    "email:p@example.org",
)


def make_pki(folder: Path) -> Path:
    """Write ca, server, client, other, stranger (of another authority) and rsa, each as .crt and
    .key.
    """
    authority = Authority(folder)
    authority.issue("server", hosts=_LOCAL)
    authority.issue("rsa", hosts=_LOCAL, key=new_key(RSA))
    authority.issue("client", hosts=_CLIENT)
    authority.issue("other", hosts=["DNS:other.example.org"])
    Authority(folder, "ca2").issue("stranger", hosts=_CLIENT)
    write_key(folder / "encrypted.key", pem(new_key(), "secret"))
    return folder
