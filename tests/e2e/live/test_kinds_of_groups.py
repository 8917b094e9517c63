"""Whenever nothing moves, every kind of group is in the tables what the broker, its tools and the
clients say it is.

The kinds: classic with an eager and with a cooperative assignor, classic with static members,
KIP-848 (a static member and an expression among them), mixed ones on their way between these two,
share (KIP-932), streams (KIP-1071, by the consumer that Kafka Streams uses, without Kafka Streams
itself), and groups that are only committed to.
"""

from collections import Counter
from typing import Any

import pytest

from e2e.live.members import CLASSIC, SIMPLE
from e2e.live.newest import assigned
from e2e.live.scenario import Moment
from e2e.live.tools import number, places
from e2e.test_first_run import check_lag_equals_tool

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.full]


def with_records(moment: Moment) -> list[str]:
    return sorted(moment.look.groups.keys() - set(SIMPLE))


def living(moment: Moment) -> list[str]:
    return sorted({each.group for each in moment.members.values()})


def test_type_and_state_are_those_that_the_broker_lists(moment: Moment) -> None:
    described = {
        group: ("simple" if (kind, protocol) == ("Classic", "") else kind.lower(), state)
        for group, (kind, state, protocol) in moment.look.groups.items()
    }
    ours = {
        group: (row["group_type"], row["group_state"]) for group, row in moment.view.groups.items()
    }
    assert ours == described, moment.tail


def test_the_records_alone_give_the_same_state(moment: Moment) -> None:
    described = {group: moment.look.groups[group][1] for group in with_records(moment)}
    ours = {group: moment.view.groups[group]["record_state"] for group in described}
    assert ours == described, moment.tail
    assert {moment.view.groups[group]["record_state"] for group in SIMPLE} == {None}


def test_members_and_static_members_are_counted(moment: Moment) -> None:
    members = Counter(each.group for each in moment.members.values())
    static = Counter(each.group for each in moment.members.values() if each.instance)
    described: dict[str, Any] = {
        group: (members[group], static[group]) for group in with_records(moment)
    }
    described |= dict.fromkeys(SIMPLE, (None, None))
    ours = {
        group: (row["members"], row["static_members"]) for group, row in moment.view.groups.items()
    }
    assert ours == described, moment.tail
    counts = {
        group: number(line["#MEMBERS"]) or 0 for group, line in moment.described.states.items()
    }
    assert {group: count or 0 for group, (count, _) in ours.items()} == counts


def test_topics_are_those_that_the_members_subscribe_to(moment: Moment) -> None:
    described: dict[str, Any] = {group: set() for group in with_records(moment)}
    for each in moment.members.values():
        described[each.group] |= set(each.topics)
    ours = {
        group: set(row["topics"])
        for group, row in moment.view.groups.items()
        if row["topics"] is not None
    }
    assert ours == described, moment.tail


def test_epochs_are_those_of_kafkas_tools(moment: Moment) -> None:
    described = {
        group: (
            number(line["GROUP-EPOCH"]),
            number(line.get("TARGET-ASSIGNMENT-EPOCH") or line["ASSIGNMENT-EPOCH"]),
        )
        for group, line in moment.described.states.items()
    }
    ours = {
        group: (row["group_epoch"], row["assignment_epoch"])
        for group, row in moment.view.groups.items()
    }
    assert ours == described, moment.tail


def test_the_generation_is_the_one_that_the_clients_are_in(moment: Moment) -> None:
    for each in moment.members.values():
        if each.kind == "share":
            continue
        row, own = moment.view.groups[each.group], moment.look.clients[each.name]["generation"]
        is_classic = row["group_type"] == "classic"
        assert (row["generation"], row["group_epoch"]) == (
            (own, None) if is_classic else (None, own)
        ), each
        assert moment.newest.generation(each.group)["generation"] == own, moment.tail


def test_members_have_the_partitions_that_the_clients_say_they_own(moment: Moment) -> None:
    for group in living(moment):
        clients = {name: own for name, own in moment.look.clients.items() if own["group"] == group}
        rows = moment.newest.members(group)
        assert rows.keys() == clients.keys(), moment.tail
        assert {row["status"] for row in rows.values()} == {"ok"}, rows
        for name, own in clients.items():
            if moment.members[name].kind != "share":
                assert rows[name]["member_id"] == own["member_id"]
                assert assigned(rows[name]) == {tuple(place) for place in own["owned"]}, moment.tail


def test_members_of_share_groups_have_the_partitions_that_kafkas_tool_tells(moment: Moment) -> None:
    assert moment.look.shares

    for line in moment.look.shares:
        row = moment.newest.members(line["GROUP"])[line["CLIENT-ID"]]
        assert row["member_id"] == line["CONSUMER-ID"]
        assert row["member_epoch"] == number(line["MEMBER-EPOCH"])
        assert assigned(row) == places(line["ASSIGNMENT"]), moment.tail


def test_members_of_consumer_groups_are_those_of_kafkas_tool(moment: Moment) -> None:
    consumers = {
        name for name, each in moment.members.items() if each.kind not in ("share", "streams")
    }
    assert moment.described.members.keys() == consumers

    for name, line in moment.described.members.items():
        row = moment.newest.members(line["GROUP"])[name]
        is_classic = moment.view.groups[line["GROUP"]]["group_type"] == "classic"
        assert (row["member_id"], row["group_instance_id"] or "-") == (
            line["CONSUMER-ID"],
            line.get("GROUP-INSTANCE-ID", "-"),
        )
        assert assigned(row) == places(line["CURRENT-ASSIGNMENT"]), moment.tail
        assert row["member_epoch"] == number(line["CURRENT-EPOCH"])
        speaks_classic = moment.members[name].kind in CLASSIC
        assert (row["classic_protocols"] is not None) == (speaks_classic and not is_classic), row


def test_lag_is_the_one_that_kafkas_tool_tells(moment: Moment) -> None:
    consumers = {
        group
        for group, (kind, _, _) in moment.look.groups.items()
        if kind in ("Classic", "Consumer")
    }
    ours = {key: row for key, row in moment.view.partitions.items() if key[0] in consumers}
    assert ours
    check_lag_equals_tool(ours, moment.described.partitions, moment.tail)


def test_commits_are_those_of_the_clients_in_streams_groups_too(moment: Moment) -> None:
    ends = {
        (topic, part): each.log_end_offset or 0
        for (_, topic, part), each in moment.described.partitions.items()
    }
    described = {
        (moment.members[name].group, topic, part): (
            offset,
            ends.get((topic, part), offset + 1) - offset,
        )
        for name, positions in moment.positions.items()
        for topic, part, offset in positions
    }
    assert {"streams", "consumer", "range"} <= {
        moment.members[name].kind for name in moment.positions
    }
    ours = {
        key: (row["committed_offset"], row["lag"]) for key, row in moment.view.partitions.items()
    }
    assert {key: ours.get(key) for key in described} == described, moment.tail


def test_a_share_group_has_members_and_no_lag(moment: Moment) -> None:
    shares = {group for group, (kind, _, _) in moment.look.groups.items() if kind == "Share"}
    assert shares
    assert not [key for key in moment.view.partitions if key[0] in shares]
    rows = [moment.view.groups[group] for group in shares]
    assert {(row["lag"], row["lag_known"], row["partitions_total"]) for row in rows} == {
        (None, None, 0)
    }
