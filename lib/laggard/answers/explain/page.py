"""The page that `laggard explain` prints: short lines, plain words, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from laggard.answers.explain.diagnosis import diagnosis_sections
from laggard.answers.explain.headline import headline
from laggard.answers.explain.members import (
    MemberLine,
    Place,
    member_lines,
    no_reader,
    ranges,
    readers,
    time_lag_is_exact,
)
from laggard.answers.explain.rebalance import CAUSE_WORDS, events_and_cost
from laggard.answers.explain.rows import Explained
from laggard.answers.explain.since import since_section
from laggard.answers.explain.unknown import not_known
from laggard.answers.reading import Row
from laggard.answers.text.words import (
    UNKNOWN,
    aligned,
    count,
    duration,
    known,
    known_duration,
    listed,
    moment,
    paragraph,
    percent,
    records,
    short,
)

MODE_WORDS = {
    "eager": "each rebalance stops every partition",
    "cooperative": "only partitions that move stop",
    "incremental": "the coordinator moves partition by partition",
}
_WORST = 5


def page_lines(explained: Explained) -> list[str]:
    """Return the headline, then all sections that have lines, separated by blank lines."""
    sections = (
        *diagnosis_sections(explained),
        *since_section(explained),
        ("State", _state(explained)),
        ("Lag", _lag(explained)),
        ("Members", _members(explained)),
        ("Last rebalances", _rebalances(explained)),
        ("Rebalances so far", _totals(explained.group)),
        ("Not known", _unknown(explained)),
    )
    batch, name = explained.batch, short(explained.group["group"])
    lines = paragraph(headline(explained), "", "")
    topic = "" if explained.topic is None else f", topic {short(explained.topic)}"
    lines += [
        (
            f"{name} on {short(batch.cluster)}{topic}: batch {batch.batch_id}, "
            f"{moment(batch.polled_at)}"
        )
    ]
    for title, body in sections:
        shown = list(body)
        lines += ["", title, *shown] if shown else []
    return lines


def _state(explained: Explained) -> Iterator[str]:
    group = explained.group
    yield f"  {group['group_state']}{_since(explained)}"
    if group["group_type"] == "simple":
        yield "  offsets only: nobody ever joined, so there are no members"
    else:
        yield f"  {_kind(group)}, {_number(group)}, {_member_count(group)}"
    broker = UNKNOWN if group["coordinator"] is None else f"broker {group['coordinator']}"
    yield (
        f"  coordinator {broker}, partition {known(group['offsets_partition'])} of the offsets "
        "topic"
    )
    if group["members"] and group["group_type"] != "share":
        mode = group["rebalance_mode"]
        words = f", {mode}: {MODE_WORDS.get(mode, mode)}" if mode else ""
        yield (
            "  assignor "
            f"{UNKNOWN if group['assignor'] is None else short(group['assignor'])}{words}"
        )


def _since(explained: Explained) -> str:
    since, watched = explained.group["state_since"], explained.group["watched_since"]
    if since is None:
        return ", since when is not known"
    # the first tick of a group shows its state, not when it got into it
    word = "since at least" if watched is None or since <= watched else "since"
    return (
        f" {word} {moment(since)} ({duration((explained.batch.polled_at - since).total_seconds())})"
    )


def _kind(group: Row) -> str:
    kind = group["group_type"]
    if kind is None:
        return "group of unknown type"
    protocol = group["protocol_type"]
    return f"{kind} group" + (
        f" of {short(protocol)}" if protocol not in {None, "", "consumer", kind} else ""
    )


def _number(group: Row) -> str:
    return (
        f"generation {known(group['generation'])}"
        if group["group_epoch"] is None
        else f"epoch {group['group_epoch']}"
    )


def _member_count(group: Row) -> str:
    if group["members"] is None:
        return f"members {UNKNOWN}"
    static = f", {group['static_members']} of them static" if group["static_members"] else ""
    return count(group["members"], "member") + static


def _lag(explained: Explained) -> Iterator[str]:
    """Yield the group's lag, and its worst partitions."""
    group = explained.group
    if group["group_type"] == "share":
        yield "  none here: a share group commits no offsets"
        return
    if not group["partitions_total"]:
        yield "  no partition is subscribed or committed"
        return
    partitions = count(group["partitions_total"], "partition")
    lag, is_exact = (group["lag_known"], False) if group["lag"] is None else (group["lag"], True)
    if lag is None or group["lag"] == 0:
        yield f"  {UNKNOWN if lag is None else 'nothing unread'} in {partitions}"
        return
    unknown = "" if is_exact else f", {len(explained.bad_partitions)} of them not known"
    yield f"  {records(lag, is_exact=is_exact)} records in {partitions}{unknown}"
    is_timed = time_lag_is_exact(explained.partitions)
    yield (
        "  oldest unread record: "
        f"{known_duration(group['max_time_lag_seconds'], is_exact=is_timed)} old"
    )
    yield from _worst_partitions(explained)


def _worst_partitions(explained: Explained) -> Iterator[str]:
    behind = [row for row in explained.partitions if row["lag"]]
    reader = readers(explained)
    partitions = [
        _partition_cells(row, reader, no_reader(explained, row["topic"])) for row in behind[:_WORST]
    ]
    yield from _table(
        ("WORST PARTITIONS", "LAG", "TIME LAG", "READ BY"),
        partitions,
        {"LAG", "TIME LAG"},
    )
    if len(behind) > _WORST:
        yield f"  … and {len(behind) - _WORST} more with lag"


def _members(explained: Explained) -> Iterator[str]:
    """Yield members with partitions, those that are furthest behind first, then the idle ones."""
    if not explained.members:
        is_none = explained.group["members"] == 0 or explained.group["group_type"] == "simple"
        yield "  none" if is_none else f"  {UNKNOWN}"
        return
    lines = member_lines(explained)
    titles = ("CLIENT", "HOST", "INSTANCE", "PARTITIONS", "LAG", "TIME LAG")
    yield from _table(
        titles, [_member_cells(line) for line in lines if not line.is_idle], {"LAG", "TIME LAG"}
    )
    idle = [_who(line.row) for line in lines if line.is_idle]
    if idle:
        yield f"  {count(len(idle), 'idle member')}, without any partition: {listed(idle)}"


def _partition_cells(row: Row, reader: Mapping[Place, Row], nobody: str) -> tuple[str, ...]:
    owner = reader.get((row["topic"], row["partition"]))
    return (
        f"{short(row['topic'])}-{row['partition']}",
        records(row["lag"]),
        known_duration(row["time_lag_seconds"], is_exact=not row["time_lag_censored"]),
        nobody if owner is None else _who(owner),
    )


def _member_cells(line: MemberLine) -> tuple[str, ...]:
    row, held = line.row, line.partitions
    instance = "-" if row["group_instance_id"] is None else short(row["group_instance_id"])
    return (
        _name(row["client_id"]),
        _host(row),
        instance,
        UNKNOWN if held is None else f"{len(row['assigned'])}: {short(ranges(held)) or UNKNOWN}",
        records(line.lag, is_exact=line.lag_is_exact),
        known_duration(line.time_lag_seconds, is_exact=line.time_lag_is_exact),
    )


def _who(row: Row) -> str:
    return f"{_name(row['client_id'])} on {_host(row)}"


def _host(row: Row) -> str:
    return _name(row["client_host"] and row["client_host"].removeprefix("/"))


def _name(name: str | None) -> str:
    return UNKNOWN if name is None else short(name)


def _table(titles: tuple[str, ...], cells: Sequence[tuple[str, ...]], right: set[str]) -> list[str]:
    lines = aligned([titles, *cells], [title in right for title in titles]) if cells else []
    return [f"  {line}" for line in lines]


def _rebalances(explained: Explained) -> Iterator[str]:
    rows = explained.rebalances
    if explained.group["group_type"] in {"share", "simple"}:
        return
    if rows is None:
        yield f"  {UNKNOWN}"
    elif not rows:
        since = explained.group["watched_since"]
        if explained.since is not None:
            since = explained.since
        yield "  none seen" if since is None else f"  none seen since {moment(since)}"
    for row in rows or ():
        events, cost = events_and_cost(row, explained.names)
        yield from paragraph(events)
        yield from paragraph(cost, "    ")


def _totals(group: Row) -> Iterator[str]:
    counts, changes = group["rebalances_total"], group["member_changes_total"] or {}
    if counts is None or group["group_type"] in {"share", "simple"}:
        return
    yield f"  {sum(counts.values())} in all"
    for cause, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if number:
            yield f"    {number} × {cause}: {CAUSE_WORDS.get(cause, cause)}"
    changed = ", ".join(f"{changes.get(name, 0)} {name}" for name in ("joined", "left", "replaced"))
    restarts = known(group["static_restarts_absorbed_total"])
    yield f"  members: {changed}; static restarts without a rebalance: {restarts}"
    moved, avoidable = group["partitions_moved_total"], group["partitions_moved_avoidable_total"]
    yield f"  partitions moved: {known(moved)}, of these without need: {known(avoidable)}"
    yield (
        f"  rounds that never got to an assignment: {known(group['interrupted_generations_total'])}"
    )
    yield (
        f"  time in rebalance over the last 10 minutes: {percent(group['time_in_rebalance_ratio'])}"
    )


def _unknown(explained: Explained) -> Iterator[str]:
    gaps = not_known(explained)
    for _, sentence in gaps:
        yield from paragraph(sentence)
    if not gaps:
        yield "  nothing: every number above is known"
