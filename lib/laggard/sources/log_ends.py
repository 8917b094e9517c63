"""Source B: a streaming source with one row per poll.

The offset holds the poll and how far to read.

Spark writes the offset to its write-ahead log before the batch runs, and the batch takes both from
there: a re-run reads the very same poll and the very same records. The row itself only says that
there is a new poll.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from laggard.config.sections import KAFKAS_OWN
from laggard.config.security import OAuth, Security
from laggard.failures import carried
from laggard.sources.offsets_topic import READ_TO, Positions, is_read, next_positions, positions_in
from laggard.sources.poll import Poller, PollOptions
from laggard.sources.poll_files import PollFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.config import Config
    from laggard.config.sections import Cluster


class LogEnds(DataSource):
    """`readStream.format("log_ends")`.

    Options: `poll` (`PollOptions` as JSON), `checkpoint`, `most_records` of a batch, and where a
    new checkpoint begins: `after_poll` (last id), `positions` (offsets partition to next offset, as
    JSON).
    """

    @classmethod
    def name(cls) -> str:
        return "log_ends"

    def schema(self) -> str:
        return "poll_id bigint"

    @carried()
    # Spark's interface
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        first = {
            "poll_id": int(self.options["after_poll"]),
            READ_TO: json.loads(self.options["positions"]),
        }
        most_records = int(self.options["most_records"])
        files = PollFiles(self.options["checkpoint"])
        return LogEndsReader(options_from_json(self.options["poll"]), files, most_records, first)


class LogEndsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader that polls when Spark asks for the newest offset.

    Every trigger gets a poll of its own, never an old one.
    """

    def __init__(
        self, options: PollOptions, files: PollFiles, most_records: int, first: dict[str, Any]
    ) -> None:
        self._options = options
        self._files = files
        self._most_records = most_records
        self._first = first
        self._poller: Poller | None = None
        self._ends = False  # True: no more polls once a batch reads up to the end that its poll saw
        self._has_ended = False

    def __getstate__(self) -> dict[str, Any]:
        # sockets stay on the driver, and names of groups may be many
        return self.__dict__ | {
            "_poller": None,
            "_options": replace(self._options, known_groups=()),
        }

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's interface
        return self._first

    @carried()
    def latestOffset(  # noqa: N802
        self,
        start: dict[str, Any],
        limit: ReadLimit,  # noqa: ARG002
    ) -> dict[str, Any]:
        if self._has_ended:
            return start
        return self._poll(start["poll_id"] + 1, positions_in(start))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's interface
        self._ends = True

    @carried()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if end["poll_id"] == start["poll_id"]:
            return []
        return [InputPartition(end["poll_id"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)

    def stop(self) -> None:
        if self._poller is not None:
            self._poller.close()
            self._poller = None

    def _poll(self, poll_id: int, positions: Positions) -> dict[str, Any]:
        if self._poller is None:
            self._poller = Poller(self._options)
        snapshot = self._poller.poll(poll_id)
        read_to = next_positions(positions, snapshot.offsets_partitions, self._most_records)
        self._has_ended = (
            self._ends
            and is_read(read_to, snapshot.offsets_partitions)
            and not snapshot.pending_groups
        )
        return self._files.to_offset(snapshot) | {
            READ_TO: {str(number): read_to[number] for number in sorted(read_to)}
        }


def options_to_json(options: PollOptions) -> str:
    """Return poll options as JSON, which is passed to Spark."""
    return json.dumps(asdict(options))


def options_from_json(text: str) -> PollOptions:
    """Return poll options from JSON, the inverse of `options_to_json`."""
    plain: dict[str, Any] = json.loads(text)
    values: dict[str, Any] = dict(plain)
    for name, value in plain.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    security = values.pop("security")
    return PollOptions(
        **values, security=Security(**security | {"oauth": OAuth(**security["oauth"])})
    )


METADATA_SECONDS = 60  # between two looks for new topics and partitions
STATE_POLL_SECONDS = 10  # between two questions for the states of groups
# between two looks whether groups that no broker lists still exist
RECONCILE_SECONDS = 6 * 3600
MOST_RECORDS = 500_000  # of the offsets topic, in one batch
# of a tick, for asking groups for their offsets; who is left waits for the next one
ASK_SHARE = 0.5


def stream_polls(
    spark: SparkSession,
    config: Config,
    after_poll: int,
    positions: Positions,
    known_groups: Sequence[str] = (),
) -> DataFrame:
    """Return one row per poll.

    A new checkpoint starts after `after_poll` at `positions`; an older one has its own.

    `known_groups`: those that have rows.
    """
    cluster, job = config.cluster, config.job
    options = PollOptions(
        bootstrap_servers=tuple(cluster.bootstrap_servers),
        offsets_topic=cluster.offsets_topic,
        topics=tuple(cluster.topics),
        topics_ignore=tuple(cluster.topics_ignore),
        request_timeout_seconds=cluster.request_timeout_seconds,
        metadata_seconds=min(METADATA_SECONDS, 6 * job.tick_seconds),
        state_poll_seconds=min(STATE_POLL_SECONDS, job.tick_seconds),
        reconcile_seconds=reconcile_seconds(cluster),
        window_seconds=job.window_seconds,
        slo_seconds=config.policies.slo_seconds(cluster.name),
        reads_committed=config.policies.reads_committed(cluster.name),
        security=cluster.security,
        ask_groups_seconds=job.tick_seconds * ASK_SHARE if cluster.is_admin else 0,
        groups=tuple(cluster.groups),
        groups_ignore=tuple(cluster.groups_ignore),
        known_groups=tuple(known_groups),
    )
    polls = spark.readStream.format("log_ends").option("poll", options_to_json(options))
    polls = polls.option("checkpoint", job.checkpoint).option("most_records", str(MOST_RECORDS))
    return (
        polls.option("after_poll", str(after_poll))
        .option("positions", json.dumps(positions))
        .load()
    )


def reconcile_seconds(cluster: Cluster) -> int:
    """Return seconds between looks for groups ended unseen; 0 for a copied topic.

    No coordinator has the groups of a copied topic.
    """
    if cluster.offsets_topic != KAFKAS_OWN:
        return 0
    return RECONCILE_SECONDS
