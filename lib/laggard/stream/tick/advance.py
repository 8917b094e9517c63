"""One tick: what was known plus what a batch brought gives what is known now, and rows of history.

A pure function of plain values: the stream, a replay over history and a test call the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.config.policy import READ_COMMITTED, Policies
from laggard.lag.flows import partition_outcomes
from laggard.lag.late import Probed, find_probes
from laggard.lag.loss.overtaken import at_window_end
from laggard.lag.merged import Merged, forget_truncated, merge, on_the_clock, readable_ends
from laggard.lag.positions import ADVANCE_FAILED, advance_positions
from laggard.lag.tick import Tick
from laggard.lag.windows import close_windows, in_a_window
from laggard.rebalance.analytics.closing import rebalance_rows
from laggard.rebalance.groups import Listing, group_rows, sum_partitions
from laggard.rebalance.membership.described import take_descriptions
from laggard.rebalance.membership.group_facts import KEPT
from laggard.rebalance.membership.owners import find_owners
from laggard.rebalance.membership.records import fold_records, touched_groups
from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters
from laggard.rebalance.topics import Topics
from laggard.sources.snapshot import PROBES
from laggard.stream.tick import events
from laggard.stream.tick.decoded import Batch
from laggard.stream.tick.group_history import group_history
from laggard.stream.tick.group_status import Changed, column_of, finish_group_status
from laggard.stream.tick.skips import find_skips
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.schema import schemas

_OF_STATE = ("group_state", "state_source")


@dataclass(frozen=True, slots=True)
class Poll:
    """Answers of the brokers in the tick's poll."""

    positions: pa.Table
    listing: Listing
    probes: pa.Table = field(default_factory=PROBES.empty_table)


def advance(
    partition_status: pa.Table,
    group_status: pa.Table,
    batch: Batch,
    poll: Poll,
    tick: Tick,
    policies: Policies | None = None,
    limits: RebalanceParameters = DEFAULTS,
) -> dict[str, pa.Table]:
    """Return rows per table; the status tables are complete, the others are rows to append."""
    partition_status = forget_truncated(partition_status, tick)
    ticked = partition_status  # windows end as their last tick left them
    partition_status = on_the_clock(partition_status, tick.shift)
    of_answers = ("error",) if tick.polls_commits else ()
    carried = group_status.select(["group", *KEPT, *_OF_STATE, *of_answers]).to_pylist()
    facts_before = {row["group"]: _without_truncated(row, tick) for row in carried}
    folded_before = column_of(group_status, "folded", touched_groups(facts_before, batch.records))
    topics = Topics(poll.positions, partition_status)
    answers, listing = batch.answers, poll.listing
    if tick.polls_commits:
        known = take_descriptions(facts_before, answers.described, answers.gone, topics, tick)
        answers = replace(answers, errors={**_lasting_errors(facts_before), **answers.errors})
        listing = replace(listing, errors=answers.errors)
    else:
        recorded = map(itemgetter("group"), batch.records)
        newest_at = column_of(group_status, "generation_at", recorded)
        known = fold_records(facts_before, folded_before, batch.records, topics, tick, newest_at)
    facts, history = known.facts, known.history
    merged = merge(
        partition_status,
        batch.commits,
        poll.positions,
        _subscribed(facts),
        batch.room,
        batch.refused,
    )
    merged = _with_readable_ends(merged, policies, tick)
    probed = _probed(merged.keys, poll, policies, tick)
    partitions, changes = advance_positions(
        merged,
        tick,
        arrow_schema(schemas.PARTITION_STATUS),
        probed,
        answers.errors,
        answers.withheld,
    )
    living = partitions.filter(pc.invert(merged.is_retired))
    sums = sum_partitions(living)
    groups_now = group_rows(facts_before, facts, sums, listing, tick, batch.refused, merged.refused)
    # between two polls members may have come and gone: their reading is no skip
    empty = {} if tick.polls_commits else _empty(facts_before, batch.records)
    skipped_to = find_skips(merged, partitions, empty, tick, limits)
    # which of them an earlier tick has recorded is not known of offsets that were deleted since
    rewinds = []
    if not tick.rereads:
        rewinds = events.new_rewinds(batch.rewinds, partition_status, partitions)
    grown = {}
    if tick.has_history:
        grown = events.grown_topics(merged, partition_status, facts_before)
    changed = Changed(
        group_status=group_status,
        partition_status=(partition_status, partitions),
        batch=batch,
        known=known,
        rewinds=rewinds,
        flows=changes["flows"],
        gaps=changes["gaps"],
        outcomes=partition_outcomes(partitions, pc.is_valid(skipped_to), tick),
        polled_topics=poll.positions["topic"].unique(),
        grown=grown,
        limits=limits,
    )
    groups, closed = finish_group_status(to_arrow(schemas.GROUP_STATUS, groups_now), changed, tick)
    if tick.closes_windows:
        ended = in_a_window(at_window_end(ticked, changes["overtaken"]))
    else:
        ended = in_a_window(merged.before.filter(merged.is_retired))
    owners = find_owners(ended, group_status, topics)
    happened: list[dict[str, Any]] = []
    away = events.absence_seconds(history.replacements, partition_status, batch.edges, limits)
    if tick.has_history:  # what is first seen while reading the past is not an event of now
        happened = [
            *events.partition_events(
                merged, partitions, {**changes, "skipped_to": skipped_to}, tick
            ),
            *events.life_events(facts_before, groups_now, answers.new, tick),
            *events.change_events(group_status, groups, tick),
            *events.growth_events(changed.grown, tick),
            *events.record_events(changed.rewinds, history, away, tick),
            *events.expiry_events(closed, tick),
        ]
    return {
        "partition_status": living,
        "group_status": groups,
        "group_history": group_history(group_status, topics, tick),
        "lag_windows": close_windows(ended, owners, tick, arrow_schema(schemas.LAG_WINDOWS)),
        "generations": to_arrow(schemas.GENERATIONS, history.generations),
        "group_members": to_arrow(schemas.GROUP_MEMBERS, history.members),
        "rebalances": to_arrow(schemas.REBALANCES, rebalance_rows(closed, tick)),
        "group_events": to_arrow(schemas.GROUP_EVENTS, happened),
    }


def _without_truncated(row: dict[str, Any], tick: Tick) -> dict[str, Any]:
    """Return a group's columns.

    If the offsets topic lost its newest record, the next one counts at any offset.
    """
    log_end = dict(tick.truncated_partitions).get(row["offsets_partition"])
    offset = row["group_record_offset"]
    if log_end is None or offset is None or offset < log_end:
        return row
    return row | {"group_record_offset": None}


def _with_readable_ends(merged: Merged, policies: Policies | None, tick: Tick) -> Merged:
    """Add the readable ends of groups whose policy declares to read committed records only."""
    if policies is None or not policies.reads_committed(tick.cluster):
        return merged
    readers = set()
    for group in merged.keys["group"].unique().to_pylist():
        if policies.of(tick.cluster, group, tick.now).isolation == READ_COMMITTED:
            readers.add(group)
    return readable_ends(merged, readers)


def _lasting_errors(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return errors of the groups' newest answers.

    They say why the groups are unknown until the next answer.
    """
    errors: dict[str, str] = {}
    for group, row in groups.items():
        if row["error"] not in (None, ADVANCE_FAILED):
            errors[group] = row["error"]
    return errors


def _probed(keys: pa.Table, poll: Poll, policies: Policies | None, tick: Tick) -> Probed | None:
    """Return each row's probe by its group's service level; planned maintenance suspends it."""
    if policies is None or not poll.probes.num_rows:
        return None
    levels: dict[str, float] = {}
    for group in keys["group"].unique().to_pylist():
        policy = policies.of(tick.cluster, group, tick.now)
        levels[group] = 0.0 if policy.in_maintenance else policy.slo_time_lag_seconds
    return find_probes(keys, levels, poll.probes)


def _empty(
    groups: Mapping[str, Mapping[str, Any]], records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return groups without members, with the time of the first of their records."""
    first = dict(map(itemgetter("group", "record_timestamp"), reversed(records)))
    return {
        group: first.get(group)
        for group, group_facts in groups.items()
        if group_facts.get("members") == 0
    }


def _subscribed(facts: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    groups: list[str] = []
    topics: list[str] = []
    for group, group_facts in facts.items():
        # it never commits: its progress is in another topic (KIP-932)
        if group_facts.get("group_type") != "share":
            wanted = group_facts.get("topics") or ()
            groups += [group] * len(wanted)
            topics += wanted
    columns = {"group": pa.array(groups, pa.string()), "topic": pa.array(topics, pa.string())}
    return pa.table(columns)
