"""Drain times that `laggard plan` forecasts, against runs of the simulator with that many members
and that rate.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isinf

from laggard.answers.plan.change import Change, apply
from laggard.answers.plan.outcome import Plan, Span, rates_of
from laggard.answers.plan.recorded import Recorded, recorded_of
from laggard.diagnosis.history.frames import Memory
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.verdict.sizing import size
from laggard.stream.evaluation.evaluating import evaluate_groups, lay_out
from laggard.stream.evaluation.reading import Options, closed_windows, events_of, known_at
from scenarios import runs
from scenarios.cluster import ScenarioCluster
from scenarios.labels import Labels, Scenario
from simulator.cluster import MINUTE, SECOND
from simulator.producer import piecewise

# minutes: from when on too much arrives, and end of the window that the plan is made of
SHORT_AT, EVALUATED = 12, 26
DECIDE = EVALUATED - runs.TICK_MS / MINUTE  # its newest tick: the lag is of then
HORIZON = 60  # minutes in which a counterfactual run may drain
FRESH_SECONDS = 8  # a partition has drained when no more is unread than arrives between two commits
LEVELS = (5, 25, 50, 75, 95)  # percentiles
OPTIONS = Options("c", 60, Parameters(), lambda *_: Policy())


@dataclass(frozen=True)
class Compared:
    """One forecast, and how long the simulated group took, with its rebalance; in seconds."""

    seed: int
    question: str
    forecast: Span
    truth: float

    @property
    def ratio(self) -> float:
        """Forecast over truth; 0 if it never drained."""
        return self.forecast.value / self.truth

    @property
    def is_within(self) -> bool:
        """True if the truth lies between the ends of the interval, rounded to a second."""
        return self.forecast.p10 - 1 <= self.truth <= self.forecast.p90 + 1

    @property
    def is_seen(self) -> bool:
        """True if the forecast or the run ends before the horizon: else nothing can be compared."""
        return self.forecast.value < HORIZON * 60 or not isinf(self.truth)


def shortage(times: float = 1.0) -> Scenario:
    """Members too few for uneven partitions; from the decision on so many times the
    records arrive.
    """

    def workload(cluster: ScenarioCluster) -> Labels:
        members, each = cluster.one_of((2, 4), (3, 4), (4, 3))
        capacity, ratio = cluster.between(400, 800), cluster.between(1.05, 1.3)
        assignor = cluster.one_of("range", "roundrobin", "sticky", "cooperative-sticky")
        mean = members * capacity / (members * each)
        shares = [cluster.between(0.7, 1.3) for _ in range(members * each)]
        cluster.rates([
            piecewise(
                (0, 0.5 * mean * share),
                (SHORT_AT * MINUTE, ratio * mean * share),
                (round(DECIDE * MINUTE), times * ratio * mean * share),
            )
            for share in shares
        ])  # fmt: skip
        cluster.group(members, capacity=capacity, assignors=(assignor,))
        return Labels(EVALUATED + 1)

    return Scenario("PLAN", "too few members for what arrives", workload)


def compare(seed: int) -> Iterator[Compared]:
    """Ask for the members to have, for one to two partitions, and for one to each at a tenth less
    load.
    """
    recorded = _recorded(seed)
    rates = rates_of(recorded.signals, recorded.busy_rates)
    desired, ceiling = size(recorded.signals).members_desired, recorded.signals.ceiling
    now = recorded.signals.member_count
    if desired is None or now is None or desired <= now:
        return
    for members, times in dict.fromkeys(((desired, 1.0), (ceiling // 2, 1.0), (ceiling, 0.9))):
        if members <= now:
            continue
        changed = apply(recorded.signals, Change(members, rate=times))
        forecast = Plan(changed, rates, now=now, keeps_owners=True).outcome(members).drain_seconds
        yield Compared(
            seed,
            f"{now} to {members} members, rate x{times:g}",
            forecast,
            _truth(seed, members, times),
        )


def _recorded(seed: int) -> Recorded:
    """The group as the rules saw it at the decision."""
    run = runs.simulate(shortage(), seed)
    tables = dict(runs.record([run])[0].tables)
    last_ms = run.cluster.at_ms(EVALUATED) - runs.WINDOW_MS
    windows = closed_windows(tables, 0, last_ms, OPTIONS.window_seconds)
    history, read = lay_out(tables, windows[0].begin_ms, last_ms, OPTIONS), events_of(tables)
    memories: dict[str, Memory] = {}
    for window in windows[:-1]:
        known = known_at(read, window, OPTIONS)
        diagnosed = evaluate_groups(history, known, lambda _: dict, window, memories, OPTIONS)
        memories = {each.group: each.memory for each in diagnosed}
    name = run.cluster.name()
    found = recorded_of(tables, name, windows[-1].begin_ms, memories.get(name, Memory()), OPTIONS)
    if found is None:
        raise LookupError(f"seed {seed}: no row of {name}")
    return found


def _truth(seed: int, members: int, times: float) -> float:
    """Seconds from the decision until no partition has a backlog, inf if that is beyond the
    horizon.
    """
    cluster = ScenarioCluster(seed)
    shortage(times).workload(cluster)
    found: list[int] = []

    def look() -> None:
        if not found and _has_drained(cluster):
            found.append(cluster.clock.now)

    cluster.minute(DECIDE, lambda: cluster.grow(members - len(cluster.alive())))
    cluster.every(1, DECIDE + 0.5, DECIDE + HORIZON, look)
    for minute in range(EVALUATED, EVALUATED + HORIZON):
        cluster.clock.run_until(cluster.at_ms(minute + 1))
        if found:
            return (found[0] - cluster.at_ms(DECIDE)) / SECOND
    return inf


def _has_drained(cluster: ScenarioCluster) -> bool:
    now, logs = cluster.clock.now, cluster.brokers.topics[cluster.main].logs
    for part, log in enumerate(logs):
        fresh = log.end_at(now - FRESH_SECONDS * SECOND)
        if (
            cluster.coordinator.committed.get((cluster.name(), cluster.main, part), (0, 0))[0]
            < fresh
        ):
            return False
    return True


def percentile(values: Sequence[float], percent: int) -> float:
    """By nearest rank."""
    return sorted(values)[max(0, -(-percent * len(values) // 100) - 1)]


def table(found: Sequence[Compared]) -> list[str]:
    """Return the distribution of forecast / truth as a table for the page, without those beyond the
    horizon.
    """
    ratios = [each.ratio for each in found if each.is_seen]
    within = 100 * sum(each.is_within for each in found if each.is_seen) / len(ratios)
    levels = " | ".join(f"{percentile(ratios, each):.2f}" for each in LEVELS)
    return [
        "| forecasts | " + " | ".join(f"p{each}" for each in LEVELS) + " | truth in the interval |",
        "|" + "---|" * (len(LEVELS) + 2),
        f"| {len(ratios)} | {levels} | {within:.0f} % |",
    ]


def main() -> None:
    """Print each forecast with its truth, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=24, help="groups (default 24)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first (default 0)")
    found = []
    args = parser.parse_args()
    for seed in range(args.first, args.first + args.seeds):
        for each in compare(seed):
            span = each.forecast
            forecast = f"{span.value:.0f} s ({span.p10:.0f} to {span.p90:.0f})"
            print(
                f"seed {seed}: {each.question}: forecast {forecast}, took {each.truth:.0f} s",
                flush=True,
            )
            found.append(each)
    print("\n".join(table(found)))
    print(f"Both beyond {HORIZON} minutes, and left out: {sum(not each.is_seen for each in found)}")


if __name__ == "__main__":
    main()
