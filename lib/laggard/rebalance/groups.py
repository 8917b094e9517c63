"""One row per group and tick: state, members, lag, from records, partition rows and listing.

The listing is the brokers' own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.status import KNOWN_STATUSES, PARTIAL
from laggard.lag.tick import Tick
from laggard.rebalance.facts import columns_of
from laggard.rebalance.membership.group_facts import KEPT


@dataclass(frozen=True, slots=True)
class Listing:
    """The brokers' word on groups; `is_fresh` is false in a tick that did not ask."""

    groups: Mapping[str, Mapping[str, Any]]  # group -> group_state, group_type, protocol_type
    coordinators: Mapping[int, int | None]  # offsets partition -> broker; None: it has no leader
    is_fresh: bool
    unlisted: frozenset[int | None] = frozenset()  # coordinators that did not list their groups
    # of groups that were asked for their offsets
    errors: Mapping[str, str | None] = field(default_factory=dict)


def generation_or_epoch(row: Mapping[str, Any]) -> int | None:
    """Return the generation of a classic group, or the epoch of a modern one."""
    number: int | None = row["group_epoch"]
    if number is None:
        number = row["generation"]
    return number


def by_group(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """Return rows that have a group each, by its name."""
    return {row["group"]: row for row in rows.to_pylist()}


def sum_partitions(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """Fold exactly these partition rows by group."""
    rows = rows.select(["group", "status", "lag", "time_lag_seconds", "commit_source_partition"])
    for name in KNOWN_STATUSES:
        rows = rows.append_column(f"is_{name}", pc.cast(pc.equal(rows["status"], name), pa.int64()))
    sums = rows.group_by("group").aggregate(
        [
            ("status", "count"),
            ("is_ok", "sum"),
            ("is_no_commit", "sum"),
            ("lag", "sum"),
            ("time_lag_seconds", "max"),
            ("commit_source_partition", "max"),
        ]
    )
    return by_group(sums)


def group_rows(
    before: Mapping[str, Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
    sums: Mapping[str, Mapping[str, Any]],
    listing: Listing,
    tick: Tick,
    refused: Mapping[str, Sequence[tuple[str, int]]] | None = None,
    uncommitted: Mapping[str, int] | None = None,
) -> list[dict[str, Any]]:
    """Return rows of `group_status`.

    `refused`: by group, partitions with a commit and without a row.

    `uncommitted`: number of those without either. A group lives as long as it has an offset, a
    subscription or a group record.
    """
    rows, refused = [], refused or {}
    for group in sorted(facts.keys() | sums.keys() | refused.keys()):
        group_facts, totals, names = facts.get(group, {}), sums.get(group), refused.get(group, ())
        if group_facts.get("members") is None and totals is None and not names:
            continue
        row = _row(group, before.get(group, {}), group_facts, totals or {}, listing, tick)
        row |= refused_columns(names, (uncommitted or {}).get(group, 0))
        if row["shed_keys"]:  # they are missing in the sums
            row["lag"] = None
            if row["status"] == "ok":
                row["status"] = PARTIAL
        rows.append(row)
    return rows


def refused_columns(names: Sequence[tuple[str, int]], uncommitted: int = 0) -> dict[str, Any]:
    """Return columns of `group_status` about partitions that were refused."""
    named = [{"topic": topic, "partition": partition} for topic, partition in names]
    return {"shed_keys": len(names) + uncommitted, "refused": named}


def _row(
    group: str,
    before: Mapping[str, Any],
    facts: Mapping[str, Any],
    totals: Mapping[str, Any],
    listing: Listing,
    tick: Tick,
) -> dict[str, Any]:
    total, ok = totals.get("status_count") or 0, totals.get("is_ok_sum") or 0
    no_commit = totals.get("is_no_commit_sum") or 0
    unknown = total - ok - no_commit
    status = PARTIAL if unknown else "ok"
    if not tick.is_caught_up:
        status = "stale"
    lag, known_lag = None, None
    if ok:
        known_lag = totals.get("lag_sum")
    if status == "ok":
        lag = known_lag
    return {
        **columns_of(facts, KEPT),
        "cluster": tick.cluster,
        "group": group,
        "status": status,
        "batch_id": tick.batch_id,
        "poll_id": tick.poll_id,
        "sampled_at": tick.now,
        **_of_listing(group, before, facts, totals, listing, tick),
        "lag": lag,
        "lag_known": known_lag,
        "max_time_lag_seconds": totals.get("time_lag_seconds_max"),
        "partitions_total": total,
        "partitions_ok": ok,
        "partitions_no_commit": no_commit,
        "partitions_unknown": unknown,
        "generations_total": facts.get("generations_total") or 0,
        "is_held": bool(facts.get("is_held")),
        "error": listing.errors.get(group),
    }


def _of_listing(
    group: str,
    before: Mapping[str, Any],
    facts: Mapping[str, Any],
    totals: Mapping[str, Any],
    listing: Listing,
    tick: Tick,
) -> dict[str, Any]:
    """Return columns that what the brokers list has a say in: type, state and coordinator."""
    listed = listing.groups.get(group, {})
    offsets_partition, coordinator, is_fresh = _coordinator(facts, totals, listing)
    if tick.polls_commits:  # who is asked for the offsets is who listed the group
        coordinator = listed.get("coordinator")
        is_fresh = group in listing.groups
        state, source = _polled_state(before, listed, listing.errors.get(group))
    else:
        state, source = _state(before, facts, listed, is_fresh=is_fresh)
    return {
        "group_type": _type(before, facts, listed, is_fresh=is_fresh),
        "protocol_type": facts.get("protocol_type") or listed.get("protocol_type") or None,
        "group_state": state,
        "state_source": source,
        "coordinator": coordinator,
        "offsets_partition": offsets_partition,
    }


def _coordinator(
    facts: Mapping[str, Any], totals: Mapping[str, Any], listing: Listing
) -> tuple[int | None, int | None, bool]:
    """Return the offsets partition, its leader, and True if the listing covers the group.

    Partition and leader are None if unknown.
    """
    partition = totals.get("commit_source_partition_max")
    if partition is None:
        partition = facts.get("offsets_partition")
    if partition is None:
        return None, None, listing.is_fresh
    coordinator = listing.coordinators.get(partition)
    # what others list says nothing about the groups of a coordinator that does not answer
    return partition, coordinator, listing.is_fresh and coordinator not in listing.unlisted


def _state(
    before: Mapping[str, Any],
    facts: Mapping[str, Any],
    listed: Mapping[str, Any],
    *,
    is_fresh: bool,
) -> tuple[str, str]:
    """Return the state in Kafka's spelling and its source.

    The source is the broker, or records by the broker's rule on loading.
    """
    if listed.get("group_state"):
        return listed["group_state"], "admin"
    is_unchanged = facts.get("group_record_offset") == before.get("group_record_offset")
    if not is_fresh and is_unchanged and before.get("state_source") == "admin":
        return before["group_state"], "admin"  # between two listings the broker's last word stands
    if facts.get("record_state") is not None:
        return facts["record_state"], "record"
    if facts.get("members") is not None:  # a row that an older job wrote
        return ("Stable" if facts["members"] else "Empty"), "record"
    return "Unknown", "none"


def _polled_state(
    before: Mapping[str, Any], listed: Mapping[str, Any], error: str | None
) -> tuple[str, str]:
    """Return the state if coordinators are polled, with its source.

    This is the broker's last state, unless the group is refused or fails.
    """
    if listed.get("group_state"):
        return listed["group_state"], "admin"
    if error is None and before.get("state_source") == "admin":
        return before["group_state"], "admin"
    return "Unknown", "none"


def _type(
    before: Mapping[str, Any],
    facts: Mapping[str, Any],
    listed: Mapping[str, Any],
    *,
    is_fresh: bool,
) -> str | None:
    kind = (listed.get("group_type") or "").lower() or facts.get("group_type")
    if kind is None and not is_fresh:
        return before.get("group_type")
    if kind == "classic" and facts.get("members") is None and not listed.get("protocol_type"):
        return "simple"  # offsets of somebody who never joined
    return kind
