"""One body from the refreshers of all table roots; a missing or hung root costs only its series."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import Event, Lock, Thread
from typing import Final

from laggard.errors import CONFIGURATION, LaggardError
from laggard.escape import escape_label
from laggard.exporter.body.render import (
    DataPart,
    View,
    merge_data,
    pipeline_families,
    render_bodies,
)
from laggard.exporter.collectors.own import SelfStats
from laggard.exporter.options import ExporterOptions
from laggard.exporter.published import Published, Shown
from laggard.exporter.refresh import Refresher
from laggard.files import locate
from laggard.tables.freshness import is_fresh

log = logging.getLogger("laggard.exporter")
TWICE: Final = "duplicate_cluster"
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Root:
    """Hold what one refresher knows, under the name that no other root has."""

    view: View
    data: DataPart | None
    shown: Shown


class Publisher:
    """Holds the refreshers, and `published`, made again after each look of one of them."""

    def __init__(
        self, options: ExporterOptions, stats: SelfStats, clock: Callable[[], float] = time.time
    ) -> None:
        _refuse_twins(options.tables)
        count = len(options.tables)
        # each root has its share, so that one that grows does not push out the others
        share = replace(options, max_series=options.max_series // count)
        self._configured = options.cluster
        self._stats = stats
        self._clock = clock
        self._lock = Lock()
        self._stop = Event()
        self._merged: tuple[tuple[DataPart, ...], DataPart] | None = None
        self._twins: set[int] = set()
        self.refreshers = []
        for root in options.tables:
            own = stats if count == 1 else SelfStats()
            self.refreshers.append(Refresher(root, share, own, clock, self.publish))
        self.published = self._made()
        self._thread = Thread(target=self._watch_ages, name="ages", daemon=True)

    def start(self) -> None:
        for refresher in self.refreshers:
            refresher.start()
        if len(self.refreshers) > 1:
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        for refresher in self.refreshers:
            refresher.stop()

    def join(self, limit_seconds: float) -> None:
        """Wait for the looks under way, but no longer than the limit."""
        deadline = time.monotonic() + limit_seconds
        for refresher in self.refreshers:
            refresher.join(max(0.0, deadline - time.monotonic()))

    def publish(self) -> None:
        """Make the bodies again; called by the refreshers' threads."""
        with self._lock:
            self.published = self._made()

    def refuse_twice(self) -> None:
        """Raise where two roots are of one cluster."""
        if self._twins:
            roots = ", ".join(self.refreshers[index].root for index in sorted(self._twins))
            raise LaggardError(
                "two table roots are of one cluster, whose series would come twice",
                cause=f"another root before it has the cluster of {roots}",
                fix="give each job its own cluster.name, or leave one root out of --tables",
                exit_code=CONFIGURATION,
            )

    def _watch_ages(self) -> None:
        """Take out what has become too old, also while its root hangs."""
        while not self._stop.wait(_LOOK_SECONDS):
            now, shown = self._clock(), self.published.roots
            carried = filter(attrgetter("has_data"), shown)
            if not all(is_fresh(root.polled_at, now, root.max_age_seconds) for root in carried):
                try:
                    self.publish()
                except Exception:
                    log.exception("the body could not be made")

    def _made(self) -> Published:
        now, roots = self._clock(), self._roots()
        parts: list[DataPart] = []
        shown: list[Shown] = []
        views: list[View] = []
        for root in roots:
            is_carried = root.data is not None and is_fresh(
                root.shown.polled_at, now, root.shown.max_age_seconds
            )
            if root.data and is_carried:
                parts.append(root.data)
            snapshot, reason = None, root.view.reason
            if is_carried:
                snapshot, reason = root.view.snapshot, ""
            shown.append(replace(root.shown, has_data=is_carried, snapshot=snapshot))
            views.append(replace(root.view, reason=reason))
        own = render_bodies(None, [root.view for root in roots], self._stats)
        full = None
        if parts:
            full = render_bodies(self._data(parts), views, self._stats)
        return Published(own, tuple(shown), full)

    def _roots(self) -> list[_Root]:
        """Return the roots in the order of the options.

        Of two roots with the same cluster, the later is not shown.

        Found out each time from what is known then, so that nothing is held by a root that has
        changed.
        """
        taken: set[str] = set()
        twins: set[int] = set()
        roots: list[_Root] = []
        for index, refresher in enumerate(self.refreshers):
            snapshot, data, reason = refresher.known
            cluster = snapshot.cluster if snapshot else self._configured
            if snapshot and escape_label(cluster) in taken:
                twins.add(index)
                snapshot, data, reason = None, None, TWICE
            if snapshot is None and len(self.refreshers) > 1:
                cluster = f"tables {index + 1}"  # and no path, since /-/ready asks for no password
                while escape_label(cluster) in taken:
                    cluster += "'"
            taken.add(escape_label(cluster))
            shown = Shown(
                cluster, reason, max_age_seconds=refresher.max_age_seconds, root=refresher.root
            )
            if snapshot:
                shown = replace(
                    shown, batch_id=snapshot.batch.batch_id, polled_at=snapshot.polled_at
                )
            roots.append(
                _Root(self._sound(View(cluster, reason, snapshot, refresher.stats)), data, shown)
            )
        self._note_twins(twins)
        return roots

    def _sound(self, view: View) -> View:
        """Return the view; of several, a view with an odd `batches` row has no snapshot.

        The other roots go on.
        """
        if len(self.refreshers) == 1:
            return view
        try:
            pipeline_families(view)
        except Exception:  # noqa: BLE001 - whatever it is, it is this root's own
            view.stats.refresh_errors["internal"] += 1
            return replace(view, snapshot=None)
        return view

    def _note_twins(self, twins: set[int]) -> None:
        for index in twins - self._twins:
            refresher = self.refreshers[index]
            refresher.stats.refresh_errors[TWICE] += 1
            log.error(
                "%s is not served: an earlier table root is of the same cluster", refresher.root
            )
        self._twins = twins

    def _data(self, parts: Sequence[DataPart]) -> DataPart:
        """Return the only part or all parts merged; merge again only after a replacement."""
        if len(parts) == 1:
            return parts[0]
        if self._merged is None or list(map(id, self._merged[0])) != list(map(id, parts)):
            self._merged = (tuple(parts), merge_data(parts))
        return self._merged[1]


def _refuse_twins(roots: Sequence[str]) -> None:
    counts = Counter(map(locate, roots))
    twins = sorted(root for root, number in counts.items() if number > 1)
    if twins:
        raise LaggardError(
            "a table root is given twice",
            cause=", ".join(twins),
            fix="name each root once, in --tables or exporter.tables",
            exit_code=CONFIGURATION,
        )
