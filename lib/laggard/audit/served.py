"""I9: compare what an exporter serves with the rows of the batch that it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.parser import text_string_to_metric_families

from laggard.audit.reader import Reader
from laggard.audit.result import Tally
from laggard.errors import UNREACHABLE, LaggardError
from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.totals import PARTITION_COLUMNS
from laggard.lag.status import KNOWN_STATUSES
from laggard.tables.odd_rows import Skipped, sift_columns
from laggard.tables.published import newest_batch
from laggard.tables.schema.schemas import BATCHES, GROUP_STATUS, PARTITION_STATUS

Ask = Callable[[str], tuple[int, bytes]]  # path to status and body
Served = dict[tuple[str, ...], float]  # values of labels to value
_READ = (fam.BATCH_ID, fam.GROUP_LAG, fam.PARTITION_LAG, fam.SERIES_WITHHELD)
_KEY = ("group", "topic", "partition")


def check_exporter(ask: Ask, reader: Reader, tally: Tally) -> None:
    """Compare lag in `/metrics` with `partition_status` of the same batch.

    The lag is by group and topic, and by partition.
    """
    status, body = ask("/metrics")
    if status != 200:
        raise LaggardError(
            "the exporter serves no metrics", cause=f"it answers {status}", exit_code=UNREACHABLE
        )
    served, cluster = _read(body), escape_label(reader.batch.cluster)
    named = served[fam.BATCH_ID.name].get((cluster,))
    if named is None:
        tally.unchecked = (
            f"the exporter serves no data of cluster {cluster}; laggard doctor --url says why"
        )
        return
    versions = _versions(reader, int(named))
    # a tick that was published since the audit began
    if versions is None and (newest := newest_batch(reader.root)):
        versions = _versions(replace(reader, batch=newest), int(named))
    if versions is None:
        tally.unchecked = (
            f"the exporter shows batch {named:.0f}, which these tables do not have: is it "
            "another root?"
        )
        return
    rows = reader.whole(PARTITION_STATUS, PARTITION_COLUMNS, versions[PARTITION_STATUS.name])
    # what cannot be shown is unknown there
    rows = sift_columns(rows, PARTITION_STATUS.name, _KEY, Skipped())
    groups = reader.whole(GROUP_STATUS, ("group", "shed_keys"), versions[GROUP_STATUS.name])
    # some of its partitions have no row
    shed = groups.filter(pc.greater(groups["shed_keys"], 0))["group"]
    withheld = {level for (level,), number in served[fam.SERIES_WITHHELD.name].items() if number}
    # the last level leaves out whole groups
    is_whole = not withheld & {fam.GROUP_LAG.level, "groups"}
    _compare(
        _sums(rows, shed, cluster),
        served[fam.GROUP_LAG.name],
        fam.GROUP_LAG,
        tally,
        is_whole=is_whole,
    )
    _compare(
        _lags(rows, cluster),
        served[fam.PARTITION_LAG.name],
        fam.PARTITION_LAG,
        tally,
        is_whole=False,
    )


def _read(body: bytes) -> dict[str, Served]:
    """Return the samples of the families that are compared."""
    names = tuple(map(attrgetter("name"), _READ))
    lines = [
        line for line in body.decode("utf-8", "replace").splitlines() if line.startswith(names)
    ]
    served: dict[str, Served] = {name: {} for name in names}
    labels = {family.name: family.labels for family in _READ}
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        for sample in family.samples:
            if sample.name in served:
                key = tuple(sample.labels.get(name, "") for name in labels[sample.name])
                served[sample.name][key] = sample.value
    return served


def _versions(reader: Reader, batch: int) -> dict[str, int] | None:
    """Return the versions of the tables that a batch names; None if the batch is not there."""
    rows = reader.whole(BATCHES, ("batch_id", "table_versions"))
    batches = rows.filter(
        pc.and_(pc.equal(rows["batch_id"], batch), pc.is_valid(rows["table_versions"]))
    )
    if not batches.num_rows:
        return None
    return dict(batches["table_versions"][0].as_py())


def _sums(
    rows: pa.Table, shed: pa.ChunkedArray, cluster: str
) -> dict[tuple[str, ...], float | None]:
    """Return the lag by group and topic; None if it is unknown.

    That is so for shed groups, and if a partition with a commit has unknown lag.
    """
    is_whole = pc.invert(pc.is_in(rows["group"], shed.combine_chunks()))
    is_known = pc.and_(is_whole, pc.is_in(rows["status"], pa.array(KNOWN_STATUSES)))
    known = rows.append_column("is_known", is_known)
    sums = known.group_by(["group", "topic"]).aggregate([("lag", "sum"), ("is_known", "min")])
    names = zip(sums["group"].to_pylist(), sums["topic"].to_pylist(), strict=True)
    values = zip(sums["lag_sum"].to_pylist(), sums["is_known_min"].to_pylist(), strict=True)
    expected: dict[tuple[str, ...], float | None] = {}
    for (group, topic), (lag, is_known) in zip(names, values, strict=True):
        key = cluster, escape_label(group), escape_label(topic)
        expected[key] = lag if is_known else None
    return expected


def _lags(rows: pa.Table, cluster: str) -> dict[tuple[str, ...], float | None]:
    expected: dict[tuple[str, ...], float | None] = {}
    for row in rows.to_pylist():
        group, topic = escape_label(row["group"]), escape_label(row["topic"])
        expected[cluster, group, topic, str(row["partition"])] = row["lag"]
    return expected


def _compare(
    expected: dict[tuple[str, ...], float | None],
    served: Served,
    family: fam.Family,
    tally: Tally,
    *,
    is_whole: bool,
) -> None:
    """Check that each served value is the expected value.

    If the family is whole, check also that each known value is served.
    """
    keys = served.keys() | expected.keys() if is_whole else served.keys()
    for key in keys:
        tally.checked += 1
        if served.get(key) != expected.get(key):
            labels = dict(zip(family.labels, key, strict=True))
            tally.refute("/metrics", labels, family.name, expected.get(key), served.get(key))
