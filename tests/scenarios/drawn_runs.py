"""Simulate a drawn cluster, and sample on the way what the diagnosis cannot see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from scenarios.cluster import ScenarioCluster
from scenarios.drawn import CRASHES, GROUPS, DrawnCluster, Fault, Plan, draw_cluster
from scenarios.labels import Labels, Scenario
from scenarios.runs import Recorded, Run, parts, place_of, record, simulate
from simulator.cluster import MINUTE, SECOND
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.world import Config

HOUR = 60 * MINUTE
SAMPLE_SECONDS = 30


@dataclass(frozen=True)
class Sample:
    """A group at a moment, from the simulator: by partition unless it says otherwise."""

    minute: float
    committed: tuple[int, ...]  # offsets
    backlog: tuple[int, ...]  # records not committed
    behind_start: tuple[bool, ...]  # True if retention has taken what was not read
    arrival: tuple[float, ...]  # records/s
    owners: tuple[str, ...]  # hosts, "" if nobody has it
    subjects: tuple[str, ...]  # names of the owners in findings, likewise
    capacities: dict[str, float]  # records/s by host of living members
    stalled: frozenset[int]


@dataclass(frozen=True)
class Drawn:
    """A recorded cluster and its truth; `samples` by number of the group."""

    cluster: DrawnCluster
    recorded: Recorded
    samples: dict[int, list[Sample]]

    def group(self, plan: Plan) -> str:
        """The name of the group of a plan."""
        return self.recorded.run.cluster.name(plan.number)

    def topic(self, plan: Plan) -> str:
        """The topic of a plan that its faults are about."""
        return topic_of(self.recorded.run.cluster, plan)


def topic_of(cluster: ScenarioCluster, plan: Plan) -> str:
    """The topic that the group of a plan reads to the end."""
    return f"{cluster.main}-{plan.number}"


class Workload:
    """One cluster on its way: sets it up, does what is planned, and samples."""

    def __init__(self, cluster: DrawnCluster) -> None:
        self.cluster = cluster
        self.samples: dict[int, list[Sample]] = {plan.number: [] for plan in cluster.plans}
        self.hung: dict[int, set[str]] = {plan.number: set() for plan in cluster.plans}  # hosts
        self.away: dict[int, list[Config]] = {plan.number: [] for plan in cluster.plans}

    def set_up(self, cluster: ScenarioCluster) -> Labels:
        """Set all groups up, as a scenario does."""
        self.simulated = cluster
        for plan in self.cluster.plans:
            self._set_up(plan)
        return Labels(self.cluster.minutes)

    def _topic(self, plan: Plan) -> str:
        return topic_of(self.simulated, plan)

    def _set_up(self, plan: Plan) -> None:
        cluster, topic = self.simulated, self._topic(plan)
        cluster.rates([plan.rate(part) for part in range(plan.partitions)], topic)
        cluster.brokers.topics[topic].retention_records = plan.retention_records
        topics: tuple[str, ...] = (topic,)
        if any(fault.kind == "left_topic" for fault in plan.faults):
            cluster.rates([lambda _: 20.0] * 2, f"{topic}-left")
            topics = (topic, f"{topic}-left")
        kind = ModernMember if plan.protocol == "kip-848" else Member
        for index in range(plan.members):
            config = self._config(plan, index, topics)
            cluster.clock.after(
                cluster.chance.randint(0, 2 * SECOND),
                lambda config=config: cluster.start(config, kind),
            )
        for number, fault in enumerate(plan.faults):
            self._schedule(plan, number, fault)
        cluster.every(SAMPLE_SECONDS, 1, self.cluster.minutes, lambda: self._sample(plan))

    def _config(self, plan: Plan, index: int, topics: tuple[str, ...]) -> Config:
        kinds, chance = (
            {fault.kind for fault in plan.faults},
            self.simulated.streams(f"plan {plan.number} {index}"),
        )
        assignor = plan.protocol if plan.protocol not in ("static", "kip-848") else "range"
        poll_interval_ms = MINUTE if "poison" in kinds else 5 * MINUTE
        if "hang" in kinds:
            poll_interval_ms = HOUR
        return self.simulated.config(
            index,
            group=self.simulated.name(plan.number),
            host=f"/10.{plan.number}.{self.simulated.place}.{index + 1}",
            client_id=f"app-{plan.number}",
            topics=topics,
            assignors=(assignor,),
            instance_id=f"app-{plan.number}-{index}" if plan.protocol == "static" else None,
            capacity=plan.capacity,
            commit_ms=round(1000 * plan.commit_seconds * (1 + plan.jitter * chance.uniform(-1, 1))),
            batch_ms=plan.batch_ms,
            poll_interval_ms=poll_interval_ms,
        )

    def _schedule(self, plan: Plan, number: int, fault: Fault) -> None:
        begin = getattr(self, f"_{fault.kind}", None)  # kinds that only change rates have none
        plan.scopes[number] = frozenset(fault.partitions)
        if begin is not None:
            self.simulated.minute(fault.begin, lambda: begin(plan, number, fault), fault.kind)
        end = getattr(self, f"_end_{fault.kind}", None)
        if end is not None:
            self.simulated.minute(fault.end, lambda: end(plan, fault))

    # faults

    def _alive(self, plan: Plan) -> list[Any]:
        return self.simulated.alive(self.simulated.name(plan.number))

    def _one(self, plan: Plan, number: int, fault: Fault) -> Any:
        """The member that a fault is about; it is noted what it owns and what it is called."""
        alive = self._alive(plan)
        member = alive[fault.member % len(alive)]
        plan.scopes[number] = frozenset(part for _, part in member.positions)
        plan.names[number] = frozenset({_subject(plan, member)})
        return member

    def _places(self, plan: Plan, fault: Fault) -> set[tuple[str, int]]:
        return {(self._topic(plan), part) for part in fault.partitions}

    def _slow(self, plan: Plan, number: int, fault: Fault) -> None:
        member = self._one(plan, number, fault)
        member.capacity = fault.strength * min(
            plan.capacity, sum(plan.rates[part] for part in plan.scopes[number])
        )

    def _end_slow(self, plan: Plan, _: Fault) -> None:
        for member in self._alive(plan):
            member.capacity = plan.capacity

    def _hang(self, plan: Plan, number: int, fault: Fault) -> None:
        member = self._one(plan, number, fault)
        member.hang(round((fault.end - fault.begin) * MINUTE))
        self.hung[plan.number].add(member.config.host)

    def _end_hang(self, plan: Plan, _: Fault) -> None:
        self.hung[plan.number].clear()

    def _pause(self, plan: Plan, _: int, fault: Fault) -> None:
        self.simulated.world.paused |= self._places(plan, fault)

    def _end_pause(self, plan: Plan, fault: Fault) -> None:
        self.simulated.world.paused -= self._places(plan, fault)

    def _stop(self, plan: Plan, _: int, fault: Fault) -> None:
        for member in self._alive(plan):
            self.away[plan.number].append(member.config)
            member.crash("stop") if fault.strength < CRASHES else member.close("stop")

    def _end_stop(self, plan: Plan, _: Fault) -> None:
        for config in self.away[plan.number]:
            self.simulated.start(config, ModernMember if plan.protocol == "kip-848" else Member)

    def _crash_loop(self, plan: Plan, number: int, fault: Fault) -> None:
        cluster, victim = self.simulated, self._one(plan, number, fault)
        until_ms = cluster.at_ms(fault.end)

        def turn(member: Any) -> None:
            if cluster.clock.now >= until_ms:
                return
            member.crash("crash_loop") if fault.strength < CRASHES else member.close("crash_loop")
            cluster.clock.after(20 * SECOND, lambda: again(member.config, type(member)))

        def again(config: Config, kind: type[Member | ModernMember]) -> None:
            member = cluster.start(config, kind)
            cluster.clock.after(30 * SECOND, lambda: turn(member))

        turn(victim)

    def _crash_loop_all(self, plan: Plan, number: int, fault: Fault) -> None:
        """As with a bad image: all start, fail after a while, and start again after a back-off that
        doubles.
        """
        cluster, until_ms = self.simulated, self.simulated.at_ms(fault.end)
        if plan.members == 1:
            self._one(plan, number, fault)

        def fail(times: int) -> None:
            if cluster.clock.now >= until_ms:
                return
            configs = [(member.config, type(member)) for member in self._alive(plan)]
            for member in self._alive(plan):
                member.crash("crash_loop") if fault.strength < CRASHES else member.close(
                    "crash_loop"
                )
            cluster.clock.after(min(10 * 2**times, 300) * SECOND, lambda: start(configs, times + 1))

        def start(configs: list[tuple[Config, Any]], times: int) -> None:
            for config, kind in configs:
                cluster.start(config, kind)
            cluster.clock.after(round(15 + 45 * fault.strength) * SECOND, lambda: fail(times))

        fail(0)

    def _poison(self, plan: Plan, _: int, fault: Fault) -> None:
        (place,) = self._places(plan, fault)
        self.simulated.world.poison[place] = self.simulated.brokers.end(*place) + 50, 300 * SECOND
        if fault.strength < 0.5:  # a member that has nothing to do with it is restarted meanwhile
            self.simulated.clock.after(6 * MINUTE, lambda: self._restart_another(plan, place))

    def _restart_another(self, plan: Plan, place: tuple[str, int]) -> None:
        other = next((each for each in self._alive(plan) if place not in each.positions), None)
        if other is not None:
            self.simulated.restart(other, 20 * SECOND)

    def _end_poison(self, plan: Plan, fault: Fault) -> None:
        for place in self._places(plan, fault):
            self.simulated.world.poison.pop(place, None)

    def _commits_refused(self, plan: Plan, _: int, __: Fault) -> None:
        self.simulated.coordinator.refusing.add(self.simulated.name(plan.number))

    def _end_commits_refused(self, plan: Plan, _: Fault) -> None:
        self.simulated.coordinator.refusing.discard(self.simulated.name(plan.number))

    # look-alikes

    def _deploy(self, plan: Plan, _: int, __: Fault) -> None:
        for turn, member in enumerate(self._alive(plan)):
            config = (
                member.config
                if plan.protocol == "static"
                else replace(member.config, host=f"{member.config.host}9")
            )
            self.simulated.clock.after(
                turn * 45 * SECOND, lambda member=member, config=config: self._renew(member, config)
            )

    def _renew(self, member: Any, config: Config) -> None:
        if not member.is_dead:
            member.close("deploy")
            self.simulated.clock.after(
                20 * SECOND, lambda: self.simulated.start(config, type(member))
            )

    def _restart(self, plan: Plan, number: int, fault: Fault) -> None:
        self.simulated.restart(self._one(plan, number, fault), 15 * SECOND)

    def _scale_out(self, plan: Plan, _: int, __: Fault) -> None:
        config = self._config(plan, plan.members, (self._topic(plan),))
        self.simulated.start(config, ModernMember if plan.protocol == "kip-848" else Member)

    def _rewind(self, plan: Plan, _: int, fault: Fault) -> None:
        """As an operator does it: the group is stopped, its offsets are reset, and it is started
        again.
        """
        cluster, topic = self.simulated, self._topic(plan)
        then_ms = cluster.clock.now - round(fault.strength * MINUTE)
        logs, start = cluster.brokers.topics[topic].logs, cluster.brokers.start
        offsets = {
            (topic, part): max(start(topic, part), log.end_at(then_ms))
            for part, log in enumerate(logs)
        }
        configs = [(member.config, type(member)) for member in self._alive(plan)]
        for member in self._alive(plan):
            member.close("reset")

        def again() -> None:
            cluster.coordinator.store(cluster.name(plan.number), offsets)
            for config, kind in configs:
                cluster.start(config, kind)

        cluster.clock.after(90 * SECOND, again)

    def _left_topic(self, plan: Plan, _: int, __: Fault) -> None:
        for member in self._alive(plan):
            member.subscribe(self._topic(plan))

    # truth

    def _sample(self, plan: Plan) -> None:
        cluster, topic, name = self.simulated, self._topic(plan), self.simulated.name(plan.number)
        now_ms = cluster.clock.now - cluster.at_ms(0)
        owners, subjects, capacities = (
            [""] * plan.partitions,
            [""] * plan.partitions,
            dict[str, float](),
        )
        hung, stalled = self.hung[plan.number], set[int]()
        for member in self._alive(plan):
            capacities[member.config.host] = member.capacity
            for owned, part in member.positions:
                if owned == topic:
                    owners[part], subjects[part] = member.config.host, _subject(plan, member)
        offsets, backlog, behind, arrival = [], [], [], []
        for part in range(plan.partitions):
            committed = cluster.coordinator.committed.get((name, topic, part), (0, 0))[0]
            offsets.append(committed)
            backlog.append(max(0, cluster.brokers.end(topic, part) - committed))
            behind.append(cluster.brokers.start(topic, part) > committed)
            arrival.append(plan.rate(part)(now_ms))
            if (topic, part) in cluster.world.paused or owners[part] in hung:
                stalled.add(part)
        if name in cluster.coordinator.refusing:
            stalled = set(range(plan.partitions))
        minute = now_ms / MINUTE
        self.samples[plan.number].append(
            Sample(
                minute,
                tuple(offsets),
                tuple(backlog),
                tuple(behind),
                tuple(arrival),
                tuple(owners),
                tuple(subjects),
                capacities,
                frozenset(stalled),
            )
        )


def _subject(plan: Plan, member: Any) -> str:
    """Name of a member in findings, without the number of its place on its host."""
    config = member.config
    is_new = plan.protocol == "kip-848"
    return str(
        member.member_id if is_new else config.instance_id or f"{config.client_id}{config.host}"
    )


def scenario(workload: Workload) -> Scenario:
    """As the runner of scenarios takes it."""
    return Scenario("drawn", "a cluster drawn at random", workload.set_up, groups=GROUPS)


def simulate_drawn(seeds: Iterable[int]) -> Iterator[Drawn]:
    """Draw, simulate and record clusters, as many side by side as fit into a job."""
    known = scenario(Workload(draw_cluster(0)))
    for part in parts(known, seeds):
        workloads = [Workload(draw_cluster(seed)) for seed in part]
        runs: list[Run] = [
            simulate(scenario(each), each.cluster.seed, place_of(known, each.cluster.seed))
            for each in workloads
        ]
        for workload, recorded in zip(workloads, record(runs), strict=True):
            yield Drawn(workload.cluster, recorded, workload.samples)
