"""Questions about one group: the same for the verb and for the API."""

from __future__ import annotations

from dataclasses import dataclass, replace

from laggard.cli.explain.rows import Explained, read_group
from laggard.cli.explain.since import read_past
from laggard.cli.explain.topic import of_topic
from laggard.cli.times import When
from laggard.rebalance.parameters import RebalanceParameters
from laggard.tables.published import Batch

FEW, ALL = 5, 1_000_000  # rebalances


@dataclass(frozen=True, slots=True)
class Asked:
    """A group, and how much of it: all topics, the newest batch and few rebalances unless said otherwise."""

    group: str  # as the tables have it, or as `laggard status` prints it
    limits: RebalanceParameters  # by which reasons are claimed
    limit: int | None = None  # rebalances; None: few, or with `since` all from then on
    topic: str | None = None
    at: When | None = None
    since: When | None = None

    def read(self, root: str, window_seconds: int, batch: Batch | None = None) -> Explained:
        """Read the rows from the tables that a batch names; the newest one if it is None."""
        limit = self.limit or (ALL if self.since else FEW)
        found = read_group(root, self.group, limit, self.at, window_seconds, self.since, batch)
        explained = replace(found, limits=self.limits)
        if explained.since is not None:
            past = read_past(root, explained.group["group"], explained.since, explained.batch.polled_at)
            explained = replace(explained, past=past)
        return explained if self.topic is None else of_topic(explained, self.topic)
