"""Memory of the engine of a group from one window to the next, as JSON in `finding_state`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isnan, nan
from typing import Any, NamedTuple


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
        """Hash of what it is about and since when; replays and restarts give the same."""
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

    trends: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # topic -> name, weak windows since
    busy: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)  # slot -> (window, records/s)
    scaled: Scaled | None = None
    costly: tuple[tuple[str, int], ...] = ()  # topic, partition: proven to take longer than others, whoever owns it
    capacity: float = nan  # of a member, records/s, as it was published last
    sizes: tuple[int, ...] = ()  # members to have as published last, and what was found since
    tracks: tuple[Track, ...] = ()
    episode_ms: int | None = None  # begin of the stretch of trouble
    quiet: int = 0  # windows without a finding in it
    lost: str = ""  # why what was remembered could not be read; not remembered itself

    def to_json(self) -> str | None:
        """None when there is nothing to remember."""
        found: dict[str, Any] = {}
        if self.trends:
            found["trends"] = self.trends
        if self.busy:
            found["busy"] = self.busy
        if self.scaled:
            found["scaled"] = self.scaled
        if self.costly:
            found["costly"] = self.costly
        if not isnan(self.capacity):
            found["capacity"] = self.capacity
        if self.sizes:
            found["sizes"] = self.sizes
        if self.tracks:
            found["tracks"] = [_without_defaults(track) for track in self.tracks]
        if self.episode_ms is not None:
            found |= {"episode_ms": self.episode_ms, "quiet": self.quiet}
        return json.dumps(found, sort_keys=True, separators=(",", ":")) if found else None


def digest(*parts: str) -> str:
    """First 32 hex digits of the SHA-256 over the length-prefixed parts."""
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        hashed.update(len(encoded).to_bytes(4, "big") + encoded)
    return hashed.hexdigest()[:32]


def from_json(text: str | None) -> Memory:
    """The memory that `to_json` wrote; an empty one for None, and for what cannot be read, which says so."""
    if text is None:
        return Memory()
    try:
        return _read(text)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return Memory(lost=f"{type(error).__name__}: {error}")


def _read(text: str) -> Memory:
    found = json.loads(text)
    scaled = found.get("scaled")
    return Memory(
        {topic: (name, weak) for topic, (name, weak) in found.get("trends", {}).items()},
        {slot: tuple((at, rate) for at, rate in each) for slot, each in found.get("busy", {}).items()},
        None if scaled is None else Scaled(*scaled),
        tuple((topic, partition) for topic, partition in found.get("costly", [])),
        found.get("capacity", nan),
        tuple(found.get("sizes", ())),
        tuple(Track(**(each | {"partitions": tuple(each["partitions"])})) for each in found.get("tracks", [])),
        found.get("episode_ms"),
        found.get("quiet", 0),
    )


_NEW = asdict(Track("", "", (), "", 0))
_ALWAYS = ("code", "topic", "partitions", "subject", "since_ms")


def _without_defaults(track: Track) -> dict[str, Any]:
    return {name: value for name, value in asdict(track).items() if name in _ALWAYS or value != _NEW[name]}
