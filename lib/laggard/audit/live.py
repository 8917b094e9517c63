"""I10: compare offsets from the coordinators of some groups with the tables.

Only offsets that rest are compared.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow.dataset import field as column

from laggard.audit.known_gaps import FIRST
from laggard.audit.reader import Reader
from laggard.audit.result import Tally
from laggard.lag.arrays import TIMESTAMP
from laggard.names import NameFilter
from laggard.sources.brokers import Brokers
from laggard.sources.groups.coordinators import Coordinators
from laggard.tables.published import newest_batch
from laggard.tables.schema.schemas import PARTITION_STATUS

GROUPS = 100  # asked for at most, drawn at random
_KEY = ("group", "topic", "partition")
_COLUMNS = (*_KEY, "topic_id", "committed_offset", "commit_source_offset")
Place = tuple[str, str, int]


def check_coordinators(
    reader: Reader,
    brokers: Brokers,
    seconds: float,
    patience: float,
    tally: Tally,
    groups: int = GROUPS,
) -> None:
    """Compare offsets that are equal in the batch before the question and in one polled after it.

    `seconds`: for the answers; `patience`: for each of the two batches after them, in seconds. The
    first may have been polled before them; no clock is compared, as the job may run on another
    machine.
    """
    before = _rows(reader)
    names = sorted({group for group, _, _ in before})
    # no secret
    chosen = Random(reader.batch.batch_id).sample(names, min(groups, len(names)))  # noqa: S311
    if not chosen:
        tally.unchecked = "no group has an offset that was read to the end"
        return
    asked, failed = _ask(brokers, chosen, seconds)
    answered = [group for group in chosen if group not in failed]
    known = newest_batch(reader.root) or reader.batch
    later = _wait(lambda: newest_batch(reader.root), known.batch_id + 2, 2 * patience)
    if later is None:
        tally.unchecked = (
            f"the job did not publish two batches in the {2 * patience:.0f} s after the answers"
        )
    elif not answered:
        tally.unchecked = f"no coordinator answered: {', '.join(sorted(set(failed.values())))}"
    else:
        # a job that polls coordinators does not ask all groups at each tick
        after = _rows(replace(reader, batch=later), answered_since=later.polled_at)
        _compare(before, after, asked, set(answered), tally)


def _rows(reader: Reader, answered_since: datetime = FIRST) -> dict[Place, tuple[Any, ...]]:
    """Return committed offsets read to the end and their places in the offsets topic.

    The keys are group, topic and partition.

    `answered_since`: of rows that a coordinator's answer gave only those answered then or later.
    """
    condition = column("committed_offset").is_valid() & column("status").isin(
        ("ok", "below_log_start")
    )
    condition &= column("answered_at").is_null() | (
        column("answered_at") >= pa.scalar(answered_since, TIMESTAMP)
    )
    rows = (
        reader.whole(PARTITION_STATUS, (*_COLUMNS, "status", "answered_at"))
        .filter(condition)
        .to_pylist()
    )
    key, values = itemgetter(*_KEY), itemgetter(*_COLUMNS[len(_KEY) :])
    return dict(zip(map(key, rows), map(values, rows), strict=True))


def _ask(
    brokers: Brokers, groups: Sequence[str], seconds: float
) -> tuple[dict[Place, int | None], dict[str, str]]:
    """Return the coordinators' offsets, None for an error, and the errors of whole groups."""
    brokers.begin()
    ids = [broker["node_id"] for broker in brokers.metadata([])["brokers"]]
    names = NameFilter(tuple(glob.escape(group) for group in groups), topics_ignore=())
    answer = Coordinators(brokers, names, seconds, groups).ask(ids)
    errors = {row["group"]: row["error"] for row in answer.answers.to_pylist() if row["is_asked"]}
    failed = {group: errors.get(group, "no answer in time") for group in groups}
    offsets: dict[Place, int | None] = {}
    for row in answer.committed.to_pylist():
        key = row["group"], row["topic"], row["partition"]
        offsets[key] = None if row["error"] is not None else row["committed_offset"]
    return offsets, {group: error for group, error in failed.items() if error is not None}


def _wait(newest: Callable[[], Any], batch_id: int, patience: float) -> Any:
    """Return the newest batch once it is this one or a later one; None if none comes in time."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        batch = newest()
        if batch is not None and batch.batch_id >= batch_id:
            return batch
        time.sleep(0.5)
    return None


def _compare(
    before: dict[Place, tuple[Any, ...]],
    after: dict[Place, tuple[Any, ...]],
    asked: dict[Place, int | None],
    groups: set[str],
    tally: Tally,
) -> None:
    """Compare offsets of groups that answered.

    A coordinator leaves out what was deleted, and without a word topics that the asker may not
    describe: where it gave none of a topic, it is not known which.
    """
    topics = {(group, topic) for group, topic, _ in asked}
    for partition, values in before.items():
        is_answered = (
            asked[partition] is not None if partition in asked else partition[:2] in topics
        )
        if partition[0] in groups and is_answered and after.get(partition) == values:  # it rests
            tally.checked += 1
            if asked.get(partition) != values[1]:
                key = dict(zip(_KEY, partition, strict=True))
                tally.refute(
                    PARTITION_STATUS.name, key, "committed_offset", asked.get(partition), values[1]
                )
