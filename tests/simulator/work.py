"""The work done on a partition, and the times without any: what is done again later counts as not
done.

So a member that was evicted and goes on with what it had fetched does nothing, and what a crashed
one had not committed is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True)
class Batch:
    """Records of one partition from offset `start` to `end`, processed from a time to a time."""

    owner: str
    began_ms: int
    done_ms: int
    start: int
    end: int


@dataclass(frozen=True)
class GivenUp:
    """An owner lets a partition go; one that is `at_work` serves it up to then, in turn with its
    others.
    """

    owner: str
    at_ms: int
    at_work: bool


@dataclass(frozen=True)
class Gap:
    """A time without an owner at work, up to the first record after."""

    last_ms: int  # the last record before
    given_up: GivenUp
    first_ms: int | None = None

    @property
    def begin_ms(self) -> int:
        return self.given_up.at_ms if self.given_up.at_work else self.last_ms


def find_lasting(batches: Sequence[Batch]) -> list[Batch]:
    """What of these batches, in order of time, no later one did again."""
    found: list[Batch] = []
    again = None  # the lowest offset at which a later batch began
    for batch in reversed(batches):
        end = batch.end if again is None else min(batch.end, again)
        if end > batch.start:
            share = (end - batch.start) / (batch.end - batch.start)
            done_ms = batch.began_ms + round(share * (batch.done_ms - batch.began_ms))
            found.append(replace(batch, end=end, done_ms=done_ms))
        again = batch.start if again is None else min(again, batch.start)
    return found[::-1]


def find_gaps(lasting: Sequence[Batch], given_up: Sequence[GivenUp]) -> list[Gap]:
    """Around the times at which an owner gave the partition up, or had lost it without a word; none
    before any work.
    """
    taken = [
        GivenUp(last.owner, last.done_ms, at_work=False)
        for last, first in pairwise(lasting)
        if last.owner != first.owner
        and not any(
            each.owner == last.owner and last.done_ms <= each.at_ms <= first.done_ms
            for each in given_up
        )
    ]
    found: list[Gap] = []
    for each in sorted([*given_up, *taken], key=lambda each: each.at_ms):
        at = each.at_ms
        before = [batch for batch in lasting if batch.done_ms <= at]
        if (
            not before
            or each.owner != before[-1].owner
            or (found and found[-1].last_ms == before[-1].done_ms)
        ):
            continue  # it had not begun, or another one is at work already
        after = lasting[len(before) :]
        # the batch may be one that went on
        found.append(Gap(before[-1].done_ms, each, max(after[0].began_ms, at) if after else None))
    return found
