"""Requests to the brokers with a deadline each, and failures as Kafka error names.

They raise no exceptions.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kafka.errors
from kafka.protocol.admin import DescribeConfigsRequest, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from laggard import errors
from laggard.sources.connections import Connections, Pending

if TYPE_CHECKING:
    from laggard.config.sections import Cluster
    from laggard.config.security import Security

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC, BROKER = 2, 4  # org.apache.kafka.common.config.ConfigResource.Type
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
GONE = ("KafkaConnectionError", "NodeNotReadyError")
# the client's first back-off from a broker that was gone is 50 ms
RETRY_SECONDS, RETRY_LIMIT_SECONDS = 0.02, 2.0
# Whether we may describe what does not exist tells whether we may describe everything: brokers look
# at rights first.
UNUSED_NAME = "laggard-doctor"
TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """An offset, or the name of the error in its place.

    It has the record's timestamp if asked by time.
    """

    offset: int | None
    error: str | None
    timestamp_ms: int | None = None


class Brokers:
    """Questions to the brokers; it only asks, never writes, and asks for no topic to be created.

    A broker that is asked for a coordinator (FindCoordinator) creates the offsets topic where there
    is none.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[str],
        timeout_seconds: float,
        security: Security | None = None,
    ) -> None:
        self._bootstrap_servers = list(bootstrap_servers)
        self._timeout_seconds = timeout_seconds
        self._connections = Connections(bootstrap_servers, timeout_seconds, security)
        self._refusal: errors.LaggardError | None = None
        self.requests: Counter[str] = Counter()  # api -> requests
        self.failures: Counter[tuple[str, str]] = Counter()  # (api, error) -> failed requests
        # api -> seconds of waiting for answers
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @classmethod
    def of(cls, cluster: Cluster) -> Brokers:
        """Return the brokers of a configured cluster."""
        return cls(cluster.bootstrap_servers, cluster.request_timeout_seconds, cluster.security)

    def begin(self) -> None:
        """Set one deadline, and count from 0, for all that is asked until the next call."""
        self.requests.clear()
        self.failures.clear()
        self.seconds.clear()
        self._refusal = None
        self._connections.begin()

    def allow(self, partitions: int, seconds: float = 0.0) -> None:
        """Move the deadline by `seconds` and the likely time to read about so many partitions."""
        self._connections.allow(partitions, seconds)

    @property
    def refusal(self) -> errors.LaggardError | None:
        """Return the reason for a refused login if every request since `begin` failed.

        There is no refusal if one broker answers.
        """
        if self.failures.total() < self.requests.total():
            return None
        return self._connections.failure or self._refusal

    @property
    def silent(self) -> frozenset[int]:
        """Ids of brokers that did not answer, and are not waited for until they do."""
        return self._connections.silent

    def metadata(self, topics: Sequence[str] | None) -> dict[str, Any]:
        """Return brokers, cluster id and topics with ids, partitions and leaders.

        None asks for all topics.
        """
        names = None
        if topics is not None:
            names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        answer = self.ask("metadata", request)
        if isinstance(answer, str):
            if failure := self._connections.failure:
                self._connections.forget_failure()
                self._refusal = failure
                raise failure
            raise errors.LaggardError(
                f"cannot read metadata from {', '.join(self._bootstrap_servers)}",
                cause=answer,
                fix="check cluster.bootstrap_servers and that the brokers are up",
                exit_code=errors.UNREACHABLE,
            )
        self._connections.learn(answer)
        metadata: dict[str, Any] = answer.to_dict()
        return metadata

    def list_offsets(
        self,
        partitions: Mapping[int, Iterable[TopicPartition]],
        timestamp: int,
        isolation: int = READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Answer]:
        """Return offsets of partitions grouped by leader; one request per leader, all at once."""
        return self.start_list_offsets(partitions, timestamp, isolation)()

    def start_list_offsets(
        self,
        partitions: Mapping[int, Iterable[TopicPartition]],
        timestamp: int,
        isolation: int = READ_UNCOMMITTED,
    ) -> Callable[[], dict[TopicPartition, Answer]]:
        """Start `list_offsets`; the returned function waits for it.

        A broker works in the order of requests.
        """
        asked: dict[int, list[TopicPartition]] = {}
        requests: dict[int, ListOffsetsRequest] = {}
        for leader, wanted in partitions.items():
            asked[leader] = list(wanted)
            requests[leader] = _list_offsets_request(asked[leader], timestamp, isolation)
        pending = self.start("list_offsets", requests)

        def wait() -> dict[TopicPartition, Answer]:
            answers: dict[TopicPartition, Answer] = {}
            for leader, response in pending().items():
                if isinstance(response, str):
                    answers |= dict.fromkeys(asked[leader], Answer(None, response))
                else:
                    answers |= _answers(response)
            return answers

        return wait

    def configs(
        self, kind: int, names: Sequence[str], wanted: Sequence[str], broker: int | None = None
    ) -> dict[str, dict[str, str | None]] | None:
        """Return the configuration of topics or a broker, by name; None without an answer.

        Configurations that we may not see are left out.
        """
        resources = [
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=list(wanted)
            )
            for name in names
        ]
        answer = self.ask(
            "describe_configs", DescribeConfigsRequest(resources=resources, min_version=1), broker
        )
        if isinstance(answer, str):
            return None
        configs: dict[str, dict[str, str | None]] = {}
        for result in answer.results:
            if not result.error_code:
                configs[result.resource_name] = {
                    config.name: config.value for config in result.configs
                }
        return configs

    def list_groups(self, brokers: Iterable[int]) -> list[dict[str, Any]]:
        """Return groups and their states from every broker that answered."""
        return self.start_list_groups(brokers)()[0]

    def start_list_groups(
        self, brokers: Iterable[int]
    ) -> Callable[[], tuple[list[dict[str, Any]], list[int]]]:
        """Start `list_groups`; the returned function waits and also returns failed brokers."""
        requests = {broker: ListGroupsRequest(min_version=0) for broker in brokers}
        pending = self.start("list_groups", requests)

        def wait() -> tuple[list[dict[str, Any]], list[int]]:
            listed: list[dict[str, Any]] = []
            failed: list[int] = []
            for broker, answer in sorted(pending().items()):
                if isinstance(answer, str) or answer.error_code:
                    failed.append(broker)
                else:
                    listed += (as_dict(group) | {"coordinator": broker} for group in answer.groups)
            return listed, failed

        return wait

    def ask(self, api: str, request: Any, broker: int | None = None) -> Any:
        """Ask one broker, or any if None, and return its response, or the name of the error."""
        until = time.monotonic() + min(self._timeout_seconds, RETRY_LIMIT_SECONDS)
        while True:
            if broker is None:
                self.requests[api] += 1
                began = time.monotonic()
                answer = self._connections.ask_any(request)
                self.seconds[api] += time.monotonic() - began
                self._count_failures(api, [answer])
            else:
                answer = self.start(api, {broker: request})()[broker]
            if not isinstance(answer, str) or answer not in GONE or time.monotonic() >= until:
                return answer
            time.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Drop the connections; the next request opens new ones."""
        self._connections.close()

    def start(self, api: str, requests: Mapping[int, Any]) -> Pending:
        """Send each broker its request; the result waits for responses or error names."""
        self.requests[api] += len(requests)
        pending = self._connections.start(requests)

        def wait() -> dict[int, Any]:
            began = time.monotonic()
            answers = pending()
            self.seconds[api] += time.monotonic() - began
            self._count_failures(api, answers.values())
            return answers

        return wait

    def _count_failures(self, api: str, answers: Iterable[Any]) -> None:
        self.failures.update((api, answer) for answer in answers if isinstance(answer, str))


def as_dict(message: Any) -> dict[str, Any]:
    """Return an answer with the keys of all versions; None if the broker's version lacks it.

    ListGroups has `group_state` from version 4 on (Kafka 2.6, KIP-518) and `group_type` from
    version 5 on (3.8, KIP-848).
    """
    values: dict[str, Any] = {}
    for name, field in message.fields.items():
        value = getattr(message, name)
        if value is None or not field.for_version_q(message.version):
            values[name] = None
        elif field.is_struct():
            values[name] = as_dict(value)
        elif field.is_struct_array():
            values[name] = [as_dict(entry) for entry in value]
        else:
            values[name] = field.to_json(value)
    return values


def _answers(response: Any) -> dict[TopicPartition, Answer]:
    answers: dict[TopicPartition, Answer] = {}
    for topic in response.topics:
        for part in topic.partitions:
            answer = Answer(part.offset, None, part.timestamp)
            if name := error_name(part.error_code):
                answer = Answer(None, name)
            answers[topic.name, part.partition_index] = answer
    return answers


def offsets_of(answers: Mapping[TopicPartition, Answer]) -> dict[TopicPartition, int]:
    """Return the offsets that are known."""
    return {key: answer.offset for key, answer in answers.items() if answer.offset is not None}


def error_name(code: int) -> str | None:
    """Return Kafka's name of an error code, e.g. UNKNOWN_TOPIC_OR_PARTITION; None for no error."""
    if code == 0:
        return None
    error_class = kafka.errors.for_code(code)
    return str(getattr(error_class, "message", "") or error_class.__name__)


def _list_offsets_request(
    wanted: Iterable[TopicPartition], timestamp: int, isolation: int
) -> ListOffsetsRequest:
    by_topic: dict[str, list[Any]] = {}
    for topic, partition in wanted:
        part = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp
        )
        by_topic.setdefault(topic, []).append(part)
    topics = [
        ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts)
        for name, parts in by_topic.items()
    ]
    min_version = 2 if isolation else 1
    if timestamp == MAX_TIMESTAMP:
        min_version = 7
    return ListOffsetsRequest(isolation_level=isolation, topics=topics, min_version=min_version)
