"""Files downloaded side by side; each gets its name once its SHA-256 sum is right."""

from __future__ import annotations

import errno
import hashlib
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import SplitResult, urlsplit
from urllib.request import urlopen

from laggard.errors import CONFIGURATION, DAMAGED, TEMPORARY, UNREACHABLE, LaggardError

CONNECTIONS = 8  # most files are small: their time goes into waiting for the answer
ATTEMPTS = 3
RETRY_SECONDS = 2.0
SILENCE_SECONDS = 30.0
LIMIT_SECONDS = 1800.0  # a slow line may need minutes, a dead one must still end
PROGRESS_SECONDS = 10.0
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to download: from where, to where, and its SHA-256 sum in hex."""

    url: str
    target: Path
    digest: str


class WrongSumError(Exception):
    """The answer has another sum than the file that is wanted."""


def check_base(base: str, setting: str) -> str:
    """Check the base address of files and return it without a final slash.

    `setting` names the source of the address.
    """
    problem = _problem(base)
    if problem is None:
        return base.rstrip("/")
    raise LaggardError(
        f"{setting} is no address to download from",
        cause=f"{base.rpartition('@')[2]!r}: {problem}",
        fix=f"export {setting}=https://HOST[:PORT]/PATH, or file:///FOLDER, with a Maven "
        "repository's layout",
        exit_code=CONFIGURATION,
    )


def _problem(base: str) -> str | None:
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme == "file":
        if not parts.netloc and parts.path.startswith("/"):
            return None
        return "a file: address has three slashes"
    if parts.scheme not in ("http", "https"):
        return "it begins neither with https:// or http:// nor with file:///"
    return _problem_of_http(base, parts, port)


def _problem_of_http(base: str, parts: SplitResult, port: int | None) -> str | None:
    if not parts.hostname or port == 0 or base != base.strip() or " " in base:
        return "it names no host"
    if parts.username is not None:
        return "a user or a password in it would be shown by every error"
    return "it has a query or a fragment" if "?" in base or "#" in base else None


def download(files: Sequence[Wanted], limit_seconds: float = LIMIT_SECONDS) -> None:
    """Download every file, with progress on stderr; the first failure raises its error."""
    fetching = _Fetching(files, time.monotonic() + limit_seconds)
    # daemons: after Ctrl-C nobody waits for an answer that is under way
    count = min(CONNECTIONS, len(files))
    threads = [threading.Thread(target=fetching.work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        _watch(threads, fetching)
    finally:
        fetching.is_over.set()
    if fetching.failure is not None:
        raise fetching.failure


def _watch(threads: Sequence[threading.Thread], fetching: _Fetching) -> None:
    start = shown = time.monotonic()
    is_terminal = sys.stderr.isatty()
    while fetching.failure is None and (
        alive := [thread for thread in threads if thread.is_alive()]
    ):
        alive[0].join(0.2)
        if is_terminal or time.monotonic() - shown >= PROGRESS_SECONDS:
            shown = time.monotonic()
            end = "\r" if is_terminal else "\n"
            print(fetching.progress(shown - start), end=end, file=sys.stderr, flush=True)
    if is_terminal:
        print(file=sys.stderr)


class _Fetching:
    """The files that are still to come, shared by the threads that fetch them."""

    def __init__(self, files: Sequence[Wanted], deadline: float) -> None:
        self._waiting = deque(files)
        self._deadline = deadline
        self._count = len(files)
        self._done = 0
        self._bytes = 0
        self._tls = ssl.create_default_context()  # once: reading all authorities takes 30 ms
        self._lock = threading.Lock()
        self.is_over = threading.Event()
        self.failure: LaggardError | None = None

    def progress(self, seconds: float) -> str:
        return (
            f"laggard: fetching jars: {self._done} of {self._count}, {self._bytes / 1e6:.1f} MB, "
            f"{seconds:.0f} s"
        )

    def work(self) -> None:
        while not self.is_over.is_set():
            try:
                wanted = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._fetch(wanted)
            except Exception as error:  # noqa: BLE001 - shown by the thread that waits
                self.failure = self.failure or _failure(wanted, error)
                self.is_over.set()

    def _fetch(self, wanted: Wanted) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._fetch_once(wanted)
            except (OSError, HTTPException, WrongSumError) as error:
                if (
                    attempt == ATTEMPTS
                    or _is_final(error)
                    or self.is_over.wait(RETRY_SECONDS * attempt)
                ):
                    raise
            else:
                with self._lock:
                    self._done += 1
                return

    def _fetch_once(self, wanted: Wanted) -> None:
        part = wanted.target.with_name(f"{wanted.target.name}.part")
        checksum = hashlib.sha256()
        # its scheme was checked
        answer = urlopen(wanted.url, timeout=SILENCE_SECONDS, context=self._tls)  # noqa: S310
        with answer, part.open("wb") as stream:
            # read() would wait for all of it, however slowly it comes
            while chunk := answer.read1(_CHUNK_BYTES):
                if self.is_over.is_set() or time.monotonic() > self._deadline:
                    raise TimeoutError("the time for all files is over")
                stream.write(chunk)
                checksum.update(chunk)
                with self._lock:
                    self._bytes += len(chunk)
        if checksum.hexdigest() != wanted.digest:
            raise WrongSumError(f"it has the sum {checksum.hexdigest()}, expected {wanted.digest}")
        part.replace(wanted.target)


def _is_final(error: Exception) -> bool:
    """Return True if another try would end the same way."""
    if isinstance(error, HTTPError):
        return error.code < 500 and error.code not in (408, 429)
    return isinstance(error, OSError) and error.errno in (
        errno.ENOSPC,
        errno.EACCES,
        errno.EROFS,
        errno.ENOENT,
    )


def _failure(wanted: Wanted, error: Exception) -> LaggardError:
    cause = f"{wanted.url}: {str(error) or type(error).__name__}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        fix = f"df -h {wanted.target.parent}"
        return LaggardError(
            "the disk is full, the jars were not fetched", cause=cause, fix=fix, exit_code=TEMPORARY
        )
    if isinstance(error, WrongSumError):
        fix = "ask who runs the mirror or proxy in between; never use this file"
        return LaggardError(
            "a downloaded jar differs from the list", cause=cause, fix=fix, exit_code=DAMAGED
        )
    return LaggardError(
        "the jars could not be downloaded",
        cause=cause,
        fix="run it again, what was downloaded is kept: python -m laggard.jars\n"
        "  behind a proxy first: export https_proxy=http://HOST:PORT\n"
        "  from a mirror of your own: export LAGGARD_JARS_MIRROR=https://HOST/PATH",
        exit_code=UNREACHABLE,
    )
