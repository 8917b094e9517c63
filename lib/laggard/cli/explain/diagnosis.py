"""The diagnosis on the page of `laggard explain`: verdict, shape, cause, what to do, what else, what comes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from shlex import quote

from laggard.cli.diagnosis_words import advice, avoid, evidence_words, quantity, says, verdict_sentence, where
from laggard.cli.explain.headline import has_trouble, leading
from laggard.cli.explain.rows import Explained
from laggard.cli.explain.shape import shape_lines
from laggard.cli.judged import Diagnosis
from laggard.cli.published import Row
from laggard.cli.words import (
    UNKNOWN,
    count,
    duration,
    known,
    moment,
    paragraph,
    short,
    short_duration,
)


def diagnosis_sections(explained: Explained) -> Iterator[tuple[str, Iterator[str]]]:
    """Titles and lines; without trouble none."""
    diagnosis = explained.diagnosis
    if not diagnosis.is_current:
        yield "Diagnosis", _not_judged(explained)
        return
    yield "Would more consumers help?", _verdict(explained)
    yield "Shape", shape_lines(explained)
    yield "Cause", _cause(diagnosis)
    yield "Do first", _advice(diagnosis)
    yield "Do not", _avoid(diagnosis)
    yield "Also found", _others(diagnosis)
    yield "Forecast", _forecast(diagnosis)


def _not_judged(explained: Explained) -> Iterator[str]:
    diagnosis = explained.diagnosis
    if diagnosis.judged_to is None:
        text = "The rules have not judged a window yet: shape, cause and verdict are unknown."
    elif diagnosis.is_old:
        text = (
            f"The rules have judged up to {moment(diagnosis.judged_to)}, {diagnosis.windows_behind} windows ago: shape,"
            f" cause and verdict of now are unknown. Those of then: laggard explain {quote(_name(explained))} --at"
            f" {diagnosis.judged_to:%Y-%m-%dT%H:%M:%S}"
        )
    else:
        text = (
            f"The rules have judged up to {moment(diagnosis.judged_to)}, and say nothing of this group: shape, cause"
            " and verdict are unknown."
        )
    yield from paragraph(text, "  ", "  ")


def _name(explained: Explained) -> str:
    return short(explained.group["group"], 1000)


def _verdict(explained: Explained) -> Iterator[str]:
    diagnosis = explained.diagnosis
    if not diagnosis.windows:
        yield "  Not known: no lag of the group was judged."
        return
    row = diagnosis.windows[0]
    if not has_trouble(diagnosis) and row["scale_verdict"] == "NOT_NEEDED":
        return
    yield from paragraph(verdict_sentence(row), "  ", "  ")
    if str(row["scale_verdict"]).startswith("YES"):
        yield from paragraph(_cost(explained, row), "  ", "  ")
    if str(row["scale_verdict"]).startswith("UNKNOWN"):
        return
    yield from _members_line(row)


def _cost(explained: Explained, row: Row) -> str:
    """What going there costs: a rebalance, as far as it can be told before."""
    moved = (row["scale_reason"] or {}).get("moved_partitions")
    moves = "an unknown number of partitions" if moved is None else count(round(moved), "partition")
    mode = explained.group["rebalance_mode"]
    pauses = [each["pause_max_seconds"] for each in explained.rebalances or () if each["pause_max_seconds"] is not None]
    last = f" The last one stopped a partition for up to {short_duration(pauses[0])}." if pauses else ""
    return f"Cost: {'a' if mode is None else f'one {mode}'} rebalance that moves {moves}.{last}"


def _members_line(row: Row) -> Iterator[str]:
    desired, capacity = row["members_desired"], row["capacity"]
    told = [f"members {known(row['members'])}", f"to have {known(desired)}"]
    told += [f"can get a partition {known(row['members_ceiling'])}"]
    told += [f"capacity of one {UNKNOWN if capacity is None else quantity('capacity_rate', capacity)}"]
    yield from paragraph("; ".join(told), "  ", "  ")


def _cause(diagnosis: Diagnosis) -> Iterator[str]:
    found = leading(diagnosis)
    if found is None:
        if has_trouble(diagnosis):
            yield "  No rule names one, so far: unknown."
        return
    yield from paragraph(says(found), "  ", "  ")
    yield from paragraph(title(found), "  ", "  ")
    evidence = evidence_words(found)
    yield from paragraph(f"Evidence of {found['at']:%H:%M:%S}: {evidence or 'none'}.", "  ", "    ")
    not_sure = sorted(name for name, state in found["guards"].items() if state == "unknown")
    if not_sure:
        yield from paragraph(
            f"Not checked, as not known: {', '.join(_spoken(each) for each in not_sure)}.", "  ", "    "
        )
    yield from paragraph(f"Wrong if {found['falsifier'].rstrip('.')}.", "  ", "    ")


def title(row: Row) -> str:
    """Code, where, how sure, since when."""
    place = where(row)
    parts = [row["code"] + (f" on {place}" if place else ""), row["severity"]]
    parts += [f"confidence {row['confidence']:.2f}", f"since {moment(row['started_at'])}"]
    return ", ".join(parts)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _advice(diagnosis: Diagnosis) -> Iterator[str]:
    found = leading(diagnosis)
    if found is not None:
        window = diagnosis.windows[0] if diagnosis.windows else {}
        for number, text in enumerate(advice(found, window), 1):
            yield from paragraph(text, f"  {number}. ", "     ")


def _avoid(diagnosis: Diagnosis) -> Iterator[str]:
    found = leading(diagnosis)
    if found is not None:
        for text in avoid(found):
            yield from paragraph(text)


def _others(diagnosis: Diagnosis) -> Iterator[str]:
    found = leading(diagnosis)
    for row in diagnosis.findings:
        if row is not found:
            scope = "" if row["group"] is not None else " (of the cluster)"
            yield from paragraph(f"{row['role']}{scope}: {says(row)} {title(row)}")
    if diagnosis.suppressed:
        yield f"  - {diagnosis.suppressed} more, explained by these: laggard findings --all"


def _forecast(diagnosis: Diagnosis) -> Iterator[str]:
    """When the lag is gone, when records are lost, when the service level breaks."""
    for row in diagnosis.windows:
        if row["partitions_material"]:
            yield from paragraph(f"{short(row['topic'])}: {'; '.join(_forecasts(row))}", "  ", "    ")


def _forecasts(row: Row) -> Iterator[str]:
    drain, low, high = row["drain_seconds"], row["drain_low_seconds"], row["drain_high_seconds"]
    span = f" ({_time(low)} to {_time(high)})" if low is not None and high is not None and low != high else ""
    yield _when(drain, "drains in {}", "does not drain at the current rate", "whether it drains is unknown") + span
    # the sum of what members can do says nothing of lag that lies with few of them
    if row["drain_at_capacity_seconds"] is not None and row["shape"] == "spread":
        never = "not even with every member at its capacity"
        yield _when(row["drain_at_capacity_seconds"], "with every member at its capacity in {}", never, "")
    yield _when(
        row["loss_seconds"],
        "records lost to retention in {}",
        "no record lost to retention at the current rate",
        "whether retention takes unread records is unknown",
    )
    if row["slo_breach_seconds"] is not None:
        yield _when(
            row["slo_breach_seconds"], "service level broken in {}", "service level kept at the current rate", ""
        )


def _when(seconds: float | None, at: str, never: str, unknown: str) -> str:
    return unknown if seconds is None else never if math.isinf(seconds) else at.format(duration(seconds))


def _time(seconds: float) -> str:
    return "never" if math.isinf(seconds) else duration(seconds)
