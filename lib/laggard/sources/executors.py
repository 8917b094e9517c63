"""Check that executors on other machines can use the files of the login, each of which they read for themselves."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from laggard.errors import DENIED, LaggardError
from laggard.sources.security import check_files, files, version_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laggard.config.security import Security


def check_executors(spark: SparkSession, security: Security) -> None:
    """Raise if a node lacks a file: Kafka's client would log in with the text of the reference, and name no file."""
    if files(security):
        _check(spark, security, version_of(security))


@lru_cache(maxsize=1)  # once for each start, and for each exchange of a secret
def _check(spark: SparkSession, security: Security, _: str) -> None:
    def check_here(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            check_files(security)
        except LaggardError as error:  # as a row: a task that fails is tried again, perhaps on a node that has the file
            row = {"what": error.what, "cause": f"{error.cause}, on the node {socket.gethostname()}", "fix": error.fix}
            yield pa.RecordBatch.from_pylist([row])

    cores = spark.sparkContext.defaultParallelism
    rows = spark.range(0, cores, 1, cores).mapInArrow(check_here, "what string, cause string, fix string").collect()
    for row in rows:
        # not a mistake of the configuration: while a secret is exchanged a node may lack it
        fix = f"{row.fix}; every node needs the file under this path"
        raise LaggardError(row.what, cause=row.cause, fix=fix, exit_code=DENIED)
