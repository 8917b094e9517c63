"""Prints panel → series and alert → who fired, of simulated clusters or with --live of a real one;
draws the panels.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from dashboards import history, run
from dashboards.queries import BOARDS, Shown
from dashboards.workload import GROUPS


def print_panels(shown: Sequence[Shown]) -> None:
    """Every panel and annotation with the number of series of each of its queries."""
    print(f"{'dashboard':18} {'panel or annotation':50} series by query")
    counts: dict[tuple[str, str], list[int]] = {}
    for each in shown:
        counts.setdefault((each.board, each.title.removesuffix(": $cluster")), []).append(
            len(each.series)
        )
    for (board, title), found in counts.items():
        print(f"{board:18} {title:50} {' '.join(map(str, found))}")


def print_alerts(
    head: str,
    fires: Mapping[str, set[str]],
    fired: Mapping[str, set[str]],
    may: Mapping[str, set[str]],
) -> None:
    """Of each cluster or group the alerts that fired, that did not and should, and that should not
    have.
    """
    rows = [("", "fired", "lacks", "unexpected")]
    for name in sorted(fires.keys() | fired.keys()):
        have, wanted = fired.get(name, set()), fires.get(name, set())
        found = (have, wanted - have, have - wanted - may.get(name, set()))
        rows.append(
            (
                name or "(cluster)",
                *(
                    ", ".join(sorted(each.removeprefix("Laggard") for each in some)) or "-"
                    for some in found
                ),
            )
        )
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    print(f"\n{head}: alerts")
    for row in rows:
        print(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


def by_group(alerts: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Alert → groups turned round."""
    groups = {group for some in alerts.values() for group in some}
    return {group: {name for name, some in alerts.items() if group in some} for group in groups}


def main() -> int:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--live",
        action="store_true",
        help="a real broker, consumers and job; needs an idle machine",
    )
    parser.add_argument("--work", type=Path, help="keep all files in this folder")
    parser.add_argument("--pictures", type=Path, help="draw each dashboard into this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laggard-dashboards-") as made:
        folder = (options.work or Path(made)).absolute()
        folder.mkdir(exist_ok=True)
        if options.live:
            outcome = run.run(folder)
            print_panels(outcome.shown)
            quiet: dict[str, set[str]] = {group: set() for group in GROUPS}  # are listed as well
            print_alerts(
                "group",
                quiet | by_group(run.SICK | run.AT_THE_END),
                by_group(outcome.fired),
                by_group(run.LATER),
            )
            shown = outcome.shown
        else:
            found = history.run(folder)
            print_panels(found.shown)
            fires, may = (
                {each.name: set(of(each)) for each in history.CASES}
                for of in (attrgetter("fires"), attrgetter("may"))
            )
            print_alerts("cluster", fires, found.fired, may)
            shown = found.shown
    if options.pictures:
        from dashboards.draw import picture  # matplotlib is slow to load

        options.pictures.mkdir(exist_ok=True)
        for uid in BOARDS:
            print(picture(uid, shown, options.pictures, run.HOT if options.live else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
