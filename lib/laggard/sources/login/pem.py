"""Certificates and private keys in PEM, checked for what both clients can use."""

from __future__ import annotations

import base64
import binascii
import re

from laggard.errors import DENIED, LaggardError

_ENTRY = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s*(.*?)-----END \1-----", re.DOTALL)
_PLAIN, _ENCRYPTED = "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"
_CURVES = re.compile(rb"\x06\x03\x2b\x65[\x70\x71]")  # object ids of Ed25519 and Ed448
_PBES2 = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d"
# bytes: the algorithm is at the begin of a private key; further on the key itself could look alike
_ALGORITHM_AT = 40


def entries(text: str) -> list[tuple[str, str]]:
    """Return the label and text of each PEM entry, with LF line ends, without text in between."""
    return [(match[1], match[0].replace("\r\n", "\n") + "\n") for match in _ENTRY.finditer(text)]


def certificates(text: str, path: str, key: str) -> str:
    """Return the certificates of a file."""
    bundle = [
        entry for label, entry in entries(text) if label in ("CERTIFICATE", "X509 CERTIFICATE")
    ]
    if not bundle:
        raise _refused(
            path, f"{key}: it holds no certificate in PEM", "openssl x509 -in FILE -out FILE.pem"
        )
    return "".join(bundle)


def private_key(text: str, path: str, key: str, *, has_password: bool) -> str:
    """Return the private key of a file, if Spark's client can read it.

    It reads PKCS #8, of RSA or an elliptic curve.
    """
    keys = [(label, entry) for label, entry in entries(text) if label.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise _refused(
            path,
            f"{key}: it holds {len(keys)} private keys in PEM",
            "name a file with one private key",
        )
    label, entry = keys[0]
    if label not in (_PLAIN, _ENCRYPTED):
        cause = f"{key}: it holds a {label}, and Spark's client reads PKCS #8 only"
        raise _refused(path, cause, f"openssl pkcs8 -topk8 -nocrypt -in {path} -out {path}.pkcs8")
    is_encrypted = label == _ENCRYPTED
    if is_encrypted and not has_password:
        raise _refused(
            path, f"{key}: the key is encrypted", "set cluster.security.key_password_file"
        )
    if has_password and not is_encrypted:
        raise _refused(
            path, f"{key}: the key is not encrypted", "remove cluster.security.key_password_file"
        )
    _check_algorithm(entry, path, key, is_encrypted=is_encrypted)
    return entry


def _check_algorithm(entry: str, path: str, key: str, *, is_encrypted: bool) -> None:
    algorithm = _algorithm(entry)
    if is_encrypted and _PBES2 in algorithm:
        # Kafka asks Java for a cipher "PBES2", which is none (DefaultSslEngineFactory of 3.9.2)
        cause = f"{key}: the key is encrypted by PBES2, which Spark's client cannot read"
        command = f"openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in {path} -out {path}.v1"
        raise _refused(path, cause, f"{command}, or keep it without encryption, mode 0600")
    if not is_encrypted and _CURVES.search(algorithm):
        cause = f"{key}: it is a key of Ed25519 or Ed448, which Spark's client cannot read"
        raise _refused(path, cause, "use a key of RSA or of an elliptic curve such as P-256")


def _algorithm(entry: str) -> bytes:
    """Return the begin of a private key, which names its algorithm; nothing if it is not base64."""
    body = "".join(
        line for line in entry.splitlines() if not line.startswith("-") and ":" not in line
    )
    try:
        return base64.b64decode(body)[:_ALGORITHM_AT]
    except binascii.Error:
        return b""


def _refused(path: str, cause: str, fix: str) -> LaggardError:
    return LaggardError(f"cannot use {path}", cause=cause, fix=fix, exit_code=DENIED)
