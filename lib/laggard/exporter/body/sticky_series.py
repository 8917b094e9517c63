"""Partitions that keep their series for a while, so that lag panels show lines and not dots."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HELD_SECONDS = 600.0
_NEAR = 2  # times as many partitions as are exported: among them one stays without a limit

Mask = npt.NDArray[np.bool_]


class Held:
    """Partitions that were among the worst, and when each was last near them."""

    def __init__(self) -> None:
        self._keys = pa.array([], pa.string())
        self._near_at = np.empty(0)

    def choose(
        self, partitions: pa.Table, rank: npt.NDArray[np.int64], top_k: int, at: float
    ) -> Mask:
        """Return True for the `top_k` worst of each group–topic and for some recent ones.

        At most as many more partitions are chosen that were among the worst lately.
        """
        keys = pc.binary_join_element_wise(
            partitions["group"],
            partitions["topic"],
            pc.cast(partitions["partition"], pa.string()),
            "\0",
        ).combine_chunks()
        index = pc.index_in(keys, value_set=self._keys)
        is_known = np.asarray(pc.is_valid(index))
        near_at = np.full(len(rank), -np.inf)
        near_at[is_known] = self._near_at[np.asarray(pc.drop_null(index))]
        near_at[(rank < top_k) | (is_known & (rank < _NEAR * top_k))] = at
        is_worst = rank < top_k
        is_late = ~is_worst & (near_at > at - HELD_SECONDS)
        chosen: Mask = is_worst | (is_late & (count_before(is_late, rank) < top_k))
        self._keys, self._near_at = keys.filter(pa.array(chosen)), near_at[chosen]
        return chosen


def count_before(is_one: Mask, rank: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Count for each row the earlier marked rows of its group–topic, where `rank` begins at 0."""
    before = np.cumsum(is_one, dtype=np.int64) - is_one
    within: npt.NDArray[np.int64] = before - before[np.arange(len(rank)) - rank]
    return within
