"""G. The pipeline about itself, from the newest `batches` row; stays when the data families go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import Labels, Value, by_key, filled, filled_states
from laggard.exporter.collectors.state import known_state
from laggard.exporter.snapshot import Snapshot
from laggard.tables.published import Batch
from laggard.tables.schema.batch_tables import APIS, GAP_REASONS, OUTCOMES, STAGES
from laggard.wire.errors import DEAD_LETTER_REASONS

_BY_NAME: tuple[tuple[fam.Family, str, str, tuple[str, ...]], ...] = (
    # map column, its label, and the closed list of its keys: who watches a count sees its first
    # rise
    (fam.STAGE_SECONDS, "stage_seconds_total", "stage", STAGES),
    (fam.SOURCE_RECORDS, "records_total", "outcome", OUTCOMES),
    (fam.DEAD_LETTERS, "dead_letters_total", "reason", DEAD_LETTER_REASONS),
    (fam.POLLS, "polls_total", "api", APIS),
    (fam.POLL_SECONDS, "poll_seconds_total", "api", APIS),
    (fam.GAPS, "gaps_total", "reason", GAP_REASONS),
)
_LATER = (  # columns that an older job did not have
    (fam.QUARANTINED, "quarantined_groups"),
    (fam.QUARANTINES, "quarantines_total"),
    (fam.CLOCK_SKEW, "clock_skew_seconds"),
    (fam.SHED_KEYS, "shed_keys_total"),
    (fam.CORRECTIONS, "reconcile_corrections_total"),
)
_BY_STRUCT = (  # array column, its labels, its value
    (fam.UNKNOWN_RECORDS, "unknown_records_total", ("record_type", "version"), "records"),
    (fam.POLL_ERRORS, "poll_errors_total", ("api", "error"), "errors"),
)


class PipelineCollector(Collector):
    """Readiness, and the newest batch if there is one; `reason` is empty while data is served."""

    def __init__(self, cluster: str, reason: str, snapshot: Snapshot | None) -> None:
        self._labels = {"cluster": escape_label(cluster)}
        self._reason = reason
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield filled(fam.READY, [(self._labels, 0 if self._reason else 1)])
        yield filled_states(fam.NOT_READY, [(self._labels, self._reason or "none")])
        if self._snapshot is None:
            return
        batch = self._snapshot.batch
        yield from self._scalars(batch)
        yield from self._totals(batch.values)
        yield from self._source(batch.values)
        yield from self._offsets_topic(batch.values)
        yield filled(fam.FINDINGS_TIMESTAMP, [(self._labels, self._snapshot.evaluated.until)])
        if self._snapshot.groups:
            states = dict.fromkeys(fam.GROUP_STATES, 0) | Counter(
                map(known_state, self._snapshot.groups)
            )
            yield filled(fam.GROUPS, by_key(self._labels, "state", states))

    def _scalars(self, batch: Batch) -> Iterator[Metric]:
        seconds = None
        if batch.values["published_at"] and batch.values["started_at"]:
            seconds = (batch.values["published_at"] - batch.values["started_at"]).total_seconds()
        yield filled(fam.DATA_TIMESTAMP, [(self._labels, batch.clock_at.timestamp())])
        yield filled(
            fam.CLOCK_HELD,
            [(self._labels, max(0.0, (batch.polled_at - batch.clock_at).total_seconds()))],
        )
        yield filled(fam.BATCH_ID, [(self._labels, batch.batch_id)])
        yield filled(fam.BATCHES_TOTAL, [(self._labels, batch.values["batches_total"])])
        yield filled(fam.BATCH_SECONDS, [(self._labels, seconds)])
        for family, column in _LATER:
            yield filled(family, [(self._labels, batch.values.get(column))])

    def _totals(self, values: Mapping[str, Any]) -> Iterator[Metric]:
        for family, column, label, keys in _BY_NAME:
            known = values.get(column)  # an older job had fewer columns
            counts = {} if known is None else dict.fromkeys(keys, 0) | known
            yield filled(family, by_key(self._labels, label, counts))
        for family, column, names, value in _BY_STRUCT:
            totals = []
            for row in values[column] or ():
                labels = {name: escape_label(str(row[name])) for name in names}
                totals.append((self._labels | labels, row[value]))
            yield filled(family, totals)

    def _source(self, values: Mapping[str, Any]) -> Iterator[Metric]:
        positions, ends = values["source_to"], values["source_high_watermark"] or {}
        frozen = values["source_blocked_since"] or {}
        number = None if positions is None else len(positions)
        yield filled(fam.SOURCE_PARTITIONS, [(self._labels, number)])
        yield filled(fam.SOURCE_LAG, self._per_partition(_behind(ends, positions or {})))
        behind = _behind(ends, values["source_last_stable_offset"] or {})
        blocked = {n: records if n in frozen else 0 for n, records in behind.items()}
        yield filled(fam.SOURCE_BLOCKED, self._per_partition(blocked))
        since = {n: at.timestamp() for n, at in frozen.items() if isinstance(at, datetime)}
        yield filled(fam.SOURCE_BLOCKED_TIMESTAMP, self._per_partition(since))

    def _offsets_topic(self, values: Mapping[str, Any]) -> Iterator[Metric]:
        """Yield the families about the contents of each offsets partition."""
        snapshot, ends = self._snapshot, values["source_high_watermark"] or {}
        positions, starts = values["source_to"] or {}, values.get("source_log_start_offset") or {}
        commits = values.get("source_commits_total")
        zeros = dict.fromkeys(positions, 0)
        if commits is not None:
            commits = zeros | commits
        yield filled(fam.SOURCE_COMMITS, self._per_partition(commits or {}))
        yield filled(fam.SOURCE_LOG, self._per_partition(_behind(ends, starts)))
        brokers = values.get("source_coordinator") or {}
        coordinators = (
            ({**labels, "coordinator": str(broker)}, 1)
            for labels, broker in self._per_partition(brokers)
        )
        yield filled(fam.SOURCE_COORDINATOR, coordinators)
        if snapshot is not None and snapshot.groups:
            yield from self._groups_of_coordinators(snapshot, zeros)

    def _groups_of_coordinators(
        self, snapshot: Snapshot, zeros: Mapping[int, int]
    ) -> Iterator[Metric]:
        """Yield groups and committed partitions in each offsets partition.

        `zeros` has every offsets partition.
        """
        groups, keys = Counter[int](zeros), Counter[int](zeros)
        committed = snapshot.group_topics.commits_by_group()
        for row in snapshot.groups:
            if row["offsets_partition"] is not None:
                groups[row["offsets_partition"]] += 1
                keys[row["offsets_partition"]] += committed.get(row["group"], 0)
        yield filled(fam.SOURCE_GROUPS, self._per_partition(groups))
        yield filled(fam.SOURCE_LIVE_KEYS, self._per_partition(keys))

    def _per_partition(self, values: Mapping[int, Value]) -> Iterator[tuple[Labels, Value]]:
        return by_key(self._labels, "offsets_partition", dict(sorted(values.items())))


def _behind(
    ends: Mapping[int, int | None], positions: Mapping[int, int | None]
) -> dict[int, int | None]:
    """Return records between position and end of each offsets partition; None if unknown."""
    behind: dict[int, int | None] = {}
    for number, end in ends.items():
        position = positions.get(number)
        behind[number] = None
        if end is not None and position is not None:
            # we may have read past the poll: then nothing is left of what it saw
            behind[number] = max(0, end - position)
    return behind
