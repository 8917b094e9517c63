"""What every consumer does whatever its protocol: poll, process a batch, commit (KafkaConsumer's
poll loop).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from simulator.records import TopicPartition
from simulator.work import GivenUp
from simulator.world import Config, World

Done = Callable[[], None]
RETRY_MS = 100  # retry.backoff.ms
IDLE_MS = 500


class Reader:
    """The poll loop; a protocol says what to do before a poll and who we are to the coordinator."""

    def __init__(self, world: World, config: Config, name: str) -> None:
        self.world, self.config, self.name = world, config, name
        self.clock, self.truth = world.clock, world.truth
        self._from, self._to = f"from {name}", f"to {name}"  # its connections
        self.truth.configs.setdefault(config.group, []).append(config)
        self.capacity = config.capacity
        self.positions: dict[TopicPartition, int] = {}
        self.last_poll = self.clock.now
        self.is_dead = self.is_closing = False
        self.is_waiting = False  # inside a poll that returns nothing before something has happened
        self.is_busy = False  # in a batch: answers wait until the next poll
        self._frozen_until = 0
        self._loop = self._turn = 0
        self._committed_ms = self.clock.now
        self._answers: list[Done] = []
        # when a limited partition last gave records
        self._served_ms: dict[TopicPartition, int] = {}

    # a protocol's part

    def identity(self) -> tuple[str, int]:
        """Member id and generation or epoch."""
        raise NotImplementedError

    def is_known(self) -> bool:
        """To the coordinator; what is processed by one that was evicted is processed again."""
        group = self.world.coordinator.groups.get(self.config.group)
        return group is not None and self.identity()[0] in group.members

    def before_poll(self) -> bool:
        """True if this poll may go on to fetch."""
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    # life

    def crash(self, why: str = "crash") -> None:
        self._note(why)
        self._stop()

    def close(self, why: str = "close") -> None:
        """Finish the batch, commit, leave."""
        self._note(why)
        self.is_closing = True
        self.nudge()

    def freeze(self, duration_ms: int, why: str = "freeze") -> None:
        """Nothing runs, heartbeats included: a long garbage collection."""
        self._note(why)
        self._frozen_until = self.clock.now + duration_ms
        self._loop += 1
        self.is_busy = True
        self.clock.at(self._frozen_until, self._restart)

    def hang(self, duration_ms: int, why: str = "slow_batch") -> None:
        """The poll loop is stalled, the heartbeat thread goes on."""
        self._note(why)
        self._loop += 1
        self.is_busy = True
        self.clock.after(duration_ms, self._restart)

    @property
    def is_frozen(self) -> bool:
        return self.clock.now < self._frozen_until

    def _note(self, why: str) -> None:
        known = self.truth.members.get(self.identity()[0])
        if known is not None:
            known["why"] = why

    def let_go(self, places: list[TopicPartition], *, at_work: bool) -> None:
        """On record: from now on nobody works on these partitions, or has not for a while."""
        self.truth.given_up(
            self.config.group, places, GivenUp(self.name, self.clock.now, at_work=at_work)
        )

    def _stop(self, *, at_work: bool = False) -> None:
        self.let_go(list(self.positions), at_work=at_work)
        self.is_dead = True
        self._loop += 1

    def _restart(self) -> None:
        known = self.truth.members.get(self.identity()[0])
        if known is not None:
            known.pop("why", None)
        self.is_busy = False
        if not self.is_waiting:
            self.resume()
        while self.is_waiting and self._answers:
            self._answers.pop(0)()

    # network

    def call(
        self, request: Callable[[Callable[..., None]], None], reply: Callable[..., None]
    ) -> None:
        """Send a request; the answer is dropped if we died meanwhile."""

        def answer(*values: object) -> None:
            self.world.network.send(self._to, lambda: None if self.is_dead else reply(*values))

        self.world.network.send(self._from, lambda: request(answer))

    def when_polling(self, action: Done) -> None:
        """Answers that need the application's thread."""
        if self.is_busy or self.is_frozen:
            self._answers.append(action)
        else:
            action()

    # the loop

    def resume(self) -> None:
        self.is_waiting = False
        self._loop += 1
        self._poll(self._loop)

    def nudge(self) -> None:
        """Something is to be done in the next poll: if one is under way, that is now."""
        if not self.is_busy and not self.is_waiting and not self.is_frozen:
            self.resume()

    def _poll(self, loop: int) -> None:
        if self.is_dead or loop != self._loop:
            return
        self.is_busy = False
        self.last_poll = self.clock.now
        while self._answers:
            self._answers.pop(0)()
            if loop != self._loop:
                return
        if self.is_closing:
            self._close()
        elif self.before_poll() and not self._commit_if_due():
            self._process(loop)

    def _process(self, loop: int) -> None:
        batch = self._take()
        if not batch:
            self.clock.after(IDLE_MS, lambda: self._poll(loop))
            return
        began_ms = self.clock.now
        # milliseconds per record
        usual, costs, poison = 1000 / self.capacity, self.world.costs, self.world.poison
        cost = 0.0
        for place, count in batch.items():
            cost += count * (usual * costs.get(place, 1.0) if costs else usual)
            if poison:
                cost += self._poison(place, count)

        def end() -> None:
            if self.is_dead or loop != self._loop:
                return
            now_ms, counts, positions = self.clock.now, self.is_known(), self.positions
            spans = []
            for place, count in batch.items():
                start = positions.get(place)
                if start is not None:
                    positions[place] = reached = start + count
                    spans.append((place, start, reached))
            self.truth.batch_done((self.config.group, self.name, began_ms, now_ms, counts, spans))
            self._poll(loop)

        self.is_busy = True
        self.clock.after(self._duration(round(cost), sum(batch.values())), end)

    def _duration(self, cost_ms: int, count: int) -> int:
        low, high = self.config.batch_ms
        wait = low if low == high else self.world.streams(f"batches {self.name}").randint(low, high)
        wait = 0 if count >= self.config.max_records else wait
        sink = self.world.sinks.get(self.config.group)
        stored = 0 if sink is None else sink.done_ms(self.clock.now, count) - self.clock.now
        return max(wait, cost_ms, stored)

    def _take(self) -> dict[TopicPartition, int]:
        """Up to max.poll.records, beginning with another partition each time."""
        room, is_committed = self.config.max_records, self.config.is_read_committed
        positions, topics, now_ms = self.positions, self.world.brokers.topics, self.clock.now
        paused, limits = self.world.paused, self.world.limits
        batch: dict[TopicPartition, int] = {}
        places = [
            place
            for place in sorted(positions)
            if place[0] in topics and not (paused and place in paused)
        ]
        self._turn += 1
        first = self._turn % max(1, len(places))
        for place in places[first:] + places[:first]:
            name, part = place
            topic = topics[name]
            if topic.has_retention:  # what it took is gone: auto.offset.reset=earliest
                positions[place] = max(positions[place], topic.log_start(part, now_ms))
            count = topic.readable(part, now_ms, is_committed=is_committed) - positions[place]
            count = min(count, room)
            if limits and place in limits:
                count = min(count, self._served(place, limits[place]))
            if count > 0:
                batch[place] = count
                room -= count
        return batch

    def _served(self, place: TopicPartition, limit: float) -> int:
        """Records that a broker gives now of a partition that is limited to so many a second."""
        count = int(
            limit * (self.clock.now - self._served_ms.setdefault(place, self.clock.now)) / 1000
        )
        if count:
            self._served_ms[place] = self.clock.now
        return count

    def _poison(self, place: TopicPartition, count: int) -> int:
        """Milliseconds that one record of a partition takes, if it is among these."""
        offset, lasts_ms = self.world.poison.get(place, (-1, 0))
        return lasts_ms if 0 <= offset - self.positions[place] < count else 0

    # offsets

    def commit(
        self,
        places: Iterable[TopicPartition] | None = None,
        done: Callable[[str], None] | None = None,
    ) -> None:
        """Commit positions; an error is only reported."""
        known = self.world.brokers.topics
        wanted = (
            self.positions if places is None else {place: self.positions[place] for place in places}
        )
        offsets = {place: position for place, position in wanted.items() if place[0] in known}
        member_id, generation = self.identity()
        self._committed_ms = self.clock.now
        if not offsets or not member_id:
            if done is not None:
                done("")
            return
        coordinator, group = self.world.coordinator, self.config.group
        self.call(
            lambda reply: coordinator.commit(group, member_id, generation, offsets, reply),
            lambda error: done(error) if done is not None else None,
        )

    def settle(
        self,
        done: Callable[[str], None],
        places: Iterable[TopicPartition] | None = None,
        *,
        is_wanted: bool,
    ) -> None:
        """Commit before partitions are let go, if it is wanted; what a transaction has not
        committed stays so.
        """
        if is_wanted and self.config.abort_share is None:
            self.commit(places, done)
        else:
            done("")

    def take_over(self, places: Iterable[TopicPartition], done: Done) -> None:
        """Start on these partitions from what is committed, else from the beginning
        (auto.offset.reset=earliest).
        """
        wanted = list(places)
        coordinator = self.world.coordinator

        def got(error: str, held: Mapping[TopicPartition, int | None] | None = None) -> None:
            if error:
                self.clock.after(
                    RETRY_MS, lambda: None if self.is_dead else self.take_over(wanted, done)
                )
                return
            for place, offset in (held or {}).items():
                if place[0] in self.world.brokers.topics:
                    start = self.world.brokers.start(*place)
                    self.positions[place] = max(
                        start, min(offset or 0, self.world.brokers.end(*place))
                    )
            done()

        if wanted:
            self.call(lambda reply: coordinator.fetch(self.config.group, wanted, reply), got)
        else:
            done()

    def give_up(self, places: Iterable[TopicPartition]) -> None:
        gone = [place for place in list(places) if place in self.positions]
        self.let_go(gone, at_work=self.is_known())
        for place in gone:
            del self.positions[place]

    def _commit_if_due(self) -> bool:
        """True if the loop must wait for the outcome, as a transaction makes it do."""
        interval = self.config.commit_ms
        if interval is None or self.clock.now - self._committed_ms < interval:
            return False
        if self.config.abort_share is None:
            self.commit()
            return False
        self._commit_in_transaction(self.config.abort_share)
        return True

    def _commit_in_transaction(self, abort_share: float) -> None:
        offsets, (member_id, generation) = dict(self.positions), self.identity()
        chance = self.world.streams(f"transactions {self.name}")
        is_committed = chance.random() >= abort_share
        lasts_ms = chance.randint(20, 1500)
        coordinator = self.world.coordinator
        self._committed_ms = self.clock.now
        self.is_waiting = True

        def rewound() -> None:
            self.resume()

        def end(producer_id: int) -> None:
            coordinator.end_transaction(producer_id, is_committed=is_committed)
            if self.is_dead:
                return
            if is_committed:
                self.resume()
            else:  # what was processed in it counts for nothing
                self.take_over(offsets.keys() & self.positions.keys(), rewound)

        def sent(error: str, producer_id: int) -> None:
            if error:
                self.resume()
            else:
                self.clock.after(lasts_ms, lambda: end(producer_id))

        if offsets:
            self.call(
                lambda reply: coordinator.commit_in_transaction(
                    self.config.group, member_id, generation, offsets, reply
                ),
                sent,
            )
        else:
            self.resume()

    def _close(self) -> None:
        self.is_waiting = True

        def gone(_: str = "") -> None:
            self._stop(at_work=True)
            self.leave()

        self.settle(gone, is_wanted=self.config.commit_on_close)
