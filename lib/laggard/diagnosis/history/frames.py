"""Frames for rules: the history of one group up to the end of a window, as arrays and rows.

Arrays of a topic have the shape [partitions, windows], the newest window last; NaN is unknown, ""
an unknown name. Beside the history there is only what the windows before left in `finding_state`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from math import isnan, nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.parameters import Policy

Floats: TypeAlias = npt.NDArray[np.float64]
Names: TypeAlias = npt.NDArray[np.object_]
Row: TypeAlias = dict[str, Any]

LEFT = "left"  # flag of a topic that no member subscribes to any more

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
NAMES = {
    "status": "status",
    "owner": "owner",
    "slot": "slot",
    "client_id": "client_id",
    "host": "client_host",
}


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
        """Return the array of a numeric column, [partitions, windows]."""
        return self.numbers[name]

    def named(self, name: str) -> Names:
        """Return the array of a text column, [partitions, windows]."""
        return self.names[name]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Commits that existed but could not be read at the end of each window.

    The unit is seconds by window, [windows], NaN unknown.

    They are hidden for `least`, and may be for `most`: in between lies the poll that would have
    shown.
    """

    least: Floats
    most: Floats


@dataclass(frozen=True, slots=True, eq=False)
class GroupFrame:
    """One group as it was known at the end of a window; nothing in here is newer than that.

    Arrays make no equality: a frame is equal to itself only.
    """

    cluster: str
    group: str
    window_seconds: int
    # [windows] begin in ms since the epoch, evenly spaced, the evaluated one last
    windows: npt.NDArray[np.int64]
    topics: Sequence[TopicFrame]
    facts: Sequence[Row | None]  # [windows] rows of group_history, None if there is none
    rebalances: Sequence[Row]  # of the last 24 h, oldest first; likewise the next three
    generations: Sequence[Row]  # and the newest from before, however old
    members: Sequence[Row]  # rows of group_members of these generations
    events: Sequence[Row]
    policy: Policy = field(default_factory=Policy)
    # topic -> group_windows of the last 24 h, read if asked
    baseline: Callable[[], Mapping[str, Sequence[Row]]] = dict
    deploys: Sequence[Row] = ()  # rows of deploys of the last 7 d
    # of the brokers, as observed; None: not reported to us
    offsets_retention_minutes: float | None = None
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
    def live_rebalances(self) -> list[Row]:
        """Rows of rebalances that were read live, oldest first."""
        return [row for row in self.rebalances if row.get("live_read")]

    @property
    def fact(self) -> Row:
        """The group at the end of the evaluated window; empty if nothing is known."""
        return self.facts[-1] or {}


@dataclass(frozen=True, slots=True)
class Track:
    """A condition in one scope, from the window it first held in; open once it is a finding."""

    code: str
    topic: str
    partitions: tuple[int, ...]
    subject: str
    since_ms: int  # begin of the first window in which it held
    held: int = 0
    missed: int = 0
    abstained: int = 0
    falsified: int = 0
    opened_ms: int | None = None  # end of the window it opened in
    seq: int = 0  # of its next row
    told_ms: int = 0  # end of the window of its newest row
    severity: str = ""
    role: str = ""
    primary: str = ""
    confidence: float = 0.0

    def finding_id(self, cluster: str, group: str) -> str:
        """Return a hash of the finding's scope and start, the same in replays and restarts."""
        scope = "|".join((self.topic, ",".join(map(str, self.partitions)), self.subject))
        return digest(cluster, group, self.code, scope, str(self.since_ms))


class Scaled(NamedTuple):
    """Effect of the newest scale-out."""

    at_ms: int
    elasticity: float
    consume_rate: float  # of all members together after it, records/s


@dataclass(frozen=True, slots=True)
class Memory:
    """All that a window's evaluation takes from the windows before, beside the recorded history."""

    # topic -> name, weak windows since
    trends: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    # slot -> (window, records/s)
    busy: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    scaled: Scaled | None = None
    # topic, partition: proven to take longer than others, whoever owns it
    costly: tuple[tuple[str, int], ...] = ()
    capacity: float = nan  # of a member, records/s, as it was published last
    sizes: tuple[int, ...] = ()  # members to have as published last, and what was found since
    tracks: tuple[Track, ...] = ()
    episode_ms: int | None = None  # begin of the stretch of trouble
    quiet: int = 0  # windows without a finding in it
    lost: str = ""  # why what was remembered could not be read; not remembered itself

    def is_open(self, code: str) -> bool:
        """Return True if a finding with this code is open."""
        return any(each.code == code and each.opened_ms is not None for each in self.tracks)

    def to_json(self) -> str | None:
        """Return the memory as JSON; None if there is nothing to remember."""
        found: dict[str, Any] = {
            "trends": self.trends,
            "busy": self.busy,
            "scaled": self.scaled,
            "costly": self.costly,
            "sizes": self.sizes,
            "tracks": [_without_defaults(track) for track in self.tracks],
        }
        found = {name: value for name, value in found.items() if value}
        if not isnan(self.capacity):
            found["capacity"] = self.capacity
        if self.episode_ms is not None:
            found |= {"episode_ms": self.episode_ms, "quiet": self.quiet}
        return json.dumps(found, sort_keys=True, separators=(",", ":")) if found else None


def digest(*parts: str) -> str:
    """Return the first 32 hex digits of the SHA-256 over the length-prefixed parts."""
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        hashed.update(len(encoded).to_bytes(4, "big") + encoded)
    return hashed.hexdigest()[:32]


def from_json(text: str | None) -> Memory:
    """Return the memory that `to_json` wrote; an empty memory for None.

    Unreadable text also gives an empty memory, with the error.
    """
    if text is None:
        return Memory()
    try:
        return _read(text)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return Memory(lost=f"{type(error).__name__}: {error}")


def _read(text: str) -> Memory:
    found = json.loads(text)
    trends = {topic: (name, weak) for topic, (name, weak) in found.get("trends", {}).items()}
    busy = {
        slot: tuple((at, rate) for at, rate in each) for slot, each in found.get("busy", {}).items()
    }
    scaled = None if found.get("scaled") is None else Scaled(*found["scaled"])
    costly = tuple((topic, partition) for topic, partition in found.get("costly", []))
    sizes = tuple(found.get("sizes", ()))
    tracks = tuple(
        Track(**(each | {"partitions": tuple(each["partitions"])}))
        for each in found.get("tracks", [])
    )
    return Memory(
        trends,
        busy,
        scaled,
        costly,
        found.get("capacity", nan),
        sizes,
        tracks,
        found.get("episode_ms"),
        found.get("quiet", 0),
    )


_NEW = asdict(Track("", "", (), "", 0))
_ALWAYS = ("code", "topic", "partitions", "subject", "since_ms")


def _without_defaults(track: Track) -> dict[str, Any]:
    return {
        name: value
        for name, value in asdict(track).items()
        if name in _ALWAYS or value != _NEW[name]
    }
