"""`[cluster.security]`: how both clients, kafka-python and Spark's, log in to the brokers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from laggard.config.ranges import is_url, key, one_of, path, switch

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASS_THROUGH = ("GSSAPI", "AWS_MSK_IAM")  # each client takes its login from its own surroundings
WITH_PASSWORD = (PLAIN, *SCRAM)
MECHANISMS = (*WITH_PASSWORD, OAUTHBEARER, *PASS_THROUGH)


@dataclass(frozen=True)
class OAuth:
    """Name where tokens come from: the client credentials grant of OAuth 2."""

    token_url: str = key("", "URL of http or https, may be empty", lambda value: not value or is_url(value))
    client_id: str = key("", "text, may be empty", str.isprintable)
    client_secret_file: str = path()
    scope: str = key("", "text, may be empty", str.isprintable)
    ca_file: str = path()


@dataclass(frozen=True)
class Security:
    """TLS and SASL towards the brokers; secrets are in files only."""

    protocol: str = one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", default="PLAINTEXT")
    ca_file: str = path()
    cert_file: str = path()
    key_file: str = path()
    key_password_file: str = path()
    verify_hostname: bool = switch(default=True)
    min_tls: str = one_of("1.2", "1.3", default="1.2")
    mechanism: str = key("", f"{', '.join(MECHANISMS)} or empty", ("", *MECHANISMS).__contains__)
    username: str = key("", "text, may be empty", str.isprintable)
    password_file: str = path()
    oauth: OAuth = field(default_factory=OAuth)

    @property
    def has_tls(self) -> bool:
        """True if connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        """True if the client logs in by a mechanism of SASL."""
        return self.protocol.startswith("SASL_")


def mistakes(security: Security) -> Iterator[tuple[str, str]]:
    """Keys below `cluster.security` that do not go together, each with the problem."""
    if security.has_sasl != bool(security.mechanism):
        problem = f"is needed for {security.protocol}: one of {', '.join(MECHANISMS)}"
        yield "mechanism", problem if security.has_sasl else f"has no use in {security.protocol}"
    yield from _useless_or_missing(security)
    yield from _wrong_values(security)


def _useless_or_missing(security: Security) -> Iterator[tuple[str, str]]:
    protocol, mechanism, oauth = security.protocol, security.mechanism, security.oauth
    with_password = security.has_sasl and mechanism in WITH_PASSWORD
    with_token = security.has_sasl and mechanism == OAUTHBEARER
    in_tls, in_login = f"has no use in {protocol}", f"has no use with {mechanism or 'no mechanism'}"
    has_certificate = security.has_tls and bool(security.cert_file or security.key_file)
    pair = "is needed: cert_file and key_file belong together"
    for name, is_used, why_not, need in (
        ("ca_file", security.has_tls, in_tls, ""),
        ("cert_file", security.has_tls, in_tls, pair if has_certificate else ""),
        ("key_file", security.has_tls, in_tls, pair if has_certificate else ""),
        ("key_password_file", has_certificate, "has no use without key_file", ""),
        ("username", with_password, in_login, f"is needed for {mechanism}" if with_password else ""),
        ("password_file", with_password, in_login, f"is needed for {mechanism}" if with_password else ""),
        ("oauth.token_url", with_token, in_login, f"is needed for {mechanism}" if with_token else ""),
        ("oauth.client_id", with_token, in_login, f"is needed for {mechanism}" if with_token else ""),
        ("oauth.client_secret_file", with_token, in_login, f"is needed for {mechanism}" if with_token else ""),
        ("oauth.scope", with_token, in_login, ""),
        ("oauth.ca_file", with_token and oauth.token_url[:6].lower() == "https:", "is used with an https URL only", ""),
    ):
        holder: object = oauth if name.startswith("oauth.") else security
        is_set = bool(getattr(holder, name.rpartition(".")[2]))
        if is_set and not is_used:
            yield name, why_not
        elif need and not is_set:
            yield name, need


def _wrong_values(security: Security) -> Iterator[tuple[str, str]]:
    mechanism, in_tls = security.mechanism, f"has no use in {security.protocol}"
    if not security.verify_hostname and not security.has_tls:
        yield "verify_hostname", in_tls
    if security.min_tls != Security.min_tls and not security.has_tls:
        yield "min_tls", in_tls
    if mechanism in SCRAM and ("," in security.username or "=" in security.username):
        yield (
            "username",
            "with SCRAM neither comma nor equals sign: kafka-python, unlike Spark's client, does not escape them",
        )
    if mechanism == "AWS_MSK_IAM" and security.protocol != "SASL_SSL":
        yield "mechanism", "AWS_MSK_IAM needs the protocol SASL_SSL"
