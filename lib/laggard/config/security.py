"""`[cluster.security]`: how both clients, kafka-python and Spark's, log in to the brokers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from laggard.config.ranges import is_url, key, one_of, path, switch

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASS_THROUGH = ("GSSAPI", "AWS_MSK_IAM")  # each client takes its login from its own surroundings
WITH_PASSWORD = (PLAIN, *SCRAM)
MECHANISMS = (*WITH_PASSWORD, OAUTHBEARER, *PASS_THROUGH)


@dataclass(frozen=True)
class OAuth:
    """Name where tokens come from: the client credentials grant of OAuth 2."""

    token_url: str = key(
        "", "URL of http or https, may be empty", lambda value: not value or is_url(value)
    )
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

    @property
    def has_password(self) -> bool:
        """True if the client logs in by user and password."""
        return self.has_sasl and self.mechanism in WITH_PASSWORD

    @property
    def has_tokens(self) -> bool:
        """True if the client logs in by a token."""
        return self.has_sasl and self.mechanism == OAUTHBEARER


def mistakes(security: Security) -> Iterator[tuple[str, str]]:
    """Yield keys below `cluster.security` that do not go together, each with the problem."""
    if security.has_sasl != bool(security.mechanism):
        problem = f"is needed for {security.protocol}: one of {', '.join(MECHANISMS)}"
        yield "mechanism", problem if security.has_sasl else f"has no use in {security.protocol}"
    yield from _useless_or_missing(security)
    yield from _wrong_values(security)


def _useless_or_missing(security: Security) -> Iterator[tuple[str, str]]:
    with_password, with_token = security.has_password, security.has_tokens
    in_tls, in_login = (
        f"has no use in {security.protocol}",
        f"has no use with {security.mechanism or 'no mechanism'}",
    )
    has_certificate = security.has_tls and bool(security.cert_file or security.key_file)
    pair = "is needed: cert_file and key_file belong together" if has_certificate else ""
    needed = f"is needed for {security.mechanism}"
    with_tls_of_its_own = with_token and security.oauth.token_url[:6].lower() == "https:"
    for name, is_used, why_not, need in (  # `need`: what is wrong if it is used and not set
        ("ca_file", security.has_tls, in_tls, ""),
        ("cert_file", security.has_tls, in_tls, pair),
        ("key_file", security.has_tls, in_tls, pair),
        ("key_password_file", has_certificate, "has no use without key_file", ""),
        ("username", with_password, in_login, needed),
        ("password_file", with_password, in_login, needed),
        ("oauth.token_url", with_token, in_login, needed),
        ("oauth.client_id", with_token, in_login, needed),
        ("oauth.client_secret_file", with_token, in_login, needed),
        ("oauth.scope", with_token, in_login, ""),
        ("oauth.ca_file", with_tls_of_its_own, "is used with an https URL only", ""),
    ):
        is_set = bool(attrgetter(name)(security))
        problem = why_not if is_set else need
        if is_set != is_used and problem:
            yield name, problem


def _wrong_values(security: Security) -> Iterator[tuple[str, str]]:
    mechanism, in_tls = security.mechanism, f"has no use in {security.protocol}"
    if not security.verify_hostname and not security.has_tls:
        yield "verify_hostname", in_tls
    if security.min_tls != Security.min_tls and not security.has_tls:
        yield "min_tls", in_tls
    if mechanism in SCRAM and ("," in security.username or "=" in security.username):
        yield (
            "username",
            (
                "with SCRAM neither comma nor equals sign: kafka-python, unlike Spark's client, "
                "does not escape them"
            ),
        )
    if mechanism == "AWS_MSK_IAM" and security.protocol != "SASL_SSL":
        yield "mechanism", "AWS_MSK_IAM needs the protocol SASL_SSL"
