"""Three usual ways to evaluate lag, written from what is published about them; they see the same
runs.

Each gives one call per window: whether something is wrong, which partitions, and whether it would
add consumers.
"""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scenarios.runs import WINDOW_MS, Recorded, Run

Place = tuple[str, str, int]  # group, topic, partition
KEPT = 10  # commits, Burrow's default
GROWTH = 0.05  # of the arrival rate


@dataclass(frozen=True)
class Call:
    """What a method says about one group at the end of a window."""

    group: str
    window_ms: int  # begin of the window
    is_alarm: bool
    partitions: frozenset[int]
    adds_consumers: bool


@dataclass(frozen=True)
class Commit:
    """A commit as Burrow keeps it: the lag is that of the moment it arrived."""

    at_ms: int
    offset: int
    lag: int


def burrow_status(commits: Sequence[Commit], now_ms: int, current_lag: int) -> str:
    """The status of one partition by the rules that Burrow's documentation lists, over its last 10
    commits.
    """
    offsets, lags = [each.offset for each in commits], [each.lag for each in commits]
    falls = [index for index, (old, new) in enumerate(pairwise(offsets)) if new < old]
    if falls and current_lag > 0 and offsets[-1] < max(offsets[: falls[-1] + 1]):
        return "REWIND"  # and not yet back where it was
    if len(commits) < 2 or 0 in lags:
        return "OK"
    if now_ms - commits[-1].at_ms > commits[-1].at_ms - commits[0].at_ms and current_lag > 0:
        return "STOP"
    never_less = len(commits) == KEPT and not falls and lags == sorted(lags)
    if never_less:
        return "STALL" if len(set(offsets)) == 1 else "WARN"
    return "OK"


def burrow(recorded: Recorded) -> list[Call]:
    """Commits as they were written; it is given the true log end at each, which it only polls for
    in reality.
    """
    run = recorded.run
    kept: dict[Place, deque[Commit]] = defaultdict(lambda: deque(maxlen=KEPT))
    records = deque(
        each
        for each in run.simulation.records
        if each.record.commit is not None and each.is_visible
    )
    calls = []
    for now_ms in range(run.cluster.at_ms(1), run.end_ms + 1, WINDOW_MS):
        while records and records[0].timestamp_ms < now_ms:
            each = records.popleft()
            key, offset = each.record.commit, each.record.committed_offset
            assert key is not None
            if offset is None:
                kept.pop(key, None)
            else:
                lag = max(0, _end(run, key[1:], each.timestamp_ms) - offset)
                kept[key].append(Commit(each.timestamp_ms, offset, lag))
        calls += _burrow_calls(run, kept, now_ms)
    return calls


def _end(run: Run, place: tuple[str, int], at_ms: int) -> int:
    topic = run.cluster.brokers.topics.get(place[0])
    return 0 if topic is None else topic.logs[place[1]].end_at(at_ms)


def _burrow_calls(run: Run, kept: dict[Place, deque[Commit]], now_ms: int) -> list[Call]:
    groups: dict[str, dict[int, str]] = defaultdict(dict)
    for (group, topic, partition), commits in kept.items():
        lag = max(0, _end(run, (topic, partition), now_ms) - commits[-1].offset)
        groups[group][partition] = burrow_status(list(commits), now_ms, lag)
    calls = []
    for group, statuses in sorted(groups.items()):
        parts = frozenset(part for part, status in statuses.items() if status != "OK")
        is_slow = "WARN" in statuses.values()  # it reads, and too slowly
        calls.append(Call(group, now_ms - WINDOW_MS, bool(parts), parts, is_slow))
    return calls


def _windows(recorded: Recorded) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    """Rows of `lag_windows` with a known lag, by group, topic and window."""
    columns = ["group", "topic", "partition", "window_start", "lag", "arrival_rate", "status"]
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in recorded.tables["lag_windows"].select(columns).to_pylist():
        if row["lag"] is not None:
            start_ms = round(row["window_start"].timestamp() * 1000)
            found[row["group"], row["topic"], start_ms].append(row)
    return dict(sorted(found.items(), key=lambda each: (each[0][2], each[0][:2])))


def outliers(recorded: Recorded) -> list[Call]:
    """Partitions whose lag is above mean + 2 σ of the topic's partitions."""
    calls = []
    for (group, _, start_ms), rows in _windows(recorded).items():
        lags = [row["lag"] for row in rows]
        limit = statistics.fmean(lags) + 2 * statistics.pstdev(lags)
        apart = frozenset(row["partition"] for row in rows if row["lag"] > limit)
        calls.append(Call(group, start_ms, bool(apart), apart, adds_consumers=False))
    return calls


def velocity(recorded: Recorded) -> list[Call]:
    """The difference of a group's lag between two windows; growth above 5 % of what arrives asks
    for consumers.
    """
    calls, before = [], dict[tuple[str, str], tuple[int, int]]()
    for (group, topic, start_ms), rows in _windows(recorded).items():
        lag = sum(row["lag"] for row in rows)
        arrival = sum(row["arrival_rate"] or 0 for row in rows)
        last = before.get((group, topic))
        if last is not None and start_ms > last[0]:
            slope = (lag - last[1]) / ((start_ms - last[0]) / 1000)
            grows = slope > GROWTH * arrival and lag > last[1]
            calls.append(Call(group, start_ms, grows, frozenset(), adds_consumers=grows))
        before[group, topic] = start_ms, lag
    return calls


METHODS: dict[str, Callable[[Recorded], list[Call]]] = {
    "Burrow's rules": burrow,
    "mean + 2σ": outliers,
    "two-point velocity": velocity,
}


def persistent(calls: Sequence[Call], windows: int = 3) -> list[Call]:
    """Calls that are alarms for so many windows in a row, as findings must be."""
    row: dict[str, int] = defaultdict(int)
    held = []
    for call in calls:
        row[call.group] = row[call.group] + 1 if call.is_alarm else 0
        if row[call.group] >= windows:
            held.append(call)
    return held
