"""The next start of the job: what it would create, and refusals of tables or checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from laggard.doctor.result import NEXT_START, Result
from laggard.errors import DAMAGED, REFUSED, LaggardError
from laggard.sources.readiness import NotReadyYet, find_source
from laggard.stream.job.checkpoint import check_checkpoint
from laggard.stream.job.identity import Identity, check_start, find_state, follows_another
from laggard.stream.job.rights import check_rights
from laggard.tables.readers import has_table
from laggard.tables.schema.schemas import TABLES

if TYPE_CHECKING:
    from laggard.config.sections import Job
    from laggard.doctor.cluster import Cluster
    from laggard.sources.readiness import OffsetsTopic

_LOOKS = 3  # a job that runs may publish between two files that are read here


def check_next_start(cluster: Cluster) -> Iterable[Result]:
    """Run the job's own preparation without a write; a refusal here would end the job too."""
    job = cluster.config.job
    check_rights(job)
    lacking = sum(not has_table(job.tables, name) for name in TABLES)
    facts = [f"makes {lacking} of {len(TABLES)} tables in {job.tables}"] if lacking else []
    try:
        topic = find_source(cluster.brokers, cluster.config.cluster)
    except (NotReadyYet, LaggardError):
        facts.append("waits for the offsets topic")  # whose own line says why
    else:
        facts.append(_look(job, topic))
    yield Result("ok", NEXT_START, "; ".join(facts))


def _look(job: Job, topic: OffsetsTopic) -> str:
    for look in range(1, _LOOKS + 1):
        try:
            return _next_checkpoint(job, topic)
        except LaggardError as error:
            if look == _LOOKS or error.exit_code not in (REFUSED, DAMAGED):
                raise
    raise AssertionError


def _next_checkpoint(job: Job, topic: OffsetsTopic) -> str:
    found = find_state(job.tables, job.checkpoint)
    identity = check_start(
        found, Identity(topic.cluster_id, topic.topic_id, job.tables, job.window_seconds)
    )
    stored_id = (found.identity or {}).get("checkpoint_id")
    is_next = follows_another(identity, found.batch_checkpoint_id)
    if found.has_checkpoint and not is_next and stored_id == identity.checkpoint_id:
        check_checkpoint(job.checkpoint)
        return f"goes on after batch {found.newest_batch_id} with the checkpoint {job.checkpoint}"
    if found.newest_batch_id is None:
        return f"begins with a new checkpoint {job.checkpoint}"
    fact = (
        f"makes a new checkpoint {job.checkpoint}, and goes on after batch {found.newest_batch_id}"
    )
    if identity.replaced_topic_id:
        fact += "; what commits are read from is another one, so that a gap row is written"
    return fact
