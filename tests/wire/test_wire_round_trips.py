"""What the independent encoder writes, for every type and version, is what the decoder reads."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
import layouts
import made_up
from laggard.wire.decode import decode
from laggard.wire.schemas import RECORD_TYPES
from laggard.wire.structs import struct_reader

PLACES = sorted(layouts.VALUES)
FLEXIBLE = [place for place in PLACES if layouts.is_flexible(*place)]
UNKNOWN_TAGS = st.dictionaries(st.integers(4, 300), made_up.BLOB, max_size=2).map(
    lambda tags: sorted(tags.items())
)


def rounds(examples: int = 40) -> settings:
    return settings(max_examples=examples, deadline=None)


def a_key(record_type: int) -> bytes:
    return encoder.record_key(
        record_type, dict.fromkeys(layouts.KEYS[record_type], "k") | {"partition": 0}
    )


def decoded(record_type: int, value: bytes) -> Any:
    return decode(a_key(record_type), value).value


def in_place(place: tuple[int, int]) -> str:
    return "type {} version {}".format(*place)


def test_the_layouts_hold_every_type_and_version_of_the_tables() -> None:
    known = {
        (number, version)
        for number, record in RECORD_TYPES.items()
        for version in range(record.newest + 1)
    }
    assert known == layouts.VALUES.keys()
    assert set(range(25)) - {9, 18} == RECORD_TYPES.keys() == layouts.KEYS.keys()
    assert len({record.name for record in RECORD_TYPES.values()}) == len(RECORD_TYPES)


@pytest.mark.parametrize("record_type", sorted(layouts.KEYS))
@rounds()
@given(st.data())
def test_a_key_reads_back(record_type: int, data: st.DataObject) -> None:
    key = data.draw(made_up.KEYS[record_type])
    outcome = decode(encoder.record_key(record_type, key), None)
    assert (key, "tombstone", record_type) == (outcome.key, outcome.outcome, outcome.record_type)


@pytest.mark.parametrize("place", PLACES, ids=in_place)
@rounds()
@given(st.data(), st.booleans())
def test_a_value_reads_back(place: tuple[int, int], data: st.DataObject, all_tags: bool) -> None:
    value = data.draw(made_up.VALUES[place])
    outcome = decode(a_key(place[0]), encoder.record_value(*place, value, all_tags=all_tags))
    assert made_up.with_defaults(place[0], value) == outcome.value
    assert place == (outcome.record_type, outcome.value_version)


@pytest.mark.parametrize("place", FLEXIBLE, ids=in_place)
@rounds()
@given(st.data(), UNKNOWN_TAGS)
def test_unknown_tags_in_every_struct_change_nothing(
    place: tuple[int, int], data: st.DataObject, tags: list[tuple[int, bytes]]
) -> None:
    value = data.draw(made_up.VALUES[place])
    with_tags = decoded(place[0], encoder.record_value(*place, value, tags))
    assert made_up.with_defaults(place[0], value) == with_tags


@pytest.mark.parametrize("place", PLACES, ids=in_place)
@rounds(15)
@given(st.data())
def test_two_values_in_a_row_are_read_one_after_the_other(
    place: tuple[int, int], data: st.DataObject
) -> None:
    values = [data.draw(made_up.VALUES[place]) for _ in range(2)]
    encoded = [encoder.record_value(*place, value)[2:] for value in values]
    reader = struct_reader(
        RECORD_TYPES[place[0]].value, place[1], is_flexible=layouts.is_flexible(*place)
    )
    first, size = reader(b"".join(encoded), 0)
    second, rest = reader(b"".join(encoded), size)
    assert [made_up.with_defaults(place[0], value) for value in values] == [first, second]
    assert [len(each) for each in encoded] == [size, rest]


@pytest.mark.parametrize("place", PLACES, ids=in_place)
@rounds(10)
@given(st.data())
def test_a_value_cut_anywhere_is_truncated(place: tuple[int, int], data: st.DataObject) -> None:
    encoded = encoder.record_value(*place, data.draw(made_up.VALUES[place]))
    for size in {*range(min(200, len(encoded))), len(encoded) - 1}:
        cut = decode(a_key(place[0]), encoded[:size])
        assert (cut.outcome, cut.error) == ("malformed", "truncated")


@pytest.mark.parametrize("place", PLACES, ids=in_place)
@rounds()
@given(st.data(), st.binary(min_size=1, max_size=3))
def test_a_changed_byte_has_exactly_one_outcome(
    place: tuple[int, int], data: st.DataObject, other: bytes
) -> None:
    encoded = encoder.record_value(*place, data.draw(made_up.VALUES[place]))
    at = data.draw(st.integers(0, len(encoded) - 1))
    outcome = decode(a_key(place[0]), encoded[:at] + other + encoded[at + 1 :])
    assert outcome.outcome in ("record", "unsupported", "malformed")
    assert (outcome.value is None) == (outcome.error is not None)


@pytest.mark.parametrize("version", range(5))
def test_absent_fields_are_present_with_their_defaults(version: int) -> None:
    commit = {
        "offset": 1,
        "leader_epoch": 2,
        "metadata": "",
        "commit_timestamp": 3,
        "expire_timestamp": 4,
    }
    value = decoded(1, encoder.commit_value(version, {**commit, "topic_id": None}))
    assert value["leader_epoch"] == (2 if version >= 3 else -1)
    assert value["expire_timestamp"] == (4 if version == 1 else -1)
    assert value["topic_id"] is None


def test_a_topic_id_at_its_default_is_accepted_when_written() -> None:
    commit = {
        "offset": 1,
        "leader_epoch": 2,
        "metadata": "m",
        "commit_timestamp": 3,
        "topic_id": "A" * 22,
    }
    assert decoded(1, encoder.commit_value(4, commit))["topic_id"] is None
