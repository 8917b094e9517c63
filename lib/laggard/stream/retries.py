"""Decide whether a query that failed is started again, and after how long, by the class of its failure."""

from __future__ import annotations

import time
from collections.abc import Callable

from laggard.errors import DENIED, INTERNAL, TEMPORARY, UNREACHABLE, LaggardError

MAX_WAIT_SECONDS = 60.0
GIVE_UP_SECONDS = 600.0  # without a published batch
INTERNAL_TRIES = 3  # of one batch; what fails the same way each time is not tried for ever
PASSING = (TEMPORARY, UNREACHABLE)


class Retries:
    """Back-off from 1 to 60 s for what passes by itself; `published` ends a row of failures."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._has_published = False
        self._reset()

    def _reset(self) -> None:
        self._wait_seconds = 1.0
        self._failing_since: float | None = None
        self._internal = 0

    def published(self) -> None:
        """Note that a batch was published."""
        self._has_published = True
        self._reset()

    def next_wait(self, failure: LaggardError) -> float:
        """Seconds to wait before the next try; raises the failure if there is none."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        if not self._is_tried_again(failure):
            raise failure
        if now - self._failing_since >= GIVE_UP_SECONDS:
            raise given_up(failure)
        wait, self._wait_seconds = self._wait_seconds, min(2 * self._wait_seconds, MAX_WAIT_SECONDS)
        return wait

    def _is_tried_again(self, failure: LaggardError) -> bool:
        if failure.exit_code == DENIED:
            return self._has_published  # at start it is a mistake, later perhaps a rotation of secrets
        if failure.exit_code == INTERNAL:
            self._internal += 1
            return self._internal <= INTERNAL_TRIES
        return failure.exit_code in PASSING


def given_up(failure: LaggardError) -> LaggardError:
    """The failure with the exit code of what has not passed."""
    code = TEMPORARY if failure.exit_code in PASSING else failure.exit_code
    cause = f"{failure.cause}; no batch was published for {GIVE_UP_SECONDS / 60:.0f} minutes".removeprefix("; ")
    found = LaggardError(failure.what, cause=cause, fix=failure.fix, exit_code=code)
    found.__cause__ = failure.__cause__
    return found
