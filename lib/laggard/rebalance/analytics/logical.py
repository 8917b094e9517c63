"""Generations of one logical rebalance, found record by record, whatever the cuts into batches.

Members of a cooperative group that gave partitions up join again at once (KIP-429), and an epoch
may be superseded before all members reached it (KIP-848): what such records tell is one rebalance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from laggard.rebalance.analytics.closing import close_rebalance
from laggard.rebalance.analytics.opening import add_generation, is_whole, open_rebalance
from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.analytics.state import GONE, OpenRebalance, RebalanceState, Standing, stand
from laggard.rebalance.analytics.times import sync_seconds
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import Commit, Generation, PartitionFacts, Surroundings
from laggard.rebalance.parameters import RebalanceParameters

Partitions = Mapping[TopicPartition, PartitionFacts]


def advance(
    state: RebalanceState,
    events: Iterable[Generation | Commit],
    partitions: Partitions,
    surroundings: Surroundings,
    read_until: datetime,
    parameters: RebalanceParameters,
) -> tuple[list[Closed], RebalanceState]:
    """Return the rebalances that are over, and the state to continue from.

    `events` are the group's records of a batch in log order, `partitions` what was known before
    them, `read_until` the record time up to which the group's part of the offsets topic has been
    read.
    """
    work = _Work(state, dict(partitions), surroundings, parameters)
    for event in events:
        if work.settled_at is not None and work.settled_at < event.at:
            work.close(work.settled_at)
        if isinstance(event, Commit):
            work.add_commit(event)
        else:
            _add_generation(work, event)
    if work.settled_at is not None and work.settled_at <= read_until:
        work.close(work.settled_at)
    return work.closed, work.state


class _Work:
    """One group while a batch's records pass; a commit must not cost a scan of its partitions."""

    def __init__(
        self,
        state: RebalanceState,
        partitions: dict[TopicPartition, PartitionFacts],
        surroundings: Surroundings,
        parameters: RebalanceParameters,
    ) -> None:
        self.partitions = partitions
        self.parameters = parameters
        self.closed: list[Closed] = []
        self._surroundings = surroundings
        self.keep(state)

    @property
    def state(self) -> RebalanceState:
        if self._state.open is None:
            return self._state
        return replace(
            self._state, open=replace(self._state.open, pauses=tuple(self._pauses.values()))
        )

    def keep(self, state: RebalanceState) -> None:
        self._state = state
        self._pauses, self._awaited, self.settled_at = {}, 0, None
        if state.open is not None:
            self._pauses = {pause.place: pause for pause in state.open.pauses}
            self._awaited = sum(pause.is_awaited for pause in state.open.pauses)
            self.settled_at = settled_at(state.open, self.parameters)

    def close(self, at: datetime, following: Generation | None = None) -> None:
        done, state = close_rebalance(
            self.state, at, following, self._surroundings, self.parameters
        )
        if done is not None:
            self.closed.append(done)
        self.keep(state)

    def add_commit(self, commit: Commit) -> None:
        partition = (commit.topic, commit.partition)
        facts = self.partitions.get(partition, PartitionFacts())
        has_moved = facts.commit is None or commit.committed_offset > facts.commit.committed_offset
        progressed_at = commit.at if has_moved else facts.progressed_at
        self.partitions[partition] = replace(facts, commit=commit, progressed_at=progressed_at)
        before = self._pauses.get(partition)
        if before is None or self._state.open is None:
            return
        now = before.after(commit, is_after_end=self._state.open.ended_at is not None)
        self._pauses[partition] = now
        self._awaited -= before.is_awaited and not now.is_awaited
        if before.is_awaited and not self._awaited:
            self.keep(self.state)  # the last commit waited for: what settles it is known now


def belongs_to(
    rebalance: OpenRebalance, generation: Generation, parameters: RebalanceParameters
) -> bool:
    """Return True if a generation continues a rebalance.

    An epoch does until one is Stable; a generation where the one before took partitions away that
    nobody got yet, or where its join phase ended shortly after.
    """
    if generation.generation_kind != rebalance.last.generation_kind:
        return False
    if rebalance.ended_at is None or not rebalance.is_at_rest:
        return True
    if generation.generation_kind == "epoch":
        return False
    # without a state timestamp (record version below 2) the record's own time is the latest it can
    # be
    joined_at = generation.state_timestamp or generation.recorded_at
    return (joined_at - rebalance.ended_at).total_seconds() < merge_gap_seconds(
        rebalance.last, parameters
    )


def has_reached_limit(
    rebalance: OpenRebalance, generation: Generation, parameters: RebalanceParameters
) -> bool:
    """Return True if a rebalance has lasted so long that its row must not wait.

    The row would wait until the group is at rest.
    """
    return (
        generation.recorded_at - rebalance.opened_at
    ).total_seconds() > parameters.merge_limit_seconds


def merge_gap_seconds(generation: Generation, parameters: RebalanceParameters) -> float:
    """Return the longest gap in seconds after a generation within one rebalance."""
    return max(
        parameters.merge_sync_times * (sync_seconds(generation) or 0.0), parameters.merge_seconds
    )


def settled_at(rebalance: OpenRebalance, parameters: RebalanceParameters) -> datetime | None:
    """Find the time after which nothing more is to come.

    Every stopped partition has committed by then, and no generation can join it.

    None while that is open; at the latest some minutes after its end, as far as it has one.
    """
    ended_at = rebalance.ended_at
    if ended_at is None:
        return None
    given_up_at = ended_at + timedelta(seconds=parameters.give_up_seconds)
    awaits = bool(rebalance.last.members) and any(pause.is_awaited for pause in rebalance.pauses)
    if not rebalance.is_complete or awaits:
        return given_up_at
    gap = 0.0
    if rebalance.last.generation_kind == "classic":
        # a next generation whose join phase ended within the merge gap may still be in its sync
        # phase
        gap = parameters.settle_gaps * merge_gap_seconds(rebalance.last, parameters)
    last_at = ended_at + timedelta(seconds=gap)
    for pause in rebalance.pauses:
        if pause.seconds is not None and pause.resumed_at:
            last_at = max(last_at, pause.resumed_at)
    return min(given_up_at, last_at)


def _add_generation(work: _Work, generation: Generation) -> None:
    rebalance = work.state.open
    if generation.kind in {"create", "tombstone", "upgrade", "downgrade"}:
        # all keep what they have, or there is nobody: no rebalance
        work.close(generation.recorded_at)
        work.keep(replace(work.state, standing=_without_rebalance(work.state.standing, generation)))
    elif _is_known(work.state, generation):
        _renew(work, generation)
    else:
        _begin_or_go_on(work, rebalance, generation)


def _without_rebalance(standing: Standing | None, generation: Generation) -> Standing | None:
    """Return the group after a record that no rebalance writes.

    The departure of the last member of the new protocol turns a group into a classic one, whose
    members then rebalance (KIP-848): that member is still part of what was before.
    """
    if generation.kind == "tombstone":
        if standing is None:
            return None
        return replace(standing, generation_kind=GONE)
    now = stand(generation, generation.recorded_at, is_complete=True)
    if generation.kind != "downgrade" or standing is None or standing.generation_kind != GONE:
        return now
    staying = {member.member_id for member in now.members}
    departed = [member for member in standing.members if member.member_id not in staying]
    return replace(now, members=(*now.members, *departed), is_complete=standing.is_complete)


def _begin_or_go_on(work: _Work, rebalance: OpenRebalance | None, generation: Generation) -> None:
    if rebalance is not None and belongs_to(rebalance, generation, work.parameters):
        if not has_reached_limit(rebalance, generation, work.parameters):
            work.keep(
                replace(work.state, open=add_generation(rebalance, generation, work.parameters))
            )
            return
        flags = (*rebalance.flags, "merge_limit")
        work.keep(replace(work.state, open=replace(rebalance, flags=flags)))
    work.close(generation.recorded_at, generation)
    opened = open_rebalance(work.state, generation, work.partitions, work.parameters)
    work.keep(replace(work.state, open=opened))


def _is_known(state: RebalanceState, generation: Generation) -> bool:
    """Return True if the generation was recorded before.

    It is an epoch that is Stable now, or a static member's return.
    """
    known: list[int] = []
    if state.open is not None and state.open.last.generation_kind == generation.generation_kind:
        known += state.open.generations
    if state.standing is not None and state.standing.generation_kind == generation.generation_kind:
        known.append(state.standing.generation)
    return generation.generation in known


def _renew(work: _Work, generation: Generation) -> None:
    """Update the members; within a generation only a static member's id changes (KIP-345)."""
    rebalance, standing = work.state.open, work.state.standing
    if rebalance is None:
        if standing is not None:
            work.keep(replace(work.state, standing=replace(standing, members=generation.members)))
    elif generation.generation == rebalance.last.generation:
        if generation.stable_at is not None and rebalance.ended_at is None:
            rebalance = replace(rebalance, ended_at=generation.stable_at)
        elif generation.generation_kind == "classic":
            rebalance = replace(
                rebalance, before=_with_new_ids(rebalance.before, rebalance.last, generation)
            )
            generation = replace(rebalance.last, members=generation.members)
        whole = is_whole(generation, rebalance.before)
        work.keep(replace(work.state, open=replace(rebalance, last=generation, is_complete=whole)))


def _with_new_ids(before: Standing | None, last: Generation, now: Generation) -> Standing | None:
    """Return the former group with new ids of members that rejoined after the rebalance.

    These members did not replace the former ones.
    """
    ids = {member.group_instance_id: member.member_id for member in now.members}
    back = {
        member.member_id: ids.get(member.group_instance_id, "")
        for member in last.members
        if member.group_instance_id
    }
    if before is None or all(old == new for old, new in back.items()):
        return before
    members = [
        replace(member, member_id=back.get(member.member_id) or member.member_id)
        for member in before.members
    ]
    return replace(before, members=tuple(members))
