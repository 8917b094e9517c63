"""`[cluster.security]` as kafka-python wants it, and how a broker's refusal is reported."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka.errors import (
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from laggard.config.security import OAUTHBEARER, PLAIN
from laggard.errors import CONFIGURATION, DENIED, LaggardError
from laggard.secret_files import fingerprint, read_password, read_secret
from laggard.sources.login import pem
from laggard.sources.login.oauth import Tokens, trusting

if TYPE_CHECKING:
    from laggard.config.security import Security

KEY = "cluster.security."
_CLIENT = "kafka"
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_TLS_REFUSAL = re.compile(
    r"\[SSL: (CERTIFICATE_VERIFY_FAILED|\w*ALERT\w*|WRONG_VERSION_NUMBER|NO_PROTOCOLS\w*"
    r"|UNSUPPORTED_PROTOCOL)\]\s*(.*)"
)
_SASL_REFUSALS = (
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    IllegalSaslStateError,
)


class Login:
    """The login of one client, which reads files again for each set of connections.

    So a rotation counts.
    """

    def __init__(self, security: Security, seconds: float) -> None:
        self._security = security
        self._tokens = Tokens(security.oauth, seconds) if security.has_tokens else None

    def renew(self) -> None:
        """Ask for a new token where that is due."""
        if self._tokens is not None:
            self._tokens.renew()

    def settings(self) -> dict[str, Any]:
        """Return arguments for kafka-python; raise a LaggardError that names a wrong file."""
        silence_client()
        security = self._security
        arguments: dict[str, Any] = {"security_protocol": security.protocol}
        if security.has_tls:
            arguments["ssl_context"] = _context(security)
        if security.has_sasl:
            arguments["sasl_mechanism"] = security.mechanism
        if security.has_password:
            arguments["sasl_plain_username"] = security.username
            arguments["sasl_plain_password"] = read_password(
                security.password_file, f"{KEY}password_file"
            )
        if self._tokens is not None:
            self.renew()
            arguments["sasl_oauth_token_provider"] = self._tokens
        return arguments


def silence_client() -> None:
    """Silence kafka-python, which logs every retry; what matters is raised as an error.

    Its DEBUG lines hold each request, and so the password of a login: they are dropped also where
    somebody else's settings ask for them. A filter counts for one logger, and a level of
    `kafka.net` wins over that of `kafka`.
    """
    logging.getLogger(_CLIENT).setLevel(logging.CRITICAL)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if f"{name}.".startswith(f"{_CLIENT}.") and isinstance(logger, logging.Logger):
            logger.addFilter(_is_no_request)  # once only: it knows its filters


def _is_no_request(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


def check_files(security: Security) -> None:
    """Raise if a file that the login needs cannot be used, as the configuration is wrong.

    This holds at start.

    Later on it is a login that fails, which is tried again: a file may be missing while a secret
    is exchanged.
    """
    try:
        if security.has_tls:
            _context(security)
        if security.has_password:
            read_password(security.password_file, f"{KEY}password_file")
        if security.has_tokens:
            read_password(security.oauth.client_secret_file, f"{KEY}oauth.client_secret_file")
            trusting(security.oauth.ca_file, f"{KEY}oauth.ca_file")
    except LaggardError as error:
        error.exit_code = CONFIGURATION
        raise


def warnings(security: Security) -> Iterator[str]:
    """Name what an attacker on the network could use."""
    if security.has_tls and not security.verify_hostname:
        yield "verify_hostname is false: any certificate of that authority passes for a broker's"
    if security.protocol == "SASL_PLAINTEXT":
        kind = "the login"
        if security.mechanism in (PLAIN, OAUTHBEARER):
            kind = "the password or token"
        yield f"SASL_PLAINTEXT: {kind} and all data cross the network without encryption"
    if security.has_tokens and security.oauth.token_url.lower().startswith("http:"):
        yield "oauth.token_url is http: the client's secret crosses the network without encryption"


def files(security: Security) -> tuple[str, ...]:
    """Return every file that is set for the login."""
    oauth = security.oauth
    named = (security.ca_file, security.cert_file, security.key_file, security.key_password_file)
    return tuple(
        filter(None, (*named, security.password_file, oauth.client_secret_file, oauth.ca_file))
    )


def version_of(security: Security) -> str:
    """Return a text that changes when a file of the login changes."""
    return fingerprint(files(security))


def refusal(error: BaseException) -> LaggardError | None:
    """Return the failure if a broker refused us or we refused its certificate; else None."""
    match = _TLS_REFUSAL.search(str(error))
    if match is None and not isinstance(error, _SASL_REFUSALS):
        return None
    if match is None:
        what, said = (
            "a broker refuses the login",
            re.sub(r"^(\[Error \d+\] )?(\w+Error: )*", "", str(error)),
        )
        fix = f"check {KEY}mechanism, username and the secret's file"
    elif match[1] == "CERTIFICATE_VERIFY_FAILED":
        what, said = (
            "a broker's certificate is refused",
            re.sub(r"\s*\(_ssl\.c:\d+\)", "", match[2]),
        )
        fix = (
            f"check {KEY}ca_file, the certificate's dates, and that it holds the name in "
            "cluster.bootstrap_servers"
        )
    else:
        what, said = (
            "a broker refuses the TLS connection",
            re.sub(r"\s*\(_ssl\.c:\d+\)", "", match[2]) or match[1],
        )
        fix = f"check {KEY}protocol, cert_file, key_file and min_tls"
    return LaggardError(what, cause=said[:300], fix=fix, exit_code=DENIED)


def _context(security: Security) -> ssl.SSLContext:
    try:
        return _made_context(security)
    except (ssl.SSLError, OSError) as error:
        what, cause = (
            "cannot use the certificates of [cluster.security]",
            getattr(error, "reason", None) or str(error),
        )
        fix = (
            "check that the key belongs to the certificate, the key's password, and that all "
            "files are PEM"
        )
        raise LaggardError(what, cause=cause, fix=fix, exit_code=DENIED) from error


def _made_context(security: Security) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _VERSIONS[security.min_tls]
    context.check_hostname = security.verify_hostname
    if security.ca_file:
        text = read_public(security.ca_file, f"{KEY}ca_file")
        context.load_verify_locations(
            cadata=pem.certificates(text, security.ca_file, f"{KEY}ca_file")
        )
    else:
        context.load_default_certs()
    if security.cert_file:
        _, password = own_key(security)
        read_public(security.cert_file, f"{KEY}cert_file")
        # never asks on the terminal: an encrypted key has a password
        context.load_cert_chain(security.cert_file, security.key_file, lambda: password)
    return context


def own_key(security: Security) -> tuple[str, str]:
    """Return our private key in PEM, and its password or an empty text."""
    password = ""
    if security.key_password_file:
        password = read_password(security.key_password_file, f"{KEY}key_password_file")
    text = read_secret(security.key_file, f"{KEY}key_file")
    return pem.private_key(
        text, security.key_file, f"{KEY}key_file", has_password=bool(password)
    ), password


def read_public(path: str, key: str) -> str:
    """Read a file that is no secret, such as certificates."""
    try:
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        fix = "name a file of certificates in PEM that this user can read"
        what, cause = f"cannot use {path}", f"{key}: {error.strerror}"
        raise LaggardError(what, cause=cause, fix=fix, exit_code=DENIED) from error
