"""`[cluster.security]` as options of Spark's Kafka source, with references instead of secrets.

Kafka's own DirectoryConfigProvider resolves a reference when a consumer is made. With executors in
this process's own JVM a reference names a file in memory (memfd), which the JVM reads through
/proc and which ends with this process; executors elsewhere read the files of the configuration,
which must be there under the same paths.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from laggard.config.security import PLAIN, SCRAM
from laggard.errors import CONFIGURATION, DENIED, LaggardError
from laggard.secret_files import MAX_BYTES, read_password
from laggard.sources.login import pem
from laggard.sources.login.security import KEY, check_files, files, own_key, read_public, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laggard.config.security import Security

    Refer: TypeAlias = Callable[[str, str, str], str]  # name, path and text of what is referred to

PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
# which providers a client may use at all
PROVIDERS_PROPERTY = "org.apache.kafka.automatic.config.providers"
# where a client may send its secret
URLS_PROPERTY = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_REFERENCE = re.compile(r"\$\{laggard:([^:{}]+):[^:{}]+\}")
_MODULES = "org.apache.kafka.common.security"
_LOGINS = {PLAIN: f"{_MODULES}.plain.PlainLoginModule"} | dict.fromkeys(
    SCRAM, f"{_MODULES}.scram.ScramLoginModule"
)
_OAUTH_LOGIN = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER = f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
_IAM = "software.amazon.msk.auth.iam"  # of the jar aws-msk-iam-auth


def jvm_properties(security: Security) -> dict[str, str]:
    """Return system properties of every JVM that reads from Kafka."""
    properties = {PROVIDERS_PROPERTY: PROVIDER}
    if security.has_tokens:
        properties[URLS_PROPERTY] = security.oauth.token_url
    return properties


def spark_options(security: Security, *, is_local: bool) -> dict[str, str]:
    """Return Spark's Kafka source options, with the files read again.

    `is_local`: executors are in this machine's JVM.
    """
    if not (security.has_tls or security.has_sasl):
        return {}
    refer = _in_memory if is_local else _in_place
    properties = {"security.protocol": security.protocol}
    if security.has_tls:
        properties |= _tls(security, refer)
    if security.has_sasl:
        properties |= _sasl(security, is_local=is_local)
    if folders := {
        reference[1] for value in properties.values() for reference in _REFERENCE.finditer(value)
    }:
        properties["config.providers"] = "laggard"
        properties["config.providers.laggard.class"] = PROVIDER
        properties["config.providers.laggard.param.allowed.paths"] = ",".join(sorted(folders))
    return {f"kafka.{name}": value for name, value in properties.items()}


def check_executors(spark: SparkSession, security: Security) -> None:
    """Raise if a node lacks a file.

    Kafka's client would log in with the text of the reference, and name no file.
    """
    if files(security):
        _check_nodes(spark, security, version_of(security))


@lru_cache(maxsize=1)  # once for each start, and for each exchange of a secret
def _check_nodes(spark: SparkSession, security: Security, _: str) -> None:
    def check_here(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            check_files(security)
        # as a row: a task that fails is tried again, perhaps on a node that has the file
        except LaggardError as error:
            row = {
                "what": error.what,
                "cause": f"{error.cause}, on the node {socket.gethostname()}",
                "fix": error.fix,
            }
            yield pa.RecordBatch.from_pylist([row])

    cores = spark.sparkContext.defaultParallelism
    rows = (
        spark.range(0, cores, 1, cores)
        .mapInArrow(check_here, "what string, cause string, fix string")
        .collect()
    )
    for row in rows:
        # not a mistake of the configuration: while a secret is exchanged a node may lack it
        fix = f"{row.fix}; every node needs the file under this path"
        raise LaggardError(row.what, cause=row.cause, fix=fix, exit_code=DENIED)


def _tls(security: Security, refer: Refer) -> dict[str, str]:
    versions = {"1.2": "TLSv1.2,TLSv1.3", "1.3": "TLSv1.3"}
    properties = {
        "ssl.enabled.protocols": versions[security.min_tls],
        "ssl.endpoint.identification.algorithm": "https" if security.verify_hostname else "",
    }
    if security.ca_file:
        # links stay: they are how files are exchanged
        location = os.path.abspath(security.ca_file)  # noqa: PTH100
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": location}
    if security.cert_file:
        text, password = own_key(security)
        chain = pem.certificates(
            read_public(security.cert_file, f"{KEY}cert_file"), security.cert_file, "cert_file"
        )
        properties["ssl.keystore.type"] = "PEM"
        properties["ssl.keystore.key"] = refer("key_file", security.key_file, text)
        properties["ssl.keystore.certificate.chain"] = refer("cert_file", security.cert_file, chain)
        if password:
            properties["ssl.key.password"] = refer(
                "key_password_file", security.key_password_file, password
            )
    return properties


def _sasl(security: Security, *, is_local: bool) -> dict[str, str]:
    properties = {"sasl.mechanism": security.mechanism}
    if security.has_password:
        secret = read_password(security.password_file, f"{KEY}password_file")
        options = {"username": security.username, "password": secret}
        properties["sasl.jaas.config"] = _jaas(
            _LOGINS[security.mechanism],
            options,
            "password",
            security.password_file,
            is_local=is_local,
        )
    elif security.has_tokens:
        oauth = security.oauth
        secret = read_password(oauth.client_secret_file, f"{KEY}oauth.client_secret_file")
        options = {"clientId": oauth.client_id, "clientSecret": secret}
        if oauth.scope:
            options["scope"] = oauth.scope
        if oauth.ca_file:
            # as above
            location = os.path.abspath(oauth.ca_file)  # noqa: PTH100
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": location}
        properties["sasl.login.callback.handler.class"] = _OAUTH_HANDLER
        properties["sasl.oauthbearer.token.endpoint.url"] = oauth.token_url
        properties["sasl.jaas.config"] = _jaas(
            _OAUTH_LOGIN, options, "clientSecret", oauth.client_secret_file, is_local=is_local
        )
    elif security.mechanism == "AWS_MSK_IAM":
        properties["sasl.jaas.config"] = f"{_IAM}.IAMLoginModule required;"
        properties["sasl.client.callback.handler.class"] = f"{_IAM}.IAMClientCallbackHandler"
    elif security.mechanism == "GSSAPI":
        properties["sasl.kerberos.service.name"] = "kafka"  # kafka-python's default, too
    return properties


def _jaas(
    module: str, options: Mapping[str, str], secret: str, path: str, *, is_local: bool
) -> str:
    """Return a JAAS login with a reference to its secret, or a reference to the whole login."""
    if is_local:
        quoted = " ".join(f'{name}="{_escaped(value)}"' for name, value in options.items())
        return _in_memory("login", path, f"{module} required {quoted};")
    if _escaped(options[secret]) != options[secret]:
        raise _refused(path, "it holds a quote or a backslash, which JAAS would take for its own")
    values = {name: _escaped(value) for name, value in options.items()}
    values[secret] = _in_place(secret, path, options[secret])
    quoted = " ".join(f'{name}="{value}"' for name, value in values.items())
    return f"{module} required {quoted};"


def _escaped(text: str) -> str:
    """Escape a text between double quotes, as Java's StreamTokenizer reads it."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _in_place(_: str, path: str, text: str) -> str:
    """Refer to a file of the configuration, which executors read unchanged."""
    whole = os.path.abspath(path)  # noqa: PTH100 - as above
    if set(whole) & set(":{},"):
        raise _refused(path, "Kafka takes a colon, a comma or a brace in the path for its own")
    with open(whole, "rb") as file:  # noqa: PTH123 - checked when it was read
        is_same = file.read(MAX_BYTES + 1) == text.encode()
    if not is_same and "-----BEGIN" not in text:
        raise _refused(
            path, "it ends with a line break, which executors would take for a part of the secret"
        )
    folder, name = os.path.split(whole)
    return f"${{laggard:{folder}:{name}}}"


@cache
def _memory(name: str) -> int:
    return os.memfd_create(f"laggard-{name}")


def _in_memory(name: str, _: str, text: str) -> str:
    """Write the text to a file in memory and return a reference to it.

    A reader gets the old text or the new one, never a part.
    """
    file = _memory(name)
    fresh = os.memfd_create(f"laggard-{name}")
    os.write(fresh, text.encode())
    os.dup2(fresh, file, inheritable=False)
    os.close(fresh)
    return f"${{laggard:/proc/{os.getpid()}/fd:{file}}}"


def _refused(path: str, cause: str) -> LaggardError:
    fix = (
        "write it with printf %s, of characters that are neither, on each node; see "
        "docs/security.md"
    )
    return LaggardError(
        f"Spark's executors on other machines cannot use the secret file {path}",
        cause=cause,
        fix=fix,
        exit_code=CONFIGURATION,
    )
