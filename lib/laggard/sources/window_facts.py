"""Facts of a window: answers asked for once in it, and changes of each watched partition.

The changes are from the polls inside it.

Asked are stable ends, newest records, configurations, and log positions some time ago.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import by_name, to_moment
from laggard.sources import brokers as kafka
from laggard.sources import snapshot as shapes
from laggard.sources.brokers import Answer, Brokers, TopicPartition
from laggard.sources.metadata import Partition

CONFIG_SECONDS = 600.0  # configurations change seldom
# asked in one window, about a second; of more, each window asks the next share
MOST_PARTITIONS = 10_000
TOPIC_CONFIGS = ("retention.ms", "retention.bytes", "cleanup.policy")
OFFSETS_RETENTION = "offsets.retention.minutes"
_TOO_OLD = ("IncompatibleBrokerVersion", "UNSUPPORTED_VERSION")

Partitions = Mapping[TopicPartition, Partition]
Answers = Mapping[TopicPartition, Answer]


class LogFacts:
    """Client that asks for facts about the partitions that just answered.

    A value that fails or is denied is unknown, and stops nothing.
    """

    def __init__(self, brokers: Brokers, slo_seconds: Sequence[float] = ()) -> None:
        self._brokers = brokers
        self._slo_seconds = slo_seconds
        self._knows_newest = True  # brokers since 3.0
        self._configs: dict[tuple[str, str], Mapping[str, str | None]] = {}  # (topic, topic id)
        self._configs_at = -CONFIG_SECONDS
        self._asked = 0  # windows
        self.offsets_retention_minutes: int | None = None

    def ask(self, partitions: Partitions, ends: Answers) -> pa.Table:
        """Return rows of `FACTS` for every partition.

        If they are many, it has ends and newest records of a share of them.
        """
        led = _by_leader(self._share(partitions), ends)
        pending = self._brokers.start_list_offsets(led, kafka.LATEST, kafka.READ_COMMITTED)
        newest = self._newest(led)
        stable = pending()
        self._refresh_configs(partitions)
        rows = []
        for key, partition in sorted(partitions.items()):
            rows.append(self._row(key, partition, stable.get(key), newest.get(key)))
        return shapes.table_of_rows(shapes.FACTS, rows)

    def _row(
        self,
        key: TopicPartition,
        partition: Partition,
        stable: Answer | None,
        newest: Answer | None,
    ) -> Sequence[Any]:
        config = self._configs.get((key[0], partition.topic_id), {})
        retention_ms = _limit(config, "retention.ms")
        stable_offset, newest_at, retention = None, None, None
        if stable is not None:
            stable_offset = stable.offset
        if newest is not None:
            newest_at = to_moment(newest.timestamp_ms)
        if retention_ms is not None:
            retention = retention_ms / 1000
        return (
            key[0],
            partition.topic_id,
            key[1],
            stable_offset,
            newest_at,
            partition.replicas_offline,
            retention,
            _limit(config, "retention.bytes"),
            config.get("cleanup.policy"),
            set(TOPIC_CONFIGS) <= set(config),
        )

    def _share(self, partitions: Partitions) -> Partitions:
        shares = -(-len(partitions) // MOST_PARTITIONS)
        turn, self._asked = self._asked % max(shares, 1), self._asked + 1
        if shares <= 1:
            return partitions
        return {key: partitions[key] for key in sorted(partitions)[turn::shares]}

    def probe(self, partitions: Partitions, ends: Answers, now_ms: int) -> pa.Table:
        """Return rows of `PROBES`: per service level the first offset that is not older.

        The offset is the log end if all are older.
        """
        led = _by_leader(partitions, ends) if self._slo_seconds else {}
        pending = []
        for seconds in self._slo_seconds:
            started = self._brokers.start_list_offsets(led, now_ms - round(seconds * 1000))
            pending.append((seconds, started))
        rows: list[tuple[float, str, str, int, int]] = []
        for seconds, wait in pending:
            for (topic, partition), answer in sorted(wait().items()):
                end = ends[topic, partition].offset
                if answer.offset is not None and end is not None:
                    offset = end if answer.offset < 0 else min(answer.offset, end)
                    topic_id = partitions[topic, partition].topic_id
                    rows.append((seconds, topic, topic_id, partition, offset))
        return shapes.table_of_rows(shapes.PROBES, rows)

    def _newest(self, led: Mapping[int, Sequence[TopicPartition]]) -> Answers:
        if not self._knows_newest:
            return {}
        answers = self._brokers.list_offsets(led, kafka.MAX_TIMESTAMP)
        self._knows_newest = not answers or any(
            answer.error not in _TOO_OLD for answer in answers.values()
        )
        return answers

    def _refresh_configs(self, partitions: Partitions) -> None:
        """Refresh all configs after ten minutes, else those of new topics.

        A config that we may not see has no values.
        """
        topics = {
            (key[0], partition.topic_id)
            for key, partition in partitions.items()
            if partition.error is None
        }
        wanted = topics - set(self._configs)
        if time.monotonic() - self._configs_at >= CONFIG_SECONDS:
            wanted, self._configs_at = topics, time.monotonic()
            self.offsets_retention_minutes = self._ask_offsets_retention(partitions)
        names = sorted({topic for topic, _ in wanted})
        answers: Mapping[str, dict[str, str | None]] | None = {}
        if names:
            answers = self._brokers.configs(kafka.TOPIC, names, TOPIC_CONFIGS)
        if answers is None:  # nobody answered: asked again in the next window
            self._configs, self._configs_at = {}, -CONFIG_SECONDS
            return
        known, self._configs = self._configs, {}
        for key in topics:
            self._configs[key] = answers.get(key[0], {}) if key in wanted else known[key]

    def _ask_offsets_retention(self, partitions: Partitions) -> int | None:
        leader = min(
            (partition.leader for partition in partitions.values() if partition.leader is not None),
            default=None,
        )
        if leader is None:
            return None
        answers = (
            self._brokers.configs(kafka.BROKER, [str(leader)], [OFFSETS_RETENTION], leader) or {}
        )
        value = answers.get(str(leader), {}).get(OFFSETS_RETENTION)
        if not value:
            return None
        return int(value)


def _by_leader(partitions: Partitions, ends: Answers) -> dict[int, list[TopicPartition]]:
    """Return the partitions that just answered, by leader.

    A leader that did not answer is not waited for again.
    """
    led: dict[int, list[TopicPartition]] = {}
    for key, partition in partitions.items():
        if partition.leader is not None and key in ends and ends[key].offset is not None:
            led.setdefault(partition.leader, []).append(key)
    return led


def _limit(config: Mapping[str, str | None], name: str) -> int | None:
    """Return a configured limit; null if it is unlimited (-1) or unknown."""
    limit = int(config.get(name) or -1)
    if limit >= 0:
        return limit
    return None


_KEY = ["topic", "topic_id", "partition"]


class TopicWindow:
    """Gathers polls until the window's end has passed, then gives the closed window's rows."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._start_ms = -1  # of the open window
        self._ticks = 0
        self._starts: pa.Table | None = None  # log starts, asked for in the window's first poll
        self._last: pa.Table | None = None  # positions of the newest poll
        self._last_at_ms = 0
        self._last_poll_id = 0
        self._base: pa.Table | None = None  # positions of the last poll of the window before
        self._base_at_ms = 0

    def is_new(self, now_ms: int) -> bool:
        """Return True if a poll at this time opens a window."""
        return self._floor(now_ms) != self._start_ms

    def is_closed_by(self, now_ms: int) -> bool:
        """Return True if a poll at this time closes a window right after its end.

        The poll then shows the end of the window.
        """
        return self._last is not None and self._follows(now_ms)

    def add(
        self, poll_id: int, now_ms: int, positions: pa.Table, facts: pa.Table | None = None
    ) -> tuple[pa.Table, int]:
        """Take a poll; return the rows and the start of the closed window, or no rows and 0."""
        closed, closed_start = shapes.CLOSED.empty_table(), 0
        if self.is_new(now_ms):
            if self._last is not None:
                closed, closed_start = self._close(self._last, facts), self._start_ms
                # windows nobody polled in break the series: nothing is produced across the hole
                self._base, self._base_at_ms = None, 0
                if self._follows(now_ms):
                    self._base, self._base_at_ms = self._last, self._last_at_ms
            self._start_ms, self._ticks, self._starts = self._floor(now_ms), 0, positions
        self._ticks += 1
        self._last, self._last_at_ms, self._last_poll_id = positions, now_ms, poll_id
        return closed, closed_start

    def _floor(self, now_ms: int) -> int:
        return now_ms // self._window_ms * self._window_ms

    def _follows(self, now_ms: int) -> bool:
        return self._floor(now_ms) == self._start_ms + self._window_ms

    def _close(self, last: pa.Table, facts: pa.Table | None) -> pa.Table:
        rows = last.select([*_KEY, "log_end_offset", "leader_broker", "error"])
        empty = shapes.POSITIONS.empty_table()
        starts = empty if self._starts is None else self._starts
        rows = rows.join(starts.select([*_KEY, "log_start_offset"]), _KEY, join_type="left outer")
        base = empty if self._base is None else self._base
        base = base.select([*_KEY, "log_end_offset"])
        base = base.rename_columns([*_KEY, "base_log_end_offset"])
        rows = rows.join(base, _KEY, join_type="left outer")
        if facts is None:
            facts = shapes.FACTS.empty_table()
        rows = rows.join(facts, _KEY, join_type="left outer")
        rows = rows.sort_by([(name, "ascending") for name in _KEY])
        rise = pc.subtract(rows["log_end_offset"], rows["base_log_end_offset"])
        produced = pc.if_else(pc.greater_equal(rise, 0), rise, pa.scalar(None, pa.int64()))
        seconds = (self._last_at_ms - self._base_at_ms) / 1000
        # asked after the last poll of the window: what has become stable since is of the next one
        is_beyond = pc.fill_null(
            pc.greater(rows["last_stable_offset"], rows["log_end_offset"]), False
        )
        columns = {
            **by_name(rows),
            "last_stable_offset": pc.if_else(
                is_beyond, rows["log_end_offset"], rows["last_stable_offset"]
            ),
            "config_known": pc.fill_null(rows["config_known"], False),
            "poll_id": pa.repeat(pa.scalar(self._last_poll_id, pa.int64()), rows.num_rows),
            "ticks": pa.repeat(pa.scalar(self._ticks, pa.int32()), rows.num_rows),
            "produced": produced,
            "arrival_rate": pc.divide(pc.cast(produced, pa.float64()), max(seconds, 1e-3)),
        }
        return pa.table([columns[name] for name in shapes.CLOSED.names], schema=shapes.CLOSED)
