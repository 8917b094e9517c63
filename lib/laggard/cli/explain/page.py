"""The page that `laggard explain` prints: short lines, plain words, worst first."""

from __future__ import annotations

from collections.abc import Iterator

from laggard.cli.explain.diagnosis import diagnosis_sections
from laggard.cli.explain.headline import headline
from laggard.cli.explain.rebalance import CAUSE_WORDS, events_and_cost
from laggard.cli.explain.rows import Explained
from laggard.cli.explain.since import since_section
from laggard.cli.explain.tables import lag_lines, member_page
from laggard.cli.explain.unknown import not_known
from laggard.cli.published import Row
from laggard.cli.words import UNKNOWN, count, duration, known, moment, paragraph, percent, short

MODE_WORDS = {
    "eager": "each rebalance stops every partition",
    "cooperative": "only partitions that move stop",
    "incremental": "the coordinator moves partition by partition",
}


def page_lines(explained: Explained) -> list[str]:
    """The line that says it all, then all sections that have something to say, a blank line between them."""
    sections = (
        *diagnosis_sections(explained),
        *since_section(explained),
        ("State", _state(explained)),
        ("Lag", lag_lines(explained)),
        ("Members", member_page(explained)),
        ("Last rebalances", _rebalances(explained)),
        ("Rebalances so far", _totals(explained.group)),
        ("Not known", _unknown(explained)),
    )
    batch, name = explained.batch, short(explained.group["group"])
    lines = paragraph(headline(explained), "", "")
    topic = "" if explained.topic is None else f", topic {short(explained.topic)}"
    lines += [f"{name} on {short(batch.cluster)}{topic}: batch {batch.batch_id}, {moment(batch.polled_at)}"]
    for title, body in sections:
        found = list(body)
        lines += ["", title, *found] if found else []
    return lines


def _state(explained: Explained) -> Iterator[str]:
    group = explained.group
    yield f"  {group['group_state']}{_since(explained)}"
    if group["group_type"] == "simple":
        yield "  offsets only: nobody ever joined, so there are no members"
    else:
        yield f"  {_kind(group)}, {_number(group)}, {_member_count(group)}"
    broker = UNKNOWN if group["coordinator"] is None else f"broker {group['coordinator']}"
    yield f"  coordinator {broker}, partition {known(group['offsets_partition'])} of the offsets topic"
    if group["members"] and group["group_type"] != "share":
        mode = group["rebalance_mode"]
        words = f", {mode}: {MODE_WORDS.get(mode, mode)}" if mode else ""
        yield f"  assignor {UNKNOWN if group['assignor'] is None else short(group['assignor'])}{words}"


def _since(explained: Explained) -> str:
    since, watched = explained.group["state_since"], explained.group["watched_since"]
    if since is None:
        return ", since when is not known"
    # the first tick of a group shows its state, not when it got into it
    word = "since at least" if watched is None or since <= watched else "since"
    return f" {word} {moment(since)} ({duration((explained.batch.polled_at - since).total_seconds())})"


def _kind(group: Row) -> str:
    kind = group["group_type"]
    if kind is None:
        return "group of unknown type"
    protocol = group["protocol_type"]
    return f"{kind} group" + (f" of {short(protocol)}" if protocol not in {None, "", "consumer", kind} else "")


def _number(group: Row) -> str:
    return (
        f"generation {known(group['generation'])}" if group["group_epoch"] is None else f"epoch {group['group_epoch']}"
    )


def _member_count(group: Row) -> str:
    if group["members"] is None:
        return f"members {UNKNOWN}"
    static = f", {group['static_members']} of them static" if group["static_members"] else ""
    return count(group["members"], "member") + static


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
        events, cost = events_and_cost(row, explained.names, explained.limits)
        yield from paragraph(events)
        yield from paragraph(cost, "    ")


def _totals(group: Row) -> Iterator[str]:
    counts, changes = group["rebalances_total"], group["member_changes_total"] or {}
    if counts is None or group["group_type"] in {"share", "simple"}:
        return
    yield f"  {sum(counts.values())} in all"
    for cause, number in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        if number:
            yield f"    {number} × {cause}: {CAUSE_WORDS.get(cause, cause)}"
    changed = ", ".join(f"{changes.get(name, 0)} {name}" for name in ("joined", "left", "replaced"))
    restarts = known(group["static_restarts_absorbed_total"])
    yield f"  members: {changed}; static restarts without a rebalance: {restarts}"
    moved, avoidable = group["partitions_moved_total"], group["partitions_moved_avoidable_total"]
    yield f"  partitions moved: {known(moved)}, of these without need: {known(avoidable)}"
    yield f"  rounds that never got to an assignment: {known(group['interrupted_generations_total'])}"
    yield f"  time in rebalance over the last 10 minutes: {percent(group['time_in_rebalance_ratio'])}"


def _unknown(explained: Explained) -> Iterator[str]:
    found = not_known(explained)
    for _, sentence in found:
        yield from paragraph(sentence)
    if not found:
        yield "  nothing: every number above is known"
