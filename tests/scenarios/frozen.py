"""Digests of what is found in all scenarios, so that a restructuring can prove that it changed
nothing.

Findings, verdicts and group windows of three seeds each:
    frozen.py             compare all with frozen.json; exit code 1 and the names of those that
                          differ
    frozen.py --rows DIR  also write the rows of each run to DIR, to find a difference with diff
    frozen.py --write     accept what is found: a change of behaviour; its commit says why
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).parent.parent.parent
    sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "tests", "tests/wire")]

from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import Diagnosed, diagnose
from scenarios.recordings import record_all
from scenarios.report import chosen

FILE = Path(__file__).with_suffix(".json")
SEEDS = (1, 2, 3)
# significant ones: processors with wider registers add up in another order, and differ in the
# sixteenth
DIGITS = 9
# what a rule declares, and not what it found
DECLARED = frozenset({"rule_version", "params", "falsifier"})
Digests = dict[str, dict[str, str]]  # scenario -> seed -> digest


def lines(diagnosed: Diagnosed, digits: int = DIGITS) -> Iterator[str]:
    """Return one line of JSON per row, in the order in which the rows were written, without what
    rules declare.
    """
    for table, rows in (("findings", diagnosed.findings), ("group_windows", diagnosed.windows)):
        for row in rows:
            found = {name: value for name, value in row.items() if name not in DECLARED}
            yield (
                f"{table} {json.dumps(_plain(found, digits), sort_keys=True, ensure_ascii=False)}\n"
            )


def _plain(value: Any, digits: int) -> Any:
    """Return a value as JSON has it; sets and mappings lose an order that means nothing."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each, digits) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(_plain(each, digits) for each in value)
    if isinstance(value, list | tuple):
        return [_plain(each, digits) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.{digits}g}"  # NaN and infinity have names
    return value.item() if hasattr(value, "item") else value


def digest(diagnosed: Diagnosed) -> str:
    """Return the digest of all rows of a run."""
    found = sha256()
    for line in lines(diagnosed):
        found.update(line.encode())
    return found.hexdigest()


def digests(
    names: Iterable[str], seeds: Sequence[int] = SEEDS, rows: Path | None = None
) -> Digests:
    """Record and diagnose these scenarios; with `rows`, write each run's rows to that folder,
    floats in full.
    """
    found: Digests = {}
    for name in names:
        for recorded in record_all(SCENARIOS[name], seeds):
            diagnosed, seed = diagnose(recorded), str(recorded.run.seed)
            found.setdefault(name, {})[seed] = digest(diagnosed)
            if rows is not None:
                rows.mkdir(parents=True, exist_ok=True)
                (rows / f"{name}-{seed}.txt").write_text("".join(lines(diagnosed, digits=17)))
    return found


def frozen() -> Digests:
    """Return the digests that the repository keeps."""
    found: Digests = json.loads(FILE.read_text())
    return found


def differing(found: Digests) -> list[str]:
    """Return the runs, as `scenario seed`, whose digest is not the one in the repository."""
    kept = frozen()
    return [
        f"{n} {s}"
        for n, own in found.items()
        for s, each in own.items()
        if kept.get(n, {}).get(s) != each
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        metavar="NAME",
        help="scenarios by name, its beginning or a glob",
    )
    parser.add_argument("--rows", type=Path, metavar="DIR", help="write the rows of each run there")
    parser.add_argument("--write", action="store_true", help="write the digests to frozen.json")
    asked = parser.parse_args()
    names = chosen(asked.only)
    if not names:
        parser.error(
            f"no scenario is called {' '.join(asked.only)}; names are set apart by spaces: "
            "--only SC01 LA21"
        )
    found = digests(names, rows=asked.rows)
    if asked.write:
        merged = (frozen() if FILE.exists() else {}) | found
        FILE.write_text(
            json.dumps({name: merged[name] for name in SCENARIOS if name in merged}, indent=1)
            + "\n"
        )
        return 0
    differ = differing(found)
    print(f"{sum(map(len, found.values()))} runs, {len(differ)} differ", *differ, sep="\n")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
