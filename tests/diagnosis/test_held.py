"""Readers that an open transaction holds, and readers that hang while one is open, on logs drawn at
random.

A log is a list of records, some of them markers or aborted: offsets that no reader of committed
records gets. The truth is whether the reader has got all others that lie before the open
transaction.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from diagnosis.groups import WINDOWS, topic_signals
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals import stall

LOGS = 300
INTERVAL_SECONDS, RATE = 5.0, 60.0  # of commits; records/s


@dataclass(frozen=True)
class Log:
    """Offsets of a log with an open transaction, and of its reader."""

    stable: int
    end: int
    committed: int
    is_held: bool


def draw_log(seed: int) -> Log:
    """Draw transactions of one to three producers that end, one that does not, and a reader."""
    chance = random.Random(f"log {seed}")
    readable = list[bool]()
    for _ in range(chance.randint(3, 12)):
        producers = chance.randint(1, 3)  # whose transactions end together
        for _ in range(producers):
            readable += [chance.random() > 0.1] * chance.randint(1, 400)  # some are aborted
        readable += [False] * producers
    stable = len(readable)
    got = [offset for offset, is_record in enumerate(readable) if is_record] or [0]
    is_held = chance.random() < 0.5
    if is_held:
        # its position, or the last record and one
        committed = stable if chance.random() < 0.3 else got[-1] + 1
    else:  # a record before the end of what is stable is one that it cannot pass
        committed = chance.choice(got[: max(1, len(got) * 2 // 3)])
    return Log(stable, stable + chance.randint(1000, 9000), committed, is_held)


def kind_of(log: Log) -> str:
    """The kind of stall that is found of its reader."""
    rows = [{"last_stable_offset": log.stable, "log_end_offset": log.end}]
    history = {
        "frozen": 600.0,
        "produced": 60 * RATE,
        "committed": float(log.committed),
        "repeats": 9.0,
    }
    facts = {"windows": {0: rows * WINDOWS}}
    frame = topic_signals(
        [float(log.end - log.committed)], arrival=RATE, history=history, facts=facts
    ).frame
    floor = np.array([2 * RATE * INTERVAL_SECONDS + 1])
    return stall.stalls(
        frame, has_members=True, window_seconds=60, parameters=Parameters(), floor=floor
    )[0]


def test_a_reader_is_held_if_it_has_got_all_records_before_the_open_transaction() -> None:
    logs = [log for log in map(draw_log, range(LOGS)) if log.is_held]
    wrong = [log for log in logs if kind_of(log) != "held"]
    # more than two commit intervals of aborted records in a row look like records that it has not
    # read
    assert [log for log in wrong if log.stable - log.committed <= 2 * RATE * INTERVAL_SECONDS] == []
    assert len(wrong) <= 0.03 * len(logs)


def test_a_reader_that_hangs_at_a_record_long_before_the_open_transaction_is_stalled() -> None:
    logs = [log for log in map(draw_log, range(LOGS)) if not log.is_held]
    near = [log for log in logs if log.stable - log.committed <= 2 * RATE * INTERVAL_SECONDS]
    assert [log for log in logs if log not in near and kind_of(log) != "repeating"] == []
    assert len(near) <= 0.4 * len(logs)
