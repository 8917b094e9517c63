"""Commits that were made and could not be read yet: an open transaction on the offsets partition lies before them.

They are found by the positions of the offsets topic that `batches` has of every tick: what is below the high watermark
of a tick was written by then, and is known once it has been read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.history.frames import Floats, Hidden

COLUMNS = ("polled_at", "source_to", "source_high_watermark")


def hidden_commits(
    batches: pa.Table | None, windows: npt.NDArray[np.int64], window_seconds: int
) -> Callable[[int | None], Hidden | None]:
    """Return the hidden commits of the groups of an offsets partition; None if the partition is not known."""
    if batches is None or not batches.num_rows:
        return lambda _: None
    rows = batches.sort_by([("polled_at", "ascending"), ("batch_id", "ascending")])
    at = pc.cast(rows["polled_at"], pa.int64()).to_numpy() / 1e6  # microseconds
    ends = windows / 1000 + window_seconds
    last = np.searchsorted(at, ends) - 1  # the poll at the end of a window is the next one's
    told = (last >= 0) & (at[last] >= ends - window_seconds)
    read, high = (_by_partition(rows[name]) for name in COLUMNS[1:])

    @cache
    def of(partition: int | None) -> Hidden | None:
        if partition is None or partition not in high or partition not in read:
            return None
        written = np.fmax.accumulate(high[partition])
        to = read[partition][last]
        is_told = told & ~np.isnan(to) & ~np.isnan(written[last])
        # the newest tick by which nothing had been written that is not read by now
        seen = np.minimum(np.searchsorted(np.where(np.isnan(written), -np.inf, written), to, side="right") - 1, last)
        least = np.where(seen < last, at[last] - at[np.minimum(seen + 1, last)], 0.0)
        most = at[last] - at[np.maximum(seen, 0)]
        return Hidden(np.where(is_told, least, np.nan), np.where(is_told, most, np.nan))

    return of


def _by_partition(column: pa.ChunkedArray) -> dict[int, Floats]:
    """A column of maps as an array over the rows per key, NaN if a row has none."""
    found: dict[int, Floats] = {}
    place = 0
    for chunk in column.chunks:
        begins = chunk.offsets.to_numpy()
        rows = place + np.repeat(np.arange(len(chunk)), np.diff(begins))
        keys, values = (each.to_numpy()[begins[0] : begins[-1]] for each in (chunk.keys, chunk.items))
        for key in np.unique(keys).tolist():
            mine = keys == key
            found.setdefault(key, np.full(len(column), np.nan))[rows[mine]] = values[mine]
        place += len(chunk)
    return found
