"""I10: ask the coordinators for the offsets of some groups, and compare those that rest with the tables."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from pyarrow.dataset import field as column

from laggard.audit.result import Tally
from laggard.audit.tables import Reader
from laggard.names import NameFilter
from laggard.sources.brokers import Brokers
from laggard.sources.coordinators import Coordinators
from laggard.tables.published import newest_batch
from laggard.tables.schemas import PARTITION_STATUS

GROUPS = 100  # asked for at most, drawn at random
_KEY = ("group", "topic", "partition")
_COLUMNS = (*_KEY, "topic_id", "committed_offset", "commit_source_offset")
Place = tuple[str, str, int]


def check_coordinators(
    reader: Reader, brokers: Brokers, seconds: float, patience: float, tally: Tally, groups: int = GROUPS
) -> None:
    """Compare offsets that are the same in the batch before the question and in one polled after it.

    `seconds`: for the answers; `patience`: for a batch that was polled after them.
    """
    before = _rows(reader)
    names = sorted({group for group, _, _ in before})
    chosen = Random(reader.batch.batch_id).sample(names, min(groups, len(names)))  # noqa: S311 - no secret
    if not chosen:
        tally.unchecked = "no group has an offset yet"
        return
    asked, failed = _ask(brokers, chosen, seconds)
    answered = [group for group in chosen if group not in failed]
    at = time.time()
    later = _wait(lambda: newest_batch(reader.root), at, patience)
    if later is None:
        tally.unchecked = f"the job published no batch that was polled in the {patience:.0f} s after the answers"
    elif not answered:
        tally.unchecked = f"no coordinator answered: {', '.join(sorted(set(failed.values())))}"
    else:
        _compare(before, _rows(replace(reader, batch=later)), asked, set(answered), tally)


def _rows(reader: Reader) -> dict[Place, tuple[Any, ...]]:
    """Committed offset and its place in the offsets topic, by group, topic and partition."""
    rows = reader.whole(PARTITION_STATUS, _COLUMNS).filter(column("committed_offset").is_valid()).to_pylist()
    return {
        (row["group"], row["topic"], row["partition"]): tuple(row[name] for name in _COLUMNS[len(_KEY) :])
        for row in rows
    }


def _ask(brokers: Brokers, groups: Sequence[str], seconds: float) -> tuple[dict[Place, int], dict[str, str]]:
    """Give the offsets that coordinators hold, and the errors of groups that they gave none of."""
    brokers.begin()
    ids = [each["node_id"] for each in brokers.metadata([])["brokers"]]
    names = NameFilter(tuple(glob.escape(group) for group in groups), topics_ignore=())
    found = Coordinators(brokers, names, seconds, groups).ask(ids)
    given = {row["group"] for row in found.answers.to_pylist() if row["is_asked"] and row["error"] is None}
    errors = {row["group"]: row["error"] for row in found.answers.to_pylist() if row["error"] is not None}
    rows = [row for row in found.committed.to_pylist() if row["error"] is None]
    offsets = {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in rows}
    return offsets, {group: errors.get(group, "no answer in time") for group in groups if group not in given}


def _wait(newest: Callable[[], Any], at: float, patience: float) -> Any:
    """The first batch polled after a moment; None if none comes in time."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        batch = newest()
        if batch is not None and batch.clock_at.timestamp() > at:
            return batch
        time.sleep(0.5)
    return None


def _compare(
    before: dict[Place, tuple[Any, ...]],
    after: dict[Place, tuple[Any, ...]],
    asked: dict[Place, int],
    groups: set[str],
    tally: Tally,
) -> None:
    for place, values in before.items():
        if place[0] in groups and after.get(place) == values:  # it rests
            tally.checked += 1
            if asked.get(place) != values[1]:
                key = dict(zip(_KEY, place, strict=True))
                tally.refute(PARTITION_STATUS.name, key, "committed_offset", asked.get(place), values[1])
