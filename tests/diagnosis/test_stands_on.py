"""Partitions that stand through changes of owners, and groups that stop as a whole, drawn at
random.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import NOON, Evaluation, Fluid, evaluate
from diagnosis.groups import PARAMETERS
from patience import examples

pytestmark = pytest.mark.examples
GROUPS = examples(12)
RATE, MINUTES = 50.0, 64
WINDOW = 60


@dataclass
class Standing:
    """A group of which partitions stand, each from one second of the run to another."""

    seed: int
    members: int = 2
    partitions: int = 4
    interval: int = 5
    stands: dict[int, tuple[int, int]] = field(default_factory=dict)  # in seconds, by partition
    # minutes in which nobody has partition 0; each time another member gets it
    unowned: tuple[int, ...] = ()

    def evaluate(self) -> Evaluation:
        """Record it as the job does, and evaluate each window."""
        shape = (self.partitions, MINUTES)
        group = Fluid(
            np.full(shape, RATE),
            np.full((self.members, MINUTES), 1e6),
            self.seed,
            interval=self.interval,
        )
        for row in group.lag_rows:
            minute = round(
                (row["window_start"] - group.lag_rows[0]["window_start"]).total_seconds() / WINDOW
            )
            self._stand(row, WINDOW * (minute + 1))
            if row["partition"] == 0:
                self._own(row, minute)
        return evaluate(group.tables(), first=15)

    def _stand(self, row: dict[str, Any], end: int) -> None:
        """Change the row of a partition that stands at the end of the window, or did until then."""
        since, until = self.stands.get(row["partition"], (0, 0))
        if since < end <= until:
            row |= {
                "lag": round(RATE * (end - since)),
                "lag_min": round(RATE * max(0, end - WINDOW - since)),
            }
            row |= {
                "frozen_seconds": float(end - since),
                "time_lag_seconds": float(end - since),
                "lag_envelope": None,
            }
            row |= {"consumed": max(0, round(RATE * (since - end + WINDOW)))}
            row |= {
                "commits": round(max(0, since - end + WINDOW) / self.interval),
                "lag_max": row["lag"],
            }
        elif end - WINDOW < until <= end:
            row["consumed"] = round(RATE * (end - since))
        row["committed_offset"] = row["log_end_offset"] - row["lag"]
        if since < end - WINDOW < end <= until:  # rounding moves no offset
            row["committed_offset"] = self._committed
        elif since < end <= until:
            self._committed = row["committed_offset"]

    _committed: int = 0

    def _own(self, row: dict[str, Any], minute: int) -> None:
        if minute in self.unowned:
            row |= dict.fromkeys(("owner", "slot", "client_id", "client_host"))
            return
        owner = sum(each < minute for each in self.unowned) % self.members
        row |= {
            "owner": f"m{owner}-id",
            "slot": f"app/10.0.0.{owner}#0",
            "client_host": f"/10.0.0.{owner}",
        }


def lives(evaluation: Evaluation, code: str) -> list[list[str]]:
    """Events of each finding of a code, without those that only update it."""
    found: dict[str, list[str]] = {}
    for row in evaluation.findings:
        if row["code"] == code and row["event"] != "updated":
            found.setdefault(row["finding_id"], []).append(row["event"])
    return list(found.values())


def test_a_partition_that_changes_hands_without_moving_is_one_finding_until_it_moves() -> None:
    wrong = {}
    for seed in range(GROUPS):
        chance = random.Random(f"owners {seed}")
        interval, begin, members = (
            chance.choice((5, 60, 120, 180)),
            chance.randrange(1200, 1500),
            chance.choice((2, 3, 4)),
        )
        first = begin // WINDOW + 3 * interval // WINDOW + 5
        unowned = tuple(
            first + chance.randint(0, 2) + 7 * turn for turn in range(chance.randint(1, 3))
        )
        end = WINDOW * (unowned[-1] + chance.randint(2, 7))
        drawn = Standing(
            seed, members, members * chance.randint(2, 4), interval, {0: (begin, end)}, unowned
        )
        found = drawn.evaluate()
        if lives(found, "PARTITION_STALLED") != [["opened", "closed"]]:
            wrong[seed] = interval, begin, unowned, end, lives(found, "PARTITION_STALLED")
            continue
        (reason, at) = next(
            (row["close_reason"], row["at"])
            for row in found.findings
            if (row["event"], row["code"]) == ("closed", "PARTITION_STALLED")
        )
        assert reason == "cleared"
        assert (at - NOON).total_seconds() // WINDOW == end // WINDOW + PARAMETERS.close_after
    assert wrong == {}


def test_a_group_that_stops_as_a_whole_has_no_stalled_partition() -> None:
    wrong = {}
    for seed in range(GROUPS):
        chance = random.Random(f"stop {seed}")
        members, interval = chance.choice((2, 3, 4)), chance.choice((5, 20, 60, 120))
        partitions = members * chance.randint(2, 4)
        begin, end = chance.randrange(1200, 1500), chance.randrange(2400, 3000)
        # after which each commits last and first
        commits = [chance.randrange(interval) for _ in range(members)]
        stands = {part: commits[part * members // partitions] for part in range(partitions)}
        drawn = Standing(
            seed,
            members,
            partitions,
            interval,
            {part: (begin + at, end + at) for part, at in stands.items()},
        )
        found = drawn.evaluate()
        codes = {row["code"] for row in found.findings}
        if lives(found, "PARTITION_STALLED") or "COMMITS_STOPPED" not in codes:
            wrong[seed] = interval, begin, end, commits, codes, lives(found, "PARTITION_STALLED")
    assert wrong == {}
