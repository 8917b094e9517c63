"""What the independent encoder writes, in every version, is what the decoder reads."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
from laggard.wire.decode import decode
from laggard.wire.schemas import RECORD_TYPES
from laggard.wire.structs import struct_reader

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
EDGE_TEXT = st.sampled_from([126, 127, 128, 16_383, 16_384]).map(lambda length: "x" * length)
TEXT = st.text(max_size=12) | st.sampled_from(["", "a:b:1", "ä-группа-群組", "😀grp"]) | EDGE_TEXT
BLOB = st.binary(max_size=12) | EDGE_TEXT.map(str.encode)
TOPIC_ID = st.none() | st.sampled_from(["MKXx1fIkQy2J9jXHhK8m1w", "jxTkX87qRn-mscDeEqs0zQ"])
VERSION = st.integers(0, 4)
UNKNOWN_TAGS = st.dictionaries(st.integers(1, 9), BLOB, max_size=2).map(lambda tags: sorted(tags.items()))
ROUNDS = settings(max_examples=120, deadline=None)

COMMIT = st.fixed_dictionaries(
    {
        "offset": I64,
        "leader_epoch": I32,
        "metadata": TEXT,
        "commit_timestamp": I64,
        "expire_timestamp": I64,
        "topic_id": TOPIC_ID,
    }
)
MEMBER = st.fixed_dictionaries(
    {
        "member_id": TEXT,
        "group_instance_id": st.none() | TEXT,
        "client_id": TEXT,
        "client_host": TEXT,
        "rebalance_timeout": I32,
        "session_timeout": I32,
        "subscription": BLOB,
        "assignment": BLOB,
    }
)
GROUP = st.fixed_dictionaries(
    {
        "protocol_type": TEXT,
        "generation": I32,
        "protocol": st.none() | TEXT,
        "leader": st.none() | TEXT,
        "current_state_timestamp": I64,
        "members": st.lists(MEMBER, max_size=3),
    }
)


def commit_as_of(version: int, commit: dict[str, Any]) -> dict[str, Any]:
    """Put the default wherever this version has no place for a field."""
    return commit | {
        "leader_epoch": commit["leader_epoch"] if version >= 3 else -1,
        "expire_timestamp": commit["expire_timestamp"] if version == 1 else -1,
        "topic_id": commit["topic_id"] if version >= 4 else None,
    }


def group_as_of(version: int, group: dict[str, Any]) -> dict[str, Any]:
    """Put the default wherever this version has no place for a field."""
    members = [
        member
        | {
            "group_instance_id": member["group_instance_id"] if version >= 3 else None,
            "rebalance_timeout": member["rebalance_timeout"] if version >= 1 else -1,
        }
        for member in group["members"]
    ]
    timestamp = group["current_state_timestamp"] if version >= 2 else -1
    return group | {"current_state_timestamp": timestamp, "members": members}


@ROUNDS
@given(st.sampled_from([0, 1]), TEXT, TEXT, I32)
def test_a_commit_key_reads_back(record_type: int, group: str, topic: str, partition: int) -> None:
    outcome = decode(encoder.commit_key(group, topic, partition, record_type), None)
    assert {"group": group, "topic": topic, "partition": partition} == outcome.key
    assert ("tombstone", record_type) == (outcome.outcome, outcome.record_type)


@ROUNDS
@given(VERSION, COMMIT)
def test_a_commit_reads_back_in_every_version(version: int, commit: dict[str, Any]) -> None:
    outcome = decode(encoder.commit_key("g", "t", 0), encoder.commit_value(version, commit))
    assert commit_as_of(version, commit) == outcome.value
    assert version == outcome.value_version


@ROUNDS
@given(TEXT, VERSION, GROUP)
def test_a_group_reads_back_in_every_version(name: str, version: int, group: dict[str, Any]) -> None:
    outcome = decode(encoder.group_key(name), encoder.group_value(version, group))
    assert ({"group": name}, group_as_of(version, group)) == (outcome.key, outcome.value)


@ROUNDS
@given(COMMIT, GROUP, UNKNOWN_TAGS)
def test_unknown_tags_change_nothing(
    commit: dict[str, Any], group: dict[str, Any], tags: list[tuple[int, bytes]]
) -> None:
    with_tags = decode(encoder.commit_key("g", "t", 0), encoder.commit_value(4, commit, tags))
    assert commit_as_of(4, commit) == with_tags.value
    assert group == decode(encoder.group_key("g"), encoder.group_value(4, group, tags)).value


@ROUNDS
@given(VERSION, st.tuples(COMMIT, COMMIT), st.tuples(GROUP, GROUP))
def test_two_values_in_a_row_are_read_one_after_the_other(
    version: int, commits: tuple[dict[str, Any], ...], groups: tuple[dict[str, Any], ...]
) -> None:
    encoded_commits = [encoder.commit_value(version, commit)[2:] for commit in commits]
    encoded_groups = [encoder.group_value(version, group)[2:] for group in groups]
    for record_type, encoded, values in (
        (1, encoded_commits, [commit_as_of(version, commit) for commit in commits]),
        (2, encoded_groups, [group_as_of(version, group) for group in groups]),
    ):
        reader = struct_reader(RECORD_TYPES[record_type].value, version, is_flexible=version >= 4)
        first, size = reader(b"".join(encoded), 0)
        second, rest = reader(b"".join(encoded), size)
        assert values == [first, second]
        assert [len(each) for each in encoded] == [size, rest]


@pytest.mark.parametrize("version", range(5))
def test_absent_fields_are_present_with_their_defaults(version: int) -> None:
    commit = {"offset": 1, "leader_epoch": 2, "metadata": "", "commit_timestamp": 3, "expire_timestamp": 4}
    value = decode(encoder.commit_key("g", "t", 0), encoder.commit_value(version, {**commit, "topic_id": None})).value
    assert value is not None
    assert (2 if version >= 3 else -1, 4 if version == 1 else -1, None) == (
        value["leader_epoch"],
        value["expire_timestamp"],
        value["topic_id"],
    )


def test_a_topic_id_at_its_default_is_accepted_when_written() -> None:
    commit = {"offset": 1, "leader_epoch": 2, "metadata": "m", "commit_timestamp": 3, "topic_id": "A" * 22}
    value = decode(encoder.commit_key("g", "t", 0), encoder.commit_value(4, commit)).value
    assert value is not None
    assert value["topic_id"] is None
