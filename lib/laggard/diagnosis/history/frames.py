"""Frames that a rule may look at: the history of one group up to the end of a window, as plain arrays and rows.

Arrays of a topic have the shape [partitions, windows], the newest window last; NaN is unknown, "" an unknown name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.parameters import Policy

Floats: TypeAlias = npt.NDArray[np.float64]
Names: TypeAlias = npt.NDArray[np.object_]
Row: TypeAlias = dict[str, Any]

# columns of lag_windows that become arrays: name of the array -> column
NUMBERS = {
    "lag": "lag",
    "lag_min": "lag_min",
    "lag_max": "lag_max",
    "envelope": "lag_envelope",
    "end": "log_end_offset",
    "committed": "committed_offset",
    "start": "log_start_offset",
    "produced": "produced",
    "consumed": "consumed",
    "arrival": "arrival_rate",
    "consume": "consume_rate",
    "commits": "commits",
    "noops": "noop_commits",
    "rewound": "rewound_records",
    "interval": "commit_interval_seconds",
    "frozen": "frozen_seconds",
    "repeats": "repeat_commits",
    "time_lag": "time_lag_seconds",
    "time_lag_error": "time_lag_error_seconds",
    "lost": "lost_records",
    "matured": "matured_records",
    "late": "late_records",
    "broker": "leader_broker",
}
NAMES = {"status": "status", "owner": "owner", "slot": "slot", "client_id": "client_id", "host": "client_host"}


@dataclass(frozen=True, slots=True)
class TopicFrame:
    """One topic of a group: what its partitions did in each window."""

    topic: str
    topic_id: str
    partitions: npt.NDArray[np.int64]  # [partitions], ascending
    numbers: Mapping[str, Floats]  # keys of NUMBERS -> [partitions, windows]
    names: Mapping[str, Names]  # keys of NAMES -> [partitions, windows]
    facts: Row = field(default_factory=dict)  # newest topic_windows and configuration, per topic

    def __getitem__(self, name: str) -> Floats:
        """The array of a number, [partitions, windows]."""
        return self.numbers[name]

    def named(self, name: str) -> Names:
        """The array of a name, [partitions, windows]."""
        return self.names[name]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Commits that were made and could not be read at the end of each window; [windows] seconds, NaN unknown.

    They are hidden for `least`, and may be for `most`: in between lies the poll that would have shown.
    """

    least: Floats
    most: Floats

    def between(self, first: int, last: int) -> Hidden:
        return Hidden(self.least[first:last], self.most[first:last])


@dataclass(frozen=True, slots=True, eq=False)
class GroupFrame:
    """One group as it was known at the end of a window; nothing in here is newer than that.

    Arrays make no equality: a frame is equal to itself only.
    """

    cluster: str
    group: str
    window_seconds: int
    windows: npt.NDArray[np.int64]  # [windows] begin in ms since the epoch, evenly spaced, the evaluated one last
    topics: Sequence[TopicFrame]
    facts: Sequence[Row | None]  # [windows] rows of group_history, None if there is none
    rebalances: Sequence[Row]  # of the last 24 h, oldest first; likewise the next three
    generations: Sequence[Row]  # and the newest from before, however old
    members: Sequence[Row]  # rows of group_members of these generations
    events: Sequence[Row]
    policy: Policy = field(default_factory=Policy)
    baseline: Callable[[], Mapping[str, Sequence[Row]]] = dict  # topic -> group_windows of the last 24 h, read if asked
    deploys: Sequence[Row] = ()  # rows of deploys of the last 7 d
    offsets_retention_minutes: float | None = None  # of the brokers, as observed; None: not reported to us
    hidden: Hidden | None = None  # None: where its commits lie is not known

    @property
    def now_ms(self) -> int:
        """End of the evaluated window."""
        return int(self.windows[-1]) + 1000 * self.window_seconds

    @property
    def now(self) -> datetime:
        """End of the evaluated window."""
        return datetime.fromtimestamp(self.now_ms / 1000, timezone.utc)

    @property
    def live_generations(self) -> list[Row]:
        """Rows of generations that were read live, oldest first."""
        return [row for row in self.generations if row.get("live_read")]

    @property
    def fact(self) -> Row:
        """The group at the end of the evaluated window; empty if nothing is known."""
        return self.facts[-1] or {}
