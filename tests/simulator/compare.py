"""One run's rows of `rebalances` next to the truth: counts of what is right, and a sentence for
each difference.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

from laggard.rebalance.analytics.pauses import nearest_rank
from laggard.rebalance.analytics.result import Closed
from simulator.expected import expected_cause, right_reasons
from simulator.logical import Logical, find_logical
from simulator.simulation import TICK_MS, Simulation
from simulator.watch import Watched

Row = dict[str, Any]
CLAIM = 0.7
GROWTH_MS = 300_000
RANKS = {"pause_p50_seconds": 0.5, "pause_p95_seconds": 0.95, "pause_max_seconds": 1.0}


def milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


class Comparison:
    """Counts and sentences of one run."""

    def __init__(self, simulation: Simulation) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._name = f"{simulation.workload} seed {simulation.seed}"
        self._configs = simulation.truth.configs

    def check(
        self,
        what: str,
        where: Logical,
        expected: object,
        found: object,
        *,
        is_right: bool | None = None,
    ) -> None:
        """Right where both are equal, or as given."""
        right = expected == found if is_right is None else is_right
        self.counts[f"{what} {'right' if right else 'wrong'}"] += 1
        if not right:
            self.note(what, where.group, where.numbers, f"{expected} is {found}")

    def note(self, *reported: object) -> None:
        self.wrong.append(" ".join(map(str, (self._name, *reported))))

    def commit_ms(self, group: str) -> int:
        """The longest commit interval of the group's members."""
        return max(each.commit_ms or 0 for each in self._configs[group])

    def start_ms(self, group: str) -> int:
        """How far the estimate of a start may be off: a commit interval, a
        heartbeat and a batch.
        """
        batch = max(round(1000 * each.max_records / each.capacity) for each in self._configs[group])
        return (
            self.commit_ms(group) + max(each.heartbeat_ms for each in self._configs[group]) + batch
        )


def compare_rebalances(run: Watched) -> tuple[Counter[str], list[str]]:
    """The rows of `rebalances` of one run."""
    simulation = run.simulation
    done, truth = Comparison(simulation), find_logical(simulation.truth)
    rows: dict[tuple[str, int | None], list[Row]] = {}
    for row in run.history["rebalances"]:
        rows.setdefault((row["group"], milliseconds(row["ended_at"])), []).append(row)
    for number, logical in enumerate(truth):
        found = rows.pop((logical.group, logical.end_ms), [])
        if not logical.is_over:
            continue
        done.counts["true"] += 1
        same = [row for row in found if list(row["generations"]) == logical.numbers]
        if len(same) != 1 or len(found) > 1:
            done.counts["missing"] += 1
            done.counts["invented"] += len(found)
            done.note("row", logical.group, logical.numbers, "is", *map(_brief, found))
            continue
        done.counts["row right"] += 1
        row = same[0]
        _compare_times(done, logical, row)
        earlier = [each for each in truth[:number] if each.group == logical.group]
        done.check(
            "moved",
            logical,
            _movement(logical),
            [row[name] for name in ("moved", "necessary", "avoidable")],
        )
        _compare_cause(
            done, logical, row, expected_cause(logical, earlier, grew=_grew(simulation, logical))
        )
        if row["rebalance_id"] not in run.late:
            later = [each for each in truth[number:] if each.group == logical.group]
            _compare_reason(done, logical, row, right_reasons(logical, later))
        _compare_pauses(done, logical, row, run.closed[row["rebalance_id"]])
    for (group, _), found in sorted(rows.items(), key=str):
        done.counts["invented"] += len(found)
        done.note("no such row", group, *map(_brief, found))
    return done.counts, done.wrong


def _grew(simulation: Simulation, logical: Logical) -> bool:
    """True if a poll shows that a topic got partitions shortly before the rebalance was over."""
    counts = [
        Counter(row["topic"] for row in polled.positions)
        for polled in simulation.polls
        if logical.start_ms - GROWTH_MS - TICK_MS <= polled.at_ms <= logical.end_ms + TICK_MS
    ]
    return any(two[topic] > one[topic] > 0 for one, two in pairwise(counts) for topic in two)


def _brief(row: Row) -> tuple[object, ...]:
    return list(row["generations"]), milliseconds(row["ended_at"]), row["cause"]


def _compare_times(done: Comparison, logical: Logical, row: Row) -> None:
    """An old record has no times; a KIP-848 group states its start, a classic one bounds it."""
    reported = [milliseconds(row[name]) for name in ("started_low", "started_est", "started_high")]
    start = logical.start_ms
    low, est, high = reported
    if not logical.is_classic:
        done.check("start", logical, [start] * 3, reported)
    elif low is not None and est is not None and high is not None:
        off = [each - start for each in (low, est, high)]
        done.check(
            "bounds", logical, start, off, is_right=low <= est <= high and low <= start <= high
        )
        done.check(
            "start", logical, start, off, is_right=abs(est - start) <= done.start_ms(logical.group)
        )
    sync = row["sync_seconds"]
    done.check("sync", logical, logical.sync_ms, None if sync is None else round(sync * 1000, 3))


def _movement(logical: Logical) -> list[int | None]:
    moves = logical.movement
    return [None] * 3 if moves is None else [moves.moved, moves.necessary, moves.avoidable]


def _compare_cause(done: Comparison, logical: Logical, row: Row, expected: str) -> None:
    if row["cause"] == "unknown" != expected:
        done.counts["cause unknown"] += 1
        done.note("cause", logical.group, logical.numbers, f"{expected} is unknown")
    else:
        done.check("cause", logical, expected, row["cause"])


def _compare_reason(done: Comparison, logical: Logical, row: Row, right: set[str]) -> None:
    posterior = dict(row["cause_posterior"] or ())
    claim = max(posterior, key=lambda name: posterior[name], default=None)
    if claim is not None and posterior[claim] >= CLAIM:
        done.check("reason", logical, logical.left, claim, is_right=claim in right)
    else:
        done.counts["reason open"] += claim is not None


def _compare_pauses(done: Comparison, logical: Logical, row: Row, closed: Closed) -> None:
    """Each partition that was measured, and the percentiles over those that the row says were
    stopped.
    """
    if row["paused_partitions"] is None:
        return
    interval = done.commit_ms(logical.group) / 1000
    allowed = interval + TICK_MS / 1000
    moved = {(move.topic, move.partition) for move in closed.moves}
    stopped = []
    for pause in closed.pauses:
        gaps = logical.pauses.get(pause.place, [])
        if pause.seconds is None or any(first is None for _, first in gaps):
            continue
        seconds = sum((first or 0) - last for last, first in gaps) / 1000
        off = abs(seconds - pause.seconds)
        done.check("pause", logical, (pause.place, seconds), pause.seconds, is_right=off <= allowed)
        done.counts["pause near"] += off <= interval
        if (
            row["rebalance_mode"] == "eager"
            or pause.place in moved
            or pause.seconds > (pause.commit_interval_seconds or 0)
        ):
            stopped.append(seconds)
    if len(stopped) != row["paused_partitions"]:
        return
    for name, share in RANKS.items():
        expected, found = nearest_rank(stopped, share), row[name]
        is_right = found is not None and expected is not None and abs(found - expected) <= allowed
        done.check("rank", logical, (name, expected), found, is_right=is_right)
