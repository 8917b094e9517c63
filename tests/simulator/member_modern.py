"""A member of the KIP-848 protocol: one heartbeat carries everything (ConsumerMembershipManager of
the new client).
"""

from __future__ import annotations

import base64
import uuid

from simulator.modern_requests import LEFT_FOR_NOW, Beat
from simulator.reader import RETRY_MS, Reader
from simulator.records import TopicPartition
from simulator.world import Config, World

HEARTBEAT_MS = 5000  # group.consumer.heartbeat.interval.ms


class ModernMember(Reader):
    """From start to close or crash; it gives itself its member id (KIP-1082)."""

    def __init__(self, world: World, config: Config, name: str) -> None:
        super().__init__(world, config, name)
        self.member_id = self._new_id()
        self.epoch = 0
        self.topics = config.topics
        self._owned: set[TopicPartition] = set()  # acknowledged with the next heartbeat
        self._target: frozenset[TopicPartition] | None = None
        self._is_adjusting = False
        self._has_left = False

    def _new_id(self) -> str:
        raw = self.world.streams(f"member ids {self.config.group}").randbytes(16)
        return base64.urlsafe_b64encode(uuid.UUID(bytes=raw, version=4).bytes).decode().rstrip("=")

    def start(self) -> None:
        self._beat()
        self.resume()

    def subscribe(self, *topics: str) -> None:
        self.topics = topics
        self._send()

    def identity(self) -> tuple[str, int]:
        return self.member_id, self.epoch

    def before_poll(self) -> bool:
        if self._has_left:  # the batch that took too long is done
            self._has_left = False
            self._rejoin()
        self._adjust()
        return True

    def leave(self) -> None:
        self._tell_goodbye("leave")

    def _tell_goodbye(self, reason: str) -> None:
        epoch = -1 if self.config.instance_id is None else LEFT_FOR_NOW
        beat = self._message(epoch, reason)
        self.call(
            lambda reply: self.world.coordinator.beat(self.config.group, beat, reply),
            lambda *_: None,
        )

    def _rejoin(self) -> None:
        self.give_up(list(self.positions))
        self._owned, self._target, self._is_adjusting = set(), None, False
        self.epoch = 0
        self._send()

    # heartbeats

    def _beat(self) -> None:
        if self.is_dead:
            return
        self.clock.after(HEARTBEAT_MS, self._beat)
        if self.is_frozen or self._has_left:
            return
        if self.clock.now - self.last_poll > self.config.poll_interval_ms:
            self._has_left = True
            self._tell_goodbye("poll_interval")
            self.let_go(list(self.positions), at_work=False)
            return
        self._send()

    def _message(self, epoch: int, reason: str = "join") -> Beat:
        config = self.config
        return Beat(
            self.member_id, epoch, config.client_id, config.host, config.slot, tuple(self.topics),
            config.session_ms,
            config.poll_interval_ms, config.instance_id, frozenset(self._owned), reason,
        )  # fmt: skip

    def _send(self) -> None:
        beat = self._message(self.epoch)
        self.call(
            lambda reply: self.world.coordinator.beat(self.config.group, beat, reply),
            lambda error, got: self._answered(beat, error, got),
        )

    def _answered(
        self, beat: Beat, error: str, got: tuple[int, frozenset[TopicPartition]] | None
    ) -> None:
        if self._has_left or self.is_closing:
            return
        if error == "NOT_COORDINATOR":
            self.clock.after(RETRY_MS, self._send)
        elif error == "UNRELEASED_INSTANCE_ID":
            self.clock.after(1000, self._send)
        elif error:
            self.when_polling(self._rejoin)
        elif got is not None and beat.epoch == self.epoch:
            self.epoch, target = got
            if target != self._owned:
                self._target = target
                self.nudge()

    # assignment

    def _adjust(self) -> None:
        """In the application's thread: commit all, let go, then take what is new, then tell the
        coordinator.
        """
        if self._target is None or self._is_adjusting or self._target == self._owned:
            return
        self._is_adjusting = True
        target = self._target
        gone = self._owned - target

        def revoked(_: str = "") -> None:
            self.give_up(gone)
            self._owned -= gone
            fresh = target - self._owned
            if gone and not fresh:
                self._done()
            else:
                self.take_over(sorted(fresh), lambda: self._took(fresh))

        if self.positions:
            self.settle(
                lambda _: self.when_polling(revoked), is_wanted=self.config.commit_on_revoke
            )
        else:
            revoked()

    def _took(self, fresh: frozenset[TopicPartition] | set[TopicPartition]) -> None:
        self._owned |= fresh
        self._done()

    def _done(self) -> None:
        self._is_adjusting = False
        # the commit interval starts again (ConsumerMembershipManager)
        self._committed_ms = self.clock.now
        self._send()
        self.nudge()
