"""Run by Python itself when a worker of Spark starts: a quick start, and a line if it fails.

The line goes to standard error.

Spark puts a zip of pyspark in front of the path. It has no bytecode, so each worker compiled what
it imports: 1.2 s of CPU until it connects, and 0.4 s from the folder where pyspark is installed.
Spark waits 10 s for that, which a busy machine does not always give. Where pyspark is not
installed the zip stays.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


def _report(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    # the driver gets the traceback from Spark, or starts the worker again
    first = next(iter(str(error).splitlines()), "")
    sys.stderr.write(f"a Python worker ended: {kind.__name__}: {first[:200]}\n")


sys.path.sort(key=lambda entry: entry.endswith(("/pyspark.zip", "-src.zip")))
sys.excepthook = _report
