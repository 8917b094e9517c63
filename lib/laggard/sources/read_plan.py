"""Plan a read of Kafka with a limit: Spark's Kafka source may wait for a broker for ever.

The wait is in the driver's part of the source.

Before its first task Spark makes a consumer on the driver and calls `poll(long)`, which in
kafka-clients 3.9 waits without limit for the coordinator of the consumer's group
(KafkaOffsetReaderConsumer, KafkaConsumer).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from laggard.errors import TEMPORARY, LaggardError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# planning takes milliseconds; after so many it is asked whether the coordinator answers
ASK_SECONDS = 5.0

Planned = tuple["DataFrame", Future[None]]


class Planner:
    """Planner of frames in a thread of its own.

    The thread is given up when it waits for a broker that does not answer.
    """

    def __init__(self) -> None:
        self._frames: SimpleQueue[Planned | None] | None = None

    def plan(self, frame: DataFrame, is_silent: Callable[[], bool]) -> None:
        """Let Spark ask Kafka all that this frame needs on the driver.

        The frame's actions do not ask again.

        Raises `LaggardError` (75) once `is_silent` says that the coordinator does not answer. The
        thread is left behind then: it runs no job, and ends when the broker is back.
        """
        if self._frames is None:
            self._frames = SimpleQueue()
            Thread(target=_plan_all, args=(self._frames,), name="plan", daemon=True).start()
        done: Future[None] = Future()
        self._frames.put((frame, done))
        try:
            while not wait([done], ASK_SECONDS).done:
                if is_silent():
                    raise LaggardError(
                        "Spark cannot plan a read of the offsets topic",
                        cause="the coordinator of its consumer's group does not answer",
                        fix="none needed: another group is taken; otherwise look at the brokers "
                        "with: laggard doctor",
                        exit_code=TEMPORARY,
                    )
        finally:
            if not done.done():
                self._frames.put(None)
                self._frames = None
        done.result()


def _plan_all(frames: SimpleQueue[Planned | None]) -> None:
    """Plan one frame after the other in one thread.

    Each new thread would be a new connection to the JVM.
    """
    while (asked := frames.get()) is not None:
        frame, done = asked
        try:
            # a thread of the JVM has no session, and without one Spark would take the defaults of
            # its settings
            spark = frame.sparkSession
            jvm: Any = spark._jvm  # noqa: SLF001
            jvm.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001
            # no public call plans and runs nothing
            frame._jdf.queryExecution().toRdd()  # noqa: SLF001
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)
        else:
            done.set_result(None)
