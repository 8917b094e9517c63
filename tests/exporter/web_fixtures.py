"""Web-config files, good and bad, each with the verdict of exporter-toolkit 0.20.0 and with ours.

The verdicts of exporter-toolkit are those of its own code: `python tests/exporter/web_fixtures.py
FOLDER` writes the files, `tests/exporter/verdict.go` says how to run it on them. Where ours
differs, what our error holds says why.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1])]
HASH = "$2y$04$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
PAIR = "  cert_file: server.crt\n  key_file: server.key\n"
TLS = f"tls_server_config:\n{PAIR}"
MUTUAL = f"{TLS}  client_ca_file: ca.crt\n  client_auth_type: "


class Fixture(NamedTuple):
    text: str
    toolkit: bool  # its verdict: True takes the file
    error: str = ""  # what our error holds; empty: we take it


def _header(name: str, value: str) -> str:
    return f"http_server_config:\n  headers:\n    {name}: {value}\n"


FIXTURES: dict[str, Fixture] = {
    # whole files
    "empty": Fixture("", True),
    "comment only": Fixture("# nothing\n", True),
    "null": Fixture("null\n", True),
    "empty table": Fixture("{}\n", True),
    "null sections": Fixture(
        "tls_server_config:\nhttp_server_config:\nbasic_auth_users:\nrate_limit:\n", True
    ),
    "everything": Fixture(
        f"{MUTUAL}RequireAndVerifyClientCert\n  client_allowed_sans: [prometheus.example.org]\n  "
        "min_version: TLS12\n"
        "  max_version: TLS13\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n"
        "  curve_preferences: [CurveP256]\n  prefer_server_cipher_suites: "
        "false\nhttp_server_config:\n  http2: true\n"
        f"  headers: {{Strict-Transport-Security: max-age=31536000}}\nbasic_auth_users: "
        f"{{prometheus: {HASH}}}\n"
        "rate_limit: {interval: 100ms, burst: 20}\n",
        True,
    ),
    "a list": Fixture("- a\n", False, "expected a table"),
    "a word": Fixture("word\n", False, "expected a table"),
    "no YAML": Fixture("tls_server_config: [\n", False, "web.yml:2: "),
    "a tab": Fixture("tls_server_config:\n\tcert_file: x\n", False, "web.yml:2: "),
    "unknown section": Fixture("tls_config: {}\n", False, "web.yml:1: tls_config: unknown key"),
    "unknown key": Fixture(
        "tls_server_config:\n  cert_fil: x\n",
        False,
        "2: tls_server_config.cert_fil: unknown key (did you mean",
    ),
    "section twice": Fixture(f"{TLS}{TLS}", False, "tls_server_config: given twice"),
    "key twice": Fixture(
        f"{TLS}  cert_file: other.crt\n", False, "web.yml:4: cert_file: given twice"
    ),
    "user twice": Fixture(
        f"basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n", False, "a: given twice"
    ),
    "section is a list": Fixture(
        "tls_server_config: []\n", False, "tls_server_config: expected a table"
    ),
    "section is a word": Fixture("rate_limit: fast\n", False, "rate_limit: expected a table"),
    "anchor and alias": Fixture(f"basic_auth_users:\n  a: &h {HASH}\n  b: *h\n", True, "anchors"),
    "merge key": Fixture(
        "http_server_config: &a {http2: true}\nrate_limit:\n  <<: {interval: 1s, burst: 1}\n",
        True,
        "anchors",
    ),
    "tag": Fixture("rate_limit: {burst: !!int 5}\n", True, "tags"),
    "foreign tag": Fixture("rate_limit: {burst: !!python/name:os.system 5}\n", False, "tags"),
    "second document": Fixture("{}\n---\nrate_limit: {}\n", True, "second document"),
    "deep": Fixture("a: " + "[" * 2000 + "]" * 2000 + "\n", False, "nested deeper"),
    "surrogate": Fixture('basic_auth_users: {"\\ud800": x}\n', False, "surrogate"),
    "beyond Unicode": Fixture('basic_auth_users: {"\\U00110000": x}\n', False, "no text"),
    "control character": Fixture("basic_auth_users: {a: \x07}\n", False, "web.yml:1: "),
    # certificate and key
    "TLS": Fixture(TLS, True),
    "TLS with RSA": Fixture(
        "tls_server_config:\n  cert_file: rsa.crt\n  key_file: rsa.key\n", True
    ),
    "inline": Fixture("tls_server_config:\n  cert: |\nCERT\n  key: |\nKEY\n", True),
    "inline key": Fixture("tls_server_config:\n  cert_file: server.crt\n  key: |\nKEY\n", True),
    "both certificates": Fixture(
        f"{TLS}  cert: |\nCERT\n", True, "tls_server_config.cert: cert_file is given too"
    ),
    "no key": Fixture(
        "tls_server_config:\n  cert_file: server.crt\n", False, "one of key_file and key is needed"
    ),
    "no certificate": Fixture(
        "tls_server_config:\n  key_file: server.key\n", False, "one of cert_file and cert"
    ),
    "empty paths": Fixture(
        'tls_server_config:\n  cert_file: ""\n  key_file: ""\n', True, "one of cert_file"
    ),
    "only a CA": Fixture(
        "tls_server_config:\n  client_ca_file: ca.crt\n", False, "one of cert_file"
    ),
    "only a version": Fixture(
        "tls_server_config:\n  min_version: TLS13\n", True, "one of cert_file"
    ),
    "missing file": Fixture(
        "tls_server_config:\n  cert_file: none.crt\n  key_file: server.key\n",
        False,
        "tls_server_config.cert_file: none.crt: No such file",
    ),
    "missing key": Fixture(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: none.key\n",
        False,
        "key_file: none.key: No such file",
    ),
    "key of another": Fixture(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: client.key\n",
        False,
        "certificate and key do not do",
    ),
    "key as certificate": Fixture(
        "tls_server_config:\n  cert_file: server.key\n  key_file: server.key\n",
        False,
        "certificate and key do not do",
    ),
    "encrypted key": Fixture(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: encrypted.key\n",
        False,
        "the key is encrypted",
    ),
    "a folder": Fixture(
        "tls_server_config:\n  cert_file: .\n  key_file: server.key\n", False, "no regular file"
    ),
    "path with NUL": Fixture(
        'tls_server_config:\n  cert_file: "a\\0b"\n  key_file: server.key\n',
        False,
        "tls_server_config.cert_file",
    ),
    "path is a list": Fixture(
        "tls_server_config:\n  cert_file: [a]\n", False, "cert_file: expected a text"
    ),
    # clients' certificates
    "NoClientCert": Fixture(f"{TLS}  client_auth_type: NoClientCert\n", True),
    "empty client auth": Fixture(f'{TLS}  client_auth_type: ""\n', True),
    "VerifyClientCertIfGiven": Fixture(f"{MUTUAL}VerifyClientCertIfGiven\n", True),
    "RequireAndVerifyClientCert": Fixture(f"{MUTUAL}RequireAndVerifyClientCert\n", True),
    "inline CA": Fixture(
        f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca: |\nCA\n", True
    ),
    "RequestClientCert": Fixture(
        f"{TLS}  client_auth_type: RequestClientCert\n", True, "RequestClientCert takes"
    ),
    "RequireAnyClientCert": Fixture(
        f"{MUTUAL}RequireAnyClientCert\n", True, "RequireAnyClientCert takes"
    ),
    "RequireClientCert": Fixture(f"{MUTUAL}RequireClientCert\n", True, "RequireClientCert takes"),
    "unknown client auth": Fixture(
        f"{MUTUAL}RequireSomething\n", False, "client_auth_type: expected NoClientCert"
    ),
    "CA without mode": Fixture(
        f"{TLS}  client_ca_file: ca.crt\n", False, "client_auth_type: a client CA has"
    ),
    "mode without CA": Fixture(
        f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n",
        True,
        "client_ca_file: without a client CA",
    ),
    "missing CA": Fixture(
        f"{TLS}  client_ca_file: none\n  client_auth_type: RequireAndVerifyClientCert\n",
        False,
        "none: No such file",
    ),
    "CA without certificate": Fixture(
        f"{TLS}  client_ca_file: server.key\n  client_auth_type: RequireAndVerifyClientCert\n",
        True,
        "client_ca: no certificate",
    ),
    "names": Fixture(
        f"{MUTUAL}RequireAndVerifyClientCert\n  client_allowed_sans: [a.example.org]\n", True
    ),
    "names without verification": Fixture(
        f"{TLS}  client_allowed_sans: [a]\n", True, "client_allowed_sans: names count"
    ),
    "no names": Fixture(
        f"{MUTUAL}RequireAndVerifyClientCert\n  client_allowed_sans: []\n",
        True,
        "an empty list refuses every client",
    ),
    "names are a word": Fixture(
        f"{MUTUAL}RequireAndVerifyClientCert\n  client_allowed_sans: {{a: b}}\n",
        False,
        "expected a list",
    ),
    # versions, ciphers, curves
    "TLS12 to TLS13": Fixture(f"{TLS}  min_version: TLS12\n  max_version: TLS13\n", True),
    "only TLS13": Fixture(f"{TLS}  min_version: TLS13\n", True),
    "TLS11": Fixture(f"{TLS}  min_version: TLS11\n", True, "min_version: TLS11 is no longer safe"),
    "TLS10": Fixture(f"{TLS}  min_version: TLS10\n", True, "min_version: TLS10 is no longer safe"),
    "at most TLS11": Fixture(
        f"{TLS}  min_version: TLS10\n  max_version: TLS11\n", True, "max_version: TLS11"
    ),
    "TLS111": Fixture(f"{TLS}  min_version: TLS111\n", False, "expected TLS12 or TLS13"),
    "versions swapped": Fixture(
        f"{TLS}  min_version: TLS13\n  max_version: TLS12\n", True, "min_version: above max_version"
    ),
    "two ciphers": Fixture(
        f"{TLS}  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA]\n",
        True,
    ),
    "ciphers of TLS13": Fixture(f"{TLS}  cipher_suites: [TLS_AES_128_GCM_SHA256]\n", True),
    "ciphers of TLS13 in TLS12": Fixture(
        f"{TLS}  cipher_suites: [TLS_AES_128_GCM_SHA256]\n  max_version: TLS12\n",
        True,
        "none of them is of max_version",
    ),
    "weak cipher": Fixture(
        f"{TLS}  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n", False, "cipher_suites: expected"
    ),
    "invented cipher": Fixture(
        f"{TLS}  cipher_suites: [TLS_FAST]\n", False, "cipher_suites: expected"
    ),
    "cipher by OpenSSL's name": Fixture(
        f"{TLS}  cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256]\n", False, "cipher_suites: expected"
    ),
    "own order": Fixture(f"{TLS}  prefer_server_cipher_suites: no\n", True),
    "no order": Fixture(
        f"{TLS}  prefer_server_cipher_suites: maybe\n", False, "expected true or false"
    ),
    "quoted switch": Fixture(
        f'{TLS}  prefer_server_cipher_suites: "true"\n', False, "expected true or false"
    ),
    "one curve": Fixture(f"{TLS}  curve_preferences: [X25519]\n", True),
    "two curves": Fixture(
        f"{TLS}  curve_preferences: [X25519, CurveP256]\n", True, "curve_preferences: Python"
    ),
    "invented curve": Fixture(
        f"{TLS}  curve_preferences: [CurveP1]\n", False, "curve_preferences: expected"
    ),
    # HTTP
    "no HTTP/2": Fixture("http_server_config: {http2: off}\n", True),
    "HTTP/2 as number": Fixture(
        "http_server_config: {http2: 1}\n", False, "http2: expected true or false"
    ),
    "HSTS": Fixture(_header("Strict-Transport-Security", "max-age=1"), True),
    "nosniff": Fixture(_header("X-Content-Type-Options", "nosniff"), True),
    "sniff": Fixture(
        _header("X-Content-Type-Options", "sniff"),
        False,
        "X-Content-Type-Options: expected nosniff",
    ),
    "deny": Fixture(_header("X-Frame-Options", "deny"), True),
    "frame": Fixture(
        _header("X-Frame-Options", "DENY"), False, "X-Frame-Options: expected deny or sameorigin"
    ),
    "foreign header": Fixture(_header("X-Powered-By", "us"), False, "X-Powered-By cannot be set"),
    "header in small letters": Fixture(
        _header("x-frame-options", "deny"), False, "x-frame-options cannot be set"
    ),
    "header of two lines": Fixture(
        _header("Content-Security-Policy", '"a\\r\\nSet-Cookie: b"'), True, "only printable ASCII"
    ),
    # users
    "a user": Fixture(f"basic_auth_users:\n  a: {HASH}\n", True),
    "2a and 2b": Fixture(
        f"basic_auth_users:\n  a: {HASH.replace('2y', '2a')}\n  b: {HASH.replace('2y', '2b')}\n",
        True,
    ),
    "no users": Fixture("basic_auth_users: {}\n", True),
    "a password": Fixture(
        "basic_auth_users:\n  a: hunter2\n", False, 'the value of "a" is no bcrypt hash'
    ),
    "no hash": Fixture("basic_auth_users:\n  a:\n", False, "no bcrypt hash"),
    "cut hash": Fixture(f"basic_auth_users:\n  a: {HASH[:-1]}\n", True, "no bcrypt hash"),
    "hash with a wrong letter": Fixture(
        f"basic_auth_users:\n  a: {HASH[:-5]}!{HASH[-4:]}\n", True, "no bcrypt hash"
    ),
    "hash with bits too many": Fixture(
        f"basic_auth_users:\n  a: {HASH[:28]}f{HASH[29:]}\n", True, "no bcrypt hash"
    ),
    "cost 3": Fixture(
        f"basic_auth_users:\n  a: {HASH.replace('$04$', '$03$')}\n", False, "has cost 03"
    ),
    "cost 17": Fixture(
        f"basic_auth_users:\n  a: {HASH.replace('$04$', '$17$')}\n", True, "has cost 17"
    ),
    "MD5": Fixture(
        "basic_auth_users:\n  a: $apr1$x$UxJ7N0sM2hSgwMXS9dYTL.\n", False, "no bcrypt hash"
    ),
    # rate limit
    "rate": Fixture("rate_limit: {interval: 1m30s, burst: 3}\n", True),
    "rate of 0": Fixture("rate_limit: {interval: 0, burst: 0}\n", True),
    "rate without burst": Fixture(
        "rate_limit: {interval: 1s}\n", True, "rate_limit.burst: with a burst of 0"
    ),
    "rate in words": Fixture(
        "rate_limit: {interval: fast, burst: 1}\n", False, "interval: expected a duration"
    ),
    "rate without unit": Fixture(
        "rate_limit: {interval: '10', burst: 1}\n", False, "interval: expected a duration"
    ),
    "rate in nanoseconds": Fixture(
        "rate_limit: {interval: 100, burst: 1}\n", True, "interval: expected a duration"
    ),
    "negative rate": Fixture(
        "rate_limit: {interval: -1s, burst: 1}\n", True, "interval: expected a duration"
    ),
    "infinite burst": Fixture(
        "rate_limit: {interval: 1s, burst: .inf}\n", False, "burst: expected a whole number"
    ),
    "negative burst": Fixture(
        "rate_limit: {interval: 1s, burst: -1}\n", True, "burst: expected a whole number"
    ),
    "half a burst": Fixture(
        "rate_limit: {interval: 1s, burst: 1.5}\n", True, "burst: expected a whole number"
    ),
}


def write(folder: Path, name: str) -> Path:
    """The file of a fixture, in a folder with the test's certificates."""
    text = FIXTURES[name].text
    for word, file in (("CERT", "server.crt"), ("KEY", "server.key"), ("CA", "ca.crt")):
        inline = "\n".join(f"    {line}" for line in (folder / file).read_text().splitlines())
        text = text.replace(f"\n{word}\n", f"\n{inline}\n")
    path = folder / "web.yml"
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    from exporter.pki import make_pki

    target = make_pki(Path(sys.argv[1]))
    for number, name in enumerate(FIXTURES):
        write(target, name).rename(target / f"{number:03}.yml")
        print(f"{number:03}.yml\t{'good' if FIXTURES[name].toolkit else 'bad'}\t{name}")
