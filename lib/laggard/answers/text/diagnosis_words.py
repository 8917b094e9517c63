"""Verdicts and findings in plain words.

The meaning of a code comes from its rule, and numbers get their units.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from laggard.answers.explain.members import ranges
from laggard.answers.reading import Row
from laggard.answers.text.words import (
    UNKNOWN,
    count,
    duration,
    moment,
    percent,
    short,
    short_duration,
)
from laggard.diagnosis.rules.registry import BY_CODE, alert_of, runbook_of
from laggard.diagnosis.rules.rule import Rule
from laggard.diagnosis.signals.group import UNKNOWN_KIND
from laggard.diagnosis.verdict.reasons import ENOUGH_MEMBERS

NEVER = "never at the current rate"
KINDS = ("silent", "repeating")  # of a finding, each with advice of its own
# what the first line of the page ends with
CLAUSES = {
    "UNKNOWN_INPUT": "whether adding consumers would help is not known",
    "NOT_NEEDED": "there are enough consumers",
    "NO_MEMBERS": "nobody reads, so start its consumers",
    "NOT_NEEDED_DRAINING": "it clears by itself",
    "UNKNOWN": "whether adding consumers would help is not known",
    "YES_PARTIAL": "adding consumers would help, but not enough",
    "YES": "adding consumers would help",
}
_NO = "adding consumers would NOT help"
SENTENCES = {
    "UNKNOWN_INPUT": "Not known: too little of the group can be seen.",
    "NOT_NEEDED": "No: its consumers are enough.",
    "NO_MEMBERS": "No: the group has no member. Start it; how many it needs is not the question "
    "yet.",
    "NO_REBALANCE_FIRST": "No: its rebalances come first. Each stops partitions, and more members "
    "mean more of them.",
    "NO_STALLED": "No: {stalled_lag_ratio} of the worst topic's lag is on partitions that are "
    "stalled or belong to nobody.",
    "NO_BROKER": "No: {explained_ratio} of the lag is on the broker's side.",
    "NO_HOT_PARTITION": "No: one partition gets {hot_arrival_rate}, the best member does "
    "{best_capacity_rate}, and a partition has one owner. With a member for each partition "
    "{residual_records} would still be unread after the drain target.",
    "NO_COSTLY_PARTITION": "No: {explained_ratio} of the lag is on partitions whose records take "
    "longer with every owner, and a partition has one owner.",
    "NO_UNHEALTHY_MEMBER": "No: a member or a host is slow, and only {busy_others_ratio} of the "
    "others are busy. Repair or replace it.",
    "NOT_NEEDED_DRAINING": "No: the lag falls and drains in {drain_seconds}.",
    "NO_IDLE": "No: {members} members, and no more than {members_ceiling} can get a partition.",
    "NO_DOWNSTREAM": "No: more members did not do more work, so what limits them is shared.",
    "UNKNOWN": "Not known: {missing}.",
    "YES_PARTIAL": "In part: {members} → {members_desired} members, the most that can get a "
    "partition, which misses the target. Drain time with them: {drain_at_desired_seconds}.",
    "YES": "Yes: {members} → {members_desired} members. Drain time with them: "
    "{drain_at_desired_seconds}.",
}
_NOTHING = "No: there was nothing to read."  # of a group without members
# the cause that a verdict names, before the finding of it opens
VERDICT_CAUSES = {
    "NO_MEMBERS": "the group, which has no member",
    "NO_REBALANCE_FIRST": "its rebalances",
    "NO_STALLED": "partitions that are stalled or without an owner",
    "NO_BROKER": "the brokers",
    "NO_HOT_PARTITION": "partitions that get more than one member can read",
    "NO_COSTLY_PARTITION": "partitions whose records take longer",
    "NO_UNHEALTHY_MEMBER": "a slow member or host",
    "NO_IDLE": "the number of partitions, which more members would exceed",
    "NO_DOWNSTREAM": "the system that all members write to",
    "YES_PARTIAL": "too few members for what arrives",
    "YES": "too few members for what arrives",
}
_OF_LAG = ("lag_records", "lag_seconds", "backlog_records")
_SETTINGS = {"hot_standby"}  # names that a reader has to type
_SPOKEN = {
    "lag_record": "lag over time",
    "n_eff": "effective partitions",
    "n_eff_partitions": "effective partitions",
    "slope_iqr": "spread of the slope",
    "owners_put_out": "evicted owners",
    "gini": "inequality",
    "explained": "share of the lag",
    "rho": "share of effective partitions",
    "mtbr": "mean time between rebalances",
}
# what was checked to be so, by the guards of the rules
GUARDS = {
    "coordinator_settled": "the coordinator has not changed lately",
    "draining": "the lag is below the backlog",
    "few_failovers": "most rebalances are no failover of the coordinator",
    "few_partitions_stalled": "fewer than 30 % of the partitions stalled since then",
    "few_rebalances": "little time is spent in rebalances",
    "group_at_rest": "no generation began lately",
    "has_committed": "it has committed before",
    "independent_of_arrivals": "the commit interval does not follow the arrivals",
    "log_start_jumps": "the log start was seen to jump three times",
    "longer_than_a_batch": "the join phase was longer than a batch",
    "no_autoscaler": "not made by an autoscaler",
    "no_catch_up": "no catch-up",
    "no_commits": "nobody commits",
    "no_deploy": "no deploy",
    "no_hot_standby": "no hot_standby declared",
    "no_maintenance": "no maintenance declared",
    "no_rebalance_running": "no rebalance is running",
    "no_rebalance_since": "no rebalance since",
    "no_timer_commits": "commits are not made by a timer",
    "not_back_to_back": "commits are not those of batches back to back",
    "not_draining": "the lag does not drain",
    "not_poll_timeout": "not evicted by the poll timeout",
    "not_renamed_once": "the instance ids were not just renamed",
    "not_scaling_under_range": "more moves than scaling under the range assignor makes",
    "not_the_others": "most departures are its own",
    "others_moved_on": "others of the group have moved on",
    "owner_had_time": "its owner had time to read",
    "owner_stays": "its owner does not start again and again",
    "same_host": "most were not replaced on another host",
    "same_subscription": "all members subscribe to the same topics",
    "several_members": "not only members in a crash loop",
    "steady_arrivals": "arrivals did not rise",
}
_GERUNDS = {"adding": "add", "changing": "change", "mixing": "mix", "scaling": "scale"}
_HELD = (
    "No: {hidden_lag_ratio} of the worst topic's lag waits for a transaction that is still open."
)
_WANDERS = (
    "No: one after the other, {hot_partitions} partitions got more than the best member does, "
    "which is {best_capacity_rate}, and a partition has one owner."
)
_BALANCE = (
    "No: {members_desired} members are enough for this load, {members} are there. Look at how it "
    "is balanced."
)
_LITTLE = (
    "Not so far: hardly more is unread than arrives in a window. How many consumers it needs is "
    "not known yet."
)
_TOO_FEW_PARTITIONS = (
    "No: not even {members_ceiling} members, the most that can get a partition, can read what "
    "arrives. Make each faster."
)
_PLAIN_UNITS = {
    "record_seconds": "records × s",
    "_rate": "records/s",
    "records": "records",
    "_hours": "h",
}
_UNITS = ("_seconds", "_ratio", "_share", "_rate", "_records", "_hours", "_ms")


class _Known(dict[str, str]):
    def __missing__(self, _: str) -> str:
        return UNKNOWN


def clause(verdict: str | None, numbers: Mapping[str, float] | None = None) -> str:
    """Return the last clause of the headline, which states the verdict."""
    if verdict == "NOT_NEEDED" and (numbers or {}).get("size_known") == 0:
        return "no more consumers are needed so far"
    if verdict is None:
        return CLAUSES["UNKNOWN"]
    return CLAUSES.get(verdict, _NO if verdict[:3] == "NO_" else verdict)


def is_help(window: Row) -> bool:
    """Return True if the verdict of a window is that more members help, at least in part."""
    return str(window.get("scale_verdict")).startswith("YES")


def verdict_sentence(row: Row) -> str:
    """Return the answer to "Would adding consumers help?" with its reason.

    `row` is a row of `group_windows`.
    """
    numbers = row["scale_reason"] or {}
    members = {"members": row["members"], "members_desired": row["members_desired"]}
    values = numbers | {name: float(value) for name, value in members.items() if value is not None}
    shown = {name: quantity(name, value) for name, value in values.items()}
    shown["missing"] = " and ".join(missing(numbers)) or "an input is not known"
    answer, *more = _sentences(row, numbers).split(". ")
    # a sentence after the answer is worth reading only with its numbers
    kept = [sentence for sentence in more if set(re.findall(r"{(\w+)}", sentence)) <= shown.keys()]
    return ". ".join([answer, *kept]).rstrip(".").format_map(_Known(shown)) + "."


def _sentences(row: Row, numbers: Mapping[str, float]) -> str:
    """Choose the text of a verdict by its code.

    If a code has several reasons, the numbers decide.
    """
    code = row["scale_verdict"]
    text = SENTENCES.get(code, f"{code}.")
    if code == "NOT_NEEDED" and numbers.get("row") == ENOUGH_MEMBERS.row:
        text = _BALANCE
    elif code == "NOT_NEEDED" and row["members"] == 0 == numbers.get("lag_records"):
        text = _NOTHING
    elif code == "NOT_NEEDED" and numbers.get("size_known") == 0:
        text = _LITTLE
    elif code == "NO_BROKER" and "hidden_lag_ratio" in numbers:
        text = _HELD
    elif code == "NO_IDLE" and (row["members"] or 0) < numbers.get("members_ceiling", 0):
        text = _TOO_FEW_PARTITIONS
    elif code == "NO_HOT_PARTITION":
        text = _of_hot_partitions(text, numbers)
    return text


def _of_hot_partitions(text: str, numbers: Mapping[str, float]) -> str:
    """Choose between one partition, several at once, and one after the other."""
    if "hot_arrival_rate" not in numbers:
        return _WANDERS
    if numbers.get("hot_partitions", 1) > 1:
        return text.replace("No: one partition gets", "No: {hot_partitions} partitions get up to")
    return text


def missing(numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield inputs that the sizing lacks."""
    if numbers.get("members_known") == 0:
        yield "offsets are committed, but the readers are not recorded"
    if numbers.get("shape_known") == 0:
        yield (
            "the distribution of the lag over the partitions has not lasted long enough to be named"
        )
    if "arrival_windows_needed" in numbers:
        windows = round(numbers["arrival_windows_needed"])
        yield (
            "whether one partition gets more than a member can do shows only after "
            f"{count(windows, 'window')}"
        )
    if numbers.get("capacity_known") == 0:
        yield "what one member can do differs too much between them"
    if "busy_windows_needed" in numbers and "capacity_rate" not in numbers:
        windows = round(numbers["busy_windows_needed"])
        yield f"what one member can do is only seen when it is busy for {count(windows, 'window')}"


def quantity(name: str, value: float) -> str:
    """Return a number with the unit that its name ends with."""
    for ending, unit in _PLAIN_UNITS.items():
        if name.endswith(ending):
            return f"{plain(value)} {unit}"
    if name.endswith("seconds"):
        if math.isinf(value):
            return NEVER
        return duration(value) if value >= 60 else short_duration(max(value, 0.0))
    if name.endswith(("_ratio", "share")) and value <= 1:
        return percent(value)
    return plain(value)


def plain(value: float) -> str:
    """Return whole and large numbers without decimals, others with three significant digits."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def evidence_words(row: Row, limit: int = 0) -> str:
    """Return the numbers and names of a finding's evidence; with a limit only the first few."""
    numbers = [f"{_label(name)} {quantity(name, value)}" for name, value in row["evidence"].items()]
    texts = [
        f"{_label(name)} {_text(value)}"
        for name, value in row["evidence_text"].items()
        if value and name != "sample"  # which is for those who take the advice
    ]
    words = numbers + texts
    return ", ".join(words[:limit] if limit else words)


def _text(value: str) -> str:
    try:
        if re.match(r"\d{4}-\d\d-\d\d[T ]", value):
            return moment(datetime.fromisoformat(value))
        return short(_as_words(value) if re.fullmatch(r"[a-z]+(_[a-z]+)+", value) else value, 80)
    except ValueError:
        return short(value, 80)


def _label(name: str) -> str:
    for unit in _UNITS:
        if name.endswith(unit) and name != unit[1:]:
            name = name.removesuffix(unit)
            break
    return _SPOKEN.get(name) or spoken(name)


def spoken(text: str) -> str:
    """Return a text with names of columns and thresholds replaced by words."""
    return re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b|\bn_eff\b", lambda match: _as_words(match[0]), text)


def _as_words(name: str) -> str:
    return name if name in _SETTINGS else _SPOKEN.get(name, name.replace("_", " "))


def without_lag(evidence: Mapping[str, float]) -> dict[str, float]:
    """Return the evidence without the lag of its window."""
    return {name: value for name, value in evidence.items() if name not in _OF_LAG}


def checked(row: Row) -> list[str]:
    """Return what the guards of a finding have found to be so."""
    return _guards(row, "pass")


def unchecked(row: Row) -> list[str]:
    """Return the guards of a finding whose inputs were unknown."""
    return _guards(row, "unknown")


def _guards(row: Row, state: str) -> list[str]:
    names = [name for name, result in row["guards"].items() if result == state]
    return sorted(GUARDS.get(name) or spoken(name) for name in names)


def where(row: Row) -> str:
    """Return the subject of a finding; "" for the whole group.

    The subject is topic and partitions, member, host or broker.
    """
    topic, partitions = row["topic"], row["partitions"] or ()
    held = ranges((topic, number) for number in partitions) if topic and partitions else topic or ""
    return ", ".join(short(part) for part in (held, row["subject"] or "") if part)


def rule_of(row: Row) -> Rule | None:
    """Return the rule that made the finding; None if this version does not have it."""
    return BY_CODE.get(row["code"])


def says(row: Row) -> str:
    """Return one sentence that says what the finding means."""
    rule = rule_of(row)
    return _sentence(rule.says) if rule else "This version does not know the rule."


def advice(row: Row, window: Row) -> list[str]:
    """Return the steps to take, the most urgent first, with the window's numbers filled in."""
    rule = rule_of(row)
    kind = row["evidence_text"].get("kind")
    kind = None if kind == UNKNOWN_KIND else kind
    texts = _of_kind(rule.advice, kind) if rule else ()
    return [_filled(text, window) for text in texts if _is_fitting(text, window)]


def _is_fitting(text: str, window: Row) -> bool:
    """Return False for advice that the window contradicts.

    That is to add members against the verdict, or to wait for a drain that does not end.
    """
    if "members_desired" in text and not is_help(window):
        return False
    drain = window.get("drain_seconds")
    return "drain_seconds" not in text or (drain is not None and not math.isinf(drain))


def _of_kind(texts: Iterable[str], kind: str | None) -> Iterator[str]:
    """Yield the texts without those for another kind of the finding.

    If the kind is not known, yield all of them.
    """
    for text in texts:
        meant, _, rest = text.partition(": ")
        if kind is None or meant not in KINDS:
            yield text
        elif meant == kind:
            yield rest


def avoid(row: Row, window: Row) -> list[str]:
    """Return the mistakes to avoid.

    If the verdict is that more members help, mistakes that it contradicts are left out.

    What a finding forbids for its own partitions or host is none, as long as the window shows the
    finding.
    """
    rule = rule_of(row)
    if rule is None:
        return []
    if not is_help(window):
        texts = rule.mistakes
    else:
        texts = () if row["finding_id"] in (window.get("unseen_findings") or {}) else rule.avoid
    return [_forbidden(text) for text in texts]


def steps(row: Row, window: Row) -> Row:
    """Return the advice, the mistakes to avoid, and the runbook."""
    page = {"alert": alert_of(row["code"]), "runbook": runbook_of(row["code"])}
    return {"advice": advice(row, window), "avoid": avoid(row, window), **page}


def _filled(text: str, window: Row) -> str:
    for name in ("members_desired", "members_ceiling", "drain_seconds"):
        value = window.get(name)
        if name in text:
            text = text.replace(
                name, f"{name} (unknown)" if value is None else quantity(name, float(value))
            )
    return _sentence(text)


def _forbidden(text: str) -> str:
    """Return a text as a sentence that begins with "Do not"."""
    first, _, rest = text.partition(" ")
    if text.lower().startswith("do not "):
        return _sentence(text)
    return _sentence(
        f"do not {_GERUNDS[first]} {rest}" if first in _GERUNDS else f"do not use {text}"
    )


def _sentence(text: str) -> str:
    words = spoken(text)
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
