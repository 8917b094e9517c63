"""What each method would have said during a run, laggard among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scenarios.baselines import Call, persistent
from scenarios.diagnosed import Row
from scenarios.labels import ALARMS, YES
from scenarios.runs import MINUTE, WINDOW_MS, Recorded
from scenarios.scoring import milliseconds, opened


@dataclass
class Compared:
    """What one method made of one run; None is not asked."""

    method: str
    is_alarm: bool  # for three windows, after the fault began or ever where there is none
    is_early: bool  # before the fault
    delay: float | None  # minutes from the first condition
    # whether it names the partitions that are apart, and none that are not
    names: bool | None = None
    helps: int = 0  # windows in which it is right about adding consumers
    asked: int = 0


def own_calls(recorded: Recorded, findings: Iterable[Row], windows: Iterable[Row]) -> list[Call]:
    """Findings and verdicts as calls. A finding has persisted already, so that its three windows
    are behind it.
    """
    found = [each for each in opened(findings) if each.code in ALARMS and each.is_shown]
    calls = []
    for row in windows:
        start_ms = milliseconds(row["window_start"]) or 0
        end_ms = start_ms + WINDOW_MS
        now = [
            each
            for each in found
            if each.group in ("", row["group"])
            and each.opened_ms - 2 * WINDOW_MS <= end_ms
            and (each.closed_ms is None or end_ms < each.closed_ms)
        ]
        parts = frozenset(part for each in now for part in each.partitions)
        calls.append(Call(row["group"], start_ms, bool(now), parts, row["scale_verdict"] in YES))
    return sorted(calls, key=lambda call: call.window_ms)


def compare(recorded: Recorded, method: str, calls: Sequence[Call]) -> Compared:
    run = recorded.run
    musts = [must for must in run.labels.must if must.code in ALARMS]
    begins = min((must.minute for must in musts), default=0.0)
    since_ms = run.cluster.at_ms(begins) - 6 * WINDOW_MS
    held = persistent(calls)
    after = [call for call in held if call.window_ms >= since_ms]
    result = Compared(
        method,
        bool(after),
        any(call.window_ms < since_ms for call in held) and bool(musts),
        None
        if not after
        else max(0.0, (after[0].window_ms + WINDOW_MS - run.cluster.at_ms(begins)) / MINUTE),
    )
    apart = next((must.partitions for must in musts if must.partitions), None)
    if apart is not None:
        last = [call.partitions for call in after if call.group == run.cluster.name()][-10:]
        result.names = bool(last) and Counter(last).most_common(1)[0][0] == apart
    for expect in run.labels.expects:
        group = expect.group or run.cluster.name()
        begin, end = run.cluster.at_ms(expect.begin), run.cluster.at_ms(expect.end)
        for call in calls:
            if (
                call.group == group
                and begin <= call.window_ms
                and call.window_ms + WINDOW_MS <= end
            ):
                result.asked += 1
                result.helps += call.adds_consumers == bool(expect.verdicts & YES)
    return result
