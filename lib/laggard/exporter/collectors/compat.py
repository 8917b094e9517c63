"""The same facts under the names of other exporters, each tool where `metrics.compat` has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import compat_families as fam
from laggard.exporter.body.families import Family
from laggard.exporter.body.samples import Labels, SnapshotCollector, Value, filled, label_or_empty
from laggard.exporter.snapshot import MEMBERSHIP, Row, Snapshot
from laggard.exporter.totals import worst_verdict
from laggard.lag.burrow import OK, REWOUND, SLOW, STALLED, STOPPED
from laggard.rebalance.membership.owners import find_owners
from laggard.rebalance.topics import Topics
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import GROUP_STATUS, PARTITION_STATUS

# values of the labels after the cluster, and of the series
Valued: TypeAlias = Iterable[tuple[Sequence[str], Value]]

_BURROW_NUMBERS = {OK: 1, SLOW: 2, STOPPED: 4, STALLED: 5, REWOUND: 6}
_BURROW_ERROR = 3  # of a group: Burrow has one number for all that is worse than slow
_NONE = arrow_schema(PARTITION_STATUS).empty_table()
_ROW = _NONE.select(["group", "topic", "partition", "topic_id"]).schema
_GROUP = arrow_schema(GROUP_STATUS).empty_table().select(["group", *MEMBERSHIP]).schema
BY_PARTITION = {  # columns that a tool has by group and partition, once for each name
    "burrow": ("verdict", "committed_offset", "lag"),
    "kafka_exporter": ("lag", "lag", "committed_offset"),
    "kafka_lag_exporter": ("committed_offset", "lag", "time_lag_seconds"),
    "kminion": ("lag",),
}


def count_least(snapshot: Snapshot) -> int:
    """Count the series by group and partition that the names would add; there are no fewer."""
    rows = snapshot.every_partition
    if rows is None:
        return 0
    columns = (column for tool in snapshot.selection.compat for column in BY_PARTITION[tool])
    return sum(len(rows) - rows[column].null_count for column in columns)


class CompatCollector(SnapshotCollector):
    """Families of the configured other tools, for all partitions.

    A drop-in with missing partitions is worse than none.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._rows = _NONE if snapshot.every_partition is None else snapshot.every_partition

    def collect(self) -> Iterator[Metric]:
        tools: Mapping[str, Callable[[], Iterator[tuple[Family, Valued]]]] = {
            "burrow": self._burrow,
            "kafka_exporter": self._kafka_exporter,
            "kafka_lag_exporter": self._kafka_lag_exporter,
            "kminion": self._kminion,
        }
        for tool in self._snapshot.selection.compat:
            for family, values in tools[tool]():
                named: list[tuple[Labels, Value]] = []
                for own, value in values:
                    labels = zip(family.labels, (self._cluster, *own), strict=True)
                    named.append((dict(labels), value))
                yield filled(family, named)

    def _burrow(self) -> Iterator[tuple[Family, Valued]]:
        yield fam.BURROW_LAG, self._of_groups("lag")
        yield fam.BURROW_STATUS, self._worst_verdicts()
        numbers = map(_BURROW_NUMBERS.get, self._column("verdict"))
        yield fam.BURROW_PARTITION_STATUS, zip(self._places, numbers, strict=True)
        yield fam.BURROW_OFFSET, self._of_partitions("committed_offset")
        yield fam.BURROW_PARTITION_LAG, self._of_partitions("lag")
        yield fam.BURROW_LOG_END, self._of_logs("log_end_offset")

    def _kafka_exporter(self) -> Iterator[tuple[Family, Valued]]:
        for family, column in (
            (fam.EXPORTER_LAG, "lag"),
            (fam.EXPORTER_UNCOMMITTED, "lag"),
            (fam.EXPORTER_OFFSET, "committed_offset"),
        ):
            yield family, self._of_partitions(column)
        yield fam.EXPORTER_LAG_SUM, self._of_topics("lag")
        yield fam.EXPORTER_UNCOMMITTED_SUM, self._of_topics("lag")
        yield fam.EXPORTER_OFFSET_SUM, self._offset_sums()
        yield fam.EXPORTER_MEMBERS, self._of_groups("members")
        yield fam.EXPORTER_LOG_END, self._of_logs("log_end_offset")
        yield fam.EXPORTER_LOG_START, self._of_logs("log_start_offset")
        topics = self._snapshot.topics
        partitions = _column(topics, "partitions")
        yield fam.EXPORTER_PARTITIONS, zip(_named(topics, "topic"), partitions, strict=True)

    def _kafka_lag_exporter(self) -> Iterator[tuple[Family, Valued]]:
        for family, column in (
            (fam.LAG_EXPORTER_OFFSET, "committed_offset"),
            (fam.LAG_EXPORTER_LAG, "lag"),
            (fam.LAG_EXPORTER_SECONDS, "time_lag_seconds"),
        ):
            placed = zip(self._of_partitions(column), self._members, strict=True)
            yield family, (((*labels, *member), value) for (labels, value), member in placed)
        yield fam.LAG_EXPORTER_MAX, self._maxima("lag", "max_lag")
        yield fam.LAG_EXPORTER_MAX_SECONDS, self._maxima("time_lag", "time_lag")
        yield fam.LAG_EXPORTER_SUM, self._of_groups("lag")
        yield fam.LAG_EXPORTER_TOPIC_SUM, self._of_topics("lag")
        yield fam.LAG_EXPORTER_LOG_END, self._of_logs("log_end_offset")
        yield fam.LAG_EXPORTER_LOG_START, self._of_logs("log_start_offset")
        poll = (self._snapshot.batch.values["durations_seconds"] or {}).get("poll")
        if poll is not None:
            poll *= 1000
        yield fam.LAG_EXPORTER_POLL, [((), poll)]

    def _kminion(self) -> Iterator[tuple[Family, Valued]]:
        groups = self._snapshot.groups
        stable = (int(row["group_state"] == "Stable") for row in groups)
        yield fam.KMINION_INFO, zip(map(_info, groups), stable, strict=True)
        yield fam.KMINION_MEMBERS, self._of_groups("members")
        yield fam.KMINION_EMPTY_MEMBERS, self._of_groups("idle_members")
        held = self._held()
        members = (len(set(owners)) for owners in held.values())
        yield fam.KMINION_TOPIC_MEMBERS, zip(held, members, strict=True)
        yield fam.KMINION_ASSIGNED, zip(held, map(len, held.values()), strict=True)
        yield fam.KMINION_OFFSET_SUM, self._offset_sums()
        yield fam.KMINION_LAG, self._of_partitions("lag")
        yield fam.KMINION_TOPIC_LAG, self._of_topics("lag")
        counted = [row for row in groups if row["topic_counters"]]
        sums = (_sum(_column(row["topic_counters"], "commits")) for row in counted)
        yield fam.KMINION_COMMITS, zip(_named(counted, "group"), sums, strict=True)
        yield fam.KMINION_LOW, self._of_logs("log_start_offset")
        yield fam.KMINION_HIGH, self._of_logs("log_end_offset")
        yield fam.KMINION_LOW_SUM, self._log_sums("log_start_offset")
        yield fam.KMINION_HIGH_SUM, self._log_sums("log_end_offset")

    def _column(self, name: str) -> list[Any]:
        values: list[Any] = self._rows[name].to_pylist()
        return values

    @cached_property
    def _places(self) -> list[tuple[str, str, str]]:
        groups, topics = (
            map(escape_label, self._column("group")),
            map(escape_label, self._column("topic")),
        )
        return list(zip(groups, topics, map(str, self._column("partition")), strict=True))

    def _of_partitions(self, column: str) -> Valued:
        return zip(self._places, self._column(column), strict=True)

    def _of_logs(self, column: str) -> Valued:
        """Return one value per topic-partition, as `newest_per_log` does."""
        polls = map(int, pc.fill_null(self._rows["poll_id"], 0).to_pylist())
        newest: dict[tuple[str, str], tuple[int, Value]] = {}
        for (_, *labels), poll, value in zip(
            self._places, polls, self._column(column), strict=True
        ):
            log = (labels[0], labels[1])
            if value is not None and (log not in newest or (poll, value) > newest[log]):
                newest[log] = (poll, value)
        return ((log, value) for log, (_, value) in newest.items())

    def _of_groups(self, column: str) -> Valued:
        groups = self._snapshot.groups
        return zip(_named(groups, "group"), _column(groups, column), strict=True)

    def _of_topics(self, column: str) -> Valued:
        folded = self._snapshot.group_topics
        values = folded.columns.get(column, ())
        names = zip(map(escape_label, folded.group), map(escape_label, folded.topic), strict=True)
        return zip(names, values, strict=True)

    @cached_property
    def _members(self) -> list[tuple[str, str, str]]:
        """Return the host, consumer id and client id of each row.

        A label with a member id would be new at each rebalance.
        """
        if not self._snapshot.selection.compat_member_labels:
            return [("", "", "")] * len(self._rows)
        hosts = pc.fill_null(self._owners["client_host"], "").to_pylist()
        clients = pc.fill_null(self._owners["client_id"], "").to_pylist()
        return list(zip(map(escape_label, hosts), repeat(""), map(escape_label, clients)))

    def _maxima(self, whole: str, column: str) -> Valued:
        """Yield the largest value of a group's topics; None if one of them is not wholly known."""
        types = {row["group"]: row["group_type"] for row in self._snapshot.groups}
        by_group: dict[str, list[Any]] = {}
        for row in self._snapshot.group_topics.rows():
            value = None if row[whole] is None else row[column]
            by_group.setdefault(row["group"], []).append(value)
        for group, values in by_group.items():
            greatest = None if None in values else max(values)
            yield (escape_label(group), _is_simple(types.get(group))), greatest

    def _worst_verdicts(self) -> Valued:
        for group, topics in groupby(self._snapshot.group_topics.rows(), key=itemgetter("group")):
            worst = worst_verdict(topics)
            if worst is not None:
                yield (escape_label(group),), min(_BURROW_NUMBERS[worst], _BURROW_ERROR)

    def _offset_sums(self) -> Valued:
        sums: Counter[Sequence[str]] = Counter()
        for (group, topic, _), offset in self._of_partitions("committed_offset"):
            sums[group, topic] += int(offset or 0)
        return ((names, sums[names]) for names, lag in self._of_topics("lag") if lag is not None)

    def _log_sums(self, column: str) -> Valued:
        """Yield sums per topic over its partitions; no sum if a partition has no value or row."""
        by_topic: dict[str, list[Any]] = {}
        for (topic, _), value in self._of_logs(column):
            by_topic.setdefault(topic, []).append(value)
        for row in self._snapshot.topics:
            values = by_topic.get(topic := escape_label(row["topic"]), [])
            if len(values) == row["partitions"]:
                yield (topic,), _sum(values)

    @cached_property
    def _owners(self) -> dict[str, pa.ChunkedArray]:
        """Columns about the owner of each row's partition."""
        rows = self._rows.select(_ROW.names).cast(_ROW)
        groups = pa.Table.from_pylist(self._snapshot.groups, schema=_GROUP)
        return find_owners(rows, groups, Topics(rows.slice(0, 0), rows))

    def _held(self) -> dict[tuple[str, str], list[str]]:
        """Return member ids by group and topic, one for each partition that has an owner."""
        held: dict[tuple[str, str], list[str]] = {}
        for (group, topic, _), owner in zip(
            self._places, self._owners["owner"].to_pylist(), strict=True
        ):
            if owner is not None:
                held.setdefault((group, topic), []).append(owner)
        return held


def _info(row: Row) -> tuple[str, ...]:
    columns = ("group", "assignor", "protocol_type", "group_state", "coordinator")
    return tuple(label_or_empty(row[name]) for name in columns)


def _column(rows: Sequence[Row], name: str) -> list[Any]:
    return list(map(itemgetter(name), rows))


def _named(rows: Sequence[Row], name: str) -> Iterator[tuple[str]]:
    return ((escape_label(row[name]),) for row in rows)


def _is_simple(group_type: str | None) -> str:
    """Return the value of is_simple_consumer; empty while the type is unknown."""
    if group_type is None:
        return ""
    return str(group_type == "simple").lower()


def _sum(values: Sequence[Any]) -> Value:
    return None if None in values else sum(values)
