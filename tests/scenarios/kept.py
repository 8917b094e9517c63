"""Results of runs as lines of a file, so that the page can be made of parts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scenarios.catalogue import SCENARIOS
from scenarios.compared import Compared
from scenarios.forecasts import Forecasts
from scenarios.page import Result
from scenarios.scoring import Scored

Key = tuple[str, int]  # scenario, seed


def to_line(result: Result) -> str:
    """One run as JSON, without a line's end."""
    return json.dumps(asdict(result), default=sorted)  # sets


def from_line(line: str) -> Result:
    """The run that `to_line` wrote."""
    row: dict[str, Any] = json.loads(line)
    scored = row["scored"]
    for name in ("late", "misses", "false"):
        scored[name] = set(scored[name])
    scored["primaries"] = tuple(scored["primaries"])
    compared = [Compared(**each) for each in row["compared"]]
    forecast = Forecasts(**row["forecasts"])
    return Result(Scored(**scored), compared, row["seconds"], row["group_windows"], forecast)


def read(files: Iterable[Path]) -> list[Result]:
    """The runs of all files that exist; one that is in them twice is an error, for it would count
    twice.
    """
    found: dict[Key, Result] = {}
    for file in files:
        for line in file.read_text().splitlines() if file.exists() else ():
            result = from_line(line)
            if key_of(result) in found:
                raise ValueError(f"{file}: {key_of(result)} is there twice")
            found[key_of(result)] = result
    return list(found.values())


def key_of(result: Result) -> Key:
    return result.scored.scenario, result.scored.seed


def in_order(results: Iterable[Result]) -> list[Result]:
    """As the catalogue has them, then by seed: so a page does not depend on what was done first."""
    place = {name: number for number, name in enumerate(SCENARIOS)}
    return sorted(results, key=lambda each: (place[each.scored.scenario], each.scored.seed))
