"""Answers that were given about the newest batches, so that the same question costs nothing again."""

from __future__ import annotations

from threading import Lock

from laggard.exporter.api import Answer
from laggard.exporter.snapshot import Snapshot

MAX_KEPT = 200
MAX_BYTES = 16 * 1024 * 1024
Key = tuple[object, ...]


class Kept:
    """Answers by question and batch; the oldest go first when there are too many, or they are too large."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[Key, Answer] = {}
        self._bytes = 0
        self._of: tuple[Snapshot, ...] = ()

    def before(self, key: Key, newest: tuple[Snapshot, ...]) -> Answer | None:
        """Give the answer of before; those of other batches are dropped."""
        with self._lock:
            if [*map(id, newest)] != [*map(id, self._of)]:
                self._answers, self._bytes, self._of = {}, 0, newest
            return self._answers.get(key)

    def keep(self, key: Key, answer: Answer) -> None:
        """Keep an answer, unless it alone is too large."""
        with self._lock:
            if key in self._answers or _size(key, answer) > MAX_BYTES:
                return
            self._answers[key] = answer
            self._bytes += _size(key, answer)
            while len(self._answers) > MAX_KEPT or self._bytes > MAX_BYTES:
                oldest = next(iter(self._answers))
                self._bytes -= _size(oldest, self._answers.pop(oldest))


def _size(key: Key, answer: Answer) -> int:
    return len(repr(key)) + len(answer.body) + len(answer.zipped)
