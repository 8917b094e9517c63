"""A certificate authority of the tests, made by openssl: servers, clients, one that another authority signed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

EXTENSIONS = """
[ca]
basicConstraints=critical,CA:TRUE
[server]
subjectAltName=DNS:localhost,IP:127.0.0.1
[client]
subjectAltName=DNS:prometheus.example.org,IP:::1,URI:spiffe://example.org/p,email:p@example.org
[other]
subjectAltName=DNS:other.example.org
"""


def make_pki(folder: Path) -> Path:
    """Write ca, server, client, other, stranger (of another authority) and rsa, each as .crt and .key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder.mkdir(exist_ok=True)
    (folder / "extensions").write_text(EXTENSIONS, encoding="utf-8")
    for authority in ("ca", "ca2"):
        _make_key(folder, authority)
        _run(folder, f"req -new -x509 -key {authority}.key -subj /CN={authority} -days 3650 -out {authority}.crt")
    for name, authority, section in (
        ("server", "ca", "server"),
        ("rsa", "ca", "server"),
        ("client", "ca", "client"),
        ("other", "ca", "other"),
        ("stranger", "ca2", "client"),
    ):
        _make_key(folder, name, "RSA -pkeyopt rsa_keygen_bits:2048" if name == "rsa" else "")
        _run(folder, f"req -new -key {name}.key -subj /CN={name} -out {name}.csr")
        _run(
            folder,
            f"x509 -req -in {name}.csr -CA {authority}.crt -CAkey {authority}.key -CAcreateserial -days 3650"
            f" -extfile extensions -extensions {section} -out {name}.crt",
        )
    _run(folder, "pkcs8 -topk8 -in server.key -v2 aes256 -passout pass:secret -out encrypted.key")
    return folder


def _make_key(folder: Path, name: str, kind: str = "") -> None:
    _run(folder, f"genpkey -algorithm {kind or 'EC -pkeyopt ec_paramgen_curve:P-256'} -out {name}.key")


def _run(folder: Path, words: str) -> None:
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True, timeout=60)
