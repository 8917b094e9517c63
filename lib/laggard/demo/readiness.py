"""Wait until a started broker can be used: not when its port opens, but when it answers for the whole cluster."""

import socket
import time
from collections.abc import Collection

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from laggard.demo.node import HOST, Node
from laggard.errors import LaggardError

START_LIMIT_SECONDS = 180  # one node takes 2 to 3 s; the rest is for three of them on two busy cores
ROUND_TRIP_LIMIT_MS = 5000
RETRY_SECONDS = 0.1
REPORTED_LOG_LINES = 15
PORT_TAKEN = "Address already in use"


def await_ready(nodes: Collection[Node]) -> None:
    """Wait until each node answers and sees all of them registered under a known controller."""
    deadline = time.monotonic() + START_LIMIT_SECONDS
    for node in nodes:
        while not _is_ready(node, {other.id for other in nodes}):
            for other in nodes:  # any of them: one that ended keeps the others waiting for a quorum
                if not other.is_running:
                    raise _start_failure(other, "ended while starting")
            if time.monotonic() > deadline:
                raise _start_failure(node, f"was not ready after {START_LIMIT_SECONDS} s")
            time.sleep(RETRY_SECONDS)


def _is_ready(node: Node, expected_ids: set[int]) -> bool:
    try:
        # a client that cannot connect warns on the console, so ask for the port first
        socket.create_connection((HOST, node.port), timeout=ROUND_TRIP_LIMIT_MS / 1000).close()
        # connecting is a metadata round trip with this very node, which it answers once it is registered
        client = KafkaAdminClient(
            bootstrap_servers=node.address,
            bootstrap_timeout_ms=ROUND_TRIP_LIMIT_MS,
            request_timeout_ms=ROUND_TRIP_LIMIT_MS,
        )
    except (OSError, KafkaError):
        return False
    try:
        cluster = client.describe_cluster()
    except KafkaError:
        return False
    finally:
        client.close()
    usable = {broker["broker_id"] for broker in cluster["brokers"] if not broker.get("is_fenced", False)}
    return cluster["controller_id"] >= 0 and expected_ids <= usable


def _start_failure(node: Node, what: str) -> LaggardError:
    return LaggardError(f"Kafka node {node.id} {what}", cause=log_tail(node.printed()), fix=f"cat {node.settings}")


def log_tail(text: str) -> str:
    """The last lines that say something: no Java stack, no list of settings."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith(("\t", "    at "))]
    errors = [line for line in lines if " ERROR " in line or " FATAL " in line or "Exception" in line]
    return "\n  ".join((errors or lines)[-REPORTED_LOG_LINES:])
