"""Groups of one coordinator that rebalance together while those of other brokers do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from laggard.diagnosis.parameters import Parameters

_MIN_GROUPS = 3
_OTHERS_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Correlated:
    """A broker, those of its groups that rebalanced within a minute, and how many it has."""

    broker: int
    groups: tuple[str, ...]
    active: int
    others_share: float  # of the groups of other brokers, within the same minute
    at: datetime  # end of the first of these rebalances


def find_correlated(
    coordinators: Mapping[str, int], ends: Mapping[str, Sequence[datetime]], parameters: Parameters
) -> list[Correlated]:
    """Brokers whose groups rebalanced together, each with its fullest minute.

    `coordinators` is the leader of the offsets partition of every active group, `ends` the ends of its live rebalances
    of the time to look at.
    """
    found = []
    for broker in sorted(set(coordinators.values())):
        own = {group for group, each in coordinators.items() if each == broker}
        others = coordinators.keys() - own
        times = sorted((at, group) for group in own for at in ends.get(group, ()))
        best: Correlated | None = None
        for at, _ in times:
            hit = tuple(sorted({group for each, group in times if _within(at, each, parameters)}))
            quiet = sum(any(_within(at, each, parameters) for each in ends.get(group, ())) for group in others)
            share = quiet / len(others) if others else 0.0
            is_hit = len(hit) >= max(_MIN_GROUPS, parameters.coordinator_share * len(own)) and share <= _OTHERS_SHARE
            if is_hit and (best is None or len(hit) > len(best.groups)):
                best = Correlated(broker, hit, len(own), share, at)
        found += [] if best is None else [best]
    return found


def _within(begin: datetime, at: datetime, parameters: Parameters) -> bool:
    return 0 <= (at - begin).total_seconds() <= parameters.coordinator_seconds
