"""Groups as coordinators describe them, where the offsets topic is not read.

That is with `cluster.source = "admin"`.

A description is a state and no history: it has no generation number of a classic group, and does
not say when a rebalance began. So nothing here makes rows of `generations`, `group_members` or
`rebalances`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from typing import Any

from laggard.lag.tick import Tick
from laggard.rebalance.facts import IDENTITY, columns_of, identities
from laggard.rebalance.membership.folded import Folded, Member
from laggard.rebalance.membership.generations import describe_generation
from laggard.rebalance.membership.group_facts import KEPT, imbalance
from laggard.rebalance.membership.history import History
from laggard.rebalance.membership.records import Known
from laggard.rebalance.topics import Topics

Row = Mapping[str, Any]

_NOT_ASKED = {"session_timeout": None, "rebalance_timeout": -1}


def describe_classic(answer: Row) -> dict[str, Any]:
    """Describe one group of a DescribeGroups response (as a dict).

    Its members have the blobs of the group's record, so they are read as those are; they are empty
    unless the group is Stable, and then topics and assignments are unknown.
    """
    generation = describe_generation(
        {
            "protocol_type": answer["protocol_type"] or "",
            "protocol": answer["protocol_data"] or None,
            "generation": None,
            "leader": None,
            "current_state_timestamp": -1,
            "members": list(map(_as_recorded, answer["members"])),
        }
    )
    return {
        "group_type": "classic",
        "protocol_type": generation["protocol_type"],
        "assignor": generation["assignor"],
        "rebalance_mode": generation["rebalance_mode"],
        "topics": generation["topics"],
        "members": [columns_of(row, (*IDENTITY, "assigned")) for row in generation["member_rows"]],
    }


def _as_recorded(member: Row) -> Row:
    blobs = {
        "subscription": member["member_metadata"] or b"",
        "assignment": member["member_assignment"] or b"",
    }
    return columns_of(member, IDENTITY) | _NOT_ASKED | blobs


def describe_consumer(answer: Row) -> dict[str, Any]:
    """Describe one group of a ConsumerGroupDescribe response (KIP-848)."""
    members, assignor, mode, topics = answer["members"], None, None, None
    if members:
        assignor, mode = answer["assignor_name"] or None, "incremental"
    if not any(map(itemgetter("subscribed_topic_regex"), members)):
        topics = sorted({name for member in members for name in member["subscribed_topic_names"]})
    return {
        "group_type": "consumer",
        "protocol_type": "consumer",
        "assignor": assignor,
        "rebalance_mode": mode,
        "group_epoch": answer["group_epoch"],
        "assignment_epoch": answer["assignment_epoch"],
        "topics": topics,
        "members": list(map(_describe_member, members)),
    }


def _describe_member(member: Row) -> dict[str, Any]:
    return {
        "member_id": member["member_id"],
        "group_instance_id": member["instance_id"],
        "client_id": member["client_id"],
        "client_host": member["client_host"],
        "assigned": [
            {"topic": topic["topic_name"], "partition": partition}
            for topic in member["assignment"]["topic_partitions"]
            for partition in topic["partitions"]
        ],
    }


def take_descriptions(
    known: Mapping[str, dict[str, Any]],
    described: Mapping[str, str],
    gone: Collection[str],
    topics: Topics,
    tick: Tick,
) -> Known:
    """Return groups after a poll.

    `known`: columns `KEPT` so far. `described`: descriptions as JSON, by group.

    A group that is not described stays as it was known; what is unchanged is not taken again.
    """
    facts = {group: dict(columns) for group, columns in known.items() if group not in gone}
    folded: dict[str, dict[str, Any] | None] = {}
    for group, text in described.items():
        before, number = facts.get(group, {}), zlib.crc32(text.encode())
        if before.get("group_record_offset") != number:
            description = json.loads(text)
            facts[group] = _facts(description, before) | {"group_record_offset": number}
            folded[group] = _folded(description).to_row()
    return Known(facts, folded, History(tick, topics))


def _facts(description: Row, before: Row) -> dict[str, Any]:
    # nobody ever joined: its offsets are all there is
    if not description["members"] and not description["protocol_type"]:
        return {**dict.fromkeys(KEPT), "is_held": False}
    members = description["members"]
    held = list(map(itemgetter("assigned"), members))
    balance: dict[str, Any] = {}
    if None not in held and description["topics"] is not None:
        balance = {
            "idle_members": held.count([]),
            "assignment_imbalance": imbalance(map(len, held)),
        }
    names = (
        "group_type",
        "protocol_type",
        "assignor",
        "rebalance_mode",
        "group_epoch",
        "assignment_epoch",
    )
    topics = description["topics"]
    if topics is None and members:
        topics = before.get("topics")  # in a rebalance nothing is said of them: they stay the same
    return {
        **dict.fromkeys(KEPT),
        **columns_of(description, names),
        "members": len(members),
        "static_members": sum(member["group_instance_id"] is not None for member in members),
        **balance,
        "topics": topics,
        "is_held": False,
    }


def _folded(description: Row) -> Folded:
    """Return the group with its members and partitions; a topic's name stands for its id too."""
    members: dict[str, Member] = {}
    names: dict[str, str] = {}
    for row in description["members"]:
        assigned = _by_topic(row["assigned"])
        members[row["member_id"]] = Member(**columns_of(row, IDENTITY), assigned=assigned)
        for topic in assigned or ():
            names[topic["source"]] = topic["source"]
    return Folded(
        group_type=description["group_type"],
        assignment_epoch=description.get("assignment_epoch"),
        members=members,
        roster=identities(description["members"]),
        topic_names=names,
    )


def _by_topic(assigned: Iterable[Row] | None) -> list[dict[str, Any]] | None:
    if assigned is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for partition in assigned:
        by_topic.setdefault(partition["topic"], []).append(partition["partition"])
    return [{"source": topic, "partitions": partitions} for topic, partitions in by_topic.items()]
