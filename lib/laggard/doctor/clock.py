"""Measure how far the cluster's clock is from ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeQuorumRequest

from laggard.doctor.principal import allow
from laggard.doctor.result import Result
from laggard.doctor.rights import DENIED
from laggard.sources.brokers import error_name

if TYPE_CHECKING:
    from laggard.doctor.cluster import Cluster

LIMIT_MS = 1000  # time lag is in seconds
CHECK = "clock of the controller"
COMPARE = "compare `date -u` here and on the brokers, or `chronyc tracking`"


def check_clock(cluster: Cluster) -> Iterable[Result]:
    """Compare the active controller's clock with ours.

    No request of Kafka returns the clock of another broker.

    Records tell less: one that is old says nothing, and one that is new may have been stamped by
    its producer.
    """
    sent_ms = cluster.clock() * 1000
    response = cluster.brokers.ask("describe_quorum", _request())
    received_ms = cluster.clock() * 1000
    problem = response
    if not isinstance(response, str):
        problem = error_name(response.error_code or response.topics[0].partitions[0].error_code)
    if problem in DENIED:
        command = allow(cluster.config, "Describe", resource=("--cluster",))
        yield Result(
            "warn", CHECK, f"unknown: Describe on the cluster is denied ({problem})", command
        )
        return
    if problem is not None:
        yield Result("warn", CHECK, f"unknown: {problem}", COMPARE)
        return
    part = response.topics[0].partitions[0]
    # KIP-836: a leader gives the time of its answer as its own last fetch
    fetched = {voter.replica_id: voter.last_fetch_timestamp for voter in part.current_voters}
    clock_ms = fetched.get(part.leader_id)
    if clock_ms is None or clock_ms < 0:  # Kafka 3.3 tells no times
        yield Result("warn", CHECK, "unknown: this Kafka does not report it", COMPARE)
        return
    yield evaluate_clock(part.leader_id, clock_ms, sent_ms, received_ms)


def evaluate_clock(controller: int, clock_ms: float, sent_ms: float, received_ms: float) -> Result:
    """Evaluate the difference of the clocks as a range.

    Their clock was read at some moment between request and response.
    """
    least, most = (clock_ms - received_ms) / 1000, (clock_ms - sent_ms) / 1000
    limit = LIMIT_MS / 1000
    who = f"node {controller} is"
    if least > limit or most < -limit:
        near, far = sorted((abs(least), abs(most)))
        side = "ahead of" if least > 0 else "behind"
        fact = (
            f"{who} {near:.2f} to {far:.2f} s {side} this machine: time lags are wrong by as much"
        )
        return Result("warn", CHECK, fact, "synchronise both by NTP; " + COMPARE)
    farthest = max(abs(least), abs(most))
    if farthest <= limit:
        return Result("ok", CHECK, f"{who} at most {farthest:.2f} s from this machine")
    fact = f"unknown: the answer took {most - least:.2f} s, too long to tell"
    return Result("warn", CHECK, fact, "ask again; " + COMPARE)


def _request() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    part = topic.PartitionData(partition_index=0)
    return DescribeQuorumRequest(topics=[topic(topic_name="__cluster_metadata", partitions=[part])])
