"""A member of the classic protocol: heartbeat thread, joins, the leader's assignment
(ConsumerCoordinator).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from laggard.rebalance.assignors import Member as Assignee
from laggard.rebalance.assignors import assign
from simulator.classic_requests import Wish
from simulator.reader import RETRY_MS, Reader
from simulator.records import Subscription, TopicPartition
from simulator.world import Config, World


class Member(Reader):
    """From start to close or crash; a restart is another object."""

    def __init__(self, world: World, config: Config, name: str) -> None:
        super().__init__(world, config, name)
        self.member_id, self.generation = "", -1
        self.topics = config.topics
        self.assignors = config.assignors
        self._reason: str | None = "join"  # why we have to join, None: we need not
        self._is_joining = False
        self._protocol: str | None = None
        self._previous: tuple[TopicPartition, ...] = ()  # sticky's memory
        self._leads = False
        self._known_counts: dict[str, int] = {}

    def start(self) -> None:
        self.clock.after(self.config.heartbeat_ms, self._beat)
        if self.config.metadata_ms:
            self.clock.after(self.config.metadata_ms, self._look_at_topics)
        self.resume()

    def subscribe(self, *topics: str) -> None:
        """Another subscription, without a restart."""
        self.topics = topics
        self.rejoin("subscription_change")

    def rejoin(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
        self.nudge()

    def identity(self) -> tuple[str, int]:
        return self.member_id, self.generation

    def leave(self) -> None:
        """A static member goes without a word (KIP-345)."""
        if self.config.instance_id is None and self.member_id:
            self._send_leave("leave")

    # joining

    @property
    def _is_cooperative(self) -> bool:
        return all(name == "cooperative-sticky" for name in self.assignors)

    def before_poll(self) -> bool:
        if self._reason is not None and not self._is_joining:
            self._is_joining = True
            if self._is_cooperative:
                self._settle(lambda _: self._join())
            else:  # everything is committed, given up, and nothing is fetched before the assignment
                self.is_waiting = True
                self._settle(lambda _: self.when_polling(self._revoke_all))
                return False
        return not self.is_waiting

    def _settle(self, done: Callable[[str], None]) -> None:
        self.settle(done, is_wanted=self.config.commit_on_revoke)

    def _commit_if_due(self) -> bool:
        """A poll that finds a join under way goes no further than that
        (ConsumerCoordinator.poll).
        """
        return not self._is_joining and super()._commit_if_due()

    def _revoke_all(self) -> None:
        self.give_up(list(self.positions))
        self._join()

    def _join(self) -> None:
        if self.is_dead:
            return
        wish = self._wish(self._reason or "join")

        def request(reply: Any) -> None:
            coordinator = self.world.coordinator
            if not coordinator.serves(self.config.group):
                reply("NOT_COORDINATOR", {})
            else:
                coordinator.classic(self.config.group).join(wish, reply)

        self.call(request, lambda error, got: self.when_polling(lambda: self._joined(error, got)))

    def _wish(self, reason: str) -> Wish:
        config = self.config
        owned = tuple(sorted(self.positions))
        protocols = {}
        for name in self.assignors:
            previous = self._previous if name == "sticky" else None
            protocols[name] = Subscription(
                tuple(sorted(self.topics)),
                owned if name == "cooperative-sticky" else (),
                self.generation,  # whatever the assignor: ConsumerCoordinator.metadata
                previous,
                config.record_version,
            )
        return Wish(
            config.client_id, config.host, config.slot, config.session_ms, config.poll_interval_ms,
            protocols,
            self.member_id, config.instance_id, reason,
        )  # fmt: skip

    def _joined(self, error: str, got: Mapping[str, Any]) -> None:
        if self.is_dead:
            return
        match error:
            case "":
                self.member_id, self.generation = got["member_id"], got["generation"]
                self._protocol = got["protocol"]
                self._leads = got["leader"] == self.member_id
                self._reason = None  # what comes up from here on needs another join
                self._sync(self._shares(got["members"]) if self._leads else None)
            case "MEMBER_ID_REQUIRED":
                self.member_id = got["member_id"]
                self._join()
            case "FENCED_INSTANCE_ID" | "INCONSISTENT_GROUP_PROTOCOL":
                self._stop()
            case "REBALANCE_IN_PROGRESS":
                self._join()
            case "NOT_COORDINATOR":
                self._reason = "coordinator_move"
                self.clock.after(RETRY_MS, self._join)
            case _:
                self._forget(error)
                self._join()

    def _shares(self, wishes: Mapping[str, Wish]) -> dict[str, list[TopicPartition]]:
        self._known_counts = self._counts()
        protocol = self._protocol or ""
        members = []
        for member_id, wish in wishes.items():
            said = wish.protocols[protocol]
            held = said.owned if said.previous is None else said.previous
            members.append(
                Assignee(member_id, frozenset(said.topics), wish.instance_id, held, said.generation)
            )
        return assign(protocol, members, self.world.brokers.counts())

    def _sync(self, shares: Mapping[str, Sequence[TopicPartition]] | None) -> None:
        member_id, generation = self.identity()

        def request(reply: Any) -> None:
            group = self.world.coordinator.ask(self.config.group, lambda error: reply(error, None))
            if group is not None:
                group.sync(member_id, generation, shares, reply)

        self.call(request, lambda error, got: self.when_polling(lambda: self._synced(error, got)))

    def _synced(self, error: str, got: Sequence[TopicPartition] | None) -> None:
        if self.is_dead:
            return
        if error:
            if error == "FENCED_INSTANCE_ID":
                self._stop()
                return
            self._reason = "coordinator_move" if error == "NOT_COORDINATOR" else "follow_up"
            if error == "UNKNOWN_MEMBER_ID":
                self._forget(error)
            self.clock.after(RETRY_MS if error == "NOT_COORDINATOR" else 0, self._join)
            return
        self._is_joining = False
        self._committed_ms = self.clock.now  # the commit interval starts again (onJoinComplete)
        given = set(got or ())
        self._previous = tuple(sorted(given))
        revoked = self.positions.keys() - given
        # cooperative: let go, and join again so that others may have them; committed was before the
        # join
        if revoked:
            self.give_up(revoked)
            self._reason = self._reason or "follow_up"
        self.take_over(sorted(given - self.positions.keys()), self._assigned)

    def _assigned(self) -> None:
        self.when_polling(self.resume if self.is_waiting else self.nudge)

    def _forget(self, error: str) -> None:
        """The coordinator does not know us (any more): what we held is lost without a commit."""
        if error == "ILLEGAL_GENERATION":
            self.generation = -1
        else:
            self.member_id, self.generation = "", -1
        self.give_up(list(self.positions))

    # the heartbeat thread

    def _beat(self) -> None:
        if self.is_dead:
            return
        self.clock.after(self.config.heartbeat_ms, self._beat)
        if self.is_frozen or not self.member_id or self.generation < 0 or self._is_joining:
            return
        if not self.is_waiting and self.clock.now - self.last_poll > self.config.poll_interval_ms:
            self._leave_for_slowness()
            return
        self._send_heartbeat(*self.identity())

    def _send_heartbeat(self, member_id: str, generation: int) -> None:
        def request(reply: Any) -> None:
            group = self.world.coordinator.ask(self.config.group, reply)
            if group is not None:
                group.heartbeat(member_id, generation, reply)

        def answered(error: str) -> None:
            if (member_id, generation) != self.identity() or self._is_joining:
                return
            if error == "REBALANCE_IN_PROGRESS":
                self.rejoin("follow_up")
            elif error == "FENCED_INSTANCE_ID":
                self._stop()
            elif error in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"):
                self.when_polling(lambda: self._lost(error))

        self.call(request, answered)

    def _lost(self, error: str) -> None:
        self._forget(error)
        self._reason = "join"
        self.nudge()

    def _leave_for_slowness(self) -> None:
        """max.poll.interval.ms is over: the client leaves by itself, a static one only falls
        silent.
        """
        if self.config.instance_id is None:
            self._send_leave("poll_interval")
        self.let_go(list(self.positions), at_work=False)
        self.member_id, self.generation = "", -1
        self._answers.append(lambda: self._lost("UNKNOWN_MEMBER_ID"))

    def _send_leave(self, reason: str) -> None:
        member_id = self.member_id

        def request(reply: Any) -> None:
            group = self.world.coordinator.ask(self.config.group, reply)
            if group is not None:
                group.leave(member_id, reason)

        self.call(request, lambda *_: None)

    # metadata

    def _counts(self) -> dict[str, int]:
        return {
            topic: count
            for topic, count in self.world.brokers.counts().items()
            if topic in self.topics
        }

    def _look_at_topics(self) -> None:
        """The leader joins again when it sees other partition counts than it assigned
        (metadata.max.age.ms).
        """
        if self.is_dead:
            return
        self.clock.after(self.config.metadata_ms, self._look_at_topics)
        if (
            self._leads
            and not self._is_joining
            and not self.is_frozen
            and self._known_counts != self._counts()
        ):
            self.rejoin("topic_change")
