"""Run scenarios, and record them side by side in one job: its cost per tick is nearly all fixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import pyarrow as pa
import pyarrow.compute as pc

from laggard.config.policy import Policies, PolicyRule
from laggard.stream.evaluation.reading import BATCHED
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema import schemas
from scenarios.cluster import ScenarioCluster
from scenarios.labels import Labels, Scenario
from simulator.offsets_log import PARTITIONS, Written
from simulator.simulation import Laggard, Polled, Simulation, compacted, ticks

TICK_MS, WINDOW_MS = 30_000, 60_000
MINUTE = 60_000
SIZE_AT_ONCE = 40_000  # partitions times minutes: about a gigabyte
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Run:
    """One run of a scenario: its labels, all that was written and polled, and its simulated
    cluster.
    """

    scenario: Scenario
    seed: int
    labels: Labels
    cluster: ScenarioCluster
    simulation: Simulation

    @property
    def end_ms(self) -> int:
        return self.cluster.at_ms(self.labels.minutes)


@dataclass(frozen=True)
class Recorded:
    """A run and the append tables that the job wrote of it, each with its declared schema."""

    run: Run
    tables: Tables
    window_seconds: int = WINDOW_MS // 1000


def place_of(scenario: Scenario, seed: int) -> int:
    """Runs recorded side by side need offsets partitions of their own; a run has the same ones in
    every company.
    """
    return seed % (PARTITIONS // scenario.groups) * scenario.groups


def side_by_side(scenario: Scenario) -> int:
    """How many runs of a scenario fit into one job, and into memory."""
    return max(1, min(PARTITIONS // scenario.groups, SIZE_AT_ONCE // size_of(scenario)))


def size_of(scenario: Scenario) -> int:
    """Minutes of a run times partitions, about; its time and memory grow with that."""
    cluster = ScenarioCluster(0)
    minutes = scenario.workload(cluster).minutes
    return round(minutes * sum(cluster.brokers.counts().values()))


def parts(scenario: Scenario, seeds: Iterable[int]) -> list[list[int]]:
    """Seeds that are recorded side by side, no two of them in one place."""
    width = side_by_side(scenario)
    found: list[dict[int, int]] = []
    for seed in sorted(set(seeds)):
        place = place_of(scenario, seed)
        if not found or len(found[-1]) == width or place in found[-1]:
            found.append({})
        found[-1][place] = seed
    return [list(part.values()) for part in found]


def declared(labels: Iterable[Labels]) -> Policies:
    """The service levels of all their groups, as the configuration would say them."""
    levels = {
        group: policy.slo_time_lag_seconds
        for each in labels
        for group, policy in each.policies.items()
    }
    rules = [
        PolicyRule(group, values={"slo_time_lag_seconds": level})
        for group, level in levels.items()
        if level
    ]
    return Policies(tuple(rules))


def simulate(scenario: Scenario, seed: int, place: int = 0, tick_ms: int = TICK_MS) -> Run:
    """Simulate a scenario to its end and poll on the way; the same seed gives the same run."""
    cluster = ScenarioCluster(seed, place)
    labels = scenario.workload(cluster)
    polls: list[Polled] = []
    levels = declared([labels]).slo_seconds("c")

    def poll() -> None:
        at_ms = cluster.clock.now + scenario.poll_ahead_ms
        brokers = cluster.brokers
        log = cluster.coordinator.log
        probes = brokers.probes(levels)
        polls.append(
            Polled(at_ms, brokers.poll(), log.positions(), brokers.facts(), probes, log.partitions)
        )
        cluster.clock.after(tick_ms, poll)

    cluster.clock.at(cluster.at_ms(scenario.watched_from) + tick_ms, poll)
    cluster.clock.run_until(cluster.at_ms(labels.minutes))
    simulation = Simulation(
        scenario.name, seed, cluster.coordinator.log.records, polls, cluster.truth
    )
    return Run(scenario, seed, labels, cluster, simulation)


class Recorder(Laggard):
    """Keeps the appended tables as they are."""

    def __init__(
        self, window_seconds: int = WINDOW_MS // 1000, policies: Policies | None = None
    ) -> None:
        super().__init__(window_seconds, policies)
        self.pieces: dict[str, list[pa.Table]] = {name: [] for name in self.history}

    def keep(self) -> None:
        for name in self.pieces.keys() & self.tables.keys():
            if self.tables[name].num_rows:
                self.pieces[name].append(self.tables[name])

    def whole(self, name: str) -> pa.Table:
        # one chunk: a filter costs as much per chunk as for thousands of rows
        return pa.concat_tables(
            [arrow_schema(schemas.TABLES[name]).empty_table(), *self.pieces[name]]
        ).combine_chunks()


def record(runs: Sequence[Run], job: Recorder | None = None) -> list[Recorded]:
    """Decode and advance over all of them at once; each gets its own rows back."""
    job = job or Recorder(policies=declared(run.labels for run in runs))
    for number, step in enumerate(zip_longest(*(_steps(run) for run in runs))):
        present = [each for each in step if each is not None]
        positions = [row for polled, _ in present for row in polled.positions]
        facts = [row for polled, _ in present for row in polled.facts]
        probes = [row for polled, _ in present for row in polled.probes]
        offsets = {
            part: row for polled, _ in present for part, row in polled.offsets_partitions.items()
        }
        records = [each for _, written in present for each in written]
        # what was written before the job began is read as the past, a tick before the live end is
        # reached
        is_past = number == 0 and any(run.scenario.watched_from for run in runs)
        # a scenario in which the offsets topic itself changes is recorded alone
        whole = replace(
            present[0][0],
            positions=positions,
            offsets_partitions=offsets,
            facts=facts,
            probes=probes,
        )
        job.tick(whole, records, is_caught_up=not is_past)
    tables = {name: job.whole(name) for name in job.pieces}
    return [
        Recorded(
            run,
            {name: _own(run, name, table) for name, table in tables.items()}
            | {"batches": _batches(run)},
            job.window_seconds,
        )
        for run in runs
    ]


def _steps(run: Run) -> Iterator[tuple[Polled, list[Written]]]:
    """Polls, and what was read with each; of a past that was not watched what the log cleaner has
    left.
    """
    for number, polled, records in ticks(run.simulation):
        yield polled, compacted(records) if number == 0 and run.scenario.watched_from else records


def _batches(run: Run) -> pa.Table:
    """What the brokers said of themselves, with each tick."""
    known = run.cluster.brokers.offsets_retention_minutes
    rows = [
        {
            "batch_id": number,
            "polled_at": polled.at_ms * 1000,
            "kind": "backfill" if number == 1 and run.scenario.watched_from else "tick",
            "offsets_retention_minutes": known,
            "source_to": _positions(polled, "last_stable_offset"),
            "source_high_watermark": _positions(polled, "high_watermark"),
        }
        for number, polled in enumerate(run.simulation.polls, 1)
    ]
    schema = arrow_schema(schemas.BATCHES)
    return pa.Table.from_pylist(rows, schema=pa.schema([schema.field(name) for name in BATCHED]))


def _positions(polled: Polled, name: str) -> list[tuple[int, int]]:
    """Of each offsets partition, as Arrow takes maps."""
    return [(number, row[name]) for number, row in polled.offsets_partitions.items()]


def _own(run: Run, name: str, table: pa.Table) -> pa.Table:
    """The rows of one run, none later than its end."""
    if not {"group", "topic"} & set(table.column_names):  # about the job itself
        return table
    time = "window_end" if "window_end" in table.column_names else schemas.TABLES[name].time_column
    kept = pc.less_equal(pc.cast(table[time], pa.int64()), 1000 * run.end_ms)  # whole windows
    topics = pa.array(sorted(run.cluster.known_topics), pa.string())
    if "group" in table.column_names:
        groups = pa.array(run.cluster.names, pa.string())
        own = pc.is_in(table["group"], value_set=groups)
        # an event of the cluster has no group, and may have no topic
        if "topic" in table.column_names:
            mine = pc.and_(
                pc.is_null(table["group"]),
                pc.or_(pc.is_null(table["topic"]), pc.is_in(table["topic"], value_set=topics)),
            )
            own = pc.or_(own, mine)
    else:
        own = pc.is_in(table["topic"], value_set=topics)
    return table.filter(pc.and_(kept, own)).combine_chunks()


def envelope_later(
    scenario: Scenario, seed: int, minutes: float, members: int | None, place: int = 0
) -> float:
    """Lowest lag in the minute that ends 30 min after a decision, with another number of members or
    with as many.

    The same seed; the labels' `decide` is not read, so that any minute can be asked about. All
    groups count: where they share a sink, what one of them gains by more members the others lose.
    """
    cluster = ScenarioCluster(seed, place)
    scenario.workload(cluster)
    lows: dict[str, int] = {}
    end = minutes + 30

    def grow() -> None:
        cluster.grow(max(0, (members or 0) - len(cluster.alive())))

    def look() -> None:
        lag = sum(cluster.backlog(name) for name in cluster.names)
        lows["all"] = min(lows.get("all", lag), lag)

    if members is not None:
        cluster.minute(minutes, grow)
    cluster.every(2, end - 1, end, look)
    cluster.clock.run_until(cluster.at_ms(end))
    return float(lows["all"])
