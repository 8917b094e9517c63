"""The job run through a story, with all that it closed and no table keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

from laggard.rebalance import follow
from laggard.rebalance.result import Closed
from simulator.play import Laggard, Played, ticks

GIVE_UP_MS = 11 * 60_000


def watch(played: Played) -> tuple[Laggard, dict[str, Closed], set[str]]:
    """The job after a story, what it closed by rebalance id, and which of that only because nothing more came."""
    job = Laggard()
    closed: dict[str, Closed] = {}
    original = follow.advance

    def listen(*given: Any) -> Any:
        found, state = original(*given)
        closed.update({each.row.rebalance_id: each for each in found})
        return found, state

    with mock.patch.object(follow, "advance", listen):
        for _, polled, records in ticks(played):
            job.tick(polled, records)
        in_time = set(closed)
        last = played.polls[-1]
        job.tick(replace(last, at_ms=last.at_ms + GIVE_UP_MS), [])
    return job, closed, closed.keys() - in_time
