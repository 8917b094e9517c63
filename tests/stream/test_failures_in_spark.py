"""Failures keep their class through a real Spark: out of a source's `latestOffset`, a task, and a
worker that dies.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from laggard.errors import CONFIGURATION, INTERNAL, REFUSED, TEMPORARY, LaggardError
from laggard.failures import carried, classify
from laggard.stream.job.jvm import descendants, end_jvm, is_alive, jvm_of
from laggard.stream.job.session import start_session
from laggard.stream.tick.advance_stage import carrying

pytestmark = [pytest.mark.spark, pytest.mark.full]
REFUSAL = LaggardError("this is refused", cause='because of "ü"', fix="do that", exit_code=REFUSED)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_session("local[2]", {})
    yield session
    process = jvm_of(session)
    assert process is not None
    below = descendants(process.pid)
    session.stop()
    end_jvm(process, below)
    SparkContext._gateway = SparkContext._jvm = None
    assert not list(filter(is_alive, below))


def failure_of(run: Callable[[], Any]) -> LaggardError:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - its class is what is asked
        run()
    return classify(raised.value)


def test_a_query_that_was_killed_while_its_first_batch_was_planned_starts_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / ".0.3f6c.tmp").write_text("v1\n")
    writer = (
        spark.readStream.format("rate").load().writeStream.foreachBatch(lambda frame, number: None)
    )
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(once=True).start()
    query.awaitTermination()
    assert (tmp_path / "commits" / "0").exists()


@pytest.mark.parametrize(
    ("error", "exit_code", "text"),
    [
        (REFUSAL, REFUSED, "this is refused"),
        (
            pa.ArrowInvalid("Integer value 9223372036854775807 not in range"),
            INTERNAL,
            "ArrowInvalid: Integer value",
        ),
        (
            PermissionError(13, "Permission denied", "/tables"),
            CONFIGURATION,
            "cannot be read or written",
        ),
    ],
)
def test_out_of_a_task(spark: SparkSession, error: Exception, exit_code: int, text: str) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            raise error
        yield from ()

    failure = failure_of(spark.range(0, 1, 1, 1).mapInArrow(carrying(fail), "id bigint").collect)
    assert (failure.exit_code, text in failure.what) == (exit_code, True)
    assert "raise error" in str(failure.__cause__)


def test_out_of_a_worker_that_is_killed(spark: SparkSession) -> None:
    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), signal.SIGKILL)
        return batches

    failure = failure_of(spark.range(0, 1, 1, 1).mapInArrow(die, "id bigint").collect)
    assert (failure.exit_code, failure.what) == (TEMPORARY, "a Python worker was killed")


@pytest.mark.parametrize("error", [REFUSAL, TypeError("int + None")])
def test_out_of_the_source(spark: SparkSession, tmp_path: Path, error: Exception) -> None:
    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's interface
            return {"poll_id": 0}

        def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's interface
            with carried():  # as a decorator it could not be pickled with this class
                raise error

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield (partition.value,)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "failing"

        def schema(self) -> str:
            return "id bigint"

        # Spark's interface
        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            return Reader()

    spark.dataSource.register(Source)
    writer = spark.readStream.format("failing").load().writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    failure = failure_of(query.awaitTermination)
    assert failure.exit_code == (REFUSED if error is REFUSAL else INTERNAL)
    assert "raise error" in str(failure.__cause__)
    if error is REFUSAL:
        assert str(failure) == str(REFUSAL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_below_the_job_nobody_hears_a_signal(spark: SparkSession, number: signal.Signals) -> None:
    process = jvm_of(spark)
    assert process is not None
    spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id bigint").collect()
    below = descendants(process.pid)
    assert below
    for each in (process.pid, *below):
        os.kill(each, number)
    time.sleep(1)  # a process that heard it would be gone
    assert process.poll() is None
    assert spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id bigint").count() == 2
    assert set(below) <= set(descendants(process.pid))
