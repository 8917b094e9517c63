"""Rows of `group_history`: each group as its last tick in a window left it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    TIMESTAMP,
    both,
    build,
    by_name,
    differ,
    repeat,
    seconds_between,
    when,
    where,
)
from laggard.lag.tick import Tick
from laggard.rebalance.topics import Topics
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import GROUP_HISTORY

SECONDS = pa.map_(pa.string(), pa.float64())
_COUNTS = pa.map_(pa.string(), pa.int32())
_Pairs = list[tuple[str, float]]


def add_state_seconds(prior: pa.Table, tick: Tick) -> pa.Array:
    """Return the column window_state_seconds: how long each state has lasted in the window so far.

    `prior`: rows of `group_status` at the tick before. A state lasts from the tick that saw it to
    the next one; what came before the window before, or while catching up, was not seen.
    """
    start = repeat(tick.window_start, TIMESTAMP, prior.num_rows)
    follows = pc.greater_equal(
        prior["sampled_at"], repeat(tick.window_start - tick.window, TIMESTAMP, prior.num_rows)
    )
    is_seen = both(follows, differ(prior["status"], "stale"), pa.scalar(tick.is_caught_up))
    continues = pc.greater_equal(prior["sampled_at"], start)
    now = repeat(tick.now, TIMESTAMP, prior.num_rows)
    seconds = seconds_between(now, when(continues, prior["sampled_at"], start))
    columns = (
        where(continues, prior["window_state_seconds"]),
        prior["group_state"],
        where(is_seen, seconds),
    )
    lasted = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array(list(starmap(_added, lasted)), SECONDS)


def group_history(groups: pa.Table, topics: Topics, tick: Tick) -> pa.Table:
    """Return rows for the ended window, from `group_status` at its last tick.

    There are none for a group not read live.
    """
    groups = groups.filter(
        both(differ(groups["status"], "stale"), pc.is_valid(groups["watched_since"]))
    )
    schema = arrow_schema(GROUP_HISTORY)
    if not tick.closes_windows or not groups.num_rows:
        return schema.empty_table()
    window_us = tick.window_seconds * 1_000_000
    sampled_us = pc.cast(groups["sampled_at"], pa.int64()).to_numpy()
    start_us = sampled_us // window_us * window_us
    start = pa.array(start_us.astype(np.int64), TIMESTAMP)
    end = pa.array((start_us + window_us).astype(np.int64), TIMESTAMP)
    rest = (start_us + window_us - sampled_us) / 1e6
    lasted = zip(
        groups["window_state_seconds"].to_pylist(),
        groups["group_state"].to_pylist(),
        rest,
        strict=True,
    )
    columns: dict[str, Any] = by_name(groups) | {
        "date": pc.cast(start, pa.date32()),
        "window_start": start,
        "window_end": end,
        "batch_id": repeat(tick.batch_id, pa.int64(), groups.num_rows),
        **_places(groups),
        "state_seconds": pa.array(list(starmap(_added, lasted)), SECONDS),
        "topic_partitions": pa.array(
            [_partitions(names, topics) for names in groups["topics"].to_pylist()], _COUNTS
        ),
    }
    return build(schema, columns)


def _places(groups: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the record times of the newest generation's rows.

    They come from its records if an older job wrote the group.
    """
    paths = (["epoch", "record_timestamp"], ["record_timestamp"])
    folded = [pc.struct_field(groups["folded"], path) for path in paths]
    return {
        "generation_at": pc.coalesce(groups["generation_at"], *folded),
        "roster_at": pc.coalesce(groups["roster_at"], *folded),
    }


def _added(before: _Pairs | None, state: str | None, seconds: float | None) -> _Pairs:
    seconds_by_state = dict(before or ())
    if state is not None and seconds is not None:
        seconds_by_state[state] = seconds_by_state.get(state, 0.0) + float(seconds)
    return sorted(seconds_by_state.items())


def _partitions(wanted: list[str] | None, topics: Topics) -> list[tuple[str, int]] | None:
    known: Mapping[str, int] = topics.partitions
    if wanted is None:
        return None
    return [(topic, known[topic]) for topic in wanted if topic in known]
