"""Checks that hold for every page of `laggard explain`, whatever the group does."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]
# two patterns that must not both be on a page
CONTRADICTIONS = (
    (r"nothing to do", r"^Cause$"),
    (r"^Cause$\n  Unknown", r"The verdict points at"),
    (r"keeps up", r"rebalances too often|little else|^Cause$"),
    (r"start its consumers", r"to have \d|Add members up to"),
    (
        r"would NOT help|there are enough consumers|it clears by itself",
        r"^  Yes: |Add members up to",
    ),
    (r"clears by itself", r"and growing|does not drain"),
    (r"(?<!whether )(?<!- If )adding consumers would help", r"^  No: |^  Not known: "),
    (
        r"(?<!whether )(?<!- If )adding consumers would help",
        (
            r"^  - Do not add (more )?(consumers|members)(?! (for (these|a stalled) partition|to "
            r"that host))"
        ),
    ),
    (r"has nothing unread now", r"drains in|records behind"),
    (r"nothing: every number above is known", r"\bunknown\b|not known|nobody known"),
    (r"No rule names one", r""),
    (r"none was busy", r""),
    (r"Avoid ", r"Do not "),
    (r"cannot be evaluated: |has no significant lag, but", r"too little of the group can be seen"),
    (r"nobody reads|no member reads", r"drains in|capacity of one"),
    (r"\b(n eff|slope iqr)\b", r""),
    (r"has not evaluated|have not evaluated", r"^Would more consumers help|^Shape$|^Forecast$"),
)
SETTINGS = {"hot_standby"}
OF_DIAGNOSIS = (
    "Would more consumers help?",
    "Shape",
    "Cause",
    "Do first",
    "Mistakes to avoid",
    "Forecast",
)


def sections(page: str) -> dict[str, str]:
    """Title to text; under "" the first lines."""
    first, *rest = page.strip().split("\n\n")
    return {"": first} | {part.partition("\n")[0]: part.partition("\n")[2] for part in rest}


def faults(page: str, data: Row) -> Iterator[str]:
    """Yield what is wrong with a page beside the data of the same moment."""
    first, _, rest = page.partition("\n\n")
    text = re.sub(
        r"(?<=\S)\n(?: {4,}|  (?! ))(?=[a-z(])", " ", f"{' '.join(first.split())}\n\n{rest}"
    )  # lines that were broken
    for one, other in CONTRADICTIONS:
        if re.search(one, text, re.MULTILINE) and re.search(other, text, re.MULTILINE):
            yield f"contradiction: {one} | {other}"
    yield from _lag_faults(page, data)
    yield from _diagnosis_faults(page, data)


def _lag_faults(page: str, data: Row) -> Iterator[str]:
    group, found = data["group"], sections(page)
    lags = [row["lag"] for row in data["partitions"] if row["status"] == "ok"]
    if lags and group["lag_known"] != sum(lags):
        yield "the group's lag is not the sum of its partitions"
    if group["lag"] and f"{group['lag']:,} records in" not in found["Lag"]:
        yield f"another lag under Lag: {found['Lag'][:60]}"
    behind = re.search(r"(\S+) records behind", found[""])
    if behind and behind[1] != f"{group['lag_known']:,}":
        yield f"another lag in the first line: {behind[1]}"
    if (
        group["members"] == 0
        and group["lag_known"]
        and re.search(r"no significant lag|keeps up", found[""])
    ):
        yield "records are unread without a member, and the first line says that there is no lag"
    for row in data["diagnosis"]["findings"] or ():
        if f"lag {row['evidence'].get('lag_records', -1):,.0f} records" in found.get("Cause", ""):
            yield "a second lag in the evidence"
    for line in "\n".join(
        found.get(title, "") for title in ("Lag", "Members", *OF_DIAGNOSIS)
    ).splitlines():
        # names, dates, offsets
        bare = re.sub(r"\S*[a-z]\S*-\S*|\d{4}-\d\d-\d\d|…\S+| at \d+", "", line)
        if re.search(r"(?<![\w,.:-])\d{4,}(?![\w-])", bare):
            yield f"a number without separators: {line.strip()}"


def _diagnosis_faults(page: str, data: Row) -> Iterator[str]:
    diagnosis, found = data["diagnosis"], sections(page)
    if not diagnosis["is_current"]:
        return
    text = diagnosis["verdict_text"]
    if (
        text is not None
        and "Would more consumers help?" in found
        and text not in " ".join(page.split())
    ):
        yield "another verdict than that of the data"
    of_rules = "".join(found.get(title, "") for title in OF_DIAGNOSIS)
    for name in set(re.findall(r"(?<![\w.-])[a-z]+(?:_[a-z]+)+(?![\w.-])", of_rules)) - SETTINGS:
        yield f"the name of a column: {name}"
    for row in diagnosis["findings"]:
        if row["code"] not in page:
            yield f"an open finding is not on the page: {row['code']}"
    yield from _unseen_faults(text, page, diagnosis)
    if re.search(r"nothing to do|nothing found|find nothing", found[""]) and (
        text or ""
    ).startswith(("No: its reb", "Yes")):
        yield f"the first line knows of nothing to do, and the verdict of something: {text}"
    window = diagnosis["windows"][0] if diagnosis["windows"] else {}
    if window.get("primary_evidence") and not re.search(r"^  Evidence: ", page, re.MULTILINE):
        yield "the cause has no evidence of the window"
    drains = {
        int(row["drain_seconds"])
        for row in diagnosis["windows"]
        if isinstance(row["drain_seconds"], float)
    }
    for seconds in map(int, re.findall(r"drains in (\d+) s\b", found.get("Forecast", ""))):
        if seconds not in drains:
            yield f"another drain time than that of the table: {seconds} s of {drains}"


def _unseen_faults(verdict_text: str | None, page: str, diagnosis: Row) -> Iterator[str]:
    """Yield what a page leaves out of findings that the newest window does not show."""
    unseen = diagnosis["windows"][0]["unseen_findings"] or {} if diagnosis["windows"] else {}
    words = {
        "gone": "The newest window does not meet its conditions",
        "unknown": "Whether it goes on is not known",
    }
    shown = {row["finding_id"]: row for row in diagnosis["findings"]}
    found = Counter(
        (shown[finding_id]["code"], state)
        for finding_id, state in unseen.items()
        if finding_id in shown
    )
    one_line = " ".join(page.split())
    for code, state in sorted({(row["code"], state) for row in shown.values() for state in words}):
        title = rf"{code}\b(?:(?! since ).)*? since [\d: -]+ UTC\.? {words[state]}"
        if (said := len(re.findall(title, one_line))) != found[code, state]:
            yield f"{found[code, state]} of {code} are {state}, and the page says it of {said}"
    is_help = (verdict_text or "").startswith(("Yes", "In part"))
    for row in (shown[finding_id] for finding_id in unseen.keys() & shown.keys()):
        if is_help and any(
            re.match(r"Do not add (more )?(consumers|members)", each) for each in row["avoid"]
        ):
            yield f"{row['code']} is unseen and forbids what would help"


def window_faults(row: Row) -> Iterator[str]:
    """Yield what is wrong with a row of group_windows by itself."""
    verdict, drain, numbers = row["scale_verdict"], row["drain_seconds"], row["scale_reason"] or {}
    is_known = drain is not None and math.isfinite(drain)
    has_unread, is_left = bool(row["lag_known"]), "left" in row["flags"]
    if verdict in ("YES", "YES_PARTIAL"):
        if not math.isfinite(numbers.get("drain_at_desired_seconds", math.inf)):
            yield "more members are asked for, with which it does not drain"
        if row["members_desired"] <= row["members"]:
            yield "more members are asked for, and not more than there are"
    if verdict == "UNKNOWN_INPUT" and is_known:
        yield f"too little is seen for a verdict, and it drains in {drain} s"
    if verdict == "NOT_NEEDED_DRAINING" and not math.isfinite(numbers["drain_seconds"]):
        yield "it drains by itself, and never"
    if row["members"] == 0 and has_unread and not is_left:
        if verdict == "NOT_NEEDED":
            yield f"{row['lag_known']} records are unread without a member, and nothing is needed"
        if is_known:
            yield f"it drains without a member in {drain} s"
    is_calm = (
        row["status"] == "ok" and not row["partitions_material"] and not row["partitions_stalled"]
    )
    if is_calm and row["members"] and row["trend"] != "growing" and drain != 0:
        yield f"nothing is behind, and it drains in {drain} s"
