"""Processes below the job: Spark's JVM and its Python workers, which outlive a signal.

They end when we end them.

A terminal, a supervisor and a container signal every process of a group. If the JVM went first,
the batch at hand would break in the middle; so all below us ignore SIGTERM as they ignore Ctrl-C
already.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from laggard.errors import TEMPORARY, LaggardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_END_SECONDS = 5.0  # for the JVM once nothing runs in it any more
_GONE_SECONDS = 2.0  # for Python workers, which end at the end of their input


class Session:
    """A Spark session that is started when it is first wanted."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._spark: SparkSession | None = None

    def get(self) -> SparkSession:
        """Give the session; the first call starts it."""
        if self._spark is None:
            self._spark = self._start()
            # nothing public has it
            server: Any = self._spark.sparkContext._accumulatorServer  # noqa: SLF001
            # it prints a traceback when the JVM has ended, an error that is reported already
            server.handle_error = lambda *_: None
            Thread(target=_warm_up, args=(self._spark,), name="warm-up", daemon=True).start()
        return self._spark

    def end(self) -> None:
        """End the session and every process that it started."""
        if self._spark is not None:
            silence(self._spark)
            process = jvm_of(self._spark)
            below = descendants(process.pid) if process else []
            with suppress(Exception):  # the JVM may be gone already
                self._spark.stop()
            if process is not None:
                end_jvm(process, below)


def silence(spark: SparkSession) -> None:
    """End the JVM's log: what it says from now on is about being stopped."""
    with suppress(Exception):  # it may be gone already
        spark.sparkContext.setLogLevel("OFF")


@contextmanager
def session_of(start: Callable[[], SparkSession]) -> Iterator[Session]:
    """Yield a session that ends with the block."""
    session = Session(start)
    try:
        yield session
    finally:
        session.end()


@contextmanager
def signals_ignored_below() -> Iterator[None]:
    """Start JVMs that ignore SIGTERM and Ctrl-C, and whose own children never get them.

    A JVM leaves alone what it inherits as ignored. The Python workers set handlers of their own;
    they inherit both signals blocked, through the JVM's threads.
    """
    from pyspark import java_gateway

    module: Any = java_gateway  # its `Popen` is not among its public names

    def popen(command: Any, **options: Any) -> subprocess.Popen[bytes]:
        prepare = options.pop("preexec_fn", None)

        def ignore() -> None:
            if prepare is not None:
                prepare()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})

        # as pyspark does for SIGINT
        return subprocess.Popen(command, preexec_fn=ignore, **options)  # noqa: PLW1509

    before, module.Popen = module.Popen, popen
    try:
        yield
    finally:
        module.Popen = before


def jvm_of(spark: SparkSession) -> subprocess.Popen[bytes] | None:
    """Return the process of the session's JVM; None under spark-submit, which started it."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    process: subprocess.Popen[bytes] | None = gateway.proc
    return process


def jvm_failure(spark: SparkSession, error: BaseException) -> LaggardError | None:
    """Name the failure if the error comes from an ended JVM, which cannot be started again."""
    process = jvm_of(spark)
    if process is None:
        return None
    # a call that was under way gets a bare Py4JError; an error of Java's own is a Py4JJavaError,
    # and the JVM lives
    if isinstance(error, (ConnectionError, Py4JError)) and not isinstance(error, Py4JJavaError):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GONE_SECONDS)
    code = process.poll()
    if code is None:
        return None
    return LaggardError(
        "Spark's JVM ended",
        cause=f"{'signal' if code < 0 else 'exit code'} {abs(code)}; signal 9 often means that "
        "memory ran out",
        fix="start the job again: it goes on where it was; give it more memory if this repeats",
        exit_code=TEMPORARY,
    )


def end_jvm(process: subprocess.Popen[bytes], below: list[int]) -> None:
    """End a JVM in which nothing runs any more, then what it has left behind."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()  # the gateway ends at the end of its input
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
    deadline = time.monotonic() + _GONE_SECONDS
    while any(map(is_alive, below)) and time.monotonic() < deadline:
        time.sleep(0.02)
    kill(below)


def kill_below() -> None:
    """Kill every process below this one."""
    kill(descendants(os.getpid()))


def kill(processes: list[int]) -> None:
    """Kill those of the processes that are there."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """Return all processes below one, from /proc; none on a system without it."""
    below: list[int] = []
    waiting = [process]
    while waiting:
        for tasks in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with suppress(OSError):  # it ended meanwhile
                children = [int(child) for child in tasks.read_text().split()]
                below += children
                waiting += children
    return below


def is_alive(process: int) -> bool:
    """Return True if the process has not ended.

    An ended process may stay in /proc, in a container perhaps for ever.
    """
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _warm_up(spark: SparkSession) -> None:
    """Let the Python workers load modules during query setup; a start is two seconds shorter."""

    def load(batches: Iterator[Any]) -> Iterator[Any]:
        from laggard.stream.tick import advance_stage  # noqa: F401 - the import is what is wanted

        return batches

    with suppress(Exception):  # the query itself says what is wrong
        cores = spark.sparkContext.defaultParallelism
        spark.range(0, cores, 1, cores).mapInArrow(load, "id bigint").collect()
