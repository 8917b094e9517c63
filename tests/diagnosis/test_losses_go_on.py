"""Losses by retention that were forecast and happen, drawn at random: one finding until the reader
is safe.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import Evaluation, Fluid, evaluate
from diagnosis.test_stands_on import lives
from laggard.diagnosis.rules.registry import BY_CODE
from patience import examples

pytestmark = pytest.mark.examples
GROUPS = examples(12)
MINUTES, FULL = 64, 12  # from minute `FULL` on the log is full
WINDOW = 60


def lose(seed: int) -> tuple[Evaluation, int]:
    """A partition that stands until retention by size has overtaken it, and reads fast again; when
    it reads again.
    """
    chance = random.Random(f"loses {seed}")
    rate, fast = chance.uniform(20, 200), chance.uniform(2, 4)
    held = rate * WINDOW * chance.uniform(8, 14)  # records that the log holds
    begin = chance.randrange(18, 22)
    until = begin + round(held / rate / WINDOW) + chance.randint(8, 16)
    partitions = chance.choice((2, 4, 6))
    group = Fluid(np.full((partitions, MINUTES), rate), np.full((2, MINUTES), 1e6), seed)
    segment, committed = rate * WINDOW / 2, 0.0
    for row in group.lag_rows:
        minute = round(
            (row["window_start"] - group.lag_rows[0]["window_start"]).total_seconds() / WINDOW
        )
        end = row["log_end_offset"]
        start = 1e6 + max(0.0, (end - 1e6 - max(held, FULL * rate * WINDOW)) // segment * segment)
        row["log_start_offset"] = round(start)
        if row["partition"] == 0:
            _stand(row, minute, begin, until, committed, rate * fast)
            committed = row["committed_offset"]
    return evaluate(group.tables(), first=15), until


def _stand(
    row: dict[str, Any], minute: int, begin: int, until: int, committed: float, pace: float
) -> None:
    end, start = row["log_end_offset"], row["log_start_offset"]
    if minute < begin:
        return
    if minute < until:
        row |= {"committed_offset": committed, "consumed": 0, "commits": 0, "lag_envelope": None}
        row["frozen_seconds"] = float(WINDOW * (minute - begin + 1))
    else:
        jumped = max(committed, start)
        row["committed_offset"] = round(min(end, jumped + pace * WINDOW))
        row["consumed"] = None if jumped > committed else round(row["committed_offset"] - committed)
    lag = end - row["committed_offset"]
    row |= {
        "lag": lag,
        "lag_min": lag,
        "lag_max": lag,
        "time_lag_seconds": lag / row["arrival_rate"],
    }
    if minute >= until:
        row["lag_envelope"] = lag
    elif row["committed_offset"] < start:
        _fall_below(row)


def _fall_below(row: dict[str, Any]) -> None:
    """Make a window one in which the log starts after the commit, as the recorder writes it."""
    row |= {
        "status": "below_log_start",
        "lag": None,
        "lag_min": None,
        "lag_max": None,
        "time_lag_seconds": None,
    }
    row["lost_records"] = round(row["log_start_offset"] - row["committed_offset"])


def test_a_loss_that_was_forecast_is_one_finding_until_the_reader_reads_on() -> None:
    wrong = {}
    for seed in range(GROUPS):
        found, until = lose(seed)
        events = lives(found, "DATA_LOSS_FORECAST")
        lost = [row["loss_seconds"] for row in found.windows if row["lost_records"]]
        if events != [["opened", "closed"]] or not lost or set(lost) != {0.0}:
            wrong[seed] = until, events, set(lost)
    assert wrong == {}


def test_a_loss_ends_by_windows_that_are_known_to_lose_nothing_and_never_by_unknown_ones() -> None:
    """A reader in bursts, whose jumps may as well be reads, has windows of unknown loss."""
    for seed in range(GROUPS):
        chance = random.Random(f"unknown {seed}")
        begin, unknown = 20, sorted(chance.sample(range(21, 34), chance.randint(1, 9)))
        group = Fluid(np.full((2, MINUTES), 100.0), np.full((2, MINUTES), 1e6), seed)
        for row in group.lag_rows:
            minute = round(
                (row["window_start"] - group.lag_rows[0]["window_start"]).total_seconds() / WINDOW
            )
            row["lost_records"] = 0
            if row["partition"] == 0 and minute == begin:
                row["lost_records"] = 700
            elif row["partition"] == 0 and minute in unknown:
                row["lost_records"] = None
        found = evaluate(group.tables(), first=15)
        closed = [
            row for row in found.findings if row["code"] == "DATA_LOST" and row["event"] == "closed"
        ]
        opened = [
            row for row in found.findings if row["code"] == "DATA_LOST" and row["event"] == "opened"
        ]
        assert [len(opened), len(closed)] == [1, 1]
        windows = round((closed[0]["at"] - opened[0]["at"]).total_seconds() / WINDOW)
        assert windows == BY_CODE["DATA_LOST"].close_after + len(unknown)


def test_a_reader_that_drains_each_burst_is_not_overtaken_by_what_the_bursts_delete() -> None:
    """Bursts begin in the middle of a window: the gap in which one began has hardly any of the
    reader's pace in it.
    """
    wrong = {}
    for seed in range(GROUPS):
        chance = random.Random(f"bursts {seed}")
        rate, partitions, begun = chance.uniform(20, 60), 4, chance.uniform(0.3, 0.7)
        arrival = np.full((partitions, MINUTES), rate / 5)
        arrival[:, 9::10] += 8 * rate * begun
        arrival[:, 10::10] += 8 * rate * (1 - begun)
        group = Fluid(
            arrival, np.full((2, MINUTES), chance.uniform(1.8, 2.4) * rate * partitions / 2), seed
        )
        held = 10 * chance.uniform(1.3, 2.0) * rate * WINDOW
        for row in group.lag_rows:
            row["log_start_offset"] = round(max(1e6, row["log_end_offset"] - held))
        found = lives(evaluate(group.tables(), first=15), "DATA_LOSS_FORECAST")
        if found:
            wrong[seed] = found
    assert wrong == {}


def test_a_reader_that_drains_a_long_burst_has_no_loss_forecast() -> None:
    """The trend of a burst of some minutes lasts on while its backlog drains already."""
    wrong = {}
    for seed in range(GROUPS):
        chance = random.Random(f"long burst {seed}")
        partitions, rate, lasts = (
            chance.choice((4, 8)),
            chance.uniform(20, 60),
            chance.randint(3, 5),
        )
        capacity = chance.uniform(2.2, 3.2) * rate * partitions / 2
        arrival = np.full((partitions, MINUTES), rate)
        arrival[:, 30 : 30 + lasts] = chance.uniform(1.4, 1.8) * 2 * capacity / partitions
        group = Fluid(arrival, np.full((2, MINUTES), capacity), seed)
        held = chance.uniform(1.2, 1.6) * max(row["lag"] for row in group.lag_rows)
        for row in group.lag_rows:
            row["log_start_offset"] = round(max(1e6, row["log_end_offset"] - held) // 1000 * 1000)
        opened = [
            row["at"] for row in evaluate(group.tables(), first=15).findings if _is_forecast(row)
        ]
        falls_from = group.fact_rows[30 + lasts]["window_start"]
        if any(at > falls_from for at in opened):
            wrong[seed] = opened
    assert wrong == {}


def _is_forecast(row: dict[str, Any]) -> bool:
    return bool(row["code"] == "DATA_LOSS_FORECAST" and row["event"] == "opened")


def commit_seldom(
    seed: int, *, stops: bool = False, leaves: bool = False, burst: float = 1.0
) -> Evaluation:
    """A reader whose commits are further apart than what retention keeps; it keeps up, or stops in
    minute 40.

    Or it leaves after each commit; or in one minute `burst` times as much arrives.
    """
    chance = random.Random(f"seldom {seed}")
    rate, gap = chance.uniform(20, 200), chance.randint(2, 5)  # minutes
    held = rate * WINDOW * gap * chance.uniform(0.2, 0.45)  # records that the log keeps
    arrival = np.full((4, MINUTES), rate)
    arrival[:, 40 // gap * gap + 1] *= burst  # just after a commit
    group = Fluid(arrival, np.full((2, MINUTES), 1e6), seed, interval=60.0 * gap)
    for minute, fact in enumerate(group.fact_rows):
        if leaves and minute % gap:
            fact |= {"members": 0, "group_state": "Empty", "empty_since": fact["window_start"]}
    first, at = group.lag_rows[0]["window_start"], dict.fromkeys(range(4), 1_000_000)
    for row in group.lag_rows:
        minute, place = (
            round((row["window_start"] - first).total_seconds() / WINDOW),
            row["partition"],
        )
        commits, end = minute % gap == 0 and not (stops and minute >= 40), row["log_end_offset"]
        start, before = round(max(1e6, end - held)), at[place]
        if commits:
            at[place] = end - round(rate)
        row |= {
            "commits": int(commits),
            "consumed": at[place] - before if before >= start else None,
        }
        row |= {
            "frozen_seconds": float(WINDOW * (minute % gap)),
            "lag_envelope": round(rate) if commits else None,
        }
        lag = end - at[place]
        row |= {"committed_offset": at[place], "log_start_offset": start}
        row |= {"lag": lag, "lag_min": lag, "lag_max": lag, "time_lag_seconds": lag / rate}
        if at[place] < start:
            _fall_below(row)
    return evaluate(group.tables(), first=15)


def drain_bursts(seed: int) -> tuple[Evaluation, int]:
    """A reader that commits seldom, and bursts that push the log start past its commit; records it
    has truly lost.
    """
    chance = random.Random(f"pushed {seed}")
    rate, gap, pace = chance.uniform(20, 60), chance.randint(3, 5), chance.uniform(8, 12)
    arrival = np.full((2, MINUTES), rate)
    burst = chance.randrange(22, 26)
    arrival[:, burst::20] *= chance.uniform(40, 60)
    held = arrival.max() * WINDOW * chance.uniform(1.02, 1.1)  # hardly more than a burst
    group = Fluid(arrival, np.full((2, MINUTES), 1e6), seed, interval=60.0 * gap)
    begin, at, committed, lost = group.lag_rows[0]["window_start"], [1e6] * 2, [1_000_000] * 2, 0
    for row in group.lag_rows:
        minute, place = (
            round((row["window_start"] - begin).total_seconds() / WINDOW),
            row["partition"],
        )
        end, before = row["log_end_offset"], committed[place]
        start = round(max(1e6, end - held))
        lost += max(0, start - round(at[place]))
        at[place] = min(end, max(at[place], start) + pace * rate * WINDOW)
        commits = minute % gap == 0
        if commits:
            committed[place] = round(at[place])
        lag = end - committed[place]
        row |= {
            "committed_offset": committed[place],
            "log_start_offset": start,
            "commits": int(commits),
        }
        row |= {"consumed": committed[place] - before, "lag_envelope": lag if commits else None}
        row |= {"lag": lag, "lag_min": lag, "lag_max": lag, "time_lag_seconds": lag / rate}
        row["frozen_seconds"] = 0.0 if commits else float(WINDOW * (minute % gap))
        if before < start:
            row |= {"consumed": None, "lost_records": None}
        if committed[place] < start:
            _fall_below(row)
    return evaluate(group.tables(), first=15), lost


def test_bursts_deleted_behind_a_reader_that_commits_seldom_are_not_lost_or_in_danger() -> None:
    """A gap is not one without reading because its commit passed deleted records, and it is not
    known what was read.
    """
    wrong = {}
    for seed in range(GROUPS):
        found, lost = drain_bursts(seed)
        events = {code: lives(found, code) for code in ("DATA_LOST", "DATA_LOSS_FORECAST")}
        recorded = sum(row["lost_records"] or 0 for row in found.windows)
        if lost or recorded or any(events.values()):
            wrong[seed] = lost, recorded, events
    assert wrong == {}


def test_records_deleted_between_two_commits_of_a_reader_that_keeps_up_are_not_lost() -> None:
    lost = {
        seed: found for seed in range(GROUPS) if (found := lives(commit_seldom(seed), "DATA_LOST"))
    }
    assert lost == {}


@pytest.mark.parametrize("how", [{"stops": True}, {"leaves": True}, {"burst": 200.0}])
def test_it_is_lost_if_nobody_can_have_read_it_meanwhile(how: dict[str, Any]) -> None:
    assert [
        seed for seed in range(GROUPS) if not lives(commit_seldom(seed, **how), "DATA_LOST")
    ] == []
