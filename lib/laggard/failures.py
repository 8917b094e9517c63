"""Give every failure, wherever raised, a class: exit code, what failed, cause and remedy.

What fails in a Python worker reaches the driver as text inside a Spark exception. There `carried`
puts the class into that text as one line of JSON, and `classify` finds it again. Failures of the
JVM have known texts.
"""

from __future__ import annotations

import errno
import json
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from laggard.errors import (
    CONFIGURATION,
    DAMAGED,
    DENIED,
    INTERNAL,
    TEMPORARY,
    LaggardError,
    first_line,
)
from laggard.storage import of_store

_MARK = "laggard failed: "
_MAX_TRACEBACK = 8000  # characters


class SlowStartError(LaggardError):
    """Timeout of Spark's wait for a Python worker.

    Spark grants 10 s (PythonWorkerFactory), and no setting changes that.
    """

    def __init__(self) -> None:
        super().__init__(
            "a Python worker did not start within the 10 s that Spark gives it",
            cause="the machine is too busy",
            fix="none needed: it is tried again; give the job more CPU if this goes on",
            exit_code=TEMPORARY,
        )


class CarriedError(Exception):
    """A failure on its way through Spark; its text is the mark and one line of JSON."""


# not raised: it stands in the log as the cause of a failure
class WorkerTraceback(Exception):  # noqa: N818
    """The traceback of another process."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


@contextmanager
def carried() -> Iterator[None]:
    """Let a failure cross from a Python worker to the driver with its class; also a decorator."""
    try:
        yield
    except CarriedError:
        raise
    except Exception as error:  # noqa: BLE001 - every failure has a class
        _carry(error)


def _carry(error: Exception) -> NoReturn:
    failure = classify(error)
    carried = {
        "what": failure.what,
        "cause": failure.cause,
        "fix": failure.fix,
        "exit_code": failure.exit_code,
        "traceback": "".join(traceback.format_exception(error))[-_MAX_TRACEBACK:],
    }
    raise CarriedError(_MARK + json.dumps(carried)) from None


def classify(error: BaseException) -> LaggardError:
    """Return the error as a LaggardError of its class; `__cause__` holds the part to log."""
    if isinstance(error, LaggardError):
        return error
    text = _whole_text(error)
    failure = _carried_in(text)
    if failure is not None:
        return failure
    failure = _known(error, text) or LaggardError(
        f"internal error: {type(error).__name__}: {first_line(error)}",
        cause=_place(error),
        fix="report this as a bug, with the traceback in the log",
        exit_code=INTERNAL,
    )
    failure.__cause__ = error
    return failure


def _carried_in(text: str) -> LaggardError | None:
    begin = text.rfind(_MARK)
    if begin < 0:
        return None
    try:
        carried, _ = json.JSONDecoder().raw_decode(text, begin + len(_MARK))
        failure = LaggardError(
            carried["what"],
            cause=carried["cause"],
            fix=carried["fix"],
            exit_code=carried["exit_code"],
        )
        failure.__cause__ = WorkerTraceback(carried["traceback"])
    except (ValueError, TypeError, KeyError):  # cut off on its way
        return None
    return failure


class _Known(NamedTuple):
    """A failure that is known by a pattern in its text; the line with the match is the cause."""

    pattern: str
    exit_code: int
    what: str
    fix: str


_DISK_FULL = _Known(
    r"No space left on device|Disk quota exceeded|os error (28|122)\b",
    TEMPORARY,
    "the disk is full",
    "make room where job.tables, job.checkpoint and spark.local.dir lie",
)
_DENIED_FILE = _Known(
    r"Permission denied|Operation not permitted|Read-only file system|Not a directory|os error (1"
    r"|13|20|30)\b"
    r"|AccessControlException|AccessDeniedException|NotDirectoryException"
    r"|ReadOnlyFileSystemException|Mkdirs failed",
    CONFIGURATION,
    "a file or folder cannot be read or written",
    "give this user the right to read and write there, or set job.tables and job.checkpoint to "
    "other folders",
)
_SLOW_START = (
    r"Python worker failed to connect back|Timed out while waiting for the Python|Python daemon "
    r"failed to launch"
)
# the first that matches; exceptions of Spark, py4j and delta-rs only, as their texts are those of
# programs
_KNOWN = (
    _DISK_FULL,
    _DENIED_FILE,
    _Known(
        r"(Sasl|Ssl)?AuthenticationException|\w*AuthorizationException|Not authorized to access",
        DENIED,
        "a broker denied the job's principal",
        "check [cluster] security settings, and the ACLs with: laggard doctor",
    ),
    _Known(
        r"ChecksumException|Incomplete log file|Log file was malformed|batch \d+ doesn't exist"
        r"|MalformedLogFile",
        DAMAGED,
        "the checkpoint is damaged",
        "laggard doctor --repair",
    ),
    _Known(
        r"overflows when converting to Spark's microsecond",
        DAMAGED,
        "the offsets topic holds a record whose timestamp Spark's Kafka source cannot read",
        "only a raw producer can write it: write its key again and let compaction remove the old "
        "record",
    ),
    _Known(
        r"you must specify all TopicPartitions|Partitions specified for Kafka start offsets "
        r"don't match",
        INTERNAL,
        "source_resolved_wrong_partitions: Spark does not see every partition of the offsets topic",
        "remove spark.sql.streaming.kafka.useDeprecatedOffsetFetching from your Spark settings; "
        "run: laggard doctor",
    ),
    _Known(
        r"OutOfMemoryError|Java heap space|GC overhead limit",
        TEMPORARY,
        "Spark's JVM ran out of memory",
        'give it more: [job.spark] "spark.driver.memory" = "4g"',
    ),
    _Known(
        r"JAVA_GATEWAY_EXITED",
        TEMPORARY,
        "Spark's JVM did not start",
        "its own words are above; laggard doctor checks Java and memory",
    ),
    _Known(
        r"CANNOT_OPEN_SOCKET",
        TEMPORARY,
        "a Python process and Spark's JVM did not find each other in time",
        "none needed: it is tried again; give the job more CPU if this goes on",
    ),
    _Known(
        r"Python worker exited unexpectedly|Python worker process terminated",
        TEMPORARY,
        "a Python worker was killed",
        "none needed: it is started again; give the machine more memory if this goes on",
    ),
    _Known(
        r"org\.apache\.kafka\.\S*Exception|java\.net\.\w+Exception|java\.io\.(IO|EOF"
        r"|InterruptedIO)Exception"
        r"|java\.util\.concurrent\.TimeoutException|java\.nio\.channels\.\w+Exception"
        r"|CommitFailedError",
        TEMPORARY,
        "Spark cannot reach a broker or a file",
        "none needed if it passes; otherwise: laggard doctor",
    ),
)
_PROGRAMS = ("pyspark", "py4j", "deltalake", "_internal")
_DENIED_ERRNO = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR)


def _known(error: BaseException, text: str) -> LaggardError | None:
    if isinstance(error, MemoryError):
        return LaggardError(
            "a Python process ran out of memory",
            cause=first_line(error),
            fix="give the machine or the container more memory",
            exit_code=TEMPORARY,
        )
    if (failure := of_store(error)) is not None:
        return failure
    if isinstance(error, OSError):
        return _of_os(error, text)
    if type(error).__module__.partition(".")[0] in _PROGRAMS:
        if re.search(_SLOW_START, text):
            return SlowStartError()
        for known in _KNOWN:
            if match := re.search(known.pattern, text):
                return _made(known, _line_at(text, match.start()))
    return None


def _of_os(error: OSError, text: str) -> LaggardError | None:
    cause = f"{first_line(error)}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or re.search(_DISK_FULL.pattern, text):
        return _made(_DISK_FULL, cause)
    if error.errno in _DENIED_ERRNO or re.search(_DENIED_FILE.pattern, text):
        return _made(_DENIED_FILE, cause)
    if isinstance(error, FileNotFoundError):
        return LaggardError(
            "a file that a table or the checkpoint names is missing",
            cause=cause,
            fix="restore it, or look at what is damaged with: laggard doctor",
            exit_code=DAMAGED,
        )
    return LaggardError(
        "the operating system or a network failed",
        cause=f"{type(error).__name__}: {cause}",
        fix="none needed if it passes; otherwise: laggard doctor",
        exit_code=TEMPORARY,
    )


def _made(known: _Known, cause: str) -> LaggardError:
    return LaggardError(known.what, cause=cause, fix=known.fix, exit_code=known.exit_code)


def _whole_text(error: BaseException) -> str:
    """Return the texts of an exception and its causes, with the JVM's stack.

    Spark's own message lacks the cause.
    """
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < 20:
        parts += [
            str(getattr(cause, "_stackTrace", None) or ""),
            f"{type(cause).__name__}: {cause}",
        ]
        cause = cause.__cause__
    return "\n".join(reversed(parts))


def _line_at(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position) + 1
    line = text[begin : (text + "\n").index("\n", position)].strip()
    return line[:300]


def _place(error: BaseException) -> str:
    """Return the innermost line of our code through which the error passed."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/laggard/" in frame.filename
    ]
    if not frames:
        return "it was raised outside laggard"
    last = frames[-1]
    return f"raised in {last.filename.rpartition('/laggard/')[2]}, line {last.lineno}, {last.name}"
