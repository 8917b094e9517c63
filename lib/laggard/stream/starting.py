"""Before the query: wait for the cluster, and refuse tables and a checkpoint that do not belong together."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from threading import Event
from typing import TYPE_CHECKING

from laggard import errors, files
from laggard.errors import LaggardError
from laggard.sources.brokers import Brokers
from laggard.sources.readiness import NotReadyYet, OffsetsTopic, find_offsets_topic
from laggard.stream.identity import Identity, find_state, identity_path, judge_start, starts_anew, to_json
from laggard.tables.delta import create_tables

if TYPE_CHECKING:
    from laggard.config.sections import Cluster, Job

log = logging.getLogger("laggard.job")
SAY_EVERY_SECONDS = 10.0


def wait_for_offsets_topic(cluster: Cluster, stopping: Event) -> OffsetsTopic | None:
    """The offsets topic once it exists; says every 10 s what is missing. None when stopped meanwhile."""
    brokers = Brokers(cluster.bootstrap_servers, cluster.request_timeout_seconds)
    said_at, backoff = 0.0, 1.0
    try:
        while not stopping.is_set():
            try:
                return find_offsets_topic(brokers, cluster.offsets_topic)
            except NotReadyYet as reason:
                if time.monotonic() - said_at >= SAY_EVERY_SECONDS:
                    log.warning("waiting: %s", reason)
                    said_at = time.monotonic()
            stopping.wait(backoff)
            backoff = min(backoff * 1.5, 5.0)
    finally:
        brokers.close()
    return None


def look_up(cluster: Cluster) -> OffsetsTopic | None:
    """The offsets topic by one question to the brokers; None if they do not answer it."""
    brokers = Brokers(cluster.bootstrap_servers, cluster.request_timeout_seconds)
    try:
        return find_offsets_topic(brokers, cluster.offsets_topic)
    except (NotReadyYet, LaggardError):
        return None
    finally:
        brokers.close()


def prepare(job: Job, topic: OffsetsTopic) -> Identity:
    """Create what is missing and refuse what does not belong together, before anything expensive starts."""
    create_tables(job.tables)
    wanted = Identity(topic.cluster_id, topic.topic_id, job.tables, job.window_seconds)
    found = find_state(job.tables, job.checkpoint)
    identity = judge_start(found, wanted)
    anew = starts_anew(identity, found.batch_checkpoint_id)
    stored_id = (found.identity or {}).get("checkpoint_id", "")
    if found.has_checkpoint and not anew and stored_id != identity.checkpoint_id:
        # before the new identity: without rows, nothing else would tell it is old
        _set_aside(job.checkpoint, stored_id)
    if found.identity != asdict(identity):
        files.write_text(identity_path(job.checkpoint), to_json(identity))
    if found.has_checkpoint and anew:
        _set_aside(job.checkpoint, identity.replaces)
    return identity


def _set_aside(checkpoint: str, checkpoint_id: str) -> None:
    try:
        kept = files.set_aside(checkpoint, checkpoint_id)
    except (OSError, NotImplementedError) as error:
        raise LaggardError(
            "the offsets topic was recreated, and the old checkpoint cannot be moved out of the way",
            cause=str(error),
            fix=f"move {checkpoint} aside yourself, keep its .laggard.json, and start again",
            exit_code=errors.REFUSED,
        ) from error
    log.warning("the offsets topic was recreated: starting anew on its records, the old checkpoint is %s", kept)
