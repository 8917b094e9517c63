"""A page is made of parts: each run once, in whatever order they were done."""

from __future__ import annotations

from itertools import permutations
from math import inf
from pathlib import Path

import pytest

from scenarios.catalogue import SCENARIOS
from scenarios.compared import Compared
from scenarios.forecasts import Forecasts
from scenarios.kept import from_line, in_order, key_of, read, to_line
from scenarios.page import Result, markdown
from scenarios.report import chosen, tasks
from scenarios.runs import parts, place_of, side_by_side, size_of
from scenarios.scoring import Scored
from simulator.offsets_log import PARTITIONS


def result(name: str, seed: int) -> Result:
    scored = Scored(
        name, seed, {"SLOW_MEMBER": 2.0}, {"SLOW_MEMBER"}, {"DATA_LOST"}, {f"SEED_{seed}"}, False
    )
    scored.primaries, scored.verdicts, scored.counterfactual = ("CRASH_LOOP", "SLOW_HOST"), 7, None
    scored.wrong_verdicts["YES"] = 3
    compared = [
        Compared("velocity", True, False, 4.0, None, 2, 5),
        Compared("laggard", False, False, None),
    ]
    return Result(scored, compared, 1.25, 40, Forecasts([0.75, 1.5, inf], 1, 60, 3, 31.5))


def write(file: Path, results: list[Result]) -> Path:
    file.write_text("".join(to_line(each) + "\n" for each in results))
    return file


def test_a_run_is_read_as_it_was_written() -> None:
    assert from_line(to_line(result("SC06", 3))) == result("SC06", 3)


def test_the_page_is_the_same_whatever_the_parts_and_their_order(tmp_path: Path) -> None:
    runs = [result("SC06", 0), result("SC06", 1), result("LA5", 0)]
    whole = markdown(runs)
    for number, order in enumerate(permutations(runs)):
        one = write(tmp_path / f"{number}-one", list(order[:1]))
        other = write(tmp_path / f"{number}-other", list(order[1:]))
        assert markdown(in_order(read([one, other, tmp_path / "not yet there"]))) == whole
    assert "- 3 runs of 2 scenarios" in whole
    assert "within a quarter of the truth: 0.333 of 9, none given for 3" in whole
    assert "more than the gap of two polls: 9 of 180; most: 31.5 s" in whole


def test_a_run_that_would_count_twice_is_refused(tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, [result("SC06", 3)]) for name in ("one", "other"))
    with pytest.raises(ValueError, match="SC06"):
        read([one, other])


def test_what_is_known_is_not_done_again() -> None:
    known = {key_of(result("SC06", seed)) for seed in (0, 2)}
    left = tasks(["SC06", "LA5"], range(4), known)
    assert sorted((name, seed) for name, part in left for seed in part) == [
        ("LA5", 0), ("LA5", 1), ("LA5", 2), ("LA5", 3), ("SC06", 1), ("SC06", 3),
    ]  # fmt: skip


def test_the_longest_part_is_done_first() -> None:
    done = [size_of(SCENARIOS[name]) * len(part) for name, part in tasks(SCENARIOS, range(3), ())]
    assert done == sorted(done, reverse=True)


@pytest.mark.parametrize("name", ["SC06", "SC08", "SC45", "SC59", "SC60"])
def test_runs_recorded_side_by_side_share_no_offsets_partition_and_keep_theirs_in_every_part(
    name: str,
) -> None:
    scenario = SCENARIOS[name]
    found = parts(scenario, range(7, 90))
    assert sorted(seed for part in found for seed in part) == list(range(7, 90))
    for part in [*found, *parts(scenario, (1, 51, 101))]:
        places = [place_of(scenario, seed) for seed in part]
        taken = {place + number for place in places for number in range(scenario.groups)}
        assert len(part) <= side_by_side(scenario)
        assert len(taken) == len(part) * scenario.groups
        assert taken <= set(range(PARTITIONS))


@pytest.mark.parametrize(
    ("asked", "without", "expected"),
    [
        pytest.param(["SC54"], [], ["SC54a", "SC54b"], id="a name's beginning"),
        pytest.param(["SC5[45]*"], ["SC55b", "SC54"], ["SC55a", "SC55c"], id="a glob, less two"),
        pytest.param(["LA2"], ["LA2?"], ["LA2"], id="a glob that leaves the shorter name"),
    ],
)
def test_scenarios_are_asked_for_by_name(
    asked: list[str], without: list[str], expected: list[str]
) -> None:
    assert chosen(asked, without) == expected


def test_healthy_and_all_the_others_are_all_scenarios() -> None:
    healthy = chosen(["healthy"])
    assert healthy == [name for name in SCENARIOS if SCENARIOS[name].is_healthy]
    assert sorted([*healthy, *chosen([], ["healthy"])]) == sorted(SCENARIOS)
