"""Rolling deploys, which replace nearly all members once, and net changes of member count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from laggard.diagnosis.history.frames import GroupFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.rebalances import Logical
from laggard.diagnosis.signals.rosters import (
    EVICTION_REASONS,
    RETURN_SECONDS,
    Change,
    Eviction,
    pattern,
)
from laggard.rebalance.parameters import DEFAULTS

SUSPECTED, RUNNING, OVER = "suspected", "running", "over"
_DEPLOY_BATCH_SECONDS = fixed("deploy_batch_seconds", 10.0, "s between departures of one batch")
_DEPLOY_QUIET_SECONDS = fixed("deploy_quiet_seconds", 60.0, "s without a change, at least")
_DEPLOY_QUIET_GAPS = fixed("deploy_quiet_gaps", 2, "mean gaps between batches without a change")
_DEPLOY_NEXT_SHARE = fixed(
    "deploy_next_share", 0.5, "of that rest, after which places left again are the next deploy"
)
_DEPLOY_BATCHES = fixed("deploy_batches", DEFAULTS.deploy_batches, "batches")
_DEPLOY_SIZE_SHARE = fixed(
    "deploy_size_share", 0.1, "of the slots, by which the number of members may change"
)
# given up for good, each for one of its like on another host: so many are never a few faults
_SUSPECT_PLACES = fixed("suspect_places", 3, "places")
_REST_WINDOWS = fixed("rest_windows", 3, "windows after the quiet, in which a deploy still vetoes")
# it is none, where a fault is claimed between several
_HARDLY_DEPLOY = fixed("hardly_deploy", 0.1, "probability of a deploy")


@dataclass(frozen=True, slots=True)
class Deploy:
    """One rolling replacement of a group's members.

    `quiet_at` is the time at which it counts as over if no further change comes.
    """

    state: str
    started_at: datetime
    ended_at: datetime  # the newest change
    quiet_at: datetime
    batches: int
    slots: int  # members before
    replaced: int
    static: int  # of these, static members that rejoined without a rebalance
    generations: int
    rebalance_ids: tuple[str, ...]
    rebalances: int
    mode: str  # rebalance mode, "" unknown

    @property
    def share(self) -> float:
        return self.replaced / self.slots

    @property
    def static_share(self) -> float:
        return self.static / self.replaced


def find_deploys(
    frame: GroupFrame,
    changes: Sequence[Change],
    rebalances: Sequence[Logical],
    parameters: Parameters,
) -> tuple[Deploy, ...]:
    """Return the deploys of the frame's 24 hours, oldest first.

    Suspected deploys that were not confirmed are left out.
    """
    runs = _runs(_without_faults(frame, changes, parameters), parameters)
    found = (_deploy_of(frame, run, rebalances, parameters) for run in runs)
    return tuple(each for each in found if each is not None)


def vetoing_deploy(
    frame: GroupFrame, deploys: Sequence[Deploy], parameters: Parameters
) -> Deploy | None:
    """Return the deploy that explains rebalances now.

    It holds until three windows after `quiet_at`, at most 45 min in all.
    """
    now = frame.now
    rest = timedelta(seconds=_REST_WINDOWS * frame.window_seconds)
    for deploy in reversed(deploys):
        age = (now - deploy.started_at).total_seconds()
        if now <= deploy.quiet_at + rest and age <= parameters.deploy_limit_seconds:
            return deploy
    return None


def _without_faults(
    frame: GroupFrame, changes: Sequence[Change], parameters: Parameters
) -> list[Change]:
    """Return changes without known faults, and mark returns from them.

    Static members send no LeaveGroup request when they restart.
    """
    faults = {
        generation
        for row in frame.rebalances
        if row["cause"] != "static_expired"
        and _is_fault(dict(row["cause_posterior"] or {}), parameters)
        for generation in row["generations"]
    }
    found, away = [], set[str]()
    for each in changes:
        if each.generation is not None and each.generation in faults:
            away |= {*each.left}
        else:
            away -= {*each.left}  # who leaves was there
            found.append(
                replace(each, returned=tuple(place for place in each.joined if place in away))
            )
        away -= {*each.joined}
    return found


def _is_fault(posterior: dict[str, float], parameters: Parameters) -> bool:
    """Return True if members were evicted by one claimed reason, or by all together.

    The latter sums all eviction reasons.
    """
    claimed = [posterior.get(each, 0.0) for each in EVICTION_REASONS]
    is_hardly_deploy = posterior.get("deploy", 1.0) < _HARDLY_DEPLOY
    return max(claimed[:2]) >= parameters.cause_posterior or (
        is_hardly_deploy and sum(claimed) >= parameters.cause_posterior
    )


def _runs(known: Sequence[Change], parameters: Parameters) -> list[list[Change]]:
    """Return runs of changes, cut where the group was quiet for long enough.

    That is twice the mean gap of batches, or ten min after a single batch.
    """
    runs: list[list[Change]] = []
    for change in known:
        is_change = change.joined or change.left or change.restarted
        # a group that comes to life
        is_first = change.before == 0 and change.generation is not None
        if not is_change or is_first:
            continue
        if runs and _goes_on(runs[-1], change, parameters):
            runs[-1].append(change)
        else:
            runs.append([change])
    return runs


def _goes_on(run: Sequence[Change], change: Change, parameters: Parameters) -> bool:
    """Return True if a change belongs to a run.

    Members that leave again after some rest belong to the next deploy.
    """
    rest = (change.at - run[-1].at).total_seconds()
    quiet = quiet_seconds(run)
    gone = {place for each in run for place in (*each.left, *each.restarted)}
    is_next_round = (
        bool(gone & {*change.left, *change.restarted})
        and rest > _DEPLOY_NEXT_SHARE * quiet
        and len(_batches(run)) > 1
    )
    is_near = (change.at - run[0].at).total_seconds() <= parameters.deploy_limit_seconds
    return rest <= quiet and is_near and not is_next_round


def quiet_seconds(run: Sequence[Change]) -> float:
    """Return the quiet time in seconds after which a run of changes is over."""
    batches = _batches(run)
    if len(batches) < _DEPLOY_BATCHES:
        return RETURN_SECONDS
    gaps = (batches[-1][0] - batches[0][0]).total_seconds() / (len(batches) - 1)
    return max(_DEPLOY_QUIET_GAPS * gaps, _DEPLOY_QUIET_SECONDS)


def _batches(run: Iterable[Change]) -> list[tuple[datetime, int]]:
    """Return the time and the size of each batch of departures."""
    found: list[tuple[datetime, int]] = []
    last: datetime | None = None
    for change in run:
        size = len(change.left) + len(change.restarted)
        if not size:
            continue
        if last is not None and (change.at - last).total_seconds() < _DEPLOY_BATCH_SECONDS:
            found[-1] = (found[-1][0], found[-1][1] + size)
        else:
            found.append((change.at, size))
        last = change.at
    return found


def _deploy_of(
    frame: GroupFrame, run: Sequence[Change], rebalances: Sequence[Logical], parameters: Parameters
) -> Deploy | None:
    """Return a run of changes as a deploy; None if it is no deploy, or ended too early.

    It ended too early if that was before nearly all members were replaced.
    """
    slots, _ = _sizes(frame, run)
    replaced = sum(len(change.restarted) for change in run) + _paired(run)
    state = _state_of(frame, run, replaced, parameters)
    if not state:
        return None
    begin, end = run[0].at, run[-1].at
    within = [each for each in rebalances if begin <= each.ended_at <= end]
    return Deploy(
        state=state,
        started_at=begin,
        ended_at=end,
        quiet_at=end + timedelta(seconds=quiet_seconds(run)),
        batches=len(_batches(run)),
        slots=slots,
        replaced=min(replaced, slots),
        static=sum(len(change.restarted) for change in run if change.generation is None),
        generations=sum(change.generation is not None for change in run),
        rebalance_ids=tuple(each.rebalance_id for each in within if each.rebalance_id),
        rebalances=len(within),
        mode=_rebalance_mode(frame),
    )


def _rebalance_mode(frame: GroupFrame) -> str:
    modes = [row["rebalance_mode"] for row in frame.generations if row.get("rebalance_mode")]
    return modes[-1] if modes else ""


def _state_of(
    frame: GroupFrame, run: Sequence[Change], replaced: int, parameters: Parameters
) -> str:
    """Return state of a run of changes as a deploy; "" if it is none."""
    slots, after = _sizes(frame, run)
    if not _is_rolling(run, _batches(run), slots, parameters) or replaced < _least_replaced(
        run, slots, parameters
    ):
        return ""
    is_quiet = frame.now >= run[-1].at + timedelta(seconds=quiet_seconds(run))
    is_whole = replaced >= parameters.deploy_share * slots
    if not is_quiet:
        return RUNNING if is_whole else SUSPECTED
    return OVER if is_whole and abs(after - slots) <= _DEPLOY_SIZE_SHARE * slots else ""


def _is_rolling(
    run: Sequence[Change],
    batches: Sequence[tuple[datetime, int]],
    slots: int,
    parameters: Parameters,
) -> bool:
    """Return True if members left in several batches, hardly any member twice.

    No batch may contain too many members.
    """
    gone = Counter(place for change in run for place in (*change.left, *change.restarted))
    # a place that is left twice, or that was new in this very run, is no part of a deploy
    extra = sum(count - 1 for count in gone.values()) + sum(_was_new(place, run) for place in gone)
    return (
        slots >= 2
        and len(batches) >= _DEPLOY_BATCHES
        and all(size <= max(1, parameters.deploy_batch * slots) for _, size in batches)
        and extra <= (1 - parameters.deploy_share) * sum(gone.values())
    )


def _least_replaced(run: Sequence[Change], slots: int, parameters: Parameters) -> float:
    """Return the number of members that a run must have replaced to look like a deploy."""
    least = parameters.deploy_suspect_share * slots
    joined = {place for change in run for place in change.joined}
    returned = any(change.restarted or not joined.isdisjoint(change.left) for change in run)
    return least if returned else min(least, _SUSPECT_PLACES)


def _sizes(frame: GroupFrame, run: Sequence[Change]) -> tuple[int, int]:
    """Return members before and after.

    Both are the present number if the generation is older than the frame.
    """
    numbered = [change for change in run if change.generation is not None]
    if not numbered:
        now = int(frame.fact.get("members") or len({row["slot"] for row in frame.members}))
        return now, now
    return numbered[0].before, numbered[-1].after


def _paired(run: Sequence[Change]) -> int:
    """Return the number of members that left and were replaced by similar members.

    Similar means the pattern of their client ids.

    A member that returns from a fault replaces nobody.
    """
    left = Counter(pattern(place) for change in run for place in change.left)
    joined = Counter(
        pattern(place) for change in run for place in change.joined if place not in change.returned
    )
    return sum((left & joined).values())


def _was_new(place: str, run: Sequence[Change]) -> bool:
    """Return True if the member identity joined in the run before it first left."""
    for change in run:
        if place in change.left or place in change.restarted:
            return False
        if place in change.joined:
            return True
    return False


# a change that is undone at once is a restart and no scaling
STEP_SECONDS = fixed("step_seconds", 120.0, "s")
SWING_SECONDS = fixed("swing_seconds", 3600.0, "s in which members are added and removed in turn")


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A net change of members without replacement."""

    at: datetime  # of its last record
    before: int
    after: int
    joined: tuple[str, ...]  # places
    left: tuple[str, ...]

    @property
    def is_up(self) -> bool:
        """True if members were added."""
        return self.after > self.before


def find_scale_events(
    changes: Sequence[Change], deploys: Sequence[Deploy], evictions: Iterable[Eviction]
) -> tuple[ScaleEvent, ...]:
    """Return the scale events, oldest first; deploys, evictions and restarts do not count."""
    steps = _net_changes(changes, deploys)
    restarted = restarts(steps, {each.at for each in evictions})
    found: list[ScaleEvent] = []
    for each in steps:
        if each.at in restarted:
            continue
        whole = ScaleEvent(each.at, each.before, each.after, each.joined, each.left)
        last = found[-1] if found else None
        if (
            last is not None
            and last.is_up == whole.is_up
            and (each.at - last.at).total_seconds() <= STEP_SECONDS
        ):
            joined, left = (*last.joined, *each.joined), (*last.left, *each.left)
            found[-1] = ScaleEvent(each.at, last.before, each.after, joined, left)
        else:
            found.append(whole)
    return tuple(found)


def _net_changes(changes: Sequence[Change], deploys: Sequence[Deploy]) -> list[Change]:
    """Return changes of the number of members outside deploys.

    A group that comes to life, or ends, is not scaled.
    """
    known = [each for each in changes if each.generation is not None and each.before and each.after]
    return [
        each
        for each in known
        if each.after != each.before
        and not any(one.started_at <= each.at <= one.ended_at for one in deploys)
    ]


def alternations(events: Sequence[ScaleEvent], until: datetime) -> list[ScaleEvent]:
    """Return the newest net changes of recent seconds that alternate in sign, oldest first."""
    found: list[ScaleEvent] = []
    for each in reversed(
        [each for each in events if 0 <= (until - each.at).total_seconds() < SWING_SECONDS]
    ):
        if found and each.is_up == found[0].is_up:
            break
        found.insert(0, each)
    return found


def restarts(steps: Sequence[Change], evicted: Iterable[datetime]) -> set[datetime]:
    """Return the times of changes by which members left and soon rejoined, or were evicted.

    For evictions, the time is of the change whose members were evicted.
    """
    found = set(evicted)
    for index, first in enumerate(steps):
        is_new = first.at not in found
        is_open = len(first.left) == 1 or not is_new
        later = (each for each in steps[index + 1 :] if each.at not in found)
        undoing = (each for each in later if _is_back(first, each, is_open=is_open, is_new=is_new))
        back = next(undoing, None)
        if back is not None:
            found |= {first.at, back.at}
    return found


def _is_back(first: Change, back: Change, *, is_open: bool, is_new: bool) -> bool:
    """Return True if a later change undoes the first.

    Either the member that left rejoins, or an added member goes away again at once.
    """
    seconds = (back.at - first.at).total_seconds()
    is_same_place = is_open and bool(set(first.left) & set(back.joined))
    is_undone = is_new and seconds <= STEP_SECONDS and _is_undone(first, back)
    return seconds <= RETURN_SECONDS and (is_same_place or is_undone)


def _is_undone(first: Change, back: Change) -> bool:
    """Return True if a member of the same kind joins after a leave, or leaves after a join.

    The member was then restarted.

    Where the very member that had come goes again, the number itself was changed and changed back.
    """
    step = first.after - first.before
    if abs(step) != 1 or step != back.before - back.after:
        return False
    gone, come = (first.left, back.joined) if step < 0 else (back.left, first.joined)
    is_the_same = step > 0 and bool(set(gone) & set(come))
    return Counter(map(pattern, gone)) == Counter(map(pattern, come)) and not is_the_same
