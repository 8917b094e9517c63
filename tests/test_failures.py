"""Every failure has a class: the same one wherever it was raised, and across the border of a
process.
"""

import errno
import traceback
from typing import Any

import pyarrow as pa
import pytest

from laggard.errors import (
    CONFIGURATION,
    DAMAGED,
    DENIED,
    INTERNAL,
    REFUSED,
    TEMPORARY,
    LaggardError,
)
from laggard.failures import SlowStartError, carried, classify

REFUSAL = LaggardError("no\nlines", cause='a "quoted" ü \\ cause', fix="do it", exit_code=REFUSED)


class PySparkError(Exception):
    """An exception as the driver sees it: text only."""


PySparkError.__module__ = "pyspark.errors.exceptions.captured"


def through_spark(error: Exception) -> LaggardError:
    """Raise in a worker, hand its traceback on as text inside another exception,
    and classify that.
    """
    try:
        with carried(), carried():
            raise error
    except Exception as left:  # noqa: BLE001 - whatever left the worker
        text = "".join(traceback.format_exception(left))
    what = (
        "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent "
        "failure: "
    )
    return classify(
        PySparkError(
            f"{what}{text}\n\tat org.apache.spark.api.python.BasePythonRunner\nDriver stacktrace:"
        )
    )


def test_a_failure_with_a_class_arrives_as_it_left() -> None:
    found = through_spark(REFUSAL)
    assert (found.what, found.cause, found.fix, found.exit_code) == (
        "no\nlines",
        REFUSAL.cause,
        "do it",
        REFUSED,
    )
    assert "in through_spark" in str(found.__cause__)


def test_a_failure_of_another_kind_arrives_as_internal_with_its_traceback() -> None:
    found = through_spark(pa.ArrowInvalid("Integer value 9223372036854775807 not in range"))
    assert found.exit_code == INTERNAL
    assert "ArrowInvalid: Integer value" in found.what
    assert found.cause
    assert found.fix
    assert "raise error" in str(found.__cause__)


def test_a_failure_that_was_cut_off_on_its_way_is_still_one() -> None:
    found = classify(PySparkError('laggard failed: {"what": "cut'))
    assert found.exit_code == INTERNAL


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), TEMPORARY),
        (
            OSError(
                "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"
            ),
            TEMPORARY,
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/tables"), CONFIGURATION),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/tables/x"), CONFIGURATION),
        (FileNotFoundError(errno.ENOENT, "No such file", "/tables/part-0.parquet"), DAMAGED),
        (ConnectionResetError(errno.ECONNRESET, "reset"), TEMPORARY),
        (MemoryError(), TEMPORARY),
        (TypeError("int + None"), INTERNAL),
        (ValueError("Permission denied"), INTERNAL),  # only what programs say is read
    ],
)
def test_failures_of_the_machine_have_a_class_on_either_side(
    error: Exception, exit_code: int
) -> None:
    assert (classify(error).exit_code, through_spark(error).exit_code) == (exit_code, exit_code)
    assert classify(error).fix


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        (
            (
                "[STREAM_FAILED] terminated with exception: Python worker failed to connect back. "
                "SQLSTATE: XXKST"
            ),
            TEMPORARY,
        ),
        (
            (
                "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to "
                "connect back"
            ),
            TEMPORARY,
        ),
        (
            (
                "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): "
                "java.io.EOFException"
            ),
            TEMPORARY,
        ),
        ("failed\n  Caused by: java.io.IOException: No space left on device", TEMPORARY),
        (
            (
                "Caused by: org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms "
                "expired"
            ),
            TEMPORARY,
        ),
        (
            (
                "Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: "
                "Authentication failed"
            ),
            DENIED,
        ),
        (
            (
                "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to "
                "access topics: [x]"
            ),
            DENIED,
        ),
        (
            "java.io.FileNotFoundException: /checkpoint/offsets/.3.tmp (Permission denied)",
            CONFIGURATION,
        ),
        (
            "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/checkpoint/offsets/3",
            DAMAGED,
        ),
        ("java.lang.OutOfMemoryError: Java heap space", TEMPORARY),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            TEMPORARY,
        ),
        (
            (
                "[CANNOT_OPEN_SOCKET] Can not open socket: tried to connect, but an error "
                "occurred: timed out"
            ),
            TEMPORARY,
        ),
        (
            (
                "KafkaIllegalStateException: the timestamp overflows when converting to Spark's "
                "microsecond precision"
            ),
            DAMAGED,
        ),
        ("java.lang.NullPointerException", INTERNAL),
        (
            "KafkaIllegalStateException: Partitions specified for Kafka start offsets don't match",
            INTERNAL,
        ),
    ],
)
def test_failures_of_spark_have_a_class_by_their_text(text: str, exit_code: int) -> None:
    assert classify(PySparkError(text)).exit_code == exit_code


def test_the_text_may_stand_in_a_cause_or_in_the_jvms_stack_only() -> None:
    outer: Any = PySparkError("[STREAM_FAILED] Query [id = 1] terminated with exception: null")
    outer.__cause__ = PySparkError(
        "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed"
    )
    assert classify(outer).exit_code == DENIED
    stack: Any = PySparkError("terminated with exception: null")
    stack._stackTrace = (
        "at x\nCaused by: java.net.SocketTimeoutException: Python worker failed to connect back\n"
    )
    assert isinstance(classify(stack), SlowStartError)
