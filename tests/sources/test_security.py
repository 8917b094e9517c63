"""`[cluster.security]` as arguments of both clients: keys they both read, no secret in Spark's
options.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError

from authority import ED25519, RSA, Authority, new_key, pem, write_key
from laggard.config.security import OAuth, Security
from laggard.doctor.principal import escaped, principal_of
from laggard.errors import CONFIGURATION, DENIED, LaggardError
from laggard.sources.log_ends import options_from_json, options_to_json
from laggard.sources.login.pem import certificates, private_key
from laggard.sources.login.security import Login, check_files, refusal, version_of, warnings
from laggard.sources.login.spark_security import jvm_properties, spark_options
from laggard.sources.offsets_topic import OffsetsSource
from laggard.sources.poll import PollOptions
from laggard.sources.snapshot import OFFSETS_PARTITIONS

URL = "https://id.example/token"
PARAMETERS = (
    # openssl writes them first
    "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
)
REFERENCE = re.compile(r"\$\{laggard:([^:}]+):([^:}]+)\}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("own")).issue("reader", "CN=reader,O=Lag\\, Inc.")[0]


@pytest.fixture(scope="module")
def key(certificate: Path) -> Path:
    return certificate.with_suffix(".key")


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.touch(mode=0o600)
    path.write_text('pa"ss\\word-CANARY\n')
    return path


def resolved(text: str) -> str:
    """A value as Kafka's DirectoryConfigProvider makes it of its references."""
    return REFERENCE.sub(lambda found: Path(found[1], found[2]).read_text(), text)


def test_a_key_is_found_behind_other_text_and_entries_with_any_line_breaks(key: Path) -> None:
    entry = key.read_text()
    other = "some words\n" + PARAMETERS + pem(new_key()).replace("PRIVATE", "")
    for text in (
        entry,
        other + entry + "more",
        (other + entry).replace("\n", "\r\n"),
        entry.rstrip(),
    ):
        assert private_key(text, "k", "key_file", has_password=False) == entry


@pytest.mark.parametrize(
    ("text", "has_password", "cause", "fix"),
    [
        (pem(new_key(ED25519)), False, "Ed25519", "RSA"),
        (
            PARAMETERS + pem(new_key(), is_traditional=True),
            False,
            "EC PRIVATE KEY",
            "openssl pkcs8",
        ),
        (pem(new_key(RSA), is_traditional=True), False, "RSA PRIVATE KEY", "openssl pkcs8"),
        (pem(new_key()), True, "not encrypted", "remove"),
        (pem(new_key(), "x"), True, "PBES2", "PBE-SHA1-3DES"),
        (pem(new_key(), "x"), False, "is encrypted", "key_password_file"),
        ("words\n", False, "0 private keys", "one private key"),
    ],
    ids=["Ed25519", "SEC1", "PKCS1", "plain", "PBES2", "encrypted", "none"],
)
def test_a_key_that_one_client_cannot_read_is_refused_by_name(
    text: str, has_password: bool, cause: str, fix: str
) -> None:
    with pytest.raises(LaggardError) as caught:
        private_key(text, "k.pem", "key_file", has_password=has_password)
    assert cause in caught.value.cause
    assert fix in caught.value.fix
    assert caught.value.exit_code == DENIED


def test_a_file_without_a_certificate_is_refused(key: Path, certificate: Path) -> None:
    assert (
        certificates("words\n" + certificate.read_text(), "c", "ca_file") == certificate.read_text()
    )
    with pytest.raises(LaggardError, match="cannot use c"):
        certificates(key.read_text(), "c", "ca_file")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sparks_options_refer_to_the_password_and_follow_its_file(
    password: Path, mechanism: str
) -> None:
    security = Security(
        protocol="SASL_PLAINTEXT",
        mechanism=mechanism,
        username='we"ird\\',
        password_file=str(password),
    )
    options = spark_options(security, is_local=True)
    assert "CANARY" not in json.dumps(options)
    assert options["kafka.sasl.mechanism"] == mechanism
    assert (
        options["kafka.config.providers.laggard.param.allowed.paths"] == f"/proc/{os.getpid()}/fd"
    )
    login = options["kafka.sasl.jaas.config"]
    assert resolved(login).endswith(
        'required username="we\\"ird\\\\" password="pa\\"ss\\\\word-CANARY";'
    )
    descriptors = len([*Path("/proc/self/fd").iterdir()])
    for turn in range(50):
        password.write_text(f"{turn}\n")
        assert spark_options(security, is_local=True) == options
        assert f'password="{turn}"' in resolved(login)
    assert len([*Path("/proc/self/fd").iterdir()]) == descriptors


def test_executors_elsewhere_read_the_file_itself_and_one_they_cannot_read_is_refused(
    password: Path,
) -> None:
    security = Security(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="u", password_file=str(password)
    )
    for content, cause in {'a"b': "a quote", "a\\b": "a backslash", "ab\n": "a line break"}.items():
        password.write_text(content)
        with pytest.raises(LaggardError) as caught:
            spark_options(security, is_local=False)
        assert cause in caught.value.cause
    password.write_text("ab")
    login = spark_options(security, is_local=False)["kafka.sasl.jaas.config"]
    assert login.endswith(f'username="u" password="${{laggard:{password.parent}:password}}";')
    assert resolved(login).endswith('password="ab";')


def test_spark_gets_the_tls_settings_that_python_gets(key: Path, certificate: Path) -> None:
    security = Security(
        protocol="SSL",
        ca_file=str(certificate),
        cert_file=str(certificate),
        key_file=str(key),
        min_tls="1.3",
        verify_hostname=False,
    )
    options = spark_options(security, is_local=True)
    context = Login(security, 1).settings()["ssl_context"]
    assert (context.minimum_version, context.check_hostname, context.verify_mode) == (
        ssl.TLSVersion.TLSv1_3,
        False,
        ssl.CERT_REQUIRED,
    )
    assert options["kafka.ssl.enabled.protocols"] == "TLSv1.3"
    assert options["kafka.ssl.endpoint.identification.algorithm"] == ""
    assert options["kafka.ssl.truststore.location"] == str(certificate)
    assert resolved(options["kafka.ssl.keystore.key"]) == key.read_text()
    assert resolved(options["kafka.ssl.keystore.certificate.chain"]) == certificate.read_text()
    assert "PRIVATE" not in json.dumps(options)


def test_without_tls_and_sasl_spark_gets_no_option() -> None:
    assert spark_options(Security(), is_local=True) == {}
    assert Login(Security(), 1).settings() == {"security_protocol": "PLAINTEXT"}


def test_spark_may_send_the_clients_secret_to_the_token_url_only(password: Path) -> None:
    oauth = OAuth(URL, client_id="c", client_secret_file=str(password))
    security = Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", oauth=oauth)
    assert (
        jvm_properties(security)["org.apache.kafka.sasl.oauthbearer.allowed.urls"]
        == oauth.token_url
    )
    options = spark_options(security, is_local=True)
    assert options["kafka.sasl.oauthbearer.token.endpoint.url"] == oauth.token_url
    assert 'clientSecret="pa\\"ss\\\\word-CANARY"' in resolved(options["kafka.sasl.jaas.config"])
    assert "CANARY" not in json.dumps(options)


def test_what_passes_through_names_the_other_modules() -> None:
    iam = spark_options(Security(protocol="SASL_SSL", mechanism="AWS_MSK_IAM"), is_local=False)
    assert "IAMLoginModule required;" in iam["kafka.sasl.jaas.config"]
    kerberos = spark_options(Security(protocol="SASL_SSL", mechanism="GSSAPI"), is_local=False)
    assert kerberos["kafka.sasl.kerberos.service.name"] == "kafka"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"ca_file": "/none"}, "ca_file: No such file or directory"),
        ({"password_file": "/none"}, "password_file: No such file or directory"),
    ],
)
def test_a_file_that_is_not_there_is_a_mistake_of_the_configuration(
    password: Path, certificate: Path, change: dict[str, str], cause: str
) -> None:
    security = Security(
        protocol="SASL_SSL",
        mechanism="PLAIN",
        username="u",
        password_file=str(password),
        ca_file=str(certificate),
    )
    check_files(security)
    with pytest.raises(LaggardError) as caught:
        check_files(replace(security, **change))  # type: ignore[arg-type]
    assert caught.value.cause == f"cluster.security.{cause}"
    assert caught.value.exit_code == CONFIGURATION


def test_a_key_that_does_not_belong_to_the_certificate_is_refused(
    certificate: Path, tmp_path: Path
) -> None:
    other = write_key(tmp_path / "other.pem", pem(new_key()))
    with pytest.raises(LaggardError) as caught:
        check_files(Security(protocol="SSL", cert_file=str(certificate), key_file=str(other)))
    assert caught.value.exit_code == CONFIGURATION
    assert "KEY" in caught.value.cause.upper()


@pytest.mark.parametrize(
    ("error", "what", "cause"),
    [
        (
            KafkaConnectionError(
                "Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
                "certificate has expired (_ssl.c:1006)"
            ),
            "a broker's certificate is refused",
            "certificate verify failed: certificate has expired",
        ),
        (
            KafkaConnectionError(
                "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required"
            ),
            "a broker refuses the TLS connection",
            "tlsv13 alert certificate required",
        ),
        (
            SaslAuthenticationFailedError("Authentication failed: Invalid username or password"),
            "a broker refuses the login",
            "Invalid username or password",
        ),
    ],
)
def test_a_refusal_has_a_class_of_its_own(error: Exception, what: str, cause: str) -> None:
    found = refusal(error)
    assert found is not None
    assert (found.what, found.exit_code) == (what, DENIED)
    assert cause in found.cause
    assert "_ssl.c" not in found.cause


@pytest.mark.parametrize(
    "text", ["111 ECONNREFUSED", "Handshake failed: [SSL: UNEXPECTED_EOF_WHILE_READING] EOF"]
)
def test_a_broker_that_is_away_is_no_refusal(text: str) -> None:
    assert refusal(KafkaConnectionError(text)) is None


def test_what_an_attacker_could_use_is_named_and_nothing_else() -> None:
    oauth = OAuth("http://id.example/token")
    names = {
        "verify_hostname": Security(protocol="SSL", verify_hostname=False),
        "SASL_PLAINTEXT": Security(protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-512"),
        "token_url": Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", oauth=oauth),
    }
    for name, security in names.items():
        (sentence,) = warnings(security)
        assert name in sentence
    for mechanism, what in {
        "PLAIN": "password or token",
        "SCRAM-SHA-256": "login",
        "GSSAPI": "login",
    }.items():
        (sentence,) = warnings(Security(protocol="SASL_PLAINTEXT", mechanism=mechanism))
        assert f"the {what} and all data" in sentence
    for quiet in (
        Security(),
        Security(protocol="SSL"),
        Security(protocol="SASL_SSL", mechanism="PLAIN"),
    ):
        assert list(warnings(quiet)) == []


def test_the_principal_is_written_as_kafka_writes_it(certificate: Path) -> None:
    assert principal_of(Security()) == "User:ANONYMOUS"
    assert (
        principal_of(Security(protocol="SASL_SSL", mechanism="PLAIN", username="reader"))
        == "User:reader"
    )
    assert (
        principal_of(Security(protocol="SSL", cert_file=str(certificate)))
        == "User:CN=reader,O=Lag\\, Inc."
    )
    assert escaped(' a+b"c\\d<e>f;g ') == '\\ a\\+b\\"c\\\\d\\<e\\>f\\;g\\ '
    assert escaped("#a") == "\\#a"


def test_poll_options_with_a_login_cross_into_spark() -> None:
    security = Security(
        protocol="SASL_SSL", mechanism="OAUTHBEARER", oauth=OAuth(client_id="c"), min_tls="1.3"
    )
    options = PollOptions(("a:1",), security=security)
    assert options_from_json(options_to_json(options)) == options


def test_sparks_consumers_are_kept_until_a_secret_is_exchanged(password: Path) -> None:
    security = Security(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="u", password_file=str(password)
    )
    source = OffsetsSource(("a:1",), "t", 10, security)
    parts = OFFSETS_PARTITIONS.empty_table()
    group = source.group(source.bootstrap_servers, parts)
    before = version_of(security)
    assert source.group(source.bootstrap_servers, parts) == group
    password.write_text("another one")
    assert version_of(security) != before
    assert source.group(source.bootstrap_servers, parts) != group
