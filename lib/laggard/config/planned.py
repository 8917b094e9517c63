"""Planned maintenance: once between two moments, or every week by the clock on the wall of a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from typing import TypeAlias
from zoneinfo import ZoneInfo

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Once:
    """From `start` until before `end`."""

    start: datetime
    end: datetime
    reason: str = ""

    def covers(self, at: datetime) -> bool:
        return self.start <= at < self.end


@dataclass(frozen=True)
class Weekly:
    """From `start` until before `end` on a day of the week (0: Monday); if not after it, `end` is of the next day."""

    day: int
    start: time
    end: time
    timezone: str = "UTC"
    reason: str = ""

    def covers(self, at: datetime) -> bool:
        local = at.astimezone(ZoneInfo(self.timezone))
        moment, is_day = local.time(), local.weekday() == self.day
        if self.start < self.end:
            return is_day and self.start <= moment < self.end
        is_day_after = local.weekday() == (self.day + 1) % 7
        return (is_day and moment >= self.start) or (is_day_after and moment < self.end)


Planned: TypeAlias = Once | Weekly
