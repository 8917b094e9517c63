"""Configuration and tables: what is set, and what lies on disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pyarrow as pa

from laggard.doctor.result import Result
from laggard.errors import LaggardError
from laggard.escape import escape_label
from laggard.exporter.web.access import WebFile
from laggard.failures import classify
from laggard.files import list_names, nearest_existing
from laggard.lag.positions import ADVANCE_FAILED
from laggard.tables import log
from laggard.tables.arrow import arrow_schema
from laggard.tables.freshness import max_age
from laggard.tables.lock import local_path
from laggard.tables.odd_rows import Skipped
from laggard.tables.published import BACKFILL, newest_batch
from laggard.tables.readers import TableMissing, naming_errors, open_table, read_table, table_uri
from laggard.tables.schema.schemas import BATCHES, PARTITION_STATUS, TABLES
from laggard.tables.upkeep.maintenance import read_done

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.exporter.snapshot import Snapshot

_MISSING = "missing: "
_MOST_NAMED = 5
MAINTAINED_HOURS = 26  # a day, and time to catch up


def check_bootstrap(config: Config) -> Iterable[Result]:
    """Check the one key without a default."""
    servers = config.cluster.bootstrap_servers
    if servers:
        yield Result("ok", "bootstrap servers", ", ".join(servers))
    else:
        remedy = (
            "laggard doctor --set 'cluster.bootstrap_servers=[\"localhost:9092\"]', or set it in "
            "laggard.toml"
        )
        yield Result("fail", "bootstrap servers", "cluster.bootstrap_servers is empty", remedy)


def check_folders(config: Config) -> Iterable[Result]:
    """Check that folders of tables and checkpoint are writable, or a bucket of tables readable."""
    for key in ("tables", "checkpoint"):
        root = getattr(config.job, key)
        folder = local_path(root)
        if folder is None:
            yield from _check_bucket(key, root)
            continue
        place = nearest_existing(folder)
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            yield Result("ok", f"job.{key}", f"{place} can be written")
        else:
            remedy = f"set job.{key} to a folder that this user can write"
            yield Result("fail", f"job.{key}", f"{place} cannot be written", remedy)


def _check_bucket(key: str, root: str) -> Iterable[Result]:
    if key == "checkpoint":
        yield Result(
            "fail",
            "job.checkpoint",
            f"{root} is not on this machine",
            "set job.checkpoint to a folder",
        )
        return
    try:
        list_names(root)
    except (LaggardError, OSError) as error:
        failure = classify(error)
        yield Result("fail", f"job.{key}", failure.sentence, failure.fix)
    else:
        yield Result(
            "ok",
            f"job.{key}",
            f"{root} can be read; what the job may write there shows at its start",
        )


def check_listen(config: Config) -> Iterable[Result]:
    """Check that the web-config file is usable and no others reach the exporter unprotected."""
    listen, path = config.exporter.listen, config.exporter.web_config_file
    file = WebFile(path)
    if path:
        file.load()
        yield Result("ok", "exporter.web_config_file", f"{path} can be used")
    exposure = file.web.exposure(listen.rpartition(":")[0].strip("[]"))
    if exposure:
        remedy = (
            "set 127.0.0.1, or exporter.web_config_file with TLS and a password (docs/exporter.md)"
        )
        yield Result(
            "warn",
            "exporter.listen",
            f"{listen} can be reached from other machines {exposure}",
            remedy,
        )
    else:
        yield Result("ok", "exporter.listen", listen)


def check_roots(config: Config) -> Iterable[Result]:
    """Check that the exporter's table roots can be read, and that each is of another cluster."""
    root_by_cluster: dict[str, str] = {}
    for root in config.exporter.tables:
        try:
            batch = newest_batch(root)
        except TableMissing as missing:
            yield Result("warn", "exporter.tables", missing.what, missing.fix, is_ahead=True)
            continue
        if batch is None:
            yield Result(
                "warn",
                "exporter.tables",
                f"{root}: nothing is published yet",
                "laggard run",
                is_ahead=True,
            )
        elif batch.cluster in root_by_cluster:
            fact = (
                f"{root} and {root_by_cluster[batch.cluster]} are both of cluster {batch.cluster}"
            )
            yield Result(
                "fail",
                "exporter.tables",
                fact,
                "give each job its own cluster.name, or leave one root out",
            )
        else:
            root_by_cluster[batch.cluster] = root
            yield Result("ok", "exporter.tables", f"{root}: cluster {batch.cluster}")


def check_series(config: Config) -> Iterable[Result]:
    """Check that the newest batch of each table root fits under the cap on series."""
    from laggard.exporter.body.budget import count_series
    from laggard.exporter.body.render import fitting_families
    from laggard.exporter.evaluated import EvaluatedReader
    from laggard.exporter.options import Selection
    from laggard.exporter.snapshot import load_snapshot

    roots = config.exporter.tables or (config.job.tables,)
    share = config.metrics.max_series // len(roots)
    for root in roots:
        try:
            batch = newest_batch(root)
        except TableMissing:
            continue  # reported by its own line
        if batch is None or batch.kind == BACKFILL:
            continue
        skipped = Skipped()
        selection = Selection.of(config.metrics)
        # a partition that was among the worst keeps its series for a while: as many again at most
        both = replace(selection, partition_top_k=2 * selection.partition_top_k)
        most = load_snapshot(root, batch, both, Skipped(), config.policies.of)
        snapshot = load_snapshot(root, batch, selection, skipped, config.policies.of)
        held = _series_of(most) - _series_of(snapshot)
        with suppress(TableMissing):  # of a job without rules
            evaluated = EvaluatedReader(root, config.job.window_seconds).read(skipped)
            evaluated = evaluated.if_fresh(batch.polled_at.timestamp(), config.job.window_seconds)
            snapshot = replace(snapshot, evaluated=evaluated)
        budgeted = fitting_families(snapshot, share, skipped)
        fact = (
            f"{count_series(budgeted.families):,} of groups and topics of cluster "
            f"{batch.cluster}; room for {share:,}"
        )
        if held:
            fact += f"; up to {held:,} more as the worst partitions change"
        withheld = ", ".join(f"{count:,} of {level}" for level, count in budgeted.withheld.items())
        if withheld:
            remedy = "raise metrics.max_series, or limit metrics.distributions (docs/exporter.md)"
            yield Result("warn", "series", f"{fact}; withheld: {withheld}", remedy)
        else:
            yield Result("ok", "series", fact)


def _series_of(snapshot: Snapshot) -> int:
    """Return the number of series of a snapshot if there were room for all."""
    from laggard.exporter.body.budget import count_series
    from laggard.exporter.body.render import fitting_families

    return count_series(fitting_families(snapshot, sys.maxsize, Skipped()).families)


def check_table(config: Config, name: str) -> Iterable[Result]:
    """Check that the table exists, any Delta reader can read it, and its columns fit this code."""
    try:
        table = open_table(config.job.tables, name)
    except TableMissing as missing:
        # before the first start one line is enough, and `batches` has it
        is_first = not _exists(config.job.tables, BATCHES.name)
        if name == BATCHES.name or not is_first:
            yield Result("warn", name, missing.what, missing.fix, is_ahead=is_first)
        return
    if (version := table.protocol().min_reader_version) != 1:
        yield Result(
            "fail",
            name,
            f"Delta reader version {version}, not 1",
            "recreate the table: laggard made it with 1",
        )
    stored = pa.schema(table.schema().to_arrow())
    differences = compare(stored, arrow_schema(TABLES[name]))
    lacking = [
        difference.removeprefix(_MISSING)
        for difference in differences
        if difference.startswith(_MISSING)
    ]
    if lacking and len(lacking) == len(differences):
        fact = f"of an older laggard; a start adds {', '.join(lacking)}"
        yield Result("warn", name, fact, "laggard run", is_ahead=True)
    elif differences:
        yield Result(
            "fail",
            name,
            "; ".join(differences),
            "install the laggard that wrote it, or move the tables aside",
        )
    else:
        yield Result("ok", name, f"version {table.version()}, columns as declared")


def _exists(root: str, name: str) -> bool:
    try:
        open_table(root, name)
    except TableMissing:
        return False
    return True


def compare(stored: pa.Schema, wanted: pa.Schema) -> list[str]:
    """Return all differences of names and types between two schemas."""
    types = {field.name: str(arrow_types(field.type)) for field in stored}
    declared = {field.name: str(arrow_types(field.type)) for field in wanted}
    missing = [f"{_MISSING}{name}" for name in declared if name not in types]
    unexpected = [f"unexpected: {name}" for name in types if name not in declared]
    others = []
    for name, kind in declared.items():
        if types.get(name, kind) != kind:
            others.append(f"{name} is {types[name]}, not {kind}")
    return [*missing, *unexpected, *others]


def arrow_types(kind: pa.DataType) -> object:
    """Return a type without the names that writers give to the elements of lists and maps."""
    if pa.types.is_list(kind):
        return ("list", arrow_types(kind.value_type))
    if pa.types.is_map(kind):
        return ("map", arrow_types(kind.key_type), arrow_types(kind.item_type))
    if pa.types.is_struct(kind):
        return ("struct", *((field.name, arrow_types(field.type)) for field in kind))
    return str(kind)


def _has_rows_after(root: str, name: str, version: int) -> bool:
    """Return True if rows were written after a version."""
    uri, newest = table_uri(root, name), open_table(root, name).version()
    with naming_errors(uri):
        return any(log.adds_rows(uri, newer) for newer in range(version + 1, newest + 1))


def check_maintained(config: Config, now: datetime | None = None) -> Iterable[Result]:
    """Check that maintenance, which is daily and hourly, has reached every table."""
    moment = now or datetime.now(timezone.utc)
    done = read_done(config.job.tables) if config.maintenance.enabled else {}
    late = [name for name, at in done.items() if moment - at > timedelta(hours=MAINTAINED_HOURS)]
    if late:
        fact = f"not maintained for {MAINTAINED_HOURS} hours: {', '.join(sorted(late))}"
        remedy = (
            'look for "maintenance of" in the log of laggard run; while that is down nothing is '
            "maintained"
        )
        yield Result("warn", "maintenance", fact, remedy)
    elif done:
        yield Result("ok", "maintenance", f"every table within {MAINTAINED_HOURS} hours")


def check_published(config: Config, now: datetime | None = None) -> Iterable[Result]:
    """Check that the newest batch is recent, and that no status table is ahead of it."""
    root = config.job.tables
    try:
        batch = newest_batch(root)
    except TableMissing:
        return  # reported by its own line
    if batch is None:
        yield Result(
            "warn", "newest batch", "nothing is published yet", "laggard run", is_ahead=True
        )
        return
    age = ((now or datetime.now(timezone.utc)) - batch.clock_at).total_seconds()
    limit = max_age(config.job.tick_seconds, config.exporter.max_age_seconds)
    fact = f"{batch.batch_id}, {age:.0f} s old"
    is_fresh = age <= limit
    if is_fresh:
        yield Result("ok", "newest batch", fact)
    else:
        yield Result("warn", "newest batch", fact, "laggard run")
    ahead = []
    for name, version in sorted(batch.table_versions.items()):
        if name != BATCHES.name and _has_rows_after(root, name, version):
            ahead.append(name)
    if ahead:
        fact = f"newer than batch {batch.batch_id}: {', '.join(ahead)}"
        yield Result(
            "warn",
            "unpublished rows",
            fact,
            "readers do not see them; a running job publishes or repeats them",
        )
    else:
        yield Result("ok", "unpublished rows", "none")


def check_quarantine(config: Config) -> Iterable[Result]:
    """Check that no group is in quarantine.

    If groups are in quarantine, count their partitions, whose rows are old.
    """
    root = config.job.tables
    try:
        batch = newest_batch(root)
    except TableMissing:
        return  # reported by its own line
    if batch is None:
        return
    groups = batch.values["quarantined_groups"]
    if not groups:  # null of an older job, which did not count them
        fact = "no group" if groups == 0 else "not counted by the job that wrote the batch"
        yield Result("ok", "quarantine", fact)
        return
    rows = read_table(
        root, PARTITION_STATUS.name, batch.table_versions[PARTITION_STATUS.name], ["error"]
    )
    held = sum(error == ADVANCE_FAILED for error in rows["error"].to_pylist())
    errors = sorted(dict(batch.values["quarantined"] or {}).items())
    named = ", ".join(f"{escape_label(group)}: {error}" for group, error in errors[:_MOST_NAMED])
    fact = (
        f"groups {groups:,}, with {held:,} partitions, of which only old rows are shown ({named})"
    )
    remedy = (
        "look in the log of laggard run for these groups; docs/runbooks/LaggardGroupsUnwatched.md"
    )
    yield Result("warn", "quarantine", fact, remedy)
