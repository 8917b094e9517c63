"""What the rules find in simulated faults and in their look-alikes, against what is known of them; prints markdown."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

import pyarrow as pa

from scenarios.baselines import METHODS, Call, persistent
from scenarios.catalogue import SCENARIOS
from scenarios.judged import diagnose, is_recorded
from scenarios.labels import ALARMS, YES
from scenarios.runs import MINUTE, WINDOW_MS, Recorded, record_all
from scenarios.scoring import Scored, grade, milliseconds, opened, score

NAME = "laggard"


@dataclass
class Compared:
    """What one method made of one run; None is not asked."""

    method: str
    is_alarm: bool  # for three windows, after the fault began or ever where there is none
    is_early: bool  # before the fault
    delay: float | None  # minutes from the first condition
    names: bool | None = None  # whether it names the partitions that are apart, and none that are not
    helps: int = 0  # windows in which it is right about adding consumers
    asked: int = 0


@dataclass
class Result:
    """One run."""

    scored: Scored
    compared: list[Compared] = field(default_factory=list)
    seconds: float = 0.0
    group_windows: int = 0


def examine(name: str, seeds: Sequence[int], *, is_counterfactual: bool) -> list[Result]:
    """Play, record, judge and score the seeds of one scenario."""
    pa.set_cpu_count(1)
    results = []
    for recorded in record_all(SCENARIOS[name], seeds):
        result = Result(Scored(name, recorded.run.seed))
        calls = {method: judge(recorded) for method, judge in METHODS.items()}
        if is_recorded():
            judged = diagnose(recorded)
            result = Result(
                score(recorded.run, judged.findings, judged.windows), [], judged.seconds, judged.group_windows
            )
            if is_counterfactual:
                result.scored.counterfactual = grade(recorded.run, judged.windows)
            calls[NAME] = own_calls(recorded, judged.findings, judged.windows)
        result.compared = [compare(recorded, method, each) for method, each in calls.items()]
        results.append(result)
    return results


def own_calls(recorded: Recorded, findings: Iterable[dict], windows: Iterable[dict]) -> list[Call]:  # type: ignore[type-arg]
    """Findings and verdicts as calls. A finding has persisted already, so that its three windows are behind it."""
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
    since_ms = run.ground.at_ms(begins) - 6 * WINDOW_MS
    held = persistent(calls)
    after = [call for call in held if call.window_ms >= since_ms]
    result = Compared(
        method,
        bool(after),
        any(call.window_ms < since_ms for call in held) and bool(musts),
        None if not after else max(0.0, (after[0].window_ms + WINDOW_MS - run.ground.at_ms(begins)) / MINUTE),
    )
    apart = next((must.partitions for must in musts if must.partitions), None)
    if apart is not None:
        last = [call.partitions for call in after if call.group == run.ground.name()][-10:]
        result.names = bool(last) and Counter(last).most_common(1)[0][0] == apart
    for expect in run.labels.expects:
        group = expect.group or run.ground.name()
        begin, end = run.ground.at_ms(expect.begin), run.ground.at_ms(expect.end)
        for call in calls:
            if call.group == group and begin <= call.window_ms and call.window_ms + WINDOW_MS <= end:
                result.asked += 1
                result.helps += call.adds_consumers == bool(expect.verdicts & YES)
    return result


def median(values: Iterable[float]) -> float:
    ranked = sorted(values)
    return ranked[(len(ranked) - 1) // 2]


def share(part: int, whole: int) -> str:
    return "–" if not whole else f"{part / whole:.3f}" if part < whole else "1"


def by_code(results: Sequence[Result]) -> list[str]:
    hits, misses, false = defaultdict[str, list[float]](list), Counter[str](), Counter[str]()
    late = Counter[str]()
    where = defaultdict[str, Counter[str]](Counter)
    for each in (result.scored for result in results):
        for code, delay in each.hits.items():
            hits[code].append(delay)
        misses.update(each.misses)
        late.update(each.late)
        false.update(each.false)
        for code in each.false:
            where[code][f"{each.scenario} wrong"] += 1
        for code in each.misses:
            where[code][f"{each.scenario} missed"] += 1
    lines = [
        "| code | runs that must | precision | recall | median delay, windows | later than allowed | where not |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for code in sorted(hits.keys() | misses.keys() | false.keys()):
        right = len(hits[code])
        delay = f"{median(hits[code]):.0f}" if right else "–"
        errors = ", ".join(f"{place} {count}" for place, count in where[code].most_common(5))
        lines.append(
            f"| {code} | {right + misses[code]} | {share(right, right + false[code])} |"
            f" {share(right, right + misses[code])} | {delay} | {late[code]} | {errors} |"
        )
    return lines


def by_scenario(results: Sequence[Result]) -> list[str]:
    lines = [
        "| scenario | | runs | clean | primary right | verdict right | with other members | instead |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for name, scenario in SCENARIOS.items():
        own = [result.scored for result in results if result.scored.scenario == name]
        if not own:
            continue
        clean = sum(not (each.misses or each.false) for each in own)
        primary = [each.primary for each in own if each.primary is not None]
        graded = [each.counterfactual for each in own if each.counterfactual is not None]
        wrong = Counter[str]()
        for each in own:
            wrong.update(each.wrong_verdicts)
            if each.primary is False:
                wrong.update(code for code in each.primaries or ("no primary",))
        instead = ", ".join(f"{what} {count}" for what, count in wrong.most_common(3))
        right, asked = sum(each.verdicts_right for each in own), sum(each.verdicts for each in own)
        lines.append(
            f"| {name} | {scenario.says} | {len(own)} | {share(clean, len(own))} |"
            f" {share(sum(primary), len(primary))} | {share(right, asked)} | {share(sum(graded), len(graded))} | {instead} |"
        )
    return lines


def by_method(results: Sequence[Result]) -> list[str]:
    lines = [
        "| method | faults seen | alarm before the fault | median delay, min | look-alikes with an alarm |"
        " names the partitions apart | right about adding consumers |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for method in (NAME, *METHODS):
        pairs = [
            (result.scored.scenario, each) for result in results for each in result.compared if each.method == method
        ]
        if not pairs:
            continue
        faults = [each for name, each in pairs if _is_fault(name)]
        calm = [each for name, each in pairs if SCENARIOS[name].is_healthy]
        named = [each.names for _, each in pairs if each.names is not None]
        delays = [each.delay for each in faults if each.delay is not None]
        helps, asked = sum(each.helps for _, each in pairs), sum(each.asked for _, each in pairs)
        lines.append(
            f"| {method} | {share(sum(each.is_alarm for each in faults), len(faults))} |"
            f" {share(sum(each.is_early for each in faults), len(faults))} |"
            f" {f'{median(delays):.0f}' if delays else '–'} | {share(sum(each.is_alarm for each in calm), len(calm))} |"
            f" {share(sum(named), len(named))} | {share(helps, asked)} |"
        )
    return lines


def _is_fault(name: str) -> bool:
    return name not in ("SC05", "SC18", "SC19", "SC28", "SC29", "SC31") and not SCENARIOS[name].is_healthy


def totals(results: Sequence[Result]) -> list[str]:
    scored = [result.scored for result in results]
    primary = [each.primary for each in scored if each.primary is not None]
    graded = [each.counterfactual for each in scored if each.counterfactual is not None]
    right, asked = sum(each.verdicts_right for each in scored), sum(each.verdicts for each in scored)
    healthy = [each for each in scored if SCENARIOS[each.scenario].is_healthy]
    seconds, windows = sum(each.seconds for each in results), sum(each.group_windows for each in results)
    lines = [
        f"- {len(scored)} runs of {len({each.scenario for each in scored})} scenarios",
        f"- primary right: {share(sum(primary), len(primary))} of {len(primary)} runs that have one",
        f"- verdict right: {share(right, asked)} of {asked} windows with a label",
        f"- verdict borne out by runs with another number of members: {share(sum(graded), len(graded))} of {len(graded)}",
        f"- look-alikes with a false alarm: {sum(bool(each.false) for each in healthy)} of {len(healthy)}",
    ]
    if windows:
        lines.append(f"- cost: {1000 * seconds / windows:.1f} ms per group and window on one core")
    return lines


def markdown(results: Sequence[Result], seeds: int) -> str:
    """The whole page."""
    parts = [
        "# Scenarios",
        "",
        f"Written by `make scenarios ARGS='--seeds {seeds}'`. Faults with a known cause, and look-alikes without one, are"
        " simulated from other sizes, rates, members and moments per seed; the job's own code records them and the rules"
        " judge the record. What must open, what may, and what would help is known beforehand"
        " (`tests/scenarios`).",
        "",
        *totals(results),
        "",
        "## By code",
        "",
        "Precision counts runs in which a code was shown and should not have been; recall, runs in which it should have"
        " and was. A delay is counted from the moment the condition is true.",
        "",
        *by_code(results),
        "",
        "## By scenario",
        "",
        "Clean: all that must open did, and no alarm that should not. With other members: the same run repeated with"
        " the number of members that the verdict asks for, or with more than it says would help.",
        "",
        *by_scenario(results),
        "",
        "## Beside other methods",
        "",
        "On the same runs: Burrow's documented rules over the last 10 commits of each partition, partitions above mean +"
        " 2σ of their topic, and the difference of the group's lag between two windows. An alarm of theirs counts once"
        " it has held for three windows, as a finding must. Whether to add consumers: Burrow's WARN and a growing lag"
        " are read as yes.",
        "",
        *by_method(results),
        "",
    ]
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="runs per scenario")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="scenarios by name or its beginning")
    parser.add_argument("--counterfactual", action="store_true", help="repeat runs with another number of members")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page there")
    asked = parser.parse_args()
    names = [name for name in SCENARIOS if not asked.only or any(name.startswith(each) for each in asked.only)]
    seeds = range(asked.first, asked.first + asked.seeds)
    results: list[Result] = []
    with ProcessPoolExecutor(asked.processes) as pool:
        tasks = {name: pool.submit(examine, name, seeds, is_counterfactual=asked.counterfactual) for name in names}
        for name, task in tasks.items():
            results += task.result()
            print(f"{name} done", file=sys.stderr, flush=True)
    page = markdown(results, asked.seeds)
    print(page)
    if asked.write:
        asked.write.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
