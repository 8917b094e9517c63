"""A broker with a listener for each way to log in, its authority, its users, and a token server."""

import base64
import json
import os
import signal
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from authority import Authority, new_key, weakly_encrypted, write_key
from laggard.demo.broker import Broker
from laggard.demo.node import HOST, free_ports
from laggard.sources.login.spark_security import URLS_PROPERTY

Right: TypeAlias = tuple[str, str, str, str]  # kind, name, operation, pattern
USER, CLIENT = "laggard", "lag reader"
SECURITY = "org.apache.kafka.common.security"
MODES = (
    "PLAINTEXT",
    "SSL",
    "mTLS",
    "SASL_PLAINTEXT",
    "PLAIN",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "OAUTHBEARER",
)
LISTENERS = {  # name -> protocol
    "TLS": "SSL",
    "MTLS": "SSL",
    "OPEN": "SASL_PLAINTEXT",
    "LOGIN": "SASL_SSL",
    "EXPIRED": "SSL",
    "OTHERNAME": "SSL",
}


class TokenServer:
    """The client credentials grant over TLS by its own authority: a signed token for who knows the
    secret.
    """

    def __init__(self, folder: Path, secret: str) -> None:
        self.secret, self.asked, self.life = secret, 0, 3600
        authority = Authority(folder)
        self.ca = authority.ca
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("server"))
        self._key = rsa.generate_private_key(65537, 2048)
        modulus = self._key.public_key().public_numbers().n
        key = {
            "kty": "RSA",
            "kid": "one",
            "use": "sig",
            "alg": "RS256",
            "e": "AQAB",
            "n": _url64(modulus.to_bytes(256, "big")),
        }
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"keys": [key]}))
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.asked += 1
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length).decode()
                login = base64.b64encode(f"{CLIENT}:{outer.secret}".encode()).decode()
                is_known = (
                    self.headers["Authorization"] == f"Basic {login}"
                    and "client_credentials" in body
                )
                answer = (
                    outer.answer()
                    if is_known
                    else {"error": "invalid_client", "error_description": "SECRET ECHO"}
                )
                raw = json.dumps(answer).encode()
                self.send_response(200 if is_known else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

            def setup(self) -> None:  # the handshake is made here, in the thread of one client
                self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def finish(self) -> None:
                super().finish()
                self.request.close()

        self._server = _Server((HOST, 0), Handler)
        self.url = f"https://{HOST}:{self._server.server_address[1]}/token"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self) -> dict[str, Any]:
        now = int(time.time())
        claims = {"sub": USER, "iat": now, "exp": now + self.life, "iss": "tests", "scope": "kafka"}
        head = _url64(json.dumps({"alg": "RS256", "kid": "one"}).encode())
        signed = f"{head}.{_url64(json.dumps(claims).encode())}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return {
            "access_token": f"{signed}.{_url64(signature)}",
            "expires_in": self.life,
            "token_type": "Bearer",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Write nothing: a client that refuses the certificate is what a test wants."""


def _quoted(password: str) -> str:
    """A password as a login in a properties file holds it."""
    return password.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")


def _url64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass
class Secured:
    """The running broker, and the settings of a client for each mode."""

    broker: Broker
    folder: Path
    authority: Authority
    tokens: TokenServer
    addresses: Mapping[str, str]
    passwords: dict[str, str]

    @property
    def admin(self) -> str:
        return self.broker.bootstrap_servers

    def secret(self, name: str, text: str) -> Path:
        """A file with a secret, as users write it: with a line break at its end."""
        path = self.folder / "secrets" / name
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text + "\n")
        return path

    def settings(self, mode: str) -> dict[str, str]:
        """Keys below `cluster`, dotted, as strings."""
        listener = {"SSL": "TLS", "mTLS": "MTLS", "SASL_PLAINTEXT": "OPEN", "PLAINTEXT": ""}.get(
            mode, "LOGIN"
        )
        if not listener:
            return {"bootstrap_servers": self.admin}
        found = {
            "bootstrap_servers": self.addresses[listener],
            "security.protocol": LISTENERS[listener],
        }
        if LISTENERS[listener].endswith("SSL"):
            found["security.ca_file"] = str(self.authority.ca)
        if mode == "mTLS":
            found["security.cert_file"] = str(self.folder / "client.pem")
            found["security.key_file"] = str(self.folder / "client.key")
            found["security.key_password_file"] = str(self.secret("key", self.passwords["key"]))
        if LISTENERS[listener].startswith("SASL"):
            found["security.mechanism"] = mechanism = "PLAIN" if mode == "SASL_PLAINTEXT" else mode
            if mechanism == "OAUTHBEARER":
                found["security.oauth.token_url"] = self.tokens.url
                found["security.oauth.ca_file"] = str(self.tokens.ca)
                found["security.oauth.client_id"] = CLIENT
                found["security.oauth.client_secret_file"] = str(
                    self.secret("client", self.passwords["client"])
                )
                found["security.oauth.scope"] = "kafka"
            else:
                name = "plain" if mechanism == "PLAIN" else "scram"
                found["security.username"] = USER
                found["security.password_file"] = str(self.secret(name, self.passwords[name]))
        return found

    def issue_client(self, authority: Authority | None = None) -> None:
        """Give the client of mTLS another certificate and key, of its broker's authority unless
        another is named.
        """
        key = new_key()
        text = weakly_encrypted(key, self.passwords["key"])
        issued = (authority or self.authority).issue("client", f"CN={USER},O=Lag\\, Inc.", key=key)[
            0
        ]
        write_key(self.folder / "client.key.new", text).replace(self.folder / "client.key")
        issued.replace(self.folder / "client.pem")

    def exchange(self, plain: str, clients: Authority) -> None:
        """Start the broker again with a new certificate, another password of PLAIN and another
        authority of clients.
        """
        self.broker.stop(1, signal.SIGKILL)
        self.authority.store("broker")
        (self.folder / "clients.pem").write_text(clients.ca.read_text())
        settings = self.broker.work_dir / "node-1" / "server.properties"
        settings.write_text(
            settings.read_text().replace(_quoted(self.passwords["plain"]), _quoted(plain))
        )
        self.passwords["plain"] = plain
        with _asking_for_keys(self.tokens):
            self.broker.start(1)

    def set_scram(self, password: str, user: str = USER) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.admin)
        try:
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                admin.alter_user_scram_credentials(
                    [UserScramCredentialUpsertion(user, mechanism, password)]
                )
        finally:
            admin.close()

    def grant(self, principal: str, *rights: Right) -> None:
        """Give rights."""
        admin = KafkaAdminClient(bootstrap_servers=self.admin)
        try:
            admin.create_acls([acl_of(principal, right) for right in rights])
        finally:
            admin.close()

    def revoke(self, principal: str, *rights: Right) -> None:
        """Take rights away."""
        admin = KafkaAdminClient(bootstrap_servers=self.admin)
        try:
            admin.delete_acls([acl_of(principal, right) for right in rights])
        finally:
            admin.close()


def acl_of(principal: str, right: Right) -> ACL:
    kind, name, operation, pattern = right
    where = ResourcePattern(ResourceType[kind], name, ACLResourcePatternType[pattern])
    return ACL(principal, "*", ACLOperation[operation], ACLPermissionType.ALLOW, where)


@contextmanager
def secured(folder: Path, passwords: dict[str, str]) -> Iterator[Secured]:
    """A cluster whose PLAINTEXT listener may do everything, and every other one what its principal
    may.
    """
    authority, tokens = (
        Authority(folder / "authority"),
        TokenServer(folder / "tokens", passwords["client"]),
    )
    ports = free_ports(len(LISTENERS))
    addresses = {name: f"{HOST}:{port}" for name, port in zip(LISTENERS, ports, strict=True)}
    stores = {
        "TLS": authority.store("broker"),
        "EXPIRED": authority.store("expired", days=-1),
        "OTHERNAME": authority.store("other", hosts=["DNS:kafka.example"]),
    }
    clients = folder / "clients.pem"
    clients.write_text(authority.ca.read_text())
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | LISTENERS
    properties = {
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:ANONYMOUS",
        "listener.name.mtls.ssl.client.auth": "required",
        # an exchanged password counts at once
        "listener.name.login.connections.max.reauth.ms": "4000",
        "listener.name.open.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,"
        "OAUTHBEARER",
        "listener.name.login.oauthbearer.sasl.server.callback.handler.class": (
            f"{SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.login.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": tokens.keys.as_uri(),
        "sasl.oauthbearer.jwks.endpoint.url": tokens.keys.as_uri(),
        "listener.name.login.oauthbearer.sasl.jaas.config": (
            f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
        ),
    }
    quoted = _quoted(passwords["plain"])
    for name in ("open", "login"):
        login = f'{SECURITY}.plain.PlainLoginModule required user_{USER}="{quoted}";'
        properties[f"listener.name.{name}.plain.sasl.jaas.config"] = login
    for mechanism in ("scram-sha-256", "scram-sha-512"):
        login = f"{SECURITY}.scram.ScramLoginModule required;"
        properties[f"listener.name.login.{mechanism}.sasl.jaas.config"] = login
    for name, protocol in LISTENERS.items():
        if protocol.endswith("SSL"):
            own = f"listener.name.{name.lower()}.ssl"
            properties |= {
                f"{own}.keystore.type": "PEM",
                f"{own}.keystore.location": str(stores.get(name, stores["TLS"])),
            }
            properties |= {
                f"{own}.truststore.type": "PEM",
                f"{own}.truststore.location": str(clients),
            }
    broker = Broker(
        properties=properties,
        listeners=[f"{name}://{address}" for name, address in addresses.items()],
    )
    found = Secured(broker, folder, authority, tokens, addresses, passwords)
    with ExitStack() as stack:
        stack.callback(tokens.close)
        with _asking_for_keys(tokens):
            stack.enter_context(broker)
        found.issue_client()
        found.set_scram(passwords["scram"])
        yield found


@contextmanager
def _asking_for_keys(tokens: TokenServer) -> Iterator[None]:
    """Let a broker that starts now read the keys of the token server: Kafka asks only where it is
    allowed to.
    """
    before = os.environ.get("JAVA_TOOL_OPTIONS")
    os.environ["JAVA_TOOL_OPTIONS"] = f"-D{URLS_PROPERTY}={tokens.keys.as_uri()}"
    try:
        yield
    finally:
        os.environ.pop("JAVA_TOOL_OPTIONS")
        os.environ.update({"JAVA_TOOL_OPTIONS": before} if before else {})
