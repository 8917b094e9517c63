"""Members of a group by its records: who was there, who left and why, in rebalances, deploys and scale events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.deploys import Deploy, find_deploys, vetoing_deploy
from laggard.diagnosis.signals.rebalances import Logical, Spans, logical_rebalances
from laggard.diagnosis.signals.rosters import (
    EVICTION_REASONS,
    Change,
    CrashLoop,
    Eviction,
    Roster,
    changes_of,
    current_members,
    find_crash_loops,
    find_evictions,
    places_of,
    rosters_of,
    subscriptions_differ_since,
)
from laggard.diagnosis.signals.scale_events import ScaleEvent, find_scale_events


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Signals of the members' records up to the end of the evaluated window, each computed once; oldest first."""

    frame: GroupFrame
    parameters: Parameters
    rosters: Sequence[Roster]
    current: Sequence[Row]  # members of the newest roster
    place_of: Mapping[str, str]  # of each slot that has a row
    changes: Sequence[Change]
    logical_rebalances: Sequence[Logical]
    deploys: Sequence[Deploy]
    deploy: Deploy | None  # the rolling deploy that explains rebalances now
    crash_loops: Sequence[CrashLoop]
    evictions_by_reason: Mapping[str, Sequence[Eviction]]  # by claimed reason
    scale_events: Sequence[ScaleEvent]
    subscriptions_differ_since: datetime | None

    @property
    def subscriptions_differ(self) -> bool:
        """True if members subscribe to different topics now."""
        return self.subscriptions_differ_since is not None

    @property
    def deploy_spans(self) -> Spans:
        """First and newest change of each deploy: the rebalances between them are explained."""
        return [(each.started_at, each.ended_at) for each in self.deploys]

    @property
    def looping(self) -> set[str]:
        """Places of all crash loops."""
        return {place for each in self.crash_loops for place in each.places}

    def is_in_deploy(self, at: datetime) -> bool:
        """True if a deploy explains what happened then."""
        return any(begin <= at <= end for begin, end in self.deploy_spans)

    def place(self, slot: str) -> str:
        """Place of a slot; of one without a row the slot itself."""
        return self.place_of.get(slot, slot)

    def evicted(self, reason: str) -> list[Eviction]:
        """Evictions of the last half hour (`deploy_horizon_seconds`) with this claimed reason."""
        horizon = self.parameters.deploy_horizon_seconds
        return [
            each for each in self.evictions_by_reason[reason] if (self.frame.now - each.at).total_seconds() < horizon
        ]


def membership_of(frame: GroupFrame, parameters: Parameters) -> Membership:
    """Signals of the members' records of one frame."""
    rosters, place_of, rebalances = rosters_of(frame), places_of(frame), logical_rebalances(frame)
    changes = changes_of(frame, rosters, place_of)
    deploys = find_deploys(frame, changes, rebalances, parameters)
    evictions = {reason: find_evictions(frame, rosters, reason, parameters) for reason in EVICTION_REASONS}
    return Membership(
        frame=frame,
        parameters=parameters,
        rosters=rosters,
        current=current_members(frame, rosters),
        place_of=place_of,
        changes=changes,
        logical_rebalances=rebalances,
        deploys=deploys,
        deploy=vetoing_deploy(frame, deploys, parameters),
        crash_loops=find_crash_loops(frame, changes, place_of, parameters),
        evictions_by_reason=evictions,
        scale_events=find_scale_events(changes, deploys, [each for found in evictions.values() for each in found]),
        subscriptions_differ_since=subscriptions_differ_since(rosters),
    )
