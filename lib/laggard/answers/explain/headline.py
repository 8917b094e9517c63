"""First line of the page of `laggard explain`: the fault and the use of more consumers."""

from __future__ import annotations

from laggard.answers.evaluated import Diagnosis, is_behind, is_left
from laggard.answers.explain.now import LagNow, lag_of_topic
from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import VERDICT_CAUSES, clause, rule_of, says
from laggard.answers.text.words import count, known, records, short
from laggard.diagnosis.findings.tracks import GONE
from laggard.diagnosis.rules.rule import META

TRENDS = {
    "growing": "growing",
    "draining": "falling",
    "flat": "level",
    "sawtooth": "going up and down",
}


def headline(explained: Explained) -> str:
    """Name the trouble in one line: where, if it gets worse, and if consumers would help."""
    name, diagnosis = short(explained.group["group"]), explained.diagnosis
    if not diagnosis.is_current or not diagnosis.windows or is_overtaken(explained):
        return f"{name}: {_lag_now(explained)}{_without_windows(explained)}"
    if not diagnosis.has_lag:
        return f"{name}{_without_lag(explained)}"
    worst, now = _worst(explained)
    partition = _place(worst) + (
        f" of {short(worst['topic'])}" if len(diagnosis.windows) > 1 else ""
    )
    if (now.is_none or now.lag is None) and diagnosis.evaluated_to is not None:
        unread = "nothing" if now.is_none else "an unknown number of records"
        return (
            f"{name} has {unread} unread now; at {diagnosis.evaluated_to:%H:%M:%S} it lagged "
            f"{partition}: {_clause(worst)}"
        )
    return f"{name} is {now.behind} behind {partition}{_course(worst)}: {_clause(worst)}"


def leading(diagnosis: Diagnosis) -> Row | None:
    """Return the finding to act on: the primary one, else the first that is not a note."""
    return next((row for row in diagnosis.findings if row["role"] != "note"), None)


def is_overtaken(explained: Explained) -> bool:
    """Return True if all members left, or some joined an empty group, since the newest window.

    The newest window is the last one that the rules evaluated.
    """
    then = explained.diagnosis.windows[0]["members"] if explained.diagnosis.windows else None
    now = explained.group["members"]
    return None not in (then, now) and bool(then) != bool(now)


def overtaken(explained: Explained) -> str:
    """Say how members changed since the rules evaluated the group.

    The result of that evaluation is no longer valid.
    """
    then, at = explained.diagnosis.windows[0]["members"], explained.diagnosis.evaluated_to
    moment = "" if at is None else f", at {at:%H:%M:%S}"
    now = _members(explained.group["members"])
    return f"it has {now} now, and had {_members(then)} when the rules last evaluated it{moment}"


def _members(number: int) -> str:
    return count(number, "member") if number else "no member"


def has_trouble(diagnosis: Diagnosis) -> bool:
    """Return True if the group has trouble.

    That is lag that counts, a finding that is more than a note, or a verdict that points at a
    finding.
    """
    return diagnosis.has_lag or leading(diagnosis) is not None or bool(pointed_at(diagnosis))


def pointed_at(diagnosis: Diagnosis) -> str:
    """Return words for the cause that the verdict names before its finding opens.

    Return "" if the verdict names no cause.
    """
    cause = VERDICT_CAUSES.get(diagnosis.windows[0]["scale_verdict"]) if diagnosis.windows else None
    return f"the verdict points at {cause}" if cause else ""


def _worst(explained: Explained) -> tuple[Row, LagNow]:
    """Return the row and the lag of the topic that is furthest behind now.

    Only topics with lag that counts are compared.
    """
    material = [
        (row, lag_of_topic(explained, row["topic"]))
        for row in explained.diagnosis.windows
        if is_behind(row)
    ]
    return max(material, key=lambda pair: (pair[1].time_lag_seconds or 0.0, pair[1].lag or 0))


def _lag_now(explained: Explained) -> str:
    group = explained.group
    if group["group_type"] == "share":
        return "a share group, whose lag is not here"
    lag, is_exact = (group["lag_known"], False) if group["lag"] is None else (group["lag"], True)
    if lag is None:
        return "lag unknown"
    return (
        f"{records(lag, is_exact=is_exact)} records behind"
        if lag or not is_exact
        else "nothing unread"
    )


def _without_windows(explained: Explained) -> str:
    """End a sentence about the lag now, of which the rules say nothing that holds."""
    is_of_before = is_overtaken(explained)
    unread = ", and no member reads them" if is_of_before and not explained.group["members"] else ""
    if not explained.diagnosis.is_current:
        return f"{unread}; {_why_not(explained.diagnosis)}"
    if is_of_before:
        return f"{unread}; {overtaken(explained)}"
    return f"{unread}; {_trouble(explained.diagnosis) or 'nothing found'}"


def _why_not(diagnosis: Diagnosis) -> str:
    if diagnosis.evaluated_to is None:
        return "the rules have not evaluated yet"
    if diagnosis.is_old:
        return f"the rules are {diagnosis.windows_behind} windows behind"
    return "the rules have not evaluated it"


def _trouble(diagnosis: Diagnosis) -> str:
    lead = leading(diagnosis)
    return "" if lead is None else f"{says(lead)[0].lower()}{says(lead)[1:].rstrip('.')}"


def _without_lag(explained: Explained) -> str:
    """End a sentence that begins with the group's name."""
    diagnosis = explained.diagnosis
    verdict = str(diagnosis.windows[0]["scale_verdict"])
    trouble = _trouble(diagnosis)
    is_unseen = all(row["lag_known"] is None for row in diagnosis.windows)
    if (
        explained.group["members"] == 0
        and explained.group["lag_known"]
        and not (is_unseen and trouble)
    ):
        then = pointed_at(diagnosis) or "the rules find nothing so far"
        then = "start its consumers" if verdict == "NO_MEMBERS" else then
        return (
            f": {_lag_now(explained)}, and no member reads them; "
            f"{_of_before(diagnosis)}{trouble or then}"
        )
    if is_unseen:
        return f" cannot be evaluated{_not_evaluable(diagnosis)}"
    is_known = not verdict.startswith("UNKNOWN")
    if trouble:
        lag = f"has no significant lag{'' if is_known else ' as far as is known'}"
        of_before = _of_before(diagnosis)
        return f" {lag}{f'; {of_before}' if of_before else ', but: '}{trouble}"
    if pointed_at(diagnosis):
        return f" has no significant lag; {pointed_at(diagnosis)}"
    lag = _keeps_up(diagnosis, is_known=is_known)
    notes = f" now, {count(len(diagnosis.findings), 'note')} below" if diagnosis.findings else ""
    return f" {lag}: nothing to do{notes}"


def _of_before(diagnosis: Diagnosis) -> str:
    """Begin a sentence about the finding to act on if the newest window no longer shows it."""
    lead = leading(diagnosis)
    is_gone = lead is not None and diagnosis.unseen.get(lead["finding_id"]) == GONE
    return "open since before: " if is_gone else ""


def _not_evaluable(diagnosis: Diagnosis) -> str:
    lead = leading(diagnosis)
    rule = None if lead is None else rule_of(lead)
    is_why = lead is None or (rule is not None and rule.kind == META)
    word = ": " if is_why else " now; open since before: "
    return f"{word}{_trouble(diagnosis) or 'none of its lag is known'}"


def _keeps_up(diagnosis: Diagnosis, *, is_known: bool) -> str:
    if not is_known:
        return "has no lag that counts, as far as is known"
    lag = (
        "keeps up"
        if all(row["status"] == "ok" for row in diagnosis.windows)
        else "keeps up where its lag is known"
    )
    is_leaving = any(is_left(row) and row["lag_known"] for row in diagnosis.windows)
    return f"{lag} with the topics that it reads" if is_leaving else lag


def _place(row: Row) -> str:
    """Say on how many partitions, of how many of the topic, the lag is, or most of it."""
    total, material, top = (
        row["partitions_total"],
        row["partitions_material"],
        len(row["top_partitions"] or ()),
    )
    if total == 1:
        return "on its only partition"
    # lag that is even in this window is no less even for not having lasted: equal ones cannot be
    # mostly on some
    is_uneven = (
        row["shape"] in ("concentrated", "mixed")
        and row["shape_raw"] != "spread"
        and 0 < top < material
    )
    number, mostly = (top, "mostly ") if is_uneven else (material, "")
    if number == total:
        return f"on all {total} partitions"
    return f"{mostly}on {'one partition' if number == 1 else f'{number} partitions'} of {total}"


def _course(row: Row) -> str:
    """Say how the lag changes.

    The lag of a stall grows, whatever the group's lag does in the few minutes seen so far.
    """
    if row["scale_verdict"] == "NO_STALLED":
        return ", stalled"
    # the newest windows fall, the trend may not show it yet
    if row["scale_verdict"] == "NOT_NEEDED_DRAINING":
        return " and falling"
    trend = TRENDS.get(row["trend"])
    return f" and {trend}" if trend else ""


def _clause(row: Row) -> str:
    if row["scale_verdict"] in ("YES", "YES_PARTIAL"):
        return (
            f"{clause(row['scale_verdict'])}, {known(row['members'])} → "
            f"{known(row['members_desired'])}"
        )
    return clause(row["scale_verdict"], row["scale_reason"])
