"""Columns of `group_status` for a modern group, derived from records as the broker does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sized
from itertools import chain
from operator import itemgetter
from typing import Any

from laggard.rebalance.membership.folded import Folded, Member
from laggard.rebalance.topics import Topics

# what group_status keeps of a group between two ticks, beside the whole in `folded`
KEPT = (
    "group_type", "protocol_type", "assignor", "rebalance_mode", "generation", "group_epoch",
    "assignment_epoch",
    "members", "static_members", "idle_members", "assignment_imbalance", "topics", "record_state",
    "offsets_partition",
    "group_record_offset", "generations_total", "is_held",
)  # fmt: skip
# KIP-848 and KIP-1071 hand over one partition at a time; a share group's partitions have many
# owners
_MODES = {"consumer": "incremental", "streams": "incremental", "share": None}


def modern_facts(group: Folded) -> dict[str, Any]:
    """Return columns of `group_status` for a modern group."""
    members = list(group.members.values())
    return {
        "group_type": group.group_type,
        "protocol_type": group.group_type,  # the same word in ListGroups
        "assignor": preferred_assignor(group),
        "rebalance_mode": rebalance_mode(group.group_type, members),
        "group_epoch": group.epoch_number,
        "assignment_epoch": group.assignment_epoch,
        "members": len(members),
        "static_members": sum(member.group_instance_id is not None for member in members),
        "idle_members": sum(not member.assigned for member in members),
        "assignment_imbalance": imbalance(map(_size, members)),
        "topics": group_topics(group),
        "record_state": derive_state(group),
    }


def rebalance_mode(group_type: str | None, members: Sized) -> str | None:
    """Return the mode of a modern group; None without members."""
    if not members:
        return None
    return _MODES[group_type or ""]


def _size(member: Member) -> int:
    return sum(len(topic["partitions"]) for topic in member.assigned or ())


def imbalance(partitions: Iterable[int]) -> float | None:
    """Return the largest number of partitions of a member / the mean over members.

    None if no member has any.
    """
    counts = list(partitions)
    if not any(counts):
        return None
    return max(counts) * len(counts) / sum(counts)


def derive_state(group: Folded) -> str:
    """Return the state by the broker's rule, where the first match wins.

    The rule is maybeUpdateGroupState of ConsumerGroup and siblings.
    """
    if not group.members:
        return "Empty"
    if group.group_type == "share":
        return "Stable"  # ShareGroup knows these two only
    # a broker before 4.2 writes no validated epoch: whether the topology is ready is then not known
    validated = group.validated_topology_epoch
    if (
        validated is not None
        and group.topology_epoch is not None
        and validated != group.topology_epoch
    ):
        return "NotReady"
    assigned = group.assignment_epoch
    if assigned is None:
        assigned = -1
    if (group.epoch_number or 0) > assigned:
        return "Assigning"
    if is_reconciled(group):
        return "Stable"
    return "Reconciling"


def is_reconciled(group: Folded) -> bool:
    """Return True if every member has reached the target assignment."""
    return all(member.is_reconciled(group.assignment_epoch) for member in group.members.values())


def group_topics(group: Folded) -> list[str] | None:
    """Return the subscribed topics of all members; None while one of them is unknown."""
    if group.group_type == "streams" and group.members:
        parts = group.subtopologies.values()
        if not parts or any(map(itemgetter("has_regex"), parts)):
            return None
        return sorted({topic for part in parts for topic in part["topics"]})
    subscribed: set[str] = set()
    for member in group.members.values():
        topics = member_topics(group, member)
        if topics is None:
            return None
        subscribed.update(topics)
    return sorted(subscribed)


def member_topics(group: Folded, member: Member) -> list[str] | None:
    """Return named topics and those of the expression (type 16); None while it is unresolved."""
    if member.topics is None:
        return None
    if member.regex is None:
        return member.topics
    resolved = group.regexes.get(member.regex)
    if resolved is None:
        return None
    return sorted({*member.topics, *resolved})


def resolve(
    group: Folded, held: list[dict[str, Any]] | None, topics: Topics
) -> list[dict[str, Any]] | None:
    """Return partitions with topic names; an unknown name is None, and the partition stays."""
    if held is None:
        return None
    find = _tasks if group.group_type == "streams" else _partitions
    named = chain.from_iterable(find(group, part, topics) for part in held)
    return [{"topic": topic, "partition": number} for topic, number in named]


def _partitions(
    group: Folded, held: dict[str, Any], topics: Topics
) -> list[tuple[str | None, int]]:
    number = held["source"]
    topic = group.topic_names.get(number) or topics.names.get(number)
    return [(topic, partition) for partition in held["partitions"]]


def _tasks(group: Folded, held: dict[str, Any], topics: Topics) -> list[tuple[str | None, int]]:
    """Return a task's partitions: its number in every topic of its subtopology that has it.

    A topic counts if it has that many partitions.
    """
    # without one, its topics are not known either
    subtopology = group.subtopologies.get(held["source"], {"has_regex": True})
    sources = [] if subtopology["has_regex"] else subtopology["topics"]
    if not sources or (len(sources) > 1 and set(sources) - topics.partitions.keys()):
        return [(None, partition) for partition in held["partitions"]]
    return [
        (topic, partition)
        for partition in held["partitions"]
        for topic in sources
        if len(sources) == 1 or partition < topics.partitions[topic]
    ]


def preferred_assignor(group: Folded) -> str | None:
    """Return the assignor that most members ask for (ConsumerGroup.preferredServerAssignor).

    When none asks, the broker's first one is used, and no record says which that is.
    """
    wanted = (member.server_assignor for member in group.members.values() if member.server_assignor)
    votes = Counter(wanted).most_common(2)
    if len(votes) == 1 or (votes and votes[0][1] > votes[1][1]):
        return votes[0][0]
    return None
