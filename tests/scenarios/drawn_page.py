"""The section of docs/scenarios.md about drawn clusters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from scenarios.drawn_score import FACTOR, OWN, DrawnScore
from scenarios.page import median, ninth, share

HEADING = "## Clusters drawn at random"
WRITTEN = """
Written by `tests/scenarios/drawn_report.py`. A seed draws one to three groups, their protocol, members, partitions,
rates, capacity, commit interval, retention, and what happens to them: nothing, a look-alike, a fault, or two at once.
What is right comes from what was drawn, never from the rules. Every group-minute after a warm-up of 14 minutes counts;
a finding counts if its scope is exactly the fault's. Limits of this: no fault spans several groups, and if two answers
are physically right both count.
"""
BAR_VERDICT, BAR_FORECAST, BAR_FLAPS = 0.97, 0.90, 1
LATER = (
    "verdict right if the one before it, or UNKNOWN, is right for 5 minutes or 3 commit intervals, "
    "in which a change has to be seen"
)
BESIDE = (
    "Six lines: no members; lag below twice its floor; less read than arrives; else draining. "
    "Adds: of the minutes in which it is clear whether members would help, those in which a method "
    "is right about it. Alarms right: of its alarm-minutes, those in which something is wrong. "
    "Alarms of faults: of the minutes in which something is wrong, those that have an alarm."
)
DELAYS = (
    "Delays are minutes from the beginning of the fault, or from the end of the time that a "
    "finding's definition asks for. Wanted: precision 0.97, recall 0.95, nine delays of ten within "
    "5 minutes or 3 commit intervals."
)


def section(scores: Sequence[DrawnScore]) -> str:
    """The section, without a line's end."""
    seeds = sorted(each.seed for each in scores)
    groups, minutes = sum(each.groups for each in scores), sum(each.minutes for each in scores)
    lines = [HEADING, WRITTEN]
    lines.append(
        f"- {len(scores)} clusters (seeds {_ranges(seeds)}), {groups} groups, {minutes} "
        "group-minutes"
    )
    lines += [
        *_totals(scores, minutes),
        "",
        *_by_method(scores, minutes),
        "",
        *_by_code(scores),
        "",
    ]
    lines += [*_by_kind(scores), "", *_mistakes(scores)]
    return "\n".join(lines)


def _ranges(seeds: Sequence[int]) -> str:
    """Seeds as ranges: 0-9, 20."""
    starts = [seed for seed in seeds if seed - 1 not in seeds]
    ends = [seed for seed in seeds if seed + 1 not in seeds]
    return ", ".join(
        f"{one}-{two}" if one != two else str(one) for one, two in zip(starts, ends, strict=True)
    )


def _totals(scores: Sequence[DrawnScore], minutes: int) -> list[str]:
    right, later = (
        sum(each.right[OWN] for each in scores),
        sum(each.after_delay[OWN] for each in scores),
    )
    reopened, resized = sum(each.reopened for each in scores), sum(each.resized for each in scores)
    hundred = minutes / 6000 or 1
    drains = [ratio for each in scores for ratio in each.drains]
    losses = [ratio for each in scores for ratio in each.losses]
    enough, asked = (sum(each.enough[place] for each in scores) for place in (0, 1))
    return [
        f"- verdict right at once: {share(right, minutes)} (wanted: {BAR_VERDICT})",
        f"- {LATER}: {share(later, minutes)}",
        (
            f"- `members_desired` lets the busiest member keep up: {share(enough, asked)} of "
            f"{asked} minutes with a yes"
        ),
        (
            f"- findings open again within an hour, per 100 group-hours: {reopened / hundred:.1f} "
            f"(wanted: {BAR_FLAPS})"
        ),
        (
            "- changes of `members_desired` from yes to yes, per 100 group-hours: "
            f"{resized / hundred:.1f}"
        ),
        (
            f"- drain forecast within a factor of {FACTOR} when half is gone: {_near(drains)} "
            f"(wanted: {BAR_FORECAST})"
        ),
        (
            f"- loss forecast within a factor of {FACTOR} at half of the time: {_near(losses)} "
            f"(wanted: {BAR_FORECAST})"
        ),
        f"- forecasts due and not given: {sum(each.silent for each in scores)}",
    ]


def _near(ratios: Sequence[float]) -> str:
    near = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios)
    never = sum(ratio == float("inf") for ratio in ratios)
    return f"{share(near, len(ratios))} of {len(ratios)}" + (
        f", {never} said never" if never else ""
    )


def _by_method(scores: Sequence[DrawnScore], minutes: int) -> list[str]:
    lines = [
        BESIDE,
        "",
        "| method | verdict | adds | alarms right | alarms of faults |",
        "|---|--:|--:|--:|--:|",
    ]
    verdicts, adds, alerts = Counter[str](), _sums(scores, "adds"), _sums(scores, "alerts")
    for each in scores:
        verdicts.update(each.right)
    for method in [OWN, *sorted((verdicts.keys() | adds.keys()) - {OWN})]:
        right, asked = adds.get(method, (0, 0))
        hit, given, wrong = alerts.get(method, (0, 0, 0))
        verdict = share(verdicts[method], minutes) if method in verdicts else "–"
        lines.append(
            f"| {method} | {verdict} | {share(right, asked)} | {share(hit, given)} | "
            f"{share(hit, wrong)} |"
        )
    return lines


def _sums(scores: Iterable[DrawnScore], name: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in scores:
        for key, values in getattr(each, name).items():
            known = found.setdefault(key, [0] * len(values))
            found[key] = [one + two for one, two in zip(known, values, strict=True)]
    return found


def _by_code(scores: Sequence[DrawnScore]) -> list[str]:
    hits, false, misses, late, where = (
        defaultdict[str, list[float]](list),
        *(Counter[str]() for _ in range(4)),
    )
    for each in scores:
        for code, delays in each.hits.items():
            hits[code] += delays
        for kept, more in (
            (false, each.false),
            (misses, each.misses),
            (late, each.late),
            (where, each.where),
        ):
            kept.update(more)
    lines = [
        DELAYS,
        "",
        (
            "| code | faults | precision | recall | delay: median, 9 of 10 | later than wanted | "
            "where not |"
        ),
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for code in sorted(hits.keys() | false.keys() | misses.keys()):
        right = len(hits[code])
        delay = f"{median(hits[code]):.0f}, {ninth(hits[code]):.0f}" if right else "–"
        errors = [
            f"{what[len(code) + 1 :]} {n}"
            for what, n in where.most_common()
            if what.startswith(f"{code} ")
        ]
        lines.append(
            f"| {code} | {right + misses[code]} | {share(right, right + false[code])} |"
            f" {share(right, right + misses[code])} | {delay} | {late[code]} | "
            f"{'; '.join(errors[:4])} |"
        )
    return lines


def _by_kind(scores: Sequence[DrawnScore]) -> list[str]:
    lines = ["| what happens to the group | minutes | verdict right at once |", "|---|--:|--:|"]
    kinds = _sums(scores, "by_kind")
    for kind, (right, asked) in sorted(
        kinds.items(), key=lambda each: (each[1][0] / (each[1][1] or 1), each[0])
    ):
        lines.append(f"| {kind} | {asked} | {share(right, asked)} |")
    return lines


def _mistakes(scores: Sequence[DrawnScore]) -> list[str]:
    wrong = Counter[str]()
    for each in scores:
        wrong.update(each.wrong)
    lines = ["Most frequent wrong verdicts:", "", "| in | minutes |", "|---|--:|"]
    return [*lines, *(f"| {what} | {count} |" for what, count in wrong.most_common(15))]


def with_section(page: str, new: str | None = None, known: str = "") -> str:
    """A page with this section at its end: the new one, else that of the known page."""
    kept = known[known.index(HEADING) :].rstrip("\n") if new is None and HEADING in known else new
    before = page[: page.index(HEADING)] if HEADING in page else page
    return before.rstrip("\n") + "\n" + (f"\n{kept}\n" if kept else "")
