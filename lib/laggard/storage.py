"""Reach tables on an object store: the same settings for delta-rs, Arrow and obstore.

Set once for a process (`use`); Spark's tasks are given those of the driver. Nothing here is a
secret: keys are read from their file whenever a library needs them, so a file that was replaced is
in force from the next commit on.
"""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from laggard.errors import CONFIGURATION, DENIED, TEMPORARY, LaggardError
from laggard.secret_files import read_secret

if TYPE_CHECKING:
    from pyarrow import fs  # the configuration is read before anything is installed

SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss")
S3 = ("s3", "s3a")
_FILE_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_CONNECT_SECONDS, _REQUEST_SECONDS, _RETRY_SECONDS = 5, 30, 10


@dataclass(frozen=True)
class Settings:
    """`[storage]`; what is empty is left to the environment and to the cloud's own chain."""

    endpoint: str = ""
    region: str = ""
    credentials_file: str = ""
    lease_seconds: int = 30


_settings = Settings()


def use(chosen: Settings) -> None:
    """Put settings in force for this process."""
    # the libraries are called from everywhere, and a process has one set
    global _settings  # noqa: PLW0603
    _settings = chosen


def settings() -> Settings:
    """Return the current settings."""
    return _settings


def delta_options(place: str) -> dict[str, str] | None:
    """Return options of delta-rs for a located place; None for a local one."""
    if place.startswith("/"):
        return None
    limits = {
        "connect_timeout": f"{_CONNECT_SECONDS}s",
        "timeout": f"{_REQUEST_SECONDS}s",
        "max_retries": "3",
    }
    limits["retry_timeout"] = f"{_RETRY_SECONDS}s"
    if not _is_s3(place):
        return limits
    options = {
        "conditional_put": "etag",
        "aws_region": _settings.region,
        "aws_endpoint_url": _settings.endpoint,
    }
    options["aws_allow_http"] = "true" if _settings.endpoint.startswith("http:") else ""
    return limits | {name: value for name, value in (options | _keys()).items() if value}


def arrow_system(place: str) -> tuple[fs.FileSystem, str]:
    """Return Arrow's file system for a located place that is not local, and the path on it."""
    from pyarrow.fs import FileSystem

    if not _is_s3(place):
        limit = f"?retry_limit_seconds={_RETRY_SECONDS}" if place.startswith("gs:") else ""
        parsed: tuple[fs.FileSystem, str] = FileSystem.from_uri(place + limit)
        return parsed
    return _arrow_s3(_settings, tuple(_keys().items())), place.partition("://")[2]


@lru_cache(maxsize=2)  # with the keys of before a rotation; making one costs milliseconds
def _arrow_s3(chosen: Settings, keys: tuple[tuple[str, str], ...]) -> fs.S3FileSystem:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    at = urlsplit(chosen.endpoint)
    names = dict(zip(_FILE_KEYS, ("access_key", "secret_key", "session_token"), strict=True))
    given: dict[str, Any] = {names[name]: value for name, value in keys}
    if chosen.endpoint:
        given |= {"endpoint_override": at.netloc + at.path.rstrip("/"), "scheme": at.scheme}
    if chosen.region:
        given["region"] = chosen.region
    retries = AwsStandardS3RetryStrategy(max_attempts=3)
    limits = {"connect_timeout": _CONNECT_SECONDS, "request_timeout": _REQUEST_SECONDS}
    return S3FileSystem(
        **given, **limits, retry_strategy=retries, check_directory_existence_before_creation=False
    )


def open_store(place: str, *, request_seconds: float) -> Any:
    """Return the obstore store of a remote place.

    A request takes at most about `request_seconds`, retries included.
    """
    from obstore import store

    limit = timedelta(seconds=request_seconds)
    client: dict[str, Any] = {"timeout": limit, "connect_timeout": limit}
    given: dict[str, Any] = {}
    if _is_s3(place):
        options = {"region": _settings.region, "endpoint": _settings.endpoint}
        given = {name: value for name, value in (options | _keys()).items() if value}
        if _settings.endpoint:
            client["allow_http"] = _settings.endpoint.startswith("http:")
    retries: Any = {"max_retries": 1, "retry_timeout": limit}
    make: Any = store.from_url  # its overloads know the regions of Amazon only
    return make(place, client_options=client, retry_config=retries, **given)


def _is_s3(place: str) -> bool:
    return place.partition("://")[0] in S3


def _keys() -> dict[str, str]:
    """Return the credentials file's keys in the AWS command line's form; none without a file."""
    path = _settings.credentials_file
    if not path:
        return {}
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        parser.read_string(read_secret(path, "storage.credentials_file"))
        section = parser["default"]
    except (configparser.Error, KeyError):  # its text would show what the file holds
        raise _wrong(
            path, "it has no section [default], or is not of the form name = value"
        ) from None
    missing = [name for name in _FILE_KEYS[:2] if not section.get(name)]
    if missing:
        raise _wrong(path, f"section [default] has no {' and no '.join(missing)}")
    return {name: section[name] for name in _FILE_KEYS if section.get(name)}


def check_keys() -> None:
    """Raise if the file of keys cannot be used: at start that is a mistake of the configuration.

    Later on access is denied, which a running job tries again: a file may be missing while it is
    replaced.
    """
    try:
        _keys()
    except LaggardError as error:
        error.exit_code = CONFIGURATION
        raise


def _wrong(path: str, cause: str) -> LaggardError:
    return LaggardError(
        f"cannot use the access keys in {path}",
        cause=f"storage.credentials_file: {cause}",
        fix="write it as the AWS command line does: [default], aws_access_key_id = …, "
        "aws_secret_access_key = …",
        exit_code=DENIED,
    )


# ---- failures

_IS_OF_STORE = re.compile(
    r"Generic (S3|GCS|MicrosoftAzure|HTTP) error|AWS Error|Error performing [A-Z]+ http"
    r"|<Error><Code>"
    r"|google::cloud::Status|Azure Error"
)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_ANSWER = re.compile(r"<\?xml.*|<(Error|html|!DOCTYPE)\b.*", re.DOTALL | re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m *↳?")  # delta-rs paints the steps to the cause
_KINDS = (
    (
        (
            r"SlowDown|RequestTimeout|OperationAborted|ConditionalRequestConflict|IncompleteBody"
            r"|UNAVAILABLE"
        ),
        (TEMPORARY, "the object store does not answer", "none needed if it passes"),
    ),
    (
        r"NoSuchBucket|NO_SUCH_BUCKET|InvalidBucketName|ContainerNotFound",
        (
            CONFIGURATION,
            "the bucket does not exist",
            "make the bucket, or set job.tables to another one",
        ),
    ),
    (
        (
            r"AuthorizationHeaderMalformed|PermanentRedirect|\b301 Moved|IllegalLocationConstraint"
            r"|BUCKET_REGION"
        ),
        (
            CONFIGURATION,
            "the bucket is in another region",
            "set storage.region to the bucket's region",
        ),
    ),
    (
        r"169\.254\.|[Nn]o credentials|no providers in chain|CredentialsNotLoaded|metadata\.google",
        (
            DENIED,
            "no credentials for the object store were found",
            "set storage.credentials_file, or give the process a role of the cloud",
        ),
    ),
    (
        (
            r"\b40[13] (Forbidden|Unauthorized)|AccessDenied|ACCESS_DENIED|SignatureDoesNotMatch"
            r"|InvalidAccessKeyId"
            r"|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|UserNotFound|ExpiredToken|InvalidToken"
            r"|lacked the necessary"
            r"|PermissionDenied|PERMISSION_DENIED|Unauthenticated|UNAUTHENTICATED"
            r"|UNRECOGNIZED_CLIENT|INVALID_CLIENT_TOKEN"
        ),
        (
            DENIED,
            "the object store denied access",
            (
                "check [storage] and the rights on the bucket: list, read, write and delete below "
                "job.tables"
            ),
        ),
    ),
    (
        r"\b4(00|05|09|11|13|14|15|22) [A-Z]|InvalidArgument|NotImplemented|NOT_IMPLEMENTED",
        (
            CONFIGURATION,
            "the object store refused a request",
            "check [storage]; the store must know conditional writes (docs/storage.md)",
        ),
    ),
)


def of_store(error: BaseException) -> LaggardError | None:
    """Return the class of an object store's failure.

    It is None for other errors, or if an object is missing.
    """
    text = str(error)
    if not (_IS_OF_STORE.search(text) or type(error).__module__.startswith("obstore")):
        return None
    for pattern, (exit_code, what, fix) in _KINDS:
        if re.search(pattern, text):
            return LaggardError(what, cause=without_answer(text), fix=fix, exit_code=exit_code)
    if re.search(r"\b404 Not Found|NoSuchKey|PATH_NOT_FOUND|RESOURCE_NOT_FOUND", text):
        return None
    fix = "none needed if it passes; otherwise check storage.endpoint and the network"
    what = "the object store does not answer"
    return LaggardError(what, cause=without_answer(text), fix=fix, exit_code=TEMPORARY)


def without_answer(text: str) -> str:
    """Return one line of a library's error, with only the code of a server's answer.

    The answer may repeat a token.
    """
    code = _CODE.search(text)
    first = _COLOUR.sub(
        "", _ANSWER.sub(code[1] if code else "", text.partition("Debug source:")[0])
    )
    return " ".join(first.split())[:300].strip(" :")
