"""Checks of the brokers and the offsets topic, and of our position in it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

from laggard import files
from laggard.config.sections import KAFKAS_OWN
from laggard.doctor.principal import allow, principal_of
from laggard.doctor.result import Result
from laggard.sources.brokers import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    Answer,
    Brokers,
    error_name,
    offsets_of,
)
from laggard.stream.job.identity import identity_path
from laggard.tables.published import newest_batch
from laggard.tables.readers import TableMissing

if TYPE_CHECKING:
    from laggard.config import Config

TOPIC_MISSING, TOPIC_DENIED = "UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED"
_MOST_NAMED = 5


@dataclass
class Cluster:
    """The brokers of a configuration, and what they said when first asked."""

    config: Config
    brokers: Brokers
    clock: Callable[[], float] = time.time
    # brokers and the offsets topic; None while none has answered
    metadata: dict[str, Any] | None = None

    @property
    def topic(self) -> dict[str, Any]:
        """The offsets topic as the metadata shows it, with its error code."""
        if self.metadata is None:
            return {"error_code": 0, "partitions": []}
        topic: dict[str, Any] = self.metadata["topics"][0]
        return topic

    def check_reach(self) -> Iterable[Result]:
        """Check that brokers answer, and that they are the ones of the checkpoint."""
        servers, seconds = (
            self.config.cluster.bootstrap_servers,
            self.config.cluster.request_timeout_seconds,
        )
        unreachable = find_unreachable(servers, seconds)
        named = _some(f"{address}: {reason}" for address, reason in unreachable.items())
        if len(unreachable) == len(set(servers)):
            remedy = (
                "check cluster.bootstrap_servers, that the brokers are up, and the firewalls on "
                "the way"
            )
            yield Result(
                "fail",
                "brokers",
                f"no address can be connected to: {named}",
                remedy,
            )
            return
        if unreachable:
            remedy = "start these brokers, or take them out of cluster.bootstrap_servers"
            yield Result("warn", "bootstrap addresses", f"cannot be connected to: {named}", remedy)
        self.metadata = self.brokers.metadata([self.config.cluster.offsets_topic])
        cluster_id = self.metadata.get("cluster_id") or ""
        number = len(self.metadata["brokers"])
        yield Result(
            "ok", "brokers", f"cluster {cluster_id or 'without an id'}, {_count(number, 'broker')}"
        )
        path = identity_path(self.config.job.checkpoint)
        if not files.exists(path):
            return
        stored = json.loads(files.read_text(path)).get("cluster_id")
        if stored == cluster_id:
            yield Result("ok", "cluster id", f"the one in {path}")
        else:
            remedy = (
                "point cluster.bootstrap_servers at that cluster, or set another job.tables and "
                "job.checkpoint"
            )
            yield Result(
                "fail",
                "cluster id",
                f"{cluster_id}, but {path} says {stored}",
                remedy,
            )


def find_unreachable(addresses: Iterable[str], seconds: float) -> dict[str, str]:
    """Return host:port addresses that did not connect in time, each with its reason.

    All are tried at once.
    """
    reasons = dict.fromkeys(addresses, f"no connection within {seconds:g} s")
    # a thread for each, left behind when late: looking up a name takes as long as the resolver
    # likes
    threads = []
    for address in reasons:
        arguments = (address, seconds, reasons)
        threads.append(Thread(target=_connect, args=arguments, daemon=True))
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    return {address: reason for address, reason in reasons.items() if reason}


def _connect(address: str, seconds: float, reasons: dict[str, str]) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    # a name or a port that cannot be is as unreachable
    except (OSError, UnicodeError, OverflowError) as error:
        reasons[address] = getattr(error, "strerror", None) or str(error)
    else:
        reasons[address] = ""


def if_reached(
    cluster: Cluster, name: str, check: Callable[[Cluster], Iterable[Result]]
) -> Iterable[Result]:
    """Yield the check's results, or a skipped result if the cluster was not reached.

    The check would only wait for the same silence again.
    """
    if cluster.metadata is None:
        return [
            Result(
                "warn", name, "not checked, as no broker answered", 'first mend the line "brokers"'
            )
        ]
    return check(cluster)


def check_listeners(cluster: Cluster) -> Iterable[Result]:
    """Check the addresses that brokers advertise to clients.

    They may be reachable only from elsewhere.
    """
    seconds = cluster.config.cluster.request_timeout_seconds
    brokers = (cluster.metadata or {}).get("brokers", [])
    by_address = {f"{broker['host']}:{broker['port']}": broker["node_id"] for broker in brokers}
    unreachable = find_unreachable(by_address, seconds)
    if not unreachable:
        shown = _some(
            f"{node} at {address}"
            for address, node in sorted(by_address.items(), key=lambda pair: pair[1])
        )
        yield Result("ok", "advertised listeners", f"a connection to each broker: {shown}")
        return
    named = _some(
        f"{by_address[address]} at {address}: {reason}" for address, reason in unreachable.items()
    )
    remedy = (
        "set advertised.listeners of these brokers to an address that this machine and Spark's "
        "executors reach"
    )
    yield Result(
        "fail",
        "advertised listeners",
        f"no connection to broker {named}",
        remedy,
    )


def check_source(cluster: Cluster) -> Iterable[Result]:
    """Check the offsets topic, its log start against our position, and open transactions."""
    name, topic = cluster.config.cluster.offsets_topic, cluster.topic
    problem = error_name(topic["error_code"])
    if problem is not None:
        yield evaluate_topic_error(cluster.config, problem)
        return
    yield Result(
        "ok", "offsets topic", f"{name} has {_count(len(topic['partitions']), 'partition')}"
    )
    by_leader: dict[int, list[tuple[str, int]]] = {}
    for part in topic["partitions"]:
        by_leader.setdefault(part["leader_id"], []).append((name, part["partition_index"]))
    leaderless = by_leader.pop(-1, [])
    if leaderless:
        fact = f"no leader for partitions {_some(sorted(part for _, part in leaderless))}"
        yield Result(
            "fail",
            "offsets topic leaders",
            fact,
            "start the brokers that hold them",
        )
    yield from _check_ends(cluster, by_leader)


def _check_ends(cluster: Cluster, by_leader: dict[int, list[tuple[str, int]]]) -> Iterable[Result]:
    """Open transactions and our position, by the offsets that the leaders answer."""
    asked = [(LATEST, READ_COMMITTED), (LATEST, 0), (EARLIEST, 0)]
    answers = [cluster.brokers.list_offsets(by_leader, *request) for request in asked]
    failed = _errors(answers)
    if failed:
        fact = "no answer for partitions " + _some(
            f"{part}: {error}" for part, error in sorted(failed.items())
        )
        yield Result(
            "fail",
            "offsets topic ends",
            fact,
            "look at the logs of the brokers that lead them; ask again",
        )
    if not by_leader:
        return
    stable, high, starts = map(_offsets, answers)
    results = [evaluate_transactions(high, stable)]
    with suppress(TableMissing):
        batch = newest_batch(cluster.config.job.tables)
        if batch is not None:
            results.append(evaluate_position(starts, batch.values["source_to"] or {}))
    # what some brokers did not tell leaves the others' troubles as they are, and nothing is said to
    # be all right
    yield from (result for result in results if not failed or result.level != "ok")


def evaluate_topic_error(config: Config, problem: str) -> Result:
    """Evaluate an error of the topic; a topic not created yet is no failure, as the job waits."""
    name = config.cluster.offsets_topic
    if problem == TOPIC_DENIED:
        command = allow(config, "Describe", "Read", resource=("--topic", name))
        fact = f"{name}: Describe is denied to {principal_of(config.cluster.security)} ({problem})"
        fact += '; a cluster that hides it is watched with cluster.source = "admin"'
        return Result("fail", "offsets topic", fact, command)
    if problem == TOPIC_MISSING and name == KAFKAS_OWN:
        fact = f"{name} does not exist yet: no group of this cluster has ever committed"
        remedy = "commit with any group: Kafka creates it then; laggard run waits"
        return Result("warn", "offsets topic", fact, remedy, is_ahead=True)
    if problem == TOPIC_MISSING:
        fact = f"{name} does not exist, and Kafka creates only {KAFKAS_OWN} by itself"
        return Result("fail", "offsets topic", fact, "check cluster.offsets_topic")
    return Result(
        "fail",
        "offsets topic",
        f"{name}: {problem}",
        "look at the log of the controller; ask again",
    )


def evaluate_transactions(high: Mapping[int, int], stable: Mapping[int, int]) -> Result:
    """Open transactions freeze the groups of their offsets partition."""
    behind = {}
    for part in high.keys() & stable.keys():
        if high[part] > stable[part]:
            behind[part] = high[part] - stable[part]
    if not behind:
        return Result(
            "ok", "open transactions", "the last stable offset is the high watermark everywhere"
        )
    fact = "records behind open transactions: " + _some(
        f"{part}: {number}" for part, number in sorted(behind.items())
    )
    remedy = "ask again; if they stay: kafka-transactions.sh find-hanging, then abort"
    return Result("warn", "open transactions", fact, remedy)


def evaluate_position(starts: Mapping[int, int], positions: Mapping[int, int]) -> Result:
    """Evaluate the position; records after the newest batch are lost if the log starts later."""
    lost = sorted(part for part, position in positions.items() if starts.get(part, 0) > position)
    if not lost:
        return Result("ok", "position", "everything after the newest batch can still be read")
    fact = f"the log starts after our position in offsets partitions {_some(lost)}"
    return Result(
        "warn", "position", fact, "start the job: it writes gap rows for what was removed"
    )


def _errors(answers: Iterable[Mapping[tuple[str, int], Answer]]) -> dict[int, str]:
    errors: dict[int, str] = {}
    for answer in answers:
        for (_, part), end in answer.items():
            if end.error:
                errors[part] = end.error
    return errors


def _offsets(answers: Mapping[tuple[str, int], Answer]) -> dict[int, int]:
    return {part: offset for (_, part), offset in offsets_of(answers).items()}


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


def _some(values: Iterable[Any]) -> str:
    shown = list(map(str, values))
    text = ", ".join(shown[:_MOST_NAMED])
    if len(shown) > _MOST_NAMED:
        text += " …"
    return text
