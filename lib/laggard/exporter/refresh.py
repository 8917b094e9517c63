"""The refresh thread of one table root: looks for a new batch, loads it and renders its data."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event, Thread

from laggard.errors import LaggardError
from laggard.exporter.body.budget import Shedding
from laggard.exporter.body.render import DataPart, render_data
from laggard.exporter.body.sticky_series import Held
from laggard.exporter.collectors.own import Failure, SelfStats
from laggard.exporter.evaluated import Evaluated, EvaluatedReader
from laggard.exporter.memory import give_back
from laggard.exporter.options import ExporterOptions
from laggard.exporter.snapshot import Snapshot, load_snapshot
from laggard.tables.freshness import MAX_AHEAD_SECONDS, is_fresh, max_age
from laggard.tables.odd_rows import Skipped
from laggard.tables.published import BACKFILL, Batch, newest_batch
from laggard.tables.readers import TableMissing, TableUnreadable

log = logging.getLogger("laggard.exporter")


class Refresher:
    """Refresher that keeps `known` at the newest batch.

    Every look is one call of `refresh`, which ends with `publish`.
    """

    def __init__(
        self,
        root: str,
        options: ExporterOptions,
        stats: SelfStats,
        clock: Callable[[], float],
        publish: Callable[[], None],
    ) -> None:
        self.root = root
        self.stats = stats
        self.clock = clock
        self.max_age_seconds = max_age(options.tick_seconds, options.max_age_seconds)
        self.steady: Callable[[], float] = time.monotonic
        self._options = options
        self._publish = publish
        self._evaluated = EvaluatedReader(root, options.window_seconds, options.idle_seconds)
        self._held = Held()
        self._shedding = Shedding()
        self._arrived_at: float | None = None  # the newest batch, by `steady`
        self._snapshot: Snapshot | None = None
        self._data: DataPart | None = None
        self.known: tuple[Snapshot | None, DataPart | None, str] = (None, None, "starting")
        self._stop = Event()
        # a hung read must not stop the exit
        self._thread = Thread(target=self._run, name="refresh", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self, limit_seconds: float) -> None:
        """Wait for the look under way, but no longer than the limit."""
        self._thread.join(limit_seconds)

    def refresh(self) -> None:
        """Look once; whatever fails is counted, and the last good data stays while it is fresh."""
        error = ""
        try:
            self._load_newest()
            self.stats.refreshed_at = self.clock()
        except TableMissing as failure:
            error = self._failed("table_missing", failure)
        except TableUnreadable as failure:
            error = self._failed("table_unreadable", failure)
        # a fault of ours in one batch must not end the thread
        except Exception as failure:  # noqa: BLE001
            self._failed("internal", failure)
            error = "table_unreadable"
        self.known = (self._snapshot, self._data, error or self._reason())
        try:
            self._publish()
        # an odd row of `batches`: the next one may be sound
        except Exception as failure:  # noqa: BLE001
            self._failed("internal", failure)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(self._options.refresh_seconds)

    def _load_newest(self) -> None:
        batch = newest_batch(self.root)
        if batch is None:
            return
        is_same = self._snapshot is not None and _identity(batch) == _identity(self._snapshot.batch)
        if is_same and (self._data is not None or not self._is_servable(batch)):
            return
        if not is_same:
            self._meet(batch)
        started = time.perf_counter()
        try:
            self._load(batch)
        except TableUnreadable:
            # the job may have moved on and removed the files meanwhile: then a newer row says where
            newer = newest_batch(self.root)
            if newer is None or _identity(newer) == _identity(batch):
                raise
            self._load(newer)
        give_back()
        self.stats.refresh_seconds = time.perf_counter() - started

    def _is_servable(self, batch: Batch) -> bool:
        return batch.kind != BACKFILL and is_fresh(
            batch.clock_at.timestamp(), self.clock(), self.max_age_seconds
        )

    def _load(self, batch: Batch) -> None:
        skipped = Skipped()
        evaluated = self._read_evaluated(batch, skipped)
        if not self._is_servable(batch):
            self._snapshot, self._data = Snapshot(batch, evaluated=Evaluated(evaluated.until)), None
            return
        chosen, policy = self._options.selection, self._options.policy
        snapshot = load_snapshot(self.root, batch, chosen, skipped, policy, self._held)
        snapshot = replace(snapshot, evaluated=evaluated)
        data = render_data(snapshot, self._options.max_series, skipped, self._shedding)
        self._snapshot, self._data = snapshot, data
        self._count(skipped)
        if data.withheld:
            self.stats.dropped["max_series"] += sum(data.withheld.values())

    def _count(self, skipped: Skipped) -> None:
        for key, sentence in skipped.sentences().items():
            if not self.stats.skipped[key]:  # once; the counter tells how often
                log.warning("%s; laggard_exporter_rows_skipped_total counts on", sentence)
            self.stats.skipped[key] += skipped.counts[key]

    def _read_evaluated(self, batch: Batch, skipped: Skipped) -> Evaluated:
        """Return the newest evaluation, or the previous after an error; lag is still served."""
        try:
            evaluated = self._evaluated.read(skipped)
        except TableMissing:  # of a job without rules
            evaluated = Evaluated()
        except Exception as failure:  # noqa: BLE001 - whatever it is, it must cost no lag
            self._failed("findings_unreadable", failure)
            evaluated = self._evaluated.newest
        return evaluated.if_fresh(batch.polled_at.timestamp(), self._options.window_seconds)

    def _reason(self) -> str:
        """Say why data is not served, for when it is not."""
        if self._snapshot is None:
            return "starting"
        if self._snapshot.batch.kind == BACKFILL:
            return "catching_up"
        if self._is_off():
            return "clock"
        return "stale"

    def _meet(self, batch: Batch) -> None:
        """Compare clocks with a new batch; a batch of the first look may be old."""
        apart = self.clock() - _published_at(batch)
        is_arrival = self._snapshot is not None
        if is_arrival or apart < -MAX_AHEAD_SECONDS:
            self._arrived_at = self.steady()
            self.stats.clock_offset_seconds = apart

    def _is_off(self) -> bool:
        """Return True if batches still arrive but their times are far from this process's clock."""
        apart, arrived_at = self.stats.clock_offset_seconds, self._arrived_at
        if apart is None or arrived_at is None or self.steady() - arrived_at > self.max_age_seconds:
            return False
        return abs(apart) > MAX_AHEAD_SECONDS

    def _failed(self, reason: Failure, failure: Exception) -> str:
        if not self.stats.refresh_errors[reason]:  # once; the counter tells how often
            detail = repr(failure)
            if isinstance(failure, LaggardError):
                detail = f"{failure.what}: {failure.cause}"
            log.warning("%s: %s", reason, detail)
        self.stats.refresh_errors[reason] += 1
        return reason


def _published_at(batch: Batch) -> float:
    """Return the time at which the job published a batch, by the wall clock that it polled by."""
    taken = (batch.values["published_at"] or batch.polled_at) - batch.polled_at
    return (batch.clock_at + taken).timestamp()


def _identity(batch: Batch) -> tuple[object, ...]:
    return (batch.batch_id, batch.kind, batch.values["checkpoint_id"], batch.values["published_at"])
