"""The diagnosis on the page of `laggard explain`: verdict, shape, cause, actions, forecast.

The actions are followed by the other findings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from laggard.answers.evaluated import Diagnosis, is_behind
from laggard.answers.explain.headline import (
    has_trouble,
    is_overtaken,
    leading,
    overtaken,
    pointed_at,
)
from laggard.answers.explain.now import lag_of_topic
from laggard.answers.explain.rows import Explained
from laggard.answers.explain.shape import shape_lines
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import (
    advice,
    avoid,
    checked,
    evidence_words,
    is_help,
    quantity,
    says,
    spoken,
    unchecked,
    verdict_sentence,
    where,
    without_lag,
)
from laggard.answers.text.words import (
    UNKNOWN,
    count,
    duration,
    known,
    moment,
    paragraph,
    short,
    short_duration,
)
from laggard.diagnosis.findings.tracks import GONE, LACKING

# of an open finding
_UNSEEN = {
    GONE: "The newest window does not meet its conditions: it closes if the next ones do not "
    "either.",
    LACKING: "Whether it goes on is not known: the newest window lacks an input.",
}


def diagnosis_sections(explained: Explained) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield section titles and lines; none if there is no trouble."""
    diagnosis = explained.diagnosis
    if not diagnosis.is_current:
        yield "Diagnosis", _not_evaluated(explained)
        return
    if is_overtaken(explained):
        text = f"Not known: {overtaken(explained)}. Wait for the next window."
        yield "Would more consumers help?", iter(paragraph(text, "  ", "  "))
        yield "Found before", _listed(diagnosis.findings, diagnosis)
        return
    yield "Would more consumers help?", _verdict(explained)
    yield "Shape", shape_lines(explained)
    yield "Cause", _cause(diagnosis)
    yield "Do first", _advice(diagnosis)
    yield "Mistakes to avoid", _avoid(diagnosis)
    lead = leading(diagnosis)
    yield "Also found", _listed([row for row in diagnosis.findings if row is not lead], diagnosis)
    yield "Forecast", _forecast(explained)


def _not_evaluated(explained: Explained) -> Iterator[str]:
    diagnosis, name = explained.diagnosis, short(explained.group["group"], 1000)
    if diagnosis.evaluated_to is None:
        text = "The rules have not evaluated a window yet: shape, cause and verdict are unknown."
    elif diagnosis.is_old:
        text = (
            f"The rules have evaluated up to {moment(diagnosis.evaluated_to)}, "
            f"{diagnosis.windows_behind} windows ago: shape, cause and verdict of now are unknown. "
            f"Those of then: laggard explain {quote(name)} --at "
            f"{diagnosis.evaluated_to:%Y-%m-%dT%H:%M:%S}"
        )
    else:
        text = (
            f"The rules have evaluated up to {moment(diagnosis.evaluated_to)}, but not this group: "
            "shape, cause and verdict are unknown."
        )
    yield from paragraph(text, "  ", "  ")


def _verdict(explained: Explained) -> Iterator[str]:
    diagnosis = explained.diagnosis
    if not diagnosis.windows:
        yield "  Not known: the rules have no window of the group's lag."
        return
    row = diagnosis.windows[0]
    if not has_trouble(diagnosis) and row["scale_verdict"] == "NOT_NEEDED":
        return
    yield from paragraph(f"{verdict_sentence(row)}{_window_age(diagnosis)}", "  ", "  ")
    if is_help(row):
        yield from paragraph(_cost(explained, row), "  ", "  ")
    if not (row["members"] == 0 or str(row["scale_verdict"]).startswith(("NO_MEMBERS", "UNKNOWN"))):
        capacity = (
            UNKNOWN if row["capacity"] is None else quantity("capacity_rate", row["capacity"])
        )
        members = (
            f"members {known(row['members'])}; can get a partition {known(row['members_ceiling'])}"
        )
        yield from paragraph(f"{members}; capacity of one {capacity}", "  ", "  ")


def _window_age(diagnosis: Diagnosis) -> str:
    """Say of which moment verdict, shape and forecast are, if windows have closed since."""
    if not diagnosis.windows_behind or diagnosis.evaluated_to is None:
        return ""
    behind = count(diagnosis.windows_behind, "window")
    return (
        f" This verdict, the trend and the forecast are of {moment(diagnosis.evaluated_to)}, "
        f"{behind} ago."
    )


def _cost(explained: Explained, row: Row) -> str:
    """Name the cost of more members: a rebalance, as far as it is known beforehand."""
    moved = (row["scale_reason"] or {}).get("moved_partitions")
    moves = "an unknown number of partitions" if moved is None else count(round(moved), "partition")
    mode = explained.group["rebalance_mode"]
    pauses = [
        rebalance["pause_max_seconds"]
        for rebalance in explained.rebalances or ()
        if rebalance["pause_max_seconds"] is not None
    ]
    last = (
        f" The last one stopped a partition for up to {short_duration(pauses[0])}."
        if pauses
        else ""
    )
    return f"Cost: {'a' if mode is None else f'one {mode}'} rebalance that moves {moves}.{last}"


def _cause(diagnosis: Diagnosis) -> Iterator[str]:
    lead = leading(diagnosis)
    if lead is None:
        if has_trouble(diagnosis):
            yield from paragraph(_without_finding(diagnosis), "  ", "  ")
        return
    yield from paragraph(says(lead), "  ", "  ")
    yield from paragraph(title(lead), "  ", "  ")
    if lead["finding_id"] in diagnosis.unseen:
        yield from paragraph(_UNSEEN[diagnosis.unseen[lead["finding_id"]]], "  ", "  ")
    for text in _evidence(lead, diagnosis):
        yield from paragraph(text, "  ", "    ")
    for words, guards in (
        ("Checked", checked(lead)),
        ("Not checked, as not known", unchecked(lead)),
    ):
        if guards:
            yield from paragraph(f"{words}: {', '.join(guards)}.", "  ", "    ")
    if lead["falsifier"]:
        yield from paragraph(f"Wrong if {spoken(lead['falsifier']).rstrip('.')}.", "  ", "    ")


def _without_finding(diagnosis: Diagnosis) -> str:
    """Name the cause that the verdict points at, if it does.

    A finding opens only after its condition has lasted.
    """
    points = pointed_at(diagnosis)
    if not points:
        return "Unknown: no finding explains the lag yet."
    return (
        f"{points[0].upper()}{points[1:]}; no finding of it is open yet, as its condition has to "
        "last first."
    )


def _evidence(finding: Row, diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the window's numbers if it shows the finding, and older recorded evidence.

    The older evidence is recorded only of an earlier moment.

    The page gives the lag once, as of its own moment.
    """
    age = _age(finding, diagnosis)
    is_own = (
        finding["group"] is not None and finding["role"] == "primary" and bool(diagnosis.windows)
    )
    current = diagnosis.windows[0]["primary_evidence"] if is_own else None
    if not current or not age:
        yield (
            f"Evidence{age and f' of {age}'}: "
            f"{_evidence_words(finding['evidence'], finding['evidence_text']) or 'none'}."
        )
        return
    yield f"Evidence: {_evidence_words(current, {}) or 'none'}."
    names = _evidence_words({}, finding["evidence_text"])
    if names:
        yield f"Partitions, confidence, checks and names are of {age}: {names}."
    else:
        yield f"Partitions, confidence and checks are of {age}."


def _evidence_words(numbers: Mapping[str, float], names: Mapping[str, str]) -> str:
    return evidence_words({"evidence": without_lag(numbers), "evidence_text": names})


def _age(finding: Row, diagnosis: Diagnosis) -> str:
    """Return the time of a finding's row and its age before the verdict.

    Return "" if the row is not older than the verdict.
    """
    if diagnosis.evaluated_to is None or finding["at"] >= diagnosis.evaluated_to:
        return ""
    age = duration((diagnosis.evaluated_to - finding["at"]).total_seconds())
    return f"{moment(finding['at'])}, {age} before the verdict"


def title(row: Row) -> str:
    """Return a finding's code, subject, severity, confidence and start time."""
    subject = where(row)
    parts = [row["code"] + (f" on {subject}" if subject else ""), row["severity"]]
    parts += [f"confidence {row['confidence']:.2f}", f"since {moment(row['started_at'])}"]
    return ", ".join(parts)


def _advice(diagnosis: Diagnosis) -> Iterator[str]:
    lead = leading(diagnosis)
    if lead is not None:
        window = diagnosis.windows[0] if diagnosis.windows else {}
        for number, text in enumerate(advice(lead, window), 1):
            yield from paragraph(text, f"  {number}. ", "     ")


def _avoid(diagnosis: Diagnosis) -> Iterator[str]:
    lead = leading(diagnosis)
    if lead is not None:
        for text in avoid(lead, diagnosis.windows[0] if diagnosis.windows else {}):
            yield from paragraph(text)


def _listed(findings: Sequence[Row], diagnosis: Diagnosis) -> Iterator[str]:
    for row in findings:
        scope = "" if row["group"] is not None else " (of the cluster)"
        unseen = diagnosis.unseen.get(row["finding_id"])
        is_seen = "" if unseen is None else f". {_UNSEEN[unseen].rstrip('.')}"
        yield from paragraph(f"{row['role']}{scope}: {says(row)} {title(row)}{is_seen}")
    if diagnosis.suppressed:
        yield f"  - {diagnosis.suppressed} more, explained by these: laggard findings --all"


def _forecast(explained: Explained) -> Iterator[str]:
    """Say when each topic drains, loses records and breaks its service level.

    Say nothing of a topic that has drained.
    """
    for row in explained.diagnosis.windows:
        if is_behind(row) and not lag_of_topic(explained, row["topic"]).is_none:
            yield from paragraph(
                f"{short(row['topic'])}: {'; '.join(_forecasts(row))}", "  ", "    "
            )


def _forecasts(row: Row) -> Iterator[str]:
    if row["scale_verdict"] != "NOT_NEEDED_DRAINING":  # which has said it
        yield _drain(row)
    # the sum of what members can do says nothing of lag that lies with few of them
    if row["drain_at_capacity_seconds"] is not None and row["shape"] == "spread":
        never = "not even with every member at its capacity"
        yield _when(
            row["drain_at_capacity_seconds"], "with every member at its capacity in {}", never, ""
        )
    yield _when(
        row["loss_seconds"],
        "records lost to retention in {}",
        "no record lost to retention at the current rate",
        "whether retention takes unread records is unknown",
    )
    if row["slo_breach_seconds"] is not None:
        yield _when(
            row["slo_breach_seconds"],
            "service level broken in {}",
            "service level kept at the current rate",
            "",
        )


def _drain(row: Row) -> str:
    """Return the drain time at the newest rates, and say so if the ten-minute trend disagrees."""
    drain, low, high = row["drain_seconds"], row["drain_low_seconds"], row["drain_high_seconds"]
    text = _when(
        drain, "drains in {}", "does not drain at the current rate", "whether it drains is unknown"
    )
    if drain is None or math.isinf(drain):
        turned = (
            " though it fell over the last ten minutes"
            if drain and row["trend"] == "draining"
            else ""
        )
        return text + turned
    if row["trend"] == "growing":
        return f"{text} at the newest rates, though it grew over the last ten minutes"
    return text + (
        f" ({_time(low)} to {_time(high)})"
        if low is not None and high is not None and low != high
        else ""
    )


def _when(seconds: float | None, at: str, never: str, unknown: str) -> str:
    if seconds is None:
        return unknown
    return never if math.isinf(seconds) else at.format(duration(seconds))


def _time(seconds: float) -> str:
    return "never" if math.isinf(seconds) else duration(seconds)
