"""Requests to the brokers, each with a deadline, and failures as Kafka error names instead of exceptions."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeConfigsRequest, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from laggard import errors

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC, BROKER = 2, 4  # org.apache.kafka.common.config.ConfigResource.Type
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
GONE = ("KafkaConnectionError", "NodeNotReadyError")
RETRY_SECONDS, RETRY_LIMIT_SECONDS = 0.02, 2.0  # the client's first back-off from a broker that was gone is 50 ms
TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """An offset, or the name of the error that stands in its place; and the record's timestamp if asked by time."""

    offset: int | None
    error: str | None
    timestamp_ms: int | None = None


class Brokers:
    """One kafka-python client; it only asks, never writes, and creates no topic."""

    def __init__(self, bootstrap_servers: Sequence[str], timeout_seconds: float) -> None:
        self._bootstrap_servers = list(bootstrap_servers)
        self._timeout_ms = int(timeout_seconds * 1000)
        self._admin: KafkaAdminClient | None = None
        self.requests: Counter[str] = Counter()  # api -> requests
        self.failures: Counter[tuple[str, str]] = Counter()  # (api, error) -> failed requests

    def metadata(self, topics: Sequence[str] | None) -> dict[str, Any]:
        """Brokers, cluster id and topics with ids, partitions and leaders; None asks for all topics."""
        names = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        answer = self.ask("metadata", request)
        if isinstance(answer, str):
            raise errors.LaggardError(
                f"cannot read metadata from {', '.join(self._bootstrap_servers)}",
                cause=answer,
                fix="check cluster.bootstrap_servers and that the brokers are up",
                exit_code=errors.UNREACHABLE,
            )
        metadata: dict[str, Any] = answer.to_dict()
        return metadata

    def list_offsets(
        self, partitions: Mapping[int, Iterable[TopicPartition]], timestamp: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, Answer]:
        """Offsets of partitions grouped by leader; one request per leader, all at once."""
        asked = {leader: list(wanted) for leader, wanted in partitions.items()}
        requests = {leader: _list_offsets_request(wanted, timestamp, isolation) for leader, wanted in asked.items()}
        answers: dict[TopicPartition, Answer] = {}
        for leader, response in self._ask("list_offsets", requests).items():
            if isinstance(response, str):
                answers |= {wanted: Answer(None, response) for wanted in asked[leader]}
                continue
            for topic in response.topics:
                for part in topic.partitions:
                    name = error_name(part.error_code)
                    answer = Answer(None, name) if name else Answer(part.offset, None, part.timestamp)
                    answers[topic.name, part.partition_index] = answer
        return answers

    def configs(
        self, kind: int, names: Sequence[str], wanted: Sequence[str], broker: int | None = None
    ) -> dict[str, dict[str, str | None]] | None:
        """Configuration by name of topic or broker, without those we may not see; None if nobody answered."""
        resources = [
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=list(wanted)
            )
            for name in names
        ]
        answer = self.ask("describe_configs", DescribeConfigsRequest(resources=resources, min_version=1), broker)
        if isinstance(answer, str):
            return None
        return {
            each.resource_name: {config.name: config.value for config in each.configs}
            for each in answer.results
            if not each.error_code
        }

    def list_groups(self, brokers: Iterable[int]) -> list[dict[str, Any]]:
        """Groups and their states from every broker that answered."""
        groups: list[dict[str, Any]] = []
        for response in self._ask(
            "list_groups", {broker: ListGroupsRequest(min_version=0) for broker in brokers}
        ).values():
            if not isinstance(response, str) and not error_name(response.error_code):
                groups += [group.to_dict() for group in response.groups]
        return groups

    def ask(self, api: str, request: Any, broker: int | None = None) -> Any:
        """The response of one broker, of any when None; an error name in its place."""
        answer = self._ask(api, {broker: request})[broker]
        until = time.monotonic() + min(self._timeout_ms / 1000, RETRY_LIMIT_SECONDS)
        while isinstance(answer, str) and answer in GONE and time.monotonic() < until:
            time.sleep(RETRY_SECONDS)  # the client picks a broker by chance, and avoids one that it found gone
            answer = self._ask(api, {broker: request})[broker]
        return answer

    def close(self) -> None:
        """Drop the connection; the next request opens a new one."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _ask(self, api: str, requests: Mapping[Any, Any]) -> dict[Any, Any]:
        """Send all requests side by side; a response, or an error name, for each broker."""
        self.requests[api] += len(requests)
        try:
            # the client's public calls raise on the first bad partition, this one does not
            answers: dict[Any, Any] = self._client()._manager.run(self._gather, requests)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - an unreachable cluster is data for the poll
            self.close()
            answers = dict.fromkeys(requests, type(error).__name__)
        for answer in answers.values():
            if isinstance(answer, str):
                self.failures[api, answer] += 1
        return answers

    def _client(self) -> KafkaAdminClient:
        if self._admin is None:
            logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it logs every retry, and its passwords at DEBUG
            self._admin = _connect(
                bootstrap_servers=self._bootstrap_servers,
                client_id="laggard",
                request_timeout_ms=self._timeout_ms,
                bootstrap_timeout_ms=self._timeout_ms,
                reconnect_backoff_max_ms=1000,
            )
        return self._admin

    async def _gather(self, requests: Mapping[Any, Any]) -> dict[Any, Any]:
        manager = self._client()._manager  # noqa: SLF001 - as above
        deadline = time.monotonic() + self._timeout_ms / 1000
        futures = {broker: manager.send(request, node_id=broker) for broker, request in requests.items()}
        answers: dict[Any, Any] = {}
        for broker, future in futures.items():
            left_ms = max(1, int((deadline - time.monotonic()) * 1000))
            try:
                answers[broker] = await manager.wait_for(future, left_ms)
            except Exception as error:  # noqa: BLE001 - one broker's failure is its partitions' error name
                answers[broker] = type(error).__name__
        return answers


def _connect(**settings: Any) -> KafkaAdminClient:
    """A connected client; a constructor that fails has started a thread and sockets, which it leaves behind."""
    client = KafkaAdminClient.__new__(KafkaAdminClient)
    try:
        client.__init__(**settings)
    except BaseException:
        for name, end in (("_client", "close"), ("_net", "stop")):
            if hasattr(client, name):
                getattr(getattr(client, name), end)()
        raise
    return client


def error_name(code: int) -> str | None:
    """Kafka's name of an error code, e.g. UNKNOWN_TOPIC_OR_PARTITION; None for no error."""
    if code == 0:
        return None
    found = kafka.errors.for_code(code)
    return str(getattr(found, "message", "") or found.__name__)


def _list_offsets_request(wanted: Iterable[TopicPartition], timestamp: int, isolation: int) -> ListOffsetsRequest:
    by_topic: dict[str, list[Any]] = {}
    for topic, partition in wanted:
        part = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        by_topic.setdefault(topic, []).append(part)
    return ListOffsetsRequest(
        isolation_level=isolation,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts) for name, parts in by_topic.items()],
        min_version=7 if timestamp == MAX_TIMESTAMP else 2 if isolation else 1,
    )
