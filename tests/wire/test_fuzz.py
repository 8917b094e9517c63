"""A small run of the fuzzer, and that it would see a fault."""

import itertools
from typing import Any

import pytest

import fuzz
import layouts


def test_damaged_records_are_all_accounted_for() -> None:
    report = fuzz.run(20_000, seed=7)
    assert report.is_good, report.problems
    assert report.records == 20_000 == sum(report.outcomes.values())
    assert set(fuzz.NAMES.values()) == report.outcomes.keys()
    assert layouts.KEYS.keys() <= report.record_types
    assert len(report.errors) == 11  # every kind but that of the consumer protocol


def test_the_same_seed_gives_the_same_records() -> None:
    first, again, other = (list(itertools.islice(fuzz.mutants(seed), 50)) for seed in (3, 3, 4))
    assert first == again != other


def test_a_crash_is_counted_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = fuzz.decode

    def fragile(key: bytes | None, value: bytes | None) -> Any:
        return decode(key, value) if value else [][len(value or b"")]

    made = list(itertools.islice(fuzz.mutants(7), 1_000))
    monkeypatch.setattr(fuzz, "mutants", lambda _seed: iter(made))
    monkeypatch.setattr(fuzz, "decode", fragile)
    report = fuzz.run(1_000, seed=7)
    assert not report.is_good
    assert report.crashes == sum(not value for _, value in made)
    assert "IndexError" in report.problems[0]
    assert len(report.problems) == fuzz.SAMPLES
