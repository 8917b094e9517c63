"""A certificate authority of the tests, and private keys in the forms that users have."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

Key: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
EC, RSA, ED25519 = ["EC", "RSA", "Ed25519"]
# object id of the place of a key in PKCS #12
_SHROUDED_KEY = bytes.fromhex("060b2a864886f70d010c0a0102")
_NAMES = {
    "DNS": x509.DNSName,
    "IP": lambda text: x509.IPAddress(ip_address(text)),
    "URI": x509.UniformResourceIdentifier,
    "email": x509.RFC822Name,
}


class Authority:
    """Writes its own certificate and those that it issues as NAME.crt and NAME.key
    into a folder.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.ca = folder / f"{name}.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name.from_rfc4514_string(f"CN={name}")
        # signs only
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        own = self._begin(self._name, self._key, 30).add_extension(
            x509.BasicConstraints(True, None), True
        )
        self._sign(own.add_extension(usage, True), self.ca)

    def issue(
        self,
        name: str,
        subject: str = "",
        hosts: Sequence[str] = ("IP:127.0.0.1",),
        days: float = 30,
        key: Key | None = None,
    ) -> tuple[Path, Path]:
        """Certificate and key; the subject as RFC 4514 writes it, CN=NAME if not given."""
        key = key or new_key()
        begun = self._begin(x509.Name.from_rfc4514_string(subject or f"CN={name}"), key, days)
        names = [_NAMES[form](text) for form, _, text in (host.partition(":") for host in hosts)]
        self._sign(
            begun.add_extension(x509.SubjectAlternativeName(names), False),
            self.folder / f"{name}.crt",
        )
        return self.folder / f"{name}.crt", write_key(self.folder / f"{name}.key", pem(key))

    def store(
        self, name: str, *, days: float = 30, hosts: Sequence[str] = ("IP:127.0.0.1",)
    ) -> Path:
        """Certificate and key in one file, as a broker takes them."""
        certificate, key = self.issue(name, "CN=broker", hosts, days)
        together = self.folder / f"{name}.store"
        fresh = write_key(together.with_suffix(".new"), key.read_text() + certificate.read_text())
        return fresh.replace(together)

    def _begin(self, subject: x509.Name, key: Key, days: float) -> x509.CertificateBuilder:
        now = datetime.now(timezone.utc)
        own, ours = (
            x509.SubjectKeyIdentifier.from_public_key(each.public_key())
            for each in (key, self._key)
        )
        return (
            x509.CertificateBuilder(
                self._name, subject, key.public_key(), x509.random_serial_number()
            )
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(own, False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ours), False
            )
        )

    def _sign(self, begun: x509.CertificateBuilder, path: Path) -> None:
        path.write_bytes(begun.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))


def new_key(kind: str = EC) -> Key:
    """Make a private key."""
    if kind == RSA:
        return rsa.generate_private_key(65537, 2048)
    return (
        ed25519.Ed25519PrivateKey.generate()
        if kind == ED25519
        else ec.generate_private_key(ec.SECP256R1())
    )


def pem(key: Key, password: str = "", *, is_traditional: bool = False) -> str:
    """A key in PKCS #8, encrypted by PBES2 if a password is given; or in the form
    of its own kind.
    """
    form = PrivateFormat.TraditionalOpenSSL if is_traditional else PrivateFormat.PKCS8
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, form, encryption).decode()


def weakly_encrypted(key: Key, password: str) -> str:
    """A key as `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES` writes it: such a one lies in each PKCS #12
    store.
    """
    encryption = (
        PrivateFormat.PKCS12.encryption_builder()
        .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
        .build(password.encode())
    )
    store = pkcs12.serialize_key_and_certificates(None, key, None, None, encryption)
    begin, size = _content(store, store.index(_SHROUDED_KEY) + len(_SHROUDED_KEY))
    body = "\n".join(textwrap.wrap(base64.b64encode(store[begin : begin + size]).decode(), 64))
    return f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{body}\n-----END ENCRYPTED PRIVATE KEY-----\n"


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Begin and size of what is inside the element of DER at a place."""
    size, begin = der[at + 1], at + 2
    if size > 0x7F:
        begin += size & 0x7F
        size = int.from_bytes(der[at + 2 : begin], "big")
    return begin, size


def write_key(path: Path, text: str) -> Path:
    """A file that nobody else may read."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path
