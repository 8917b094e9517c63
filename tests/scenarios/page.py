"""Results of scenario runs as a page of markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scenarios.baselines import METHODS
from scenarios.catalogue import SCENARIOS
from scenarios.compared import Compared
from scenarios.forecasts import Forecasts
from scenarios.labels import ALARMS
from scenarios.scoring import Scored

NAME = "laggard"
NEAR = 0.25
WRITTEN = """\
# Scenarios

Written by `make scenarios`. Faults with a known cause, and look-alikes without one, are simulated with other sizes,
rates, members and moments per seed; the job's own code records them, and the rules evaluate the record. What must open,
what may, and what would help is known beforehand (`tests/scenarios`). The long tables are rows of
[scenarios.csv](scenarios.csv).
"""
CODES = """
## By code

Precision counts runs in which a code was shown and should not have been; recall, runs in which it should have and was.
Delays count windows from the moment the fault acts: the median, and that of nine runs in ten. An alarm pages or warns.
"""
EACH = """
## By scenario

Clean: all that must open did, and no alarm that should not. With other members: the run repeated with the number of
members that the verdict asks for, or with more if it says that more would not help.
"""
BESIDE = """
## Beside other methods

On the same runs: Burrow's documented rules over the last 10 commits; partitions above mean + 2σ of their topic; the
difference of the group's lag between two windows. An alarm counts once it has held for three windows. "Before": an
alarm before the fault. "Names them": runs in which exactly the partitions that are apart are named. "Adds": windows in
which the method is right about adding consumers; Burrow's WARN and a growing lag are read as yes.
"""


@dataclass
class Result:
    """One run."""

    scored: Scored
    compared: list[Compared] = field(default_factory=list)
    seconds: float = 0.0
    group_windows: int = 0
    forecasts: Forecasts = field(default_factory=Forecasts)


def median(values: Iterable[float]) -> float:
    ranked = sorted(values)
    return ranked[(len(ranked) - 1) // 2]


def ninth(values: Iterable[float]) -> float:
    """That which nine in ten do not exceed."""
    ranked = sorted(values)
    return ranked[-(-9 * len(ranked) // 10) - 1]


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"


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
        (
            "| code | alarm | runs that must | precision | recall | delay | later than allowed | "
            "where not |"
        ),
        "|---|:-:|--:|--:|--:|--:|--:|---|",
    ]
    for code in sorted(hits.keys() | misses.keys() | false.keys()):
        right = len(hits[code])
        delay = f"{median(hits[code]):.0f}, {ninth(hits[code]):.0f}" if right else "–"
        errors = ", ".join(f"{place} {count}" for place, count in where[code].most_common(5))
        lines.append(
            f"| {code} | {'yes' if code in ALARMS else ''} | {right + misses[code]} |"
            f" {share(right, right + false[code])} | {share(right, right + misses[code])} |"
            f" {delay} | {late[code]} | {errors} |"
        )
    return lines


def by_scenario(results: Sequence[Result]) -> list[str]:
    lines = [
        (
            "| scenario | | runs | clean | primary right | verdict right | with other members | "
            "instead |"
        ),
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
            f" {share(sum(primary), len(primary))} | {share(right, asked)} |"
            f" {share(sum(graded), len(graded))} | {instead} |"
        )
    return lines


def by_method(results: Sequence[Result]) -> list[str]:
    lines = [
        (
            "| method | faults seen | before | median delay, min | false on look-alikes | names "
            "them | adds |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for method in (NAME, *METHODS):
        pairs = [
            (one.scored.scenario, each)
            for one in results
            for each in one.compared
            if each.method == method
        ]
        if not pairs:
            continue
        faults = [each for name, each in pairs if is_fault(name)]
        calm = [each for name, each in pairs if SCENARIOS[name].is_healthy]
        named = [each.names for _, each in pairs if each.names is not None]
        delays = [each.delay for each in faults if each.delay is not None]
        helps, asked = sum(each.helps for _, each in pairs), sum(each.asked for _, each in pairs)
        lines.append(
            f"| {method} | {share(sum(each.is_alarm for each in faults), len(faults))} | "
            f"{share(sum(each.is_early for each in faults), len(faults))} | "
            f"{f'{median(delays):.0f}' if delays else '–'} | "
            f"{share(sum(each.is_alarm for each in calm), len(calm))} | "
            f"{share(sum(named), len(named))} | {share(helps, asked)} |"
        )
    return lines


def is_fault(name: str) -> bool:
    return (
        name not in ("SC05", "SC18", "SC19", "SC28", "SC29", "SC31")
        and not SCENARIOS[name].is_healthy
    )


def seconds_forecast(found: Sequence[Forecasts]) -> list[str]:
    drains = [ratio for each in found for ratio in each.drains]
    near = sum(abs(ratio - 1) <= NEAR for ratio in drains)
    reported, beyond = sum(each.time_lags for each in found), sum(each.beyond for each in found)
    worst = max((each.worst_error for each in found), default=0.0)
    none = sum(each.abstained for each in found)
    within = f"{share(near, len(drains))} of {len(drains)}, none given for {none}"
    return [
        f"- drain forecast of a backlog half gone within a quarter of the truth: {within}",
        (
            f"- time lag off by more than the gap of two polls: {beyond} of {reported}; most: "
            f"{worst:.1f} s"
        ),
    ]


def alarms(scored: Sequence[Scored]) -> str:
    """The least of what the alarms reach, each by its own runs."""
    hit = Counter(code for each in scored for code in each.hits if code in ALARMS)
    missed = Counter(code for each in scored for code in each.misses if code in ALARMS)
    false = Counter(code for each in scored for code in each.false if code in ALARMS)
    asked = hit | missed
    if not asked:
        return "- no run with an alarm"
    precision = min(hit[code] / ((hit[code] + false[code]) or 1) for code in asked)
    recall = min(hit[code] / (hit[code] + missed[code]) for code in asked)
    fewest = min(hit[code] + missed[code] for code in asked)
    return (
        f"- alarms: {len(asked)}, each in {fewest} runs or more; least precision {precision:.3f},"
        f" least recall {recall:.3f}"
    )


def totals(results: Sequence[Result]) -> list[str]:
    scored = [result.scored for result in results]
    primary = [each.primary for each in scored if each.primary is not None]
    graded = [each.counterfactual for each in scored if each.counterfactual is not None]
    right, asked = (
        sum(each.verdicts_right for each in scored),
        sum(each.verdicts for each in scored),
    )
    healthy = [each for each in scored if SCENARIOS[each.scenario].is_healthy]
    seconds, windows = (
        sum(each.seconds for each in results),
        sum(each.group_windows for each in results),
    )
    lines = [
        f"- {len(scored)} runs of {len({each.scenario for each in scored})} scenarios",
        alarms(scored),
        (
            f"- primary right: {share(sum(primary), len(primary))} of {len(primary)} runs that "
            "have one"
        ),
        f"- verdict right: {share(right, asked)} of {asked} windows with a label",
        (
            "- verdict borne out with another number of members: "
            f"{share(sum(graded), len(graded))} of {len(graded)}"
        ),
        (
            f"- look-alikes with a false alarm: {sum(bool(each.false) for each in healthy)} of "
            f"{len(healthy)}"
        ),
    ]
    lines += seconds_forecast([each.forecasts for each in results])
    if windows:
        lines.append(f"- cost: {1000 * seconds / windows:.1f} ms per group and window on one core")
    return lines


def markdown(results: Sequence[Result]) -> str:
    """The whole page."""
    parts = [
        WRITTEN,
        *totals(results),
        CODES,
        *by_code(results),
        EACH,
        *by_scenario(results),
        BESIDE,
    ]
    return "\n".join([*parts, *by_method(results), ""])
