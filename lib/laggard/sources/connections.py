"""Connections to the brokers: parallel requests, one deadline, no wait for silent brokers."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Any

from kafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaTimeoutError,
    RequestTimedOutError,
)
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from laggard.config.security import Security
from laggard.errors import LaggardError
from laggard.sources.login.security import Login, refusal

HEDGE_SECONDS = 1.0  # then a question that any broker can answer goes to one more
# per partition, on a busy machine; idle, each question about it takes 7 µs and metadata 15
READING_SECONDS = 3e-4
CLOSE_SECONDS = 2.0
STUCK_SECONDS = 5.0  # past a deadline: only a name look-up, which blocks the loop, takes longer
MOST_IN_FLIGHT = 1000  # per connection; kafka-python refuses requests beyond
# kafka-python has no name for a refused certificate, or a token that is not given
NO_LOGIN = "AuthenticationError"
TIMEOUT = KafkaTimeoutError.__name__
Pending = Callable[[], dict[Any, Any]]


class _Manager(KafkaConnectionManager):  # type: ignore[misc] # it has no types
    """kafka-python's, that also reads what a broker sends right before it closes.

    kafka-python drops bytes that arrive together with the end of the connection, and a broker sends
    the refusal of a login just so: 13 of 14 refusals were seen as a connection that closed.
    """

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv  # noqa: SLF001 - there is no public way to the bytes

        def receive_whole() -> tuple[bytes, Exception | None]:
            received, error = receive()
            return received, None if received else error  # the next look meets the end again

        transport._sock_recv = receive_whole  # noqa: SLF001
        return transport


class Connections:
    """Client of the brokers by id; a broker without an answer is silent.

    From then on it is probed and not waited for.

    `seconds` is how long requests wait for silent brokers in all, from `begin` on; each broker may
    take half of it, counted from the last answer of any broker. Without `begin` each request has
    these seconds of its own.
    """

    def __init__(
        self, bootstrap_servers: Sequence[str], seconds: float, security: Security | None = None
    ) -> None:
        self._bootstrap_servers = list(bootstrap_servers)
        self._seconds = seconds
        self._login = Login(security or Security(), seconds / 2)
        self.failure: LaggardError | None = None  # why we could not log in, since `begin`
        self._is_refused = False  # True: what we connect with is of no use
        self._fixed_deadline: float | None = None
        self._heard_at = 0.0  # when any broker last answered
        self._silent: dict[int, Future] = {}  # broker -> its probe
        self._manager: _Manager | None = None

    def begin(self) -> None:
        """Set one deadline for all that is asked until the next call."""
        self.forget_failure()
        self._fixed_deadline = time.monotonic() + self._seconds

    def forget_failure(self) -> None:
        """Forget the failure; after a refusal, connect again with what is in the files now."""
        self.failure = None
        if self._is_refused:
            self.close()

    def allow(self, partitions: int, seconds: float = 0.0) -> None:
        """Move the deadline by `seconds` and the likely time to read about so many partitions."""
        self._fixed_deadline = self._deadline() + READING_SECONDS * partitions + seconds

    def start(self, requests: Mapping[int, Any]) -> Pending:
        """Send each broker its request, in call order; the result waits for the responses.

        The result has responses or error names.
        """
        deadline = self._deadline()
        try:
            self._renew()
            future = self._open().call_soon(self._ask_each, requests, deadline)
        except Exception as error:  # noqa: BLE001 - as below
            return self._failing(requests, error)

        def wait() -> dict[int, Any]:
            try:
                answers: dict[int, Any] = _wait(future, deadline + STUCK_SECONDS)
            except Exception as error:  # noqa: BLE001 - an unreachable cluster is data for the poll
                return self._failing(requests, error)()
            return answers

        return wait

    def ask_any(self, request: Any) -> Any:
        """Return the first response of any broker, or an error name when none answers."""
        deadline = self._deadline()
        try:
            self._renew()
            return _wait(
                self._open().call_soon(self._ask_until_one, request, deadline),
                deadline + STUCK_SECONDS,
            )
        except Exception as error:  # noqa: BLE001 - as above
            return self._failing({0: request}, error)()[0]

    @property
    def silent(self) -> frozenset[int]:
        """Brokers that are probed and not waited for."""
        return frozenset(self._silent)

    def learn(self, metadata: Any) -> None:
        """Take the brokers' addresses from a response to a metadata request."""
        addresses = copy.copy(metadata)
        addresses.topics = []  # its partitions we keep ourselves
        self._open().cluster.update_metadata(addresses)

    def close(self) -> None:
        """Drop the connections; the next request opens new ones."""
        manager, self._manager = self._manager, None
        self._silent.clear()
        self._is_refused = False
        if manager is not None:
            net = manager._net  # noqa: SLF001 - there is no public way to end the loop
            with suppress(Exception):  # a loop that has crashed
                net.call_soon_threadsafe(manager.close)
            thread = net._io_thread  # noqa: SLF001
            net.stop(CLOSE_SECONDS * 1000)
            # else it waits for a look-up, and ends by itself after it
            if thread is None or not thread.is_alive():
                net.close()

    def _deadline(self) -> float:
        return self._fixed_deadline or time.monotonic() + self._seconds

    def _open(self) -> KafkaConnectionManager:
        if self._manager is None:
            settings = {
                "bootstrap_servers": self._bootstrap_servers,
                "client_id": "laggard",
                "request_timeout_ms": int(self._seconds * 1000),
                "socket_connection_setup_timeout_ms": int(self._seconds * 1000),
                "socket_connection_setup_timeout_max_ms": int(self._seconds * 1000),
                "reconnect_backoff_max_ms": 1000,
                "receive_message_max_bytes": 100_000_000,
                "max_in_flight_requests_per_connection": MOST_IN_FLIGHT,
                **self._login.settings(),
            }
            # not KafkaAdminClient: it waits for one bootstrap address, taken by chance, until its
            # time is over
            net = NetworkSelector(**settings)
            self._manager = _Manager(net, **settings)
            net.start()
        return self._manager

    def _failing(self, requests: Mapping[int, Any], error: Exception) -> Pending:
        self.close()
        return lambda: dict.fromkeys(requests, self._name(error))

    def _renew(self) -> None:
        try:
            self._login.renew()
        except LaggardError as error:  # connections that are open serve on
            self.failure = error

    def _name(self, error: BaseException) -> str:
        """Return the name of an error; keep the error if it is about the login."""
        failure = error if isinstance(error, LaggardError) else refusal(error)
        if failure is None:
            return type(error).__name__
        self.failure = self.failure or failure
        self._is_refused = True
        if not isinstance(error, BrokerResponseError):
            return NO_LOGIN
        return type(error).__name__

    # from here on: in the thread of the event loop

    def _live(self) -> _Manager:
        if self._manager is None:
            raise KafkaConnectionError("closed")
        return self._manager

    async def _ask_each(self, requests: Mapping[int, Any], deadline: float) -> dict[int, Any]:
        if time.monotonic() >= deadline:  # says nothing about who was not asked
            return dict.fromkeys(requests, TIMEOUT)
        asked_at = time.monotonic()
        sent = {
            broker: self._send_unless_silent(broker, request, deadline)
            for broker, request in requests.items()
        }
        return {
            broker: await self._answer(broker, future, asked_at, deadline)
            for broker, future in sent.items()
        }

    async def _answer(self, broker: int, future: Future, asked_at: float, deadline: float) -> Any:
        while not future.is_done:
            until = min(max(asked_at, self._heard_at) + self._seconds / 2, deadline)
            if time.monotonic() >= until:
                self._probe(broker)
                return TIMEOUT
            await self._sleep_until_done([future], until)
        if isinstance(future.exception, (KafkaTimeoutError, RequestTimedOutError)):
            self._probe(broker)
            return TIMEOUT
        if future.exception is None:
            return future.value
        return self._name(future.exception)

    async def _ask_until_one(self, request: Any, deadline: float) -> Any:
        nodes, error = self._candidates(), TIMEOUT
        sent: list[Future] = []
        while nodes or sent:
            if nodes:
                sent.append(self._send(nodes.pop(0), copy.copy(request), deadline))
            hedge_at = deadline
            if nodes:
                hedge_at = time.monotonic() + HEDGE_SECONDS
            await self._sleep_until_done(sent, min(hedge_at, deadline))
            for future in [attempt for attempt in sent if attempt.is_done]:
                if future.exception is None:
                    return future.value
                error = self._name(future.exception)
                sent.remove(future)
            if time.monotonic() >= deadline:
                return TIMEOUT
        return error

    def _candidates(self) -> list[Any]:
        """Return the brokers, then bootstrap addresses, then those of both without an answer."""
        cluster = self._live().cluster
        brokers = [broker.node_id for broker in cluster.brokers()]
        addresses = [broker.node_id for broker in cluster.bootstrap_brokers()]
        random.shuffle(brokers)
        random.shuffle(addresses)
        return sorted(
            [*brokers, *addresses],
            key=lambda node: 2 if node in self._silent else node in addresses,
        )

    async def _sleep_until_done(self, futures: Sequence[Future], until: float) -> None:
        """Wait until one of them is done."""
        done = Future()

        def wake(_: Any) -> None:
            if not done.is_done:
                done.success(None)

        for future in futures:
            future.add_both(wake)
        with suppress(KafkaTimeoutError):
            await self._live().wait_for(done, max(1.0, (until - time.monotonic()) * 1000))

    def _send_unless_silent(self, broker: int, request: Any, deadline: float) -> Future:
        if broker not in self._silent:
            return self._send(broker, request, deadline)
        self._probe(broker)
        return Future().failure(KafkaTimeoutError())

    def _send(self, node: Any, request: Any, deadline: float) -> Future:
        left_ms = (deadline - time.monotonic()) * 1000
        if left_ms <= 0:
            return Future().failure(KafkaTimeoutError())
        try:
            # else an error would start the client's own refresh of metadata, which waits for one
            # broker by chance
            connection = self._live().get_connection(node, refresh_metadata_on_err=False)
        except Exception as error:  # noqa: BLE001 - data for the poll
            return Future().failure(error)
        return connection.send_request(request, request_timeout_ms=left_ms).add_callback(self._hear)

    def _hear(self, _: Any) -> None:
        self._heard_at = time.monotonic()

    def _probe(self, broker: int) -> None:
        """Ask a silent broker for a sign of life, one question at a time.

        An answer makes it an ordinary broker again.
        """
        before = self._silent.get(broker)
        if before is None or before.is_done:
            request = MetadataRequest(topics=[], min_version=1)  # version 0 would list every topic
            probe = self._silent[broker] = self._send(
                broker, request, time.monotonic() + self._seconds
            )
            probe.add_callback(lambda _: self._silent.pop(broker, None))


def _wait(future: Future, until: float) -> Any:
    done = Event()
    future.add_both(lambda _: done.set())
    if not done.wait(max(0.0, until - time.monotonic())):
        raise KafkaTimeoutError
    if future.exception is not None:
        raise future.exception
    return future.value
