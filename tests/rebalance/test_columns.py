"""Values of dataclasses as columns of JSON, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.analytics.state import codec_of

TIMES = st.datetimes(timezones=st.just(timezone.utc))


@dataclass(frozen=True)
class Inner:
    name: str
    place: tuple[str | None, int]
    at: datetime | None = None


@dataclass(frozen=True)
class Outer:
    number: int
    share: float | None
    is_known: bool | None
    names: tuple[str, ...] | None
    inner: Inner | None
    places: tuple[tuple[str, int], ...]
    all_inner: tuple[Inner, ...] = ()


INNER = st.builds(
    Inner, st.text(), st.tuples(st.none() | st.text(), st.integers()), st.none() | TIMES
)
OUTER = st.builds(
    Outer,
    st.integers(),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.booleans(),
    st.none() | st.lists(st.text()).map(tuple),
    st.none() | INNER,
    st.lists(st.tuples(st.text(), st.integers())).map(tuple),
    st.lists(INNER).map(tuple),
)


@given(st.lists(OUTER))
def test_what_is_read_is_what_was_written(values: list[Outer]) -> None:
    column = json.loads(json.dumps(codec_of(Outer).write(values)))
    assert codec_of(Outer).read(column, len(values)) == values


def test_a_value_that_all_share_is_written_once() -> None:
    values = [Inner("a", ("t", number)) for number in range(3)]
    assert codec_of(Inner).write(values) == {"name": "a", "place": ["t", [0, 1, 2]], "at": None}


def test_a_field_without_a_column_has_its_default() -> None:
    column = codec_of(Inner).write([Inner("a", ("t", 1)), Inner("b", ("t", 2))])
    del column["at"]
    assert codec_of(Inner).read(column, 2) == [Inner("a", ("t", 1)), Inner("b", ("t", 2))]


def test_a_type_that_json_cannot_tell_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON"):
        codec_of(frozenset)
