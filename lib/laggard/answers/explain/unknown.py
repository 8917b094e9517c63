"""Gaps in the rows of a group, each with its reason: the last part of `laggard explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from laggard.answers.evaluated import Diagnosis, is_behind
from laggard.answers.explain.headline import has_trouble, is_overtaken, leading
from laggard.answers.explain.members import ranges
from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import VERDICT_CAUSES, missing, unchecked
from laggard.answers.text.words import UNKNOWN, count, listed, moment
from laggard.diagnosis.findings.tracks import LACKING
from laggard.lag.status import KNOWN_STATUSES
from laggard.rebalance.groups import generation_or_epoch

Gap = tuple[str, str]  # code and sentence
SENTENCES = {
    "not_evaluated": "Verdict, shape and cause: the rules have not evaluated the group at this "
    "moment.",
    "overtaken": "Verdict, shape and cause: members joined or left since the rules evaluated the "
    "group.",
    "verdict": "If adding consumers would help: {missing}.",
    "cause": "Cause: no finding explains the lag yet.",
    "guards": "{finding}: not checked, as not known: {guards}.",
    "unseen": "{finding}: not seen in the newest window, which lacks an input.",
    "trend": "If the lag grows ({topics}): too few commits since it changed.",
    "capacity": "Capacity of one member: not known. It is what a member does in {windows} in which "
    "it is busy, unless half of the members do more without being busy.",
    "loss": "When retention takes unread records ({topics}): retention, log start or rates are not "
    "known.",
    "share_group": "Lag: a share group commits no offsets, so it has none here. It may still be "
    "behind.",
    "offsets_only": "Members: this group only stores offsets and never joined, so by construction "
    "it has no members, assignment or rebalances. Who commits is not recorded.",
    "no_group_record": "Members: no record of the group was read, only its offsets.",
    "connect": "Assignment: Connect workers share connectors and tasks, not partitions, so it is "
    "not shown.",
    "state": "State: neither the broker nor a record has it.",
    "coordinator": "Coordinator: the leader of the group's partition of the offsets topic is not "
    "known.",
    "assignor": "Assignor: no record names it; the broker's default may be in use.",
    "held": "The newest records end inside an operation: members and state are those before it.",
    "no_commit": "{partitions}: no committed offset, so its unread records are not counted.",
    "censored": "Time lag is a lower bound: the oldest unread record is older than what was "
    "watched.",
    "untimed": "Time lag of some partitions: not watched for long enough.",
    "no_member_rows": "Members: how many there are is known, but no row says who.",
    "older_assignment": "Members and assignment are those of {shown}, the newest that is complete; "
    "now is {number}.",
    "unknown_assignment": "Members and assignment are those of {shown}; the number of the one now "
    "is unknown, as the group is polled.",
    "some_members": "Members: {rows} of {members} have a row.",
    "assignment": "Assignment: that of some members is not decodable, or they have not received "
    "one yet.",
    "topic_names": "Assignment: some partitions are of a topic whose name is not known.",
    "share_rebalances": "Rebalances: not followed for share groups, whose partitions have several "
    "owners.",
    "older_job": "Rebalances: the job that wrote these rows does not follow them.",
    "under_way": "A rebalance that began {since} has no row yet: it gets one when every partition "
    "has committed again, at the latest 10 minutes after its end.",
    "ratio": "Time in rebalance: not watched for long enough, or the begin of a rebalance is not "
    "known.",
    "reasons": "Kafka does not record why a member left; the reason above is inferred from commits "
    "and returns.",
}
STATUSES = {
    "stale": "not read up to now",
    "topic_missing": "the topic does not exist, or laggard may not see it",
    "topic_recreated": "the topic was recreated, the commit belongs to the old one",
    "no_end_offset": "the broker gave no log end",
    "source_blocked": "an open transaction blocks the offsets topic",
    "committed_ahead": "the commit is beyond the log end",
    "below_log_start": "what it had to read next is deleted already",
}
IMPOSSIBLE = "its row holds an impossible value"
FLAGS = {
    "bootstrap": "read from history, where records may be missing: cause, members, moves and "
    "pauses are not evaluated",
    "old_record": "an old broker states no time of the join phase: begin and duration are unknown",
    "skew": "the broker states a time before the previous generation: begin and duration are "
    "unknown",
    "partial": "an assignment before or after it is not known, so moves are not counted",
    "pause_unknown": "a partition had no commit afterwards, or its commit interval or traffic is "
    "not known, so pauses are unknown",
    "merge_limit": "the group did not come to rest, so the row ends in the middle",
}
MISSING = {  # of a rebalance: column and words
    "cause": ("cause", "the cause is not known"),
    "members": ("joined", "members before or after it are not known"),
    "moves": (
        "moved",
        "an assignment before or after it is not comparable, so moves are not counted",
    ),
}
LIMITS = {
    "partial": "the lag of more than a tenth of the committed partitions is not known",
    "blocked": "an open transaction hides the newest commits",
    "bootstrap": "the time since which the group is watched is not known",
    "sparse": "too few commits for a trend",
    "stale": "some partitions were not read up to now",
    "topic_missing": "a topic does not exist, or laggard may not see it",
    "topic_recreated": "a topic was recreated",
    "no_end_offset": "a broker gave no log end",
}
_SHOWN = 3


def not_known(explained: Explained) -> list[Gap]:
    """Return every gap once: of the group, its lag, its members and its rebalances."""
    parts = (
        _of_diagnosis,
        _of_group,
        _of_lag,
        _of_members,
        _of_rebalances,
        _without_flag,
        _of_flags,
    )
    return [gap for part in parts for gap in part(explained)]


def _gap(code: str, **values: object) -> Gap:
    return code, SENTENCES[code].format(**values)


def _of_diagnosis(explained: Explained) -> Iterator[Gap]:
    """Yield the inputs that the rules lacked, if there is lag to evaluate."""
    diagnosis = explained.diagnosis
    if not diagnosis.is_current:
        yield _gap("not_evaluated")
        return
    if is_overtaken(explained):
        yield _gap("overtaken")
        return
    verdict = diagnosis.windows[0]["scale_verdict"] if diagnosis.windows else "UNKNOWN_INPUT"
    lacking = [
        row["code"]
        for row in diagnosis.findings
        if diagnosis.unseen.get(row["finding_id"]) == LACKING
    ]
    if lacking:
        yield _gap("unseen", finding=listed(dict.fromkeys(lacking)))
    if has_trouble(diagnosis) or verdict == "UNKNOWN_INPUT":
        yield from _of_verdict(diagnosis, verdict)
        yield from _of_windows(diagnosis)


def _of_verdict(diagnosis: Diagnosis, verdict: str) -> Iterator[Gap]:
    if str(verdict).startswith("UNKNOWN"):
        reason = diagnosis.windows[0]["scale_reason"] or {} if diagnosis.windows else {}
        yield _gap(
            "verdict",
            missing=" and ".join(missing(reason)) or "too little of the group's lag is known",
        )
    lead = leading(diagnosis)
    if lead is not None and (guards := unchecked(lead)):
        yield _gap("guards", finding=lead["code"], guards=", ".join(guards))
    if lead is None and diagnosis.has_lag and verdict not in VERDICT_CAUSES:
        yield _gap("cause")


def _of_windows(diagnosis: Diagnosis) -> Iterator[Gap]:
    windows = [row for row in diagnosis.windows if is_behind(row)]
    yield from _of_window_flags(windows)
    # of a group that has no member to measure it is no gap
    measured = [row for row in windows or diagnosis.windows[:1] if row["members"]]
    for code, column, lacking, rows in (
        ("trend", "trend", "abstain", windows),
        ("capacity", "capacity", None, measured),
        ("loss", "loss_seconds", None, windows),
    ):
        unknown = [row for row in rows if row[column] == lacking]
        if unknown:
            yield _gap(
                code,
                topics=listed(map(itemgetter("topic"), unknown)),
                windows=_busy_windows_needed(unknown),
            )


def _busy_windows_needed(rows: Sequence[Row]) -> str:
    needed = [(row["scale_reason"] or {}).get("busy_windows_needed") for row in rows]
    return next(
        (count(round(windows), "window") for windows in needed if windows), "several windows"
    )


def _of_window_flags(windows: list[Row]) -> Iterator[Gap]:
    for flag in sorted({flag for row in windows for flag in row["flags"] or ()}):
        yield f"diagnosis_{flag}", f"Diagnosis: {LIMITS.get(flag, flag)}."


def _of_group(explained: Explained) -> Iterator[Gap]:
    group = explained.group
    is_simple = group["group_type"] == "simple"
    facts = {
        "share_group": group["group_type"] == "share",
        "offsets_only": is_simple,
        "no_group_record": group["members"] is None and not is_simple,
        "connect": group["protocol_type"] == "connect",
        "state": group["group_state"] == "Unknown",
        "coordinator": group["coordinator"] is None,
        "assignor": bool(group["members"])
        and group["assignor"] is None
        and group["group_type"] != "share",
        "held": bool(group["is_held"]),
    }
    yield from (_gap(code) for code, is_so in facts.items() if is_so)


def _of_lag(explained: Explained) -> Iterator[Gap]:
    statuses = {row["status"] for row in explained.partitions}
    for status in sorted(statuses.difference(KNOWN_STATUSES), key=str):
        yield (
            f"status_{status or 'unknown'}",
            f"Lag of {_partitions(explained, status)}: {STATUSES.get(status, status)}.",
        )
    ok = [row for row in explained.partitions if row["status"] == "ok"]
    if "no_commit" in statuses and explained.group["group_type"] != "share":
        yield _gap("no_commit", partitions=_partitions(explained, "no_commit"))
    if any(map(itemgetter("time_lag_censored"), ok)):
        yield _gap("censored")
    if None in map(itemgetter("time_lag_seconds"), ok):
        yield _gap("untimed")


def _partitions(explained: Explained, status: str | None) -> str:
    held = [
        (row["topic"], row["partition"]) for row in explained.partitions if row["status"] == status
    ]
    return f"{count(len(held), 'partition')} ({listed([ranges(held)])})"


def _of_members(explained: Explained) -> Iterator[Gap]:
    group, members = explained.group, explained.members
    if not group["members"]:
        return
    if not members:
        yield _gap("no_member_rows")
        return
    number, shown = generation_or_epoch(group), members[0]["generation"]
    if number is None:
        yield _gap("unknown_assignment", shown=shown)
    elif shown != number:
        yield _gap("older_assignment", shown=shown, number=number)
    elif len(members) != group["members"]:
        yield _gap("some_members", rows=len(members), members=group["members"])
    yield from _of_assignments(members, group["protocol_type"])


def _of_assignments(members: Sequence[Row], protocol_type: str | None) -> Iterator[Gap]:
    if any(row["assigned"] is None for row in members) and protocol_type != "connect":
        yield _gap("assignment")
    if any(partition["topic"] is None for row in members for partition in row["assigned"] or ()):
        yield _gap("topic_names")


def _of_rebalances(explained: Explained) -> Iterator[Gap]:
    group = explained.group
    if group["group_type"] == "share":
        yield _gap("share_rebalances")
        return
    if group["members"] is None:
        return
    if None in (explained.rebalances, group["rebalances_total"]):
        yield _gap("older_job")
    if group["rebalancing_since"] is not None:
        yield _gap("under_way", since=moment(group["rebalancing_since"]))
    if group["time_in_rebalance_ratio"] is None and group["rebalances_total"] is not None:
        yield _gap("ratio")
    if any(row["cause_posterior"] for row in explained.rebalances or ()):
        yield _gap("reasons")


def _without_flag(explained: Explained) -> Iterator[Gap]:
    """Name numbers of single rebalances that are missing without a flag that explains it."""
    bare = [row for row in explained.rebalances or () if row["live_read"] and not row["flags"]]
    for code, (name, words) in MISSING.items():
        rows = [row for row in bare if row[name] in (None, UNKNOWN)]
        if rows:
            yield f"rebalance_{code}", f"{_which(rows)}: {words}."


def _of_flags(explained: Explained) -> Iterator[Gap]:
    of_flag: dict[str, list[Row]] = {}
    for row in explained.rebalances or ():
        for flag in dict.fromkeys([*([] if row["live_read"] else ["bootstrap"]), *row["flags"]]):
            of_flag.setdefault(flag, []).append(row)
    for flag, rows in of_flag.items():
        yield f"rebalance_{flag}", f"{_which(rows)}: {FLAGS.get(flag, flag)}."


def _which(rows: list[Row]) -> str:
    shown = ", ".join(moment(row["ended_at"]) for row in rows[:_SHOWN])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return f"{'Rebalance' if len(rows) == 1 else 'Rebalances'} of {shown}{more}"
