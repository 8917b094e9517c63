"""Settings of object stores, and their failures by class; the texts are those of the libraries
against real servers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from laggard import storage
from laggard.config import load_config
from laggard.errors import CONFIGURATION, DENIED, TEMPORARY, LaggardError
from laggard.failures import classify
from laggard.files import locate
from laggard.storage import Settings, delta_options, of_store, without_answer
from laggard.tables.readers import naming_errors

PLACE = "s3://bucket/tables"
XML = (
    '<?xml version="1.0" '
    'encoding="UTF-8"?>\n<Error><Code>{}</Code><Token-0>canary</Token-0></Error>'
)


def delta(status: str, code: str) -> str:
    return (
        f"Kernel error -> Generic S3 error\n ↳ Error performing GET http://h/b in 1ms - {status}\n"
        + XML.format(code, code)
    )


MISREAD = (
    "abfs://c/x",
    "abfss://account/x",
    "s3://",
    "s3:///",
    "s3://b/a#b",
    "gs://b/x?y",
    "s3://b/%41",
)
TEXTS = [
    (delta("404 Not Found", "NoSuchBucket"), CONFIGURATION, "bucket does not exist"),
    (("When initiating: AWS Error NO_SUCH_BUCKET during "
        "CreateMultipartUpload"), CONFIGURATION, "bucket"),
    (delta("400 Bad Request", "AuthorizationHeaderMalformed"), CONFIGURATION, "region"),
    (delta("403 Forbidden", "SignatureDoesNotMatch"), DENIED, "denied"),
    (delta("404 Not Found", "XAdminUserNotFound"), DENIED, "denied"),
    (delta("400 Bad Request", "ExpiredToken"), DENIED, "denied"),
    (("When reading: AWS Error ACCESS_DENIED during HeadObject operation: No "
        "body."), DENIED, "denied"),
    (("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in "
        "1s"), DENIED, "no credentials"),
    (delta("501 Not Implemented", "NotImplemented"), CONFIGURATION, "refused a request"),
    (delta("503 Slow Down", "SlowDown"), TEMPORARY, "does not answer"),
    (("Generic S3 error\n ↳ error sending request\n ↳ Connection refused (os error "
        "111)"), TEMPORARY, "does not answer"),
    (delta("400 Bad Request", "RequestTimeout"), TEMPORARY, "does not answer"),
    ("google::cloud::Status(UNAVAILABLE: Retry policy exhausted)", TEMPORARY, "does not answer"),
    ("google::cloud::Status(PERMISSION_DENIED: no)", DENIED, "denied"),
    ("GetProperties() failed. Azure Error: [AuthorizationFailure] 403 Forbidden", DENIED, "denied"),
    (("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: "
        "7"), TEMPORARY, "does not answer"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _settings_of_before() -> object:
    before = storage.settings()
    yield
    storage.use(before)


@pytest.mark.parametrize(("text", "exit_code", "what"), TEXTS)
def test_failures_of_a_store_have_a_class_wherever_they_are_raised(
    text: str, exit_code: int, what: str
) -> None:
    found = classify(OSError(text))
    assert (found.exit_code, what in found.what, bool(found.fix)) == (exit_code, True, True)
    assert "canary" not in str(found)
    with pytest.raises(LaggardError) as raised, naming_errors(PLACE):
        raise OSError(text)
    assert (raised.value.exit_code, raised.value.what) == (exit_code, found.what)


def test_an_object_that_is_missing_and_a_local_failure_are_none_of_a_store() -> None:
    assert of_store(OSError(delta("404 Not Found", "NoSuchKey"))) is None
    assert of_store(OSError(28, "No space left on device")) is None
    assert (
        of_store(
            OSError("Kernel error -> Generic LocalFileSystem error Permission denied (os error 13)")
        )
        is None
    )
    assert of_store(ValueError("403 Forbidden")) is None


def test_of_an_answer_only_its_code_is_shown() -> None:
    assert without_answer(delta("403 Forbidden", "InvalidToken")).endswith(
        "403 Forbidden InvalidToken"
    )
    assert without_answer("x <html>\n<body>secret</body>") == "x"


def test_keys_are_read_again_when_their_file_was_replaced(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    storage.use(Settings("http://minio:9000", "eu-west-1", str(file)))
    for name in ("one", "two"):
        file.write_text(
            f"[default]\naws_access_key_id = {name}\naws_secret_access_key = s3cr%t\n[other]\nx "
            "= 1\n"
        )
        file.chmod(0o600)
        options = delta_options(PLACE)
        assert options is not None
        assert (options["aws_access_key_id"], options["aws_secret_access_key"]) == (name, "s3cr%t")
        assert (options["aws_region"], options["aws_allow_http"]) == ("eu-west-1", "true")
    assert delta_options("/local") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "canary",
        "[default]\ncanary",
        "[default]\naws_access_key_id = canary\n",
        "[x]\ncanary = 1",
    ],
)
def test_a_file_without_keys_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    file.chmod(0o600)
    storage.use(Settings(credentials_file=str(file)))
    with pytest.raises(LaggardError) as raised:
        delta_options(PLACE)
    assert raised.value.exit_code == DENIED, "of a running job: it tries again"
    assert str(file) in str(raised.value)
    assert "canary" not in str(raised.value)
    with pytest.raises(LaggardError) as at_start:
        storage.check_keys()
    assert at_start.value.exit_code == CONFIGURATION


@pytest.mark.parametrize(
    "url", ["S3://Bucket/a b", "s3a://b/x/", "gs://b/x", "abfss://c@account/x"]
)
def test_the_place_of_a_bucket_keeps_its_path_and_has_a_small_scheme(url: str) -> None:
    scheme, _, rest = url.partition(":")
    assert locate(url) == f"{scheme.lower()}:{rest.rstrip('/')}"


@pytest.mark.parametrize(
    "url",
    ["hdfs://host:8020/x", "http://host/x", "dbfs:/x", "wasb://c@account/x", "az://c/x", *MISREAD],
)
def test_a_place_that_cannot_refuse_a_second_writer_or_is_read_differently_is_refused(
    url: str,
) -> None:
    with pytest.raises(LaggardError) as raised:
        locate(url)
    assert raised.value.exit_code == CONFIGURATION


@pytest.mark.parametrize(
    "url", ["minio:9000", "ftp://x", "http://", "http://[::1", "http://h:port", "http://user:pw@h"]
)
def test_an_endpoint_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(LaggardError, match=r"storage\.endpoint"):
        load_config(None, [f"storage.endpoint={url!r}".replace("'", '"')], {})


def test_keys_for_s3_are_refused_with_another_store() -> None:
    with pytest.raises(LaggardError, match=r"storage\.region.*S3 only"):
        load_config(None, ['job.tables="gs://b/x"', 'storage.region="eu-west-1"'], {})
    assert (
        load_config(
            None, ['job.tables="gs://b/x"', "storage.lease_seconds=10"], {}
        ).storage.lease_seconds
        == 10
    )


@pytest.mark.parametrize("place", ["s3://b/checkpoint", "S3://b", "s3://", "gs://b/x"])
def test_a_checkpoint_in_a_bucket_is_refused_before_anything_starts(place: str) -> None:
    with pytest.raises(LaggardError, match=r"job\.checkpoint.*a folder of this machine"):
        load_config(None, [f'job.checkpoint="{place}"'], {})
