"""Departures none of which tells its reason, drawn at random with known reasons: a series of them
does.
"""

from __future__ import annotations

import random

from diagnosis.rebalance_rows import Life, pods
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.evictions import poll_timeout_eviction
from laggard.diagnosis.signals.rosters import (
    EVICTION_REASONS,
    Series,
    find_evictions,
    find_series,
    rosters_of,
)
from laggard.rebalance.analytics.posterior import LIKELIHOOD, REASONS, find_posterior

ALL = pods(1, 2, 3, 4)
SERIES, MOST, LEAST = 150, 24, 2
KNOWN = ("returned", "lag")  # evidence; how long it was silent and who left next are not known


def draw_series(seed: int) -> tuple[str, Life]:
    """A reason, and departures that look as it makes them; of which little is known."""
    chance = random.Random(f"series {seed}")
    reason, count = chance.choice(REASONS), chance.randint(12, MOST)
    life, second = Life(timeout=60).generation(10, *ALL), 1850.0
    for _ in range(count):
        gone = chance.choice(ALL)
        of_row = {"cause_posterior": posterior(chance, reason)}
        life.generation(second, *(slot for slot in ALL if slot != gone), of_row=of_row)
        life.generation(second + 5, *ALL)
        second += 1700.0 / count
    return reason, life


def posterior(chance: random.Random, reason: str) -> dict[str, float]:
    """The posterior of evidence that this reason gives."""
    place = REASONS.index(reason)
    return find_posterior(
        {
            kind: chance.choices(list(levels), [each[place] for each in levels.values()])[0]
            for kind, levels in LIKELIHOOD.items()
            if kind in KNOWN
        }
    )


def claimed(life: Life, *, in_series: bool) -> set[str]:
    """Reasons of two departures and more."""
    frame, parameters = life.frame(), Parameters()
    series = find_series(frame, parameters) if in_series else Series()
    rosters = rosters_of(frame)
    evictions = {
        reason: find_evictions(frame, rosters, reason, parameters, series)
        for reason in EVICTION_REASONS
    }
    return {reason for reason, found in evictions.items() if len(found) >= LEAST}


def test_evidence_of_unclear_departures_adds_up() -> None:
    asked = right = 0
    for reason, life in map(draw_series, range(SERIES)):
        assert claimed(life, in_series=False) == set()
        found = claimed(life, in_series=True)
        if reason in ("poll_timeout", "session_expiry"):
            asked, right = asked + 1, right + (reason in found)
        elif reason in ("deploy", "scale_in"):
            assert found == set()
    assert asked >= 40
    assert right >= 0.9 * asked


def test_four_unclear_departures_are_no_series() -> None:
    row, life = (
        posterior(random.Random("four"), "poll_timeout"),
        Life(timeout=60).generation(10, *ALL),
    )
    for second in range(2000, 3000, 250):
        life.generation(second, *ALL[1:], of_row={"cause_posterior": row}).generation(
            second + 20, *ALL
        )
    assert claimed(life, in_series=True) == set()


def test_a_finding_of_a_series_names_the_reasons() -> None:
    life = next(
        life for reason, life in map(draw_series, range(SERIES)) if reason == "poll_timeout"
    )
    (found,) = poll_timeout_eviction.check(life.signals(fact={"members": 4}))
    assert found.evidence_text["reasons"].startswith("poll_timeout ")
