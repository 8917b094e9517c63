"""End a query between two of its batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING

from laggard.errors import TEMPORARY, LaggardError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class QueryStop:
    """The end of a query between two batches: a batch that would begin meanwhile is refused.

    A batch must not wait here: Spark waits for the batch when its query is stopped, so who stops it
    would wait for itself. Spark repeats a batch that was turned away when the query starts again.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._is_ending = False
        self._batches = 0  # more than one only where one was broken off and goes on

    @property
    def has_batch(self) -> bool:
        """True while a batch is at hand."""
        return self._batches > 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run a batch; raises a LaggardError (75) while the query is being stopped."""
        with self._changed:
            if self._is_ending:
                raise LaggardError("the query is being stopped", exit_code=TEMPORARY)
            self._batches += 1
        try:
            yield
        finally:
            with self._changed:
                self._batches -= 1
                self._changed.notify_all()

    def end(self, query: StreamingQuery, wait_seconds: float | None = None) -> None:
        """Stop the query after the batch at hand, or within it after `wait_seconds` (None: never).

        An interrupted batch makes Spark match a long Python error with a regular expression, on a
        stack too small.
        """
        with self._changed:
            self._is_ending = True
            self._changed.wait_for(lambda: not self._batches, wait_seconds)
        try:
            query.stop()
        finally:
            self._is_ending = False
