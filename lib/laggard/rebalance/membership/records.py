"""Group records of a batch folded onto the known groups, with the history rows they make."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from laggard.lag.tick import Tick
from laggard.rebalance.facts import columns_of
from laggard.rebalance.membership.classic import fold_classic
from laggard.rebalance.membership.folded import Folded, Folding
from laggard.rebalance.membership.group_facts import KEPT, modern_facts
from laggard.rebalance.membership.history import History, Row, Step
from laggard.rebalance.membership.modern import fold_modern
from laggard.rebalance.membership.modern_records import CLASSIC_GROUP
from laggard.rebalance.topics import Topics


@dataclass(frozen=True, slots=True)
class Known:
    """Groups after a batch: columns `KEPT` of all, `folded` of those with records, and history."""

    facts: dict[str, dict[str, Any]]
    folded: dict[str, Row | None]
    history: History


def touched_groups(facts: Mapping[str, Mapping[str, Any]], records: Iterable[Row]) -> list[str]:
    """Return groups whose `folded` a batch needs.

    These have records, or are not shown with their newest ones.
    """
    return sorted(
        {row["group"] for row in records}
        | {group for group, columns in facts.items() if columns["is_held"]}
    )


def fold_records(
    known: Mapping[str, dict[str, Any]],
    folded: Mapping[str, Row | None],
    records: Iterable[Row],
    topics: Topics,
    tick: Tick,
    newest_at: Mapping[str, datetime | None] | None = None,
) -> Known:
    """Fold the decoded group records, in Kafka's order per group; skip records already folded.

    `known`: columns `KEPT` so far. `folded`: that column for `touched_groups`. `newest_at`: column
    `generation_at`.
    """
    history, newest_at = History(tick, topics), newest_at or {}
    by_group: dict[str, list[Row]] = defaultdict(list)
    for record in records:
        group = record["group"]
        if _is_later(record, known.get(group, {}), newest_at.get(group)):
            by_group[group].append(record)
    facts, states = dict(known), {}
    for group in sorted(folded.keys() | by_group.keys()):
        before = known.get(group, {})
        if group in by_group or before.get("is_held"):
            again = _count_again(by_group[group], before, newest_at.get(group), tick)
            facts[group], states[group] = _fold_group(
                group, before, folded.get(group), by_group[group], history, again
            )
    return Known(facts, states, history)


def _is_later(record: Row, known: Mapping[str, Any], newest_at: datetime | None) -> bool:
    """Return True if a record was not folded yet.

    The offsets topic may be read again or have more partitions.
    """
    if known.get("group_record_offset") is None:
        return True
    if record["source_partition"] == known["offsets_partition"]:
        return bool(record["source_offset"] > known["group_record_offset"])
    return newest_at is None or bool(record["record_timestamp"] >= newest_at)


def _count_again(
    records: list[Row], known: Mapping[str, Any], newest_at: datetime | None, tick: Tick
) -> int:
    """Count the first records of a group whose history rows exist.

    The topic is then read again from before them.
    """
    again = sum(map(tick.is_written, records))
    if known.get("group_record_offset") is not None:
        return again
    if newest_at is not None:  # the group's newest record was cut off, and all are read once more
        again = max(again, sum(record["record_timestamp"] <= newest_at for record in records))
    # a group that is not known has ended since: its rows are there
    if tick.rereads and not again:
        return len(records)
    return again


def _fold_group(
    group: str,
    before: Mapping[str, Any],
    row: Row | None,
    records: list[Row],
    history: History,
    again: int,
) -> tuple[dict[str, Any], Row | None]:
    """Return facts and state of a group after its new records.

    The first `again` of them may be read a second time.

    The records of one operation may be cut by the end of a batch. What is shown stops at the last
    record that can end an operation, for one tick of grace; what is folded does not.
    """
    work = _resume(group, before, row)
    described = [json.loads(record["detail"]) for record in records]
    last_end = _last_end(described, work.state.members)
    shown: Mapping[str, Any] | None = _replay(
        work, zip(records, described, strict=True), history, again, last_end
    )
    if not shown and before.get("members") is not None:
        shown = before
    is_cut = _is_cut(work, before, records, last_end, history.tick)
    is_held = shown is not None and is_cut
    facts = columns_of(shown, KEPT) if shown is not None and is_cut else _facts(work)
    facts |= {"is_held": is_held, "generations_total": work.generations_total}
    facts |= place_of_newest(records, before)
    if work.state.group_type is None and not is_held:
        return facts, None
    return facts, work.state.to_row()


def _replay(
    work: Folding,
    records: Iterable[tuple[Row, Row]],
    history: History,
    again: int,
    last_end: int | None,
) -> dict[str, Any] | None:
    """Fold records and their content; return the facts after record `last_end`, None if no end."""
    written, counted = History(history.tick, history.topics), work.generations_total
    shown = None
    for number, (record, description) in enumerate(records):
        is_again = number < again
        fold = fold_classic if record["record_type"] == CLASSIC_GROUP else fold_modern
        fold(work, Step(record, description, written if is_again else history))
        if is_again:
            work.generations_total = counted
        if number == last_end:
            shown = _facts(work)
    return shown


def _is_cut(
    work: Folding,
    before: Mapping[str, Any],
    records: Sequence[Row],
    last_end: int | None,
    tick: Tick,
) -> bool:
    """Return True if the records end within an operation, of a group that is there or was shown."""
    if not records or last_end == len(records) - 1 or work.classic is not None:
        return False
    # a job that begins meets groups of long ago
    return (
        work.state.group_type is not None or before.get("members") is not None or tick.has_history
    )


def place_of_newest(records: Sequence[Row], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns that locate a group's last folded record; without new records as before."""
    if not records:
        return columns_of(before, ("offsets_partition", "group_record_offset"))
    return {
        "offsets_partition": records[-1]["source_partition"],
        "group_record_offset": records[-1]["source_offset"],
    }


def _resume(group: str, before: Mapping[str, Any], row: Row | None) -> Folding:
    state = Folded.from_row(row)
    # a row that an older job wrote has no state, but the generation of a classic group
    if row is None and before.get("generation") is not None:
        state = Folded(group_type="classic", generation=before["generation"])
    classic = None
    if state.group_type == "classic":
        classic = dict(before)
    return Folding(group, state, classic, before.get("generations_total") or 0)


def _last_end(described: Iterable[Mapping[str, Any]], members: Iterable[str]) -> int | None:
    """Return the index of the last record that can end a coordinator operation; None if none.

    No tombstone can, as a new epoch follows, or the group goes on under another protocol. Nor can
    a new member or a member's target, which the group's new epoch follows.
    """
    known, last = set(members), None
    for index, description in enumerate(described):
        role, member = description.get("role"), description.get("member_id", "")
        is_tombstone = description.get("is_tombstone", description.get("kind") == "tombstone")
        opens = role == "target" or (role == "member" and member not in known)
        if not is_tombstone and not opens:
            last = index
        if role == "member" and is_tombstone:
            known.discard(member)
        elif role in ("member", "current") and not is_tombstone:
            known.add(member)
    return last


def _facts(work: Folding) -> dict[str, Any]:
    if work.classic is not None:
        return dict(work.classic)
    facts: dict[str, Any] = dict.fromkeys(KEPT)
    if work.state.group_type is not None:
        facts |= modern_facts(work.state)
    return facts
