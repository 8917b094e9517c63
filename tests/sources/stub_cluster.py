"""Brokers of a few lines that speak Kafka's protocol on real sockets and fall silent on demand,
without a JVM.
"""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse

LOG_END = 100
API_VERSIONS, API_VERSIONS_MAX, UNSUPPORTED = 18, 2, 35
# requests of these versions have no tagged fields, so one header fits all: (request, newest
# version)
APIS: Mapping[int, tuple[Any, int]] = {
    2: (ListOffsetsRequest, 5),
    3: (MetadataRequest, 8),
    16: (ListGroupsRequest, 2),
    32: (DescribeConfigsRequest, 3),
}


class StubBroker(socketserver.ThreadingTCPServer):
    """A broker that leads one partition of each topic: the one with its own number."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, number: int, cluster: StubCluster) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.number, self.cluster = number, cluster
        self.answering = threading.Event()
        self.answering.set()
        self.delay = 0.0
        self.leads = {number: LOG_END}  # partition to its end
        self.asked: list[str] = []  # names of the requests that came in

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class StubCluster:
    """Brokers 0, 1 …; every topic has a partition on each."""

    def __init__(self, nodes: int, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.brokers = [StubBroker(number, self) for number in range(nodes)]
        # by partition, with epochs, as metadata says
        self.leaders = {number: (number, 1) for number in range(nodes)}

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(broker.address for broker in self.brokers)

    def respond(self, broker: StubBroker, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return self._metadata(request)
        if isinstance(request, ListOffsetsRequest):
            topic = ListOffsetsResponse.ListOffsetsTopicResponse
            part = topic.ListOffsetsPartitionResponse
            topics = []
            for asked in request.topics:
                partitions = [
                    part(
                        partition_index=each.partition_index,
                        error_code=0 if each.partition_index in broker.leads else 6,
                        timestamp=-1,
                        offset=broker.leads.get(each.partition_index, -1),
                        leader_epoch=1,
                    )
                    for each in asked.partitions
                ]
                topics.append(topic(name=asked.name, partitions=partitions))
            return ListOffsetsResponse(topics=topics)
        if isinstance(request, ListGroupsRequest):
            group = ListGroupsResponse.ListedGroup
            return ListGroupsResponse(
                error_code=0, groups=[group(group_id=f"of-{broker.number}", protocol_type="")]
            )
        return DescribeConfigsResponse(results=[])

    def _metadata(self, request: Any) -> Any:
        topic, broker = (
            MetadataResponse.MetadataResponseTopic,
            MetadataResponse.MetadataResponseBroker,
        )
        part = topic.MetadataResponsePartition
        names = self.topics if request.topics is None else [each.name for each in request.topics]
        brokers = [
            broker(each.number, "127.0.0.1", each.server_address[1], None) for each in self.brokers
        ]
        topics = []
        for name in names:
            is_known = name in self.topics
            partitions = [
                part(
                    error_code=0,
                    partition_index=number,
                    leader_id=leader,
                    leader_epoch=epoch,
                    replica_nodes=[leader],
                    isr_nodes=[leader],
                    offline_replicas=[],
                )
                for number, (leader, epoch) in self.leaders.items()
                if is_known
            ]
            topics.append(
                topic(
                    error_code=0 if is_known else 3,
                    name=name,
                    is_internal=False,
                    partitions=partitions,
                )
            )
        return MetadataResponse(brokers=brokers, cluster_id="stub", controller_id=0, topics=topics)


@contextmanager
def stub_cluster(
    nodes: int = 3, topics: tuple[str, ...] = ("__consumer_offsets", "orders")
) -> Iterator[StubCluster]:
    cluster = StubCluster(nodes, topics)
    with ExitStack() as running:
        for broker in cluster.brokers:
            running.callback(broker.server_close)
            running.callback(broker.shutdown)
            running.callback(broker.answering.set)
            threading.Thread(target=broker.serve_forever, args=(0.05,), daemon=True).start()
        yield cluster


class _Connection(socketserver.StreamRequestHandler):
    """One request after the other, as Kafka works on a connection."""

    server: StubBroker

    def handle(self) -> None:
        broker = self.server
        while size := self.rfile.read(4):
            data = self.rfile.read(struct.unpack(">i", size)[0])
            broker.answering.wait()
            time.sleep(broker.delay)
            try:
                self.wfile.write(self._response(data))
            except OSError:  # the client gave up
                return

    def _response(self, data: bytes) -> bytes:
        api, version, correlation_id, client = struct.unpack(">hhih", data[:10])
        if api == API_VERSIONS:
            name = ApiVersionsResponse.ApiVersion
            keys = [
                name(api_key=key, min_version=0, max_version=newest)
                for key, (_, newest) in APIS.items()
            ]
            keys.append(name(api_key=API_VERSIONS, min_version=0, max_version=API_VERSIONS_MAX))
            is_known = version <= API_VERSIONS_MAX
            response = ApiVersionsResponse(error_code=0 if is_known else UNSUPPORTED, api_keys=keys)
            version = version if is_known else 0
        else:
            request = APIS[api][0].decode(data[10 + max(client, 0) :], version=version)
            self.server.asked.append(type(request).__name__)
            response = self.server.cluster.respond(self.server, request)
        response.API_VERSION = version
        response.with_header(correlation_id=correlation_id)
        return bytes(response.encode(framed=True, header=True))
