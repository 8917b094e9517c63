"""A workload run by the simulator."""

from __future__ import annotations

from typing import Any

from calibration.members import PARTITIONS, RATE, Execution, Workload
from simulator.cluster import Cluster
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.producer import steady
from simulator.simulation import Polled, Simulation
from simulator.world import Config

STEP_MS, TICK_MS = 100, 2_000


class SimulatedDriver:
    """Members of the simulator, the newest under each client id."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._members: dict[str, Any] = {}

    def start(self, config: Config, *, is_modern: bool, is_doomed: bool) -> None:
        self._members[config.client_id] = self._cluster.start(
            config, ModernMember if is_modern else Member
        )

    def close(self, config: Config) -> None:
        self._members[config.client_id].close()

    def crash(self, config: Config) -> None:
        self._members[config.client_id].crash()

    def hang(self, config: Config, seconds: float) -> None:
        self._members[config.client_id].hang(round(seconds * 1000))

    def expand(self, topic: str, partitions: int) -> None:
        known = self._cluster.brokers.counts()[topic]
        self._cluster.brokers.expand(topic, [steady(0)] * (partitions - known))

    def held(self, config: Config) -> int:
        member = self._members[config.client_id]
        return 0 if member.is_dead else len(member.positions)


def simulate(workload: Workload, seed: int) -> Simulation:
    """Run a workload with one seed, a poll every two seconds."""
    cluster = Cluster(seed)
    cluster.topic(workload.name, PARTITIONS, steady(RATE))
    polls: list[Polled] = []

    def poll() -> None:
        polls.append(
            Polled(cluster.clock.now, cluster.brokers.poll(), cluster.coordinator.log.positions())
        )
        cluster.clock.after(TICK_MS, poll)

    poll()
    execution = Execution(workload, SimulatedDriver(cluster), cluster.clock.now / 1000)
    while not execution.is_over(cluster.clock.now / 1000):
        cluster.clock.run_until(cluster.clock.now + STEP_MS)
    cluster.clock.run_until(polls[-1].at_ms + TICK_MS)
    return Simulation(workload.name, seed, cluster.coordinator.log.records, polls, cluster.truth)
