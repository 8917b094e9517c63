"""Source B: a streaming source with one row per poll, the poll itself inside the offset.

Spark writes the offset to its write-ahead log before the batch runs, and the batch takes the poll from there: a
re-run reads the very same one. The row itself only says that there is a new poll.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from laggard.failures import carried
from laggard.sources.poll import Poller, PollOptions
from laggard.sources.spool import Spool


class LogEnds(DataSource):
    """`readStream.format("log_ends")`; options `poll` (`PollOptions` as JSON), `checkpoint`, `after_poll` (last id)."""

    @classmethod
    def name(cls) -> str:
        return "log_ends"

    def schema(self) -> str:
        return "poll_id bigint"

    @carried()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's interface
        after_poll = int(self.options.get("after_poll", "0"))
        return LogEndsReader(options_from_json(self.options["poll"]), Spool(self.options["checkpoint"]), after_poll)


class LogEndsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Polls when Spark asks for the newest offset: every trigger gets a poll of its own, never an old one."""

    def __init__(self, options: PollOptions, spool: Spool, after_poll: int = 0) -> None:
        self._options = options
        self._spool = spool
        self._after_poll = after_poll
        self._poller: Poller | None = None
        self._polls_left: int | None = None  # None: as many as Spark asks for

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_poller": None, "_polls_left": None}  # sockets stay on the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's interface
        return {"poll_id": self._after_poll}

    @carried()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        if self._polls_left == 0:
            return start
        if self._polls_left is not None:
            self._polls_left -= 1
        return self._poll(start["poll_id"] + 1)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's interface
        self._polls_left = 1  # catching up needs one poll, to know where the end is

    @carried()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(end["poll_id"])] if end["poll_id"] != start["poll_id"] else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)

    def stop(self) -> None:
        if self._poller is not None:
            self._poller.close()
            self._poller = None

    def _poll(self, poll_id: int) -> dict[str, Any]:
        if self._poller is None:
            self._poller = Poller(self._options)
        return self._spool.to_offset(self._poller.poll(poll_id))


def options_to_json(options: PollOptions) -> str:
    """The form in which poll options cross into Spark."""
    return json.dumps(asdict(options))


def options_from_json(text: str) -> PollOptions:
    """The inverse of `options_to_json`."""
    plain: dict[str, Any] = json.loads(text)
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return PollOptions(**values)
