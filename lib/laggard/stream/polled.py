"""What a poll of the coordinators brought, as the decode stage would give it: rows of commits that changed.

A poll says where a group stands and not when it committed. So a change becomes one commit at an unknown time, which was
made between the poll before that asked the group and this one, and what did not change becomes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import TIMESTAMP, differ, equal, flags, key_codes, match, repeat, take, where
from laggard.lag.merged import KEY, UNKNOWN_TOPIC
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.sources.ended_groups import GROUP_GONE
from laggard.sources.snapshot import Snapshot
from laggard.stream.decoded import SCHEMA, Answers, Batch, batch_of


def polled_batch(poll: Snapshot, partition_status: pa.Table, names: NameFilter, tick: Tick, own: Any) -> Batch:
    """The batch of a shard: `own` gives a mask of its own groups, `partition_status` has its rows of before."""
    answers = _answers(poll, own)
    whole = [group for group, error in answers.errors.items() if error is None]
    committed = poll.committed.filter(own(poll.committed["group"]))
    committed = committed.filter(pc.is_in(committed["group"], value_set=pa.array(whole, pa.string())))
    commits = [
        _changes(committed, partition_status, tick),
        _deletions(committed, partition_status, whole, answers.gone, _hidden(poll, partition_status, names), tick),
    ]
    empty = SCHEMA.empty_table()
    return Batch(pa.Table.from_batches(commits, schema=SCHEMA), (), (), empty, answers)


def _answers(poll: Snapshot, own: Any) -> Answers:
    rows = poll.answers.filter(own(poll.answers["group"])).to_pylist()
    gone = [row["group"] for row in rows if row["error"] == GROUP_GONE]
    return Answers(
        {row["group"]: row["error"] for row in rows if row["is_asked"] and row["error"] != GROUP_GONE},
        {row["group"]: row["description"] for row in rows if row["description"] is not None},
        gone,
    )


def _changes(committed: pa.Table, before: pa.Table, tick: Tick) -> pa.RecordBatch:
    new, old = key_codes([committed, before], KEY)
    prior = take(before.select(["committed_offset", "leader_epoch"]), match(new, old))
    is_same = pc.and_(
        equal(prior["committed_offset"], committed["committed_offset"]),
        pc.invert(differ(prior["leader_epoch"], committed["leader_epoch"])),
    )
    is_changed = pc.and_(pc.is_valid(committed["committed_offset"]), pc.invert(is_same))
    rows, prior = committed.filter(is_changed), prior.filter(is_changed)
    # one that is there for the first time is progress too, as far as the group was watched before
    has_risen = pc.fill_null(pc.greater(rows["committed_offset"], prior["committed_offset"]), True)
    seen = where(has_risen, repeat(tick.now, TIMESTAMP, rows.num_rows))
    return _commits(
        rows,
        tick,
        committed_offset=_one(rows["committed_offset"]),
        first_committed_offset=_one(rows["committed_offset"]),
        leader_epoch=_one(rows["leader_epoch"]),
        progress_timestamp=_one(seen),
        is_deleted=repeat(False, pa.bool_(), rows.num_rows),
    )


def _deletions(
    committed: pa.Table, before: pa.Table, whole: Collection[str], gone: Collection[str], hidden: Any, tick: Tick
) -> pa.RecordBatch:
    """Commits that are there no more: of groups that are gone, or that answered, but for topics that may be hidden."""
    new, old = key_codes([committed, before], KEY)
    is_missing = match(old, new) < 0
    had_commit = pc.or_(pc.is_valid(before["committed_offset"]), pc.is_valid(before["commit_source_offset"]))
    is_whole, is_gone = (
        flags(pc.is_in(before["group"], value_set=pa.array(each, pa.string()))) for each in (list(whole), list(gone))
    )
    rows = before.filter(pa.array(flags(had_commit) & (is_gone | (is_missing & is_whole & ~hidden))))
    return _commits(rows, tick, is_deleted=repeat(True, pa.bool_(), rows.num_rows))


def _hidden(poll: Snapshot, before: pa.Table, names: NameFilter) -> Any:
    """True for rows of topics that we may perhaps not describe: coordinators leave these out without a word."""
    topics = pc.unique(before["topic"]).to_pylist()
    pairs = poll.positions.select(["topic", "error"]).group_by(["topic", "error"]).aggregate([])
    errors: dict[str, set[str | None]] = {}
    for row in pairs.to_pylist():
        errors.setdefault(row["topic"], set()).add(row["error"])
    seen = [topic for topic in topics if topic in errors and errors[topic] & {None, UNKNOWN_TOPIC}]
    if poll.lists_all_topics:
        seen += [topic for topic in topics if topic not in errors and names.watches_topic(topic)]
    return ~flags(pc.is_in(before["topic"], value_set=pa.array(seen, pa.string())))


def _commits(rows: pa.Table, tick: Tick, **columns: pa.Array) -> pa.RecordBatch:
    number = rows.num_rows
    zeros = repeat(0, pa.int64(), number)
    counts = ("noop_commits", "repeat_commits", "rewound_records", "commit_gaps", "commit_gap_ms", "commit_gap_squares")
    return batch_of(
        number,
        kind=repeat("commit", pa.string(), number),
        **{name: _one(rows[name]) for name in KEY},
        source_offset=repeat(tick.poll_id, pa.int64(), number),
        follows_deletion=repeat(False, pa.bool_(), number),
        commits=repeat(1, pa.int64(), number),
        **dict.fromkeys(counts, zeros),
        **columns,
    )


def _one(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
