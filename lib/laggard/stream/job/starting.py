"""Steps before the query: wait for the cluster, and refuse mismatched tables and checkpoint.

After a failure: decide by its class if the query is started again, and after how long.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from laggard import files
from laggard.errors import DENIED, INTERNAL, REFUSED, TEMPORARY, UNREACHABLE, LaggardError
from laggard.sources.brokers import Brokers
from laggard.sources.readiness import NotReadyYet, OffsetsTopic, find_source
from laggard.stream.job.checkpoint import check_checkpoint
from laggard.stream.job.identity import (
    Found,
    Identity,
    check_start,
    find_state,
    follows_another,
    identity_path,
    to_json,
)
from laggard.stream.job.rights import check_rights
from laggard.tables.delta import create_tables
from laggard.tables.unpublished import remove_unpublished

if TYPE_CHECKING:
    from laggard.config.sections import Cluster, Job
    from laggard.tables.lease import Lease

log = logging.getLogger("laggard.job")
SAY_EVERY_SECONDS = 10.0
ONE_RUN_SECONDS = 120.0  # that --once waits: a cold cluster needs some, and a cron job has to end
_KEPT_ASIDE = 2


def wait_for_offsets_topic(
    cluster: Cluster, stopping: Event, beat: Callable[[str], None], *, once: bool = False
) -> OffsetsTopic | None:
    """Wait for the offsets topic, or its replacement, and return it.

    Missing parts are logged every 10 s.

    None when stopped meanwhile. With `once` a LaggardError after two minutes.
    """
    brokers = Brokers.of(cluster)
    began, said_at, backoff = time.monotonic(), 0.0, 1.0
    try:
        while not stopping.is_set():
            beat("waiting for the offsets topic")
            try:
                return find_source(brokers, cluster)
            except NotReadyYet as reason:
                if once and time.monotonic() - began >= ONE_RUN_SECONDS:
                    raise LaggardError(
                        f"gave up waiting for {cluster.offsets_topic} after "
                        f"{ONE_RUN_SECONDS:.0f} s",
                        cause=str(reason),
                        fix="run it again once the cluster is there; without --once the job "
                        "waits until it is",
                        exit_code=TEMPORARY,
                    ) from reason
                if time.monotonic() - said_at >= SAY_EVERY_SECONDS:
                    log.warning("waiting: %s", reason)
                    said_at = time.monotonic()
            stopping.wait(backoff)
            backoff = min(backoff * 1.5, 5.0)
    finally:
        brokers.close()
    return None


def look_up(cluster: Cluster) -> OffsetsTopic | None:
    """Return the source of commits by one request to the brokers; None if they do not answer it."""
    brokers = Brokers.of(cluster)
    try:
        return find_source(brokers, cluster)
    except (NotReadyYet, LaggardError):
        return None
    finally:
        brokers.close()


def prepare(job: Job, topic: OffsetsTopic, lease: Lease | None = None) -> Identity:
    """Create missing parts and refuse mismatched ones, before anything expensive starts."""
    check_rights(job)
    create_tables(job.tables, lease=lease)
    state = find_state(job.tables, job.checkpoint)
    identity = check_start(
        state, Identity(topic.cluster_id, topic.topic_id, job.tables, job.window_seconds)
    )
    settle(job, state, identity, lease)
    with suppress(OSError):
        remove_old(job.checkpoint, identity.checkpoint_id)
    return identity


def settle(job: Job, state: Found, identity: Identity, lease: Lease | None) -> None:
    """Make tables and checkpoint those of the identity; the next start repeats a cut-off run."""
    is_next = follows_another(identity, state.batch_checkpoint_id)
    stored_id = (state.identity or {}).get("checkpoint_id", "")
    if state.has_checkpoint and not is_next and stored_id == identity.checkpoint_id:
        check_checkpoint(job.checkpoint)
    else:
        _make_way(job, state, stored_id or identity.replaces, is_next=is_next, lease=lease)
    if state.identity != asdict(identity):
        files.write_text(identity_path(job.checkpoint), to_json(identity))
    if is_next and state.newest_batch_id is not None:
        remove_unpublished(job.tables, state.newest_batch_id, lease)


def _make_way(
    job: Job, state: Found, checkpoint_id: str, *, is_next: bool, lease: Lease | None
) -> None:
    """Put the old checkpoint aside before the identity of a new one is written."""
    if is_next and not state.has_checkpoint:
        log.warning(
            "the checkpoint is missing: going on after batch %s of the tables",
            state.newest_batch_id,
        )
    put_aside(job.checkpoint, checkpoint_id)  # its commits would be taken for those of the new one
    if state.newest_batch_id is None:  # otherwise its rows would be published as the first batch's
        remove_unpublished(job.tables, -1, lease)


def remove_old(checkpoint: str, checkpoint_id: str) -> None:
    """Remove all but the newest two checkpoints put aside, and other ids' diagnosis files.

    A disk may be small.
    """
    path = files.locate(checkpoint)
    if not files.is_local(path):
        return
    beside = {
        entry: entry.name.removeprefix(f"{Path(path).name}.")
        for entry in Path(path).parent.iterdir()
    }
    aside = [entry for entry, name in beside.items() if re.fullmatch(r"[0-9a-f]{32}(\.\d+)?", name)]
    aside.sort(key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
    evaluated = [
        entry for entry, name in beside.items() if re.fullmatch(r"diagnose-[0-9a-f]{8}", name)
    ]
    for entry in (*aside[_KEPT_ASIDE:], *evaluated):
        if entry.name != f"{Path(path).name}.diagnose-{checkpoint_id[:8]}":
            shutil.rmtree(entry, ignore_errors=True)


def put_aside(checkpoint: str, checkpoint_id: str) -> None:
    """Rename the checkpoint that is in the way of a new one."""
    try:
        aside = files.set_aside(checkpoint, checkpoint_id or "old")
    except (OSError, NotImplementedError) as error:
        raise LaggardError(
            "the old checkpoint cannot be moved out of the way",
            cause=str(error),
            fix=f"move {checkpoint} aside yourself, keep its .laggard.json, and start again",
            exit_code=REFUSED,
        ) from error
    if aside is not None:
        log.warning("starting with a new checkpoint, the old one is %s", aside)


MAX_WAIT_SECONDS = 60.0
GIVE_UP_SECONDS = 600.0  # without a published batch
INTERNAL_TRIES = 3  # of one batch; what fails the same way each time is not tried for ever
PASSING = (TEMPORARY, UNREACHABLE)


class Retries:
    """Back-off from 1 to 60 s for what passes by itself; `published` ends a row of failures."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._has_published = False
        self._reset()

    def _reset(self) -> None:
        self._wait_seconds = 1.0
        self._failing_since: float | None = None
        self._internal = 0

    def published(self) -> None:
        """Note that a batch was published."""
        self._has_published = True
        self._reset()

    def next_wait(self, failure: LaggardError) -> float:
        """Return the seconds to wait before the next try; raise the failure if there is none."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        if not self._is_tried_again(failure):
            raise failure
        if now - self._failing_since >= GIVE_UP_SECONDS:
            raise given_up(failure)
        wait, self._wait_seconds = self._wait_seconds, min(2 * self._wait_seconds, MAX_WAIT_SECONDS)
        return wait

    def _is_tried_again(self, failure: LaggardError) -> bool:
        if failure.exit_code == DENIED:
            # at start it is a mistake, later perhaps a rotation of secrets
            return self._has_published
        if failure.exit_code == INTERNAL:
            self._internal += 1
            return self._internal <= INTERNAL_TRIES
        return failure.exit_code in PASSING


def given_up(failure: LaggardError) -> LaggardError:
    """Return the failure after the last try; if it should have passed, exit with TEMPORARY."""
    code = TEMPORARY if failure.exit_code in PASSING else failure.exit_code
    cause = (
        f"{failure.cause}; no batch was published for {GIVE_UP_SECONDS / 60:.0f} minutes"
    ).removeprefix("; ")
    error = LaggardError(failure.what, cause=cause, fix=failure.fix, exit_code=code)
    error.__cause__ = failure.__cause__
    return error
