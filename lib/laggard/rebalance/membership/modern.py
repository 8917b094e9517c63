"""Records of consumer, share and streams groups, folded singly; epochs recorded once done.

An epoch is recorded when reached or superseded.

Source: the replay methods of Kafka's GroupMetadataManager (KIP-848, KIP-932, KIP-1071).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from laggard.rebalance.facts import Generation
from laggard.rebalance.membership.epochs import bump_epoch, close_epoch, tell_epoch, tell_member
from laggard.rebalance.membership.folded import Folding, Member
from laggard.rebalance.membership.group_facts import is_reconciled, resolve
from laggard.rebalance.membership.history import Step

_METADATA = (
    "group_instance_id", "client_id", "client_host", "rack", "session_timeout_ms",
    "rebalance_timeout_ms", "topics",
    "regex", "server_assignor", "classic_protocols",
)  # fmt: skip
_CURRENT = (
    "member_epoch",
    "previous_member_epoch",
    "member_state",
    "assigned",
    "pending_revocation",
)


def fold_modern(work: Folding, step: Step) -> None:
    """Fold one described record; a record of another kind of group replaces the present group."""
    kind, role = step.found["group_type"], step.found["role"]
    if not step.found["is_tombstone"]:
        work.begin(kind)
        fold = _VALUES.get(role)
    elif role == "epoch":
        fold = _end if work.state.group_type in (None, kind) else None
    else:
        fold = _TOMBSTONES.get(role)
        if work.state.group_type != kind:  # tombstones may still follow for a deleted group
            fold = None
    if fold is not None:
        fold(work, step)


def _target_epoch(work: Folding, step: Step) -> None:
    state, epoch = work.state, work.state.epoch
    state.assignment_epoch = step.found.get("assignment_epoch")
    if state.assignment_epoch is None or epoch is None or not epoch.is_open:
        return
    if epoch.assigned_at is None and state.assignment_epoch >= epoch.number:
        epoch.assigned_at = step.record["record_timestamp"]


def _member(work: Folding, step: Step) -> None:
    state, member_id = work.state, step.found["member_id"]
    member = state.members.setdefault(member_id, Member(member_id))
    for name in _METADATA:
        setattr(member, name, step.found[name])
    old = state.departed.pop(member.group_instance_id or "", None)
    if old is not None:  # KIP-848: a static member that rejoins takes over without a new epoch
        member.replaced_member_id = old
        state.roster = list(state.roster or ())
        for index, other in enumerate(state.roster):
            if other.member_id == old:
                state.roster[index] = member.identity
        place = step.history.place(work.group, "epoch", step.record)
        names = {
            "member_id": member_id,
            "slot": member.group_instance_id,
            "held": work.held.pop(old, None),
        }
        step.history.replacements.append(
            {**place, **names, "session_timeout_ms": member.session_timeout_ms}
        )


def _member_gone(work: Folding, step: Step) -> None:
    member = work.state.members.get(step.found["member_id"])
    if member is None:
        return
    tell_member(work, member, step.history)
    del work.state.members[member.member_id]
    if member.group_instance_id is not None:
        work.state.departed[member.group_instance_id] = member.member_id


def _current(work: Folding, step: Step) -> None:
    state, member_id = work.state, step.found["member_id"]
    # compaction may leave the newest type 5 after the newest type 8
    member = state.members.setdefault(member_id, Member(member_id))
    for name in _CURRENT:
        setattr(member, name, step.found[name])
    if state.epoch is None:
        return
    if not state.epoch.is_open:
        # the first record of a static member that took over is what the other one left, without an
        # epoch
        if member.replaced_member_id is not None and member.is_reconciled(state.assignment_epoch):
            tell_member(work, member, step.history)
            tell_epoch(
                work, step.history, step.record["source_offset"], step.record["record_timestamp"]
            )
    # only a member's own step ends an epoch: after tombstones the next epoch follows in the same
    # operation
    elif (
        state.epoch.number == state.assignment_epoch
        and member.is_reconciled(state.assignment_epoch)
        and is_reconciled(state)
    ):
        close_epoch(work, step.history, step.record["record_timestamp"])
        tell_epoch(
            work, step.history, step.record["source_offset"], step.record["record_timestamp"]
        )


def _current_gone(work: Folding, step: Step) -> None:
    member = work.state.members.get(step.found["member_id"])
    if member is not None:
        tell_member(work, member, step.history)  # its last word in this epoch
        work.held[member.member_id] = resolve(work.state, member.assigned, step.history.topics)
        for name in _CURRENT:
            setattr(member, name, None)


def _regex(work: Folding, step: Step) -> None:
    work.state.regexes[step.found["regex"]] = step.found["topics"]


def _regex_gone(work: Folding, step: Step) -> None:
    work.state.regexes.pop(step.found["regex"], None)


def _names(work: Folding, step: Step) -> None:
    names = step.found.get("topic_names", ())
    work.state.topic_names = dict(map(itemgetter("topic_id", "topic"), names))


def _topology(work: Folding, step: Step) -> None:
    work.state.topology_epoch = step.found.get("topology_epoch")
    work.state.subtopologies = {
        subtopology["subtopology_id"]: subtopology
        for subtopology in step.found.get("subtopologies", ())
    }


def _end(work: Folding, step: Step) -> None:
    state, history, kind = work.state, step.history, step.found["group_type"]
    close_epoch(work, history, None)
    if state.was_type != kind:
        columns = {
            "kind": "tombstone",
            "group_type": kind,
            "status": "ok",
            "live_read": history.tick.is_caught_up,
        }
        row = history.place(work.group, "epoch", step.record) | columns
        history.generations.append(row)
        ended = Generation(
            "epoch",
            "tombstone",
            state.epoch_number or 0,
            row["source_offset"],
            row["record_timestamp"],
            row["live_read"],
        )
        history.add_fact(work.group, row["source_offset"], ended)
    if state.group_type is not None:
        work.end(state.epoch_number)


_Fold = Callable[[Folding, Step], None]
# a record of another role moves the group's offset, no more
_VALUES: dict[str, _Fold] = {
    "epoch": bump_epoch,
    "target_epoch": _target_epoch,
    "member": _member,
    "current": _current,
    "regex": _regex,
    "names": _names,
    "topology": _topology,
}
_TOMBSTONES: dict[str, _Fold] = _VALUES | {
    "member": _member_gone,
    "current": _current_gone,
    "regex": _regex_gone,
}
