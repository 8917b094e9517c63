"""Prints panel → series and alert → who fired, of simulated clusters or with --live of a real one; draws the panels."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from boards import history, run
from boards.queries import BOARDS, Shown


def print_panels(shown: Sequence[Shown]) -> None:
    """Every panel and annotation with the number of series of each of its queries."""
    print(f"{'dashboard':18} {'panel or annotation':50} series by query")
    counts: dict[tuple[str, str], list[int]] = {}
    for each in shown:
        counts.setdefault((each.board, each.title.removesuffix(": $cluster")), []).append(len(each.series))
    for (board, title), found in counts.items():
        print(f"{board:18} {title:50} {' '.join(map(str, found))}")


def print_alerts(head: tuple[str, str], wanted: Mapping[str, set[str]], fired: Mapping[str, set[str]]) -> None:
    """What was to fire and what did."""
    print(f"\n{head[0]:26} {'lacks ' + head[1]:40} fired")
    for name in sorted(wanted.keys() | fired.keys()):
        have, lacks = fired.get(name, set()), wanted.get(name, set()) - fired.get(name, set())
        print(f"{name or '(none)':26} {', '.join(sorted(lacks)) or '-':40} {', '.join(sorted(have)) or '-'}")


def main() -> int:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", action="store_true", help="a real broker, consumers and job; needs an idle machine")
    parser.add_argument("--work", type=Path, help="keep all files in this folder")
    parser.add_argument("--pictures", type=Path, help="draw each dashboard into this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laggard-boards-") as made:
        folder = (options.work or Path(made)).absolute()
        folder.mkdir(exist_ok=True)
        if options.live:
            outcome = run.run(folder)
            print_panels(outcome.shown)
            print_alerts(("alert", "groups"), run.SICK | run.AT_THE_END, outcome.fired)
            shown = outcome.shown
        else:
            found = history.run(folder)
            print_panels(found.shown)
            wanted = {each.name: set(each.fires) for each in history.CASES}
            print_alerts(("cluster", "alerts"), wanted, found.fired)
            shown = found.shown
    if options.pictures:
        from boards.draw import picture  # matplotlib is slow to load

        options.pictures.mkdir(exist_ok=True)
        for uid in BOARDS:
            print(picture(uid, shown, options.pictures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
