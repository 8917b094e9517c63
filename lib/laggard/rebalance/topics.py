"""Topics known from the poll and from earlier rows, computed only when a record needs them."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import equal
from laggard.lag.merged import UNKNOWN_TOPIC


class Topics:
    """Names by topic id, and partition counts by name; a topic that is in neither is not known."""

    def __init__(self, positions: pa.Table, known: pa.Table) -> None:
        self._positions = positions
        self._known = known

    @cached_property
    def names(self) -> dict[str, str]:
        """Topic id to topic; the poll's word counts where both have one."""
        pairs: dict[str, str] = {}
        for rows in (self._known, self._positions):
            unique = (
                rows.select(["topic_id", "topic"]).group_by(["topic_id", "topic"]).aggregate([])
            )
            pairs |= dict(
                zip(unique["topic_id"].to_pylist(), unique["topic"].to_pylist(), strict=True)
            )
        pairs.pop("", None)  # the broker gave none
        return pairs

    @cached_property
    def partitions(self) -> dict[str, int]:
        """Return topic to number of partitions in the poll, without deleted topics.

        The poll lists deleted topics once more.
        """
        there = self._positions.filter(pc.invert(equal(self._positions["error"], UNKNOWN_TOPIC)))
        counts = (
            there.select(["topic", "partition"])
            .group_by("topic")
            .aggregate([("partition", "count")])
        )
        return dict(
            zip(counts["topic"].to_pylist(), counts["partition_count"].to_pylist(), strict=True)
        )

    def unassigned(
        self, wanted: list[str] | None, assigned: set[tuple[str | None, int]]
    ) -> int | None:
        """Return the number of unowned partitions of wanted topics; None if a topic is unknown."""
        if wanted is None or not self.partitions.keys() >= set(wanted):
            return None
        counts = {topic: self.partitions[topic] for topic in wanted}
        taken = sum(topic in counts and partition < counts[topic] for topic, partition in assigned)
        return sum(counts.values()) - taken
