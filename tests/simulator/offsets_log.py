"""The offsets topic as bytes, with transactions, control batches and the last stable offset of each
partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from simulator.broker import BROKERS
from simulator.clock import Clock

PARTITIONS = 50


class Record(NamedTuple):
    """A record to be appended; `commit` says in plain values what a commit record means: (group,
    topic, partition).
    """

    key: bytes
    value: bytes | None
    commit: tuple[str, str, int] | None = None
    committed_offset: int | None = None


@dataclass(slots=True)
class Written:
    """A record in its place; `is_visible` is false for aborted ones, which no read_committed reader
    sees.
    """

    partition: int
    offset: int
    timestamp_ms: int
    record: Record
    is_transactional: bool = False
    is_visible: bool = True


@dataclass
class _Part:
    next_offset: int = 0
    open: dict[int, list[Written]] = field(default_factory=dict)  # producer id -> its records
    # at or above the last stable offset when last looked
    unread: list[Written] = field(default_factory=list)


class OffsetsLog:
    """Fifty logs at first; offsets have gaps where markers lie."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.records: list[Written] = []
        self._parts = [_Part() for _ in range(PARTITIONS)]
        self._leaders = [number % BROKERS for number in range(PARTITIONS)]
        self._visible: dict[tuple[str, str, int], int] = {}

    def append(
        self, partition: int, records: Iterable[Record], producer_id: int | None = None
    ) -> list[Written]:
        """One atomic append; with a producer id it belongs to that producer's transaction."""
        part, now_ms = self._parts[partition], self._clock.now
        done = [
            Written(partition, offset, now_ms, record, producer_id is not None)
            for offset, record in enumerate(records, part.next_offset)
        ]
        part.next_offset += len(done)
        self.records += done
        part.unread += done
        if producer_id is not None:
            part.open.setdefault(producer_id, []).extend(done)
        return done

    def end_transaction(
        self, partition: int, producer_id: int, *, is_committed: bool
    ) -> list[Written]:
        """Write the marker; the transaction's records."""
        part = self._parts[partition]
        records = part.open.pop(producer_id, [])
        # the control batch has an offset and no record that a consumer could see
        part.next_offset += 1
        for written in records:
            written.is_visible = is_committed
        return records

    def high_watermark(self, partition: int) -> int:
        return self._parts[partition].next_offset

    def last_stable(self, partition: int) -> int:
        """The first offset of the oldest open transaction, or the end."""
        part = self._parts[partition]
        return min((held[0].offset for held in part.open.values()), default=part.next_offset)

    def visible_offsets(self) -> dict[tuple[str, str, int], int]:
        """What a read_committed reader knows of commits now, in plain values and not from bytes."""
        for number, part in enumerate(self._parts):
            stable = self.last_stable(number)
            for written in part.unread:
                key, offset = written.record.commit, written.record.committed_offset
                if key is None or written.offset >= stable or not written.is_visible:
                    continue
                if offset is None:
                    self._visible.pop(key, None)
                else:
                    self._visible[key] = offset
            part.unread = [written for written in part.unread if written.offset >= stable]
        return self._visible

    @property
    def partitions(self) -> int:
        return len(self._parts)

    def expand(self, partitions: int) -> None:
        """More partitions, all empty: a broker goes on with the number that it found when it
        started.
        """
        new = range(self.partitions, partitions)
        self._parts += [_Part() for _ in new]
        self._leaders += [number % BROKERS for number in new]

    def elect(self, partition: int) -> None:
        """Another broker leads the partition from now on."""
        self._leaders[partition] = (self._leaders[partition] + 1) % BROKERS

    def used(self) -> list[int]:
        return [number for number, part in enumerate(self._parts) if part.next_offset]

    def positions(self) -> dict[int, dict[str, Any]]:
        return {
            number: {
                "high_watermark": self.high_watermark(number),
                "last_stable_offset": self.last_stable(number),
                "coordinator": self._leaders[number],
            }
            for number in self.used()
        }


@lru_cache(maxsize=10_000)
def partition_of(group: str, partitions: int = PARTITIONS) -> int:
    """Utils.abs(hashCode) mod n over UTF-16 code units; the absolute value of the smallest int is
    0.
    """
    units = group.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + high * 256 + low) & 0xFFFFFFFF
    code = code - 2**32 if code >= 2**31 else code
    return (0 if code == -(2**31) else abs(code)) % partitions
