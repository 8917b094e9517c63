"""A story played by the simulator."""

from __future__ import annotations

from typing import Any

from calibration.cast import PARTITIONS, RATE, Performance, Story
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.play import Played, Polled
from simulator.producer import steady
from simulator.stage import Stage
from simulator.world import Config

STEP_MS, TICK_MS = 100, 2_000


class Simulated:
    """Members of the simulator, the newest under each client id."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._members: dict[str, Any] = {}

    def start(self, config: Config, *, is_modern: bool, is_doomed: bool) -> None:
        self._members[config.client_id] = self._stage.start(config, ModernMember if is_modern else Member)

    def close(self, config: Config) -> None:
        self._members[config.client_id].close()

    def crash(self, config: Config) -> None:
        self._members[config.client_id].crash()

    def hang(self, config: Config, seconds: float) -> None:
        self._members[config.client_id].hang(round(seconds * 1000))

    def expand(self, topic: str, partitions: int) -> None:
        known = self._stage.brokers.counts()[topic]
        self._stage.brokers.expand(topic, [steady(0)] * (partitions - known))

    def held(self, config: Config) -> int:
        member = self._members[config.client_id]
        return 0 if member.is_dead else len(member.positions)


def simulate(story: Story, seed: int) -> Played:
    """Play a story with one seed, a poll every two seconds."""
    stage = Stage(seed)
    stage.topic(story.name, PARTITIONS, steady(RATE))
    polls: list[Polled] = []

    def poll() -> None:
        polls.append(Polled(stage.clock.now, stage.brokers.poll(), stage.coordinator.log.positions()))
        stage.clock.after(TICK_MS, poll)

    poll()
    performance = Performance(story, Simulated(stage), stage.clock.now / 1000)
    while not performance.is_over(stage.clock.now / 1000):
        stage.clock.run_until(stage.clock.now + STEP_MS)
    stage.clock.run_until(polls[-1].at_ms + TICK_MS)
    return Played(story.name, seed, stage.coordinator.log.records, polls, stage.truth)
