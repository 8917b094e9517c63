"""Tests of the times that a user writes, one form for all verbs."""

from argparse import ArgumentTypeError
from datetime import datetime, timedelta, timezone

import pytest

from laggard.answers.text.times import FORMS, when

NOW = datetime(2026, 11, 20, 12, 30, 15, 250_000, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", NOW),
        ("2h", NOW - timedelta(hours=2)),
        ("-2h", NOW - timedelta(hours=2)),
        ("-1.5d", NOW - timedelta(hours=36)),
        ("-0s", NOW),
        ("10:36", datetime(2026, 11, 20, 10, 36, tzinfo=timezone.utc)),
        ("9:05:30", datetime(2026, 11, 20, 9, 5, 30, tzinfo=timezone.utc)),
        ("12:30:15", datetime(2026, 11, 20, 12, 30, 15, tzinfo=timezone.utc)),
        ("12:31", datetime(2026, 11, 19, 12, 31, tzinfo=timezone.utc)),
        ("14:00+02:00", datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)),
        ("23:00-05:00", datetime(2026, 11, 20, 4, 0, tzinfo=timezone.utc)),
        ("10:36Z", datetime(2026, 11, 20, 10, 36, tzinfo=timezone.utc)),
        ("2026-11-19", datetime(2026, 11, 19, tzinfo=timezone.utc)),
        ("2026-11-19T14:30", datetime(2026, 11, 19, 14, 30, tzinfo=timezone.utc)),
        ("2026-11-19 14:30:10 UTC", datetime(2026, 11, 19, 14, 30, 10, tzinfo=timezone.utc)),
        ("2026-11-19T14:30z", datetime(2026, 11, 19, 14, 30, tzinfo=timezone.utc)),
        ("2026-11-19T14:30+01:00", datetime(2026, 11, 19, 13, 30, tzinfo=timezone.utc)),
    ],
)
def test_every_form_means_one_moment_in_utc(text: str, meant: datetime) -> None:
    assert when(text)(NOW) == meant
    assert when(text).text == text


@pytest.mark.parametrize(
        "text",
    [
        "", "noon", "2", "-2", "2w", "--2h", "25:00", "10:61", "2026-13-01", "2026-11-20T25:00",
        "10:36 Berlin",
        "10:00zz", "2026-11-20x10:00", "2026-11-20 z", "2026-11-20+01:00",
        "2026-11-20T10:00Z+01:00",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(ArgumentTypeError) as error:
        when(text)
    assert str(error.value) == f"expected a time as {FORMS}, got {text!r}"


def test_a_time_that_no_clock_had_is_refused() -> None:
    for text in ("0001-01-01", "9999-12-31T23:59-01:00", "-99999999999d", "40000d"):
        with pytest.raises(ArgumentTypeError):
            when(text)
