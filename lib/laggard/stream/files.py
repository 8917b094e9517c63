"""Text files of the checkpoint, on whatever file system Spark uses for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files:
    """Hadoop's FileSystem: local disks, HDFS and object stores alike."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public door to Hadoop's file systems
        self._conf: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]  # noqa: SLF001

    def exists(self, path: str) -> bool:
        where, system = self._open(path)
        return bool(system.exists(where))

    def read_text(self, path: str) -> str:
        """The file's text."""
        where, system = self._open(path)
        stream = system.open(where)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Replace the file."""
        where, system = self._open(path)
        stream = system.create(where, True)  # noqa: FBT003 - Hadoop's positional "overwrite"
        try:
            self._jvm.org.apache.commons.io.IOUtils.write(text, stream, "UTF-8")
        finally:
            stream.close()

    def newest_number(self, folder: str) -> int | None:
        """The largest file name that is a number, as Spark names its batches."""
        where, system = self._open(folder)
        if not system.exists(where):
            return None
        names = [entry.getPath().getName() for entry in system.listStatus(where)]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _open(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where, where.getFileSystem(self._conf)
