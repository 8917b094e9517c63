"""One reader whose group rebalances, stops, is rewound and returns, drawn at random: only one that
hangs is stalled.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import inf
from statistics import median_low
from typing import Any

import numpy as np

from diagnosis.groups import topic_signals
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals import stall

READERS = 60
WINDOW, WINDOWS, WARM = 60, 60, 20
RATE, SPEED = 100, 4  # records/s that arrive; times that, what it reads at most
GAPS = 16  # of which the commit interval is the median


@dataclass
class Reader:
    """What happens to a reader, in seconds, and what is recorded of it by window."""

    interval: int
    rebalances: set[int]  # at each of which it commits, and its timer begins again
    away: range  # in which the group has no member
    rewind: int  # records by which its offset is reset before it returns
    hangs_at: float
    windows: dict[str, list[Any]] = field(default_factory=dict)

    def run(self) -> None:
        """Read second by second, and record each window as the job does."""
        names = ("committed", "frozen", "commits", "interval", "owner", "settled")
        self.windows = {name: [] for name in names}
        position = committed = 0
        progressed = timer = newest = commits = 0
        commit_at, gaps = None, list[int]()
        for second in range(WINDOW * WINDOWS):
            end, is_away = RATE * second, second in self.away
            if self.away and second == self.away.stop:
                position = committed = max(0, committed - self.rewind)
            is_rebalanced = second in self.rebalances or second in (self.away.start, self.away.stop)
            newest = second if is_rebalanced else newest
            if second >= self.hangs_at or is_away:
                is_due = False
            else:
                position = min(end, position + SPEED * RATE)
                # who comes has nothing to commit yet
                has_to_go = is_rebalanced and second != self.away.stop
                is_due = has_to_go or second - timer >= self.interval
            timer = second if is_due or is_rebalanced or is_away else timer
            if is_due:
                commits += 1
                gaps += [] if commit_at is None else [second - commit_at]
                commit_at, progressed = second, second if position > committed else progressed
                committed = position
            if second % WINDOW == WINDOW - 1:
                frozen = min(second - progressed, second - committed // RATE)
                interval = median_low(gaps[-GAPS:]) if len(gaps) >= 3 else np.nan
                row = (
                    committed,
                    frozen,
                    commits,
                    interval,
                    "" if is_away else "m0",
                    second - newest,
                )
                for name, value in zip(names, row, strict=True):
                    self.windows[name].append(value)
                commits = 0

    def kinds(self) -> dict[int, str]:
        """The kind of stall in each window in which somebody reads."""
        return {
            number: self._kind(number)
            for number in range(WARM, WINDOWS)
            if self.windows["owner"][number]
        }

    def _kind(self, number: int) -> str:
        last = slice(0, number + 1)
        committed = np.array(self.windows["committed"][last], float)
        owners = self.windows["owner"][last]
        history = {
            name: np.array(self.windows[name][last], float)
            for name in ("frozen", "commits", "interval")
        }
        lag = RATE * WINDOW * np.arange(1, number + 2) - committed
        history |= {
            "committed": committed,
            "consumed": np.diff(committed, prepend=0),
            "lag": lag,
            "lag_min": lag,
        }
        history |= {"produced": float(RATE * WINDOW), "repeats": 0.0, "noops": 0.0}
        history |= {"owner": np.array(owners, object), "slot": np.array(owners, object)}
        frame = topic_signals(
            [lag[-1]], arrival=float(RATE), history=history, windows=number + 1
        ).frame
        settled = float(self.windows["settled"][number])
        return stall.stalls(
            frame,
            has_members=True,
            window_seconds=WINDOW,
            parameters=Parameters(),
            settled_seconds=settled,
        )[0]


def draw_reader(seed: int) -> Reader:
    """Draw a commit interval, a spell of rebalances, an absence, and whether it hangs later."""
    chance = random.Random(f"reader {seed}")
    end, rebalances, away = WINDOW * WINDOWS, set[int](), range(0)
    if chance.random() < 0.6:
        begin, gap = chance.randrange(1200, 2000), chance.randint(15, 45)
        rebalances = set(range(begin, begin + chance.randint(60, 900), gap))
    if chance.random() < 0.5:
        begin = chance.randrange(1300, 2400)
        away = range(begin, begin + chance.randint(100, 900))
    hangs_at = chance.randrange(2000, 2800) if chance.random() < 0.5 else inf
    if away and hangs_at < inf:  # a stop would end what hangs
        hangs_at = max(hangs_at, away.stop + 200.0)
    rewind = chance.choice((0, 0, 50_000)) if away else 0
    reader = Reader(
        chance.choice((5, 20, 60, 120, 180)), rebalances, away, rewind, min(hangs_at, end * 2.0)
    )
    reader.run()
    return reader


def test_a_reader_that_does_not_hang_is_never_stalled() -> None:
    wrong = {}
    for seed in range(READERS):
        reader = draw_reader(seed)
        found = [
            number
            for number, kind in reader.kinds().items()
            if kind and (number + 1) * WINDOW < reader.hangs_at
        ]
        wrong |= {seed: (reader.interval, found)} if found else {}
    assert wrong == {}


def test_a_reader_that_hangs_is_stalled_after_three_commit_intervals() -> None:
    late = {}
    for seed in range(READERS):
        reader = draw_reader(seed)
        due = reader.hangs_at + 3 * reader.interval + 4 * WINDOW
        if due > WINDOW * WINDOWS:
            continue
        first = min(
            (number + 1) * WINDOW
            for number, kind in [*reader.kinds().items(), (WINDOWS, "never")]
            if kind
        )
        late |= {seed: (reader.interval, reader.hangs_at, first)} if first > due else {}
    assert late == {}
