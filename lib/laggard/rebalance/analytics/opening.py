"""Logical rebalance from its first generation: values fixed at its begin, later additions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from operator import attrgetter

from laggard.rebalance.analytics.pauses import PartitionPause, begin_pause
from laggard.rebalance.analytics.state import OpenRebalance, RebalanceState, Standing, members_of
from laggard.rebalance.analytics.times import (
    find_start,
    is_straggling,
    known,
    longest_rebalance_timeout,
    seconds_between,
    sync_seconds,
    was_waited_for,
)
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import (
    Commit,
    Generation,
    MemberFacts,
    PartitionFacts,
    are_assignments_known,
    partitions_of,
)
from laggard.rebalance.parameters import RebalanceParameters
from laggard.rebalance.slots import compare_slots, name_slots, static_slots

Partitions = Mapping[TopicPartition, PartitionFacts]


def open_rebalance(
    state: RebalanceState,
    generation: Generation,
    partitions: Partitions,
    parameters: RebalanceParameters,
) -> OpenRebalance:
    """Return the rebalance that a generation begins."""
    standing, previous_at = _standing(state, generation)
    before = None if standing is None else standing.members
    newest = {partition: facts.commit for partition, facts in partitions.items()}
    last_commits = _last_commits(before or (), newest)
    staying = last_commits.keys() & set(map(attrgetter("member_id"), generation.members))
    start = find_start(
        generation,
        before,
        previous_at,
        [last_commits[member_id] for member_id in staying],
        parameters,
    )
    gaps = map(attrgetter("commit_gap_p95_seconds"), partitions.values())
    gap_p95 = max(known(gaps), default=None)
    interrupted: int | None = 0
    if not _is_first(generation):
        interrupted = _interrupted(generation)
    return OpenRebalance(
        source_offset=generation.source_offset,
        opened_at=generation.recorded_at,
        last=generation,
        generations=(generation.generation,),
        before=standing,
        start=start,
        ended_at=generation.ended_at,
        sync_seconds=sync_seconds(generation),
        interrupted=interrupted,
        live_read=generation.live_read,
        is_complete=is_whole(generation, standing),
        pauses=_begin_pauses(generation, standing, partitions),
        commit_gap_p95_seconds=gap_p95,
        straggler_slot=_straggler(
            before or (), generation, start.join_seconds, gap_p95, last_commits, parameters
        ),
        flags=_flags(generation, is_skewed=start.high is None),
    )


def _standing(
    state: RebalanceState, generation: Generation
) -> tuple[Standing | None, datetime | None]:
    """Find the roster to compare with, and the end of the rebalance behind it; None: unknown."""
    standing = state.standing
    if standing is not None and standing.generation_kind == generation.generation_kind:
        return standing, standing.ended_at
    if not _is_first(generation):
        return None, None  # the slots of two protocols have nothing in common
    empty = Standing(
        generation.generation_kind, 0, (), None, generation.recorded_at, is_complete=True
    )
    return empty, None


def _interrupted(generation: Generation) -> int | None:
    """Count rounds before it that never got to an assignment, by the numbers that no record has."""
    if generation.generation_gap is None:
        return None
    return generation.generation_gap - 1


def add_generation(
    rebalance: OpenRebalance, generation: Generation, parameters: RebalanceParameters
) -> OpenRebalance:
    """Return the rebalance with one more generation.

    Members that must rejoin do so at the end of the generation before.
    """
    before = rebalance.last.members
    join = seconds_between(generation.state_timestamp, rebalance.ended_at)
    last_commits = _last_commits(before, {pause.place: pause.newest for pause in rebalance.pauses})
    straggler = rebalance.straggler_slot or _straggler(
        before, generation, join, rebalance.commit_gap_p95_seconds, last_commits, parameters
    )
    gap = generation.generation_gap
    flags = _flags(generation, is_skewed=generation.state_timestamp is None)
    interrupted = None
    if gap is not None and rebalance.interrupted is not None:
        interrupted = rebalance.interrupted + gap - 1
    given_at = None
    if generation.rebalance_mode == "eager":
        given_at = rebalance.ended_at
    pauses = (pause.going_on(given_at, generation.recorded_at) for pause in rebalance.pauses)
    return replace(
        rebalance,
        last=generation,
        generations=(*rebalance.generations, generation.generation),
        ended_at=generation.ended_at,
        sync_seconds=_add_sync(rebalance, generation),
        interrupted=interrupted,
        live_read=rebalance.live_read and generation.live_read,
        is_complete=is_whole(generation, rebalance.before),
        pauses=tuple(pauses),
        straggler_slot=straggler,
        flags=tuple(dict.fromkeys([*rebalance.flags, *flags])),
        absent=tuple(sorted({*rebalance.absent, *_absent(rebalance)})),
        has_guests=rebalance.has_guests or _has_guests(rebalance),
    )


def _has_guests(rebalance: OpenRebalance) -> bool:
    """Return True if the newest generation has a member that was not there before the rebalance."""
    if rebalance.before is None:
        return False
    last = rebalance.last
    return bool(
        compare_slots(rebalance.before.members, last.members, by_member_id=last.by_member_id).joined
    )


def _absent(rebalance: OpenRebalance) -> set[str]:
    """Return static members that the newest generation lacks.

    A member restarted in time is in all generations (KIP-345, KIP-848).
    """
    return static_slots(members_of(rebalance.before)) - static_slots(rebalance.last.members)


def _is_first(generation: Generation) -> bool:
    """Return True if no generation was recorded before: the first members get number 1."""
    return generation.live_read and generation.generation == 1 and generation.generation_gap is None


def _add_sync(rebalance: OpenRebalance, generation: Generation) -> float | None:
    """Sync phases so far; a generation without members has none."""
    if generation.kind == "empty":
        return rebalance.sync_seconds
    sync = sync_seconds(generation)
    begins_here = rebalance.last.kind == "empty" and len(rebalance.generations) == 1
    if sync is None or begins_here:
        return sync
    if rebalance.sync_seconds is None:
        return None
    return rebalance.sync_seconds + sync


def is_whole(generation: Generation, before: Standing | None) -> bool:
    """Return True if every partition that was taken from a member has a new owner.

    Only a cooperative generation can leave that to the next one; a partition that nobody ever had
    is another matter.
    """
    members = generation.members
    if generation.rebalance_mode != "cooperative" or not members:
        return True
    if not are_assignments_known(members):
        return True
    taken = _taken(members, members_of(before))
    if taken is None:
        return not generation.partitions_unassigned
    return _are_given(members, taken)


def _taken(
    members: Iterable[MemberFacts], before: Iterable[MemberFacts]
) -> set[TopicPartition] | None:
    """Return partitions that members are to revoke, or had before; None if nothing is known."""
    revoked = known(map(attrgetter("pending_revocation"), members))
    assigned = known(map(attrgetter("assigned"), before))
    if not revoked and not assigned:
        return None
    return {*chain.from_iterable(revoked), *chain.from_iterable(assigned)}


def _are_given(members: Sequence[MemberFacts], partitions: set[TopicPartition]) -> bool:
    """Return True if every partition has an owner, or is of a topic without a subscriber."""
    wanted = {topic for member in members for topic in member.topics or ()}
    missing = partitions - partitions_of(members)
    return wanted.isdisjoint(topic for topic, _ in missing)


def _begin_pauses(
    generation: Generation, standing: Standing | None, partitions: Partitions
) -> tuple[PartitionPause, ...]:
    """Return pauses of partitions that were read and are not given up for good.

    There are none for history and empty groups.
    """
    if not generation.live_read or standing is None or not standing.members:
        return ()
    held = partitions_of(standing.members)
    if not are_assignments_known(standing.members):
        held |= partitions.keys()
    none, still = PartitionFacts(), sorted(_wanted(held, generation))
    return tuple(
        begin_pause(partition, partitions.get(partition, none), generation.recorded_at)
        for partition in still
    )


def _wanted(partitions: set[TopicPartition], generation: Generation) -> set[TopicPartition]:
    """Keep partitions of subscribed topics; the others do not pause, they end."""
    topics = [member.topics for member in generation.members]
    if not topics or None in topics:
        return partitions
    wanted = set(chain.from_iterable(known(topics)))
    return {partition for partition in partitions if partition[0] in wanted}


def _last_commits(
    members: Iterable[MemberFacts], newest: Mapping[TopicPartition, Commit | None]
) -> dict[str, datetime]:
    """Return the time of each member's newest commit, if any.

    `newest` has the newest commits of the partitions.
    """
    last_commits = {}
    for member in members:
        commits = known(map(newest.get, member.assigned or ()))
        if commits:
            last_commits[member.member_id] = max(map(attrgetter("at"), commits))
    return last_commits


def _straggler(
    before: Sequence[MemberFacts],
    generation: Generation,
    join_seconds: float | None,
    gap_p95: float | None,
    last_commits: Mapping[str, datetime],
    parameters: RebalanceParameters,
) -> str | None:
    """Return the slot that the join phase waited for in vain.

    Of several slots, return the one silent for longest.
    """
    if not generation.live_read or generation.generation_kind == "epoch":
        return None
    timeout = longest_rebalance_timeout(before)
    if (
        join_seconds is None
        or timeout is None
        or join_seconds < parameters.straggler_share * timeout
    ):
        return None
    slot, since = _longest_silent(before, generation, last_commits)
    silence = seconds_between(generation.state_timestamp, since)
    is_found = is_straggling(join_seconds, timeout, gap_p95, parameters) or was_waited_for(
        join_seconds, silence, timeout, gap_p95, parameters
    )
    return slot if is_found else None


def _longest_silent(
    before: Sequence[MemberFacts], generation: Generation, last_commits: Mapping[str, datetime]
) -> tuple[str | None, datetime | None]:
    """Return the slot of the longest-silent member that left, and its last commit, if any."""
    slot_of = name_slots(before, by_member_id=False)
    missing = set(compare_slots(before, generation.members, by_member_id=False).left)
    never = datetime.min.replace(tzinfo=generation.recorded_at.tzinfo)
    silent = [
        (last_commits.get(member.member_id, never), slot_of[member.member_id]) for member in before
    ]
    since, slot = min((entry for entry in silent if entry[1] in missing), default=(never, None))
    if since == never:
        return slot, None
    return slot, since


def _flags(generation: Generation, *, is_skewed: bool) -> tuple[str, ...]:
    flags = [] if generation.live_read else ["bootstrap"]
    if is_skewed and generation.generation_kind == "classic" and generation.kind == "sync":
        is_old = generation.record_version is not None and generation.record_version < 2
        flags.append("old_record" if is_old else "skew")
    return tuple(flags)
