"""Shape: the specification's fixtures, brute-force definitions, and what a name takes to last."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.group import Shape
from laggard.diagnosis.signals.significance import measure, persist, raw_shape

PARAMETERS = Parameters()
LAGS = st.lists(st.integers(0, 50), min_size=2, max_size=9).filter(any)


def shape(*lags: float, is_material: bool = True) -> Shape:
    return raw_shape(
        np.array(lags), np.arange(len(lags)), is_material=is_material, parameters=PARAMETERS
    )


FIXTURES = {
    "R02": ((0, 6, 12), 0.667, 1.800, 0.600, "concentrated"),
    "1 of 12": ((0,) * 11 + (7,), 1.000, 1.000, 0.083, "concentrated"),
    "2 of 12, 3:2": ((0,) * 10 + (3, 2), 0.927, 1.923, 0.160, "concentrated"),
    "2 of 12, 1:1": ((1, 1) + (0,) * 10, 0.909, 2.000, 0.167, "concentrated"),
    "5 of 50": ((0,) * 45 + (9,) * 5, 0.918, 5.000, 0.100, "concentrated"),
    "6 of 12": ((0, 4) * 6, 0.545, 6.000, 0.500, "mixed"),
    "ramp 0…11": (tuple(range(12)), 0.394, 8.609, 0.717, "mixed"),
    "ramp 1…12": (tuple(range(12, 0, -1)), 0.333, 9.360, 0.780, "spread"),
    "1:3": ((1, 3), 0.500, 1.600, 0.800, "mixed"),
    "1:4": ((1, 4), 0.600, 1.471, 0.735, "concentrated"),
}


@pytest.mark.parametrize(
    ("lags", "gini", "n_eff", "rho", "raw"), FIXTURES.values(), ids=FIXTURES.keys()
)
def test_the_fixtures_of_the_specification(
    lags: tuple[int, ...], gini: float, n_eff: float, rho: float, raw: str
) -> None:
    found = shape(*lags)
    assert (round(found.gini, 3), round(found.n_eff, 3), round(found.rho, 3)) == (gini, n_eff, rho)
    assert found.raw == found.name == raw


@given(LAGS)
def test_the_numbers_are_what_their_definitions_say(lags: list[int]) -> None:
    n, total = len(lags), sum(lags)
    found = measure(np.array(lags, float), np.arange(n))
    differences = sum(abs(a - b) for a, b in combinations(lags, 2))
    # mean difference over its largest value
    assert found.gini == pytest.approx(differences / ((n - 1) * total))
    assert found.n_eff == pytest.approx(total**2 / sum(lag**2 for lag in lags))
    assert found.rho == pytest.approx(found.n_eff / n)
    assert found.top1_share == found.top_decile_share == pytest.approx(max(lags) / total)
    shares = [lag / total for lag in lags if lag]
    assert found.entropy == pytest.approx(
        -sum(share * np.log(share) for share in shares) / np.log(n), abs=1e-12
    )


@given(LAGS)
def test_the_top_set_is_the_smallest_with_seventy_percent_and_the_first_of_its_size(
    lags: list[int],
) -> None:
    found = measure(np.array(lags, float), np.arange(len(lags))).top
    sets = (
        chosen
        for size in range(1, len(lags) + 1)
        for chosen in combinations(range(len(lags)), size)
    )
    enough = (chosen for chosen in sets if 10 * sum(lags[each] for each in chosen) >= 7 * sum(lags))
    size = len(next(enough))
    assert found == tuple(sorted(range(len(lags)), key=lambda each: (-lags[each], each))[:size])


@given(LAGS, st.randoms(use_true_random=False), st.floats(0.001, 1000))
def test_neither_the_order_nor_the_unit_of_the_lags_matters(
    lags: list[int], chance: random.Random, unit: float
) -> None:
    order = list(range(len(lags)))
    chance.shuffle(order)
    one = measure(np.array(lags, float), np.arange(len(lags)))
    other = measure(np.array([lags[each] * 2.0 for each in order]), np.array(order))
    assert other.top == one.top
    assert other.gini == pytest.approx(one.gini, abs=1e-12)
    assert measure(np.array(lags) * unit, np.arange(len(lags))).n_eff == pytest.approx(one.n_eff)


def test_seventy_percent_of_whole_records_is_met_exactly() -> None:
    for n in range(1, 300):
        assert len(measure(np.full(n, 1.0), np.arange(n)).top) == -(-7 * n // 10)


def test_thresholds_are_met_exactly_whatever_the_number_of_records() -> None:
    for unit in range(1, 300):
        assert shape(unit, 4 * unit).raw == "concentrated"  # Gini* 0.6
        assert shape(9 * unit, *(unit,) * 9).raw == "concentrated"  # the top decile has half
        assert shape(13 * unit, 27 * unit).raw == "spread"  # Gini* 0.35


def test_one_high_partition_among_even_ones_is_not_spread() -> None:
    found = shape(5.8, *(1,) * 8)
    assert found.gini < PARAMETERS.shape_gini_spread
    assert found.raw == "mixed"


def test_unknown_partitions_are_left_out_and_the_top_names_partitions_not_places() -> None:
    lags, partitions = np.array([np.nan, 6, np.nan, 12, 0]), np.array([2, 3, 5, 8, 13])
    found = raw_shape(lags, partitions, is_material=True, parameters=PARAMETERS)
    assert found == replace(shape(6, 12, 0), top=(8, 3))


def test_the_top_decile_counts_one_partition_of_ten_and_two_of_eleven() -> None:
    assert shape(5, *(1,) * 5, *(0,) * 4).top_decile_share == 0.5
    assert shape(*(3,) * 2, *(1,) * 4, *(0,) * 5).top_decile_share == 0.6


def test_a_hot_decile_is_concentrated_from_ten_partitions_on() -> None:
    # one of ten holds half, the others are even: Gini* is only 0.44
    assert shape(9, *(1,) * 9).gini < PARAMETERS.shape_gini_concentrated
    assert shape(9, *(1,) * 9).raw == "concentrated"
    assert shape(8, *(1,) * 8).raw == "mixed"


def test_lag_that_is_not_material_has_no_shape_but_its_numbers() -> None:
    found = shape(0, 6, 12, is_material=False)
    assert (found.raw, found.name) == ("none", "none")
    assert found.gini == pytest.approx(2 / 3)


def test_one_partition_is_single_and_has_no_numbers() -> None:
    found = shape(np.nan, 40)
    assert (found.raw, found.top) == ("single", (1,))
    assert np.isnan(
        [
            found.gini,
            found.n_eff,
            found.rho,
            found.top1_share,
            found.top_decile_share,
            found.entropy,
        ]
    ).all()


@pytest.mark.parametrize("lags", [(), (np.nan, np.nan), (0, 0, 0), (-3, 0)])
def test_nothing_known_and_no_lag_have_no_shape(lags: tuple[float, ...]) -> None:
    found = shape(*lags)
    assert (found.raw, found.top) == ("none", ())
    assert np.isnan(found.gini)


def test_a_commit_ahead_of_the_poll_counts_as_no_lag() -> None:
    assert shape(-5, 6, 12) == shape(0, 6, 12)


# persistence


def hot(*top: int) -> Shape:
    return Shape("concentrated", "concentrated", top=top)


EVEN, UNEVEN, NOTHING = (Shape(name, name) for name in ("spread", "mixed", "none"))


@pytest.mark.parametrize(
    ("raws", "name"),
    [
        ([hot(7)], "mixed"),
        ([hot(7)] * 2, "mixed"),
        ([hot(7)] * 3, "concentrated"),
        ([UNEVEN, *[hot(7)] * 3], "concentrated"),
        ([hot(7), hot(7), UNEVEN], "mixed"),
        ([hot(7), UNEVEN, hot(7), hot(7)], "mixed"),
        ([hot(7), hot(8), hot(7)], "mixed"),  # one partition each time, but not the same
        ([hot(7, 1), hot(7, 2), hot(7, 3)], "concentrated"),  # the same on top
        ([hot(1, 2, 3), hot(2, 3, 4), hot(3, 2, 1)], "concentrated"),  # 2 of 4: Jaccard 0.5
        ([hot(1, 2, 3), hot(2, 3, 4, 5), hot(3, 2, 1)], "mixed"),  # 2 of 5
        ([hot(1, 2), hot(3), hot(1, 2)], "mixed"),
        ([hot(1), hot(2, 1), hot(1)], "mixed"),  # a single hot one has to stay on top
        # the middle one is like the first, not like the newest
        ([hot(3, 2, 1), hot(1, 2), hot(4, 3, 2)], "mixed"),
        ([hot(1, 2, 3), hot(2, 3, 4), hot(4, 5, 3)], "mixed"),  # drifted away from the newest
        ([EVEN], "mixed"),
        ([EVEN] * 2, "spread"),
        ([EVEN, UNEVEN, EVEN], "spread"),
        ([EVEN, EVEN, UNEVEN], "spread"),
        ([EVEN, EVEN, hot(7)], "spread"),
        ([EVEN, hot(7), hot(7)], "mixed"),
        ([EVEN, EVEN, UNEVEN, UNEVEN], "mixed"),
        ([EVEN, EVEN, NOTHING], "none"),
        ([hot(7)] * 2 + [NOTHING, hot(7)], "mixed"),
        ([Shape("single", "single")], "single"),
        ([], "none"),
    ],
)
def test_a_name_takes_windows_that_agree(raws: list[Shape], name: str) -> None:
    assert persist(raws, 12, PARAMETERS) == name


def test_four_partitions_take_five_windows_to_be_concentrated() -> None:
    assert persist([hot(0)] * 4, 4, PARAMETERS) == "mixed"
    assert persist([hot(0)] * 5, 4, PARAMETERS) == "concentrated"
    assert persist([hot(0)] * 3, 5, PARAMETERS) == "concentrated"
