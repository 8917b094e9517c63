"""Rows of the tick before that can be compared with now."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from laggard.lag.arrays import differ
from laggard.lag.tick import Tick


def was_followed(before: Any, tick: Tick) -> Any:
    """True where the row before tells what it then was: its differences to now happened between the two.

    What was carried while catching up was not observed. An offset that a coordinator once gave stands until its next
    answer, however long that takes and whatever the status says meanwhile.
    """
    return pc.is_valid(before["answered_at"]) if tick.polls_commits else differ(before["status"], "stale")
