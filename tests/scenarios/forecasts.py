"""Forecasts and measures in seconds of a run's windows, against the simulated logs and commits
themselves.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scenarios.runs import TICK_MS, Recorded, Run
from scenarios.scoring import milliseconds
from simulator.producer import Arrivals

Row = Mapping[str, Any]
Timeline = list[tuple[int, int]]  # (ms, committed offset)
STEP_MS = 5_000
NOTABLE = 5  # a backlog worth a forecast: so many times what is usual in the run
# and more than what arrives in this time: less is made by the commit interval, and nobody drains it
RHYTHM_MS = 60_000
GONE = 50  # one part in so many is what is left when it is gone
LASTS_MS = 240_000  # it must take longer to go than the rates of a few windows do to be known


@dataclass
class Forecasts:
    """Of one run: forecast over truth of each backlog that is half gone (inf: "never"), errors of
    time lag in s.
    """

    drains: list[float] = field(default_factory=list)
    abstained: int = 0  # backlogs half gone without a forecast
    time_lags: int = 0
    beyond: int = 0  # time lags whose error is above the gap of two polls that their row states
    worst_error: float = 0.0


def forecasts(recorded: Recorded, windows: Iterable[Row]) -> Forecasts:
    """`windows` are rows of `group_windows`."""
    run, result = recorded.run, Forecasts()
    by_group = defaultdict[tuple[str, str], list[Row]](list)
    for row in windows:
        by_group[row["group"], row["topic"]].append(row)
    commits = _commits(run)
    for (group, topic), rows in sorted(by_group.items()):
        parts = {
            part: line
            for (name, read, part), line in commits.items()
            if (name, read) == (group, topic)
        }
        if topic in run.cluster.brokers.topics and parts:
            logs = [run.cluster.brokers.topics[topic].logs[part] for part in parts]
            _drain(_lags(run, topic, parts), logs, rows, result)
    for row in recorded.tables["lag_windows"].to_pylist():
        if row["time_lag_seconds"] is not None and not row["time_lag_censored"]:
            _time_lag(run, row, result)
    return result


def _commits(run: Run) -> dict[tuple[str, str, int], Timeline]:
    lines = defaultdict[tuple[str, str, int], Timeline](list)
    for written in run.simulation.records:
        if (
            written.record.commit is not None
            and written.record.committed_offset is not None
            and written.is_visible
        ):
            lines[written.record.commit].append(
                (written.timestamp_ms, written.record.committed_offset)
            )
    return lines


def _lags(run: Run, topic: str, parts: Mapping[int, Timeline]) -> Timeline:
    """Every few seconds the records that a group has not committed yet; nothing where a log is not
    what it was.
    """
    logs = run.cluster.brokers.topics[topic].logs
    begin_ms = max(line[0][0] for line in parts.values())
    found = []
    for at_ms in range(begin_ms, run.end_ms, STEP_MS):
        lags = [logs[part].end_at(at_ms) - _committed(line, at_ms) for part, line in parts.items()]
        if min(lags) < 0:  # an end that was cut: the simulator keeps the new log alone
            return []
        found.append((at_ms, sum(lags)))
    return found


def _committed(line: Timeline, at_ms: int) -> int:
    return line[max(0, bisect_right(line, (at_ms, sys.maxsize)) - 1)][1]


def _drain(
    lags: Timeline, logs: Sequence[Arrivals], rows: Sequence[Row], result: Forecasts
) -> None:
    """The largest backlog of the run, if it comes from little and goes again: when a part is left
    that is as usual.
    """
    if not lags:
        return
    usual = sorted(lag for _, lag in lags)[len(lags) // 10]
    top_ms, peak = max(lags, key=lambda each: each[1])
    after = [(at_ms, lag) for at_ms, lag in lags if at_ms > top_ms]
    left = max(peak / GONE, 2 * usual)
    half_ms = next((at_ms for at_ms, lag in after if lag <= peak / 2), None)
    gone_ms = next((at_ms for at_ms, lag in after if lag <= left), None)
    arrived = sum(log.end_at(top_ms) - log.end_at(top_ms - RHYTHM_MS) for log in logs)
    if (
        peak < max(1, NOTABLE * usual, arrived)
        or half_ms is None
        or gone_ms is None
        or gone_ms - top_ms < LASTS_MS
    ):
        return
    row = min(
        (each for each in rows if _reported_ms(each) >= half_ms), key=_reported_ms, default=None
    )
    if row is None or _reported_ms(row) >= gone_ms or row["lag"] <= left:
        return
    if row["drain_seconds"] is None:
        result.abstained += 1
    else:
        forecast = row["drain_seconds"] * (1 - left / row["lag"])
        result.drains.append(forecast / ((gone_ms - _reported_ms(row)) / 1000))


def _reported_ms(row: Row) -> int:
    """The newest tick in the window: its lag is the row's."""
    return (milliseconds(row["window_end"]) or 0) - TICK_MS


def _time_lag(run: Run, row: Row, result: Forecasts) -> None:
    topic = run.cluster.brokers.topics.get(row["topic"])
    if topic is None or topic.topic_id != row["topic_id"]:
        return  # the log that was measured is gone
    at_ms = milliseconds(row["sampled_at"]) or 0
    produced_ms = topic.logs[row["partition"]].produced_at(row["committed_offset"])
    truth = 0.0 if produced_ms is None or produced_ms > at_ms else (at_ms - produced_ms) / 1000
    error = abs(row["time_lag_seconds"] - truth)
    result.time_lags += 1
    result.beyond += error > row["time_lag_error_seconds"]
    result.worst_error = max(result.worst_error, error)
