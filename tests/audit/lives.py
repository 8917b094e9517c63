"""A job that runs batch by batch over one topic whose log grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stream.simulation import Record, Row, commit, end
from stream.whole_batch import WholeBatches


@dataclass
class Life(WholeBatches):
    """Batches by the job's own code; the log of each of three partitions grows by 100 records
    before each.
    """

    log_end: int = 1000

    def go(
        self, lags: Mapping[int, int], records: Iterable[Record] = (), *, seconds: float = 10
    ) -> Row:
        """One batch, in which group `g` commits so many records before the log end of these
        partitions.
        """
        self.log_end += 100
        at = round(self.now.timestamp() * 1000)
        ends = [end(self.log_end, start=0, partition=number) for number in range(3)]
        given = [
            *records,
            *(commit(self.log_end - lag, partition=number) for number, lag in lags.items()),
        ]
        return self.tick(ends, [(each.key, each.value, at) for each in given], seconds=seconds)
