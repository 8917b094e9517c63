"""Answers of every version of the protocol are read; what an older one lacks is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse

from laggard.names import NameFilter
from laggard.rebalance.membership.described import describe_classic, describe_consumer
from laggard.sources.brokers import Brokers, as_dict
from laggard.sources.groups.coordinator_answers import ConsumerGroupDescribeResponse, _with_blobs
from laggard.sources.groups.coordinators import Coordinators
from sources.stub_cluster import APIS, stub_cluster


def versions(response: Any) -> range:
    least, newest = response.valid_versions
    return range(least, newest + 1)


def received(response: Any, version: int) -> Any:
    """The one group of an answer as a broker of this version sends it."""
    response.API_VERSION = version
    return type(response).decode(response.encode(), version=version).groups[0]


@pytest.mark.parametrize("version", versions(ListGroupsResponse))
def test_a_listed_group_has_every_key_and_null_where_its_broker_says_nothing(version: int) -> None:
    group = ListGroupsResponse.ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    row = as_dict(received(ListGroupsResponse(error_code=0, groups=[group]), version))
    named = {"group_id": "g", "protocol_type": "consumer"}
    unknown: dict[str, str | None] = {"group_state": None, "group_type": None}
    if version >= 4:
        unknown["group_state"] = "Stable"
    if version >= 5:
        unknown["group_type"] = "classic"
    assert row == named | unknown


@pytest.mark.parametrize("version", versions(DescribeGroupsResponse))
def test_a_classic_group_of_any_version_is_described(version: int) -> None:
    kind = DescribeGroupsResponse.DescribedGroup
    member = kind.DescribedGroupMember(
        member_id="m-1", group_instance_id="i", client_id="c", client_host="/h"
    )
    group = kind(group_id="g", group_state="Stable", protocol_type="consumer", members=[member])
    described = describe_classic(
        _with_blobs(received(DescribeGroupsResponse(groups=[group]), version))
    )
    (only,) = described["members"]
    assert (only["member_id"], only["group_instance_id"]) == (
        "m-1",
        "i" if version >= 4 else None,
    )


@pytest.mark.parametrize("version", versions(ConsumerGroupDescribeResponse))
def test_a_group_of_the_new_protocol_of_any_version_is_described(version: int) -> None:
    kind = ConsumerGroupDescribeResponse.DescribedGroup
    group = kind(group_id="g", group_state="Stable", group_epoch=3, members=[])
    described = describe_consumer(
        as_dict(received(ConsumerGroupDescribeResponse(groups=[group]), version))
    )
    assert (described["group_epoch"], described["members"]) == (3, [])


def test_groups_of_brokers_that_name_no_type_are_listed_and_asked_for() -> None:
    assert APIS[16][1] < 4  # neither state nor type
    with stub_cluster() as cluster:
        brokers = Brokers(cluster.addresses, 5)
        try:
            brokers.metadata(None)
            asked = Coordinators(brokers, NameFilter(), 2.0).ask([0, 1, 2])
        finally:
            brokers.close()
    assert asked.groups.select(["group", "group_state", "group_type"]).to_pylist() == [
        {"group": f"of-{number}", "group_state": None, "group_type": None} for number in range(3)
    ]
    assert asked.unlisted == []
    assert {api for api, _ in asked.errors} <= {"offset_fetch", "describe_groups"}
