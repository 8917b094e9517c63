"""All stories by name."""

from __future__ import annotations

from collections.abc import Callable

from simulator.stage import Stage
from simulator.stories_faults import FAULTS
from simulator.stories_mixed import MIXED
from simulator.stories_modern import MODERN
from simulator.stories_offsets import OFFSETS
from simulator.stories_planned import PLANNED

STORIES: dict[str, Callable[[Stage], int]] = {
    story.__name__: story for story in (*PLANNED, *FAULTS, *OFFSETS, *MODERN, *MIXED)
}
