"""Next start of the job without a write, and one batch of the offsets topic, read as a trial."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from laggard.doctor.result import NEXT_START, Result
from laggard.errors import DAMAGED, REFUSED, LaggardError
from laggard.failures import classify
from laggard.sources.offsets_topic import OffsetsSource, begin_positions, next_positions, unanswered
from laggard.sources.poll import Poller, PollOptions
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

MOST_RECORDS = 1000
_LOOKS = 3  # a job that runs may publish between two files that are read here


def check_trial(cluster: Cluster) -> Iterable[Result]:
    """Check that Spark sees every partition whose leader answers, and reads a batch to its end."""
    from laggard.stream.job.session import start_session

    config, partitions = cluster.config.cluster, len(cluster.topic["partitions"])
    if not partitions:
        yield Result(
            "warn",
            "trial query",
            "not tried, as the topic is not there",
            'first mend "offsets topic"',
        )
        return
    source = OffsetsSource.of(config)
    servers, seconds = source.bootstrap_servers, source.request_timeout_seconds
    poller = Poller(PollOptions(servers, source.topic, (), (), seconds, security=source.security))
    try:
        snapshot = poller.poll(1)
    finally:
        poller.close()
    parts = snapshot.offsets_partitions
    ends = next_positions({}, parts, MOST_RECORDS)
    spark = start_session(cluster.config.job.master, cluster.config.job.spark, config.security)
    try:
        rows = source.read(spark, begin_positions({}, ends, parts), ends, snapshot).select("offset")
        source.plan(rows, snapshot)
        records = sum(row.offset is not None for row in rows.collect())
    except Exception as error:
        raise classify(error) from error
    finally:
        spark.stop()
    if silent := unanswered(parts):
        fact = (
            f"the leaders of {len(silent)} of {partitions} partitions did not answer: "
            f"{sorted(silent)[:10]}"
        )
        yield Result("warn", "trial query", fact, "look at the brokers that lead them")
    fact = f"Spark read {records} records of {partitions - len(silent)} partitions in one batch"
    yield Result("ok", "trial query", fact)


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
    state = find_state(job.tables, job.checkpoint)
    identity = check_start(
        state, Identity(topic.cluster_id, topic.topic_id, job.tables, job.window_seconds)
    )
    stored_id = (state.identity or {}).get("checkpoint_id")
    is_next = follows_another(identity, state.batch_checkpoint_id)
    if state.has_checkpoint and not is_next and stored_id == identity.checkpoint_id:
        check_checkpoint(job.checkpoint)
        return f"goes on after batch {state.newest_batch_id} with the checkpoint {job.checkpoint}"
    if state.newest_batch_id is None:
        return f"begins with a new checkpoint {job.checkpoint}"
    fact = (
        f"makes a new checkpoint {job.checkpoint}, and goes on after batch {state.newest_batch_id}"
    )
    if identity.replaced_topic_id:
        fact += "; what commits are read from is another one, so that a gap row is written"
    return fact
