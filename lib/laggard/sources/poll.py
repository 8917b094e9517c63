"""Asking the brokers once: log ends, log starts, the offsets topic's own ends, and group states."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from laggard.config.security import Security
from laggard.names import NameFilter
from laggard.sources import brokers as kafka
from laggard.sources import snapshot as shapes
from laggard.sources.brokers import offsets_of
from laggard.sources.clock import Reading, read_clock
from laggard.sources.groups.coordinators import Asked, Coordinators
from laggard.sources.groups.ended_groups import Reconcile
from laggard.sources.metadata import Metadata, Partitions
from laggard.sources.readiness import denied
from laggard.sources.snapshot import Snapshot
from laggard.sources.window_facts import LogFacts, TopicWindow

NO_LEADER = "LEADER_NOT_AVAILABLE"
Answers = Mapping[kafka.TopicPartition, kafka.Answer]


@dataclass(frozen=True, slots=True)
class PollOptions:
    """Scope of a poll, and how long to wait for an answer."""

    bootstrap_servers: tuple[str, ...]
    offsets_topic: str = "__consumer_offsets"
    topics: tuple[str, ...] = ("*",)
    topics_ignore: tuple[str, ...] = ("__*",)
    request_timeout_seconds: float = 10
    metadata_seconds: float = 60
    state_poll_seconds: float = 10
    # between two questions for groups that have rows and are not listed; 0: never
    reconcile_seconds: float = 0
    window_seconds: int = 60
    slo_seconds: tuple[float, ...] = ()  # service levels of time lag that some policy declares
    reads_committed: bool = False  # True if some policy's isolation is read_committed
    security: Security = field(default_factory=Security)
    # with cluster.source = "admin": seconds for asking groups for their offsets; 0: the offsets
    # topic is read
    ask_groups_seconds: float = 0
    groups: tuple[str, ...] = ("*",)
    groups_ignore: tuple[str, ...] = ()
    # that the tables have rows of, those first that waited longest
    known_groups: tuple[str, ...] = ()


class Poller:
    """Polls on request and remembers only what a poll needs of the ones before it.

    An answer is never carried from one poll into a later one: a partition without an answer has an
    error name.
    """

    def __init__(self, options: PollOptions) -> None:
        self._options = options
        self._names = NameFilter(
            options.groups, options.groups_ignore, options.topics, options.topics_ignore
        )
        self._brokers = kafka.Brokers(
            options.bootstrap_servers, options.request_timeout_seconds, options.security
        )
        offsets_topic = None if options.ask_groups_seconds else options.offsets_topic
        self._metadata = Metadata(
            self._brokers, self._names, options.metadata_seconds, offsets_topic
        )
        self._groups_at = 0.0
        self._log_ends: dict[kafka.TopicPartition, int] = {}
        # offsets partition -> (last stable offset, since: in ms after boot)
        self._stable_since: dict[int, tuple[int, int]] = {}
        self._window = TopicWindow(options.window_seconds * 1000)
        self._facts = LogFacts(self._brokers, options.slo_seconds)
        self._coordinators: Coordinators | None = None
        if options.ask_groups_seconds:
            seconds = options.ask_groups_seconds
            self._coordinators = Coordinators(
                self._brokers, self._names, seconds, options.known_groups
            )
        self._reconcile = Reconcile(self._brokers, options.reconcile_seconds, options.known_groups)

    def poll(self, poll_id: int) -> Snapshot:
        """Take one complete snapshot; broker failures do not raise, except for refusals.

        It raises if no broker lets us in, or to the offsets topic.
        """
        started = time.monotonic()
        self._brokers.begin()
        self._metadata.refresh(poll_id)
        self._brokers.allow(len(self._metadata.everything))
        # before the log ends: a commit is then never ahead of the end that it is compared with
        asked = self._ask_groups()
        reading = read_clock()
        polled_at_ms = reading.wall_ms
        new_window = self._window.is_new(polled_at_ms)
        of_groups = self._start_groups() if asked is None else partial(self._answered, asked)
        ends = self._ask_all_ends(poll_id, new_window=new_window)
        self._log_ends = offsets_of(ends.latest)
        positions = self._positions(ends)
        facts, probes = None, shapes.PROBES.empty_table()
        # not in the first poll: the first lags are not kept waiting
        if self._window.is_closed_by(polled_at_ms):
            facts = self._facts.ask(self._metadata.partitions, ends.latest)
            probes = self._facts.probe(self._metadata.partitions, ends.latest, polled_at_ms)
        groups = of_groups()
        self._raise_refusals()
        closed, window_start_ms = self._window.add(poll_id, polled_at_ms, positions, facts)
        failures = self._brokers.failures
        if asked is not None:
            failures = failures + Counter(asked.errors)
        return Snapshot(
            poll_id=poll_id,
            polled_at_ms=polled_at_ms,
            boot_id=reading.boot_id,
            boot_ms=reading.boot_ms,
            awake_ms=reading.awake_ms,
            metadata_poll_id=self._metadata.poll_id,
            cluster_id=self._metadata.cluster_id,
            offsets_topic_id=next(
                (partition.topic_id for partition in self._metadata.offsets_topic.values()), ""
            ),
            window_start_ms=window_start_ms,
            positions=positions,
            offsets_partitions=self._offsets_partitions(ends, reading),
            answering_brokers=self._answering_brokers(),
            closed=closed,
            probes=probes,
            offsets_retention_minutes=self._facts.offsets_retention_minutes,
            requests=dict(self._brokers.requests),
            request_seconds=dict(self._brokers.seconds),
            failures=[[api, error, count] for (api, error), count in sorted(failures.items())],
            seconds=time.monotonic() - started,
            **groups,
        )

    def _raise_refusals(self) -> None:
        if refusal := self._brokers.refusal:
            raise refusal
        if self._metadata.is_denied:
            raise denied(self._options.offsets_topic)

    def _ask_groups(self) -> Asked | None:
        """Ask the coordinators; None if the offsets topic is read instead."""
        if self._coordinators is None:
            return None
        started, seconds = time.monotonic(), self._options.ask_groups_seconds
        self._brokers.allow(0, seconds=seconds)  # or the poll's deadline would cut off the round
        asked = self._coordinators.ask(list(self._metadata.addresses))
        # what was not needed is taken back: what follows has the time that it has without this
        self._brokers.allow(asked.committed.num_rows, seconds=time.monotonic() - started - seconds)
        return asked

    def _answered(self, asked: Asked) -> dict[str, Any]:
        return {
            "groups": asked.groups,
            "unlisted_brokers": asked.unlisted,
            "answers": asked.answers,
            "committed": asked.committed,
            "pending_groups": asked.pending,
            "lists_all_topics": self._metadata.lists_all_topics,
        }

    def close(self) -> None:
        """Let the connections go."""
        self._brokers.close()

    def _ask_all_ends(self, poll_id: int, *, new_window: bool) -> _Ends:
        """Ask about all partitions; ask again about those that need newer metadata."""
        metadata = self._metadata
        ends = self._ask_ends(metadata.partitions, metadata.offsets_topic, new_window=new_window)
        metadata.failed = frozenset(key for key, _ in ends.failures())
        if not (metadata.may_be_asked_again and self._contradicts(ends)):
            return ends
        before = metadata.everything
        metadata.refresh(poll_id, force=True)
        again = {key for key, _ in ends.failures()}
        for key, partition in metadata.everything.items():
            if partition != before.get(key):
                again.add(key)
        watched = {key: partition for key, partition in metadata.partitions.items() if key in again}
        offsets_topic = {
            key: partition for key, partition in metadata.offsets_topic.items() if key in again
        }
        return ends | self._ask_ends(watched, offsets_topic, new_window=new_window)

    def _contradicts(self, ends: _Ends) -> bool:
        """Return True if an answer contradicts the metadata: an error, or a lower log end.

        A lower log end means a recreated or truncated log.
        """
        known = self._metadata.everything
        if any(known[key].error is None for key, _ in ends.failures()):
            return True
        for key, answer in ends.latest.items():
            if answer.offset is not None and answer.offset < self._log_ends.get(key, 0):
                return True
        return False

    def _ask_ends(
        self, partitions: Partitions, offsets_topic: Partitions, *, new_window: bool
    ) -> _Ends:
        """Return the answers to all that a poll asks about these partitions, in one round."""
        # last stable offsets first: taken later they could pass the ends read before them
        stable_of = dict(offsets_topic)
        if self._options.reads_committed:
            stable_of = {**partitions, **offsets_topic}
        stable = self._start_list(stable_of, kafka.LATEST, kafka.READ_COMMITTED)
        latest = self._start_list(partitions, kafka.LATEST)
        starts = self._start_list(partitions if new_window else {}, kafka.EARLIEST)
        high = self._start_list(offsets_topic, kafka.LATEST)
        low = self._start_list(offsets_topic, kafka.EARLIEST)
        return _Ends(latest(), starts(), stable(), high(), low())

    def _start_list(
        self, partitions: Partitions, timestamp: int, isolation: int = kafka.READ_UNCOMMITTED
    ) -> Callable[[], Answers]:
        by_leader: dict[int, list[kafka.TopicPartition]] = {}
        without: dict[kafka.TopicPartition, kafka.Answer] = {}
        for key, partition in partitions.items():
            if partition.leader is None:
                without[key] = kafka.Answer(None, partition.error or NO_LEADER)
            else:
                by_leader.setdefault(partition.leader, []).append(key)
        pending = self._brokers.start_list_offsets(by_leader, timestamp, isolation)
        return lambda: without | pending()

    def _positions(self, ends: _Ends) -> pa.Table:
        rows = []
        for key, partition in sorted(self._metadata.partitions.items()):
            topic, number = key
            latest = ends.latest[key]
            starts, stable = _offset(ends.starts, key), _offset(ends.stable, key)
            ids = (topic, partition.topic_id, number)
            rows.append((*ids, latest.offset, starts, partition.leader, latest.error, stable))
        return shapes.table_of_rows(shapes.POSITIONS, rows)

    def _offsets_partitions(self, ends: _Ends, now: Reading) -> pa.Table:

        rows = []
        for key, partition in sorted(self._metadata.offsets_topic.items()):
            _, number = key
            high, stable, low = ends.high[key], ends.stable[key], _offset(ends.low, key)
            since = self._blocked_since(number, high.offset, stable.offset, now)
            offsets = (high.offset, stable.offset, low)
            rows.append((number, *offsets, partition.leader, since, stable.error or high.error))
        return shapes.table_of_rows(shapes.OFFSETS_PARTITIONS, rows)

    def _answering_brokers(self) -> list[str]:
        silent = self._brokers.silent
        if not silent:
            return []
        return sorted(
            address for broker, address in self._metadata.addresses.items() if broker not in silent
        )

    def _blocked_since(
        self, partition: int, high: int | None, stable: int | None, now: Reading
    ) -> int | None:
        """Return the time in ms since which no new record was readable, once a window has passed.

        The last stable offset stopped behind the high watermark, or the leader did not give it.
        """
        last, since_boot_ms = self._stable_since.get(partition, (-1, now.boot_ms))
        is_frozen = True
        if high is not None and stable is not None:
            is_frozen = stable < high
            if stable != last or not is_frozen:
                last, since_boot_ms = stable, now.boot_ms
        self._stable_since[partition] = (last, since_boot_ms)
        lasted_ms = now.boot_ms - since_boot_ms  # the wall clock may have been set meanwhile
        is_blocked = is_frozen and lasted_ms >= self._options.window_seconds * 1000
        if not is_blocked:
            return None
        return now.wall_ms - lasted_ms

    def _start_groups(self) -> Callable[[], dict[str, Any]]:
        every = self._options.state_poll_seconds
        if not every or time.monotonic() - self._groups_at < every * 0.9:
            return dict
        self._groups_at = time.monotonic()
        brokers = list(self._metadata.addresses)
        pending = self._brokers.start_list_groups(brokers)

        def wait() -> dict[str, Any]:
            rows, unlisted = pending()
            groups, ended = shapes.group_table(rows), list[str]()
            if brokers and not unlisted:  # no group at all may be the whole truth
                ended = self._reconcile.ended(groups["group"].to_pylist())
            return {"groups": groups, "unlisted_brokers": unlisted, "ended_groups": ended}

        return wait


def _offset(answers: Answers, key: kafka.TopicPartition) -> int | None:
    """Return the offset of a partition; None also if it was not asked about."""
    if key not in answers:
        return None
    return answers[key].offset


@dataclass(frozen=True, slots=True)
class _Ends:
    """Answers of one round: of watched partitions, and of those of the offsets topic."""

    latest: Answers
    starts: Answers  # empty within a window
    stable: Answers
    high: Answers
    low: Answers

    def failures(self) -> Iterator[tuple[kafka.TopicPartition, str]]:
        for key, answer in chain(self.latest.items(), self.stable.items()):
            if answer.error is not None:
                yield key, answer.error

    def __or__(self, later: _Ends) -> _Ends:
        return _Ends(
            {**self.latest, **later.latest},
            {**self.starts, **later.starts},
            {**self.stable, **later.stable},
            {**self.high, **later.high},
            {**self.low, **later.low},
        )
